/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/engine.h"
#include "bench/clock.h"
#include "bench/counters.h"
#include "bench/options.h"
#include "bench/perftest.h"
#include "bench/statistics.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A run shorter than this shows a burst, not a rate. */
#define SHORTEST_RUN_NS UINT64_C(200000000)
#define ASK_EVERY_NS 10e6
/* With fewer samples than this a probe goes on, up to GTOPO_PATIENCE times as long as asked. */
#define SAMPLES_WANTED (2 * GTOPO_SAMPLES_MIN)
/* A turn of which so much or more was ours, the interval's estimation, is no sample of the path. */
#define OURS_AT_MOST 0.01
#define SILENCE_NS UINT64_C(200000000) /* less than an interrupted run is waited for */
/* What a served run may still need when the coordinator speaks: the initiator, whose last words are under way, is done.
 */
#define LAST_WORDS_NS UINT64_C(200000000)

struct sampling {
    const struct gtopo_spec *spec;
    struct gtopo_samples samples;
    int (*interrupted)(void *context);
    void *context;
    uint64_t start_ns, looked_ns;
    uint64_t seen_before, moved_ns; /* samples at a look, and the first look that saw as many */
    uint64_t limit_ns;              /* the run is given up then, however it moves */
    uint64_t interrupted_ns;        /* when the coordinator was first seen to have spoken to the end that serves */
    double unasked_ns;              /* sampled since interrupted() was last asked */
    double asking_ns;               /* latency: what asking took, in the turn whose sample is the next; else 0 */
    uint64_t next_estimate;         /* number of samples at which the interval is looked at again */
    const char *stopped_by;
    int status;
};

struct gtopo_engine {
    const struct gtopo_transport *transport;
    const struct gtopo_transport_facts *facts;
    struct gtopo_spec spec;
    struct gtopo_region region, other; /* other: the memory of `to` when there is no other end */
    void *endpoint;
    struct gtopo_affinity affinity; /* of the thread, before */
    struct gtopo_summary driven;    /* two-way: what the responder drove */
    struct gtopo_counters *before;  /* of the port, when it was connected; NULL where there is none */
};

/* ---- opening and closing ---- */

static int allocate(const struct gtopo_engine *engine, const struct gtopo_probe_end *end, int initiator,
                    struct gtopo_region *region, struct gtopo_error *error)
{
    int status = gtopo_memory_find(end->memory, region, error);

    if (status)
        return status;
    region->numa = end->numa;
    region->size = engine->transport->buffer_B(&engine->spec.options, initiator);
    return region->memory->allocate(region, error);
}

static int open_endpoint(struct gtopo_engine *engine, int one_processor, struct gtopo_error *error)
{
    const struct gtopo_spec *spec = &engine->spec;
    struct gtopo_endpoint_options options = {
        .probe = &spec->options,
        .own = gtopo_spec_own(spec),
        .initiator = spec->initiator,
        .seed = spec->seed,
        .region = &engine->region,
        .other = engine->facts->alone ? &engine->other : NULL,
        .host = &gtopo_memory_host,
        .deadline_ns = (uint64_t)(spec->options.deadline_s * 1e9),
        .one_processor = one_processor,
    };

    return engine->transport->open(&options, &engine->endpoint, error);
}

static enum gtopo_share share_of(const struct gtopo_spec *spec)
{
    if (!spec->shared)
        return GTOPO_SHARE_ALL;
    return spec->initiator ? GTOPO_SHARE_FIRST_HALF : GTOPO_SHARE_SECOND_HALF;
}

