/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm-up. Samples are cut into at most 64 blocks of equally many, batches into blocks that take equally long, and each
 * block has a level: its median, or its mean for batches. Leading blocks are left out until the first one whose level
 * lies within the range of the levels of the second half; at most the first half goes. This is Conway's rule (R. W.
 * Conway, "Some tactical problems in digital simulation", Management Science 10(1), 1963) applied to block levels,
 * which a single outlier does not move, and against the second half, so that a start that goes up and down does not
 * pass as steady. On samples without a warm-up it leaves out a block (1.6 %) in about one of sixteen runs, which moves
 * nothing.
 *
 * Median of single samples (latencies). Its 95 % interval is a pair of order statistics, which supposes nothing about
 * the distribution. Up to 70 samples: exact, from the binomial distribution with p = 1/2, samples taken as independent.
 * Above: ranks n/2 -+ z/2 sqrt(n tau) (J.-Y. Le Boudec, "Performance Evaluation of Computer and Communication Systems",
 * 2010, theorem 2.1 and appendix A, where tau = 1). Neighbours in time are rarely independent, so tau widens it: the
 * variance of the median of a stationary sequence is that of independent samples times the long-run variance of
 * the indicator "sample <= median" over its plain variance (P. Heidelberger and P. A. W. Lewis, "Quantile estimation in
 * dependent sequences", Operations Research 32(1), 1984). It is estimated from 32 batch means of that indicator, and
 * z is Student's t with 31 degrees of freedom. Correlation that reaches further than n/32 samples is not seen.
 *
 * Rate from batches. Completions come in bursts, so times of single batches are strongly (and negatively) correlated
 * and their median may be far from messages over time. They are merged into about 64 blocks, and when neighbouring
 * block means are still correlated (lag-1 coefficient above 2/sqrt(blocks)) into 32, and 16: the method of batch means
 * (A. M. Law and J. S. Carson, "A sequential procedure for determining the length of a steady-state simulation",
 * Operations Research 27(5), 1979). Blocks take equally long, rather than hold equally many batches: when a process
 * that was not run for a while wakes, it finds many batches at once, and blocks of these alone would show a rate that
 * no link has. Median and exact order-statistic interval are those of the block means. When 16 blocks are still
 * correlated the rate drifts, and the interval is the range of all of them. When a few batches took most of the time,
 * so that there are fewer than 8 blocks, the rate is that of the whole, and the interval the range of single batches.
 *
 * Percentiles of single samples are those of the nearest rank: the smallest sample that at least the share q of all
 * does not exceed. They are given where the sample is large enough to reach so far: from the smallest n for which the
 * largest of n independent samples lies above the quantile with 95 % confidence, 1 - q^n >= 0.95, which is 299 for 99 %
 * and 2995 for 99.9 % (S. S. Wilks, "Determination of sample sizes for setting tolerance limits", Annals of
 * Mathematical Statistics 12(1), 1941). Samples that depend on their neighbours need more.
 */
#include "bench/statistics.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Even, so that thinning keeps the samples evenly spaced. Batches lose nothing when they are merged. */
#define SINGLES_MAX ((size_t)1 << 20)
#define BATCHES_MAX ((size_t)1 << 14)
#define CAPACITY_MIN ((size_t)1 << 10)

#define BLOCKS 64
#define BLOCKS_MIN 16
#define EXACT_MAX 70
#define INDICATOR_BATCHES 32
#define HALF_STUDENT_31 1.02 /* half the two-sided 95 % point of Student's t, 31 degrees of freedom */
#define P99_MIN 299
#define P999_MIN 2995

/* So many kept samples make a stretch, of which the extremes are known. */
#define STRETCH (SINGLES_MAX / GTOPO_SAMPLES_STRETCHES)
#define BINS_AN_OCTAVE 32

/* ---- the container ---- */

static size_t bound(const struct gtopo_samples *samples)
{
    return samples->batches ? BATCHES_MAX : SINGLES_MAX;
}

static int resize(struct gtopo_samples *samples, size_t capacity)
{
    double *values = realloc(samples->values, capacity * sizeof *values);

    if (!values)
        return GTOPO_ENOMEM;
    samples->values = values;
    samples->capacity = capacity;
    return 0;
}

int gtopo_samples_reserve(struct gtopo_samples *samples)
{
    size_t capacity = bound(samples);

    if (samples->scratch)
        return 0;
    if (samples->capacity < capacity && resize(samples, capacity))
        return GTOPO_ENOMEM;
    samples->scratch = malloc(capacity * sizeof *samples->scratch);
    if (!samples->scratch)
        return GTOPO_ENOMEM;
    /* Not zeros: malloc and zeros may become a calloc, whose pages only come into being when they are written to. */
    memset(samples->values + samples->count, 0xff, (capacity - samples->count) * sizeof *samples->values);
    memset(samples->scratch, 0xff, capacity * sizeof *samples->scratch);
    return 0;
}

/* The extremes of samples that are dropped must not be lost with them. */
static void widen(struct gtopo_samples *samples, size_t stretch, double low, double high)
{
    double *known_low = &samples->lowest[stretch], *known_high = &samples->highest[stretch];

    if (!*known_high || low < *known_low)
        *known_low = low;
    if (high > *known_high)
        *known_high = high;
}

static void merge_stretches(struct gtopo_samples *samples)
{
    size_t i, half = GTOPO_SAMPLES_STRETCHES / 2;

    for (i = 0; i < half; i++) {
        samples->lowest[i] = fmin(samples->lowest[2 * i], samples->lowest[2 * i + 1]);
        samples->highest[i] = fmax(samples->highest[2 * i], samples->highest[2 * i + 1]);
    }
    memset(samples->lowest + half, 0, half * sizeof *samples->lowest);
    memset(samples->highest + half, 0, half * sizeof *samples->highest);
}

static void halve(struct gtopo_samples *samples)
{
    size_t i;

    if (!samples->batches)
        merge_stretches(samples);
    for (i = 0; i < samples->count / 2; i++)
        samples->values[i] =
            samples->batches ? (samples->values[2 * i] + samples->values[2 * i + 1]) / 2 : samples->values[2 * i];
    samples->count /= 2;
    samples->stride *= 2;
}

int gtopo_samples_add(struct gtopo_samples *samples, double value)
{
    if (!isfinite(value) || value <= 0)
        return GTOPO_EUSAGE;
    if (!samples->stride)
        samples->stride = 1;
    if (samples->count == bound(samples))
        halve(samples);
    if (samples->count == samples->capacity &&
        resize(samples, samples->capacity ? 2 * samples->capacity : CAPACITY_MIN))
        return GTOPO_ENOMEM;
    samples->seen++;
    if (samples->batches) {
        samples->merging += value;
        if (++samples->merged < samples->stride)
            return 0;
        value = samples->merging / (double)samples->merged;
        samples->merging = 0;
        samples->merged = 0;
    } else {
        int is_kept = (samples->seen - 1) % samples->stride == 0;

        widen(samples, (samples->count - !is_kept) / STRETCH, value, value);
        if (!is_kept)
            return 0;
    }
    samples->values[samples->count++] = value;
    return 0;
}

void gtopo_samples_clear(struct gtopo_samples *samples)
{
    free(samples->values);
    free(samples->scratch);
    *samples = (struct gtopo_samples){.batches = samples->batches};
}

/* ---- order statistics ---- */

/* Hoare's FIND: puts the value of the given rank (from 0) in its place and returns it. O(n) expected. */
static double select_rank(double *values, size_t count, size_t rank)
{
    size_t low = 0, high = count - 1;

    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;

        for (;;) {
            double swap;

            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        /* now values[low .. i-1] <= pivot <= values[j+1 .. high], and i - j is 0 or 1 */
        if (rank < i)
            high = i - 1;
        else if (rank > j)
            low = j + 1;
        else
            break;
    }
    return values[rank];
}

static double select_median(double *values, size_t count)
{
    double upper = select_rank(values, count, count / 2);

    return count % 2 ? upper : upper / 2 + select_rank(values, count, count / 2 - 1) / 2;
}

static void find_range(const double *values, size_t count, double *low, double *high)
{
    size_t i;

    *low = INFINITY;
    *high = 0;
    for (i = 0; i < count; i++) {
        *low = fmin(*low, values[i]);
        *high = fmax(*high, values[i]);
    }
}

static double mean(const double *values, size_t count)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/*
 * How many of the smallest and of the largest samples can be cut off so that what is left holds the median in 95 %
 * of all cases: the largest c with P(X <= c) <= 2.5 % for X binomial with p = 1/2. count is at least 8.
 */
static size_t exact_cut(size_t count)
{
    double term = exp2(-(double)count), sum = term; /* P(X = 0) */
    size_t cut = 0;

    for (;;) {
        term *= (double)(count - cut) / (double)(cut + 1);
        sum += term; /* P(X <= cut + 1) */
        if (sum > 0.025)
            return cut;
        cut++;
    }
}

/* How much the variance of the median exceeds that of independent samples; at least 1. */
static double variance_inflation(const double *values, size_t count, double median)
{
    size_t length = count / INDICATOR_BATCHES, batch, i;
    double sum = 0, squares = 0, share, plain;

    for (batch = 0; batch < INDICATOR_BATCHES; batch++) {
        size_t below = 0;

        for (i = 0; i < length; i++)
            below += values[batch * length + i] <= median;
        share = (double)below / (double)length;
        sum += share;
        squares += share * share;
    }
    share = sum / INDICATOR_BATCHES;
    plain = share * (1 - share);
    if (plain <= 0)
        return 1;
    return fmax(1, (double)length * (squares - sum * share) / (INDICATOR_BATCHES - 1) / plain);
}

/* values are in the order of time, scratch is a copy that may be reordered. */
static void summarise_singles(const double *values, double *scratch, size_t count, struct gtopo_summary *summary)
{
    size_t cut;

    summary->median = select_median(scratch, count);
    if (count <= EXACT_MAX)
        cut = exact_cut(count);
    else {
        double tau = variance_inflation(values, count, summary->median);
        double rank = floor((double)count / 2 - HALF_STUDENT_31 * sqrt((double)count * tau));

        cut = rank < 1 ? 0 : (size_t)rank - 1;
    }
    summary->low = select_rank(scratch, count, cut);
    summary->high = select_rank(scratch, count, count - 1 - cut);
    summary->blocks = count;
    if (count >= P99_MIN)
        summary->p99 = select_rank(scratch, count, (99 * count + 99) / 100 - 1);
    if (count >= P999_MIN)
        summary->p999 = select_rank(scratch, count, (999 * count + 999) / 1000 - 1);
}

/*
 * Of all samples after the warm-up, also of those that were dropped; but in the stretch in which the warm-up ends,
 * which is a 32nd of the run at most, only of those that were kept.
 */
static void find_extremes(const struct gtopo_samples *samples, size_t warmup, struct gtopo_summary *summary)
{
    size_t i;

    find_range(samples->values + warmup, samples->count - warmup, &summary->minimum, &summary->maximum);
    for (i = (warmup + STRETCH - 1) / STRETCH; i < GTOPO_SAMPLES_STRETCHES && samples->highest[i]; i++) {
        summary->minimum = fmin(summary->minimum, samples->lowest[i]);
        summary->maximum = fmax(summary->maximum, samples->highest[i]);
    }
}

/* ---- rates ---- */

/* Consecutive samples. */
struct block {
    size_t end;      /* index of the sample after the last one */
    double level_ns; /* their median, or their mean for batches */
};

static double lag1_correlation(const double *values, size_t count)
{
    double centre = mean(values, count), together = 0, squares = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        squares += (values[i] - centre) * (values[i] - centre);
        if (i)
            together += (values[i] - centre) * (values[i - 1] - centre);
    }
    return squares > 0 ? together / squares : 0;
}

