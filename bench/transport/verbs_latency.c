/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message at a time. The time of a turn runs from one post to the next, as perftest's does; the sample of a turn is
 * handed over, and what it used given back, while the next message is under way, so that nothing of ours stands between
 * an arrival and the answer.
 *
 * Where the processor can, it polls on the last byte of the message, which is its marker: 1 to 127, one more each turn,
 * so that a message that is there already is not taken for the next; MARKER_LAST on top says that it is the last one.
 * 0 is in memory before the first. Else a completion tells of each message.
 */
#include "bench/transport/verbs.h"
#include "bench/transport/loop.h"
#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#define MARKER_LAST 0x80

struct pingpong {
    struct gtopo_verbs *v;
    struct ibv_send_wr request;
    struct ibv_sge piece;
    struct gtopo_wait wait;
    uint64_t posted, completed, received;
    uint8_t *send;                  /* NULL where the processor cannot reach it */
    const volatile uint8_t *marker; /* in memory that the other end writes; NULL where completions tell */
    uint8_t turn;
};

static void prepare(struct pingpong *p, struct gtopo_verbs *v, const struct gtopo_run *run)
{
    size_t receive = gtopo_verbs_receive_offset(v, 0, 0);
    int polls = gtopo_verbs_polls_memory(v->probe);

    memset(p, 0, sizeof *p);
    p->v = v;
    p->turn = 1;
    p->piece.length = (uint32_t)v->message_B;
    p->piece.lkey = v->mr->lkey;
    p->request.sg_list = &p->piece;
    p->request.num_sge = 1;
    p->request.opcode = v->probe->operation == GTOPO_SEND ? IBV_WR_SEND_WITH_IMM
                        : polls                           ? IBV_WR_RDMA_WRITE
                                                          : IBV_WR_RDMA_WRITE_WITH_IMM;
    p->request.send_flags = IBV_SEND_SIGNALED | (v->inline_B ? IBV_SEND_INLINE : 0);
    p->request.wr.rdma.remote_addr = v->peer_address + receive;
    p->request.wr.rdma.rkey = v->peer_key;
    if (polls) {
        p->send = v->region->data;
        p->marker = (const uint8_t *)v->region->data + receive + v->message_B - 1;
    }
    gtopo_wait_init(&p->wait, run, v->deadline_ns, GTOPO_READS_A_LOOK(v->one_processor));
}

/* Look once for completions of what was posted: it is also where a peer that is gone shows. */
static int take_completion(struct pingpong *p, struct gtopo_error *error)
{
    struct ibv_wc wc;
    int count = gtopo_verbs_poll(p->v, p->v->send_cq, 1, &wc, error);

    if (count < 0)
        return count;
    p->completed += (uint64_t)count;
    return 0;
}

/* Nothing has come yet. Once in a while it is looked whether the post has failed, or the deadline has passed. */
static int still_nothing(struct pingpong *p, const char *awaited, struct gtopo_error *error)
{
    int status = 0;

    if (p->wait.polls % p->wait.polls_a_look == p->wait.polls_a_look - 1)
        status = take_completion(p, error);
    if (!status && gtopo_wait_expired(&p->wait))
        status = gtopo_verbs_fail_expired(p->v, &p->wait, awaited, error);
    return status;
}

/* Until at most `most` posts are not complete: only then may what they were posted from change. */
static int await_completions(struct pingpong *p, uint64_t most, struct gtopo_error *error)
{
    int status = take_completion(p, error);

    while (!status && p->posted - p->completed > most) {
        status = take_completion(p, error);
        if (!status && p->posted - p->completed > most && gtopo_wait_expired(&p->wait))
            status = gtopo_verbs_fail_expired(p->v, &p->wait, "completion", error);
    }
    return status;
}

static int post(struct pingpong *p, uint32_t immediate, uint8_t marker, struct gtopo_error *error)
{
    size_t offset = gtopo_verbs_send_offset(p->v, 0, p->posted);
    struct ibv_send_wr *refused;
    int cause;

    p->piece.addr = p->v->address + offset;
    p->request.imm_data = htobe32(immediate);
    if (p->send)
        p->send[offset + p->v->message_B - 1] = marker;
    cause = ibv_post_send(p->v->queues[0].qp, &p->request, &refused);
    if (cause)
        return gtopo_verbs_fail_post(p->v, cause, error);
    p->posted++;
    return 0;
}

/* ---- what comes ---- */

