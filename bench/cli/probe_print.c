/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench probe: results for people, as JSON, and in perftest's columns. */
#include "probe.h"
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 64
#define FAILURES_MAX (PROBE_SIZES_MAX * GTOPO_METRICS)

/* What a table says of both ends above its rows. */
enum head { HEAD_METHOD, HEAD_FROM, HEAD_TO, HEAD_FROM_FALLBACK, HEAD_TO_FALLBACK, HEADS };
static const char *const head_labels[HEADS] = {"method", "from", "to", "from: not", "to: not"};
#define HEAD_MAX 1024

struct failure {
    uint32_t metric;
    uint64_t message_B;
    const char *operation;
    struct gtopo_error error;
};

/* The findings of one rule, told once: a sweep has the same cause at most sizes, with other numbers. */
struct note {
    struct gtopo_probe_finding finding; /* the first */
    char where[CLI_TEXT];               /* the probe that it is of */
    uint32_t place;                     /* among those of its rule in that probe: each end may have one */
    size_t count;                       /* probes that have it */
    int is_same;                        /* all in the same words */
};

struct form;

struct probe_report {
    FILE *out;
    const struct form *form;
    const struct probe_settings *settings;
    const struct probe_place *place;
    int begun;
    uint32_t metric; /* of the rows that are being written; GTOPO_METRICS before the first */
    int elements;    /* of the array that is open */
    char heads[HEADS][HEAD_MAX];
    struct note notes[NOTES_MAX];
    size_t note_count, probes; /* probes: with a result */
    struct failure failures[FAILURES_MAX];
    size_t failure_count;
};

/* One way to write results. Each but result may be NULL. */
struct form {
    void (*begin)(struct probe_report *report);
    void (*result)(struct probe_report *report, const struct gtopo_probe_options *options,
                   const struct gtopo_probe_result *result);
    void (*end)(struct probe_report *report);
    int notes_are_below; /* what was found stands in the report; else it is told on standard error */
};

const char *probe_name(const struct gtopo_probe_options *options, char text[CLI_TEXT])
{
    char size[CLI_TEXT];

    snprintf(text, CLI_TEXT, "%s %s %.40s", gtopo_operation_name(options->operation),
             options->metric == GTOPO_LATENCY_ns ? "latency" : "bandwidth", cli_bytes(options->message_B, size));
    return text;
}

/* ---- the table ---- */

static void append(char *text, const char *separator, const char *more)
{
    size_t length = strlen(text);

    if (*more)
        snprintf(text + length, HEAD_MAX - length, "%s%s", length ? separator : "", more);
}

static void describe_side(const struct gtopo_probe_side *side, char text[HEAD_MAX])
{
    char mapping[64];

    snprintf(mapping, sizeof mapping, *side->mapping ? "(%s mapping)" : "", side->mapping);
    *text = 0;
    append(text, "", side->way);
    append(text, " ", mapping);
    append(text, "; ", side->description);
}

/* Why a better way was not taken, unless a finding below the table tells it. */
static void describe_fallback(const struct gtopo_probe_result *result, const char *fallback, char text[HEAD_MAX])
{
    snprintf(text, HEAD_MAX, "%s", fallback);
    for (uint32_t i = 0; i < result->finding_count; i++)
        if (!strcmp(result->findings[i].text, fallback))
            *text = 0;
}

/* Write those lines of the head that are not as they were. */
static void put_heads(struct probe_report *r, const struct gtopo_probe_result *result)
{
    char heads[HEADS][HEAD_MAX];

    snprintf(heads[HEAD_METHOD], HEAD_MAX, "%s", result->method);
    describe_side(&result->from, heads[HEAD_FROM]);
    describe_side(&result->to, heads[HEAD_TO]);
    describe_fallback(result, result->from.fallback, heads[HEAD_FROM_FALLBACK]);
    describe_fallback(result, result->to.fallback, heads[HEAD_TO_FALLBACK]);
    for (int i = 0; i < HEADS; i++) {
        if (*heads[i] && strcmp(heads[i], r->heads[i]))
            fprintf(r->out, "  %-10s %s\n", head_labels[i], heads[i]);
        memcpy(r->heads[i], heads[i], sizeof heads[i]);
    }
}

