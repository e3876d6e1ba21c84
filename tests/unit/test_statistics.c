/* SPDX-License-Identifier: Apache-2.0 */
/* Samples, their warm-up, median, interval, percentiles and histogram. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "bench/statistics.h"

/* splitmix64 (Steele, Lea, Flood 2014): the same numbers on every machine. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* In (0, 1). */
static double uniform(uint64_t *state)
{
    return ((double)(next(state) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    return sqrt(-2 * log(uniform(state))) * cos(2 * 3.14159265358979323846 * uniform(state));
}

static void add(struct gtopo_samples *samples, double value)
{
    assert_int_equal(gtopo_samples_add(samples, value), 0);
}

static void test_refuses_what_is_no_time(void **state)
{
    struct gtopo_samples samples = {0};
    struct gtopo_summary summary;
    struct gtopo_error error = {0};
    int i;

    (void)state;
    assert_int_equal(gtopo_samples_add(&samples, NAN), GTOPO_EUSAGE);
    assert_int_equal(gtopo_samples_add(&samples, INFINITY), GTOPO_EUSAGE);
    assert_int_equal(gtopo_samples_add(&samples, 0), GTOPO_EUSAGE);
    assert_int_equal(gtopo_samples_add(&samples, -1), GTOPO_EUSAGE);
    assert_int_equal(samples.seen, 0);
    for (i = 0; i < GTOPO_SAMPLES_MIN - 1; i++)
        add(&samples, 1);
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, &error), GTOPO_EUSAGE);
    assert_int_equal(error.code, GTOPO_EUSAGE);
    add(&samples, 1);
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
    gtopo_samples_clear(&samples);
    assert_null(samples.values);
}

/* Table A.1 of Le Boudec (2010): n = 8: 1, 8; n = 10: 2, 9; n = 20: 6, 15; n = 30: 10, 21; n = 70: 27, 44. */
static void test_exact_ranks(void **state)
{
    static const struct {
        int count, low, high;
    } table[] = {{8, 1, 8}, {10, 2, 9}, {20, 6, 15}, {30, 10, 21}, {70, 27, 44}};
    size_t row;

    (void)state;
    for (row = 0; row < sizeof table / sizeof *table; row++) {
        struct gtopo_samples samples = {0};
        struct gtopo_summary summary;
        int i, count = table[row].count;

        for (i = 0; i < count; i++) /* from the middle outwards, so that nothing is taken for a warm-up */
            add(&samples, i % 2 ? count / 2 - i / 2 : count / 2 + i / 2 + 1);
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        assert_int_equal(summary.warmup, 0);
        assert_int_equal(summary.samples, count);
        assert_true(summary.median == (count + 1) / 2.0);
        assert_true(summary.low == table[row].low);
        assert_true(summary.high == table[row].high);
        gtopo_samples_clear(&samples);
    }
}

static void test_equal_values(void **state)
{
    int batches;

    (void)state;
    for (batches = 0; batches < 2; batches++) {
        struct gtopo_samples samples = {.batches = batches};
        struct gtopo_summary summary;
        int i;

        for (i = 0; i < 1000; i++)
            add(&samples, 7);
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        assert_true(summary.median == 7 && summary.low == 7 && summary.high == 7);
        assert_int_equal(summary.samples, 1000);
        assert_int_equal(summary.warmup, 0);
        gtopo_samples_clear(&samples);
    }
}

static void test_warmup_is_left_out(void **state)
{
    int batches;

    (void)state;
    for (batches = 0; batches < 2; batches++) {
        struct gtopo_samples samples = {.batches = batches};
        struct gtopo_summary summary;
        uint64_t random = 1;
        int i;

        for (i = 0; i < 10000; i++) /* slow, then fast, then steady */
            add(&samples, (i < 500 ? 300 : i < 1000 ? 50 : 100) * (0.9 + 0.2 * uniform(&random)));
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        assert_in_range(summary.warmup, 1000, 1400);
        assert_int_equal(summary.warmup + summary.samples, 10000);
        assert_true(summary.median > 99.5 && summary.median < 100.5);
        gtopo_samples_clear(&samples);
    }
}

