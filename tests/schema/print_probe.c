/* SPDX-License-Identifier: Apache-2.0 */
/* Prints results of probes as JSON, for the checks of doc/probe.schema.json; or the words of the enumerations. */
#include <gputopo/probe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct example {
    struct gtopo_probe_options options;
    struct gtopo_probe_result result;
};

static void set_bandwidth(struct example *e)
{
    static const struct gtopo_probe_used used = {1, 128, 100, 16, 0, 1, 4096, 3, 0, 0, 2 << 20, "RoCE v2: same subnet"};

    gtopo_probe_options_init(&e->options);
    e->options.from.device = e->options.to.device = "mlx5_0";
    e->result = (struct gtopo_probe_result){
        .size = sizeof e->result,
        .median = 12.1e9,
        .low = 12e9,
        .high = 12.3e9,
        .messages_per_s = 184631.3,
        .samples = 640,
        .warmup_samples = 10,
        .stopped_by = "precision",
        .method = "RDMA writes, timed by their completions while the queue is kept full",
        .verified = 1,
        .from = {.way = "host", .description = "RC, MTU 4096, GID 3 fe80::7 (RoCE v2: same subnet)", .used = used},
        .to = {.way = "host", .description = "RC, MTU 4096, GID 3 fe80::9 (RoCE v2: same subnet)", .used = used},
    };
}

static void set_latency(struct example *e)
{
    set_bandwidth(e);
    e->options.metric = GTOPO_LATENCY_ns;
    e->options.message_B = 8;
    e->result.median = 1234.5678;
    e->result.low = 1230;
    e->result.high = 1239.25;
    e->result.messages_per_s = 0;
    e->result.minimum = 1101;
    e->result.maximum = 99321;
    e->result.p99 = 1520.125;
    e->result.histogram_count = 2;
    e->result.histogram[0] = (struct gtopo_histogram_bin){1024, 1046.4, 600};
    e->result.histogram[1] = (struct gtopo_histogram_bin){1046.4, 1069.3, 40};
}

static void set_two_way(struct example *e)
{
    set_bandwidth(e);
    e->options.two_way = 1;
    e->result.forward = 6.1e9;
    e->result.reverse = 6e9;
}

/* Through memory that nobody could register, with all that is told of it. */
static void set_staged(struct example *e)
{
    struct gtopo_probe_finding *finding = &e->result.findings[0];

    set_bandwidth(e);
    e->options.from.memory = "gpu:0000:1b:00.0";
    e->options.from.numa = 1;
    e->options.from.gid = 3;
    e->options.from.way = "staged";
    e->options.relaxed_ordering = 0;
    e->options.inline_B = 0;
    e->options.mtu_B = 4096;
    e->result.verified = 0;
    e->result.from.used = e->result.to.used = (struct gtopo_probe_used){1, -1, -1, -1, 0, 0, 4096, -1, -1, 0, -1, ""};
    snprintf(e->result.from.way, sizeof e->result.from.way, "staged");
    snprintf(e->result.from.fallback, sizeof e->result.from.fallback, "dma-buf: the driver does not register it");
    e->result.from.counter_count = 2;
    e->result.from.counters[0] = (struct gtopo_port_counter){"port_xmit_data", UINT64_C(1) << 40};
    e->result.from.counters[1] = (struct gtopo_port_counter){"out_of_sequence", 0};
    e->result.finding_count = 1;
    finding->severity = GTOPO_WARNING;
    snprintf(finding->rule, sizeof finding->rule, "no-gpudirect");
    snprintf(finding->text, sizeof finding->text, "\"quoted\" \\ and 100 %%");
}

static void set_perftest_bandwidth(struct example *e)
{
    set_bandwidth(e);
    e->options.iterations = 5000;
    snprintf(e->result.stopped_by, sizeof e->result.stopped_by, "iterations");
    e->result.perftest = (struct gtopo_perftest_figures){.iterations = 5000,
                                                         .bandwidth_peak_MiBps = 11539.46,
                                                         .bandwidth_average_MiBps = 11530.11,
                                                         .message_rate_Mps = 0.184482};
}

