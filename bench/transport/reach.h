/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a device comes to reach a GPU's memory: which ways are tried, in which order, and in words why one failed. What
 * is known and what is done comes from the caller, so that every cause can be tested without the hardware that has it.
 */
#ifndef GTOPO_BENCH_TRANSPORT_REACH_H
#define GTOPO_BENCH_TRANSPORT_REACH_H

#include "bench/transport.h"

struct gtopo_reach_facts {
    const char *device; /* that is to reach it: "mlx5_0" */
    const char *kernel; /* its release: "5.10.0-8-amd64" */
    int on_pcie;        /* the device is */
    int has_module;     /* a peer-memory module is loaded */
    size_t size_B;
    struct gtopo_memory_facts gpu;
};

struct gtopo_reach_steps {
    /* Export the memory as dma-buf, mapped through PCIe or by default, and register it. 0; a status, below 0, when it
     * was not exported, with the error filled; errno, above 0, when it was not registered. */
    int (*register_dmabuf)(void *context, int pcie, struct gtopo_error *error);
    int (*register_peer)(void *context); /* 0 or errno */
    void *context;
};

/*
 * Take the first way that works: dma-buf (through PCIe on a coherent GPU, then with the default mapping), then peer
 * memory; or only the one that is wanted ("dma-buf", "peer-memory", else none). 1 when the memory is registered. Fills
 * way and mapping, why no way before it was taken, and the next step, which is that of the most fundamental cause.
 */
int gtopo_reach_find(const struct gtopo_reach_facts *facts, const char *wanted, const struct gtopo_reach_steps *steps,
                     struct gtopo_reach *reach);

/* A device did not give what was asked for, and `cause` is its errno: says so when the limit of locked memory, of which
 * needed_B were needed, is behind it. */
int gtopo_reach_fail_resource(const char *device, const char *what, size_t needed_B, int cause,
                              struct gtopo_error *error);

/* When a GPU sees what a device wrote into its memory, and whether a flush for it is part of the latency; constant. */
const char *gtopo_reach_visibility(const struct gtopo_memory_facts *gpu, const struct gtopo_reach *reach, int flush);

#endif
