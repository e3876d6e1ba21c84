/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering: hosts discovered through their agents, put into one map. */
#include "bench/clock.h"
#include "bench/crew.h"
#include <stdlib.h>
#include <string.h>

#define DISCOVER_DEADLINE_NS UINT64_C(60000000000)

/* A host tells of itself only: of one host, under the name that it was asked by, and nothing measured. */
static int check_host(const struct gtopo_map *host, const char *name, struct gtopo_error *error)
{
    if (gtopo_map_host_count(host) == 1 && !strcmp(gtopo_map_host_name(host, 0), name) &&
        !gtopo_map_switch_count(host) && !gtopo_map_measurement_count(host))
        return 0;
    return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "%s answered with a map of something else", name);
}

/* The agent's answer becomes the host in our map. */
static int take_map(struct gtopo_map *map, const json_t *message, const char *peer, struct gtopo_error *error)
{
    const json_t *answer = json_object_get(message, "map");
    struct gtopo_map *host = NULL;
    char *text;
    int status;

    if (!strcmp(gtopo_message_type(message), "failed"))
        return gtopo_failure_read(message, peer, error);
    text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    if (!text)
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "%s answered without a map", peer);
    status = gtopo_map_read(text, strlen(text), peer, &host, error);
    free(text);
    if (!status)
        status = check_host(host, peer, error);
    if (!status)
        status = gtopo_map_add_hosts_of(map, host, error);
    gtopo_map_free(host);
    return status;
}

static int gather_host(struct gtopo_map *map, struct gtopo_crew *crew, uint32_t index, const char *name,
                       struct gtopo_error *error)
{
    struct gtopo_agent_process *agent;
    uint64_t step_ns = (uint64_t)(crew->options->deadline_s * 1e9);
    uint64_t deadline_ns = gtopo_clock_ns() + (step_ns > DISCOVER_DEADLINE_NS ? step_ns : DISCOVER_DEADLINE_NS);
    json_t *message = NULL;
    int status = gtopo_crew_member(crew, index, name, 0, &agent, error);

    if (deadline_ns > crew->end_ns)
        deadline_ns = crew->end_ns;
    if (!status)
        status = gtopo_message_send(&agent->stream, json_pack("{ss, ss}", "type", "discover", "name", name),
                                    deadline_ns, error);
    if (!status)
        status = gtopo_message_receive(&agent->stream, deadline_ns, crew->options->cancel, &message, error);
    if (!status)
        status = take_map(map, message, agent->stream.peer, error);
    json_decref(message);
    return status;
}

static int report_missing(struct gtopo_map *map, const struct gtopo_campaign_options *options,
                          const struct gtopo_error *cause, struct gtopo_error *error)
{
    struct gtopo_event event = {.kind = GTOPO_EVENT_FAILED, .text = cause->message, .measurement = GTOPO_NONE};
    struct gtopo_finding finding = {.rule = "host-missing",
                                    .severity = GTOPO_FAULT,
                                    .object = GTOPO_NONE,
                                    .text = cause->message,
                                    .next_step = *cause->hint ? cause->hint : NULL};

    if (options->on_event)
        options->on_event(options->context, &event);
    return gtopo_map_add_finding(map, &finding, error);
}

static int check_names(const char *const *names, size_t count, struct gtopo_error *error)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(names[i], names[j]))
                return gtopo_fail(error, GTOPO_EUSAGE, NULL, "host %.255s is named twice", names[i]);
    return 0;
}

int gtopo_campaign_gather(struct gtopo_map *map, const char *const *names, size_t count,
                          const struct gtopo_campaign_options *options, struct gtopo_error *error)
{
    struct gtopo_crew crew = {0};
    struct gtopo_error cause;
    size_t found = 0;
    int status;

    if (options->size != sizeof *options || !options->launch || !count)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "gathering needs initialised options, a launch command and hosts");
    status = gtopo_crew_init(&crew, options, count, error);
    if (!status)
        status = check_names(names, count, error);
    for (size_t i = 0; !status && i < count; i++) {
        if (gtopo_clock_ns() >= crew.end_ns) {
            status = gtopo_fail(error, GTOPO_ECANCELLED, "allow more time", "the time was over after %zu of %zu hosts",
                                i, count);
            break;
        }
        status = gather_host(map, &crew, (uint32_t)i, names[i], &cause);
        found += !status;
        if (status == GTOPO_ENOMEM || status == GTOPO_ECANCELLED || status == GTOPO_EUSAGE)
            gtopo_fail(error, status, cause.hint, "%s", cause.message);
        else if (status)
            status = report_missing(map, options, &cause, error);
    }
    gtopo_crew_clear(&crew);
    if (!status && !found)
        status = gtopo_fail(error, GTOPO_EPEER, NULL, "none of the %zu hosts could be discovered", count);
    return status;
}
