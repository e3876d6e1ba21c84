/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Median and its 95 % interval, percentiles and histogram from samples, with the warm-up found and left out.
 */
#ifndef GTOPO_BENCH_STATISTICS_H
#define GTOPO_BENCH_STATISTICS_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>
#include <gputopo/probe.h>

struct gtopo_summary {
    uint64_t samples; /* those counted */
    uint64_t warmup;  /* those left out before them */
    uint64_t blocks;  /* values that the median and its interval stand on: block means for batches, else samples */
    double median, low, high;
    /* Of single samples only; else 0. The extremes also look at samples that were seen and not kept. */
    double minimum, maximum;
    double p99, p999; /* 0 where fewer than 299, 2995 samples were counted: they cannot tell */
};

#define GTOPO_SAMPLES_STRETCHES 64

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
    double *scratch; /* of gtopo_samples_reserve(), as large as values may become; else NULL */
    /* Extremes of all single samples that were seen, by stretches of equally many kept ones; 0 before the first. */
    double lowest[GTOPO_SAMPLES_STRETCHES], highest[GTOPO_SAMPLES_STRETCHES];
};

/*
 * Take all memory that adding and summarising may ever need, and write to it, so that neither allocates or waits for
 * the kernel while it measures: 16 MiB, for batches 256 KiB. To be called after `batches` is set, at any time.
 * GTOPO_ENOMEM leaves the samples as usable as they were.
 */
int gtopo_samples_reserve(struct gtopo_samples *samples);

/* 0, GTOPO_ENOMEM, or GTOPO_EUSAGE for a value that is not finite and positive. */
int gtopo_samples_add(struct gtopo_samples *samples, double value);
void gtopo_samples_clear(struct gtopo_samples *samples); /* keeps `batches`, and no reserve */

/*
 * How far the rule for the warm-up, the median and the interval can be trusted, and where they are from, stands in
 * statistics.c. O(n) expected. Errors: GTOPO_EUSAGE with fewer than GTOPO_SAMPLES_MIN values, GTOPO_ENOMEM.
 */
#define GTOPO_SAMPLES_MIN 8
int gtopo_samples_summarise(const struct gtopo_samples *samples, struct gtopo_summary *summary,
                            struct gtopo_error *error);

/*
 * How the single samples that a summary counted are spread. `summary` is of these samples as they are now. The bins are
 * adjacent, `first.low` to `last.high`, of equal width on a logarithmic scale: 32 an octave, edges at 2^(k/32), or as
 * many halvings fewer as make them fit; the edges do not depend on the samples, so that histograms can be added. The
 * first and the last are not empty, and the counts sum to summary->samples. Returns the number of bins, 0 for batches.
 * O(n), and allocates nothing.
 */
uint32_t gtopo_samples_histogram(const struct gtopo_samples *samples, const struct gtopo_summary *summary,
                                 struct gtopo_histogram_bin bins[GTOPO_HISTOGRAM_MAX]);

#endif