int gtopo_engine_open(const struct gtopo_spec *spec, struct gtopo_engine **opened, struct gtopo_error *error)
{
    struct gtopo_engine *engine = calloc(1, sizeof *engine);
    const struct gtopo_probe_end *own;
    int status = 0, one_processor = 0;

    if (!engine)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    gtopo_spec_make(&engine->spec, &spec->options, spec->initiator, spec->shared, spec->seed);
    own = gtopo_spec_own(&engine->spec);
    if ((status = gtopo_transport_facts(spec->options.transport, &engine->facts, error)) ||
        (status = gtopo_transport_find(spec->options.transport, &engine->transport, error)) ||
        (status = gtopo_affinity_save(&engine->affinity, error)) ||
        (status = gtopo_memory_bind_thread(own->numa, share_of(spec), &one_processor, error)) ||
        (status = allocate(engine, own, spec->initiator, &engine->region, error)))
        goto out;
    if (engine->facts->is_rdma && !(engine->before = calloc(1, sizeof *engine->before)))
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (!status && engine->facts->alone)
        status = allocate(engine, &engine->spec.options.to, 0, &engine->other, error);
    if (!status)
        status = open_endpoint(engine, spec->shared && one_processor, error);
out:
    if (status) {
        gtopo_engine_close(engine);
        return status;
    }
    *opened = engine;
    return 0;
}

static void release(struct gtopo_region *region)
{
    if (region->memory)
        region->memory->release(region);
}

void gtopo_engine_close(struct gtopo_engine *engine)
{
    if (!engine)
        return;
    if (engine->endpoint)
        engine->transport->close(engine->endpoint);
    release(&engine->region);
    release(&engine->other);
    gtopo_affinity_restore(&engine->affinity);
    free(engine->before);
    free(engine);
}

int gtopo_engine_address(struct gtopo_engine *engine, void *blob, size_t *size, struct gtopo_error *error)
{
    if (engine->transport->address)
        return engine->transport->address(engine->endpoint, blob, size, error);
    *size = 0;
    return 0;
}

int gtopo_engine_connect(struct gtopo_engine *engine, const void *blob, size_t size, struct gtopo_error *error)
{
    const struct gtopo_probe_end *own = gtopo_spec_own(&engine->spec);

    if (engine->before)
        gtopo_counters_read("", own->device, own->port, engine->before);
    return engine->transport->connect ? engine->transport->connect(engine->endpoint, blob, size, error) : 0;
}

/* ---- sampling ---- */

static int precise_enough(const struct sampling *s)
{
    struct gtopo_summary summary;

    if (gtopo_samples_summarise(&s->samples, &summary, NULL))
        return 0;
    return gtopo_result_is_precise(&s->spec->options, summary.low, summary.median, summary.high);
}

/* Is it time to end a run? Looked at about every 10 ms. */
static const char *reason_to_stop(struct sampling *s)
{
    const struct gtopo_probe_options *options = &s->spec->options;
    uint64_t elapsed_ns = gtopo_clock_ns() - s->start_ns;
    uint64_t patience = s->samples.seen < SAMPLES_WANTED ? GTOPO_PATIENCE : 1;

    if (s->interrupted(s->context))
        return "cancelled";
    if (options->iterations) /* the transport counts them */
        return NULL;
    if (elapsed_ns >= (uint64_t)(options->seconds * 1e9) * patience)
        return "deadline";
    if (elapsed_ns < SHORTEST_RUN_NS || s->samples.seen < s->next_estimate)
        return NULL;
    s->next_estimate = s->samples.seen + s->samples.seen / 2 + 1;
    return precise_enough(s) ? "precision" : NULL;
}

static void ask(struct sampling *s)
{
    uint64_t begin_ns = gtopo_clock_ns();

    s->stopped_by = reason_to_stop(s);
    if (!s->samples.batches) /* batches are told one by one, and sum to the length of the run */
        s->asking_ns = (double)(gtopo_clock_ns() - begin_ns);
}

/* A latency's turn may be under way while we ask; where that took long beside it, it says nothing of the path.
 * Of few samples each is needed, and asking is quick. */
static int is_disturbed(struct sampling *s, double sample_ns)
{
    int is = s->samples.seen >= SAMPLES_WANTED && s->asking_ns > OURS_AT_MOST * sample_ns;

    s->asking_ns = 0;
    return is;
}