static void test_no_more_than_half_is_warmup(void **state)
{
    struct gtopo_samples samples = {0};
    struct gtopo_summary summary;
    int i;

    (void)state;
    for (i = 0; i < 9000; i++) /* never steady */
        add(&samples, 10000 - i);
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
    assert_in_range(summary.warmup, 4300, 4500);
    assert_true(summary.low <= summary.median && summary.median <= summary.high);
    gtopo_samples_clear(&samples);
}

/* Single samples that are rare and far away, as when the kernel takes the processor away, move nothing. */
static void test_outliers(void **state)
{
    struct gtopo_samples samples = {0};
    struct gtopo_summary summary;
    uint64_t random = 2;
    int i;

    (void)state;
    for (i = 0; i < 20000; i++)
        add(&samples, i % 997 == 500 ? 1e7 : 1000 + uniform(&random));
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
    assert_true(summary.low > 1000 && summary.high < 1001);
    assert_in_range(summary.warmup, 0, 1000);
    gtopo_samples_clear(&samples);
}

/* Completions that come in bursts: three batches at once, then a long wait. The rate is that of the sum. */
static void test_bursts_do_not_hide_the_rate(void **state)
{
    struct gtopo_samples samples = {.batches = 1};
    struct gtopo_summary summary;
    uint64_t random = 3;
    int i;

    (void)state;
    for (i = 0; i < 30000; i++)
        add(&samples, i % 4 ? 1 : 97 + 2 * uniform(&random) - 1);
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
    assert_true(fabs(summary.median - 25) < 0.25);
    assert_true(summary.low <= summary.median && summary.median <= summary.high);
    assert_in_range(summary.blocks, 16, 64);
    gtopo_samples_clear(&samples);
}

/* A process that was not run for a while finds many batches at once. Their times are no rate of any link. */
static void test_waking_up_is_no_rate(void **state)
{
    struct gtopo_samples samples = {.batches = 1};
    struct gtopo_summary summary;
    int round, i;

    (void)state;
    for (round = 0; round < 4; round++) { /* of 200 batches 100 came in 100, after all the time that 200 take */
        add(&samples, 10000);
        for (i = 0; i < 99; i++)
            add(&samples, 1);
        for (i = 0; i < 100; i++)
            add(&samples, 100);
    }
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
    assert_true(summary.median >= 99 && summary.median <= 102);
    assert_true(summary.low > 50);
    gtopo_samples_clear(&samples);
}

/* One wait that took most of the time: what is left does not tell the rate, and must not look as if it did. */
static void test_one_wait_is_no_certainty(void **state)
{
    (void)state;
    for (int place = 0; place < 20; place++) {
        struct gtopo_samples samples = {.batches = 1};
        struct gtopo_summary summary;

        for (int i = 0; i < 20; i++)
            add(&samples, i == place ? 10000 : 1);
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        assert_true(summary.low <= 1 && summary.high >= 10000);
        assert_true(summary.low <= summary.median && summary.median <= summary.high && summary.median > 400);
        gtopo_samples_clear(&samples);
    }
}

static void test_bound(void **state)
{
    struct gtopo_samples singles = {0}, batches = {.batches = 1};
    struct gtopo_summary summary;
    uint64_t random = 4;
    double sum = 0;
    int i;

    (void)state;
    for (i = 0; i < 3000000; i++) {
        double value = 1 + uniform(&random);

        sum += value;
        add(&singles, value);
        add(&batches, value);
    }
    assert_int_equal(singles.seen, 3000000);
    assert_int_equal(singles.stride, 4);
    assert_int_equal(singles.count, 750000);
    assert_true(singles.capacity <= (size_t)1 << 20);
    assert_true(batches.capacity <= (size_t)1 << 14);
    assert_int_equal(gtopo_samples_summarise(&singles, &summary, NULL), 0);
    assert_true(summary.low < 1.5 && 1.5 < summary.high && summary.high - summary.low < 0.01);
    assert_int_equal(gtopo_samples_summarise(&batches, &summary, NULL), 0);
    assert_true(fabs(summary.median - sum / i) < 0.001);
    assert_in_range(summary.samples + summary.warmup, 2990000, 3000000);
    gtopo_samples_clear(&singles);
    gtopo_samples_clear(&batches);
}

