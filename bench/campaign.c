/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign: the probes of a plan, one after the other, each on two agents. */
#include "bench/campaign_part.h"
#include "bench/affinity.h"
#include "bench/clock.h"
#include "bench/options.h"
#include "bench/pair.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gtopo_campaign_options_init(struct gtopo_campaign_options *options)
{
    *options = (struct gtopo_campaign_options){
        .size = sizeof *options,
        .only = GTOPO_NONE,
        .bandwidth_message_B = 65536,
        .latency_message_B = 8,
        .precision = 0.01,
        .seconds_per_probe = 2,
        .deadline_s = 5,
    };
}

static int check_options(const struct gtopo_map *map, const struct gtopo_campaign_options *options,
                         struct gtopo_error *error)
{
    struct gtopo_object object;

    if (options->size != sizeof *options)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_campaign_options_init()", "the options are not initialised");
    if (!options->launch && gtopo_map_host_count(map) != 1)
        return gtopo_fail(error, GTOPO_EUSAGE, "say how agents are started with options.launch",
                          "a campaign without a launch command measures a map of one host, not of %u",
                          gtopo_map_host_count(map));
    if (!options->bandwidth_message_B || options->bandwidth_message_B > GTOPO_MESSAGE_MAX_B ||
        !options->latency_message_B || options->latency_message_B > GTOPO_MESSAGE_MAX_B)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a message has 1 B to 1 GiB");
    if (!(options->precision >= 0 && options->precision <= 1) ||
        !(options->seconds_per_probe > 0 && options->seconds_per_probe <= 86400) ||
        !(options->deadline_s >= 0.001 && options->deadline_s <= 86400) ||
        !(options->total_deadline_s >= 0 && options->total_deadline_s <= 1e9))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL,
                          "the precision has to be from 0 to 1, and times above 0 and at most a day");
    return options->only == GTOPO_NONE ? 0 : gtopo_map_object(map, options->only, &object, error);
}

/* ---- telling ---- */

void gtopo_campaign_tell(const struct gtopo_campaign *c, enum gtopo_event_kind kind, const char *text,
                         uint32_t measurement)
{
    struct gtopo_event event = {
        .kind = kind,
        .done = (uint32_t)c->done,
        .total = (uint32_t)c->plan.count,
        .text = text,
        .measurement = measurement,
        .remaining_s = (double)(c->plan.count - c->done) * c->options->seconds_per_probe,
    };

    if (c->options->on_event)
        c->options->on_event(c->options->context, &event);
}

void gtopo_campaign_name(const struct gtopo_campaign *c, const struct gtopo_plan_probe *probe,
                         char name[GTOPO_PROBE_NAME_MAX])
{
    char from[GTOPO_ADDRESS_MAX], to[GTOPO_ADDRESS_MAX], at_once[32] = "";

    if (probe->at_once > 1)
        snprintf(at_once, sizeof at_once, ", one of %u at once", probe->at_once);
    snprintf(name, GTOPO_PROBE_NAME_MAX, "%s %s %s -> %s%s", probe->name,
             probe->metric == GTOPO_LATENCY_ns ? "latency" : "bandwidth",
             gtopo_end_format(c->map, probe->from.end, from), gtopo_end_format(c->map, probe->to.end, to), at_once);
}

/* Two ports of one host, of which nobody says that they can reach each other: rails on subnets of their own cannot. */
static int may_be_apart(const struct gtopo_map *map, const struct gtopo_plan_probe *probe)
{
    struct gtopo_object via;

    return probe->from.host == probe->to.host && probe->from.end.via != probe->to.end.via &&
           !gtopo_map_object(map, probe->from.end.via, &via, NULL) && via.kind == GTOPO_PORT;
}

static int report_failure(struct gtopo_campaign *c, const struct gtopo_plan_probe *probe, const char *name,
                          const struct gtopo_error *cause, struct gtopo_error *error)
{
    char text[2048];
    int apart = may_be_apart(c->map, probe) && cause->code != GTOPO_EDATA;
    struct gtopo_finding finding = {
        .rule = apart ? "ports-apart" : "probe-failed",
        .severity = apart ? GTOPO_NOTE : GTOPO_WARNING,
        .object = probe->from.end.via == GTOPO_NONE ? probe->from.end.memory : probe->from.end.via,
        .text = text,
        .next_step = *cause->hint ? cause->hint : NULL,
    };

    snprintf(text, sizeof text, "%s: %s", name, cause->message);
    gtopo_campaign_tell(c, apart ? GTOPO_EVENT_WARNING : GTOPO_EVENT_FAILED, text, GTOPO_NONE);
    return gtopo_map_add_finding(c->map, &finding, error);
}

