/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering: hosts discovered through their agents, put into one map. */
#include "bench/clock.h"
#include "bench/crew.h"
#include <stdlib.h>
#include <string.h>

#define DISCOVER_DEADLINE_NS UINT64_C(60000000000)
#define AGENT_GRACE_NS UINT64_C(300000000)

/* The agent's answer becomes the host in our map. */
static int take_map(struct gtopo_map *map, const json_t *message, const char *peer, struct gtopo_error *error)
{
    const json_t *answer = json_object_get(message, "map");
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    struct gtopo_map *host = NULL;
    int status;

    if (!strcmp(gtopo_message_type(message), "failed"))
        return gtopo_failure_read(message, peer, error);
    if (!text)
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "%s answered without a map", peer);
    status = gtopo_map_read(text, strlen(text), peer, &host, error);
    free(text);
    if (!status)
        status = gtopo_map_add_hosts_of(map, host, error);
    gtopo_map_free(host);
    return status;
}

static int gather_host(struct gtopo_map *map, struct gtopo_crew *crew, uint32_t index, const char *name,
                       struct gtopo_error *error)
{
    struct gtopo_agent_process *agent;
    uint64_t deadline_ns = gtopo_clock_ns() + DISCOVER_DEADLINE_NS;
    json_t *message = NULL;
    int status = gtopo_crew_member(crew, index, name, 0, &agent, error);

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
    for (size_t i = 0; !status && i < count; i++) {
        status = gather_host(map, &crew, (uint32_t)i, names[i], &cause);
        found += !status;
        if (status == GTOPO_ENOMEM || status == GTOPO_ECANCELLED || status == GTOPO_EUSAGE)
            gtopo_fail(error, status, cause.hint, "%s", cause.message);
        else if (status)
            status = report_missing(map, options, &cause, error);
    }
    gtopo_crew_dismiss(&crew, AGENT_GRACE_NS);
    gtopo_crew_clear(&crew);
    if (!status && !found)
        status = gtopo_fail(error, GTOPO_EPEER, cause.hint, "%s", cause.message);
    return status;
}
