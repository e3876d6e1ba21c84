/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many messages in flight. Requests are made once (verbs_ring.h), and a list is a stretch of their ring, so that what
 * is posted need not be touched message by message. Nothing from post to poll allocates, prints or calls the kernel but
 * for the clock.
 *
 * One loop serves every part an end can have: it drives (posts messages and counts their completions), it takes
 * (answers receives), or both. Ends of a two-way probe, where there is no message that could say so, tell each other of
 * start and stop by a control word.
 */
#include "bench/transport/verbs.h"
#include "bench/transport/loop.h"
#include "bench/transport/verbs_ring.h"
#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH 16
#define LIST_MAX 64
/* A work request's number: queue pair, messages that its completion stands for, and whether it is a control word. */
#define ID_CONTROL (UINT64_C(1) << 63)
#define ID_LAST (UINT64_C(1) << 62) /* one more than there were to be, and not to be counted */
#define ID(queue, messages) ((uint64_t)(queue) << 32 | (messages))
#define ID_QUEUE(id) ((uint32_t)((id) >> 32 & 0x3fff))
#define ID_MESSAGES(id) ((uint32_t)(id))

struct queue_state {
    struct gtopo_verbs_ring ring; /* of an end that drives */
    uint64_t posted, completed;
    uint64_t received, receives_posted;
    uint32_t unsignalled; /* messages since the last that has a completion */
    int last_sent, last_received;
};

struct stream {
    struct gtopo_verbs *v;
    struct gtopo_meter meter;
    struct gtopo_wait wait;
    struct gtopo_trace *trace;
    uint64_t messages; /* exactly so many a queue pair, or 0 */
    uint64_t round_ns; /* when this round began */
    uint64_t round;    /* messages of a queue pair up to the next check of the slots; UINT64_MAX for no checks */
    uint32_t list, moderation, depth;
    unsigned int flags; /* of a request without a completion */
    int drives, takes;
    int stopping; /* no more messages than are needed to end */
    int controls; /* control words under way */
    enum ibv_wr_opcode opcode, last_opcode;
    struct queue_state queues[GTOPO_VERBS_QUEUES_MAX];
};

/* ---- preparing ---- */

static const struct {
    enum ibv_wr_opcode opcode, last;
} opcodes[GTOPO_OPERATIONS] = {
    [GTOPO_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE},
    [GTOPO_READ] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_READ},
    [GTOPO_SEND] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM},
    [GTOPO_WRITE_IMM] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
    [GTOPO_FETCH_ADD] = {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
    [GTOPO_COMPARE_SWAP] = {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
};

/* Messages of a queue pair in a round, from number 1 on: one a slot; of a count the last round has what is left. */
static uint64_t round_size(const struct gtopo_verbs *v, uint64_t number)
{
    uint64_t before = (number - 1) * v->slots, all = v->probe->iterations;

    return all > before && all - before < v->slots ? all - before : v->slots;
}

static int prepare(struct stream *s, struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    const struct gtopo_probe_options *probe = v->probe;
    int status = 0;

    s->v = v;
    s->meter.run = run;
    s->trace = run ? run->trace : NULL;
    s->messages = run ? run->messages : 0;
    s->drives = run && run->sample;
    s->takes = gtopo_verbs_uses_receives(probe) && (probe->two_way || !v->initiator);
    s->depth = gtopo_options_depth(probe);
    s->moderation = gtopo_options_moderation(probe);
    s->list = gtopo_options_post_list(probe);
    s->flags = v->inline_B ? IBV_SEND_INLINE : 0;
    s->opcode = opcodes[probe->operation].opcode;
    s->last_opcode = opcodes[probe->operation].last;
    s->round = probe->verify_every ? round_size(v, 1) : UINT64_MAX;
    s->round_ns = gtopo_clock_ns();
    for (uint32_t q = 0; q < probe->queue_pairs; q++)
        s->queues[q].receives_posted = v->receive_depth;
    gtopo_wait_init(&s->wait, run, v->deadline_ns, GTOPO_POLLS_A_LOOK(v->one_processor));
    for (uint32_t q = 0; !status && s->drives && q < probe->queue_pairs; q++)
        status = gtopo_verbs_ring_open(&s->queues[q].ring, v, q, s->list, s->opcode, s->flags, error);
    return status;
}

/* ---- posting ---- */

/* May the driving of a queue pair end here? Every slot was written, so that the other end can check them all. */
static inline int may_end(const struct stream *s, const struct queue_state *state)
{
    return state->posted >= s->v->slots && !state->unsignalled;
}

/* Messages that a queue pair may be given now. */
static inline uint32_t room(const struct stream *s, const struct queue_state *state)
{
    uint64_t free = s->depth - (state->posted - state->completed), left = s->round - state->posted;

    if (state->last_sent)
        return 0;
    if (s->messages && s->messages - state->posted < left)
        left = s->messages - state->posted;
    else if (s->stopping) { /* up to the next one with a completion */
        if (may_end(s, state))
            return 0;
        if (s->moderation - state->unsignalled < left)
            left = s->moderation - state->unsignalled;
    }
    return (uint32_t)(left < free ? left : free);
}

/* Each compare-and-swap finds what the one before it left, and counts on. */
static void set_swaps(const struct queue_state *state, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct ibv_send_wr *request = gtopo_verbs_ring_request(&state->ring, i);

        request->wr.atomic.compare_add = state->posted + i;
        request->wr.atomic.swap = state->posted + i + 1;
    }
}