#define BANDWIDTH_ROW "%10s  %-12s  %-9s  %9s  %-23s  %-4s  %10s  %9s  %-10s  %s\n"
#define LATENCY_ROW "%10s  %-12s  %-18s  %9s  %-23s  %-4s  %9s  %9s  %9s  %9s  %9s  %-10s  %s\n"

static void put_columns(struct probe_report *r, uint32_t metric)
{
    if (metric == GTOPO_BANDWIDTH_Bps)
        fprintf(r->out, BANDWIDTH_ROW, "size", "operation", "direction", "median", "95 % interval", "unit", "messages",
                "samples", "stopped by", "verified");
    else
        fprintf(r->out, LATENCY_ROW, "size", "operation", "direction", "median", "95 % interval", "unit", "minimum",
                "99 %", "99.9 %", "maximum", "samples", "stopped by", "verified");
}

/* Four digits, so that points stand below each other; "-" for what is not known. */
static const char *figure(double value, char text[CLI_TEXT])
{
    snprintf(text, CLI_TEXT, value <= 0 ? "-" : value >= 999.5 ? "%.0f" : "%#.4g", value);
    return text;
}

/* Where the bytes go; and for latency what was timed, when the method says it. */
static const char *direction(const struct gtopo_probe_options *o, const struct gtopo_probe_result *result,
                             char text[CLI_TEXT])
{
    const char *arrow = o->two_way ? "<->" : o->operation == GTOPO_READ ? "<-" : "->";
    const char *part = "";

    if (o->metric == GTOPO_LATENCY_ns && strstr(result->method, "round trip"))
        part = strstr(result->method, "half a round trip") ? " half round trip" : " round trip";
    snprintf(text, CLI_TEXT, "%s%s", arrow, part);
    return text;
}

static void put_row(struct probe_report *r, const struct gtopo_probe_options *o,
                    const struct gtopo_probe_result *result)
{
    struct cli_scale scale = cli_scale(o->metric, r->place->is_network, result->median);
    char size[CLI_TEXT], way[CLI_TEXT], median[CLI_TEXT], low[CLI_TEXT], high[CLI_TEXT], interval[3 * CLI_TEXT];
    char samples[CLI_TEXT], more[4][CLI_TEXT];
    const char *verified = result->verified ? "yes" : "no";

    snprintf(interval, sizeof interval, "[%s .. %s]", figure(result->low * scale.factor, low),
             figure(result->high * scale.factor, high));
    snprintf(samples, sizeof samples, "%llu", (unsigned long long)result->samples);
    cli_bytes(o->message_B, size);
    direction(o, result, way);
    figure(result->median * scale.factor, median);
    if (o->metric == GTOPO_BANDWIDTH_Bps)
        fprintf(r->out, BANDWIDTH_ROW, size, gtopo_operation_name(o->operation), way, median, interval, scale.unit,
                cli_count_rate(result->messages_per_s, more[0]), samples, result->stopped_by, verified);
    else
        fprintf(r->out, LATENCY_ROW, size, gtopo_operation_name(o->operation), way, median, interval, scale.unit,
                figure(result->minimum * scale.factor, more[0]), figure(result->p99 * scale.factor, more[1]),
                figure(result->p999 * scale.factor, more[2]), figure(result->maximum * scale.factor, more[3]), samples,
                result->stopped_by, verified);
    if (result->forward > 0)
        fprintf(r->out, "%10s  of which -> %s %s, <- %s %s\n", "", figure(result->forward * scale.factor, more[0]),
                scale.unit, figure(result->reverse * scale.factor, more[1]), scale.unit);
}

static void put_counters(struct probe_report *r, const char *label, const struct gtopo_probe_side *side)
{
    int count = 0;

    for (uint32_t i = 0; i < side->counter_count; i++)
        if (side->counters[i].rise)
            fprintf(r->out, "%s%s %llu", count++ ? ", " : label, side->counters[i].name,
                    (unsigned long long)side->counters[i].rise);
    if (count)
        putc('\n', r->out);
}

