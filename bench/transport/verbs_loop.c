/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over a connected queue pair. Nothing in them allocates, prints or calls the kernel but for the clock. */
#include "bench/transport/verbs.h"
#include "bench/transport/loop.h"
#include <stdatomic.h>
#include <string.h>

#define POLL_BATCH 16
/* As perftest: above this size every write is signalled, below it one in so many. */
#define SIGNAL_ALL_ABOVE_B 8192

/*
 * Latency. The last byte of a message is its marker: 1 to 127, one more each turn, so that a message that is there
 * already is not taken for the next; this bit on top says that it is the last message. 0 is in memory before the first.
 */
#define MARKER_LAST 0x80

/* ---- failures ---- */

struct advice {
    enum ibv_wc_status status;
    int code;
    const char *cause, *hint;
};

static const struct advice advices[] = {
    {IBV_WC_RETRY_EXC_ERR, GTOPO_EPEER, "the other end does not answer",
     "is its process alive? Then the path loses packets: check GID, VLAN, MTU, PFC and the port counters of both ends"},
    {IBV_WC_RNR_RETRY_EXC_ERR, GTOPO_EPEER, "the other end is not ready", "is its process alive?"},
    {IBV_WC_REM_ACCESS_ERR, GTOPO_EPEER, "the other end does not allow the access",
     "its memory was unregistered, most likely because its process ended: look at its error"},
    {IBV_WC_REM_OP_ERR, GTOPO_EPEER, "the other end failed to carry it out", "look at the other end's kernel log"},
    {IBV_WC_REM_INV_REQ_ERR, GTOPO_EPEER, "the other end takes it for invalid",
     "the two ends differ: run the same version on both"},
    {IBV_WC_LOC_PROT_ERR, GTOPO_EINTERNAL, "our memory is not registered as it should be", "report this defect"},
    {IBV_WC_LOC_LEN_ERR, GTOPO_EDEVICE, "the message is longer than the port can send", "use a smaller message"},
    {IBV_WC_WR_FLUSH_ERR, GTOPO_EDEVICE, "the queue pair broke before", "look at the kernel log (dmesg)"},
    {IBV_WC_FATAL_ERR, GTOPO_EDEVICE, "the device failed", "look at the kernel log (dmesg); reset the device"},
};

static int fail_completion(const struct gtopo_verbs *v, const struct ibv_wc *wc, struct gtopo_error *error)
{
    static const struct advice unknown = {0, GTOPO_EDEVICE, "the device refused", "look at the kernel log (dmesg)"};
    const struct advice *advice = &unknown;
    size_t i;

    for (i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].status == wc->status)
            advice = &advices[i];
    return gtopo_fail(error, advice->code, advice->hint,
                      "an RDMA write through %s port %u failed: %s: \"%s\" (status %d, vendor 0x%x)", v->device,
                      v->options.port, advice->cause, ibv_wc_status_str(wc->status), (int)wc->status, wc->vendor_err);
}

static int fail_expired(const struct gtopo_verbs *v, const char *awaited, struct gtopo_error *error)
{
    struct ibv_port_attr port;

    if (!ibv_query_port(v->context, (uint8_t)v->options.port, &port) && port.state != IBV_PORT_ACTIVE)
        return gtopo_fail(error, GTOPO_ELINKDOWN, "check the cable and the network device",
                          "the link of %s port %u went down: it is %s", v->device, v->options.port,
                          ibv_port_state_str(port.state));
    return gtopo_fail(
        error, GTOPO_ETIMEOUT, "is the other end alive? Look at its error, and at the port counters of both ends",
        "%s port %u: no %s for %.3g s", v->device, v->options.port, awaited, (double)v->options.deadline_ns * 1e-9);
}

static int fail_post(const struct gtopo_verbs *v, int cause, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                      "%s port %u does not take an RDMA write: %s", v->device, v->options.port, strerror(cause));
}

/* ---- bandwidth ---- */

struct writes {
    struct ibv_send_wr request;
    struct ibv_sge piece;
    uint64_t posted, completed;
    uint32_t moderation; /* one write in so many is signalled */
};