static void set_perftest_latency(struct example *e)
{
    set_latency(e);
    e->options.iterations = 1000;
    e->result.perftest = (struct gtopo_perftest_figures){.iterations = 1000,
                                                         .t_min_us = 1.1,
                                                         .t_max_us = 9.5,
                                                         .t_typical_us = 1.23,
                                                         .t_avg_us = 1.24,
                                                         .t_stdev_us = 0,
                                                         .t_99_us = 1.52,
                                                         .t_999_us = 9.5};
}

/* With a control character, and the first byte of two at its end. */
static void fill(char *text, size_t size)
{
    memset(text, 'a', size);
    text[1] = '\x1b';
    text[size - 2] = '\xc3';
    text[size - 1] = 0;
}

/* Every text as long as it can be, cut inside a character; every list full. */
static void set_longest(struct example *e)
{
    set_latency(e);
    fill(e->result.method, sizeof e->result.method);
    fill(e->result.from.description, sizeof e->result.from.description);
    fill(e->result.from.fallback, sizeof e->result.from.fallback);
    fill(e->result.from.used.gid_reason, sizeof e->result.from.used.gid_reason);
    fill(e->result.from.mapping, sizeof e->result.from.mapping);
    e->result.from.counter_count = GTOPO_COUNTERS_MAX;
    for (int i = 0; i < GTOPO_COUNTERS_MAX; i++)
        snprintf(e->result.from.counters[i].name, sizeof e->result.from.counters[i].name, "counter_%039d", i);
    e->result.finding_count = GTOPO_PROBE_FINDINGS_MAX;
    for (int i = 0; i < GTOPO_PROBE_FINDINGS_MAX; i++) {
        snprintf(e->result.findings[i].rule, sizeof e->result.findings[i].rule, "%031d", i);
        snprintf(e->result.findings[i].text, sizeof e->result.findings[i].text, "%0511d", i);
        snprintf(e->result.findings[i].next_step, sizeof e->result.findings[i].next_step, "%0255d", i);
    }
    e->result.histogram_count = GTOPO_HISTOGRAM_MAX;
    for (int i = 0; i < GTOPO_HISTOGRAM_MAX; i++)
        e->result.histogram[i] = (struct gtopo_histogram_bin){1000 + i, 1001 + i, INT64_MAX};
}

/* What no clock gives, and still must not make a document that cannot be read. */
static void set_not_finite(struct example *e)
{
    set_perftest_bandwidth(e);
    e->options.precision = NAN;
    e->result.median = INFINITY;
    e->result.low = NAN;
    e->result.messages_per_s = -INFINITY;
    e->result.perftest.bandwidth_peak_MiBps = NAN;
    e->result.perftest.message_rate_Mps = INFINITY;
}

static void print_words(void)
{
    for (unsigned i = 0; i < GTOPO_OPERATIONS; i++)
        printf("operation\t%s\n", gtopo_operation_name(i));
    for (unsigned i = 0; i < GTOPO_METRICS; i++)
        printf("metric\t%s\n", gtopo_metric_key(i));
    for (unsigned i = 0; i < GTOPO_SEVERITIES; i++)
        printf("severity\t%s\n", gtopo_severity_name(i));
}

static int write_stdout(void *context, const void *data, size_t size)
{
    (void)context;
    return fwrite(data, 1, size, stdout) != size;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*set)(struct example *);
    } examples[] = {{"bandwidth", set_bandwidth},
                    {"latency", set_latency},
                    {"two-way", set_two_way},
                    {"staged", set_staged},
                    {"perftest-bandwidth", set_perftest_bandwidth},
                    {"perftest-latency", set_perftest_latency},
                    {"longest", set_longest},
                    {"not-finite", set_not_finite}};
    static struct example example;
    const char *what = argc == 2 ? argv[1] : "";
    struct gtopo_error error;

    if (!strcmp(what, "words"))
        return print_words(), 0;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (!strcmp(what, examples[i].name)) {
            examples[i].set(&example);
            if (!gtopo_probe_write_json(&example.options, &example.result, write_stdout, NULL, &error))
                return 0;
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
    fprintf(stderr, "usage: print_probe words|bandwidth|latency|two-way|staged|perftest-bandwidth|perftest-latency|"
                    "longest|not-finite\n");
    return 2;
}
