/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport "copy": a GPU's copy engine copies between its memory and the host's, or another GPU's. Opening, closing,
 * data.
 */
#include "bench/transport/copy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_B ((size_t)256) /* messages begin where the copy engines like it */
#define PAGE_B ((size_t)65536)
#define OTHER_DIRECTION UINT64_C(0x5555555555555555)
#define GATE_PATIENCE_NS UINT64_C(1000000000)

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static size_t slot_B(const struct gtopo_probe_options *probe)
{
    return round_up((size_t)probe->message_B, LINE_B);
}

/* A slot for each stream; those of the other direction follow. */
static size_t copy_buffer(const struct gtopo_probe_options *probe, int initiator)
{
    (void)initiator;
    return round_up(slot_B(probe) * probe->queue_pairs * (probe->two_way ? 2 : 1), PAGE_B);
}

/* ---- the data ---- */

int gtopo_copy_prepare(struct gtopo_copy *c, const struct gtopo_copy_stream *stream, struct gtopo_error *error)
{
    size_t size = (size_t)c->probe->message_B;
    int status = gtopo_pattern_store(c->ends[stream->from], stream->offset, size, stream->seed, error);

    return status ? status : gtopo_pattern_poison(c->ends[!stream->from], stream->offset, size, stream->seed, error);
}

int gtopo_copy_check(struct gtopo_copy *c, const struct gtopo_copy_stream *stream, struct gtopo_error *error)
{
    size_t size = (size_t)c->probe->message_B, wrong;
    uint8_t is = 0, should = 0;
    int status =
        gtopo_pattern_compare(c->ends[!stream->from], stream->offset, size, stream->seed, &wrong, &is, &should, error);

    if (status || wrong == size)
        return status;
    return gtopo_fail(error, GTOPO_EDATA, "test that GPU and its memory (`dcgmi diag -r 3`)",
                      "GPU %s: byte %zu of a copy of %zu is 0x%02x and should be 0x%02x", stream->gpu->which, wrong,
                      size, is, should);
}

static int copy_verify(void *endpoint, struct gtopo_error *error)
{
    struct gtopo_copy *c = endpoint;
    int status = 0;

    if (!c->finished)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the data of a run that did not end cannot be checked");
    for (uint32_t i = 0; !status && i < c->count; i++)
        status = gtopo_copy_check(c, &c->streams[i], error);
    return status;
}

/* ---- opening ---- */

/* Host memory is locked by the GPU at the other end. */
static int pin_host(struct gtopo_copy *c, struct gtopo_error *error)
{
    const struct gtopo_region *host = c->gpus[0] ? c->ends[1] : c->ends[0];
    int status = c->gpu->memory->pin(c->gpu, host->data, host->size, error);

    c->pinned = !status;
    return status;
}

static int connect_peers(struct gtopo_copy *c, struct gtopo_error *error)
{
    int on = 0, reverse = 0, status;

    c->is_peer = c->gpus[0]->context != c->gpus[1]->context;
    if (!c->is_peer)
        return 0;
    status = gtopo_copy_peer_on(c, 0, &on, error);
    if (!status)
        status = gtopo_copy_peer_on(c, 1, &reverse, error);
    c->through_host = !on || !reverse;
    if (c->through_host) /* the processor may have to take part, so nothing may wait for it */
        snprintf(c->ungated, sizeof c->ungated, "the copies go through the host");
    return status;
}

static int open_stream(struct gtopo_copy *c, uint32_t number, struct gtopo_error *error)
{
    struct gtopo_copy_stream *stream = &c->streams[number];
    int result, status;

    stream->from = number >= c->probe->queue_pairs;
    stream->gpu = c->gpus[stream->from] ? c->gpus[stream->from] : c->gpus[!stream->from];
    stream->offset = number * slot_B(c->probe);
    stream->seed = (c->seed ^ (stream->from ? OTHER_DIRECTION : 0)) + number;
    if ((status = gtopo_gpu_enter(stream->gpu, error)))
        return status;
    result = c->cuda->cuStreamCreate(&stream->stream, GTOPO_CU_NON_BLOCKING);
    if (!result)
        result = c->cuda->cuEventCreate(&stream->done, GTOPO_CU_NO_TIMING);
    if (!result && !number)
        result = c->cuda->cuEventCreate(&c->start, 0);
    if (!result && !number)
        result = c->cuda->cuEventCreate(&c->end, 0);
    gtopo_gpu_leave(stream->gpu);
    if (result)
        return gtopo_cuda_fail(c->cuda, result, stream->gpu->which, "make a stream for copies", error);
    return gtopo_copy_prepare(c, stream, error);
}

