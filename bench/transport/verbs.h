/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint over libibverbs: reliable connected queue pairs between two memories.
 *
 *   verbs.c            device, port, queue pairs          verbs_bandwidth.c  many messages in flight
 *   verbs_memory.c     how memory is registered           verbs_latency.c    one message at a time
 *   verbs_connect.c    addresses, routes, connection      verbs_staged.c     through host memory, by copies
 *   verbs_gid.c        the pair of GIDs                   verbs_data.c       filling and checking the memory
 *   verbs_cm.c         connection through RDMA CM         verbs_failure.c    what went wrong, in words
 *   verbs_ring.c       the requests of many messages
 *
 * Each queue pair has a send area and a receive area of the same size in the region. An area is a ring of slots, one
 * message a slot, as in perftest: messages of up to half a page walk through a page in steps of a cache line, larger
 * ones reuse one place. Message k of a queue pair is in slot k % slots at both ends.
 */
#ifndef GTOPO_BENCH_TRANSPORT_VERBS_H
#define GTOPO_BENCH_TRANSPORT_VERBS_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include "bench/options.h"
#include "bench/transport.h"
#include "bench/transport/loop.h"
#include "bench/transport/verbs_gid.h"

#define GTOPO_VERBS_QUEUES_MAX 64
#define GTOPO_VERBS_NUMBER_MASK 0xffffffu /* queue pair and packet sequence numbers have 24 bits */
#define GTOPO_VERBS_RETRIES 6 /* rxe takes 7 for endless, which it only is for a receiver that is not ready */

/* Immediate data: of a stream, whether it is the last message; of a ping-pong, how long a flush took, in ns. */
#define GTOPO_VERBS_LAST 0x80000000u

/* Words of host memory that the other end writes, whatever the memory of the probe is. */
struct gtopo_verbs_control {
    volatile uint64_t in; /* written by the other end */
    uint8_t line[56];     /* of the cache */
    uint64_t out;         /* to be written to the other end */
};

/* What the control word says, growing: that a two-way probe starts, that a round of messages is to be checked or was
 * (the number of the round on top), that the end has stopped. */
#define GTOPO_VERBS_START UINT64_C(1)
#define GTOPO_VERBS_ROUND UINT64_C(2)
#define GTOPO_VERBS_STOP UINT64_MAX

struct gtopo_verbs_queue {
    struct ibv_qp *qp;
    uint32_t psn;                   /* of what it sends first */
    uint32_t peer_number, peer_psn; /* from connect() on; with RDMA CM the sequence numbers are its own */
};

struct gtopo_verbs_staging; /* verbs_staged.c */
struct gtopo_verbs_cm;      /* verbs_cm.h */

struct gtopo_verbs {
    const struct gtopo_probe_options *probe;
    const struct gtopo_probe_end *own;
    int initiator;
    uint64_t seed, deadline_ns;
    int one_processor; /* see struct gtopo_endpoint_options */
    struct gtopo_region *region;
    const struct gtopo_memory *host;

    struct ibv_context *context;
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *receive_cq;
    struct gtopo_verbs_queue queues[GTOPO_VERBS_QUEUES_MAX];
    uint32_t send_depth, receive_depth; /* work requests a queue pair */
    uint32_t reads;                     /* reads and atomic operations in flight a queue pair */
    uint32_t inline_B;                  /* messages of up to this size travel in the work request */
    struct gtopo_verbs_gid gids[GTOPO_VERBS_GIDS_MAX];
    size_t gid_count;
    struct gtopo_verbs_cm *cm; /* NULL unless RDMA CM connects; then `gids` are the addresses that it can use */

    size_t message_B, slot_B, slots, area_B;
    struct ibv_mr *mr;                   /* of the region, or of the staging buffer */
    uint64_t address;                    /* by which the device knows its beginning */
    struct gtopo_reach reach;            /* how it was registered */
    struct gtopo_verbs_staging *staging; /* NULL unless staged */
    struct gtopo_region control_region;
    struct gtopo_verbs_control *control;
    struct ibv_mr *control_mr;

    /* from connect() on */
    uint64_t peer_address; /* of its region or staging buffer */
    uint32_t peer_key;
    uint64_t peer_control;
    uint32_t peer_control_key;
    int peer_staged;
    uint16_t peer_lid;
    uint8_t reads_served, reads_started; /* in flight a queue pair */
    enum ibv_mtu mtu;
    struct ibv_ah_attr route;          /* of all queue pairs; RDMA CM tells it in run() and serve() */
    const struct gtopo_verbs_gid *gid; /* the one chosen of ours, NULL where LIDs do */
    const char *gid_reason;

    int finished;                                                            /* run() or serve() ended as it should */
    uint64_t sent[GTOPO_VERBS_QUEUES_MAX], received[GTOPO_VERBS_QUEUES_MAX]; /* messages, of this end */
    uint8_t last_marker; /* latency by polling: the last byte that arrived */
};

/* ---- verbs_memory.c ---- */

/* Register region (or what stages it) and control words; before connecting. Says which way it went in v->reach. */
int gtopo_verbs_register(struct gtopo_verbs *v, struct gtopo_error *error);
void gtopo_verbs_unregister(struct gtopo_verbs *v);
/* Of latency into GPU memory: when the GPU sees what was written, and if that is counted; else NULL. */
const char *gtopo_verbs_visibility(const struct gtopo_verbs *v);

/* ---- verbs_connect.c ---- */