/*
 * Does the interval hold the truth as often as it says? 400 runs; the share that does has a standard deviation of 1.1
 * points at 95 %. `carry` is the part of a sample that comes from the one before (0: independent).
 */
static double coverage(int batches, int count, double carry, uint64_t random)
{
    int run, held = 0;

    for (run = 0; run < 400; run++) {
        struct gtopo_samples samples = {.batches = batches};
        struct gtopo_summary summary;
        double x = normal(&random);
        int i;

        for (i = 0; i < count; i++) {
            x = carry * x + sqrt(1 - carry * carry) * normal(&random);
            add(&samples, 100 + 5 * x); /* median and mean are 100 */
        }
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        assert_true(summary.low <= summary.median && summary.median <= summary.high);
        held += summary.low <= 100 && 100 <= summary.high;
        gtopo_samples_clear(&samples);
    }
    return held / 400.0;
}

static void test_coverage(void **state)
{
    (void)state;
    assert_true(coverage(0, 30, 0, 11) > 0.92);
    assert_true(coverage(0, 2000, 0, 12) > 0.92);
    assert_true(coverage(0, 5000, 0.8, 13) > 0.90);
    assert_true(coverage(0, 20000, 0.95, 14) > 0.90);
    assert_true(coverage(1, 64, 0, 15) > 0.92);
    assert_true(coverage(1, 5000, 0.8, 16) > 0.90);
    assert_true(coverage(1, 20000, 0.95, 17) > 0.90);
}

/* ---- reserved memory ---- */

static void assert_resident(void *memory, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), start = ((size_t)memory + page - 1) / page * page;
    size_t pages = ((size_t)memory + size - start) / page;
    unsigned char *resident = malloc(pages);

    assert_non_null(resident);
    assert_int_equal(mincore((void *)start, pages * page, resident), 0);
    for (size_t i = 0; i < pages; i++)
        assert_true(resident[i] & 1);
    free(resident);
}

static void test_reserve(void **state)
{
    int batches;

    (void)state;
    for (batches = 0; batches < 2; batches++) {
        struct gtopo_samples plain = {.batches = batches}, reserved = {.batches = batches};
        struct gtopo_summary expected, summary;
        size_t bound = (size_t)1 << (batches ? 14 : 20);
        double *values, *scratch;
        uint64_t random = 5;
        int i;

        for (i = 0; i < 5000; i++) { /* what was there before stays */
            double value = 1 + uniform(&random);

            add(&plain, value);
            add(&reserved, value);
        }
        assert_int_equal(gtopo_samples_reserve(&reserved), 0);
        assert_int_equal(reserved.capacity, bound);
        values = reserved.values;
        scratch = reserved.scratch;
        assert_resident(values, bound * sizeof *values);
        assert_resident(scratch, bound * sizeof *scratch);
        assert_int_equal(gtopo_samples_reserve(&reserved), 0);
        for (; i < 1200000; i++) {
            double value = 1 + uniform(&random);

            add(&plain, value);
            add(&reserved, value);
            if (i % 300000)
                continue;
            assert_int_equal(gtopo_samples_summarise(&plain, &expected, NULL), 0);
            assert_int_equal(gtopo_samples_summarise(&reserved, &summary, NULL), 0);
            assert_memory_equal(&summary, &expected, sizeof summary);
        }
        assert_ptr_equal(reserved.values, values);
        assert_ptr_equal(reserved.scratch, scratch);
        assert_null(plain.scratch);
        gtopo_samples_clear(&plain);
        gtopo_samples_clear(&reserved);
        assert_null(reserved.scratch);
        assert_int_equal(reserved.batches, batches);
    }
}

