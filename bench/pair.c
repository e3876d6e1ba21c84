/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pair.h"
#include "bench/clock.h"
#include "bench/options.h"
#include "bench/transport.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOOL "gputopo"
#define END_NS UINT64_C(5000000000) /* at most, for agents to end by themselves */

/* ---- what a campaign has in common with a pair ---- */

static void set_end(struct gtopo_probe_end *end, const struct gtopo_plan_end *planned)
{
    end->device = planned->device;
    end->port = planned->port;
    end->memory = planned->memory;
    end->numa = planned->numa;
}

/*
 * Agents that are no longer of use. One that is well may be about to give back what a device has registered: to be
 * killed then, with memory of a GPU in it, is what machines have been seen to hang of; and it would leave its shared
 * memory behind. Both are told first, so that they end side by side.
 */
static void end_agents(struct gtopo_agent_process *const agents[2])
{
    uint64_t end_ns = gtopo_clock_ns() + END_NS;

    for (int i = 0; i < 2 && agents[i]; i++)
        gtopo_agent_say_bye(agents[i]);
    for (int i = 0; i < 2 && agents[i]; i++)
        gtopo_agent_end(agents[i], end_ns);
}

/* Agents whose streams closed: how each of them ended says more than that. */
static void tell_deaths(struct gtopo_agent_process *const agents[2], struct gtopo_error *error)
{
    static const char *const which[2] = {"first", "second"};
    struct gtopo_error said = *error;
    char text[256] = "", how[GTOPO_ENDED_TEXT];
    size_t used = 0;

    for (int i = 0; i < 2 && agents[i]; i++)
        if (gtopo_agent_ended(agents[i], how))
            used += (size_t)snprintf(text + used, sizeof text - used, "%sthe agent of the %s end %s", used ? ", " : "",
                                     which[i], how);
    if (used)
        gtopo_fail(error, said.code, said.hint, "%.700s: %s", said.message, text);
}

int gtopo_pair_exchange(struct gtopo_crew *crew, const struct gtopo_plan_end ends[2], const char *const hosts[2],
                        const struct gtopo_probe_options *options, const struct gtopo_before_run *before_run,
                        struct gtopo_probe_result *result, struct gtopo_error *error)
{
    struct gtopo_probe_options o = *options;
    struct gtopo_agent_process *agents[2] = {NULL, NULL};
    const struct gtopo_transport_facts *facts;
    struct gtopo_exchange exchange = {
        .cancel = crew->options->cancel,
        .before_run = before_run,
        .end_ns = crew->end_ns,
        .one_machine = ends[0].host == ends[1].host,
        .shared = ends[0].host == ends[1].host && ends[0].numa == ends[1].numa,
    };
    int usable = 0, status;

    set_end(&o.from, &ends[0]);
    set_end(&o.to, &ends[1]);
    if ((status = gtopo_probe_options_check(&o, error)) || (status = gtopo_transport_facts(o.transport, &facts, error)))
        return status;
    for (int i = 0; !status && i < (facts->alone ? 1 : 2); i++)
        status = gtopo_crew_member(crew, ends[i].host, hosts[i], i, &agents[i], error);
    if (status)
        return status;
    exchange.initiator = &agents[0]->stream;
    exchange.responder = agents[1] ? &agents[1]->stream : NULL;
    status = gtopo_exchange_run(&exchange, &o, result, &usable, error);
    if (status == GTOPO_EPEER && !usable)
        tell_deaths(agents, error);
    if (!usable)
        end_agents(agents);
    return status;
}

int gtopo_pair_measure(struct gtopo_map *map, const struct gtopo_plan_end ends[2], const char *transport,
                       const char *fallback, const struct gtopo_probe_options *options,
                       const struct gtopo_probe_result *result, uint32_t concurrent, struct gtopo_error *error)
{
    const char *const fallbacks[] = {fallback, result->from.fallback, result->to.fallback};
    char method[640], tool[64];
    struct gtopo_measurement m = {
        .from = ends[0].end,
        .to = ends[1].end,
        .provenance = GTOPO_MEASURED,
        .metric = options->metric,
        .operation = gtopo_operation_name(options->operation),
        .transport = transport,
        .method = method,
        .stopped_by = result->stopped_by,
        .tool = tool,
        .message_B = options->message_B,
        .queue_pairs = options->queue_pairs,
        .depth = options->metric == GTOPO_LATENCY_ns ? 1 : gtopo_options_depth(options),
        .samples = result->samples,
        .warmup_samples = result->warmup_samples,
        .median = result->median,
        .low = result->low,
        .high = result->high,
        .two_way = options->two_way,
        .forward = result->forward,
        .reverse = result->reverse,
        .p99 = options->metric == GTOPO_LATENCY_ns ? result->p99 : 0,
        .p999 = options->metric == GTOPO_LATENCY_ns ? result->p999 : 0,
        .from_way = result->from.way,
        .to_way = result->to.way,
        .concurrent = concurrent,
        .verified = result->verified,
        .time_unix_s = time(NULL),
    };

    for (size_t i = 0; !m.fallback && i < sizeof fallbacks / sizeof *fallbacks; i++)
        if (fallbacks[i] && *fallbacks[i])
            m.fallback = fallbacks[i];
    snprintf(method, sizeof method, "%s%s%s", result->method, *result->from.description ? "; " : "",
             result->from.description);
    snprintf(tool, sizeof tool, TOOL " %s", gtopo_version());
    return gtopo_map_add_measurement(map, &m, error);
}

