/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU memory that the NIC cannot reach: host memory that both reach stands between, and the copies are part of what is
 * measured. Messages are cut into chunks; up to LANES of them are in different stages at once (copied from the GPU, on
 * the wire, copied to the other GPU), so that copies and wire work at the same time: the best that staging can do.
 *
 * Chunk k takes place k % LANES of the buffer at each staged end. Each is an RDMA write with immediate data, whichever
 * operation was asked for; the receiver answers with the number of chunks that have arrived where they belong (credits,
 * written into the sender's control word), and only then a place is used again. An end that is not staged reads from or
 * is written to in its own memory. One queue pair is used.
 */
#include "bench/transport/verbs.h"
#include "bench/transport/loop.h"
#include <endian.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES GTOPO_LANES_MAX
#define CHUNK_MAX_B ((size_t)512 << 10)
#define LINE_B ((size_t)64)
#define SENDS_MAX 12 /* work requests under way: chunks, credits and the last word */

struct gtopo_verbs_staging {
    struct gtopo_region host; /* what is sent, and behind it what is received: LANES chunks each */
    int pinned;
};

struct relay {
    struct gtopo_verbs *v;
    struct gtopo_wait wait;
    size_t chunk_B, place_B;
    uint64_t chunks;                  /* of a message */
    uint64_t loaded, loading, posted; /* chunks: copied from the GPU, begun to be, sent */
    uint64_t arrived, stored, told;   /* chunks: received, copied to the GPU, credited */
    uint64_t sends, sends_done;       /* work requests */
    uint64_t receives;                /* messages with immediate data that came */
    int last_came;
};

static size_t chunk_size(const struct gtopo_verbs *v)
{
    return v->message_B < CHUNK_MAX_B ? v->message_B : CHUNK_MAX_B;
}

static size_t place_size(const struct gtopo_verbs *v)
{
    return (chunk_size(v) + LINE_B - 1) / LINE_B * LINE_B;
}

int gtopo_verbs_staging_open(struct gtopo_verbs *v, struct gtopo_error *error)
{
    struct gtopo_verbs_staging *staging = calloc(1, sizeof *staging);
    int flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, status;

    if (gtopo_verbs_is_relaxed(v))
        flags |= IBV_ACCESS_RELAXED_ORDERING;
    if (!staging)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    v->staging = staging;
    staging->host = (struct gtopo_region){.memory = v->host, .numa = v->own->numa, .size = 2 * LANES * place_size(v)};
    status = v->host->allocate(&staging->host, error);
    if (!status)
        status = v->region->memory->pin(v->region, staging->host.data, staging->host.size, error);
    if (status)
        return status;
    staging->pinned = 1;
    v->address = (uintptr_t)staging->host.data;
    v->mr = ibv_reg_mr(v->pd, staging->host.data, staging->host.size, flags);
    return v->mr ? 0 : gtopo_verbs_fail_resource(v, "register memory", staging->host.size, error);
}

void gtopo_verbs_staging_close(struct gtopo_verbs *v)
{
    struct gtopo_verbs_staging *staging = v->staging;

    if (!staging)
        return;
    if (staging->pinned)
        v->region->memory->unpin(v->region, staging->host.data);
    if (staging->host.memory)
        staging->host.memory->release(&staging->host);
    free(staging);
    v->staging = NULL;
}

/* ---- places ---- */

static void prepare(struct relay *r, struct gtopo_verbs *v, const struct gtopo_run *run)
{
    memset(r, 0, sizeof *r);
    r->v = v;
    r->chunk_B = chunk_size(v);
    r->place_B = place_size(v);
    r->chunks = (v->message_B + r->chunk_B - 1) / r->chunk_B;
    gtopo_wait_init(&r->wait, run, v->deadline_ns, GTOPO_POLLS_A_LOOK(v->one_processor));
}

static size_t chunk_length(const struct relay *r, uint64_t chunk)
{
    size_t begin = (size_t)(chunk % r->chunks) * r->chunk_B;

    return r->v->message_B - begin < r->chunk_B ? r->v->message_B - begin : r->chunk_B;
}

static size_t send_offset(const struct relay *r, uint64_t chunk)
{
    return gtopo_verbs_send_offset(r->v, 0, chunk / r->chunks) + (size_t)(chunk % r->chunks) * r->chunk_B;
}

static size_t receive_offset(const struct relay *r, uint64_t chunk)
{
    return gtopo_verbs_receive_offset(r->v, 0, chunk / r->chunks) + (size_t)(chunk % r->chunks) * r->chunk_B;
}

static size_t send_place(const struct relay *r, uint64_t chunk)
{
    return (size_t)(chunk % LANES) * r->place_B;
}

static size_t receive_place(const struct relay *r, uint64_t chunk)
{
    return (LANES + (size_t)(chunk % LANES)) * r->place_B;
}

static uint8_t *staged(const struct relay *r, size_t place)
{
    return (uint8_t *)r->v->staging->host.data + place;
}

/* ---- moving ---- */

static int post(struct relay *r, struct ibv_send_wr *request, struct gtopo_error *error)
{
    struct ibv_send_wr *refused;
    int cause;

    request->send_flags = IBV_SEND_SIGNALED;
    cause = ibv_post_send(r->v->queues[0].qp, request, &refused);
    if (cause)
        return gtopo_verbs_fail_post(r->v, cause, error);
    r->sends++;
    return 0;
}

static int post_chunk(struct relay *r, struct gtopo_error *error)
{
    struct gtopo_verbs *v = r->v;
    struct ibv_sge piece = {
        .addr = v->address + (v->staging ? send_place(r, r->posted) : send_offset(r, r->posted)),
        .length = (uint32_t)chunk_length(r, r->posted),
        .lkey = v->mr->lkey,
    };
    struct ibv_send_wr request = {
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .wr.rdma = {v->peer_address + (v->peer_staged ? receive_place(r, r->posted) : receive_offset(r, r->posted)),
                    v->peer_key},
    };
    int status = post(r, &request, error);

    r->posted += !status;
    return status;
}

static int post_last(struct relay *r, struct gtopo_error *error)
{
    struct ibv_send_wr request = {
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
        .imm_data = htobe32(GTOPO_VERBS_LAST),
        .wr.rdma = {r->v->peer_control, r->v->peer_control_key},
    };

    return post(r, &request, error);
}

/* A later, higher number may go out in the place of an earlier one: it is as true. */
static int post_credit(struct relay *r, struct gtopo_error *error)
{
    int status = gtopo_verbs_send_word(r->v, 0, r->stored, error);

    r->told = r->stored;
    r->sends += !status;
    return status;
}

/* What was sent and what has come; more than 0 when something moved. */
static int poll_queues(struct relay *r, struct gtopo_error *error)
{
    struct ibv_wc wc;
    int moved = 0, count, status;

    while ((count = gtopo_verbs_poll(r->v, r->v->send_cq, 1, &wc, error)) > 0) {
        r->sends_done++;
        moved++;
    }
    while (count >= 0 && (count = gtopo_verbs_poll(r->v, r->v->receive_cq, 1, &wc, error)) > 0) {
        if (be32toh(wc.imm_data) & GTOPO_VERBS_LAST)
            r->last_came = 1;
        else
            r->arrived++;
        status = gtopo_verbs_post_receives(r->v, 0, r->v->receive_depth + r->receives++, 1, error);
        if (status)
            return status;
        moved++;
    }
    if (count < 0)
        return count;
    if (moved)
        gtopo_wait_progress(&r->wait);
    else if (gtopo_wait_expired(&r->wait))
        return gtopo_verbs_fail_expired(r->v, &r->wait, "chunk or credit", error);
    return moved;
}

static int may_send(const struct relay *r)
{
    return r->sends - r->sends_done < SENDS_MAX;
}

/* Copy from the GPU what may be copied, up to chunk number `end`, and send what is copied. */
static int push(struct relay *r, uint64_t end, uint64_t credited, struct gtopo_error *error)
{
    struct gtopo_verbs *v = r->v;
    int status = 0, done = 1;

    while (!status && v->staging && r->loading < end && r->loading < credited + LANES) {
        status = v->region->memory->lane_load(v->region, (unsigned)(r->loading % LANES), send_offset(r, r->loading),
                                              staged(r, send_place(r, r->loading)), chunk_length(r, r->loading), error);
        r->loading += !status;
    }
    while (!status && v->staging && r->loaded < r->loading && done > 0) {
        done = v->region->memory->lane_done(v->region, (unsigned)(r->loaded % LANES), error);
        status = done < 0 ? done : 0;
        r->loaded += done > 0;
    }
    if (!v->staging)
        r->loaded = end < credited + LANES ? end : credited + LANES;
    while (!status && r->posted < r->loaded && may_send(r))
        status = post_chunk(r, error);
    return status;
}

/* Copy to the GPU what has come; stored counts what is there. */
static int pull(struct relay *r, uint64_t *storing, struct gtopo_error *error)
{
    struct gtopo_verbs *v = r->v;
    int status = 0, done = 1;

    if (!v->staging) {
        r->stored = r->arrived;
        return 0;
    }
    while (!status && *storing < r->arrived) {
        status = v->region->memory->lane_store(v->region, (unsigned)(*storing % LANES), receive_offset(r, *storing),
                                               staged(r, receive_place(r, *storing)), chunk_length(r, *storing), error);
        *storing += !status;
    }
    while (!status && r->stored < *storing && done > 0) {
        done = v->region->memory->lane_done(v->region, (unsigned)(r->stored % LANES), error);
        status = done < 0 ? done : 0;
        r->stored += done > 0;
    }
    return status;
}

/* ---- bandwidth ---- */

static int finish(struct relay *r, int status, struct gtopo_error *error)
{
    while (status >= 0 && r->sends_done < r->sends)
        status = poll_queues(r, error);
    r->v->sent[0] = r->posted / r->chunks;
    r->v->received[0] = r->stored / r->chunks;
    return status < 0 ? status : 0;
}

/* Credits come from a peer: no more than was sent. */
static int read_credits(const struct relay *r, uint64_t *credited, struct gtopo_error *error)
{
    uint64_t now = r->v->control->in;

    if (now < *credited || now > r->posted)
        return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                          "the other end confirmed chunks that it was not sent");
    *credited = now;
    return 0;
}

