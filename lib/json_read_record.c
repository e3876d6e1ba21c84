/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the measurements and findings of a map file. */
#include "lib/json_member.h"

GTOPO_WORDS(gtopo_provenance_name, gtopo_provenance)
GTOPO_WORDS(gtopo_severity_name, gtopo_severity)

/* ---- measurements ---- */

static int get_end(struct gtopo_reader *r, const json_t *object, const char *key, struct gtopo_end *end)
{
    struct gtopo_address address;
    struct gtopo_error cause;
    const char *text;
    int status = gtopo_get_text(r, object, key, &text);

    if (status)
        return status;
    status = gtopo_address_parse(r->map, text, &address, &cause);
    if (status)
        return gtopo_refused(r, status, &cause);
    end->memory = address.object;
    end->via = address.via;
    return 0;
}

static int get_interval(struct gtopo_reader *r, const json_t *object, struct gtopo_measurement *m)
{
    static const char *const keys[] = {"median", "low", "high", "confidence", NULL};
    double *values[] = {&m->median, &m->low, &m->high};
    json_t *interval = NULL;
    int status;

    for (m->metric = 0; m->metric < GTOPO_METRICS; m->metric++)
        if ((interval = json_object_get(object, gtopo_metric_key(m->metric))))
            break;
    if (!interval)
        return gtopo_bad(r, "there is neither \"bandwidth_Bps\" nor \"latency_ns\"");
    if (m->metric == GTOPO_BANDWIDTH_Bps && json_object_get(object, gtopo_metric_key(GTOPO_LATENCY_ns)))
        return gtopo_bad(r, "there are both \"bandwidth_Bps\" and \"latency_ns\"");
    if ((status = gtopo_check_keys(r, interval, keys)))
        return status;
    if (json_number_value(json_object_get(interval, "confidence")) != 0.95)
        return gtopo_bad(r, "\"confidence\" has to be 0.95");
    for (int i = 0; i < 3; i++) {
        const json_t *value = json_object_get(interval, keys[i]);

        if (!json_is_number(value))
            return gtopo_bad(r, "\"%s\" has to be a number", keys[i]);
        *values[i] = json_number_value(value);
    }
    return 0;
}

static int get_verified(struct gtopo_reader *r, const json_t *object, int32_t *verified)
{
    const json_t *value = json_object_get(object, "verified");

    *verified = json_is_true(value);
    return json_is_boolean(value) ? 0 : gtopo_bad(r, "\"verified\" has to be true or false");
}

/* A number above 0. */
static int get_quantity(struct gtopo_reader *r, const json_t *object, const char *key, double *quantity)
{
    const json_t *value = json_object_get(object, key);

    *quantity = json_number_value(value);
    return json_is_number(value) && *quantity > 0 ? 0 : gtopo_bad(r, "\"%s\" has to be a number above 0", key);
}

static int get_directions(struct gtopo_reader *r, json_t *directions, struct gtopo_measurement *m)
{
    static const char *const keys[] = {"forward", "reverse", NULL};
    int status = gtopo_check_keys(r, directions, keys);

    m->two_way = 1;
    if (!status)
        status = get_quantity(r, directions, "forward", &m->forward);
    return status ? status : get_quantity(r, directions, "reverse", &m->reverse);
}

/* How an end's memory was reached. */
static int get_way(struct gtopo_reader *r, const json_t *object, const char *key, const char **way)
{
    int status = gtopo_get_text(r, object, key, way);

    return !status && !**way ? gtopo_bad(r, "\"%s\" has to say something", key) : status;
}

/* What stands in a file only where it is not the usual. */
static int read_exceptions(struct gtopo_reader *r, const json_t *object, struct gtopo_measurement *m)
{
    json_t *directions = json_object_get(object, "two_way");
    int status = directions ? get_directions(r, directions, m) : 0;

    if (!status && json_object_get(object, "p99_ns"))
        status = get_quantity(r, object, "p99_ns", &m->p99);
    if (!status && json_object_get(object, "p999_ns"))
        status = get_quantity(r, object, "p999_ns", &m->p999);
    if (!status && json_object_get(object, "from_way"))
        status = get_way(r, object, "from_way", &m->from_way);
    if (!status && json_object_get(object, "to_way"))
        status = get_way(r, object, "to_way", &m->to_way);
    if (status || !json_object_get(object, "concurrent"))
        return status;
    status = gtopo_get_uint32(r, object, "concurrent", 0, &m->concurrent);
    return !status && m->concurrent < 2 ? gtopo_bad(r, "\"concurrent\" has to be 2 or more") : status;
}

