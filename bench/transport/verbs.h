/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint over libibverbs: one reliable connected queue pair that writes into the other end's memory.
 * verbs.c makes and connects it, verbs_loop.c runs it, verbs_gid.c chooses its GID.
 *
 * The buffer is a send area and, behind it, a receive area of the same size. Each is a ring of slots, one message a
 * slot, as in perftest: messages of up to half a page walk through a page in steps of a cache line, larger ones
 * reuse one place.
 */
#ifndef GTOPO_BENCH_TRANSPORT_VERBS_H
#define GTOPO_BENCH_TRANSPORT_VERBS_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include "bench/transport.h"
#include "bench/transport/verbs_gid.h"

struct gtopo_verbs {
    struct gtopo_endpoint_options options; /* device is not kept */
    char device[64];
    struct ibv_context *context;
    struct ibv_port_attr port;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct gtopo_verbs_gid gids[GTOPO_VERBS_GIDS_MAX];
    size_t gid_count;
    uint32_t psn;
    uint32_t queue_depth;
    int inlined; /* the message travels in the work request */

    size_t slot_B, slots, area_B;
    uint8_t *send, *receive;

    /* from connect() on */
    uint64_t peer_address; /* of its receive area */
    uint32_t peer_key;
    uint16_t peer_lid;
    enum ibv_mtu mtu;
    const struct gtopo_verbs_gid *gid; /* the one chosen of ours, NULL where LIDs do */
    const char *gid_reason;
    int finished;        /* run() or serve() ended as it should */
    uint8_t last_marker; /* latency: the last byte that arrived */
};

int gtopo_verbs_run(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
int gtopo_verbs_serve(void *endpoint, struct gtopo_error *error);
/* Fill the send area with the pattern, and the receive area with anything but. */
void gtopo_verbs_fill(struct gtopo_verbs *endpoint);
int gtopo_verbs_verify(void *endpoint, struct gtopo_error *error);

#endif
