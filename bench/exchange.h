/* SPDX-License-Identifier: Apache-2.0 */
/* One probe on two agents: the coordinator's side of the protocol, message by message. */
#ifndef GTOPO_BENCH_EXCHANGE_H
#define GTOPO_BENCH_EXCHANGE_H

#include <gputopo/probe.h>
#include "bench/protocol.h"

/* What to do once both ends are connected and before either runs; it may take its time. */
struct gtopo_before_run {
    void (*call)(void *context);
    void *context;
};

struct gtopo_exchange {
    const struct gtopo_stream *initiator;
    const struct gtopo_stream *responder; /* NULL for a transport that is alone */
    const struct gtopo_cancel *cancel;
    uint64_t end_ns; /* the run is ended then, as by cancel, keeping what it has; UINT64_MAX for never */
    int one_machine; /* both ends are on one */
    const struct gtopo_before_run *before_run; /* or NULL */
    int shared; /* both ends are on one NUMA node of one host: they share its processors */
};

/*
 * Run a probe, with options that were checked. After an error of the probe itself (any but GTOPO_EPEER,
 * GTOPO_EPROTOCOL, GTOPO_ETIMEOUT and GTOPO_ECANCELLED) the agents are ready for the next; *usable says it exactly.
 */
int gtopo_exchange_run(const struct gtopo_exchange *exchange, const struct gtopo_probe_options *options,
                       struct gtopo_probe_result *result, int *usable, struct gtopo_error *error);

#endif
