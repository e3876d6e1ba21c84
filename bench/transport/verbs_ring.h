/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work requests of a queue pair's messages, made before the first is posted: one for each slot in turn, each linked
 * to the next and the last to the first. A list of messages is a stretch of the ring, cut off while it is posted; where
 * a message lies need not be written again.
 */
#ifndef GTOPO_BENCH_TRANSPORT_VERBS_RING_H
#define GTOPO_BENCH_TRANSPORT_VERBS_RING_H

#include "bench/transport/verbs.h"

struct gtopo_verbs_ring {
    struct ibv_send_wr *requests;
    struct ibv_sge *pieces;
    uint32_t length; /* a multiple of the slots, and no shorter than a list */
    uint32_t next;   /* where the request of the next message is */
};

/* For lists of up to `list` messages, of one opcode and with these flags; v is connected. Errors: GTOPO_ENOMEM. */
int gtopo_verbs_ring_open(struct gtopo_verbs_ring *ring, const struct gtopo_verbs *v, uint32_t queue, uint32_t list,
                          enum ibv_wr_opcode opcode, unsigned int flags, struct gtopo_error *error);
void gtopo_verbs_ring_close(struct gtopo_verbs_ring *ring); /* also of one that is all zero */

/* The request of one of the next messages, counted from 0 for the very next; less than the ring is long. */
static inline struct ibv_send_wr *gtopo_verbs_ring_request(const struct gtopo_verbs_ring *ring, uint32_t ahead)
{
    uint32_t place = ring->next + ahead;

    return &ring->requests[place < ring->length ? place : place - ring->length];
}

static inline void gtopo_verbs_ring_advance(struct gtopo_verbs_ring *ring, uint32_t count)
{
    ring->next += count;
    if (ring->next >= ring->length)
        ring->next -= ring->length;
}

#endif
