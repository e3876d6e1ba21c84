/* SPDX-License-Identifier: Apache-2.0 */
/* A probe as JSON, as doc/probe.schema.json has it. Names and units are those of map files where both have a thing. */
#include <gputopo/probe.h>
#include "bench/options.h"
#include "lib/text.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#define CONFIDENCE 0.95

struct sink {
    gtopo_write_function write;
    void *context;
    int refused;
};

static int dump_piece(const char *data, size_t size, void *context)
{
    struct sink *sink = context;

    sink->refused |= sink->write(sink->context, data, size) != 0;
    return sink->refused ? -1 : 0;
}

/* ---- values ---- */

/* Set a key, taking the value. Memory that was short shows at the end: the object is then NULL. */
static void set(json_t **object, const char *key, json_t *value)
{
    if (!*object)
        json_decref(value);
    else if (json_object_set_new(*object, key, value)) {
        json_decref(*object);
        *object = NULL;
    }
}

/* Text that was cut to fit a result may end inside a character. */
static json_t *text(const char *words)
{
    char copy[512];

    snprintf(copy, sizeof copy, "%s", words ? words : "");
    gtopo_text_clean(copy);
    return *copy ? json_string(copy) : json_null();
}

static json_t *whole(uint64_t number)
{
    return json_integer((json_int_t)number);
}

/* 0 is by rule, or none. */
static json_t *known_whole(uint64_t number)
{
    return number ? whole(number) : json_null();
}

static json_t *not_automatic(int32_t number)
{
    return number == GTOPO_AUTO ? json_null() : json_integer(number);
}

static json_t *boolean(int32_t number)
{
    return number == GTOPO_AUTO ? json_null() : json_boolean(number);
}

/* There is no NaN in JSON, and thousandths are finer than any clock here. */
static json_t *number(double value)
{
    if (!isfinite(value))
        return json_null();
    return json_real(value >= 0.001 && value < 1e12 ? round(value * 1000) / 1000 : value);
}

/* 0 is unknown, or does not apply. */
static json_t *known_number(double value)
{
    return value > 0 ? number(value) : json_null();
}

/* In the metric's unit: whole bytes per second, or nanoseconds. */
static json_t *quantity(uint32_t metric, double value)
{
    if (metric == GTOPO_BANDWIDTH_Bps && value >= 1 && value < 9e18)
        return json_integer(llround(value));
    return number(value);
}

/* ---- parts ---- */

static json_t *counters_json(const struct gtopo_probe_side *side)
{
    json_t *object = json_object();

    for (uint32_t i = 0; i < side->counter_count && i < GTOPO_COUNTERS_MAX; i++)
        set(&object, side->counters[i].name, whole(side->counters[i].rise));
    return object;
}

static json_t *used_json(const struct gtopo_probe_used *used)
{
    json_t *object = json_object();

    set(&object, "queue_pairs", not_automatic(used->queue_pairs));
    set(&object, "depth", not_automatic(used->depth));
    set(&object, "moderation", not_automatic(used->moderation));
    set(&object, "post_list", not_automatic(used->post_list));
    set(&object, "inline_B", not_automatic(used->inline_B));
    set(&object, "relaxed_ordering", boolean(used->relaxed_ordering));
    set(&object, "mtu_B", not_automatic(used->mtu_B));
    set(&object, "gid", not_automatic(used->gid));
    set(&object, "gid_reason", text(used->gid_reason));
    set(&object, "traffic_class", not_automatic(used->traffic_class));
    set(&object, "service_level", not_automatic(used->service_level));
    set(&object, "page_B", not_automatic(used->page_B));
    return object;
}

static json_t *side_json(const struct gtopo_probe_end *end, const struct gtopo_probe_side *side)
{
    int has_device = end->device && *end->device;
    json_t *object = json_object();

    set(&object, "device", text(end->device));
    set(&object, "port", has_device ? whole(end->port) : json_null());
    set(&object, "memory", text(end->memory));
    set(&object, "numa", not_automatic(end->numa));
    set(&object, "gid", not_automatic(end->gid));
    set(&object, "wanted_way", text(end->way));
    set(&object, "way", text(side->way));
    set(&object, "mapping", text(side->mapping));
    set(&object, "fallback", text(side->fallback));
    set(&object, "description", text(side->description));
    set(&object, "used", used_json(&side->used));
    set(&object, "counters", counters_json(side));
    return object;
}

static json_t *options_json(const struct gtopo_probe_options *o)
{
    json_t *object = json_object();

    set(&object, "moderation", known_whole(o->moderation));
    set(&object, "post_list", known_whole(o->post_list));
    set(&object, "inline_B", not_automatic(o->inline_B));
    set(&object, "relaxed_ordering", boolean(o->relaxed_ordering));
    set(&object, "mtu_B", known_whole(o->mtu_B));
    set(&object, "traffic_class", whole(o->traffic_class));
    set(&object, "service_level", whole(o->service_level));
    set(&object, "two_way", json_boolean(o->two_way));
    set(&object, "connection_manager", json_boolean(o->connection_manager));
    set(&object, "flush", json_boolean(o->flush));
    set(&object, "verify_every", json_boolean(o->verify_every));
    set(&object, "iterations", known_whole(o->iterations));
    set(&object, "precision", json_real(isfinite(o->precision) ? o->precision : 0));
    set(&object, "limit_s", number(o->seconds));
    set(&object, "deadline_s", number(o->deadline_s));
    return object;
}