int gtopo_read_measurement(struct gtopo_reader *r, json_t *object, size_t index)
{
    static const char *const keys[] = {"from",      "to",       "provenance",     "bandwidth_Bps", "latency_ns",
                                       "operation", "method",   "transport",      "fallback",      "stopped_by",
                                       "tool",      "samples",  "warmup_samples", "message_B",     "queue_pairs",
                                       "depth",     "verified", "time_unix_s",    "two_way",       "p99_ns",
                                       "p999_ns",   "from_way", "to_way",         "concurrent",    NULL};
    struct gtopo_measurement m = {0};
    struct gtopo_error cause;
    uint64_t time = 0;
    int status = gtopo_check_keys(r, object, keys);

    if (status || (status = get_end(r, object, "from", &m.from)) || (status = get_end(r, object, "to", &m.to)) ||
        (status = gtopo_get_word(r, object, "provenance", GTOPO_PROVENANCES, gtopo_provenance_name_, &m.provenance)) ||
        (status = get_interval(r, object, &m)) || (status = gtopo_get_text(r, object, "operation", &m.operation)) ||
        (status = gtopo_get_text(r, object, "transport", &m.transport)) ||
        (status = gtopo_get_text_or_null(r, object, "method", &m.method)) ||
        (status = gtopo_get_text_or_null(r, object, "fallback", &m.fallback)) ||
        (status = gtopo_get_text_or_null(r, object, "stopped_by", &m.stopped_by)) ||
        (status = gtopo_get_text_or_null(r, object, "tool", &m.tool)) ||
        (status = gtopo_get_number(r, object, "message_B", INT64_MAX, 0, &m.message_B)) ||
        (status = gtopo_get_uint32(r, object, "queue_pairs", 0, &m.queue_pairs)) ||
        (status = gtopo_get_uint32(r, object, "depth", 0, &m.depth)) ||
        (status = gtopo_get_number(r, object, "samples", INT64_MAX, 0, &m.samples)) ||
        (status = gtopo_get_number(r, object, "warmup_samples", INT64_MAX, 0, &m.warmup_samples)) ||
        (status = get_verified(r, object, &m.verified)) ||
        (status = gtopo_get_number(r, object, "time_unix_s", INT64_MAX, 1, &time)) ||
        (status = read_exceptions(r, object, &m)))
        return status;
    (void)index;
    m.time_unix_s = (int64_t)time;
    status = gtopo_map_add_measurement(r->map, &m, &cause);
    return status ? gtopo_refused(r, status, &cause) : 0;
}

/* ---- findings ---- */

int gtopo_read_finding(struct gtopo_reader *r, json_t *object, size_t index)
{
    static const char *const keys[] = {"rule", "severity", "object", "text", "next_step", NULL};
    struct gtopo_finding finding = {.object = GTOPO_NONE};
    struct gtopo_address address;
    struct gtopo_error cause;
    const char *where;
    int status = gtopo_check_keys(r, object, keys);

    (void)index;
    if (status || (status = gtopo_get_text(r, object, "rule", &finding.rule)) ||
        (status = gtopo_get_word(r, object, "severity", GTOPO_SEVERITIES, gtopo_severity_name_, &finding.severity)) ||
        (status = gtopo_get_text_or_null(r, object, "object", &where)) ||
        (status = gtopo_get_text(r, object, "text", &finding.text)) ||
        (status = gtopo_get_text_or_null(r, object, "next_step", &finding.next_step)))
        return status;
    if (where) {
        status = gtopo_address_parse(r->map, where, &address, &cause);
        if (!status && (address.via != GTOPO_NONE || address.port))
            return gtopo_bad(r, "\"object\" names \"%.60s\", which is more than an object", where);
        if (!status)
            finding.object = address.object;
    }
    if (!status)
        status = gtopo_map_add_finding(r->map, &finding, &cause);
    return status ? gtopo_refused(r, status, &cause) : 0;
}
