/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs that RDMA CM connects, in place of our own exchange of routes and sequence numbers: what a program does
 * that uses librdmacm, over the network itself. The blobs still travel, for memory, roles and where to meet.
 *
 * Each queue pair has an identifier of RDMA CM. The responder listens at each address of its port from open() on, so
 * that connect() need not wait for the other end: the two meet at the beginning of run() and serve(). Devices, memory
 * and queue pairs are those of our own context; RDMA CM only tells how to set the queue pairs.
 */
#ifndef GTOPO_BENCH_TRANSPORT_VERBS_CM_H
#define GTOPO_BENCH_TRANSPORT_VERBS_CM_H

#include <sys/socket.h>
#include "bench/transport/verbs.h"

struct rdma_event_channel;
struct rdma_cm_id;

struct gtopo_verbs_cm {
    struct rdma_event_channel *channel;
    struct sockaddr_storage addresses[GTOPO_VERBS_GIDS_MAX]; /* of our port, beside `gids` of the endpoint */
    struct rdma_cm_id *listeners[GTOPO_VERBS_GIDS_MAX];      /* the responder's, at each of them */
    uint16_t listening[GTOPO_VERBS_GIDS_MAX];                /* their port numbers */
    struct rdma_cm_id *ids[GTOPO_VERBS_QUEUES_MAX];
    uint64_t token;             /* by which who connects, or answers, shows that it holds our address */
    struct gtopo_verbs_gid gid; /* the one that RDMA CM took, where it is not the one that we chose */

    /* from connect() on */
    size_t chosen; /* of our addresses */
    uint8_t peer_raw[16];
    uint16_t peer_listening;
    uint64_t peer_token;
};

#ifdef GTOPO_HAVE_RDMACM
/* Find the addresses of the port (they become v->gids) and, as responder, listen at each. Errors: GTOPO_EMISSING,
 * GTOPO_EUSAGE when the GID that was asked for has no address, GTOPO_EDEVICE. */
int gtopo_verbs_cm_open(struct gtopo_verbs *v, struct gtopo_error *error);
/* Connect all queue pairs with the other end, which does the same. Ends within the deadline. */
int gtopo_verbs_cm_meet(struct gtopo_verbs *v, struct gtopo_error *error);
void gtopo_verbs_cm_close(struct gtopo_verbs *v);
#else
static inline int gtopo_verbs_cm_open(struct gtopo_verbs *v, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EMISSING,
                      "leave --rdma-cm out, or install librdmacm's development package (Debian: librdmacm-dev) and "
                      "configure again",
                      "%s port %u cannot be connected through RDMA CM: librdmacm was left out when gputopo was built",
                      v->own->device, v->own->port);
}

/* No endpoint gets that far. */
static inline int gtopo_verbs_cm_meet(struct gtopo_verbs *v, struct gtopo_error *error)
{
    return gtopo_verbs_cm_open(v, error);
}

static inline void gtopo_verbs_cm_close(struct gtopo_verbs *v)
{
    (void)v;
}
#endif

#endif
