/* SPDX-License-Identifier: Apache-2.0 */
/* perftest's figures, against a few worked out by hand and against its own loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bench/perftest.h"

#define assert_near(is, should) assert_true(is_near(is, should))

static int is_near(double is, double should)
{
    return fabs(is - should) <= 1e-12 * fabs(should);
}

/* splitmix64 (Steele, Lea, Flood 2014): the same numbers on every machine. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t *new_times(size_t count)
{
    uint64_t *times = calloc(count ? count : 1, sizeof *times);

    assert_non_null(times);
    return times;
}

/* ---- latency ---- */

/* Messages posted so that the times between them are these. */
static struct gtopo_perftest_figures weigh(const uint64_t *gaps_ns, size_t count, uint32_t operation)
{
    uint64_t *posted_ns = new_times(count + 1);
    struct gtopo_trace trace = {.posted_ns = posted_ns, .posted = count + 1};
    struct gtopo_perftest_figures figures;

    posted_ns[0] = UINT64_C(1) << 60;
    for (size_t i = 0; i < count; i++)
        posted_ns[i + 1] = posted_ns[i] + gaps_ns[i];
    assert_int_equal(gtopo_perftest_latency(&trace, operation, &figures, NULL), 0);
    assert_int_equal(figures.iterations, count + 1);
    free(posted_ns);
    return figures;
}

/*
 * Ten messages, nine samples; sorted 2 3 4 5 6 8 12 20 100 us, of which the lowest seven count. Median 5, mean 40/7,
 * the second largest of all is 20, and ceil(0.99 x 7) = ceil(0.999 x 7) = 7 is its place too. Deviations from 5.714…
 * are 3.7, 2.7, 1.7, 0.7, -0.29, -2.3 and -6.3, cut to 3, 2, 1, 0, 0, -2, -6: squares sum to 54.
 */
static void test_latency_by_hand(void **state)
{
    static const uint64_t gaps_ns[] = {8000, 3000, 100000, 2000, 5000, 20000, 4000, 12000, 6000};
    struct gtopo_perftest_figures read = weigh(gaps_ns, 9, GTOPO_READ), write = weigh(gaps_ns, 9, GTOPO_WRITE);

    (void)state;
    assert_near(read.t_min_us, 2);
    assert_near(read.t_max_us, 20);
    assert_near(read.t_typical_us, 5);
    assert_near(read.t_avg_us, 40.0 / 7);
    assert_near(read.t_stdev_us, sqrt(54.0 / 7));
    assert_near(read.t_99_us, 20);
    assert_near(read.t_999_us, 20);
    /* Halved: deviations from 20/7 are 1.86, 1.36, 0.86, 0.36, -0.14, -1.14, -3.14, cut to 1, 1, 0, 0, 0, -1, -3. */
    assert_near(write.t_min_us, 1);
    assert_near(write.t_max_us, 10);
    assert_near(write.t_typical_us, 2.5);
    assert_near(write.t_avg_us, 20.0 / 7);
    assert_near(write.t_stdev_us, sqrt(12.0 / 7));
    assert_true(write.bandwidth_average_MiBps == 0 && write.bandwidth_peak_MiBps == 0 && write.message_rate_Mps == 0);
}

static void test_which_operations_are_halved(void **state)
{
    static const uint64_t gaps_ns[] = {1000, 1000, 1000};

    (void)state;
    assert_near(weigh(gaps_ns, 3, GTOPO_WRITE).t_typical_us, 0.5);
    assert_near(weigh(gaps_ns, 3, GTOPO_SEND).t_typical_us, 0.5);
    assert_near(weigh(gaps_ns, 3, GTOPO_WRITE_IMM).t_typical_us, 0.5);
    assert_near(weigh(gaps_ns, 3, GTOPO_READ).t_typical_us, 1);
    assert_near(weigh(gaps_ns, 3, GTOPO_FETCH_ADD).t_typical_us, 1);
    assert_near(weigh(gaps_ns, 3, GTOPO_COMPARE_SWAP).t_typical_us, 1);
}

