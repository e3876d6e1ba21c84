/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events of the stand-in for libcuda.so.1; cuda.c says what it is. Each stream is a thread with a queue. */
#include "tests/fakes/cuda_fake.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct event { /* CUevent */
    struct context *context;
    unsigned flags, users; /* the program, and operations in queues */
    int destroyed;
    uint64_t recorded, reached; /* which of the records; 0: none */
    uint64_t time_ns;           /* of the one reached */
};

enum kind { COPY, FILL, RECORD, AWAIT_EVENT, AWAIT_VALUE };
struct operation {
    struct operation *next;
    enum kind kind;
    uint8_t *to;
    const uint8_t *from;
    size_t size;
    struct event *event;
    uint64_t turn; /* of the event */
    uint32_t value;
};

struct stream { /* CUstream */
    struct context *context;
    struct operation *first, **last;
    long pending; /* the one under way too */
    int closing;
};

static unsigned events;

#define BEGIN(needs)                                                                                                   \
    do {                                                                                                               \
        int begun = fake_begin(__func__, needs);                                                                       \
        if (begun)                                                                                                     \
            return begun;                                                                                              \
    } while (0)

/* ---- the GPU's side ---- */

static void let_go(struct event *event)
{
    if (--event->users)
        return;
    events--;
    free(event);
}

/* Under the lock, which is given up while it takes time. */
static void perform(const struct operation *o)
{
    switch (o->kind) {
    case COPY:
    case FILL:
        pthread_mutex_unlock(&fake_lock);
        if (o->kind == COPY)
            fake_copy(o->to, o->from, o->size);
        else
            memset(o->to, (int)o->value, o->size);
        pthread_mutex_lock(&fake_lock);
        break;
    case RECORD:
        o->event->reached = o->turn;
        o->event->time_ns = fake_now_ns();
        let_go(o->event);
        break;
    case AWAIT_EVENT:
        while (o->event->reached < o->turn)
            pthread_cond_wait(&fake_change, &fake_lock);
        let_go(o->event);
        break;
    case AWAIT_VALUE:
        pthread_mutex_unlock(&fake_lock);
        while ((int32_t)(__atomic_load_n((const uint32_t *)(const void *)o->from, __ATOMIC_ACQUIRE) - o->value) < 0)
            usleep(50);
        pthread_mutex_lock(&fake_lock);
        break;
    }
}

static void *work(void *context)
{
    struct stream *stream = context;

    pthread_mutex_lock(&fake_lock);
    for (;;) {
        struct operation *o = stream->first;

        if (!o && stream->closing)
            break;
        if (!o) {
            pthread_cond_wait(&fake_change, &fake_lock);
            continue;
        }
        perform(o);
        stream->first = o->next;
        if (!stream->first)
            stream->last = &stream->first;
        stream->pending--;
        stream->context->pending--;
        free(o);
        pthread_cond_broadcast(&fake_change);
    }
    stream->context->streams--;
    pthread_cond_broadcast(&fake_change);
    pthread_mutex_unlock(&fake_lock);
    free(stream);
    return NULL;
}

/* ---- the program's side ---- */

static struct stream *streams_of[DEVICES_MAX][1024]; /* those that are not closed */

static struct stream **place_of(const struct context *context, const struct stream *stream)
{
    struct stream **list = streams_of[context - fake_contexts];

    for (size_t i = 0; i < 1024; i++)
        if (list[i] == stream)
            return &list[i];
    fake_die(stream ? "a stream is used that is none" : "there are too many streams");
}

void fake_idle(const struct context *context, const char *who)
{
    uint64_t since_ns = fake_now_ns();

    while (context->pending)
        if (fake_await(since_ns))
            fake_die(who);
}

unsigned fake_stream_leftovers(void)
{
    uint64_t since_ns = fake_now_ns();
    unsigned left, open;

    pthread_mutex_lock(&fake_lock);
    do { /* streams that were closed may still be at work */
        left = open = 0;
        for (size_t i = 0; i < DEVICES_MAX; i++) {
            left += fake_contexts[i].streams;
            for (size_t n = 0; n < 1024; n++)
                open += streams_of[i][n] != NULL;
        }
    } while (left != open && !fake_await(since_ns));
    left += events;
    pthread_mutex_unlock(&fake_lock);
    return left;
}

