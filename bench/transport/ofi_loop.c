/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over a libfabric endpoint. Nothing in them allocates or prints. */
#include "bench/transport/ofi.h"
#include <endian.h>
#include <rdma/fi_errno.h>
#include <string.h>

#define POLL_BATCH 16
#define CREDIT_B sizeof(uint64_t)

/* Receives that completed in one poll. */
struct arrivals {
    size_t count;
    struct {
        struct gtopo_ofi_operation *operation;
        size_t size;
    } of[POLL_BATCH];
};

/* ---- failures ---- */

static int fail_operation(struct gtopo_ofi *o, struct gtopo_error *error)
{
    struct fi_cq_err_entry entry = {0};
    char text[128] = "";

    if (fi_cq_readerr(o->cq, &entry, 0) != 1)
        return gtopo_ofi_fail(o, FI_EOTHER, "an operation", error);
    fi_cq_strerror(o->cq, entry.prov_errno, entry.err_data, text, sizeof text);
    if (entry.err == FI_ETRUNC)
        return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                          "provider %s: the other end sent a message that is too long", o->provider);
    return gtopo_ofi_fail(o, entry.err, text[0] ? text : "an operation", error);
}

static int fail_expired(const struct gtopo_ofi *o, const struct gtopo_wait *wait, struct gtopo_error *error)
{
    if (wait->given_up)
        return gtopo_wait_fail_given_up(error);
    return gtopo_fail(error, GTOPO_ETIMEOUT, "is the other end alive? Look at its error",
                      "provider %s: nothing came from the other end for %.3g s", o->provider,
                      (double)o->deadline_ns * 1e-9);
}

/* ---- moving on ---- */

/* Look once at what completed: sends are freed, receives are told. */
static int poll_once(struct gtopo_ofi *o, struct arrivals *arrivals, struct gtopo_wait *wait, struct gtopo_error *error)
{
    struct fi_cq_msg_entry entries[POLL_BATCH];
    ssize_t count = fi_cq_read(o->cq, entries, POLL_BATCH), i;

    atomic_fetch_add_explicit(&o->beats, 1, memory_order_relaxed);
    arrivals->count = 0;
    if (count == -FI_EAGAIN || count == 0)
        return gtopo_wait_expired(wait) ? fail_expired(o, wait, error) : 0;
    if (count == -FI_EAVAIL)
        return fail_operation(o, error);
    if (count < 0)
        return gtopo_ofi_fail(o, (int)-count, "the completion queue", error);
    for (i = 0; i < count; i++) {
        struct gtopo_ofi_operation *operation = entries[i].op_context;

        if (!operation->receives) {
            o->free_sends[o->free_send_count++] = operation;
            continue;
        }
        arrivals->of[arrivals->count].operation = operation;
        arrivals->of[arrivals->count++].size = entries[i].len;
        gtopo_wait_progress(wait); /* that a send left does not say that the other end lives */
    }
    return 0;
}

static void *description(const struct gtopo_ofi *o)
{
    return o->mr ? fi_mr_desc(o->mr) : NULL;
}

int gtopo_ofi_post_receive(struct gtopo_ofi *o, struct gtopo_ofi_operation *operation, struct gtopo_error *error)
{
    ssize_t status =
        fi_recv(o->ep, operation->data, operation->size, description(o), FI_ADDR_UNSPEC, &operation->context);

    return status ? gtopo_ofi_fail(o, (int)-status, "to receive", error) : 0;
}

/* 1: sent; 0: not now; else a status. */
static int try_send(struct gtopo_ofi *o, const uint8_t *data, size_t size, struct gtopo_error *error)
{
    struct gtopo_ofi_operation *operation;
    ssize_t status;

    if (!o->free_send_count)
        return 0;
    operation = o->free_sends[o->free_send_count - 1];
    status = fi_send(o->ep, data, size, description(o), o->peer, &operation->context);
    if (status == -FI_EAGAIN)
        return 0;
    if (status)
        return gtopo_ofi_fail(o, (int)-status, "to send", error);
    o->free_send_count--;
    return 1;
}

/* Sends that are not complete may still need us to move them on. */
static int drain(struct gtopo_ofi *o, struct gtopo_wait *wait, struct gtopo_error *error)
{
    struct arrivals arrivals;
    int status = 0;

    while (!status && o->free_send_count < o->send_count)
        status = poll_once(o, &arrivals, wait, error);
    return status;
}

/* ---- bandwidth, the initiator ---- */

struct stream {
    uint64_t sent;       /* but for the last one, which is longer */
    uint64_t uncredited; /* messages sent of which the other end has not said that it has them */
    int stopping, stop_sent;
    struct gtopo_meter meter;
    struct gtopo_wait wait;
};

