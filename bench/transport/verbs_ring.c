/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/transport/verbs_ring.h"
#include <stdlib.h>

/* Where a message of a queue pair comes from and goes to. */
static void place(const struct gtopo_verbs *v, uint32_t queue, uint64_t message, struct ibv_send_wr *request)
{
    size_t sent = gtopo_verbs_send_offset(v, queue, message), received = gtopo_verbs_receive_offset(v, queue, message);

    switch (request->opcode) {
    case IBV_WR_RDMA_READ: /* from the other end's send area */
        request->sg_list->addr = v->address + received;
        request->wr.rdma.remote_addr = v->peer_address + sent;
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP: /* on one counter a queue pair; the answers come into the send area */
        request->sg_list->addr = v->address + sent;
        request->wr.atomic.remote_addr = v->peer_address + gtopo_verbs_receive_offset(v, queue, 0);
        break;
    default:
        request->sg_list->addr = v->address + sent;
        request->wr.rdma.remote_addr = v->peer_address + received;
    }
}

int gtopo_verbs_ring_open(struct gtopo_verbs_ring *ring, const struct gtopo_verbs *v, uint32_t queue, uint32_t list,
                          enum ibv_wr_opcode opcode, unsigned int flags, struct gtopo_error *error)
{
    uint32_t slots = (uint32_t)v->slots;

    ring->length = (list + slots - 1) / slots * slots;
    ring->requests = calloc(ring->length, sizeof *ring->requests);
    ring->pieces = calloc(ring->length, sizeof *ring->pieces);
    if (!ring->requests || !ring->pieces) {
        gtopo_verbs_ring_close(ring);
        return gtopo_fail(error, GTOPO_ENOMEM, "use fewer queue pairs, or a smaller depth",
                          "out of memory for %u work requests", ring->length);
    }
    for (uint32_t i = 0; i < ring->length; i++) {
        struct ibv_send_wr *request = &ring->requests[i];

        ring->pieces[i].lkey = v->mr->lkey;
        ring->pieces[i].length = (uint32_t)v->message_B;
        request->sg_list = &ring->pieces[i];
        request->num_sge = 1;
        request->opcode = opcode;
        request->send_flags = flags;
        request->next = &ring->requests[(i + 1) % ring->length];
        if (gtopo_operation_is_atomic(v->probe->operation)) {
            request->wr.atomic.rkey = v->peer_key;
            request->wr.atomic.compare_add = 1;
        } else
            request->wr.rdma.rkey = v->peer_key; /* a send does not look at it */
        place(v, queue, i, request);
    }
    return 0;
}

void gtopo_verbs_ring_close(struct gtopo_verbs_ring *ring)
{
    free(ring->requests);
    free(ring->pieces);
    *ring = (struct gtopo_verbs_ring){NULL, NULL, 0, 0};
}
