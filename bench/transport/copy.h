/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of transport "copy" share: an endpoint, its streams, its gate. */
#ifndef GTOPO_BENCH_TRANSPORT_COPY_H
#define GTOPO_BENCH_TRANSPORT_COPY_H

#include <pthread.h>
#include <stdatomic.h>
#include "bench/memory/gpu.h"
#include "bench/transport.h"

#define GTOPO_COPY_STREAMS_MAX 128 /* 64 each way */

/*
 * A word in host memory on which the GPU waits before the first copy, so that a batch is queued as a whole before it
 * begins, and its time is the copies' and not the processor's.
 *
 * Every call of the driver may block when its queues are full, and behind a closed gate it would block for ever. So a
 * thread watches: a gate that stays closed too long is opened by it, and not used any more.
 */
struct gtopo_copy_gate {
    uint32_t *word;   /* NULL: no gate */
    uint64_t address; /* the GPU's, of the same word */
    uint64_t patience_ns;
    atomic_uint_fast64_t closed_ns; /* since when it is closed; 0: open */
    pthread_t watcher;
    pthread_mutex_t lock; /* of ending */
    pthread_cond_t ended;
    int ending;
};

/* A gate that cannot be made is not an error: then word is NULL, and `reason` says why. */
void gtopo_copy_gate_open(struct gtopo_copy_gate *gate, const struct gtopo_region *gpu, uint64_t patience_ns,
                          char *reason, size_t size);
/* Within the GPU's context: let a stream wait for it. A result of the driver. */
int gtopo_copy_gate_shut(struct gtopo_copy_gate *gate, const struct gtopo_cuda *cuda, struct gtopo_cu_stream *stream);
/* 1: as it should be; 0: the watcher was there first. */
int gtopo_copy_gate_release(struct gtopo_copy_gate *gate);
void gtopo_copy_gate_close(struct gtopo_copy_gate *gate, const struct gtopo_region *gpu);

/* A stream copies the same message again and again, from one place to its like at the other end. */
struct gtopo_copy_stream {
    const struct gtopo_gpu *gpu; /* whose copy engine */
    int from;                    /* index of the end that it copies from; the other is where to */
    size_t offset;
    uint64_t seed;
    struct gtopo_cu_stream *stream;
    struct gtopo_cu_event *done;
};

struct gtopo_copy {
    const struct gtopo_probe_options *probe;
    struct gtopo_region *ends[2];
    const struct gtopo_gpu *gpus[2]; /* NULL where it is host memory */
    const struct gtopo_region *gpu;  /* the region of the first stream's GPU */
    const struct gtopo_cuda *cuda;
    uint64_t seed, deadline_ns;
    int pinned;       /* the host's memory is */
    int is_peer;      /* two GPUs … */
    int peer[2];      /* … whose access we have switched on */
    int through_host; /* … or cannot be */
    int finished;     /* a run ended well: there is something to verify */
    uint32_t count;   /* of streams */
    struct gtopo_copy_stream streams[GTOPO_COPY_STREAMS_MAX];
    struct gtopo_cu_event *start, *end; /* of a batch, on the first stream */
    struct gtopo_copy_gate gate;
    char ungated[128]; /* why there is no gate, or "" */
};

/* Switch on that the GPU of index `from` reaches the other's memory, if it can; *on is to be handed back. */
int gtopo_copy_peer_on(struct gtopo_copy *c, int from, int *on, struct gtopo_error *error);
void gtopo_copy_peer_off(struct gtopo_copy *c, int from);

/* Fill the source of a stream, and its destination with what differs from it. */
int gtopo_copy_prepare(struct gtopo_copy *c, const struct gtopo_copy_stream *stream, struct gtopo_error *error);
/* Is what a stream copied there? Errors: GTOPO_EDATA. */
int gtopo_copy_check(struct gtopo_copy *c, const struct gtopo_copy_stream *stream, struct gtopo_error *error);

/* The initiator's loop. */
int gtopo_copy_run(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
/* Wait until nothing of ours is under way. */
int gtopo_copy_drain(struct gtopo_copy *c, struct gtopo_error *error);

extern const struct gtopo_transport gtopo_transport_copy;

#endif