static int correlated(const double *values, size_t count)
{
    return lag1_correlation(values, count) > 2 / sqrt((double)count);
}

/*
 * Cuts batches into about `parts` blocks that take equally long, as far as whole batches can: a block ends as soon as
 * it lacks less than half a mean batch, but takes half of its time at least. So there are at most twice as many.
 */
static size_t cut_by_time(const double *values, size_t count, size_t parts, struct block blocks[2 * BLOCKS])
{
    double batch_ns = mean(values, count), block_ns = 0;
    double part_ns = batch_ns * (double)count / (double)parts, length_ns = fmax(part_ns - batch_ns / 2, part_ns / 2);
    size_t cut = 0, first = 0, i;

    for (i = 0; i < count; i++) {
        block_ns += values[i];
        if (block_ns < length_ns)
            continue;
        blocks[cut++] = (struct block){i + 1, block_ns / (double)(i + 1 - first)};
        first = i + 1;
        block_ns = 0;
    }
    if (first < count) { /* what is left is too short for a block, and goes with the last one */
        size_t begin = cut > 1 ? blocks[cut - 2].end : 0;

        blocks[cut - 1] = (struct block){count, mean(values + begin, count - begin)};
    }
    return cut;
}

static void summarise_batches(const double *values, size_t count, struct gtopo_summary *summary)
{
    struct block blocks[2 * BLOCKS];
    double means[2 * BLOCKS];
    size_t parts = 2 * BLOCKS, cut_off, n, i;

    do {
        parts /= 2;
        n = cut_by_time(values, count, parts, blocks);
        for (i = 0; i < n; i++)
            means[i] = blocks[i].level_ns;
    } while (parts > BLOCKS_MIN && correlated(means, n));
    summary->blocks = n;
    if (n < GTOPO_SAMPLES_MIN) {
        summary->median = mean(values, count);
        find_range(values, count, &summary->low, &summary->high);
        return;
    }
    cut_off = correlated(means, n) ? 0 : exact_cut(n);
    summary->median = select_median(means, n);
    summary->low = select_rank(means, n, cut_off);
    summary->high = select_rank(means, n, n - 1 - cut_off);
}

