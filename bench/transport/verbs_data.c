/* SPDX-License-Identifier: Apache-2.0 */
/* The data: what is sent is a pattern, what is received is compared with it. */
#include "bench/transport/verbs.h"
#include <string.h>

/* Far apart, so that data of the other direction, queue pair or slot is never taken for right. */
#define OTHER_DIRECTION UINT64_C(0xa5a5000000000000)
#define QUEUE_STEP UINT64_C(0x100000000)

/* Of a message that goes from the initiator to the responder, or back. A ping-pong has one pattern in all slots. */
static uint64_t seed_of(const struct gtopo_verbs *v, int forward, uint32_t queue, size_t slot)
{
    uint64_t seed = v->seed + queue * QUEUE_STEP;

    if (v->probe->metric != GTOPO_LATENCY_ns)
        seed += slot;
    return forward ? seed : seed ^ OTHER_DIRECTION;
}

/* Which end's send areas hold what travels forward? Of a read it is the responder's. */
static int sends_forward(const struct gtopo_verbs *v)
{
    return v->initiator;
}

static int is_atomic(const struct gtopo_verbs *v)
{
    return gtopo_operation_is_atomic(v->probe->operation);
}

static int poison(struct gtopo_verbs *v, uint32_t queue, size_t slot, struct gtopo_error *error)
{
    return gtopo_pattern_poison(v->region, gtopo_verbs_receive_offset(v, queue, slot), v->message_B,
                                seed_of(v, !sends_forward(v), queue, slot), error);
}

int gtopo_verbs_fill(struct gtopo_verbs *v, struct gtopo_error *error)
{
    const uint8_t nothing = 0;
    int status = 0;

    if (is_atomic(v)) /* counters begin at zero, as the region does */
        return 0;
    for (uint32_t q = 0; !status && q < v->probe->queue_pairs; q++)
        for (size_t slot = 0; !status && slot < v->slots; slot++) {
            status = gtopo_pattern_store(v->region, gtopo_verbs_send_offset(v, q, slot), v->message_B,
                                         seed_of(v, sends_forward(v), q, slot), error);
            if (!status)
                status = poison(v, q, slot, error);
        }
    if (!status && gtopo_verbs_polls_memory(v->probe)) /* no marker yet */
        status = v->region->memory->store(v->region, gtopo_verbs_receive_offset(v, 0, 0) + v->message_B - 1, &nothing,
                                          1, error);
    return status;
}

static int fail_byte(const struct gtopo_verbs *v, uint32_t queue, size_t slot, size_t at, uint8_t is, uint8_t should,
                     struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EDATA, "look at the error counters of the device; run a memory test on both hosts",
                      "%s port %u, memory %s: byte %zu of a message of %zu (queue pair %u, slot %zu) is 0x%02x and "
                      "should be 0x%02x",
                      v->own->device, v->own->port, v->own->memory, at, v->message_B, queue, slot, is, should);
}

static int check_slot(const struct gtopo_verbs *v, uint32_t queue, size_t slot, struct gtopo_error *error)
{
    size_t offset = gtopo_verbs_receive_offset(v, queue, slot), size = v->message_B, wrong;
    uint8_t is, should;
    int status;

    if (gtopo_verbs_polls_memory(v->probe)) { /* the last byte is the marker */
        size--;
        status = v->region->memory->load(v->region, offset + size, &is, 1, error);
        if (status)
            return status;
        if (is != v->last_marker)
            return fail_byte(v, queue, slot, size, is, v->last_marker, error);
    }
    status = gtopo_pattern_compare(v->region, offset, size, seed_of(v, !sends_forward(v), queue, slot), &wrong, &is,
                                   &should, error);
    if (status || wrong == size)
        return status;
    return fail_byte(v, queue, slot, wrong, is, should, error);
}

int gtopo_verbs_check_round(struct gtopo_verbs *v, uint64_t size, struct gtopo_error *error)
{
    int status = 0;

    for (uint32_t q = 0; !status && q < v->probe->queue_pairs; q++)
        for (size_t slot = 0; !status && slot < size; slot++) {
            status = check_slot(v, q, slot, error);
            if (!status)
                status = poison(v, q, slot, error);
        }
    return status;
}

/* What each slot that was written holds at the end. */
static int verify_slots(const struct gtopo_verbs *v, struct gtopo_error *error)
{
    int status = 0;

    for (uint32_t q = 0; !status && q < v->probe->queue_pairs; q++)
        for (size_t slot = 0; !status && slot < v->slots && slot < v->received[q]; slot++)
            status = check_slot(v, q, slot, error);
    return status;
}

/* All was checked in the run, but for the message of each queue pair that says that it is the last. */
static int verify_last(const struct gtopo_verbs *v, struct gtopo_error *error)
{
    int status = 0;

    for (uint32_t q = 0; !status && gtopo_verbs_uses_receives(v->probe) && q < v->probe->queue_pairs; q++)
        if (v->received[q])
            status = check_slot(v, q, (size_t)((v->received[q] - 1) % v->slots), error);
    return status;
}

/*
 * Atomic operations: each must have seen what the one before it left. The responder's counter holds how many there
 * were, which the initiator's last answer says too.
 */
static int verify_atomic(const struct gtopo_verbs *v, struct gtopo_error *error)
{
    uint32_t q;

    if (!v->initiator)
        return 0; /* the initiator has read the counters back */
    for (q = 0; q < v->probe->queue_pairs; q++)
        if (v->received[q] != v->sent[q])
            return gtopo_fail(error, GTOPO_EDATA, "run a memory test on both hosts",
                              "%s port %u: after %llu atomic operations of queue pair %u their counter says %llu",
                              v->own->device, v->own->port, (unsigned long long)v->sent[q], q,
                              (unsigned long long)v->received[q]);
    return 0;
}

int gtopo_verbs_verify(void *endpoint, struct gtopo_error *error)
{
    const struct gtopo_verbs *v = endpoint;

    if (!v->finished)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the data of a run that did not end cannot be checked");
    if (v->probe->verify_every)
        return verify_last(v, error);
    return is_atomic(v) ? verify_atomic(v, error) : verify_slots(v, error);
}