static void test_few_messages(void **state)
{
    static const uint64_t gaps_ns[] = {3000, 1000, 2000};
    struct gtopo_perftest_figures figures;
    struct gtopo_trace none = {0};

    (void)state;
    for (size_t count = 0; count < 3; count++) { /* one to three messages */
        figures = weigh(gaps_ns, count, GTOPO_READ);
        assert_true(figures.t_min_us == 0 && figures.t_max_us == 0 && figures.t_avg_us == 0 && figures.t_99_us == 0);
    }
    figures = weigh(gaps_ns, 3, GTOPO_READ); /* M is 1 */
    assert_true(figures.t_min_us == 1 && figures.t_typical_us == 1 && figures.t_avg_us == 1);
    assert_true(figures.t_max_us == 2 && figures.t_99_us == 2 && figures.t_999_us == 2 && figures.t_stdev_us == 0);
    assert_int_equal(gtopo_perftest_latency(&none, GTOPO_READ, &figures, NULL), 0);
    assert_int_equal(figures.iterations, 0);
}

/* The n-th smallest, by counting: n from 0. */
static double nth(const uint64_t *gaps, size_t count, size_t n)
{
    for (size_t i = 0; i < count; i++) {
        size_t below = 0, equal = 0;

        for (size_t j = 0; j < count; j++) {
            below += gaps[j] < gaps[i];
            equal += gaps[j] == gaps[i];
        }
        if (below <= n && n < below + equal)
            return (double)gaps[i];
    }
    fail();
    return 0;
}

/* Percentiles at counts around the places where the rounding up tells; 1000 iterations are perftest's default. */
static void test_latency_ranks(void **state)
{
    static const size_t messages[] = {4, 5, 100, 101, 102, 103, 104, 203, 204, 500, 1000, 1003, 1004, 2003, 2004};
    uint64_t random = 21;

    (void)state;
    for (size_t row = 0; row < sizeof messages / sizeof *messages; row++) {
        size_t count = messages[row] - 1, m = messages[row] - 3;
        uint64_t *gaps = new_times(count);
        struct gtopo_perftest_figures figures;

        for (size_t i = 0; i < count; i++)
            gaps[i] = 500 + next(&random) % (row % 2 ? 10 : 1000000); /* with and without many equal ones */
        figures = weigh(gaps, count, GTOPO_WRITE);
        assert_near(figures.t_min_us, nth(gaps, count, 0) / 2000);
        assert_near(figures.t_max_us, nth(gaps, count, m) / 2000);
        assert_near(figures.t_99_us, nth(gaps, count, (99 * m + 99) / 100) / 2000);
        assert_near(figures.t_999_us, nth(gaps, count, (999 * m + 999) / 1000) / 2000);
        assert_near(figures.t_typical_us, (nth(gaps, count, m / 2) + nth(gaps, count, (m - 1) / 2)) / 4000);
        if (messages[row] == 1000)
            assert_true(figures.t_999_us == figures.t_max_us && figures.t_99_us < figures.t_max_us);
        free(gaps);
    }
}

/* A second between two messages is no number for an int's square. */
static void test_long_waits(void **state)
{
    static const uint64_t gaps_ns[] = {1000, 2000001000, 2000001000, 2000001000, 2000001000};
    struct gtopo_perftest_figures figures = weigh(gaps_ns, 5, GTOPO_READ);

    (void)state;
    assert_near(figures.t_avg_us, (1 + 2 * 2000001.0) / 3);
    assert_true(figures.t_stdev_us > 900000 && figures.t_stdev_us < 1000000);
}

static void test_no_memory_for_nonsense(void **state)
{
    uint64_t time = 0;
    struct gtopo_trace trace = {.posted_ns = &time, .posted = UINT64_C(1) << 50};
    struct gtopo_perftest_figures figures;
    struct gtopo_error error = {0};

    (void)state;
    assert_int_equal(gtopo_perftest_latency(&trace, GTOPO_WRITE, &figures, &error), GTOPO_ENOMEM);
    assert_int_equal(error.code, GTOPO_ENOMEM);
}

/* ---- bandwidth ---- */

static struct gtopo_trace new_trace(size_t messages)
{
    return (struct gtopo_trace){new_times(messages), new_times(messages), messages, messages};
}