static json_t *interval_json(uint32_t metric, const struct gtopo_probe_result *result)
{
    json_t *object = json_object();

    set(&object, "median", quantity(metric, result->median));
    set(&object, "low", quantity(metric, result->low));
    set(&object, "high", quantity(metric, result->high));
    set(&object, "confidence", json_real(CONFIDENCE));
    return object;
}

static json_t *histogram_json(const struct gtopo_probe_result *result)
{
    json_t *bins = json_array();

    for (uint32_t i = 0; bins && i < result->histogram_count && i < GTOPO_HISTOGRAM_MAX; i++) {
        const struct gtopo_histogram_bin *bin = &result->histogram[i];

        if (json_array_append_new(bins,
                                  json_pack("[ooI]", number(bin->low), number(bin->high), (json_int_t)bin->count))) {
            json_decref(bins);
            bins = NULL;
        }
    }
    return bins;
}

static json_t *findings_json(const struct gtopo_probe_result *result)
{
    json_t *findings = json_array();

    for (uint32_t i = 0; findings && i < result->finding_count && i < GTOPO_PROBE_FINDINGS_MAX; i++) {
        const struct gtopo_probe_finding *finding = &result->findings[i];
        json_t *object = json_object();

        set(&object, "rule", text(finding->rule));
        set(&object, "severity", json_string(gtopo_severity_name(finding->severity)));
        set(&object, "text", text(finding->text));
        set(&object, "next_step", text(finding->next_step));
        if (json_array_append_new(findings, object)) { /* fails for a NULL object too */
            json_decref(findings);
            findings = NULL;
        }
    }
    return findings;
}

/* A transport that does not trace its messages has none. */
static int has_figures(const struct gtopo_perftest_figures *p)
{
    return p->iterations && (p->bandwidth_average_MiBps > 0 || p->t_max_us > 0);
}

static json_t *perftest_json(uint32_t metric, const struct gtopo_perftest_figures *p)
{
    json_t *object = json_object();

    set(&object, "iterations", whole(p->iterations));
    if (metric == GTOPO_BANDWIDTH_Bps) {
        set(&object, "bandwidth_peak_MiBps", number(p->bandwidth_peak_MiBps));
        set(&object, "bandwidth_average_MiBps", number(p->bandwidth_average_MiBps));
        set(&object, "message_rate_Mps", json_real(isfinite(p->message_rate_Mps) ? p->message_rate_Mps : 0));
        return object;
    }
    set(&object, "t_min_us", number(p->t_min_us));
    set(&object, "t_max_us", number(p->t_max_us));
    set(&object, "t_typical_us", number(p->t_typical_us));
    set(&object, "t_avg_us", number(p->t_avg_us));
    set(&object, "t_stdev_us", number(p->t_stdev_us));
    set(&object, "t_99_us", number(p->t_99_us));
    set(&object, "t_999_us", number(p->t_999_us));
    return object;
}

/* ---- the probe ---- */

static void set_figures(json_t **object, const struct gtopo_probe_options *o, const struct gtopo_probe_result *result)
{
    set(object, gtopo_metric_key(o->metric), interval_json(o->metric, result));
    if (o->metric == GTOPO_BANDWIDTH_Bps) {
        set(object, "forward_Bps", result->forward > 0 ? quantity(o->metric, result->forward) : json_null());
        set(object, "reverse_Bps", result->reverse > 0 ? quantity(o->metric, result->reverse) : json_null());
        set(object, "messages_per_s", known_number(result->messages_per_s));
    } else {
        set(object, "minimum_ns", known_number(result->minimum));
        set(object, "maximum_ns", known_number(result->maximum));
        set(object, "p99_ns", known_number(result->p99));
        set(object, "p999_ns", known_number(result->p999));
        set(object, "histogram_ns", histogram_json(result));
    }
    set(object, "samples", whole(result->samples));
    set(object, "warmup_samples", whole(result->warmup_samples));
    set(object, "stopped_by", text(result->stopped_by));
    set(object, "method", text(result->method));
    set(object, "verified", json_boolean(result->verified));
}

static json_t *probe_json(const struct gtopo_probe_options *o, const struct gtopo_probe_result *result)
{
    json_t *object = json_object();

    set(&object, "transport", text(o->transport));
    set(&object, "operation", text(gtopo_operation_name(o->operation)));
    set(&object, "from", side_json(&o->from, &result->from));
    set(&object, "to", side_json(&o->to, &result->to));
    set(&object, "message_B", whole(o->message_B));
    set(&object, "queue_pairs", whole(o->queue_pairs));
    set(&object, "depth", whole(o->metric == GTOPO_LATENCY_ns ? 1 : gtopo_options_depth(o)));
    set(&object, "options", options_json(o));
    set_figures(&object, o, result);
    set(&object, "findings", findings_json(result));
    if (has_figures(&result->perftest))
        set(&object, "perftest", perftest_json(o->metric, &result->perftest));
    return object;
}

int gtopo_probe_write_json(const struct gtopo_probe_options *options, const struct gtopo_probe_result *result,
                           gtopo_write_function write, void *context, struct gtopo_error *error)
{
    struct sink sink = {write, context, 0};
    json_t *object = probe_json(options, result);
    int failed = !object || json_dump_callback(object, dump_piece, &sink, JSON_COMPACT | JSON_REAL_PRECISION(15));

    json_decref(object);
    if (sink.refused)
        return gtopo_fail(error, GTOPO_EIO, NULL, "the result of a probe could not be written in full");
    return failed ? gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory while writing the result of a probe") : 0;
}
