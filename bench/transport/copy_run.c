/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of transport "copy".
 *
 * Bandwidth is measured in bursts, as nvbandwidth does: all copies are queued behind a gate, and the GPU's events give
 * the time from the first start to the last end. The first stream leads: it waits for the gate and records the start,
 * for which the others wait; at the end it waits for them and records the end.
 */
#include "bench/transport/copy.h"
#include "bench/transport/loop.h"
#include <stdio.h>

/* The driver's queues hold about a thousand operations; what is behind a closed gate must fit. */
#define BURST_COPIES_MAX 256
#define UNKNOWN (-1.0)
#define BURST_MAX_B (UINT64_C(1) << 30) /* shorter than a deadline, on the slowest bus */

struct burst {
    struct gtopo_copy *c;
    const struct gtopo_gpu *entered; /* whose context the thread has */
    double unsampled_ns;             /* time and messages that no sample has yet */
    uint64_t unsampled;
};

/* ---- context ---- */

static void leave(struct burst *b)
{
    if (b->entered)
        gtopo_gpu_leave(b->entered);
    b->entered = NULL;
}

static int enter(struct burst *b, const struct gtopo_gpu *gpu, struct gtopo_error *error)
{
    int status;

    if (b->entered && b->entered->context == gpu->context)
        return 0;
    leave(b);
    status = gtopo_gpu_enter(gpu, error);
    b->entered = status ? NULL : gpu;
    return status;
}

static int refused(const struct gtopo_copy_stream *stream, int result, const char *what, struct gtopo_error *error)
{
    return result ? gtopo_cuda_fail(stream->gpu->cuda, result, stream->gpu->which, what, error) : 0;
}

/* ---- copies ---- */

static int queue_copy(struct burst *b, const struct gtopo_copy_stream *stream, struct gtopo_error *error)
{
    const struct gtopo_copy *c = b->c;
    const struct gtopo_gpu *source = c->gpus[stream->from], *target = c->gpus[!stream->from];
    uint8_t *from = (uint8_t *)c->ends[stream->from]->data + stream->offset;
    uint8_t *to = (uint8_t *)c->ends[!stream->from]->data + stream->offset;
    uint64_t from_address = (uint64_t)(uintptr_t)from, to_address = (uint64_t)(uintptr_t)to;
    size_t size = (size_t)c->probe->message_B;
    int result, status = enter(b, stream->gpu, error);

    if (status)
        return status;
    if (!source)
        result = c->cuda->cuMemcpyHtoDAsync_v2(to_address, from, size, stream->stream);
    else if (!target)
        result = c->cuda->cuMemcpyDtoHAsync_v2(to, from_address, size, stream->stream);
    else if (!c->is_peer)
        result = c->cuda->cuMemcpyDtoDAsync_v2(to_address, from_address, size, stream->stream);
    else
        result = c->cuda->cuMemcpyPeerAsync(to_address, target->context, from_address, source->context, size,
                                            stream->stream);
    return refused(stream, result, "copy", error);
}

static int queue_copies(struct burst *b, uint64_t each, struct gtopo_error *error)
{
    int status = 0;

    for (uint64_t n = 0; n < each; n++)
        for (uint32_t i = 0; !status && i < b->c->count; i++)
            status = queue_copy(b, &b->c->streams[i], error);
    return status;
}

/* ---- one burst ---- */

/* The gate, or where there is none a copy on each stream that is not timed, during which the others are queued. */
static int queue_lead(struct burst *b, struct gtopo_error *error)
{
    struct gtopo_copy *c = b->c;
    int result, status = enter(b, c->streams[0].gpu, error);

    if (status)
        return status;
    if (!c->ungated[0]) {
        result = gtopo_copy_gate_shut(&c->gate, c->cuda, c->streams[0].stream);
        if (!result)
            return 0;
        gtopo_copy_gate_release(&c->gate);
        snprintf(c->ungated, sizeof c->ungated, "the driver refused it (%d)", result);
    }
    return c->probe->verify_every ? 0 : queue_copies(b, 1, error);
}

