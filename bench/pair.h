/* SPDX-License-Identifier: Apache-2.0 */
/* A planned probe, run by the two agents of a crew, and put on a map. */
#ifndef GTOPO_BENCH_PAIR_H
#define GTOPO_BENCH_PAIR_H

#include <gputopo/probe.h>
#include "bench/crew.h"
#include "bench/exchange.h"
#include "bench/plan.h"

/*
 * Run a probe between two ends. Device, port, memory and NUMA node of options->from and to are those of the ends.
 * Agents that are not usable any more are ended, and started afresh when they are next needed. before_run may be NULL.
 * Thread-safe for ends of separate hosts of the crew.
 */
int gtopo_pair_exchange(struct gtopo_crew *crew, const struct gtopo_plan_end ends[2], const char *const hosts[2],
                        const struct gtopo_probe_options *options, const struct gtopo_before_run *before_run,
                        struct gtopo_probe_result *result, struct gtopo_error *error);

/*
 * Add a measurement. transport is as people see it ("ofi:tcp"); fallback may be NULL; so many probes ran at once.
 */
int gtopo_pair_measure(struct gtopo_map *map, const struct gtopo_plan_end ends[2], const char *transport,
                       const char *fallback, const struct gtopo_probe_options *options,
                       const struct gtopo_probe_result *result, uint32_t concurrent, struct gtopo_error *error);

#endif
