/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/crew.h"
#include "bench/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an agent has to end by itself, after bye. */
#define AGENT_GRACE_NS UINT64_C(300000000)

int gtopo_crew_init(struct gtopo_crew *crew, const struct gtopo_campaign_options *options, size_t host_count,
                    struct gtopo_error *error)
{
    crew->options = options;
    crew->host_count = host_count;
    crew->end_ns =
        options->total_deadline_s > 0 ? gtopo_clock_ns() + (uint64_t)(options->total_deadline_s * 1e9) : UINT64_MAX;
    crew->members = calloc(2 * host_count + 1, sizeof *crew->members);
    return crew->members ? 0 : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
}

/* A larger deadline of a step holds for greeting an agent too: a host may be as slow as its links. */
static int start(struct gtopo_crew *crew, struct gtopo_crew_member *member, char *const *argv,
                 struct gtopo_error *error)
{
    uint64_t step_ns = (uint64_t)(crew->options->deadline_s * 1e9);
    uint64_t hello_ns = gtopo_clock_ns() + (step_ns > GTOPO_HELLO_DEADLINE_NS ? step_ns : GTOPO_HELLO_DEADLINE_NS);

    return gtopo_agent_start(&member->agent, argv, member->name, hello_ns < crew->end_ns ? hello_ns : crew->end_ns,
                             crew->options->cancel, error);
}

static int start_local(struct gtopo_crew *crew, struct gtopo_crew_member *member, struct gtopo_error *error)
{
    const char *program = crew->options->agent_program ? crew->options->agent_program : GTOPO_BINDIR "/gtopo-bench";
    char *const argv[] = {(char *)program, "agent", NULL};

    return start(crew, member, argv, error);
}

static int start_launched(struct gtopo_crew *crew, struct gtopo_crew_member *member, const char *host,
                          struct gtopo_error *error)
{
    char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    int status = gtopo_launch_command(crew->options->launch, host, &argv[2], error);

    if (!status)
        status = start(crew, member, argv, error);
    free(argv[2]);
    return status;
}

int gtopo_crew_member(struct gtopo_crew *crew, uint32_t host, const char *host_name, int which,
                      struct gtopo_agent_process **agent, struct gtopo_error *error)
{
    struct gtopo_crew_member *member = &crew->members[2 * host + (which != 0)];
    int status = 0;

    if (!member->agent.pid) {
        snprintf(member->name, sizeof member->name, "%.255s", host_name);
        status =
            crew->options->launch ? start_launched(crew, member, host_name, error) : start_local(crew, member, error);
    }
    *agent = &member->agent;
    return status;
}

void gtopo_crew_clear(struct gtopo_crew *crew)
{
    uint64_t end_ns = gtopo_clock_ns() + AGENT_GRACE_NS;

    for (size_t i = 0; crew->members && i < 2 * crew->host_count; i++)
        gtopo_agent_say_bye(&crew->members[i].agent);
    for (size_t i = 0; crew->members && i < 2 * crew->host_count; i++)
        gtopo_agent_end(&crew->members[i].agent, end_ns);
    free(crew->members);
    memset(crew, 0, sizeof *crew);
}