/* ---- percentiles and extremes ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest of sorted values that at least so many in a thousand do not exceed. */
static double naive_quantile(const double *sorted, size_t count, size_t thousandths)
{
    size_t i = 0;

    while ((i + 1) * 1000 < thousandths * count)
        i++;
    return sorted[i];
}

static void test_percentiles(void **state)
{
    static const int counts[] = {8, 298, 299, 300, 301, 1000, 2994, 2995, 2996, 3001, 50000};
    uint64_t random = 6;
    size_t row;

    (void)state;
    for (row = 0; row < sizeof counts / sizeof *counts; row++) {
        struct gtopo_samples samples = {0};
        struct gtopo_summary summary;
        size_t counted;
        double *sorted;
        int i;

        for (i = 0; i < counts[row]; i++) /* two values for few, so that none is a warm-up; else any */
            add(&samples, counts[row] < 10000 ? 1000 + i % 2 : exp(normal(&random)));
        for (i = 0; i < counts[row]; i += 50)
            samples.values[i] += 1000 + i;
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        if (counts[row] < 10000)
            assert_int_equal(summary.warmup, 0);
        counted = (size_t)summary.samples;
        sorted = malloc(counted * sizeof *sorted);
        assert_non_null(sorted);
        memcpy(sorted, samples.values + summary.warmup, counted * sizeof *sorted);
        qsort(sorted, counted, sizeof *sorted, compare);
        assert_true(summary.minimum <= sorted[0] && summary.maximum == sorted[counted - 1]);
        /* With 95 % confidence the largest lies above the quantile: that is where they begin. */
        assert_true(summary.p99 == (1 - pow(0.99, (double)counted) >= 0.95 ? naive_quantile(sorted, counted, 990) : 0));
        assert_true(summary.p999 ==
                    (1 - pow(0.999, (double)counted) >= 0.95 ? naive_quantile(sorted, counted, 999) : 0));
        free(sorted);
        gtopo_samples_clear(&samples);
    }
}

/* Extremes of samples that were dropped are not lost; those of the warm-up do not count. */
static void test_extremes(void **state)
{
    int long_run;

    (void)state;
    for (long_run = 0; long_run < 2; long_run++) {
        int count = long_run ? 2200000 : 10000, i; /* of the long run one in four is kept */
        int warmup = count / 5 * 2;
        struct gtopo_samples samples = {0};
        struct gtopo_summary summary;
        uint64_t random = 7;

        for (i = 0; i < count; i++) {
            double value = (i < warmup ? 3000 : 1000) + 10 * uniform(&random);

            if (i == 1 || i == warmup - 30001) /* the one far behind the beginning of the long run, too */
                value = 1e9;
            if (i == 3)
                value = 1;
            if (i == warmup + 120001) /* while all were kept */
                value = 55;
            if (i == count / 2 + 1)
                value = 777777;
            add(&samples, value);
        }
        assert_int_equal(samples.stride, long_run ? 4 : 1);
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        assert_true(summary.warmup * samples.stride >= (uint64_t)warmup);
        assert_true(summary.maximum == 777777);
        assert_true(long_run ? summary.minimum == 55 : summary.minimum >= 1000);
        gtopo_samples_clear(&samples);
    }
}

static void test_batches_have_no_percentiles(void **state)
{
    struct gtopo_histogram_bin bins[GTOPO_HISTOGRAM_MAX];
    struct gtopo_samples samples = {.batches = 1};
    struct gtopo_summary summary;
    int i;

    (void)state;
    for (i = 0; i < 5000; i++)
        add(&samples, 1 + i % 7);
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
    assert_true(summary.p99 == 0 && summary.p999 == 0 && summary.minimum == 0 && summary.maximum == 0);
    assert_int_equal(gtopo_samples_histogram(&samples, &summary, bins), 0);
    gtopo_samples_clear(&samples);
}

/* ---- histogram ---- */

