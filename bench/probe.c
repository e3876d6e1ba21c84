/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe.h"
#include "bench/clock.h"
#include "bench/memory.h"
#include "bench/protocol.h"
#include <stdlib.h>
#include <string.h>

/* A run shorter than this shows a burst, not a rate. */
#define SHORTEST_RUN_NS UINT64_C(200000000)
#define ASK_EVERY_NS 10e6
/* With fewer samples than this a probe goes on, up to GTOPO_PATIENCE times as long as asked. */
#define SAMPLES_WANTED (2 * GTOPO_SAMPLES_MIN)

struct gtopo_probe {
    const struct gtopo_transport *transport;
    const struct gtopo_memory *memory;
    struct gtopo_probe_spec spec; /* its texts are not kept */
    void *buffer;
    size_t buffer_B;
    void *endpoint;
    struct gtopo_affinity affinity; /* of the thread, before */
};

/* ---- the spec as a message ---- */

json_t *gtopo_probe_spec_json(const struct gtopo_probe_spec *spec)
{
    return json_pack("{ss, ss, ss, ss, sI, so, sb, ss, ss, sI, sI, sf, sf, sf}", "type", "prepare", "transport",
                     spec->transport, "device", spec->device, "memory", spec->memory, "port", (json_int_t)spec->port,
                     "numa", spec->numa == GTOPO_NUMA_ANY ? json_null() : json_integer(spec->numa), "shared",
                     spec->shared, "role", spec->initiator ? "initiator" : "responder", "metric",
                     gtopo_metric_key(spec->metric), "message_B", (json_int_t)spec->message_B, "depth",
                     (json_int_t)spec->depth, "precision", spec->precision, "seconds", spec->seconds, "deadline_s",
                     spec->deadline_s);
}

static int read_role(const json_t *message, struct gtopo_probe_spec *spec, struct gtopo_error *error)
{
    const char *role, *metric;
    int status = gtopo_message_text(message, "role", &role, error);

    if (status || (status = gtopo_message_text(message, "metric", &metric, error)))
        return status;
    spec->initiator = !strcmp(role, "initiator");
    spec->metric = strcmp(metric, gtopo_metric_key(GTOPO_LATENCY_ns)) ? GTOPO_BANDWIDTH_Bps : GTOPO_LATENCY_ns;
    if ((!spec->initiator && strcmp(role, "responder")) || strcmp(metric, gtopo_metric_key(spec->metric)))
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "a probe has the unknown role \"%.40s\" or metric \"%.40s\"",
                          role, metric);
    return 0;
}

int gtopo_probe_spec_read(const json_t *message, struct gtopo_probe_spec *spec, struct gtopo_error *error)
{
    uint64_t port, depth, numa = 0;
    int any_numa = json_is_null(json_object_get(message, "numa"));
    int status = read_role(message, spec, error);

    if (status || (status = gtopo_message_text(message, "transport", &spec->transport, error)) ||
        (status = gtopo_message_text(message, "device", &spec->device, error)) ||
        (status = gtopo_message_text(message, "memory", &spec->memory, error)) ||
        (status = gtopo_message_number(message, "port", 255, &port, error)) ||
        (!any_numa && (status = gtopo_message_number(message, "numa", 65535, &numa, error))) ||
        (status = gtopo_message_number(message, "message_B", GTOPO_MESSAGE_MAX_B, &spec->message_B, error)) ||
        (status = gtopo_message_number(message, "depth", GTOPO_DEPTH_MAX, &depth, error)) ||
        (status = gtopo_message_real(message, "precision", 0, 1, &spec->precision, error)) ||
        (status = gtopo_message_real(message, "seconds", 0, 86400, &spec->seconds, error)) ||
        (status = gtopo_message_real(message, "deadline_s", 0.001, 86400, &spec->deadline_s, error)))
        return status;
    if (!spec->message_B || !depth)
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "a probe needs a message size and a depth of at least 1");
    if (!json_is_boolean(json_object_get(message, "shared")))
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "in a message \"prepare\", \"shared\" has to be true or false");
    spec->shared = json_is_true(json_object_get(message, "shared"));
    spec->port = (uint32_t)port;
    spec->depth = (uint32_t)depth;
    spec->numa = any_numa ? GTOPO_NUMA_ANY : (int)numa;
    return 0;
}

/* ---- opening and closing ---- */

static int open_endpoint(struct gtopo_probe *probe, const struct gtopo_probe_spec *spec, struct gtopo_error *error)
{
    struct gtopo_endpoint_options options = {
        .device = spec->device,
        .port = spec->port,
        .metric = spec->metric,
        .initiator = spec->initiator,
        .buffer = probe->buffer,
        .buffer_B = probe->buffer_B,
        .message_B = spec->message_B,
        .depth = spec->depth,
        .deadline_ns = (uint64_t)(spec->deadline_s * 1e9),
    };

    return probe->transport->open(&options, &probe->endpoint, error);
}

static enum gtopo_share share_of(const struct gtopo_probe_spec *spec)
{
    if (!spec->shared)
        return GTOPO_SHARE_ALL;
    return spec->initiator ? GTOPO_SHARE_FIRST_HALF : GTOPO_SHARE_SECOND_HALF;
}