/* Send what may be sent. */
static int fill_stream(struct gtopo_ofi *o, struct stream *s, struct gtopo_error *error)
{
    uint64_t most = s->meter.run->messages, depth = gtopo_options_depth(o->probe);
    int sent = 1;

    while (sent == 1 && !s->stopping && s->uncredited < depth) {
        sent = try_send(o, o->message, o->message_B, error);
        s->uncredited += sent == 1;
        s->sent += sent == 1;
        s->stopping = most && s->sent == most;
    }
    if (sent >= 0 && s->stopping && !s->stop_sent) {
        sent = try_send(o, o->message, o->message_B + 1, error);
        s->stop_sent = sent == 1;
        s->uncredited += sent == 1;
    }
    return sent < 0 ? sent : 0;
}

static int take_credits(struct gtopo_ofi *o, struct stream *s, const struct arrivals *arrivals,
                        struct gtopo_error *error)
{
    uint64_t credited = 0;
    size_t i;
    int status;

    for (i = 0; i < arrivals->count; i++) {
        uint64_t credit = 0;

        if (arrivals->of[i].size == CREDIT_B)
            memcpy(&credit, arrivals->of[i].operation->data, sizeof credit);
        credit = le64toh(credit);
        if (!credit || credit > s->uncredited - credited)
            return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                              "provider %s: the other end confirmed messages that it was not sent", o->provider);
        credited += credit;
        status = gtopo_ofi_post_receive(o, arrivals->of[i].operation, error);
        if (status)
            return status;
    }
    s->uncredited -= credited;
    /* of a given number the last ones are still under way when all are sent */
    if (credited && (!s->stopping || s->meter.run->messages) && gtopo_meter_add(&s->meter, credited, gtopo_clock_ns()))
        s->stopping = 1;
    return 0;
}

static int run_bandwidth(struct gtopo_ofi *o, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct stream s = {.meter = {.run = run}};
    struct arrivals arrivals;
    int status = 0;

    gtopo_wait_init(&s.wait, run, o->deadline_ns, GTOPO_POLLS_A_LOOK(o->one_processor));
    while (!status && !(s.stop_sent && !s.uncredited)) {
        status = fill_stream(o, &s, error);
        if (!status)
            status = poll_once(o, &arrivals, &s.wait, error);
        if (!status)
            status = take_credits(o, &s, &arrivals, error);
    }
    return status ? status : drain(o, &s.wait, error);
}

/* ---- bandwidth, the other end ---- */

static int take_data(struct gtopo_ofi *o, const struct arrivals *arrivals, uint64_t *uncredited, int *stopped,
                     struct gtopo_error *error)
{
    size_t i;
    int status;

    for (i = 0; i < arrivals->count; i++) {
        size_t more = arrivals->of[i].size - o->message_B; /* huge when it is shorter */

        if (more > 1 || *stopped)
            return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                              "provider %s: a message of %zu bytes came instead of %zu", o->provider,
                              arrivals->of[i].size, o->message_B);
        *stopped = (int)more;
        ++*uncredited;
        o->received++;
        status = gtopo_ofi_post_receive(o, arrivals->of[i].operation, error);
        if (status)
            return status;
    }
    return 0;
}

static int give_credit(struct gtopo_ofi *o, uint64_t *uncredited, struct gtopo_error *error)
{
    uint8_t *place = o->credits_out + o->credit_turn % GTOPO_OFI_CREDITS * CREDIT_B;
    uint64_t credit = htole64(*uncredited);
    int sent;

    memcpy(place, &credit, sizeof credit);
    sent = try_send(o, place, CREDIT_B, error);
    if (sent == 1) {
        o->credit_turn++;
        *uncredited = 0;
    }
    return sent < 0 ? sent : 0;
}

static int serve_bandwidth(struct gtopo_ofi *o, const struct gtopo_run *run, struct gtopo_error *error)
{
    /* No more: several samples out of the time between two credits would be one figure again and again. */
    uint64_t uncredited = 0, quota = gtopo_options_batch(o->probe);
    struct arrivals arrivals;
    struct gtopo_wait wait;
    int status = 0, stopped = 0;

    gtopo_wait_init(&wait, run, o->deadline_ns, GTOPO_POLLS_A_LOOK(o->one_processor));
    while (!status && !(stopped && !uncredited)) {
        status = poll_once(o, &arrivals, &wait, error);
        if (!status)
            status = take_data(o, &arrivals, &uncredited, &stopped, error);
        if (!status && (uncredited >= quota || (stopped && uncredited)))
            status = give_credit(o, &uncredited, error);
    }
    return status ? status : drain(o, &wait, error);
}

/* ---- latency ---- */

struct pingpong {
    struct gtopo_ofi *o;
    struct gtopo_wait wait;
    struct gtopo_ofi_operation *taken; /* a receive to be handed back when there is time */
};