int gtopo_verbs_address(void *endpoint, void *data, size_t *size, struct gtopo_error *error);
/* With RDMA CM it only keeps what the other end said: the two meet in run() and serve(). */
int gtopo_verbs_connect(void *endpoint, const void *data, size_t size, struct gtopo_error *error);
/* Make a queue pair ready to receive and send on v->route, with the MTU that was chosen. */
int gtopo_verbs_connect_queue(struct gtopo_verbs *v, uint32_t queue, struct gtopo_error *error);
/* How often a receiver that is not ready is asked again. */
uint8_t gtopo_verbs_receiver_retries(const struct gtopo_verbs *v);

/* ---- places ---- */

static inline size_t gtopo_verbs_send_offset(const struct gtopo_verbs *v, uint32_t queue, uint64_t message)
{
    return queue * v->area_B + message % v->slots * v->slot_B;
}

static inline size_t gtopo_verbs_receive_offset(const struct gtopo_verbs *v, uint32_t queue, uint64_t message)
{
    return (v->probe->queue_pairs + queue) * v->area_B + message % v->slots * v->slot_B;
}

/* Does the processor poll on the last byte, or does a completion tell of each message? */
static inline int gtopo_verbs_polls_memory(const struct gtopo_probe_options *probe)
{
    return probe->metric == GTOPO_LATENCY_ns && probe->operation == GTOPO_WRITE &&
           !strcmp(probe->from.memory, "host") && !strcmp(probe->to.memory, "host");
}

/* May the device's writes pass each other on PCIe? Some processors need it for full bandwidth. By rule not where the
 * end of a message is polled for: there the last byte must be written last. */
static inline int gtopo_verbs_is_relaxed(const struct gtopo_verbs *v)
{
    int32_t asked = v->probe->relaxed_ordering;

    return asked == GTOPO_AUTO ? !gtopo_verbs_polls_memory(v->probe) : asked;
}

/* Do messages take a receive request at the other end? */
static inline int gtopo_verbs_uses_receives(const struct gtopo_probe_options *probe)
{
    return probe->operation == GTOPO_SEND || probe->operation == GTOPO_WRITE_IMM ||
           (probe->metric == GTOPO_LATENCY_ns && probe->operation == GTOPO_WRITE && !gtopo_verbs_polls_memory(probe));
}

/* ---- loops ---- */

int gtopo_verbs_run_bandwidth(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error);
int gtopo_verbs_serve_bandwidth(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error);
int gtopo_verbs_run_latency(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error);
int gtopo_verbs_serve_latency(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error);
/* Write a word into the other end's control words; `id` is the number of the work request. */
int gtopo_verbs_send_word(struct gtopo_verbs *v, uint64_t id, uint64_t word, struct gtopo_error *error);
/* Hand `count` receive requests to a queue pair, for the messages from number `first` on. */
int gtopo_verbs_post_receives(struct gtopo_verbs *v, uint32_t queue, uint64_t first, uint32_t count,
                              struct gtopo_error *error);

/* ---- verbs_staged.c ---- */

/* Host memory that the GPU and the device both reach, in place of the region. */
int gtopo_verbs_staging_open(struct gtopo_verbs *v, struct gtopo_error *error);
void gtopo_verbs_staging_close(struct gtopo_verbs *v);
/* Is either end staged? Then these are the loops. */
static inline int gtopo_verbs_is_staged(const struct gtopo_verbs *v)
{
    return v->staging || v->peer_staged;
}
/* When it is known that one is: what was asked for and cannot be so. Errors: GTOPO_EUSAGE. */
int gtopo_verbs_check_staged(const struct gtopo_verbs *v, struct gtopo_error *error);
/* How it measures, and with how much under way, in words. */
const char *gtopo_verbs_staged_method(const struct gtopo_probe_options *probe);
void gtopo_verbs_describe_staged(const struct gtopo_verbs *v, char *text, size_t size);
int gtopo_verbs_run_staged(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error);
int gtopo_verbs_serve_staged(struct gtopo_verbs *v, const struct gtopo_run *run, struct gtopo_error *error);

/* ---- verbs_data.c ---- */

/* Fill what is sent with the pattern, and what is received with anything but. */
int gtopo_verbs_fill(struct gtopo_verbs *v, struct gtopo_error *error);
int gtopo_verbs_verify(void *endpoint, struct gtopo_error *error);
/* Check the first `size` receive slots of each queue pair, which a round has written, and poison them again. */
int gtopo_verbs_check_round(struct gtopo_verbs *v, uint64_t size, struct gtopo_error *error);

/* ---- verbs_failure.c ---- */

/* How many completions there are, at most `most`, all of them good; a status when one, or the queue, failed. */
int gtopo_verbs_poll(const struct gtopo_verbs *v, struct ibv_cq *cq, int most, struct ibv_wc *wc,
                     struct gtopo_error *error);

int gtopo_verbs_fail_resource(const struct gtopo_verbs *v, const char *what, size_t needed_B,
                              struct gtopo_error *error);
/* Nothing moved for the deadline; `awaited` says what should have: "completion of a write". */
int gtopo_verbs_fail_expired(const struct gtopo_verbs *v, const struct gtopo_wait *wait, const char *awaited,
                             struct gtopo_error *error);
/* 0 while the link is up. */
int gtopo_verbs_fail_if_down(const struct gtopo_verbs *v, struct gtopo_error *error);
/* The kernel or the device knows no way to the other end; `cause` is its errno. */
int gtopo_verbs_fail_route(const struct gtopo_verbs *v, int cause, struct gtopo_error *error);
int gtopo_verbs_fail_post(const struct gtopo_verbs *v, int cause, struct gtopo_error *error);

#endif
