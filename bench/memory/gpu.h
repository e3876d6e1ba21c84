/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind a region of GPU memory, for what drives the GPU's copy engines. */
#ifndef GTOPO_BENCH_MEMORY_GPU_H
#define GTOPO_BENCH_MEMORY_GPU_H

#include "bench/memory.h"
#include "bench/memory/cuda.h"

struct gtopo_gpu_lane {
    struct gtopo_cu_stream *stream;
    struct gtopo_cu_event *event; /* after the last copy */
};

/* region->state of an allocated region. */
struct gtopo_gpu {
    const struct gtopo_cuda *cuda;
    char which[32];
    int device;
    struct gtopo_cu_context *context; /* the device's primary one, which the program's own CUDA code uses too */
    uint64_t base;                    /* what was allocated; the region lies in it */
    size_t mapped_B;                  /* from region->data on, in whole pages */
    int can_flush;                    /* see flush() */
    struct gtopo_cu_stream *stream;   /* of store and load */
    struct gtopo_gpu_lane lanes[GTOPO_LANES_MAX];
};

/* The GPU of a region; NULL for host memory. */
const struct gtopo_gpu *gtopo_gpu_of(const struct gtopo_region *region);

/*
 * Between these two calls the calling thread has the GPU's context; after them the one that it had before. They may be
 * nested. Errors: GTOPO_EDEVICE.
 */
int gtopo_gpu_enter(const struct gtopo_gpu *gpu, struct gtopo_error *error);
void gtopo_gpu_leave(const struct gtopo_gpu *gpu);

/*
 * Wait, within the GPU's context, until a stream has done all it was given. Errors: GTOPO_EDEVICE, GTOPO_ETIMEOUT when
 * that takes longer than timeout_ns.
 */
int gtopo_gpu_finish(const struct gtopo_gpu *gpu, struct gtopo_cu_stream *stream, uint64_t timeout_ns,
                     struct gtopo_error *error);

#endif