static inline void ask_completion(const struct stream *s, struct ibv_send_wr *request, uint32_t queue,
                                  uint32_t messages)
{
    request->send_flags = s->flags | IBV_SEND_SIGNALED;
    request->wr_id = ID(queue, messages);
}

/* What it does is for the list and for its completions: most messages cost nothing here. */
static int post_list(struct stream *s, uint32_t queue, uint32_t count)
{
    struct queue_state *state = &s->queues[queue];
    struct ibv_send_wr *last = gtopo_verbs_ring_request(&state->ring, count - 1), *after = last->next, *refused;
    uint32_t signalled = s->moderation - state->unsignalled, i; /* the first of the list, from 1 */
    int cause;

    if (s->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
        set_swaps(state, count);
    state->posted += count;
    state->unsignalled += count;
    for (i = signalled; i <= count; i += s->moderation) {
        ask_completion(s, gtopo_verbs_ring_request(&state->ring, i - 1), queue, s->moderation);
        state->unsignalled -= s->moderation;
    }
    if (state->unsignalled && (state->posted == s->messages || state->posted == s->round)) {
        ask_completion(s, last, queue, state->unsignalled);
        state->unsignalled = 0;
    }
    if (s->trace) {
        s->trace->posted_ns[s->trace->posted] = gtopo_clock_ns();
        s->trace->posted += count;
    }
    last->next = NULL;
    cause = ibv_post_send(s->v->queues[queue].qp, gtopo_verbs_ring_request(&state->ring, 0), &refused);
    last->next = after;
    for (i = signalled; i < count; i += s->moderation) /* they will be used again, for messages without */
        gtopo_verbs_ring_request(&state->ring, i - 1)->send_flags = s->flags;
    last->send_flags = s->flags;
    gtopo_verbs_ring_advance(&state->ring, count);
    return cause;
}

/* Give each queue pair what it may take, in lists: a few messages at once spare the device a doorbell each. */
static int fill(struct stream *s, struct gtopo_error *error)
{
    for (uint32_t q = 0; q < s->v->probe->queue_pairs; q++) {
        uint32_t count;

        while ((count = room(s, &s->queues[q]))) {
            int cause;

            if (count > s->list)
                count = s->list;
            cause = post_list(s, q, count);
            if (cause)
                return gtopo_verbs_fail_post(s->v, cause, error);
        }
    }
    return 0;
}

/* The last message of each queue pair says that it is, where the other end counts messages. */
static int send_last(struct stream *s, struct gtopo_error *error)
{
    for (uint32_t q = 0; q < s->v->probe->queue_pairs; q++) {
        struct queue_state *state = &s->queues[q];
        struct ibv_send_wr *refused, last;
        int cause;

        if (state->last_sent || state->posted != state->completed)
            continue;
        last = *gtopo_verbs_ring_request(&state->ring, 0);
        last.next = NULL;
        last.opcode = s->last_opcode;
        last.imm_data = htobe32(GTOPO_VERBS_LAST);
        last.send_flags = s->flags | IBV_SEND_SIGNALED;
        last.wr_id = ID(q, 1) | ID_LAST;
        state->last_sent = 1;
        gtopo_verbs_ring_advance(&state->ring, 1);
        state->posted++;
        cause = ibv_post_send(s->v->queues[q].qp, &last, &refused);
        if (cause)
            return gtopo_verbs_fail_post(s->v, cause, error);
    }
    return 0;
}

int gtopo_verbs_send_word(struct gtopo_verbs *v, uint64_t id, uint64_t word, struct gtopo_error *error)
{
    struct ibv_sge piece = {(uintptr_t)&v->control->out, sizeof v->control->out, v->control_mr->lkey};
    struct ibv_send_wr *refused, request = {
                                     .wr_id = id,
                                     .sg_list = &piece,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .wr.rdma = {v->peer_control, v->peer_control_key},
                                 };
    int cause;

    v->control->out = word;
    cause = ibv_post_send(v->queues[0].qp, &request, &refused);
    return cause ? gtopo_verbs_fail_post(v, cause, error) : 0;
}

static int send_word(struct stream *s, uint64_t word, struct gtopo_error *error)
{
    int status = gtopo_verbs_send_word(s->v, ID_CONTROL, word, error);

    s->controls += !status;
    return status;
}

/* ---- completions ---- */

/* Messages of ours that are done; negative on failure. */
static int take_completions(struct stream *s, uint64_t *done, struct gtopo_error *error)
{
    struct ibv_wc wc[POLL_BATCH];
    int count = gtopo_verbs_poll(s->v, s->v->send_cq, POLL_BATCH, wc, error);

    *done = 0;
    for (int i = 0; i < count; i++) {
        if (wc[i].wr_id & ID_CONTROL) {
            s->controls--;
            continue;
        }
        s->queues[ID_QUEUE(wc[i].wr_id)].completed += ID_MESSAGES(wc[i].wr_id);
        if (!(wc[i].wr_id & ID_LAST))
            *done += ID_MESSAGES(wc[i].wr_id);
    }
    return count;
}

int gtopo_verbs_post_receives(struct gtopo_verbs *v, uint32_t queue, uint64_t first, uint32_t count,
                              struct gtopo_error *error)
{
    struct ibv_recv_wr requests[LIST_MAX], *refused;
    struct ibv_sge pieces[LIST_MAX];
    int takes_data = v->probe->operation == GTOPO_SEND && !gtopo_verbs_is_staged(v), cause;

    while (count) {
        uint32_t part = count < LIST_MAX ? count : LIST_MAX;

        for (uint32_t i = 0; i < part; i++) {
            pieces[i] = (struct ibv_sge){v->address + gtopo_verbs_receive_offset(v, queue, first + i),
                                         (uint32_t)v->message_B, v->mr->lkey};
            /* what a write brings lies where the writer says */
            requests[i] = (struct ibv_recv_wr){queue, requests + i + 1, &pieces[i], takes_data};
        }
        requests[part - 1].next = NULL;
        cause = ibv_post_recv(v->queues[queue].qp, requests, &refused);
        if (cause)
            return gtopo_verbs_fail_post(v, cause, error);
        first += part;
        count -= part;
    }
    return 0;
}

/* Messages of the other end; negative on failure. */
static int take_receives(struct stream *s, struct gtopo_error *error)
{
    uint32_t refill = s->v->receive_depth / 8 ? s->v->receive_depth / 8 : 1;
    struct ibv_wc wc[POLL_BATCH];
    int count = gtopo_verbs_poll(s->v, s->v->receive_cq, POLL_BATCH, wc, error), status;

    for (int i = 0; i < count; i++) {
        uint32_t q = (uint32_t)wc[i].wr_id;
        struct queue_state *state = &s->queues[q];

        state->received++;
        if (wc[i].wc_flags & IBV_WC_WITH_IMM && be32toh(wc[i].imm_data) & GTOPO_VERBS_LAST)
            state->last_received = 1;
        if (state->received + s->v->receive_depth - state->receives_posted < refill)
            continue;
        status = gtopo_verbs_post_receives(s->v, q, state->receives_posted, refill, error);
        if (status)
            return status;
        state->receives_posted += refill;
    }
    return count;
}

/* ---- the loop ---- */

/* What this end drove is done: nothing is under way, and the other end was told where it counts. */
static int drained(const struct stream *s)
{
    if (s->controls)
        return 0;
    for (uint32_t q = 0; s->drives && q < s->v->probe->queue_pairs; q++) {
        const struct queue_state *state = &s->queues[q];

        if (state->posted != state->completed || !s->stopping)
            return 0;
        if (gtopo_verbs_uses_receives(s->v->probe) && !state->last_sent)
            return 0;
        if (!s->messages && !may_end(s, state) && !state->last_sent)
            return 0;
    }
    return 1;
}

static int taken(const struct stream *s)
{
    for (uint32_t q = 0; s->takes && q < s->v->probe->queue_pairs; q++)
        if (!s->queues[q].last_received)
            return 0;
    return 1;
}

static int all_completed(const struct stream *s, uint64_t messages)
{
    for (uint32_t q = 0; q < s->v->probe->queue_pairs; q++)
        if (s->queues[q].completed < messages)
            return 0;
    return 1;
}

/* Before its count, if it had one. */
static void stop_early(struct stream *s)
{
    s->stopping = 1;
    s->messages = 0;
    s->trace = NULL;
}

static void count_done(struct stream *s, uint64_t done)
{
    uint64_t now_ns = gtopo_clock_ns();

    if (s->trace) {
        s->trace->completed_ns[s->trace->completed] = now_ns;
        s->trace->completed += done;
    }
    if (!s->stopping && s->round == UINT64_MAX && gtopo_meter_add(&s->meter, done, now_ns))
        stop_early(s);
    if (s->messages && all_completed(s, s->messages))
        s->stopping = 1;
}

static int await_word(struct stream *s, uint64_t word, struct gtopo_error *error)
{
    while (s->v->control->in < word)
        if (gtopo_wait_expired(&s->wait))
            return gtopo_verbs_fail_expired(s->v, &s->wait, "word of the other end", error);
    atomic_thread_fence(memory_order_acquire);
    gtopo_wait_progress(&s->wait);
    return 0;
}

static void keep_counts(struct stream *s)
{
    struct gtopo_verbs *v = s->v;
    int fetches = v->probe->operation == GTOPO_READ;
    int takes = v->probe->two_way || (fetches ? v->initiator : !v->initiator);

    for (uint32_t q = 0; q < v->probe->queue_pairs; q++) {
        v->sent[q] = s->queues[q].posted;
        if (gtopo_verbs_uses_receives(v->probe))
            v->received[q] = s->queues[q].received;
        else if (!takes)
            v->received[q] = 0;
        else if (fetches)
            v->received[q] = s->queues[q].posted;
        else /* nothing tells this end of each: as many as were asked for, or else at least one in every slot */
            v->received[q] = v->probe->iterations ? v->probe->iterations : v->slots;
    }
}

/* ---- continuous checks ---- */

/*
 * Each slot of the round was written once: the end that has received compares them all and poisons them, and then the
 * next round may begin. A sample is a whole round, from its first post to its last completion, without the check.
 */
static int check_round(struct stream *s, struct gtopo_error *error)
{
    struct gtopo_verbs *v = s->v;
    const struct gtopo_run *run = s->meter.run;
    uint64_t number = (s->round + v->slots - 1) / v->slots, size = round_size(v, number), now_ns = gtopo_clock_ns();
    double message_ns = (double)(now_ns - s->round_ns) / (double)(size * v->probe->queue_pairs);
    int status;

    if (!s->stopping && run->sample(run->context, message_ns * (double)run->batch))
        stop_early(s);
    if (v->probe->operation == GTOPO_READ)
        status = gtopo_verbs_check_round(v, size, error);
    else {
        status = send_word(s, GTOPO_VERBS_ROUND + number, error);
        if (!status)
            status = await_word(s, GTOPO_VERBS_ROUND + number, error);
    }
    s->round += round_size(v, number + 1);
    s->round_ns = gtopo_clock_ns();
    return status;
}

/* The other end's part, when a round is over. */
static int serve_round(struct stream *s, uint64_t *answered, struct gtopo_error *error)
{
    uint64_t word = s->v->control->in;
    int status;

    if (word < GTOPO_VERBS_ROUND || word == *answered || word == GTOPO_VERBS_STOP)
        return 0;
    *answered = word;
    atomic_thread_fence(memory_order_acquire);
    status = gtopo_verbs_check_round(s->v, round_size(s->v, word - GTOPO_VERBS_ROUND), error);
    return status ? status : send_word(s, word, error);
}

static int step(struct stream *s, struct gtopo_error *error)
{
    uint64_t done = 0;
    int status = 0, moved = 0;

    if (s->drives) {
        status = fill(s, error);
        if (!status && s->stopping && gtopo_verbs_uses_receives(s->v->probe))
            status = send_last(s, error);
        if (status)
            return status;
    }
    moved = take_completions(s, &done, error);
    if (moved < 0)
        return moved;
    if (done)
        count_done(s, done);
    if (s->drives && s->round != UINT64_MAX && all_completed(s, s->round)) {
        status = check_round(s, error);
        if (status)
            return status;
    }
    if (s->takes) {
        status = take_receives(s, error);
        if (status < 0)
            return status;
        moved += status;
    }
    if (moved)
        gtopo_wait_progress(&s->wait);
    else if (gtopo_wait_expired(&s->wait))
        return gtopo_verbs_fail_expired(s->v, &s->wait, s->drives ? "completion" : "message", error);
    return 0;
}

/* The answer to the last atomic operation of each queue pair says how many the counter has seen before. */
static int read_counters(struct stream *s, struct gtopo_error *error)
{
    struct gtopo_verbs *v = s->v;
    int status = 0;

    for (uint32_t q = 0; !status && v->initiator && q < v->probe->queue_pairs; q++) {
        uint64_t before = 0;
        size_t offset = gtopo_verbs_send_offset(v, q, s->queues[q].posted - 1);

        status = v->region->memory->load(v->region, offset, &before, sizeof before, error);
        v->received[q] = before + 1;
    }
    return status;
}

static int finish(struct stream *s, int status, struct gtopo_error *error)
{
    if (!status)
        keep_counts(s);
    if (!status && gtopo_operation_is_atomic(s->v->probe->operation))
        status = read_counters(s, error);
    for (uint32_t q = 0; q < s->v->probe->queue_pairs; q++)
        gtopo_verbs_ring_close(&s->queues[q].ring);
    free(s);
    return status;
}

int gtopo_verbs_run_bandwidth(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    int words = v->probe->two_way || v->probe->verify_every;
    struct stream *s = calloc(1, sizeof *s);
    int status = 0;

    if (!s)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    status = prepare(s, v, run, error);
    if (!status && v->probe->two_way)
        status = send_word(s, GTOPO_VERBS_START, error);
    while (!status && !drained(s))
        status = step(s, error);
    if (!status && words)
        status = send_word(s, GTOPO_VERBS_STOP, error);
    while (!status && !(drained(s) && taken(s)))
        status = step(s, error);
    if (!status && v->probe->two_way)
        status = await_word(s, GTOPO_VERBS_STOP, error);
    return finish(s, status, error);
}

int gtopo_verbs_serve_bandwidth(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    int words = v->probe->two_way || v->probe->verify_every, status = 0;
    struct stream *s = calloc(1, sizeof *s);
    uint64_t answered = 0;

    if (!s)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    status = prepare(s, v, run, error);
    if (!status && s->drives)
        status = await_word(s, GTOPO_VERBS_START, error);
    while (!status && !(drained(s) && taken(s) && (!words || v->control->in == GTOPO_VERBS_STOP))) {
        if (s->drives && v->control->in == GTOPO_VERBS_STOP)
            s->stopping = 1;
        status = step(s, error);
        if (!status && v->probe->verify_every)
            status = serve_round(s, &answered, error);
    }
    if (!status && s->drives)
        status = send_word(s, GTOPO_VERBS_STOP, error);
    while (!status && !drained(s))
        status = step(s, error);
    return finish(s, status, error);
}