/* ---- the warm-up ---- */

static size_t cut_by_count(double *scratch, size_t count, struct block blocks[BLOCKS])
{
    size_t length = (count + BLOCKS - 1) / BLOCKS, cut = count / length, i;

    for (i = 0; i < cut; i++)
        blocks[i] = (struct block){(i + 1) * length, select_median(scratch + i * length, length)};
    return cut;
}

static size_t find_warmup(const double *values, double *scratch, size_t count, int batches)
{
    struct block blocks[2 * BLOCKS];
    size_t cut = batches ? cut_by_time(values, count, BLOCKS, blocks) : cut_by_count(scratch, count, blocks), i, warmup;
    double low = INFINITY, high = 0;

    for (i = cut / 2; i < cut; i++) {
        low = fmin(low, blocks[i].level_ns);
        high = fmax(high, blocks[i].level_ns);
    }
    for (i = 0; i < cut / 2; i++)
        if (blocks[i].level_ns >= low && blocks[i].level_ns <= high)
            break;
    warmup = i ? blocks[i - 1].end : 0;
    return warmup > count - GTOPO_SAMPLES_MIN ? count - GTOPO_SAMPLES_MIN : warmup;
}

int gtopo_samples_summarise(const struct gtopo_samples *samples, struct gtopo_summary *summary,
                            struct gtopo_error *error)
{
    size_t count = samples->count, warmup;
    double *scratch;