static void table_result(struct probe_report *r, const struct gtopo_probe_options *o,
                         const struct gtopo_probe_result *result)
{
    if (r->metric != o->metric) {
        fprintf(r->out, "%s%s %s, %s %s %s\n", r->begun ? "\n" : "", o->transport,
                o->metric == GTOPO_LATENCY_ns ? "latency" : "bandwidth", r->place->names[0], o->two_way ? "<->" : "->",
                r->place->names[1]);
        memset(r->heads, 0, sizeof r->heads);
        put_heads(r, result);
        put_columns(r, o->metric);
    } else
        put_heads(r, result);
    put_row(r, o, result);
    if (r->settings->counters) {
        put_counters(r, "            from: ", &result->from);
        put_counters(r, "            to: ", &result->to);
    }
}

/* ---- perftest's columns: its header and formats, version 6 ---- */

#define PERFTEST_LINE "---------------------------------------------------------------------------------------\n"

static void perftest_result(struct probe_report *r, const struct gtopo_probe_options *o,
                            const struct gtopo_probe_result *result)
{
    const struct gtopo_perftest_figures *p = &result->perftest;

    if (r->metric != o->metric)
        fprintf(r->out, PERFTEST_LINE "%s\n",
                o->metric == GTOPO_BANDWIDTH_Bps
                    ? " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]"
                    : " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
                      "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ");
    if (o->metric == GTOPO_BANDWIDTH_Bps)
        fprintf(r->out, " %-7llu    %-10llu       %-7.2f            %-7.2f\t\t     %-7.6f\n",
                (unsigned long long)o->message_B, (unsigned long long)p->iterations, p->bandwidth_peak_MiBps,
                p->bandwidth_average_MiBps, p->message_rate_Mps);
    else
        fprintf(r->out,
                " %-7llu %llu          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t"
                "%-7.2f\n",
                (unsigned long long)o->message_B, (unsigned long long)p->iterations, p->t_min_us, p->t_max_us,
                p->t_typical_us, p->t_avg_us, p->t_stdev_us, p->t_99_us, p->t_999_us);
}

static void perftest_end(struct probe_report *r)
{
    if (r->begun)
        fputs(PERFTEST_LINE, r->out);
}

/* ---- JSON ---- */

static int write_stream(void *context, const void *data, size_t size)
{
    return fwrite(data, 1, size, context) != size;
}

/* A text in quotation marks; what is in it is UTF-8 already. */
static void put_text(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            putc(*text, out);
    putc('"', out);
}

static void put_member(FILE *out, const char *before, const char *key, const char *text)
{
    fprintf(out, "%s\"%s\":", before, key);
    if (*text)
        put_text(out, text);
    else
        fputs("null", out);
}

static void json_begin(struct probe_report *r)
{
    fputs("{\n  \"format\":\"gputopo-probe\",\n  \"version\":1", r->out);
    fprintf(r->out, ",\n  \"producer\":\"gputopo %s\"", gtopo_version());
    put_member(r->out, ",\n  ", "from", r->place->names[0]);
    put_member(r->out, ",\n  ", "to", r->place->names[1]);
    fputs(",\n  \"probes\":[", r->out);
}

static void json_result(struct probe_report *r, const struct gtopo_probe_options *o,
                        const struct gtopo_probe_result *result)
{
    struct gtopo_error error;

    fputs(r->elements++ ? ",\n    " : "\n    ", r->out);
    /* A stream that refuses is found out by whoever opened it. */
    if (gtopo_probe_write_json(o, result, write_stream, r->out, &error) && error.code != GTOPO_EIO)
        cli_fail(&error);
}

static void json_end(struct probe_report *r)
{
    fputs(r->elements ? "\n  ],\n  \"failures\":[" : "],\n  \"failures\":[", r->out);
    for (size_t i = 0; i < r->failure_count; i++) {
        const struct failure *f = &r->failures[i];

        fputs(i ? ",\n    {" : "\n    {", r->out);
        put_member(r->out, "", "operation", f->operation);
        put_member(r->out, ",", "metric", gtopo_metric_key(f->metric));
        fprintf(r->out, ",\"message_B\":%llu", (unsigned long long)f->message_B);
        put_member(r->out, ",", "error", gtopo_status_name(f->error.code));
        put_member(r->out, ",", "text", f->error.message);
        put_member(r->out, ",", "next_step", f->error.hint);
        fputs("}", r->out);
    }
    fputs(r->failure_count ? "\n  ]\n}\n" : "]\n}\n", r->out);
}