static int is_usable(const struct stream *stream)
{
    return stream && stream->context == fake_current();
}

/* Queue an operation; takes over the reference of its event. */
static int queue(struct stream *stream, struct operation operation)
{
    struct operation *o = malloc(sizeof *o);
    uint64_t since_ns = fake_now_ns();

    if (!o)
        return OUT_OF_MEMORY;
    *o = operation;
    pthread_mutex_lock(&fake_lock);
    while (stream->pending >= fake_number("QUEUE", 1024))
        if (fake_await(since_ns))
            fake_die("a stream's queue is full, and what it waits for does not come");
    if (o->event && o->kind == RECORD)
        o->turn = ++o->event->recorded;
    else if (o->event)
        o->turn = o->event->recorded;
    if (o->event)
        o->event->users++;
    *stream->last = o;
    stream->last = &o->next;
    stream->pending++;
    stream->context->pending++;
    pthread_cond_broadcast(&fake_change);
    pthread_mutex_unlock(&fake_lock);
    return OK;
}

static void await_stream(const struct stream *stream, const char *who)
{
    uint64_t since_ns = fake_now_ns();

    pthread_mutex_lock(&fake_lock);
    while (stream->pending)
        if (fake_await(since_ns))
            fake_die(who);
    pthread_mutex_unlock(&fake_lock);
}

API int cuStreamCreate(struct stream **made, unsigned flags)
{
    struct stream *stream;
    pthread_t thread;

    BEGIN(NEEDS_CONTEXT);
    if (flags > 1)
        return INVALID_VALUE;
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return OUT_OF_MEMORY;
    stream->context = fake_current();
    stream->last = &stream->first;
    pthread_mutex_lock(&fake_lock);
    if (pthread_create(&thread, NULL, work, stream)) {
        pthread_mutex_unlock(&fake_lock);
        free(stream);
        return OUT_OF_MEMORY;
    }
    pthread_detach(thread);
    stream->context->streams++;
    *place_of(stream->context, NULL) = stream;
    pthread_mutex_unlock(&fake_lock);
    *made = stream;
    return OK;
}

API int cuStreamDestroy_v2(struct stream *stream)
{
    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    pthread_mutex_lock(&fake_lock);
    *place_of(stream->context, stream) = NULL;
    stream->closing = 1;
    pthread_cond_broadcast(&fake_change);
    pthread_mutex_unlock(&fake_lock);
    return OK;
}

API int cuStreamQuery(struct stream *stream)
{
    long pending;

    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    pthread_mutex_lock(&fake_lock);
    pending = stream->pending;
    pthread_mutex_unlock(&fake_lock);
    return pending ? NOT_READY : OK;
}

API int cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags)
{
    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream) || !event || flags)
        return INVALID_HANDLE;
    return queue(stream, (struct operation){.kind = AWAIT_EVENT, .event = event});
}

#ifndef GTOPO_FAKE_CUDA_OLD
API int cuStreamWaitValue32_v2(struct stream *stream, uint64_t address, uint32_t value, unsigned flags)
{
    const uint8_t *word = (const uint8_t *)(uintptr_t)(address - HOST_ALIAS);

    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    if (flags || address % 4)
        return INVALID_VALUE;
    if (address < HOST_ALIAS || !fake_is_pinned(word, 4))
        word = fake_bytes(address, 4, NULL);
    if (!word)
        return INVALID_VALUE;
    return queue(stream, (struct operation){.kind = AWAIT_VALUE, .from = word, .value = value});
}
#endif

/* ---- events ---- */

API int cuEventCreate(struct event **made, unsigned flags)
{
    struct event *event;

    BEGIN(NEEDS_CONTEXT);
    if (flags > 7)
        return INVALID_VALUE;
    event = calloc(1, sizeof *event);
    if (!event)
        return OUT_OF_MEMORY;
    event->context = fake_current();
    event->flags = flags;
    event->users = 1;
    pthread_mutex_lock(&fake_lock);
    events++;
    pthread_mutex_unlock(&fake_lock);
    *made = event;
    return OK;
}