static int queue_start(struct burst *b, struct gtopo_error *error)
{
    struct gtopo_copy *c = b->c;
    int status = enter(b, c->streams[0].gpu, error);

    if (!status)
        status =
            refused(&c->streams[0], c->cuda->cuEventRecord(c->start, c->streams[0].stream), "take the time", error);
    for (uint32_t i = 1; !status && i < c->count; i++)
        if (!(status = enter(b, c->streams[i].gpu, error)))
            status =
                refused(&c->streams[i], c->cuda->cuStreamWaitEvent(c->streams[i].stream, c->start, 0), "wait", error);
    return status;
}

static int queue_end(struct burst *b, struct gtopo_error *error)
{
    struct gtopo_copy *c = b->c;
    struct gtopo_cu_stream *first = c->streams[0].stream;
    int status = 0;

    for (uint32_t i = 1; !status && i < c->count; i++)
        if (!(status = enter(b, c->streams[i].gpu, error)))
            status = refused(&c->streams[i], c->cuda->cuEventRecord(c->streams[i].done, c->streams[i].stream),
                             "take the time", error);
    if (!status)
        status = enter(b, c->streams[0].gpu, error);
    for (uint32_t i = 1; !status && i < c->count; i++)
        status = refused(&c->streams[0], c->cuda->cuStreamWaitEvent(first, c->streams[i].done, 0), "wait", error);
    return status ? status : refused(&c->streams[0], c->cuda->cuEventRecord(c->end, first), "take the time", error);
}

static int late(const struct gtopo_copy *c, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_ETIMEOUT, "look at the kernel log (dmesg, \"Xid\"), or allow more with --deadline",
                      "GPU %s: copies of %llu bytes did not end within %.3g s", c->streams[0].gpu->which,
                      (unsigned long long)c->probe->message_B, (double)c->deadline_ns * 1e-9);
}

static int await_end(struct burst *b, double *ns, struct gtopo_error *error)
{
    const struct gtopo_copy *c = b->c;
    struct gtopo_wait wait;
    float ms = 0;
    int result, status = enter(b, c->streams[0].gpu, error);

    if (status)
        return status;
    gtopo_wait_init(&wait, NULL, c->deadline_ns, GTOPO_POLLS_A_LOOK(0));
    while ((result = c->cuda->cuEventQuery(c->end)) == GTOPO_CU_NOT_READY)
        if (gtopo_wait_expired(&wait))
            return late(c, error);
    if (!result)
        result = c->cuda->cuEventElapsedTime(&ms, c->start, c->end);
    *ns = (double)ms * 1e6;
    return refused(&c->streams[0], result, "copy", error);
}

/* So many copies on each stream, and how long they took; UNKNOWN when the processor was in the way. */
static int run_burst(struct burst *b, uint64_t each, double *ns, struct gtopo_error *error)
{
    struct gtopo_copy *c = b->c;
    int was_gated, in_time = 1, status = queue_lead(b, error);

    was_gated = !c->ungated[0];
    if (!status)
        status = queue_start(b, error);
    if (!status)
        status = queue_copies(b, each, error);
    if (!status)
        status = queue_end(b, error);
    if (was_gated)
        in_time = gtopo_copy_gate_release(&c->gate);
    if (!in_time)
        snprintf(c->ungated, sizeof c->ungated, "the driver did not take a batch behind one");
    if (!status)
        status = await_end(b, ns, error);
    if (!in_time)
        *ns = UNKNOWN;
    return status;
}

/* ---- bandwidth ---- */

static uint64_t burst_size(const struct gtopo_copy *c, uint64_t batch)
{
    uint64_t each = batch / c->count, most_B = BURST_MAX_B / c->probe->message_B / c->count;

    if (c->probe->verify_every) /* one that is overwritten by the next cannot be checked */
        return 1;
    if (each > BURST_COPIES_MAX / c->count)
        each = BURST_COPIES_MAX / c->count;
    if (each > most_B)
        each = most_B;
    return each ? each : 1;
}