static void prepare_writes(const struct gtopo_verbs *v, struct writes *w)
{
    memset(w, 0, sizeof *w);
    w->piece.addr = (uintptr_t)v->send;
    w->piece.length = (uint32_t)v->options.message_B;
    w->piece.lkey = v->mr->lkey;
    w->request.sg_list = &w->piece;
    w->request.num_sge = 1;
    w->request.opcode = IBV_WR_RDMA_WRITE;
    w->request.wr.rdma.remote_addr = v->peer_address;
    w->request.wr.rdma.rkey = v->peer_key;
    w->request.send_flags = (v->inlined ? IBV_SEND_INLINE : 0);
    w->moderation = v->options.message_B > SIGNAL_ALL_ABOVE_B || v->options.depth < 8 ? 1 : v->options.depth / 4;
}

static int post_next(const struct gtopo_verbs *v, struct writes *w)
{
    size_t offset = w->posted % v->slots * v->slot_B;
    struct ibv_send_wr *refused;

    w->posted++;
    w->piece.addr = (uintptr_t)v->send + offset;
    w->request.wr.rdma.remote_addr = v->peer_address + offset;
    w->request.send_flags = w->posted % w->moderation ? 0 : IBV_SEND_SIGNALED;
    return ibv_post_send(v->qp, &w->request, &refused);
}

/* At the end: every slot was written, so that the other end can check them all, and the last write is signalled. */
static int may_end(const struct gtopo_verbs *v, const struct writes *w)
{
    return w->posted >= v->slots && w->posted % w->moderation == 0;
}

static int run_bandwidth(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_meter meter = {.run = run};
    struct gtopo_wait wait;
    struct ibv_wc wc[POLL_BATCH];
    struct writes w;
    int stopping = 0, status, arrived, i;

    gtopo_wait_init(&wait, v->options.deadline_ns);
    prepare_writes(v, &w);
    for (;;) {
        while (w.posted - w.completed < v->options.depth && !(stopping && may_end(v, &w))) {
            status = post_next(v, &w);
            if (status)
                return fail_post(v, status, error);
        }
        if (stopping && w.posted == w.completed)
            return 0;
        arrived = ibv_poll_cq(v->cq, POLL_BATCH, wc);
        if (arrived < 0)
            return gtopo_fail(error, GTOPO_EDEVICE, NULL, "%s: the completion queue failed", v->device);
        if (!arrived) {
            if (gtopo_wait_expired(&wait))
                return fail_expired(v, "completion of a write", error);
            continue;
        }
        for (i = 0; i < arrived; i++)
            if (wc[i].status != IBV_WC_SUCCESS)
                return fail_completion(v, &wc[i], error);
        gtopo_wait_progress(&wait);
        w.completed += (uint64_t)arrived * w.moderation;
        if (!stopping)
            stopping = gtopo_meter_add(&meter, (uint64_t)arrived * w.moderation, gtopo_clock_ns());
    }
}

/* ---- latency ---- */

struct pingpong {
    struct gtopo_verbs *v;
    struct writes writes;
    struct gtopo_wait wait;
    volatile uint8_t *sent_marker;
    const volatile uint8_t *marker; /* in memory that the other end writes */
    uint8_t turn;                   /* 1 to 127 */
};

static void prepare_pingpong(struct pingpong *p, struct gtopo_verbs *v)
{
    p->v = v;
    prepare_writes(v, &p->writes);
    p->writes.request.send_flags |= IBV_SEND_SIGNALED;
    gtopo_wait_init(&p->wait, v->options.deadline_ns);
    p->sent_marker = v->send + v->options.message_B - 1;
    p->marker = v->receive + v->options.message_B - 1;
    p->turn = 1;
}

/* Write, and wait until that is done: only then may the marker change, as the device may have to read it again. It is
 * also where a peer that is gone shows. */
static int ping(struct pingpong *p, uint8_t marker, struct gtopo_error *error)
{
    struct ibv_send_wr *refused;
    struct ibv_wc wc;
    int status, arrived;

    *p->sent_marker = marker;
    status = ibv_post_send(p->v->qp, &p->writes.request, &refused);
    if (status)
        return fail_post(p->v, status, error);
    while ((arrived = ibv_poll_cq(p->v->cq, 1, &wc)) == 0)
        if (gtopo_wait_expired(&p->wait))
            return fail_expired(p->v, "completion of a write", error);
    if (arrived < 0)
        return gtopo_fail(error, GTOPO_EDEVICE, NULL, "%s: the completion queue failed", p->v->device);
    if (wc.status != IBV_WC_SUCCESS)
        return fail_completion(p->v, &wc, error);
    gtopo_wait_progress(&p->wait);
    return 0;
}

