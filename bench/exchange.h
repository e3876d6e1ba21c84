/* SPDX-License-Identifier: Apache-2.0 */
/* One probe on two agents: the coordinator's side of the protocol, message by message. */
#ifndef GTOPO_BENCH_EXCHANGE_H
#define GTOPO_BENCH_EXCHANGE_H

#include "bench/launch.h"
#include "bench/probe.h"

struct gtopo_exchange {
    const struct gtopo_agent_process *initiator, *responder;
    const struct gtopo_cancel *cancel;
    uint64_t end_ns; /* the run is ended then, as by cancel, keeping what it has; UINT64_MAX for never */
};

/* What came of it. */
struct gtopo_outcome {
    struct gtopo_summary summary; /* in the metric's unit */
    char operation[32], method[256], stopped_by[32], description[256];
    int verified;
};

/*
 * Run a probe. specs[0] is the initiator's. After an error of the probe itself (any but GTOPO_EPEER, GTOPO_EPROTOCOL,
 * GTOPO_ETIMEOUT and GTOPO_ECANCELLED) the agents are ready for the next; after those they are to be ended.
 */
int gtopo_exchange_run(const struct gtopo_exchange *exchange, const struct gtopo_probe_spec specs[2],
                       struct gtopo_outcome *outcome, int *agents_usable, struct gtopo_error *error);

#endif
