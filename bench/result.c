/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/result.h"
#include "bench/counters.h"
#include "bench/options.h"
#include "bench/protocol.h"
#include "bench/spec.h"
#include "lib/text.h"
#include <stdio.h>
#include <string.h>

#define HIGHEST 1e18

/* The numbers of a result that travel, in one table for both ways. */
#define REAL(name)                                                                                                     \
    {                                                                                                                  \
#name, offsetof(struct gtopo_probe_result, name), 0                                                            \
    }
#define WHOLE(name)                                                                                                    \
    {                                                                                                                  \
#name, offsetof(struct gtopo_probe_result, name), 1                                                            \
    }
static const struct number {
    const char *key;
    size_t offset;
    int is_whole;
} numbers[] = {
    REAL(median),
    REAL(low),
    REAL(high),
    REAL(messages_per_s),
    REAL(minimum),
    REAL(maximum),
    REAL(p99),
    REAL(p999),
    WHOLE(samples),
    WHOLE(warmup_samples),
    WHOLE(perftest.iterations),
    REAL(perftest.bandwidth_peak_MiBps),
    REAL(perftest.bandwidth_average_MiBps),
    REAL(perftest.message_rate_Mps),
    REAL(perftest.t_min_us),
    REAL(perftest.t_max_us),
    REAL(perftest.t_typical_us),
    REAL(perftest.t_avg_us),
    REAL(perftest.t_stdev_us),
    REAL(perftest.t_99_us),
    REAL(perftest.t_999_us),
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

/* ---- to messages ---- */

static json_t *histogram_json(const struct gtopo_probe_result *result)
{
    json_t *bins = json_array();

    for (uint32_t i = 0; bins && i < result->histogram_count; i++) {
        const struct gtopo_histogram_bin *bin = &result->histogram[i];

        if (json_array_append_new(bins, json_pack("[ffI]", bin->low, bin->high, (json_int_t)bin->count))) {
            json_decref(bins);
            bins = NULL;
        }
    }
    return bins;
}

json_t *gtopo_result_json(const struct gtopo_probe_result *result)
{
    json_t *json = json_pack("{ss, ss, ss, so}", "type", "result", "stopped_by", result->stopped_by, "method",
                             result->method, "histogram", histogram_json(result));
    int failed = !json;

    for (size_t i = 0; !failed && i < NUMBERS; i++) {
        const void *place = (const char *)result + numbers[i].offset;

        failed = json_object_set_new(json, numbers[i].key,
                                     numbers[i].is_whole ? json_integer((json_int_t) * (const uint64_t *)place)
                                                         : json_real(*(const double *)place));
    }
    if (!failed)
        return json;
    json_decref(json);
    return NULL;
}

/* Parts come from drivers, and may be cut inside a character, which no message can hold. */
static void clean_report(struct gtopo_report *report)
{
    struct gtopo_reach *reach = &report->reach;
    char *const texts[] = {reach->way,       reach->mapping,      reach->fallback,        reach->finding,
                           reach->next_step, report->description, report->used.gid_reason};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        gtopo_text_clean(texts[i]);
}

json_t *gtopo_report_json(const struct gtopo_report *told)
{
    struct gtopo_report copy = *told, *report = &copy;
    const struct gtopo_reach *reach = &report->reach;
    json_t *counters = json_object(), *used;
    int failed;

    clean_report(report);
    used = json_pack("{ss}", "gid_reason", report->used.gid_reason);
    failed = !counters || !used || gtopo_numbers_json(gtopo_used_numbers, &report->used, used);
    for (uint32_t i = 0; !failed && i < report->counter_count; i++)
        failed =
            json_object_set_new(counters, report->counters[i].name, json_integer((json_int_t)report->counters[i].rise));
    if (failed) {
        json_decref(counters);
        json_decref(used);
        return NULL;
    }
    return json_pack("{ss, ss, ss, ss, ss, ss, ss, so, so, sI, sf, sf, sf}", "type", "stopped", "way", reach->way,
                     "mapping", reach->mapping, "fallback", reach->fallback, "finding", reach->finding, "next_step",
                     reach->next_step, "description", report->description, "used", used, "counters", counters,
                     "posted_B", (json_int_t)report->posted_B, "median", report->median, "low", report->low, "high",
                     report->high);
}

/* ---- from messages ---- */

static int read_text(const json_t *message, const char *key, char *text, size_t size, struct gtopo_error *error)
{
    const char *value;
    int status = gtopo_message_text(message, key, &value, error);

    if (!status) {
        snprintf(text, size, "%s", value);
        gtopo_text_clean(text); /* it is for a terminal, and may be cut inside a character */
    }
    return status;
}

static int wrong(struct gtopo_error *error, const char *what)
{
    return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version everywhere", "an agent told %s that cannot be",
                      what);
}