static int open_streams(struct gtopo_copy *c, struct gtopo_error *error)
{
    uint32_t count = c->probe->queue_pairs * (c->probe->two_way ? 2 : 1);
    uint64_t patience_ns = c->deadline_ns / 2 < GATE_PATIENCE_NS ? c->deadline_ns / 2 : GATE_PATIENCE_NS;
    int status = 0;

    while (!status && c->count < count) {
        status = open_stream(c, c->count, error);
        c->count++; /* of one that failed, what there is has to be closed */
    }
    if (!status && !c->ungated[0] && c->probe->metric != GTOPO_LATENCY_ns)
        gtopo_copy_gate_open(&c->gate, c->gpu, patience_ns, c->ungated, sizeof c->ungated);
    return status;
}

static void close_streams(struct gtopo_copy *c)
{
    for (uint32_t i = c->count; i-- > 0;) {
        struct gtopo_copy_stream *stream = &c->streams[i];

        if (gtopo_gpu_enter(stream->gpu, NULL))
            continue;
        if (stream->stream)
            c->cuda->cuStreamDestroy_v2(stream->stream);
        if (stream->done)
            c->cuda->cuEventDestroy_v2(stream->done);
        if (!i && c->start)
            c->cuda->cuEventDestroy_v2(c->start);
        if (!i && c->end)
            c->cuda->cuEventDestroy_v2(c->end);
        gtopo_gpu_leave(stream->gpu);
    }
}

static void copy_close(void *endpoint)
{
    struct gtopo_copy *c = endpoint;

    if (!c)
        return;
    if (c->cuda)
        gtopo_copy_drain(c, NULL);
    if (c->gpu)
        gtopo_copy_gate_close(&c->gate, c->gpu);
    close_streams(c);
    for (int from = 0; from < 2; from++)
        gtopo_copy_peer_off(c, from);
    if (c->pinned)
        c->gpu->memory->unpin(c->gpu, (c->gpus[0] ? c->ends[1] : c->ends[0])->data);
    free(c);
}

static int copy_open(const struct gtopo_endpoint_options *options, void **endpoint, struct gtopo_error *error)
{
    struct gtopo_copy *c = calloc(1, sizeof *c);
    int status = 0;

    if (!c)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    c->probe = options->probe;
    c->seed = options->seed;
    c->deadline_ns = options->deadline_ns;
    for (int i = 0; i < 2; i++) {
        c->ends[i] = i ? options->other : options->region;
        c->gpus[i] = gtopo_gpu_of(c->ends[i]);
    }
    if (!c->gpus[0] && !c->gpus[1]) {
        status = gtopo_fail(error, GTOPO_EUSAGE, "let one end be the memory of a GPU",
                            "a copy is made by a GPU, and neither end is a GPU's memory");
        goto out;
    }
    c->gpu = c->ends[c->gpus[0] ? 0 : 1];
    c->cuda = gtopo_gpu_of(c->gpu)->cuda;
    status = c->gpus[0] && c->gpus[1] ? connect_peers(c, error) : pin_host(c, error);
    if (!status)
        status = open_streams(c, error);
out:
    if (status) {
        copy_close(c);
        return status;
    }
    *endpoint = c;
    return 0;
}

/* ---- for people ---- */

static const char *copy_method(const void *endpoint)
{
    const struct gtopo_probe_options *probe = ((const struct gtopo_copy *)endpoint)->probe;

    if (probe->metric == GTOPO_LATENCY_ns)
        return "one copy, from the call that starts it until its end is seen, polling, by the host's clock";
    if (probe->two_way)
        return "copies in both directions at once, queued before they start, timed by the GPU's events from the first "
               "start to the last end; both directions together";
    return "copies queued before they start, timed by the GPU's events from the first start to the last end";
}

static void copy_used(const void *endpoint, struct gtopo_probe_used *used)
{
    const struct gtopo_copy *c = endpoint;

    used->queue_pairs = (int32_t)c->probe->queue_pairs;
}

static void copy_describe(void *endpoint, char *text, size_t size)
{
    const struct gtopo_copy *c = endpoint;
    struct gtopo_memory_facts facts;
    const char *way = "";

    c->gpu->memory->facts(c->gpu, &facts);
    if (c->gpus[0] && c->gpus[1])
        way = !c->is_peer ? ", within the GPU" : c->through_host ? ", through the host" : ", peer access";
    snprintf(text, size, "copy engine of GPU %s (%s, %s), %s to %s%s%s, %u stream%s%s%s", c->streams[0].gpu->which,
             facts.name, facts.pci_address, c->gpus[0] ? "GPU" : "host", c->gpus[1] ? "GPU" : "host",
             c->probe->two_way ? " and back" : "", way, c->count, c->count == 1 ? "" : "s",
             c->ungated[0] ? "; no gate before the copies: " : "", c->ungated);
}

const struct gtopo_transport gtopo_transport_copy = {
    .abi = GTOPO_TRANSPORT_ABI,
    .name = "copy",
    .method = copy_method,
    .buffer_B = copy_buffer,
    .open = copy_open,
    .run = gtopo_copy_run,
    .verify = copy_verify,
    .describe = copy_describe,
    .used = copy_used,
    .close = copy_close,
};