/* The messages that so many chunks belong to, in chunks. */
static uint64_t whole_messages(const struct relay *r, uint64_t chunks)
{
    return (chunks + r->chunks - 1) / r->chunks * r->chunks;
}

static int run_bandwidth(struct relay *r, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_meter meter = {.run = run};
    uint64_t end = run->messages ? run->messages * r->chunks : UINT64_MAX - LANES, credited = 0, done = 0;
    int status = 0, ending = 0;

    while (status >= 0 && credited < end) {
        uint64_t before = credited;

        status = push(r, end, credited, error);
        if (!status)
            status = poll_queues(r, error);
        if (status >= 0) {
            int wrong = read_credits(r, &credited, error);

            status = wrong ? wrong : status;
        }
        if (status < 0 || credited == before)
            continue;
        gtopo_wait_progress(&r->wait);
        if (!ending && credited / r->chunks > done &&
            gtopo_meter_add(&meter, credited / r->chunks - done, gtopo_clock_ns())) {
            end = whole_messages(r, r->loading > r->posted ? r->loading : r->posted);
            ending = 1;
        }
        done = credited / r->chunks;
    }
    if (status >= 0)
        status = post_last(r, error);
    return finish(r, status, error);
}

static int serve_bandwidth(struct relay *r, struct gtopo_error *error)
{
    uint64_t storing = 0;
    int status = 0;

    while (status >= 0 && !(r->last_came && r->told == r->arrived)) {
        status = poll_queues(r, error);
        if (status < 0)
            break;
        status = pull(r, &storing, error);
        if (!status && r->stored > r->told && may_send(r))
            status = post_credit(r, error);
    }
    return finish(r, status, error);
}