static int read_histogram(const json_t *bins, struct gtopo_probe_result *result, struct gtopo_error *error)
{
    size_t count = json_array_size(bins);

    if (!json_is_array(bins) || count > GTOPO_HISTOGRAM_MAX)
        return wrong(error, "a histogram");
    for (size_t i = 0; i < count; i++) {
        const json_t *bin = json_array_get(bins, i), *times = json_array_get(bin, 2);
        double low = json_number_value(json_array_get(bin, 0)), high = json_number_value(json_array_get(bin, 1));

        if (json_array_size(bin) != 3 || !json_is_integer(times) || json_integer_value(times) < 0 ||
            !(low >= 0 && low < high && high <= HIGHEST))
            return wrong(error, "a histogram");
        result->histogram[i] = (struct gtopo_histogram_bin){low, high, (uint64_t)json_integer_value(times)};
    }
    result->histogram_count = (uint32_t)count;
    return 0;
}

int gtopo_result_read(const json_t *message, struct gtopo_probe_result *result, struct gtopo_error *error)
{
    int status = 0;

    for (size_t i = 0; !status && i < NUMBERS; i++) {
        void *place = (char *)result + numbers[i].offset;

        status = numbers[i].is_whole ? gtopo_message_number(message, numbers[i].key, INT64_MAX, place, error)
                                     : gtopo_message_real(message, numbers[i].key, 0, HIGHEST, place, error);
    }
    if (status || (status = read_text(message, "stopped_by", result->stopped_by, sizeof result->stopped_by, error)) ||
        (status = read_text(message, "method", result->method, sizeof result->method, error)))
        return status;
    if (!(result->low > 0 && result->low <= result->median && result->median <= result->high))
        return wrong(error, "an interval");
    return read_histogram(json_object_get(message, "histogram"), result, error);
}

static int read_counters(json_t *counters, struct gtopo_report *report, struct gtopo_error *error)
{
    const char *name;
    json_t *value;

    if (!json_is_object(counters) || json_object_size(counters) > GTOPO_COUNTERS_MAX)
        return wrong(error, "counters");
    json_object_foreach(counters, name, value)
    {
        struct gtopo_port_counter *counter = &report->counters[report->counter_count++];

        if (!json_is_integer(value) || json_integer_value(value) < 0 || strlen(name) >= sizeof counter->name ||
            !gtopo_text_is_clean(name))
            return wrong(error, "a counter");
        snprintf(counter->name, sizeof counter->name, "%s", name);
        counter->rise = (uint64_t)json_integer_value(value);
    }
    return 0;
}

static int read_used(const json_t *used, struct gtopo_probe_used *read, struct gtopo_error *error)
{
    int status = gtopo_numbers_read(gtopo_used_numbers, used, read, error);

    return status ? status : read_text(used, "gid_reason", read->gid_reason, sizeof read->gid_reason, error);
}

int gtopo_report_read(const json_t *message, struct gtopo_report *report, struct gtopo_error *error)
{
    struct gtopo_reach *reach = &report->reach;
    int status;

    memset(report, 0, sizeof *report);
    if ((status = read_text(message, "way", reach->way, sizeof reach->way, error)) ||
        (status = read_text(message, "mapping", reach->mapping, sizeof reach->mapping, error)) ||
        (status = read_text(message, "fallback", reach->fallback, sizeof reach->fallback, error)) ||
        (status = read_text(message, "finding", reach->finding, sizeof reach->finding, error)) ||
        (status = read_text(message, "next_step", reach->next_step, sizeof reach->next_step, error)) ||
        (status = read_text(message, "description", report->description, sizeof report->description, error)) ||
        (status = gtopo_message_number(message, "posted_B", INT64_MAX, &report->posted_B, error)) ||
        (status = read_used(json_object_get(message, "used"), &report->used, error)) ||
        (status = gtopo_message_real(message, "median", 0, HIGHEST, &report->median, error)) ||
        (status = gtopo_message_real(message, "low", 0, HIGHEST, &report->low, error)) ||
        (status = gtopo_message_real(message, "high", 0, HIGHEST, &report->high, error)))
        return status;
    return read_counters(json_object_get(message, "counters"), report, error);
}

