/* SPDX-License-Identifier: Apache-2.0 */
/* Time: the monotonic clock, in nanoseconds. Never the cycle counter times a guessed frequency. */
#ifndef GTOPO_BENCH_CLOCK_H
#define GTOPO_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t gtopo_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