static void free_trace(struct gtopo_trace *trace)
{
    free(trace->posted_ns);
    free(trace->completed_ns);
}

/*
 * Four messages of 1 MiB, posted at 0, 1, 2 and 3 ms, complete at 4, 5, 6 and 7.5 ms: 4 MiB in 7.5 ms, and no window is
 * better (three messages: 2 ms each, or 2.17; two: 2.5; one: 4). When the last one completes at 9 ms, the first three
 * are.
 */
static void test_bandwidth_by_hand(void **state)
{
    uint64_t posted[] = {1000000, 2000000, 3000000, 4000000}, completed[] = {5000000, 6000000, 7000000, 8500000};
    struct gtopo_trace trace = {posted, completed, 4, 4};
    struct gtopo_perftest_figures figures;

    (void)state;
    gtopo_perftest_bandwidth(&trace, 1048576, 2, &figures);
    assert_int_equal(figures.iterations, 4);
    assert_near(figures.bandwidth_average_MiBps, 4 / 0.0075);
    assert_near(figures.message_rate_Mps, 4 / 7500.0);
    assert_near(figures.bandwidth_peak_MiBps, 4 / 0.0075);
    completed[3] = 10000000;
    gtopo_perftest_bandwidth(&trace, 1048576, 2, &figures);
    assert_near(figures.bandwidth_average_MiBps, 4 / 0.009);
    assert_near(figures.bandwidth_peak_MiBps, 3 / 0.006);
    assert_true(figures.t_min_us == 0 && figures.t_avg_us == 0);
}

/* Least time a message of all pairs that a step of `list` and of `batch` leaves, as perftest's loops do; in ns. */
static double naive_peak(const struct gtopo_trace *trace, size_t list, size_t batch)
{
    size_t messages = (size_t)trace->completed;
    double least = INFINITY;

    for (size_t i = 0; i < messages; i += list) {
        for (size_t j = (i + batch) / batch * batch - 1; j < messages; j += batch)
            least = fmin(least, (double)(trace->completed_ns[j] - trace->posted_ns[i]) / (double)(j - i + 1));
        if (messages % batch)
            least =
                fmin(least, (double)(trace->completed_ns[messages - 1] - trace->posted_ns[i]) / (double)(messages - i));
    }
    return least;
}

/* A run with so many in flight; messages are posted `list` at once and complete `batch` at once. */
static struct gtopo_trace simulate(size_t messages, size_t depth, size_t list, size_t batch, unsigned jitter,
                                   uint64_t *random)
{
    struct gtopo_trace trace = new_trace(messages);
    uint64_t now = next(random) % 1000000;
    size_t posted = 0, completed = 0;

    while (completed < messages) {
        while (posted < messages && posted + list <= completed + depth) {
            now += 20 + next(random) % 30;
            for (size_t i = 0; i < list && posted < messages; i++)
                trace.posted_ns[posted++] = now;
        }
        now += 100 * batch + (jitter ? next(random) % jitter : 0);
        for (size_t i = 0; i < batch && completed < posted; i++)
            trace.completed_ns[completed++] = now;
    }
    return trace;
}

static void test_peak_is_that_of_all_pairs(void **state)
{
    static const struct {
        size_t messages, depth, list, batch;
        unsigned jitter;
    } table[] = {{1, 1, 1, 1, 0},          {2, 1, 1, 1, 50},          {50, 4, 1, 1, 0},
                 {1000, 128, 1, 1, 1000},  {1000, 128, 1, 100, 5000}, {999, 128, 1, 100, 5000},
                 {1000, 64, 16, 16, 3000}, {1003, 64, 16, 16, 3000},  {3000, 128, 1, 4, 100000},
                 {2000, 2000, 8, 8, 900},  {500, 1, 1, 1, 10},        {1500, 32, 32, 32, 1}};
    uint64_t random = 31;

    (void)state;
    for (size_t row = 0; row < sizeof table / sizeof *table; row++)
        for (int run = 0; run < 5; run++) {
            struct gtopo_trace trace = simulate(table[row].messages, table[row].depth, table[row].list,
                                                table[row].batch, table[row].jitter, &random);
            double all = naive_peak(&trace, 1, 1), steps = naive_peak(&trace, table[row].list, table[row].batch);
            struct gtopo_perftest_figures figures;

            gtopo_perftest_bandwidth(&trace, 4096, 1, &figures);
            assert_near(figures.bandwidth_peak_MiBps, 4096 * 1e9 / all / 1048576);
            assert_near(steps, all); /* what perftest tries is enough */
            assert_true(figures.bandwidth_peak_MiBps >= figures.bandwidth_average_MiBps * (1 - 1e-12));
            free_trace(&trace);
        }
}