/* ---- one result ---- */

static void add_side(const struct gtopo_report *report, struct gtopo_probe_side *side)
{
    memset(side, 0, sizeof *side);
    snprintf(side->way, sizeof side->way, "%s", report->reach.way);
    snprintf(side->mapping, sizeof side->mapping, "%s", report->reach.mapping);
    snprintf(side->fallback, sizeof side->fallback, "%s", report->reach.fallback);
    snprintf(side->description, sizeof side->description, "%s", report->description);
    side->used = report->used;
    side->counter_count = report->counter_count;
    memcpy(side->counters, report->counters, sizeof side->counters);
}

static void add_warning(struct gtopo_probe_result *result, const char *rule, const char *text, const char *next_step)
{
    struct gtopo_probe_finding *finding = &result->findings[result->finding_count];

    if (result->finding_count == GTOPO_PROBE_FINDINGS_MAX)
        return;
    result->finding_count++;
    finding->severity = GTOPO_WARNING;
    snprintf(finding->rule, sizeof finding->rule, "%s", rule);
    snprintf(finding->text, sizeof finding->text, "%s", text);
    snprintf(finding->next_step, sizeof finding->next_step, "%s", next_step);
}

static void judge_counters(const struct gtopo_probe_options *options, const struct gtopo_report reports[2],
                           const char *const peers[2], int one_machine, struct gtopo_probe_result *result)
{
    const struct gtopo_probe_end *ends[2] = {&options->from, &options->to};
    const struct gtopo_probe_side *sides[2] = {&result->from, &result->to};
    struct gtopo_counters_end counted[2];
    char names[2][160];
    int one_port = one_machine && !strcmp(ends[0]->device, ends[1]->device) && ends[0]->port == ends[1]->port;

    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "%.63s port %u%s%.80s", ends[i]->device, ends[i]->port,
                 peers[i] ? " on " : "", peers[i] ? peers[i] : "");
        counted[i] = (struct gtopo_counters_end){names[i], sides[i]->counters, sides[i]->counter_count};
    }
    gtopo_counters_judge(&counted[0], &counted[1], one_port,
                         reports[0].posted_B > reports[1].posted_B ? reports[0].posted_B : reports[1].posted_B,
                         result->findings, &result->finding_count);
}

void gtopo_result_join(const struct gtopo_probe_options *options, const struct gtopo_report reports[2],
                       const char *const peers[2], int one_machine, struct gtopo_probe_result *result)
{
    add_side(&reports[0], &result->from);
    add_side(&reports[1], &result->to);
    if (options->two_way && reports[1].median > 0) { /* a copy drives both ways from one end */
        result->forward = result->median;
        result->reverse = reports[1].median;
        /* each end timed its own direction: the bounds of the sum are the sums of the bounds at worst */
        result->median += reports[1].median;
        result->low += reports[1].low;
        result->high += reports[1].high;
        result->messages_per_s = result->median / (double)options->message_B;
        if (!strcmp(result->stopped_by, "precision") &&
            !gtopo_result_is_precise(options, result->low, result->median, result->high))
            snprintf(result->stopped_by, sizeof result->stopped_by, "one-direction");
    } else if (options->two_way) /* as many copies go one way as the other */
        result->forward = result->reverse = result->median / 2;
    if (!result->verified)
        add_warning(result, "not-verified", "no end said in time whether the data was right: the run was interrupted",
                    "let the run come to its end");
    for (int i = 0; i < 2; i++)
        if (reports[i].reach.finding[0])
            add_warning(result, reports[i].reach.finding, reports[i].reach.fallback, reports[i].reach.next_step);
    judge_counters(options, reports, peers, one_machine, result);
}