/* Every batch of a burst, and of bursts that make one together, gets its share of the time. Non-zero ends the run. */
static int take_time(struct burst *b, const struct gtopo_run *run, uint64_t messages, double ns)
{
    double message_ns;

    if (ns < 0)
        return 0;
    b->unsampled += messages;
    b->unsampled_ns += ns;
    message_ns = b->unsampled_ns / (double)b->unsampled;
    while (b->unsampled >= run->batch && message_ns > 0) { /* less than the clock shows is kept for the next */
        b->unsampled -= run->batch;
        b->unsampled_ns = message_ns * (double)b->unsampled;
        if (run->sample(run->context, message_ns * (double)run->batch))
            return 1;
    }
    return 0;
}

static int each_stream(struct gtopo_copy *c,
                       int (*act)(struct gtopo_copy *, const struct gtopo_copy_stream *, struct gtopo_error *),
                       struct gtopo_error *error)
{
    int status = 0;

    for (uint32_t i = 0; !status && i < c->count; i++)
        status = act(c, &c->streams[i], error);
    return status;
}

static int run_bandwidth(struct burst *b, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_copy *c = b->c;
    uint64_t most = burst_size(c, run->batch), done = 0;
    int status = 0, ended = 0;

    while (!status && !ended) {
        uint64_t each = run->messages && run->messages - done < most ? run->messages - done : most;
        double ns = 0;

        if (c->probe->verify_every)
            status = each_stream(c, gtopo_copy_prepare, error);
        if (!status)
            status = run_burst(b, each, &ns, error);
        if (!status && c->probe->verify_every)
            status = each_stream(c, gtopo_copy_check, error);
        done += each;
        if (!status)
            ended = take_time(b, run, each * c->count, ns) || (run->messages && done >= run->messages);
    }
    return status;
}

/* ---- latency ---- */

static int run_latency(struct burst *b, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_copy *c = b->c;
    const struct gtopo_copy_stream *stream = &c->streams[0];
    struct gtopo_wait wait;
    uint64_t done = 0;
    int status, result;

    gtopo_wait_init(&wait, NULL, c->deadline_ns, GTOPO_POLLS_A_LOOK(0));
    for (;;) {
        uint64_t start_ns = gtopo_clock_ns();

        status = queue_copy(b, stream, error);
        if (status)
            return status;
        while ((result = c->cuda->cuStreamQuery(stream->stream)) == GTOPO_CU_NOT_READY)
            if (gtopo_wait_expired(&wait))
                return late(c, error);
        if (result)
            return refused(stream, result, "copy", error);
        if (run->sample(run->context, (double)(gtopo_clock_ns() - start_ns)) || ++done == run->messages)
            return 0;
        gtopo_wait_progress(&wait);
    }
}

/* ---- both ---- */

int gtopo_copy_drain(struct gtopo_copy *c, struct gtopo_error *error)
{
    struct burst b = {.c = c};
    int status = 0;

    for (uint32_t i = 0; !status && i < c->count; i++)
        if (c->streams[i].stream && !(status = enter(&b, c->streams[i].gpu, error)))
            status = gtopo_gpu_finish(c->streams[i].gpu, c->streams[i].stream, c->deadline_ns, error);
    leave(&b);
    return status;
}

int gtopo_copy_run(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_copy *c = endpoint;
    struct burst b = {.c = c};
    int status;

    c->finished = 0;
    status = c->probe->metric == GTOPO_LATENCY_ns ? run_latency(&b, run, error) : run_bandwidth(&b, run, error);
    leave(&b);
    if (status && status != GTOPO_ETIMEOUT) /* what was queued before the failure */
        gtopo_copy_drain(c, NULL);
    c->finished = !status;
    return status;
}