/* Called by the transport for each sample; says when to stop. */
static int take_sample(void *context, double sample_ns)
{
    struct sampling *s = context;

    if (s->asking_ns > 0 && is_disturbed(s, sample_ns))
        return 0;
    s->status = gtopo_samples_add(&s->samples, sample_ns);
    if (s->status)
        return 1;
    s->unasked_ns += sample_ns;
    if (s->unasked_ns < ASK_EVERY_NS)
        return 0;
    s->unasked_ns = 0;
    ask(s);
    if (s->stopped_by)
        s->limit_ns = gtopo_clock_ns() + GTOPO_DRAIN_PATIENCE * (uint64_t)(s->spec->options.deadline_s * 1e9);
    return s->stopped_by != NULL;
}

/* No sample for so long: take_sample() cannot be waited for to end an interrupted run, and keep what was measured. */
static int is_silent(struct sampling *s, uint64_t now_ns)
{
    if (s->samples.seen != s->seen_before || !s->moved_ns) {
        s->seen_before = s->samples.seen;
        s->moved_ns = now_ns;
    }
    return now_ns - s->moved_ns >= SILENCE_NS;
}

/*
 * Called by the transport while nothing comes, so that a run that hardly moves, with no sample for a long time, can be
 * interrupted too, is told to go on, and has an end. What an interrupted run has in flight is waited for.
 */
static int look(void *context)
{
    struct sampling *s = context;
    uint64_t now_ns = gtopo_clock_ns();

    if (now_ns - s->looked_ns < (uint64_t)ASK_EVERY_NS)
        return 0;
    s->looked_ns = now_ns;
    if (is_silent(s, now_ns) && s->interrupted(s->context) && !s->stopped_by) {
        s->stopped_by = "cancelled";
        return 1;
    }
    return now_ns > s->limit_ns;
}

/* Times become the metric: bytes of a batch over its time, or the time itself. */
static void convert(struct gtopo_summary *summary, uint32_t metric, double batch_B)
{
    if (metric == GTOPO_BANDWIDTH_Bps) {
        double low = batch_B * 1e9 / summary->high;

        summary->high = batch_B * 1e9 / summary->low;
        summary->low = low;
        summary->median = batch_B * 1e9 / summary->median;
    }
}

/* Why a run was given up, or found too few samples. */
static int fail_short(const struct sampling *s, struct gtopo_error *error)
{
    double elapsed_s = (double)(gtopo_clock_ns() - s->start_ns) * 1e-9;

    if (s->stopped_by && !strcmp(s->stopped_by, "cancelled"))
        return gtopo_fail(error, GTOPO_ECANCELLED, NULL, "cancelled before there were enough samples");
    if (gtopo_clock_ns() > s->limit_ns)
        return gtopo_fail(error, GTOPO_ETIMEOUT,
                          "the link loses packets, or an end is overloaded: look at the port counters of both ends",
                          "given up after %.3g s: messages of %llu bytes hardly move", elapsed_s,
                          (unsigned long long)s->spec->options.message_B);
    return gtopo_fail(error, GTOPO_ETIMEOUT,
                      s->spec->options.iterations ? "give it more messages with --iterations"
                                                  : "give it more time with --seconds",
                      "only %zu sample%s in %.3g s: too few to say anything", s->samples.count,
                      s->samples.count == 1 ? "" : "s", elapsed_s);
}

static int summarise(struct sampling *s, uint64_t batch, struct gtopo_summary *summary, struct gtopo_error *error)
{
    const struct gtopo_probe_options *options = &s->spec->options;

    if (s->status == GTOPO_ENOMEM)
        return gtopo_fail(error, s->status, NULL, "out of memory for samples");
    if (s->status)
        return gtopo_fail(error, GTOPO_EINTERNAL, NULL, "a sample took no time: the clock stands still");
    if (gtopo_samples_summarise(&s->samples, summary, error))
        return fail_short(s, error);
    convert(summary, options->metric, (double)batch * (double)options->message_B);
    return 0;
}