static void check_histogram(const struct gtopo_samples *samples, const struct gtopo_summary *summary,
                            double bins_an_octave)
{
    struct gtopo_histogram_bin bins[GTOPO_HISTOGRAM_MAX];
    uint32_t count = gtopo_samples_histogram(samples, summary, bins), bin;
    uint64_t sum = 0;

    assert_in_range(count, 1, GTOPO_HISTOGRAM_MAX);
    assert_true(bins[0].count && bins[count - 1].count);
    for (bin = 0; bin < count; bin++) {
        uint64_t held = 0;
        size_t i;

        for (i = (size_t)summary->warmup; i < samples->count; i++)
            held += bins[bin].low <= samples->values[i] && samples->values[i] < bins[bin].high;
        assert_int_equal(held, bins[bin].count);
        sum += held;
        if (bin)
            assert_true(bins[bin].low == bins[bin - 1].high);
        assert_true(fabs(log2(bins[bin].high / bins[bin].low) * bins_an_octave - 1) < 1e-9);
        assert_true(fabs(remainder(log2(bins[bin].low) * bins_an_octave, 1)) < 1e-9);
    }
    assert_int_equal(sum, summary->samples);
}

static void test_histogram(void **state)
{
    static const struct {
        double low, octaves, bins_an_octave; /* low as a power of 2 */
    } table[] = {{10, 0, 32}, {10, 1, 32}, {-1.4, 7.9, 32}, {0, 8.5, 16},       {9.8, 15.8, 16},
                 {2, 17, 8},  {0, 200, 1}, {0.5, 300, 0.5}, {-997, 1900, 0.125}};
    uint64_t random = 8;
    size_t row;

    (void)state;
    for (row = 0; row < sizeof table / sizeof *table; row++) {
        struct gtopo_samples samples = {0};
        struct gtopo_summary summary;
        int i;

        for (i = 0; i < 4000; i++) { /* the ends are there, and many values lie on an edge */
            double place = i % 3 ? floor(uniform(&random) * 33) / 32 : uniform(&random);

            if (i % 50 == 7 || i % 50 == 9)
                place = i % 50 == 9;
            add(&samples, exp2(table[row].low + table[row].octaves * place));
        }
        assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
        check_histogram(&samples, &summary, table[row].bins_an_octave);
        gtopo_samples_clear(&samples);
    }
}

/* Every edge is in the bin that it begins. */
static void test_histogram_edges(void **state)
{
    struct gtopo_samples samples = {0};
    struct gtopo_summary summary;
    int i;

    (void)state;
    for (i = 0; i < 2560; i++)
        add(&samples, i % 2 ? exp2(i / 10 / 32.0) : nextafter(exp2((i / 10 + 1) / 32.0), 0));
    summary = (struct gtopo_summary){.samples = samples.count};
    check_histogram(&samples, &summary, 32);
    gtopo_samples_clear(&samples);
}

static void test_histogram_leaves_the_warmup_out(void **state)
{
    struct gtopo_histogram_bin bins[GTOPO_HISTOGRAM_MAX];
    struct gtopo_samples samples = {0};
    struct gtopo_summary summary = {0};
    uint64_t random = 9;
    int i;

    (void)state;
    assert_int_equal(gtopo_samples_histogram(&samples, &summary, bins), 0);
    for (i = 0; i < 20000; i++)
        add(&samples, (i < 2000 ? 5000 : 1000) + uniform(&random));
    assert_int_equal(gtopo_samples_summarise(&samples, &summary, NULL), 0);
    assert_int_equal(gtopo_samples_histogram(&samples, &summary, bins), 1);
    assert_true(bins[0].low <= 1000 && bins[0].high > 1001);
    assert_int_equal(bins[0].count, summary.samples);
    gtopo_samples_clear(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses_what_is_no_time),
        cmocka_unit_test(test_exact_ranks),
        cmocka_unit_test(test_equal_values),
        cmocka_unit_test(test_warmup_is_left_out),
        cmocka_unit_test(test_no_more_than_half_is_warmup),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_bursts_do_not_hide_the_rate),
        cmocka_unit_test(test_waking_up_is_no_rate),
        cmocka_unit_test(test_one_wait_is_no_certainty),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_batches_have_no_percentiles),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_histogram_edges),
        cmocka_unit_test(test_histogram_leaves_the_warmup_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