static int await_marker(struct pingpong *p, int *last, struct gtopo_error *error)
{
    uint8_t before = p->v->last_marker, marker;
    int status;

    while ((marker = *p->marker) == before) {
        status = still_nothing(p, "message in memory", error);
        if (status)
            return status;
    }
    atomic_thread_fence(memory_order_acquire);
    if ((marker & ~MARKER_LAST) != p->turn)
        return gtopo_fail(error, GTOPO_EDATA, "look at the error counters of the device",
                          "%s port %u: byte %zu of a message is 0x%02x and should be 0x%02x", p->v->own->device,
                          p->v->own->port, p->v->message_B - 1, marker, p->turn);
    p->v->last_marker = marker;
    *last = (marker & MARKER_LAST) != 0;
    return 0;
}

static int await_receive(struct pingpong *p, uint32_t *immediate, struct gtopo_error *error)
{
    struct ibv_wc wc;
    int count, status;

    while (!(count = gtopo_verbs_poll(p->v, p->v->receive_cq, 1, &wc, error))) {
        status = still_nothing(p, "message", error);
        if (status)
            return status;
    }
    if (count < 0)
        return count;
    *immediate = be32toh(wc.imm_data);
    return 0;
}

/* The other end's next message. The high bit of the immediate data says that it is the last, the rest how long the
 * other end's flush took. */
static int await_message(struct pingpong *p, int *last, uint32_t *flush_ns, struct gtopo_error *error)
{
    uint32_t immediate = 0;
    int status;

    if (p->marker)
        status = await_marker(p, last, error);
    else {
        status = await_receive(p, &immediate, error);
        *last = (immediate & GTOPO_VERBS_LAST) != 0;
        *flush_ns = immediate & ~GTOPO_VERBS_LAST;
    }
    if (status)
        return status;
    p->received++;
    gtopo_wait_progress(&p->wait);
    return 0;
}

/* Give back the receive request that was used, when there is time. */
static int refill(struct pingpong *p, struct gtopo_error *error)
{
    return p->marker ? 0 : gtopo_verbs_post_receives(p->v, 0, p->v->receive_depth + p->received - 1, 1, error);
}

/* ---- ping-pong ---- */

static void next_turn(struct pingpong *p)
{
    p->turn = (uint8_t)(p->turn % 127 + 1);
}

static int keep(struct gtopo_verbs *v, const struct pingpong *p, int status)
{
    v->sent[0] = p->posted;
    v->received[0] = p->received && gtopo_verbs_uses_receives(v->probe) && v->probe->operation == GTOPO_SEND
                         ? p->received
                         : p->received > 0; /* writes land in one place */
    return status;
}

/* Half of what a turn took; and with a flush, the half in which it was and the whole of it. */
static double one_way_ns(uint64_t turn_ns, uint32_t flush_ns)
{
    return ((double)turn_ns + flush_ns) / 2;
}

static int run_pingpong(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    uint64_t begin_ns, before_ns = 0, turns = 0;
    uint32_t flush_ns = 0, flush_before_ns = 0;
    struct pingpong p;
    int status = 0, last = 0, ending = 0;

    prepare(&p, v, run);
    while (!ending) {
        status = post(&p, 0, p.turn, error);
        if (status)
            return status;
        begin_ns = gtopo_clock_ns(); /* the same place in each turn, and while the message is under way */
        /* the turn before ended when this one began */
        if (turns && run->sample(run->context, one_way_ns(begin_ns - before_ns, flush_before_ns)))
            ending = 1;
        if (run->trace)
            run->trace->posted_ns[run->trace->posted++] = begin_ns;
        if (turns)
            status = refill(&p, error);
        if (!status)
            status = await_completions(&p, v->slots - 1, error);
        if (!status)
            status = await_message(&p, &last, &flush_ns, error);
        if (status)
            return status;
        before_ns = begin_ns;
        flush_before_ns = flush_ns;
        next_turn(&p);
        if (++turns == run->messages)
            ending = 1;
    }
    status = post(&p, GTOPO_VERBS_LAST, p.turn | MARKER_LAST, error);
    if (!status)
        status = await_completions(&p, 0, error);
    return keep(v, &p, status);
}

static int flush(struct gtopo_verbs *v, uint32_t *took_ns, struct gtopo_error *error)
{
    uint64_t begin_ns = gtopo_clock_ns(), end_ns;
    int status = v->region->memory->flush(v->region, error);

    end_ns = gtopo_clock_ns();
    *took_ns = end_ns - begin_ns < GTOPO_VERBS_LAST ? (uint32_t)(end_ns - begin_ns) : GTOPO_VERBS_LAST - 1;
    return status;
}

