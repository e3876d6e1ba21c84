/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perftest's formulas, from print_report_lat(), print_report_bw() and force_dependecies() of its perftest_parameters.c
 * (linux-rdma/perftest 6.x, read at 4f48008 of 2026). What is to be known of them:
 *
 * Latency. A sample is the time from one post to the next, halved but for reads and atomic operations; N messages give
 * N-1 samples. They are sorted, and the two largest are left out: with M = N-3, median, mean and standard deviation are
 * those of the lowest M. But t_max is sorted[M] (from 0), the second largest of all; the 99 % value is
 * sorted[ceil(0.99 M)] and the 99.9 % value sorted[ceil(0.999 M)], so for few messages they are t_max too. Since
 * 6234a09 (2022) each deviation from the mean is cut to whole microseconds before it is squared, so the standard
 * deviation reads about 0 for most. It is an int there, and overflows beyond 46 ms; ours does not.
 *
 * Bandwidth. The average is over the time from the first post to the last completion. The peak is that of the best
 * window: from the post of a message i to the completion of a message j >= i, over j-i+1 messages. It is not looked for
 * above 20,000 iterations a queue pair. perftest only tries the first message of each post list and the last one of
 * each completion; the others have the times of these with fewer messages in between, so all windows give the same
 * peak.
 *
 * Units. perftest counts cycles, and cuts the peak's time of a message and the median of an even number to whole
 * cycles. Ours are nanoseconds, which are longer, so those two keep their fraction: the difference is below one cycle.
 */
#include "bench/perftest.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TAIL 2 /* largest samples that are left out */
#define PEAK_ITERATIONS_MAX 20000
#define MIB 1048576.0

/* ---- latency ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* ns_a_us: nanoseconds of a sample that make a microsecond of latency. count: M, at least 1; sorted has two more. */
static void summarise(const uint64_t *sorted, size_t count, double ns_a_us, struct gtopo_perftest_figures *figures)
{
    double sum = 0, squares = 0;
    size_t i;

    for (i = 0; i < count; i++)
        sum += (double)sorted[i] / ns_a_us;
    figures->t_avg_us = sum / (double)count;
    for (i = 0; i < count; i++) {
        double whole_us = trunc(figures->t_avg_us - (double)sorted[i] / ns_a_us);

        squares += whole_us * whole_us;
    }
    figures->t_stdev_us = sqrt(squares / (double)count);
    figures->t_typical_us = (double)sorted[count / 2] / ns_a_us;
    if (count % 2 == 0)
        figures->t_typical_us = figures->t_typical_us / 2 + (double)sorted[count / 2 - 1] / ns_a_us / 2;
    figures->t_min_us = (double)sorted[0] / ns_a_us;
    figures->t_max_us = (double)sorted[count] / ns_a_us;
    figures->t_99_us = (double)sorted[(size_t)ceil((double)count * 0.99)] / ns_a_us;
    figures->t_999_us = (double)sorted[(size_t)ceil((double)count * 0.999)] / ns_a_us;
}

int gtopo_perftest_latency(const struct gtopo_trace *trace, uint32_t operation, struct gtopo_perftest_figures *figures,
                           struct gtopo_error *error)
{
    int is_whole = operation == GTOPO_READ || operation == GTOPO_FETCH_ADD || operation == GTOPO_COMPARE_SWAP;
    size_t samples, i;
    uint64_t *sorted;

    memset(figures, 0, sizeof *figures);
    figures->iterations = trace->posted;
    if (trace->posted < TAIL + 2)
        return 0;
    samples = (size_t)trace->posted - 1;
    sorted = malloc(samples * sizeof *sorted);
    if (!sorted)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory for %zu samples", samples);
    for (i = 0; i < samples; i++)
        sorted[i] = trace->posted_ns[i + 1] - trace->posted_ns[i];
    qsort(sorted, samples, sizeof *sorted, compare);
    summarise(sorted, samples - TAIL, is_whole ? 1000 : 2000, figures);
    free(sorted);
    return 0;
}

/* ---- bandwidth ---- */

/* Messages i to j, from the post of the first to the completion of the last. */
struct window {
    uint64_t time_ns, messages;
};

/* The exact product of a time and a number of messages. */
typedef __int128 wide;

/*
 * The window for which (its time) - (its messages) x (a message's time in `best`) is least. For a j, that is the one
 * that begins where posted[i] - i x (that time) is largest, which one pass over the trace keeps up to date.
 */
static struct window find_shorter(const struct gtopo_trace *trace, struct window best)
{
    uint64_t start_ns = trace->posted_ns[0], i, begin = 0;
    struct window found = best;
    wide largest = 0, least = 0;

    for (i = 0; i < trace->completed; i++) {
        wide earned = (wide)i * best.time_ns;
        wide offset = (wide)(trace->posted_ns[i] - start_ns) * best.messages - earned, excess;

        if (!i || offset > largest) {
            largest = offset;
            begin = i;
        }
        excess = (wide)(trace->completed_ns[i] - start_ns) * best.messages - earned - best.time_ns - largest;
        if (excess < least && trace->completed_ns[i] > trace->posted_ns[begin]) {
            least = excess;
            found = (struct window){trace->completed_ns[i] - trace->posted_ns[begin], i - begin + 1};
        }
    }
    return found;
}

/*
 * The window with the least time a message. Beginning with any, the least of time - messages x rate is 0 for the best
 * and negative as long as there is a better one, which is then the next to begin with (W. Dinkelbach, "On nonlinear
 * fractional programming", Management Science 13(7), 1967). perftest compares all pairs; the result is the same.
 */
static struct window find_peak(const struct gtopo_trace *trace)
{
    struct window best = {trace->completed_ns[trace->completed - 1] - trace->posted_ns[0], trace->completed};

    for (;;) {
        struct window found = find_shorter(trace, best);

        if (found.time_ns == best.time_ns && found.messages == best.messages)
            return best;
        best = found;
    }
}

void gtopo_perftest_bandwidth(const struct gtopo_trace *trace, uint64_t message_B, uint32_t queue_pairs,
                              struct gtopo_perftest_figures *figures)
{
    uint64_t messages = trace->completed;
    double seconds;

    memset(figures, 0, sizeof *figures);
    figures->iterations = messages;
    if (!messages || messages > trace->posted || trace->completed_ns[messages - 1] <= trace->posted_ns[0])
        return;
    seconds = (double)(trace->completed_ns[messages - 1] - trace->posted_ns[0]) / 1e9;
    figures->message_rate_Mps = (double)messages / seconds / 1e6;
    figures->bandwidth_average_MiBps = (double)message_B * (double)messages / seconds / MIB;
    if (messages <= PEAK_ITERATIONS_MAX * (uint64_t)queue_pairs) {
        struct window peak = find_peak(trace);

        figures->bandwidth_peak_MiBps = (double)message_B * (double)peak.messages * 1e9 / ((double)peak.time_ns * MIB);
    }
}