/* ---- one probe ---- */

void gtopo_campaign_probe_options(const struct gtopo_campaign *c, const struct gtopo_plan_probe *probe,
                                  struct gtopo_probe_options *options)
{
    gtopo_probe_options_init(options);
    options->transport = probe->transport;
    options->operation = probe->operation;
    options->metric = probe->metric;
    options->message_B =
        probe->metric == GTOPO_LATENCY_ns ? c->options->latency_message_B : c->options->bandwidth_message_B;
    options->precision = probe->at_once > 1 ? 0 : c->options->precision; /* at once means until the end */
    options->seconds = c->options->seconds_per_probe;
    options->deadline_s = c->options->deadline_s;
}

static int run_probe(struct gtopo_campaign *c, const struct gtopo_plan_probe *probe, struct gtopo_error *cause)
{
    const struct gtopo_plan_end ends[2] = {probe->from, probe->to};
    const char *const hosts[2] = {gtopo_map_host_name(c->map, ends[0].host), gtopo_map_host_name(c->map, ends[1].host)};
    struct gtopo_probe_options options;
    int status;

    gtopo_campaign_probe_options(c, probe, &options);
    status = gtopo_pair_exchange(&c->crew, ends, hosts, &options, NULL, c->result, cause);
    return status ? status
                  : gtopo_pair_measure(c->map, ends, probe->name, probe->fallback, &options, c->result, 1, cause);
}

/* ---- all of them ---- */

/* RDMA is not to be had after all (no module, no driver's library): measure the host through libfabric instead. */
static int fall_back(struct gtopo_campaign *c, const struct gtopo_error *cause, struct gtopo_error *error)
{
    struct gtopo_plan memory = {0};
    struct gtopo_finding finding = {.rule = "rdma-missing",
                                    .severity = GTOPO_WARNING,
                                    .object = GTOPO_NONE,
                                    .text = c->fallback,
                                    .next_step = *cause->hint ? cause->hint : NULL};
    int status;

    snprintf(c->fallback, sizeof c->fallback, "RDMA was wanted; %s", cause->message);
    status = gtopo_map_add_finding(c->map, &finding, error);
    if (!status)
        status = gtopo_plan_memory(c->map, c->options, c->fallback, &memory, error);
    if (status)
        return status;
    gtopo_campaign_tell(c, GTOPO_EVENT_WARNING, c->fallback, GTOPO_NONE);
    gtopo_plan_clear(&c->plan);
    c->plan = memory;
    c->done = 0;
    return 0;
}

static int is_over(const struct gtopo_campaign *c, struct gtopo_error *error)
{
    if (gtopo_cancel_tripped(c->options->cancel))
        return gtopo_fail(error, GTOPO_ECANCELLED, NULL, "cancelled after %zu of %zu probes", c->done, c->plan.count);
    if (gtopo_clock_ns() >= c->crew.end_ns)
        return gtopo_fail(error, GTOPO_ECANCELLED, "allow more time", "the time was over after %zu of %zu probes",
                          c->done, c->plan.count);
    return 0;
}

/* RDMA is missing, which was not asked for and is seen before anything else. */
static int may_fall_back(const struct gtopo_campaign *c, const struct gtopo_plan_probe *probe)
{
    return !c->options->transport && !c->options->loopback && !*c->fallback && !c->done && !probe->fallback;
}

/* The measurement that was added last, if nobody said whether its data was right. */
static int report_unverified(struct gtopo_campaign *c, const struct gtopo_plan_probe *probe, const char *name,
                             uint32_t measurement, struct gtopo_error *error)
{
    char text[GTOPO_PROBE_NAME_MAX + 128];
    struct gtopo_measurement m;
    struct gtopo_finding finding = {
        .rule = "not-verified",
        .severity = GTOPO_WARNING,
        .object = probe->from.end.via == GTOPO_NONE ? probe->from.end.memory : probe->from.end.via,
        .text = text,
        .next_step = "allow more time",
    };
    int status = gtopo_map_measurement(c->map, measurement, &m, error);

    if (status || m.verified)
        return status;
    snprintf(text, sizeof text, "%s: it was interrupted, and no end said in time whether the data was right", name);
    return gtopo_map_add_finding(c->map, &finding, error);
}

