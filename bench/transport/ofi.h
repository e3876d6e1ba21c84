/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint over libfabric: messages between reliable unconnected endpoints (FI_EP_RDM).
 * ofi.c makes it, ofi_loop.c runs it, ofi_guard.c ends a call that does not return.
 *
 * A message is message_B bytes long, and the last of a run one byte longer: so the end of the run travels in order
 * with the data, and needs neither tags nor room in the message.
 *
 * The buffer is the message to be sent, a ring of slots to receive into, and the credits: short messages by which the
 * receiver of a stream of data says how many it has received.
 */
#ifndef GTOPO_BENCH_TRANSPORT_OFI_H
#define GTOPO_BENCH_TRANSPORT_OFI_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "bench/options.h"
#include "bench/transport.h"
#include "bench/transport/loop.h"

#define GTOPO_OFI_CREDITS 16 /* more than can be under way: one is sent for each quarter of the depth */

/* An operation under way. libfabric gives back the address of its context. */
struct gtopo_ofi_operation {
    struct fi_context2 context; /* first, and the library's while under way (FI_CONTEXT, FI_CONTEXT2) */
    int receives;
    uint8_t *data;
    size_t size;
};

struct gtopo_ofi {
    const struct gtopo_probe_options *probe;
    size_t message_B;
    int initiator;
    uint64_t seed, deadline_ns;
    int one_processor; /* see struct gtopo_endpoint_options */
    struct gtopo_region *region;
    char provider[32], source[64];
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr; /* NULL where the provider does not ask for registered memory */
    fi_addr_t peer;

    size_t slot_B, slots;
    uint8_t *message, *ring, *credits_in, *credits_out;
    size_t credit_turn; /* of credits_out */

    struct gtopo_ofi_operation *receives, *sends;
    size_t receive_count, send_count;
    struct gtopo_ofi_operation **free_sends; /* a stack */
    size_t free_send_count;

    uint64_t received; /* messages of data */
    int finished;      /* run() or serve() ended as it should */
    int abandoned;     /* a call of libfabric did not return and was ended */
    atomic_uint beats; /* one more whenever a loop looks for completions */
};

int gtopo_ofi_fail(const struct gtopo_ofi *endpoint, int cause, const char *what, struct gtopo_error *error);
/* Hand a receive to the provider. */
int gtopo_ofi_post_receive(struct gtopo_ofi *endpoint, struct gtopo_ofi_operation *operation,
                           struct gtopo_error *error);
/* The loops, on any thread. */
int gtopo_ofi_loop(struct gtopo_ofi *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
/* The loops, guarded. */
int gtopo_ofi_run(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
int gtopo_ofi_serve(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
/* Fill the message with the pattern, and the ring with anything but. */
void gtopo_ofi_fill(struct gtopo_ofi *endpoint);
int gtopo_ofi_verify(void *endpoint, struct gtopo_error *error);

#endif