static int ping(struct pingpong *p, int last, struct gtopo_error *error)
{
    struct gtopo_ofi *o = p->o;
    size_t size = o->message_B + (size_t)last;
    struct arrivals none;
    int status, sent = 0;

    /* A short message is copied on the way and needs no completion. The last one is waited for. */
    if (!last && size <= o->info->tx_attr->inject_size) {
        ssize_t injected = fi_inject(o->ep, o->message, size, o->peer);

        if (injected && injected != -FI_EAGAIN)
            return gtopo_ofi_fail(o, (int)-injected, "to send", error);
        sent = !injected;
    }
    while (!sent) {
        sent = try_send(o, o->message, size, error);
        if (sent < 0)
            return sent;
        if (sent)
            break;
        status = poll_once(o, &none, &p->wait, error);
        if (status)
            return status;
    }
    if (p->taken) {
        status = gtopo_ofi_post_receive(o, p->taken, error);
        p->taken = NULL;
        return status;
    }
    return 0;
}

static int await_message(struct pingpong *p, int *last, struct gtopo_error *error)
{
    struct arrivals arrivals = {0};
    size_t more;
    int status;

    while (!arrivals.count) {
        status = poll_once(p->o, &arrivals, &p->wait, error);
        if (status)
            return status;
    }
    more = arrivals.of[0].size - p->o->message_B; /* huge when it is shorter */
    if (arrivals.count > 1 || more > 1)
        return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                          "provider %s: %zu messages of %zu bytes came instead of one of %zu", p->o->provider,
                          arrivals.count, arrivals.of[0].size, p->o->message_B);
    p->taken = arrivals.of[0].operation;
    p->o->received++;
    *last = (int)more;
    return 0;
}

static int run_latency(struct gtopo_ofi *o, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct pingpong p = {.o = o};
    uint64_t turns = 0;
    int status, ending = 0, last = 0;

    gtopo_wait_init(&p.wait, run, o->deadline_ns, GTOPO_POLLS_A_LOOK(o->one_processor));
    do {
        uint64_t start_ns = gtopo_clock_ns();

        if (run->trace && !ending)
            run->trace->posted_ns[run->trace->posted++] = start_ns;
        status = ping(&p, ending, error);
        if (!status)
            status = await_message(&p, &last, error);
        if (status)
            return status;
        if (last != ending)
            return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "provider %s: the other end ended too early", o->provider);
        if (!ending)
            ending = run->sample(run->context, (double)(gtopo_clock_ns() - start_ns) / 2) || ++turns == run->messages;
    } while (!last);
    return drain(o, &p.wait, error);
}

static int serve_latency(struct gtopo_ofi *o, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct pingpong p = {.o = o};
    int status, last = 0;

    gtopo_wait_init(&p.wait, run, o->deadline_ns, GTOPO_POLLS_A_LOOK(o->one_processor));
    while (!last) {
        status = await_message(&p, &last, error);
        if (!status)
            status = ping(&p, last, error);
        if (status)
            return status;
    }
    return drain(o, &p.wait, error);
}

int gtopo_ofi_loop(struct gtopo_ofi *o, const struct gtopo_run *run, struct gtopo_error *error)
{
    int status;

    if (o->probe->metric == GTOPO_LATENCY_ns)
        status = o->initiator ? run_latency(o, run, error) : serve_latency(o, run, error);
    else
        status = o->initiator ? run_bandwidth(o, run, error) : serve_bandwidth(o, run, error);
    o->finished = !status;
    return status;
}

/* ---- the data ---- */

void gtopo_ofi_fill(struct gtopo_ofi *o)
{
    size_t size = o->message_B + 1, slot, i;

    for (i = 0; i < size; i++)
        o->message[i] = gtopo_pattern_byte(o->seed, i);
    for (slot = 0; slot < o->slots; slot++)
        for (i = 0; i < size; i++)
            o->ring[slot * o->slot_B + i] = (uint8_t)~gtopo_pattern_byte(o->seed, i);
}

int gtopo_ofi_verify(void *endpoint, struct gtopo_error *error)
{
    const struct gtopo_ofi *o = endpoint;
    size_t slot, i, slots = o->slots;

    if (!o->finished)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the data of a run that did not end cannot be checked");
    /* receives are used in the order in which they are posted, so a short run leaves the last ones as they were */
    if (o->received < slots)
        slots = (size_t)o->received;
    for (slot = 0; slot < slots; slot++)
        for (i = 0; i < o->message_B; i++) {
            uint8_t is = o->ring[slot * o->slot_B + i], want = gtopo_pattern_byte(o->seed, i);

            if (is != want)
                return gtopo_fail(error, GTOPO_EDATA, "run a memory test on both hosts",
                                  "provider %s: byte %zu of a message of %zu is 0x%02x and should be 0x%02x",
                                  o->provider, i, o->message_B, is, want);
        }
    return 0;
}
