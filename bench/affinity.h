/* SPDX-License-Identifier: Apache-2.0 */
/* What measured affinity says of a host: rules over the loopback measurements of a map. */
#ifndef GTOPO_BENCH_AFFINITY_H
#define GTOPO_BENCH_AFFINITY_H

#include <gputopo/map.h>

/*
 * Add findings to a sealed map, from its measurements of this index on: "affinity-mismatch" for a port through which a
 * memory farther away was faster than the nearest, "rails-share" for a port that is slower at once with the others than
 * alone. Errors: GTOPO_ENOMEM.
 */
int gtopo_affinity_judge(struct gtopo_map *map, uint32_t first_measurement, struct gtopo_error *error);

#endif