static void fill_result(const struct gtopo_engine *engine, const struct sampling *s,
                        const struct gtopo_summary *summary, struct gtopo_probe_result *result)
{
    const struct gtopo_probe_options *options = &engine->spec.options;

    result->median = summary->median;
    result->low = summary->low;
    result->high = summary->high;
    result->samples = summary->samples;
    result->warmup_samples = summary->warmup;
    result->minimum = summary->minimum;
    result->maximum = summary->maximum;
    result->p99 = summary->p99;
    result->p999 = summary->p999;
    result->histogram_count = gtopo_samples_histogram(&s->samples, summary, result->histogram);
    if (options->metric == GTOPO_BANDWIDTH_Bps)
        result->messages_per_s = summary->median / (double)options->message_B;
    snprintf(result->stopped_by, sizeof result->stopped_by, "%s", s->stopped_by ? s->stopped_by : "iterations");
    snprintf(result->method, sizeof result->method, "%s", engine->transport->method(engine->endpoint));
}

/* Written to beforehand, so that the loop does not wait for the kernel to bring in pages. */
static uint64_t *new_times(size_t count)
{
    uint64_t *times = malloc(count * sizeof *times);

    for (size_t i = 0; times && i < count; i++)
        times[i] = GTOPO_TRACE_SAME;
    return times;
}

static void fill_in(uint64_t *times, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++)
        if (times[i] == GTOPO_TRACE_SAME)
            times[i] = times[i - 1];
}

/* Room for the times of each message, of a run with a count; perftest's figures stand on them. */
static int make_trace(const struct gtopo_probe_options *options, struct gtopo_trace *trace, struct gtopo_error *error)
{
    size_t count = (size_t)(options->iterations * options->queue_pairs);

    trace->posted_ns = new_times(count);
    trace->completed_ns = new_times(count);
    return trace->posted_ns && trace->completed_ns ? 0 : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
}

static int add_perftest(const struct gtopo_probe_options *options, const struct gtopo_trace *trace,
                        struct gtopo_perftest_figures *figures, struct gtopo_error *error)
{
    if (!trace->posted)
        return 0;
    fill_in(trace->posted_ns, trace->posted);
    fill_in(trace->completed_ns, trace->completed);
    if (options->metric == GTOPO_LATENCY_ns)
        return gtopo_perftest_latency(trace, options->operation, figures, error);
    gtopo_perftest_bandwidth(trace, options->message_B, options->queue_pairs, figures);
    return 0;
}

int gtopo_engine_run(struct gtopo_engine *engine, int (*interrupted)(void *context), void *context,
                     struct gtopo_probe_result *result, struct gtopo_error *error)
{
    struct sampling s = {.spec = &engine->spec, .interrupted = interrupted, .context = context};
    struct gtopo_run run = {.batch = gtopo_options_batch(&engine->spec.options),
                            .messages = engine->spec.options.iterations,
                            .sample = take_sample,
                            .look = look,
                            .context = &s};
    struct gtopo_summary summary;
    struct gtopo_trace trace = {NULL, NULL, 0, 0};
    int status = 0;

    s.samples.batches = engine->spec.options.metric == GTOPO_BANDWIDTH_Bps;
    if (gtopo_samples_reserve(&s.samples))
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory for samples");
    if (!status && run.messages) {
        run.trace = &trace;
        status = make_trace(&engine->spec.options, &trace, error);
    }
    s.start_ns = gtopo_clock_ns();
    s.limit_ns = gtopo_run_limit_ns(&engine->spec.options);
    if (!status)
        status = engine->transport->run(engine->endpoint, &run, error);
    if (status == GTOPO_ECANCELLED)
        status = fail_short(&s, error);
    if (!status)
        status = summarise(&s, run.batch, &summary, error);
    if (!status)
        status = add_perftest(&engine->spec.options, &trace, &result->perftest, error);
    if (!status)
        fill_result(engine, &s, &summary, result);
    free(trace.posted_ns);
    free(trace.completed_ns);
    gtopo_samples_clear(&s.samples);
    return status;
}