/* ---- all forms ---- */

static const struct form forms[] = {
    [PROBE_TABLE] = {NULL, table_result, NULL, 1},
    [PROBE_JSON] = {json_begin, json_result, json_end, 0},
    [PROBE_PERFTEST] = {NULL, perftest_result, perftest_end, 0},
};

struct probe_report *probe_report_new(FILE *out, const struct probe_settings *settings, const struct probe_place *place)
{
    struct probe_report *report = calloc(1, sizeof *report);

    if (!report)
        return NULL;
    report->out = out;
    report->form = &forms[settings->form];
    report->settings = settings;
    report->place = place;
    report->metric = GTOPO_METRICS;
    return report;
}

static void keep_note(struct probe_report *report, const struct gtopo_probe_options *options,
                      const struct gtopo_probe_finding *finding, uint32_t place)
{
    struct note *note = report->notes, *end = note + report->note_count;

    while (note < end && (strcmp(note->finding.rule, finding->rule) || note->place != place))
        note++;
    if (note < end) {
        note->count++;
        note->is_same &= !strcmp(note->finding.text, finding->text);
        if (finding->severity > note->finding.severity)
            note->finding.severity = finding->severity;
        return;
    }
    if (report->note_count == NOTES_MAX)
        return;
    report->note_count++;
    *note = (struct note){.finding = *finding, .place = place, .count = 1, .is_same = 1};
    probe_name(options, note->where);
}

static void keep_notes(struct probe_report *report, const struct gtopo_probe_options *options,
                       const struct gtopo_probe_result *result)
{
    for (uint32_t i = 0; i < result->finding_count; i++) {
        uint32_t place = 0;

        for (uint32_t j = 0; j < i; j++)
            place += !strcmp(result->findings[j].rule, result->findings[i].rule);
        keep_note(report, options, &result->findings[i], place);
    }
}

void probe_report_result(struct probe_report *report, const struct gtopo_probe_options *options,
                         const struct gtopo_probe_result *result)
{
    if (!report->begun && report->form->begin)
        report->form->begin(report);
    report->form->result(report, options, result);
    report->begun = 1;
    report->metric = options->metric;
    fflush(report->out);
    report->probes++;
    keep_notes(report, options, result);
}

void probe_report_failure(struct probe_report *report, const struct gtopo_probe_options *options,
                          const struct gtopo_error *error)
{
    char name[CLI_TEXT];

    fprintf(stderr, "gtopo-bench: %s: %s%s%s\n", probe_name(options, name), error->message, *error->hint ? "\n  " : "",
            error->hint);
    if (report->failure_count < FAILURES_MAX)
        report->failures[report->failure_count++] =
            (struct failure){options->metric, options->message_B, gtopo_operation_name(options->operation), *error};
}

static void put_note(const struct probe_report *report, const struct note *note, int is_first)
{
    int below = report->form->notes_are_below, is_everywhere = note->is_same && note->count == report->probes;
    FILE *out = below ? report->out : stderr;

    fprintf(out, "%s%s%s %s", below && is_first ? "\nFound:\n" : "",
            below ? "" : "gtopo-bench: ", gtopo_severity_name(note->finding.severity), note->finding.rule);
    if (!is_everywhere)
        fprintf(out, " at %s", note->where);
    if (!is_everywhere && note->count > 1)
        fprintf(out, " and %zu more", note->count - 1);
    fprintf(out, ": %s\n", note->finding.text);
    if (*note->finding.next_step)
        fprintf(out, "%s%s\n", below ? "    " : "  ", note->finding.next_step);
}

int probe_report_end(struct probe_report *report)
{
    int status = CLI_GOOD;

    if (!report->begun && report->form->begin)
        report->form->begin(report);
    if (report->form->end)
        report->form->end(report);
    fflush(report->out);
    for (size_t i = 0; i < report->note_count; i++) {
        put_note(report, &report->notes[i], !i);
        if (report->notes[i].finding.severity >= GTOPO_WARNING)
            status = CLI_FINDING;
    }
    return status;
}

void probe_report_free(struct probe_report *report)
{
    free(report);
}