    if (count < GTOPO_SAMPLES_MIN)
        return gtopo_fail(error, GTOPO_EUSAGE, "measure longer",
                          "%zu samples are too few to say anything: at least %d are needed", count, GTOPO_SAMPLES_MIN);
    scratch = samples->scratch ? samples->scratch : malloc(count * sizeof *scratch);
    if (!scratch)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory for %zu samples", count);
    memcpy(scratch, samples->values, count * sizeof *scratch);
    warmup = find_warmup(samples->values, scratch, count, samples->batches);
    memset(summary, 0, sizeof *summary);
    if (samples->batches)
        summarise_batches(samples->values + warmup, count - warmup, summary);
    else {
        /* afresh: the search for the warm-up has reordered the copy */
        memcpy(scratch, samples->values + warmup, (count - warmup) * sizeof *scratch);
        summarise_singles(samples->values + warmup, scratch, count - warmup, summary);
        find_extremes(samples, warmup, summary);
    }
    summary->samples = (count - warmup) * (samples->batches ? samples->stride : 1);
    summary->warmup = warmup * (samples->batches ? samples->stride : 1);
    if (scratch != samples->scratch)
        free(scratch);
    return 0;
}

/* ---- the histogram ---- */

static double edge(double bins_an_octave, double bin)
{
    return exp2(bin / bins_an_octave);
}

/* The number of the bin that holds a value; logarithm and power are rounded, so the edges have the last word. */
static double bin_of(double bins_an_octave, double value)
{
    double bin = floor(log2(value) * bins_an_octave);

    while (value < edge(bins_an_octave, bin))
        bin--;
    while (value >= edge(bins_an_octave, bin + 1))
        bin++;
    return bin;
}

static void set_edges(double bins_an_octave, double first, struct gtopo_histogram_bin *bins, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        bins[i] = (struct gtopo_histogram_bin){edge(bins_an_octave, first + (double)i),
                                               edge(bins_an_octave, first + (double)i + 1), 0};
}

uint32_t gtopo_samples_histogram(const struct gtopo_samples *samples, const struct gtopo_summary *summary,
                                 struct gtopo_histogram_bin bins[GTOPO_HISTOGRAM_MAX])
{
    double bins_an_octave = BINS_AN_OCTAVE, low, high, first, last;
    size_t i, start = (size_t)summary->warmup, count;

    if (samples->batches || start >= samples->count)
        return 0;
    find_range(samples->values + start, samples->count - start, &low, &high);
    while (bin_of(bins_an_octave, high) - bin_of(bins_an_octave, low) >= GTOPO_HISTOGRAM_MAX)
        bins_an_octave /= 2;
    first = bin_of(bins_an_octave, low);
    last = bin_of(bins_an_octave, high);
    count = (size_t)(last - first) + 1;
    set_edges(bins_an_octave, first, bins, count);
    for (i = start; i < samples->count; i++) {
        double value = samples->values[i], bin = floor(log2(value) * bins_an_octave) - first;
        size_t place = bin <= 0 ? 0 : bin >= (double)count ? count - 1 : (size_t)bin;

        while (value < bins[place].low)
            place--;
        while (value >= bins[place].high)
            place++;
        bins[place].count++;
    }
    return (uint32_t)count;
}