int gtopo_campaign_report(struct gtopo_campaign *c, const struct gtopo_plan_probe *probe, const char *name, int status,
                          const struct gtopo_error *cause, struct gtopo_error *error)
{
    if (!status) {
        uint32_t measurement = gtopo_map_measurement_count(c->map) - 1;

        c->measured++;
        gtopo_campaign_tell(c, GTOPO_EVENT_MEASURED, name, measurement);
        return report_unverified(c, probe, name, measurement, error);
    }
    if (status == GTOPO_ENOMEM) { /* ours: any other failure costs only its probe */
        if (error)
            *error = *cause;
        return status;
    }
    if (status == GTOPO_EMISSING && !strcmp(c->missing.message, cause->message))
        return 0; /* told already, of an earlier probe */
    if (status == GTOPO_EMISSING)
        c->missing = *cause;
    return report_failure(c, probe, name, cause, error);
}

static int run_alone(struct gtopo_campaign *c, struct gtopo_error *error)
{
    const struct gtopo_plan_probe *probe = &c->plan.probes[c->done];
    struct gtopo_error cause = {0};
    char name[GTOPO_PROBE_NAME_MAX];
    int status;

    gtopo_campaign_name(c, probe, name);
    gtopo_campaign_tell(c, GTOPO_EVENT_STARTED, name, GTOPO_NONE);
    status = run_probe(c, probe, &cause);
    if (status == GTOPO_EMISSING && may_fall_back(c, probe))
        return fall_back(c, &cause, error);
    if (status == GTOPO_ECANCELLED)
        return 0; /* is_over() says why */
    c->done++;
    return gtopo_campaign_report(c, probe, name, status, &cause, error);
}

static int run_plan(struct gtopo_campaign *c, struct gtopo_error *error)
{
    int status = 0;

    while (!status && c->done < c->plan.count && !(status = is_over(c, error)))
        status = c->plan.probes[c->done].at_once > 1 ? gtopo_campaign_at_once(c, error) : run_alone(c, error);
    if (!status && gtopo_cancel_tripped(c->options->cancel))
        status = is_over(c, error); /* what was last is cut short */
    return status;
}

/* Hosts that were to be measured together, and between which there is nothing to measure, are not silently apart. */
static int report_apart(struct gtopo_campaign *c, struct gtopo_error *error)
{
    struct gtopo_finding finding = {
        .rule = "hosts-apart",
        .severity = GTOPO_WARNING,
        .object = GTOPO_NONE,
        .text = "nothing is measured between the hosts: no two of them have an RDMA port with a link in the same place",
        .next_step = "look at the ports of each with `gtopo-bench show`, and load their RDMA driver",
    };

    for (size_t i = 0; i < c->plan.count; i++)
        if (c->plan.probes[i].from.host != c->plan.probes[i].to.host)
            return 0;
    if (gtopo_map_host_count(c->map) < 2 || c->options->only != GTOPO_NONE || c->options->loopback)
        return 0;
    return gtopo_map_add_finding(c->map, &finding, error);
}

/* Without any agent nothing can be measured at all, which is not the failure of a probe. */
static int try_agent(struct gtopo_campaign *c, struct gtopo_error *error)
{
    struct gtopo_agent_process *agent;
    uint32_t host = c->plan.probes[0].from.host;

    return gtopo_crew_member(&c->crew, host, gtopo_map_host_name(c->map, host), 0, &agent, error);
}

int gtopo_campaign_run(struct gtopo_map *map, const struct gtopo_campaign_options *options, struct gtopo_error *error)
{
    struct gtopo_campaign c = {.map = map, .options = options, .result = calloc(1, sizeof *c.result)};
    uint32_t before = gtopo_map_measurement_count(map);
    int status = check_options(map, options, error), sealed;

    if (!status && !c.result)
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (!status)
        status = gtopo_map_seal(map, error);
    if (!status)
        status = gtopo_crew_init(&c.crew, options, gtopo_map_host_count(map), error);
    if (!status)
        status = gtopo_plan_make(map, options, &c.plan, error);
    if (!status) {
        gtopo_campaign_tell(&c, GTOPO_EVENT_PLANNED, NULL, GTOPO_NONE);
        status = options->launch ? report_apart(&c, error) : try_agent(&c, error);
    }
    if (!status)
        status = run_plan(&c, error);
    if (!status && !c.measured && c.missing.code)
        status = gtopo_fail(error, c.missing.code, c.missing.hint, "nothing could be measured");
    gtopo_crew_clear(&c.crew);
    gtopo_plan_clear(&c.plan);
    free(c.result);
    sealed = gtopo_map_seal(map, status ? NULL : error);
    if (!sealed && options->loopback)
        sealed = gtopo_affinity_judge(map, before, status ? NULL : error);
    return status ? status : sealed;
}