/* Any times that do not go back, also those of no real run. */
static void test_peak_of_random_times(void **state)
{
    uint64_t random = 32;

    (void)state;
    for (int run = 0; run < 300; run++) {
        size_t messages = 1 + next(&random) % 60;
        struct gtopo_trace trace = new_trace(messages);
        uint64_t posted = next(&random), completed, range = run % 3 ? 20 : UINT64_C(1) << 40;
        struct gtopo_perftest_figures figures;

        posted %= UINT64_C(1) << 62;
        completed = posted + 1;
        for (size_t i = 0; i < messages; i++) {
            trace.posted_ns[i] = posted += next(&random) % range;
            completed = completed > posted ? completed : posted + 1;
            trace.completed_ns[i] = completed += next(&random) % range;
        }
        gtopo_perftest_bandwidth(&trace, 1, 1, &figures);
        assert_near(figures.bandwidth_peak_MiBps, 1e9 / naive_peak(&trace, 1, 1) / 1048576);
        free_trace(&trace);
    }
}

static void test_peak_is_bounded_by_iterations(void **state)
{
    uint64_t random = 33;
    struct gtopo_trace trace = simulate(20001, 128, 1, 100, 3000, &random);
    struct gtopo_perftest_figures figures;

    (void)state;
    gtopo_perftest_bandwidth(&trace, 65536, 1, &figures);
    assert_true(figures.bandwidth_peak_MiBps == 0 && figures.bandwidth_average_MiBps > 0);
    gtopo_perftest_bandwidth(&trace, 65536, 2, &figures); /* perftest counts those of a queue pair */
    assert_true(figures.bandwidth_peak_MiBps >= figures.bandwidth_average_MiBps);
    trace.completed = 20000;
    gtopo_perftest_bandwidth(&trace, 65536, 1, &figures);
    assert_true(figures.bandwidth_peak_MiBps >= figures.bandwidth_average_MiBps);
    free_trace(&trace);
}

static void test_runs_without_figures(void **state)
{
    uint64_t posted[] = {5, 6}, completed[] = {5, 6};
    struct gtopo_trace none = {posted, completed, 2, 0}, more = {posted, completed, 1, 2},
                       instant = {posted, completed, 1, 1};
    struct gtopo_perftest_figures figures;

    (void)state;
    memset(&figures, 0xff, sizeof figures);
    gtopo_perftest_bandwidth(&none, 8, 1, &figures);
    assert_true(figures.iterations == 0 && figures.bandwidth_average_MiBps == 0 && figures.t_max_us == 0);
    gtopo_perftest_bandwidth(&more, 8, 1, &figures);
    assert_true(figures.bandwidth_average_MiBps == 0 && figures.bandwidth_peak_MiBps == 0);
    gtopo_perftest_bandwidth(&instant, 8, 1, &figures);
    assert_true(figures.bandwidth_average_MiBps == 0 && figures.bandwidth_peak_MiBps == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latency_by_hand),      cmocka_unit_test(test_which_operations_are_halved),
        cmocka_unit_test(test_few_messages),         cmocka_unit_test(test_latency_ranks),
        cmocka_unit_test(test_long_waits),           cmocka_unit_test(test_no_memory_for_nonsense),
        cmocka_unit_test(test_bandwidth_by_hand),    cmocka_unit_test(test_peak_is_that_of_all_pairs),
        cmocka_unit_test(test_peak_of_random_times), cmocka_unit_test(test_peak_is_bounded_by_iterations),
        cmocka_unit_test(test_runs_without_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