API int cuEventDestroy_v2(struct event *event)
{
    BEGIN(NEEDS_CONTEXT);
    if (!event || event->destroyed)
        return INVALID_HANDLE;
    pthread_mutex_lock(&fake_lock);
    event->destroyed = 1;
    let_go(event);
    pthread_mutex_unlock(&fake_lock);
    return OK;
}

API int cuEventRecord(struct event *event, struct stream *stream)
{
    BEGIN(NEEDS_CONTEXT);
    if (!event || !is_usable(stream) || event->context != stream->context)
        return INVALID_HANDLE;
    return queue(stream, (struct operation){.kind = RECORD, .event = event});
}

API int cuEventQuery(struct event *event)
{
    int is_done;

    BEGIN(NEEDS_CONTEXT);
    if (!event)
        return INVALID_HANDLE;
    pthread_mutex_lock(&fake_lock);
    is_done = event->reached == event->recorded;
    pthread_mutex_unlock(&fake_lock);
    return is_done ? OK : NOT_READY;
}

API int cuEventElapsedTime(float *ms, struct event *start, struct event *end)
{
    int result = OK;

    BEGIN(NEEDS_CONTEXT);
    if (!start || !end || start->context != end->context || (start->flags | end->flags) & 2)
        return INVALID_HANDLE;
    pthread_mutex_lock(&fake_lock);
    if (!start->recorded || !end->recorded)
        result = INVALID_HANDLE;
    else if (start->reached != start->recorded || end->reached != end->recorded)
        result = NOT_READY;
    else
        *ms = (float)((double)(end->time_ns - start->time_ns) * 1e-6);
    pthread_mutex_unlock(&fake_lock);
    return result;
}

/* ---- copies ---- */

API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, struct stream *stream)
{
    uint8_t *target;

    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    target = fake_bytes(to, size, NULL);
    if (!target || !from || fake_bytes((uint64_t)(uintptr_t)from, 1, NULL))
        return INVALID_VALUE;
    if (fake_is_pinned(from, size))
        return queue(stream, (struct operation){.kind = COPY, .to = target, .from = from, .size = size});
    await_stream(stream, "a copy from memory that is not locked waits for a stream that waits");
    fake_copy(target, from, size);
    return OK;
}

API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, struct stream *stream)
{
    const uint8_t *source;
    int result;

    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    source = fake_bytes(from, size, NULL);
    if (!source || !to || fake_bytes((uint64_t)(uintptr_t)to, 1, NULL))
        return INVALID_VALUE;
    result = queue(stream, (struct operation){.kind = COPY, .to = to, .from = source, .size = size});
    if (!result && !fake_is_pinned(to, size))
        await_stream(stream, "a copy to memory that is not locked waits for a stream that waits");
    return result;
}

API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, struct stream *stream)
{
    uint8_t *target, *source;

    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    target = fake_bytes(to, size, NULL);
    source = fake_bytes(from, size, NULL);
    if (!target || !source)
        return INVALID_VALUE;
    return queue(stream, (struct operation){.kind = COPY, .to = target, .from = source, .size = size});
}

API int cuMemcpyPeerAsync(uint64_t to, struct context *to_context, uint64_t from, struct context *from_context,
                          size_t size, struct stream *stream)
{
    uint8_t *target, *source;

    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    target = fake_bytes(to, size, to_context);
    source = fake_bytes(from, size, from_context);
    if (!target || !source)
        return INVALID_VALUE;
    return queue(stream, (struct operation){.kind = COPY, .to = target, .from = source, .size = size});
}

API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, struct stream *stream)
{
    uint8_t *target;

    BEGIN(NEEDS_CONTEXT);
    if (!is_usable(stream))
        return INVALID_HANDLE;
    target = fake_bytes(to, size, NULL);
    if (!target)
        return INVALID_VALUE;
    return queue(stream, (struct operation){.kind = FILL, .to = target, .value = value, .size = size});
}
