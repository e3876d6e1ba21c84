/* SPDX-License-Identifier: Apache-2.0 */
/* The agents of a campaign: up to two a host, one for either end of a probe, started when first needed. */
#ifndef GTOPO_BENCH_CREW_H
#define GTOPO_BENCH_CREW_H

#include <gputopo/campaign.h>
#include "bench/launch.h"

struct gtopo_crew {
    const struct gtopo_campaign_options *options;
    struct gtopo_crew_member {
        struct gtopo_agent_process agent;
        char name[256]; /* of the host, for messages */
    } * members;        /* of host h: 2h and 2h + 1 */
    size_t host_count;
    uint64_t end_ns; /* of all work, from options->total_deadline_s; UINT64_MAX for none */
};

/* Errors: GTOPO_ENOMEM. */
int gtopo_crew_init(struct gtopo_crew *crew, const struct gtopo_campaign_options *options, size_t host_count,
                    struct gtopo_error *error);
/* Agent 0 or 1 of a host, started if it is not running. Errors: gtopo_agent_start()'s, GTOPO_EUSAGE. */
int gtopo_crew_member(struct gtopo_crew *crew, uint32_t host, const char *host_name, int which,
                      struct gtopo_agent_process **agent, struct gtopo_error *error);
/* End the agents, all at once, and release. A zeroed struct is accepted. */
void gtopo_crew_clear(struct gtopo_crew *crew);

#endif
