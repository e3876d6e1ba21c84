/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make plans share. */
#ifndef GTOPO_BENCH_PLAN_PART_H
#define GTOPO_BENCH_PLAN_PART_H

#include "bench/plan.h"
#include "bench/transport.h"

/* RDMA ports that can be used, and how many there are that were asked for but have no link. */
struct gtopo_plan_ports {
    struct gtopo_plan_end *ends; /* with the host memory near the port */
    size_t count, capacity, down;
};
/* Append those of a host. Errors: GTOPO_ENOMEM. */
int gtopo_plan_list_ports(const struct gtopo_map *map, const struct gtopo_campaign_options *options, uint32_t host,
                          struct gtopo_plan_ports *ports, struct gtopo_error *error);

/* Append one probe, or the probe once for each metric. Errors: GTOPO_ENOMEM. */
int gtopo_plan_add(struct gtopo_plan *plan, const struct gtopo_plan_probe *probe, struct gtopo_error *error);
int gtopo_plan_add_metrics(struct gtopo_plan *plan, struct gtopo_plan_probe probe, struct gtopo_error *error);

/* Say why a plan is empty, of which `down` ports would have been. Never 0. */
int gtopo_plan_nothing(const struct gtopo_map *map, const struct gtopo_campaign_options *options, size_t down,
                       struct gtopo_error *error);

/*
 * Memories through ports and back; bench/plan_loopback.c. rdma is the transport for ports, or NULL when another was
 * asked for. The plan is cleared after an error.
 */
int gtopo_plan_loopback(const struct gtopo_map *map, const struct gtopo_campaign_options *options,
                        const struct gtopo_transport_facts *rdma, struct gtopo_plan *plan, struct gtopo_error *error);

#endif
