/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCE ports have several GIDs, and two hosts that each pick "the first that works" often pick two that do not work
 * together (perftest issues #44 and #92, nccl #769): hence one rule over both tables.
 */
#include "bench/transport/verbs_gid.h"
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TABLE_MAX 1024 /* entries of a port's table that are looked at */

static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff}; /* ::ffff:0:0/96 */

static int is_ipv4(const uint8_t *raw)
{
    return !memcmp(raw, ipv4_prefix, sizeof ipv4_prefix);
}

static int is_link_local(const uint8_t *raw)
{
    if (is_ipv4(raw))
        return raw[12] == 169 && raw[13] == 254;
    return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

/* How an entry ranks by itself; higher is better. */
static int quality(const struct gtopo_verbs_gid *gid)
{
    return 4 * (gid->type == IBV_GID_TYPE_ROCE_V2) + 2 * !is_link_local(gid->raw) + is_ipv4(gid->raw);
}

/* ---- the table of a port ---- */

static uint8_t count_bits(const void *mask, size_t size)
{
    unsigned bits = 0;
    size_t i;

    for (i = 0; i < size; i++)
        bits += (unsigned)__builtin_popcount(((const uint8_t *)mask)[i]);
    return (uint8_t)bits;
}

int gtopo_verbs_gid_of_address(const struct ifaddrs *address, struct gtopo_verbs_gid *gid)
{
    const struct sockaddr *ip = address->ifa_addr, *mask = address->ifa_netmask;

    if (!ip || !mask || (ip->sa_family != AF_INET && ip->sa_family != AF_INET6))
        return 0;
    if (ip->sa_family == AF_INET) {
        memcpy(gid->raw, ipv4_prefix, sizeof ipv4_prefix);
        memcpy(gid->raw + sizeof ipv4_prefix, &((const struct sockaddr_in *)(const void *)ip)->sin_addr, 4);
        gid->prefix = (uint8_t)(96 + count_bits(&((const struct sockaddr_in *)(const void *)mask)->sin_addr, 4));
    } else {
        memcpy(gid->raw, &((const struct sockaddr_in6 *)(const void *)ip)->sin6_addr, sizeof gid->raw);
        gid->prefix = count_bits(&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr, 16);
    }
    return 1;
}

/* The prefix length of the interface address that the GID was made from; 0 when there is none, as in another network
 * namespace. */
static uint8_t find_prefix(const struct ifaddrs *addresses, const uint8_t *raw)
{
    struct gtopo_verbs_gid made;

    for (const struct ifaddrs *a = addresses; a; a = a->ifa_next)
        if (gtopo_verbs_gid_of_address(a, &made) && !memcmp(made.raw, raw, sizeof made.raw))
            return made.prefix;
    return 0;
}

/* Best first, and in the order of the table among equals. */
static int compare_quality(const void *left, const void *right)
{
    const struct gtopo_verbs_gid *a = left, *b = right;
    int difference = quality(b) - quality(a);

    return difference ? difference : (a->index > b->index) - (a->index < b->index);
}

int gtopo_verbs_gids_read(struct ibv_context *context, uint32_t port, int32_t only, struct gtopo_verbs_gid *gids,
                          size_t *count, struct gtopo_error *error)
{
    struct ibv_gid_entry *table = calloc(TABLE_MAX, sizeof *table);
    struct gtopo_verbs_gid *all = calloc(TABLE_MAX, sizeof *all);
    struct ifaddrs *addresses = NULL;
    size_t used = 0;
    ssize_t i, length;
    int status = 0;

    if (!table || !all) {
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
        goto out;
    }
    length = ibv_query_gid_table(context, table, TABLE_MAX, 0);
    if (length < 0) {
        status = gtopo_fail(error, GTOPO_EDEVICE, NULL, "cannot read the GID table of %s: %s",
                            ibv_get_device_name(context->device), strerror((int)-length));
        goto out;
    }
    if (getifaddrs(&addresses))
        addresses = NULL; /* only the prefixes are lost */
    for (i = 0; i < length; i++) {
        struct gtopo_verbs_gid *gid = &all[used];

        if (table[i].port_num != port || (only >= 0 && table[i].gid_index != (uint32_t)only))
            continue;
        memcpy(gid->raw, table[i].gid.raw, sizeof gid->raw);
        gid->index = table[i].gid_index;
        gid->type = (uint8_t)table[i].gid_type;
        gid->prefix = gid->type == IBV_GID_TYPE_IB ? 64 : find_prefix(addresses, gid->raw);
        used += (size_t)gtopo_verbs_gid_is_valid(gid);
    }
    if (only >= 0 && !used)
        status = gtopo_fail(error, GTOPO_EUSAGE, "`show_gids`, or `gtopo-bench show`, lists what the port has",
                            "%s port %u has no GID of index %d", ibv_get_device_name(context->device), port, only);
    qsort(all, used, sizeof *all, compare_quality);
    *count = used < GTOPO_VERBS_GIDS_MAX ? used : GTOPO_VERBS_GIDS_MAX;
    memcpy(gids, all, *count * sizeof *gids);
out:
    if (addresses)
        freeifaddrs(addresses);
    free(all);
    free(table);
    return status;
}

int gtopo_verbs_gid_is_valid(const struct gtopo_verbs_gid *gid)
{
    static const uint8_t none[16];

    return memcmp(gid->raw, none, sizeof none) && gid->raw[0] != 0xff /* multicast */ && gid->index < 65536 &&
           gid->type <= IBV_GID_TYPE_ROCE_V2 && gid->prefix <= 128;
}

/* ---- the pair ---- */

static int same_subnet(const struct gtopo_verbs_gid *a, const struct gtopo_verbs_gid *b)
{
    /* the narrower of the two: only then each end takes the other for a neighbour */
    unsigned bits = a->prefix > b->prefix ? a->prefix : b->prefix;
    unsigned bytes = bits / 8, rest = bits % 8;

    if (!memcmp(a->raw, b->raw, sizeof a->raw))
        return 1; /* one port with itself */
    if (!a->prefix || !b->prefix || memcmp(a->raw, b->raw, bytes))
        return 0;
    return !rest || !((a->raw[bytes] ^ b->raw[bytes]) >> (8 - rest));
}

/* 0 for a pair that does not work; else higher is better. */
static int pair_quality(const struct gtopo_verbs_gid *a, const struct gtopo_verbs_gid *b)
{
    if (a->type != b->type || is_ipv4(a->raw) != is_ipv4(b->raw))
        return 0;
    return 1 + 8 * (a->type == IBV_GID_TYPE_ROCE_V2) + 4 * !(is_link_local(a->raw) || is_link_local(b->raw)) +
           2 * same_subnet(a, b) + is_ipv4(a->raw);
}

static const char *reason(const struct gtopo_verbs_gid *a, const struct gtopo_verbs_gid *b)
{
    static const char *const texts[3][3] = {
        [IBV_GID_TYPE_IB] = {"same subnet", "same subnet", "another subnet"},
        [IBV_GID_TYPE_ROCE_V1] = {"RoCE v1: same subnet", "RoCE v1: link-local", "RoCE v1: another subnet"},
        [IBV_GID_TYPE_ROCE_V2] = {"RoCE v2: same subnet", "RoCE v2: link-local", "RoCE v2: routed"},
    };

    if (is_link_local(a->raw) || is_link_local(b->raw))
        return texts[a->type][1];
    return texts[a->type][same_subnet(a, b) ? 0 : 2];
}

int gtopo_verbs_gids_choose(const struct gtopo_verbs_gid *initiator, size_t initiator_count,
                            const struct gtopo_verbs_gid *responder, size_t responder_count, size_t chosen[2],
                            const char **why, struct gtopo_error *error)
{
    uint32_t least = UINT32_MAX;
    int best = 0;
    size_t i, j;

    for (i = 0; i < initiator_count; i++)
        for (j = 0; j < responder_count; j++) {
            int this = pair_quality(&initiator[i], &responder[j]);
            uint32_t indices = initiator[i].index + responder[j].index;

            if (this < best || !this || (this == best && indices >= least))
                continue;
            best = this;
            least = indices;
            chosen[0] = i;
            chosen[1] = j;
        }
    if (!best)
        return gtopo_fail(error, GTOPO_EDEVICE,
                          "give the network devices of both ports an address of one family (`rdma link`, `ip addr`)",
                          "the two ports have no GIDs of one type and address family: the initiator has %zu, the "
                          "responder %zu",
                          initiator_count, responder_count);
    *why = reason(&initiator[chosen[0]], &responder[chosen[1]]);
    return 0;
}