/* Called by the transport of the end that serves, while nothing comes. */
static int look_at_coordinator(void *context)
{
    struct sampling *s = context;
    uint64_t now_ns = gtopo_clock_ns();

    if (now_ns - s->looked_ns < (uint64_t)ASK_EVERY_NS)
        return 0;
    s->looked_ns = now_ns;
    if (!s->interrupted_ns && s->interrupted(s->context))
        s->interrupted_ns = now_ns;
    return s->interrupted_ns && now_ns - s->interrupted_ns > LAST_WORDS_NS;
}

/* What the responder of a two-way probe drives; the initiator says when it ends. */
static int keep_sample(void *context, double sample_ns)
{
    struct sampling *s = context;

    if (!s->status)
        s->status = gtopo_samples_add(&s->samples, sample_ns);
    return 0;
}

int gtopo_engine_serve(struct gtopo_engine *engine, int (*interrupted)(void *context), void *context,
                       struct gtopo_error *error)
{
    int two_way = engine->spec.options.two_way, status;
    struct sampling s = {.spec = &engine->spec,
                         .samples = {.batches = 1},
                         .start_ns = gtopo_clock_ns(),
                         .interrupted = interrupted,
                         .context = context};
    struct gtopo_run run = {.batch = gtopo_options_batch(&engine->spec.options),
                            .sample = two_way ? keep_sample : NULL,
                            .look = look_at_coordinator,
                            .context = &s};

    if (!engine->transport->serve)
        return 0;
    if (two_way && gtopo_samples_reserve(&s.samples))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory for samples");
    status = engine->transport->serve(engine->endpoint, &run, error);
    if (status == GTOPO_ECANCELLED)
        status = gtopo_fail(error, GTOPO_EPEER, "look at the other end's error",
                            "the coordinator ended the probe before the other end did");
    if (!status && two_way)
        status = summarise(&s, run.batch, &engine->driven, error);
    gtopo_samples_clear(&s.samples);
    return status;
}

int gtopo_engine_verify(struct gtopo_engine *engine, struct gtopo_error *error)
{
    return engine->transport->verify(engine->endpoint, error);
}

static void count_port(const struct gtopo_engine *engine, struct gtopo_report *report)
{
    const struct gtopo_probe_end *own = gtopo_spec_own(&engine->spec);
    struct gtopo_counters *after = calloc(1, sizeof *after);

    if (!after) /* then they are not told */
        return;
    gtopo_counters_read("", own->device, own->port, after);
    gtopo_counters_rise(engine->before, after, report->counters, &report->counter_count);
    free(after);
}

void gtopo_engine_report(struct gtopo_engine *engine, struct gtopo_report *report)
{
    memset(report, 0, sizeof *report);
    for (const struct gtopo_option *number = gtopo_used_numbers; number->key; number++)
        gtopo_option_set(number, &report->used, GTOPO_AUTO);
    if (engine->transport->used)
        engine->transport->used(engine->endpoint, &report->used);
    if (engine->region.memory->is_host)
        report->used.page_B = gtopo_memory_page_B(engine->region.data);
    engine->transport->describe(engine->endpoint, report->description, sizeof report->description);
    if (engine->transport->reach)
        engine->transport->reach(engine->endpoint, &report->reach);
    else
        snprintf(report->reach.way, sizeof report->reach.way, "%s", engine->region.memory->is_host ? "host" : "device");
    if (engine->before)
        count_port(engine, report);
    if (engine->transport->posted_B)
        report->posted_B = engine->transport->posted_B(engine->endpoint);
    report->median = engine->driven.median;
    report->low = engine->driven.low;
    report->high = engine->driven.high;
}
