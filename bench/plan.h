/* SPDX-License-Identifier: Apache-2.0 */
/* Which probes a campaign runs, in which order. */
#ifndef GTOPO_BENCH_PLAN_H
#define GTOPO_BENCH_PLAN_H

#include <stddef.h>
#include <gputopo/campaign.h>

/* One side of a planned probe. */
struct gtopo_plan_end {
    struct gtopo_end end;
    char device[64]; /* a copy: the map's texts move when results are added to it */
    uint32_t port;
    int numa; /* where its memory is and its agent runs */
    uint32_t host;
};

struct gtopo_plan_probe {
    struct gtopo_plan_end from, to;
    const char *transport; /* "verbs", "ofi"; constant, as are the next two */
    const char *name;      /* as people see it: "verbs", "ofi:tcp" */
    const char *fallback;  /* what was wanted and why it is not this, or NULL */
    uint32_t metric;
};

struct gtopo_plan {
    struct gtopo_plan_probe *probes;
    size_t count, capacity;
};

/*
 * On each host: every active RDMA port in loopback and each pair of them; where there is none, the memory of the host
 * through libfabric. Then, for each two hosts, the ports of the same place. O(ports² + hosts² · ports). Errors:
 * GTOPO_EMISSING when there is nothing to measure, GTOPO_ELINKDOWN when all that was asked for has no link,
 * GTOPO_EUSAGE, GTOPO_ENOMEM.
 */
int gtopo_plan_make(const struct gtopo_map *map, const struct gtopo_campaign_options *options, struct gtopo_plan *plan,
                    struct gtopo_error *error);
/* Only the memory of each host through libfabric; `fallback` says why and is kept, or is NULL. */
int gtopo_plan_memory(const struct gtopo_map *map, const struct gtopo_campaign_options *options, const char *fallback,
                      struct gtopo_plan *plan, struct gtopo_error *error);
void gtopo_plan_clear(struct gtopo_plan *plan);

#endif
