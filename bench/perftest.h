/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures that perftest 6.x would print for the same times, so that users can compare. They are not ours: what is
 * odd in them is kept, and said in perftest.c.
 */
#ifndef GTOPO_BENCH_PERFTEST_H
#define GTOPO_BENCH_PERFTEST_H

#include <stdint.h>
#include <gputopo/error.h>
#include <gputopo/probe.h>
#include "bench/transport.h"

/*
 * ib_write_lat, ib_read_lat, ib_send_lat and ib_atomic_lat, from the times at which the messages were posted. All
 * figures but the iterations are 0 for fewer than 4 messages. O(n log n). Errors: GTOPO_ENOMEM.
 */
int gtopo_perftest_latency(const struct gtopo_trace *trace, uint32_t operation, struct gtopo_perftest_figures *figures,
                           struct gtopo_error *error);

/*
 * ib_write_bw and the like, of one direction. completed_ns[i] is when the i-th completed message was seen complete: all
 * messages that one completion stands for have its time, and neither of the arrays goes back in time. The iterations
 * are those of all queue pairs together, as perftest prints them. The figures are 0 when nothing completed, or more
 * than was posted. O(n) for a few passes over the trace.
 */
void gtopo_perftest_bandwidth(const struct gtopo_trace *trace, uint64_t message_B, uint32_t queue_pairs,
                              struct gtopo_perftest_figures *figures);

#endif
