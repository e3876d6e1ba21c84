/* SPDX-License-Identifier: Apache-2.0 */
/* Samples, their warm-up, median and interval. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_coverage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