int gtopo_probe_open(const struct gtopo_probe_spec *spec, struct gtopo_probe **opened, struct gtopo_error *error)
{
    struct gtopo_probe *probe = calloc(1, sizeof *probe);
    int status = 0;

    if (!probe)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    probe->spec = *spec;
    if ((status = gtopo_transport_find(spec->transport, &probe->transport, error)) ||
        (status = gtopo_memory_find(spec->memory, &probe->memory, error)) ||
        (status = gtopo_affinity_save(&probe->affinity, error)) ||
        (status = gtopo_memory_bind_thread(spec->numa, share_of(spec), error)))
        goto out;
    probe->buffer_B = probe->transport->buffer_B(spec->message_B, spec->depth);
    status = probe->memory->allocate(spec->numa, probe->buffer_B, &probe->buffer, error);
    if (!status)
        status = open_endpoint(probe, spec, error);
out:
    if (status) {
        gtopo_probe_close(probe);
        return status;
    }
    probe->spec.transport = probe->spec.device = probe->spec.memory = NULL;
    *opened = probe;
    return 0;
}

void gtopo_probe_close(struct gtopo_probe *probe)
{
    if (!probe)
        return;
    if (probe->endpoint)
        probe->transport->close(probe->endpoint);
    if (probe->buffer)
        probe->memory->release(probe->buffer, probe->buffer_B);
    gtopo_affinity_restore(&probe->affinity);
    free(probe);
}

const struct gtopo_transport *gtopo_probe_transport(const struct gtopo_probe *probe)
{
    return probe->transport;
}

int gtopo_probe_address(struct gtopo_probe *probe, void *blob, size_t *size, struct gtopo_error *error)
{
    return probe->transport->address(probe->endpoint, blob, size, error);
}

int gtopo_probe_connect(struct gtopo_probe *probe, const void *blob, size_t size, struct gtopo_error *error)
{
    return probe->transport->connect(probe->endpoint, blob, size, error);
}

/* ---- sampling ---- */

struct sampling {
    const struct gtopo_probe *probe;
    struct gtopo_samples samples;
    int (*interrupted)(void *context);
    void *context;
    uint64_t start_ns;
    double unasked_ns;      /* sampled since interrupted() was last asked */
    uint64_t next_estimate; /* number of samples at which the interval is looked at again */
    const char *stopped_by;
    int status;
};

static int precise_enough(const struct sampling *s)
{
    struct gtopo_summary summary;

    if (gtopo_samples_summarise(&s->samples, &summary, NULL))
        return 0;
    return summary.high - summary.low <= 2 * s->probe->spec.precision * summary.median;
}

/* Called by the transport for each sample; says when to stop. */
static int take_sample(void *context, double sample_ns)
{
    struct sampling *s = context;
    uint64_t elapsed_ns;

    s->status = gtopo_samples_add(&s->samples, sample_ns);
    if (s->status)
        return 1;
    s->unasked_ns += sample_ns;
    if (s->unasked_ns < ASK_EVERY_NS)
        return 0;
    s->unasked_ns = 0;
    elapsed_ns = gtopo_clock_ns() - s->start_ns;
    if (s->interrupted(s->context))
        s->stopped_by = "cancelled";
    else if (elapsed_ns >=
             (uint64_t)(s->probe->spec.seconds * 1e9) * (s->samples.seen < SAMPLES_WANTED ? GTOPO_PATIENCE : 1))
        s->stopped_by = "deadline";
    else if (elapsed_ns >= SHORTEST_RUN_NS && s->samples.seen >= s->next_estimate) {
        if (precise_enough(s))
            s->stopped_by = "precision";
        s->next_estimate = s->samples.seen + s->samples.seen / 2 + 1;
    }
    return s->stopped_by != NULL;
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

int gtopo_probe_run(struct gtopo_probe *probe, int (*interrupted)(void *context), void *context,
                    struct gtopo_probe_result *result, struct gtopo_error *error)
{
    struct sampling s = {.probe = probe, .interrupted = interrupted, .context = context};
    struct gtopo_run run = {.sample = take_sample, .context = &s};
    int status;

    s.samples.batches = probe->spec.metric == GTOPO_BANDWIDTH_Bps;
    /* A quarter of what is in flight: long enough to time, short enough for many samples. */
    run.batch = probe->spec.depth < 4 ? 1 : probe->spec.depth / 4;
    s.start_ns = gtopo_clock_ns();
    status = probe->transport->run(probe->endpoint, &run, error);
    if (!status && s.status)
        status = s.status == GTOPO_ENOMEM
                     ? gtopo_fail(error, s.status, NULL, "out of memory for samples")
                     : gtopo_fail(error, GTOPO_EINTERNAL, NULL, "a sample took no time: the clock stands still");
    if (!status && gtopo_samples_summarise(&s.samples, &result->summary, error))
        status = s.stopped_by && !strcmp(s.stopped_by, "cancelled")
                     ? gtopo_fail(error, GTOPO_ECANCELLED, NULL, "cancelled before there were enough samples")
                     : gtopo_fail(error, GTOPO_ETIMEOUT, "give it more time with --seconds",
                                  "only %zu samples in %.3g s: too few to say anything", s.samples.count,
                                  probe->spec.seconds);
    if (!status) {
        convert(&result->summary, probe->spec.metric, (double)run.batch * (double)probe->spec.message_B);
        result->stopped_by = s.stopped_by ? s.stopped_by : "transport";
        probe->transport->describe(probe->endpoint, result->description, sizeof result->description);
    }
    gtopo_samples_clear(&s.samples);
    return status;
}

int gtopo_probe_serve(struct gtopo_probe *probe, struct gtopo_error *error)
{
    return probe->transport->serve ? probe->transport->serve(probe->endpoint, error) : 0;
}

int gtopo_probe_verify(struct gtopo_probe *probe, struct gtopo_error *error)
{
    return probe->transport->verify(probe->endpoint, error);
}
