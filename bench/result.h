/* SPDX-License-Identifier: Apache-2.0 */
/* What the ends of a probe tell the coordinator: as messages, and put together as one result. */
#ifndef GTOPO_BENCH_RESULT_H
#define GTOPO_BENCH_RESULT_H

#include <jansson.h>
#include <gputopo/probe.h>
#include "bench/transport.h"

/* What each end says when it stops. */
struct gtopo_report {
    struct gtopo_reach reach;
    char description[256];
    struct gtopo_probe_used used;
    uint32_t counter_count;
    struct gtopo_port_counter counters[GTOPO_COUNTERS_MAX];
    uint64_t posted_B;        /* of the messages that it posted; 0 if not known */
    double median, low, high; /* two-way: of what the responder drove; else 0 */
};

/* As members of a message; NULL when memory is short. */
json_t *gtopo_result_json(const struct gtopo_probe_result *result);
json_t *gtopo_report_json(const struct gtopo_report *report);
/* Every number and text is checked. Errors: GTOPO_EPROTOCOL. */
int gtopo_result_read(const json_t *message, struct gtopo_probe_result *result, struct gtopo_error *error);
int gtopo_report_read(const json_t *message, struct gtopo_report *report, struct gtopo_error *error);

/* Is the interval as narrow as was asked for? */
static inline int gtopo_result_is_precise(const struct gtopo_probe_options *options, double low, double median,
                                          double high)
{
    return high - low <= 2 * options->precision * median;
}

/* Complete the initiator's result with what both ends reported: directions, sides, findings. peers: who they are;
 * one_machine: both are on one. */
void gtopo_result_join(const struct gtopo_probe_options *options, const struct gtopo_report reports[2],
                       const char *const peers[2], int one_machine, struct gtopo_probe_result *result);

#endif
