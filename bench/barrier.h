/* SPDX-License-Identifier: Apache-2.0 */
/* A line that threads wait at until all are there, and which those who cannot come leave: nobody waits for them. */
#ifndef GTOPO_BENCH_BARRIER_H
#define GTOPO_BENCH_BARRIER_H

#include <pthread.h>
#include <stdint.h>

struct gtopo_barrier {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t expected; /* how many are still to come or have come */
    uint32_t arrived;  /* once it has opened: how many started together */
};

void gtopo_barrier_init(struct gtopo_barrier *barrier, uint32_t expected);
/* Each of those who are expected calls one of these, once. */
void gtopo_barrier_wait(struct gtopo_barrier *barrier);
void gtopo_barrier_leave(struct gtopo_barrier *barrier);
/* When none of them is at it any more. */
void gtopo_barrier_clear(struct gtopo_barrier *barrier);

#endif