/* ---- latency ---- */

/* A whole message to the other end: no credits, as its answer says that it came. */
static int send_message(struct relay *r, struct gtopo_error *error)
{
    uint64_t end = r->posted + r->chunks;
    int status = 0;

    while (status >= 0 && r->posted < end) {
        status = push(r, end, r->posted, error);
        if (!status && r->posted < end)
            status = poll_queues(r, error);
    }
    return status < 0 ? status : 0;
}

static int receive_message(struct relay *r, uint64_t *storing, struct gtopo_error *error)
{
    uint64_t end = r->stored + r->chunks;
    int status = 0;

    while (status >= 0 && r->stored < end && !r->last_came) {
        status = poll_queues(r, error);
        if (status >= 0)
            status = pull(r, storing, error);
    }
    return status < 0 ? status : 0;
}

static int run_latency(struct relay *r, const struct gtopo_run *run, struct gtopo_error *error)
{
    uint64_t storing = 0, turns = 0;
    int status = 0, ending = 0;

    while (!status && !ending) {
        uint64_t begin_ns = gtopo_clock_ns();

        status = send_message(r, error);
        if (!status)
            status = receive_message(r, &storing, error);
        if (!status)
            ending = run->sample(run->context, (double)(gtopo_clock_ns() - begin_ns) / 2) || ++turns == run->messages;
    }
    if (!status)
        status = post_last(r, error);
    return finish(r, status, error);
}

