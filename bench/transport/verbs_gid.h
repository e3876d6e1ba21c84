/* SPDX-License-Identifier: Apache-2.0 */
/* Which pair of GIDs two ports talk over. Both ends hold both lists and come to the same pair. */
#ifndef GTOPO_BENCH_TRANSPORT_VERBS_GID_H
#define GTOPO_BENCH_TRANSPORT_VERBS_GID_H

#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

/* A port with virtual networks has dozens; only the pair tells which of them is in one subnet with the other's. */
#define GTOPO_VERBS_GIDS_MAX 64

/* A line of a GID table. It travels between the ends as it is but for the index, which is little-endian then. */
struct gtopo_verbs_gid {
    uint8_t raw[16];
    uint32_t index; /* in the table of its port */
    uint8_t type;   /* enum ibv_gid_type */
    uint8_t prefix; /* bits of the GID that name its subnet; 0 when not known */
    uint8_t reserved[2];
} __attribute__((packed));

/* The best entries of a port's table, at most GTOPO_VERBS_GIDS_MAX; or the one of index `only`, unless that is
 * negative. Errors: GTOPO_EDEVICE, GTOPO_EUSAGE when there is none of that index. */
int gtopo_verbs_gids_read(struct ibv_context *context, uint32_t port, int32_t only, struct gtopo_verbs_gid *gids,
                          size_t *count, struct gtopo_error *error);

/* An interface's address and prefix as a GID has them; its index and type are left alone. 0 when it is none of IP. */
int gtopo_verbs_gid_of_address(const struct ifaddrs *address, struct gtopo_verbs_gid *gid);

/* Is it an entry that a port could have? */
int gtopo_verbs_gid_is_valid(const struct gtopo_verbs_gid *gid);

/*
 * What works (a pair needs one type and one address family) and then what is best: RoCE v2 before v1, routable before
 * link-local, one subnet before two, IPv4 before IPv6, low indices; what is left is decided by the order (initiator's
 * GIDs, responder's GIDs). why is a constant text: "RoCE v2: same subnet". Errors: GTOPO_EDEVICE when nothing works.
 */
int gtopo_verbs_gids_choose(const struct gtopo_verbs_gid *initiator, size_t initiator_count,
                            const struct gtopo_verbs_gid *responder, size_t responder_count, size_t chosen[2],
                            const char **why, struct gtopo_error *error);

#endif