static int serve_pingpong(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    uint32_t ignored = 0, flush_ns = 0;
    struct pingpong p;
    int status, last = 0;

    prepare(&p, v, run);
    for (;;) {
        status = await_message(&p, &last, &ignored, error);
        if (!status && last)
            status = await_completions(&p, 0, error);
        if (status || last)
            return keep(v, &p, status);
        if (v->probe->flush)
            status = flush(v, &flush_ns, error);
        if (!status)
            status = post(&p, flush_ns, p.turn, error);
        if (!status)
            status = refill(&p, error);
        if (!status)
            status = await_completions(&p, v->slots - 1, error);
        if (status)
            return status;
        next_turn(&p);
    }
}

/* ---- the whole round trip ---- */

static void prepare_fetch(struct pingpong *p)
{
    struct gtopo_verbs *v = p->v;

    p->request.send_flags = IBV_SEND_SIGNALED;
    p->send = NULL;
    switch (v->probe->operation) {
    case GTOPO_READ:
        p->request.opcode = IBV_WR_RDMA_READ;
        p->piece.addr = v->address + gtopo_verbs_receive_offset(v, 0, 0);
        p->request.wr.rdma.remote_addr = v->peer_address + gtopo_verbs_send_offset(v, 0, 0);
        return;
    case GTOPO_FETCH_ADD:
        p->request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        break;
    default:
        p->request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    }
    p->piece.addr = v->address + gtopo_verbs_send_offset(v, 0, 0);
    p->request.wr.atomic.remote_addr = v->peer_address + gtopo_verbs_receive_offset(v, 0, 0);
    p->request.wr.atomic.rkey = v->peer_key;
    p->request.wr.atomic.compare_add = 1;
}

static int post_fetch(struct pingpong *p, struct gtopo_error *error)
{
    struct ibv_send_wr *refused;
    int cause;

    if (p->v->probe->operation == GTOPO_COMPARE_SWAP) {
        p->request.wr.atomic.compare_add = p->posted;
        p->request.wr.atomic.swap = p->posted + 1;
    }
    cause = ibv_post_send(p->v->queues[0].qp, &p->request, &refused);
    if (cause)
        return gtopo_verbs_fail_post(p->v, cause, error);
    p->posted++;
    return 0;
}

static int await_fetch(struct pingpong *p, struct gtopo_error *error)
{
    int status = 0;

    while (!status && p->completed < p->posted) {
        status = take_completion(p, error);
        if (!status && p->completed < p->posted && gtopo_wait_expired(&p->wait))
            status = gtopo_verbs_fail_expired(p->v, &p->wait, "answer", error);
    }
    gtopo_wait_progress(&p->wait);
    return status;
}

static int run_fetch(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    uint64_t begin_ns, before_ns = 0, seen = 0;
    struct pingpong p;
    int status = 0, ending = 0;

    prepare(&p, v, run);
    prepare_fetch(&p);
    while (!status && !ending) {
        status = post_fetch(&p, error);
        begin_ns = gtopo_clock_ns(); /* as in run_pingpong() */
        if (!status && p.posted > 1)
            ending = run->sample(run->context, (double)(begin_ns - before_ns));
        if (run->trace && !status)
            run->trace->posted_ns[run->trace->posted++] = begin_ns;
        before_ns = begin_ns;
        if (!status)
            status = await_fetch(&p, error);
        ending |= p.posted == run->messages;
    }
    if (!status && gtopo_operation_is_atomic(v->probe->operation))
        status = v->region->memory->load(v->region, gtopo_verbs_send_offset(v, 0, 0), &seen, sizeof seen, error);
    v->sent[0] = p.posted;
    v->received[0] = v->probe->operation == GTOPO_READ ? 1 : seen + 1;
    return status;
}

int gtopo_verbs_run_latency(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    return gtopo_operation_is_round_trip(v->probe->operation) ? run_fetch(v, run, error) : run_pingpong(v, run, error);
}

int gtopo_verbs_serve_latency(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    int status;

    if (gtopo_operation_is_round_trip(v->probe->operation))
        return 0;
    if (!v->probe->flush)
        return serve_pingpong(v, run, error);
    status = v->region->memory->begin_flush(v->region, error);
    if (status)
        return status;
    status = serve_pingpong(v, run, error);
    v->region->memory->end_flush(v->region);
    return status;
}