static int serve_latency(struct relay *r, struct gtopo_error *error)
{
    uint64_t storing = 0;
    int status = 0;

    while (!status && !r->last_came) {
        status = receive_message(r, &storing, error);
        if (!status && !r->last_came)
            status = send_message(r, error);
    }
    return finish(r, status, error);
}

/* ---- all ---- */

int gtopo_verbs_check_staged(const struct gtopo_verbs *v, struct gtopo_error *error)
{
    const struct gtopo_probe_options *probe = v->probe;
    int stored_by_copy = v->initiator ? v->peer_staged : v->staging != NULL; /* which needs no flush */
    const struct {
        int is_asked;
        const char *name;
    } ignored[] = {
        {probe->queue_pairs != 1, "queue_pairs"}, {probe->depth != 0, "depth"},
        {probe->moderation != 0, "moderation"},   {probe->post_list != 0, "post_list"},
        {probe->inline_B > 0, "inline_B"},        {probe->flush && !stored_by_copy, "flush"},
    };
    char hint[128];

    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        if (!ignored[i].is_asked)
            continue;
        snprintf(hint, sizeof hint, "leave %s out, or let the port reach the GPU's memory", ignored[i].name);
        return gtopo_fail(error, GTOPO_EUSAGE, hint,
                          "option %s is not honoured where GPU memory is staged through host memory", ignored[i].name);
    }
    return 0;
}

const char *gtopo_verbs_staged_method(const struct gtopo_probe_options *probe)
{
    if (probe->metric == GTOPO_LATENCY_ns)
        return "half a round trip of RDMA writes with immediate data, in chunks that are copied through host memory, "
               "polling for completions";
    return "RDMA writes with immediate data, in chunks that are copied through host memory, timed by what the other "
           "end says has come";
}

void gtopo_verbs_describe_staged(const struct gtopo_verbs *v, char *text, size_t size)
{
    snprintf(text, size, ", one queue pair, up to %d chunks of %zu bytes", LANES, chunk_size(v));
}

/* A ping-pong has all chunks of a message under way at once. */
static int check_size(const struct relay *r, struct gtopo_error *error)
{
    if (r->v->probe->metric != GTOPO_LATENCY_ns || r->chunks <= LANES)
        return 0;
    return gtopo_fail(error, GTOPO_EUSAGE, "use a smaller message",
                      "latency of staged memory is measured for messages of up to %zu bytes", LANES * CHUNK_MAX_B);
}

int gtopo_verbs_run_staged(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct relay r;
    int status;

    prepare(&r, v, run);
    status = check_size(&r, error);
    if (status)
        return status;
    return v->probe->metric == GTOPO_LATENCY_ns ? run_latency(&r, run, error) : run_bandwidth(&r, run, error);
}

int gtopo_verbs_serve_staged(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct relay r;
    int status;

    prepare(&r, v, run);
    status = check_size(&r, error);
    if (status)
        return status;
    return v->probe->metric == GTOPO_LATENCY_ns ? serve_latency(&r, error) : serve_bandwidth(&r, error);
}
