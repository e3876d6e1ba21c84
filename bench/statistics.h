/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Median and its 95 % interval from samples, with the warm-up found and left out.
 */
#ifndef GTOPO_BENCH_STATISTICS_H
#define GTOPO_BENCH_STATISTICS_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

struct gtopo_summary {
    uint64_t samples; /* those counted */
    uint64_t warmup;  /* those left out before them */
    uint64_t blocks;  /* values that the median and its interval stand on: block means for batches, else samples */
    double median, low, high;
};

/*
 * Samples as they arrive; all zero is empty. Grows up to a bound. Beyond it, single samples (latencies) keep every
 * second one (and then every fourth …); batches, whose sum is the length of the run, are merged by twos instead.
 */
struct gtopo_samples {
    int batches; /* 1: consecutive times of batches, for a rate; set before the first sample */
    double *values;
    size_t count, capacity;
    uint64_t seen;   /* all that were offered */
    uint64_t stride; /* one of so many is kept, or so many are merged in one; 0 before the first */
    double merging;  /* sum of the merged value that is not complete yet, of so many: */
    uint64_t merged;
};

/* 0, GTOPO_ENOMEM, or GTOPO_EUSAGE for a value that is not finite and positive. */
int gtopo_samples_add(struct gtopo_samples *samples, double value);
void gtopo_samples_clear(struct gtopo_samples *samples); /* keeps `batches` */

/*
 * How far the rule for the warm-up, the median and the interval can be trusted, and where they are from, stands in
 * statistics.c. O(n) expected. Errors: GTOPO_EUSAGE with fewer than GTOPO_SAMPLES_MIN values, GTOPO_ENOMEM.
 */
#define GTOPO_SAMPLES_MIN 8
int gtopo_samples_summarise(const struct gtopo_samples *samples, struct gtopo_summary *summary,
                            struct gtopo_error *error);

#endif
