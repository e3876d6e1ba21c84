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
    char memory[64]; /* "host", "gpu:0000:1b:00.0" */
    int numa;        /* where its agent runs, and its memory is when that is the host's */
    uint32_t host;
    int is_memory; /* it goes through no port */
};

/*
 * What a probe needs to know of an end: a memory through a port, through none, or GTOPO_NONE for the host memory near a
 * port. Errors: GTOPO_EUSAGE when it cannot be an end of a probe, GTOPO_ELINKDOWN, GTOPO_EMISSING.
 */
int gtopo_plan_end(const struct gtopo_map *map, struct gtopo_end end, struct gtopo_plan_end *planned,
                   struct gtopo_error *error);

/* The same end where processors move the bytes: those of the package that a NUMA node is on. */
struct gtopo_end gtopo_plan_by_processors(const struct gtopo_map *map, struct gtopo_end end);

struct gtopo_plan_probe {
    struct gtopo_plan_end from, to;
    const char *transport; /* "verbs", "ofi"; constant, as are the next two */
    const char *name;      /* as people see it: "verbs", "ofi:tcp" */
    const char *fallback;  /* what was wanted and why it is not this, or NULL */
    uint32_t operation, metric;
    uint32_t at_once; /* above 1: it and those after it, so many in all, run at once; none of them by itself */
};

struct gtopo_plan {
    struct gtopo_plan_probe *probes;
    size_t count, capacity;
};

/*
 * On each host: every active RDMA port in loopback and each pair of them; where there is none, the memory of the host
 * through libfabric. Then, for each two hosts, the ports of the same place. O(ports² + hosts² · ports). With
 * options->loopback, on each host every memory through every port and back, then all ports at once. Errors:
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