/* Wait for this turn's marker in memory. */
static int await_marker(struct pingpong *p, int *last, struct gtopo_error *error)
{
    uint8_t before = p->v->last_marker, marker;

    while ((marker = *p->marker) == before)
        if (gtopo_wait_expired(&p->wait))
            return fail_expired(p->v, "answer in memory", error);
    atomic_thread_fence(memory_order_acquire);
    if ((marker & ~MARKER_LAST) != p->turn)
        return gtopo_fail(error, GTOPO_EDATA, "look at the error counters of the device",
                          "%s: byte %zu of a message is 0x%02x and should be 0x%02x", p->v->device,
                          p->v->options.message_B - 1, marker, p->turn);
    gtopo_wait_progress(&p->wait);
    p->v->last_marker = marker;
    *last = (marker & MARKER_LAST) != 0;
    return 0;
}

static void next_turn(struct pingpong *p)
{
    p->turn = (uint8_t)(p->turn % 127 + 1);
}

static int run_latency(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct pingpong p;
    int status = 0, last, ending = 0;

    prepare_pingpong(&p, v);
    while (!ending) {
        uint64_t start_ns = gtopo_clock_ns();

        status = ping(&p, p.turn, error);
        if (!status)
            status = await_marker(&p, &last, error);
        if (status)
            return status;
        ending = run->sample(run->context, (double)(gtopo_clock_ns() - start_ns) / 2);
        next_turn(&p);
    }
    return ping(&p, p.turn | MARKER_LAST, error);
}

static int serve_latency(struct gtopo_verbs *v, struct gtopo_error *error)
{
    struct pingpong p;
    int status, last = 0;

    prepare_pingpong(&p, v);
    for (;;) {
        status = await_marker(&p, &last, error);
        if (status || last)
            return status;
        status = ping(&p, p.turn, error);
        if (status)
            return status;
        next_turn(&p);
    }
}

int gtopo_verbs_run(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_verbs *v = endpoint;
    int status = v->options.metric == GTOPO_LATENCY_ns ? run_latency(v, run, error) : run_bandwidth(v, run, error);

    v->finished = !status;
    return status;
}

int gtopo_verbs_serve(void *endpoint, struct gtopo_error *error)
{
    struct gtopo_verbs *v = endpoint;
    int status = 0;

    if (v->options.metric == GTOPO_LATENCY_ns) /* bandwidth is served by the device */
        status = serve_latency(v, error);
    v->finished = !status;
    return status;
}

/* ---- the data ---- */

void gtopo_verbs_fill(struct gtopo_verbs *v)
{
    size_t slot, i;

    for (slot = 0; slot < v->slots; slot++)
        for (i = 0; i < v->options.message_B; i++) {
            v->send[slot * v->slot_B + i] = gtopo_pattern_byte(i);
            v->receive[slot * v->slot_B + i] = (uint8_t)~gtopo_pattern_byte(i);
        }
    if (v->options.metric == GTOPO_LATENCY_ns)
        v->receive[v->options.message_B - 1] = 0;
}

int gtopo_verbs_verify(void *endpoint, struct gtopo_error *error)
{
    const struct gtopo_verbs *v = endpoint;
    int latency = v->options.metric == GTOPO_LATENCY_ns;
    size_t slot, i, slots = latency ? 1 : v->slots;

    if (!v->finished)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the data of a run that did not end cannot be checked");
    if (!latency && v->options.initiator)
        return 0; /* nothing is written to this end */
    for (slot = 0; slot < slots; slot++)
        for (i = 0; i < v->options.message_B; i++) {
            uint8_t is = v->receive[slot * v->slot_B + i], want = gtopo_pattern_byte(i);

            if (latency && i == v->options.message_B - 1)
                want = v->last_marker;
            if (is != want)
                return gtopo_fail(error, GTOPO_EDATA,
                                  "look at the error counters of the device; run a memory test on both hosts",
                                  "%s port %u: byte %zu of a message of %zu is 0x%02x and should be 0x%02x", v->device,
                                  v->options.port, i, v->options.message_B, is, want);
        }
    return 0;
}