/* ---- a pair ---- */

struct gtopo_pair {
    struct gtopo_crew crew;
    struct gtopo_plan_end ends[2]; /* .host is 0 for from and 1 for to, unless that is the same */
    char hosts[2][256];
};

int gtopo_pair_open(const struct gtopo_map *map, const struct gtopo_end *from, const struct gtopo_end *to,
                    const struct gtopo_campaign_options *options, struct gtopo_pair **opened, struct gtopo_error *error)
{
    const struct gtopo_end *ends[2] = {from, to};
    struct gtopo_pair *pair = calloc(1, sizeof *pair);
    int status = 0;

    if (!pair)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (int i = 0; !status && i < 2; i++) {
        status = gtopo_plan_end(map, *ends[i], &pair->ends[i], error);
        if (!status)
            snprintf(pair->hosts[i], sizeof pair->hosts[i], "%.255s", gtopo_map_host_name(map, pair->ends[i].host));
    }
    if (!status && !options->launch && gtopo_map_host_count(map) != 1)
        status = gtopo_fail(error, GTOPO_EUSAGE, "say how agents are started with options.launch",
                            "a probe without a launch command is within a map of one host, not of %u",
                            gtopo_map_host_count(map));
    if (!status)
        status = gtopo_crew_init(&pair->crew, options, 2, error);
    if (status) {
        gtopo_pair_close(pair);
        return status;
    }
    pair->ends[1].host = pair->ends[0].host != pair->ends[1].host;
    pair->ends[0].host = 0;
    *opened = pair;
    return 0;
}

/* "ofi:tcp" names a transport and, where ends have no device of their own, what it goes through. */
static void split_transport(const char *name, char transport[32], struct gtopo_plan_end ends[2])
{
    const char *colon = strchr(name, ':');

    snprintf(transport, 32, "%.*s", colon ? (int)(colon - name) : 31, name);
    for (int i = 0; colon && i < 2; i++)
        snprintf(ends[i].device, sizeof ends[i].device, "%s", colon + 1);
}

static int check_ends(const struct gtopo_plan_end ends[2], const struct gtopo_probe_options *options,
                      struct gtopo_error *error)
{
    const struct gtopo_transport_facts *facts;
    int status = gtopo_transport_facts(options->transport, &facts, error);

    for (int i = 0; !status && i < 2; i++)
        if (facts->is_rdma && ends[i].is_memory)
            status = gtopo_fail(error, GTOPO_EUSAGE, "name a port (nic0:1), or use --transport ofi:shm or copy",
                                "the %s end of the probe has no RDMA port", i ? "second" : "first");
    if (!status && !facts->is_rdma && (!ends[0].is_memory || !ends[1].is_memory))
        status = gtopo_fail(error, GTOPO_EUSAGE, "name a memory (numa0, gpu0), or use --transport verbs",
                            "transport %s does not go through ports", facts->name);
    if (!status && !facts->is_rdma && ends[0].host != ends[1].host)
        status = gtopo_fail(error, GTOPO_EUSAGE, "name RDMA ports, and use --transport verbs",
                            "transport %s is for probes within one host", facts->name);
    return status;
}

int gtopo_pair_probe(struct gtopo_pair *pair, const struct gtopo_probe_options *options,
                     struct gtopo_probe_result *result, struct gtopo_error *error)
{
    const char *const hosts[2] = {pair->hosts[0], pair->hosts[1]};
    struct gtopo_plan_end ends[2] = {pair->ends[0], pair->ends[1]};
    struct gtopo_probe_options o = *options;
    char transport[32];
    int status;

    split_transport(options->transport, transport, ends);
    o.transport = transport;
    status = check_ends(ends, &o, error);
    return status ? status : gtopo_pair_exchange(&pair->crew, ends, hosts, &o, NULL, result, error);
}

int gtopo_pair_record(const struct gtopo_pair *pair, const struct gtopo_probe_options *options,
                      const struct gtopo_probe_result *result, struct gtopo_map *map, struct gtopo_error *error)
{
    struct gtopo_plan_end ends[2] = {pair->ends[0], pair->ends[1]};
    struct gtopo_plan_end unused[2];
    const struct gtopo_transport_facts *facts;
    char transport[32];
    int status;

    split_transport(options->transport, transport, unused);
    status = gtopo_transport_facts(transport, &facts, error);
    for (int i = 0; !status && i < 2 && !facts->is_rdma && !facts->alone; i++)
        ends[i].end = gtopo_plan_by_processors(map, ends[i].end);
    return status ? status : gtopo_pair_measure(map, ends, options->transport, NULL, options, result, 1, error);
}

void gtopo_pair_fill(const struct gtopo_pair *pair, struct gtopo_probe_options *options)
{
    set_end(&options->from, &pair->ends[0]);
    set_end(&options->to, &pair->ends[1]);
}

void gtopo_pair_close(struct gtopo_pair *pair)
{
    if (!pair)
        return;
    gtopo_crew_clear(&pair->crew);
    free(pair);
}
