/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of endpoints, the route between two of them, and their connection. */
#include "bench/transport/verbs.h"
#include "bench/transport/blob.h"
#include "bench/transport/verbs_cm.h"
#include <endian.h>
#include <stdio.h>
#include <string.h>

#define UNICAST_LID_MAX 0xbfff
#define RNR_ENDLESS 7 /* a receiver that is slower than the sender is no fault; one that is gone answers nothing */
#define RNR_TIMER 12  /* 0.64 ms: perftest's */
#define READS_MAX 255
#define BLOB_MAGIC "GTOV"
#define BLOB_VERSION 4

/* An end's address. Little-endian. */
struct blob {
    uint8_t magic[4];
    uint16_t version;
    uint8_t initiator, metric, operation, staged;
    uint16_t queue_pairs;
    uint64_t message_B;
    uint64_t address, room_B; /* of its region, or what stages it */
    uint64_t control;         /* where its control word is */
    uint32_t key, control_key;
    uint16_t lid;
    uint8_t mtu, link_layer; /* enum ibv_mtu, IBV_LINK_LAYER_… */
    uint8_t needs_grh, gid_count, reads, connection_manager, reserved[4];
    struct gtopo_verbs_gid gids[GTOPO_VERBS_GIDS_MAX];
    struct {
        uint32_t number, sequence;
    } queues[GTOPO_VERBS_QUEUES_MAX];
    uint16_t listening[GTOPO_VERBS_GIDS_MAX]; /* RDMA CM: the responder's port number at each of gids */
    uint64_t token;                           /* … and what only the two ends know */
} __attribute__((packed));

_Static_assert(sizeof(struct blob) <= GTOPO_BLOB_MAX, "an address must fit into a blob");

int gtopo_verbs_address(void *endpoint, void *data, size_t *size, struct gtopo_error *error)
{
    const struct gtopo_verbs *v = endpoint;
    struct blob blob = {
        .magic = BLOB_MAGIC,
        .version = htole16(BLOB_VERSION),
        .initiator = v->initiator != 0,
        .metric = (uint8_t)v->probe->metric,
        .operation = (uint8_t)v->probe->operation,
        .staged = v->staging != NULL,
        .queue_pairs = htole16((uint16_t)v->probe->queue_pairs),
        .message_B = htole64(v->message_B),
        .address = htole64(v->address),
        .room_B = htole64(v->mr->length),
        .control = htole64((uintptr_t)&v->control->in),
        .key = htole32(v->mr->rkey),
        .control_key = htole32(v->control_mr->rkey),
        .lid = htole16(v->port.lid),
        .mtu = (uint8_t)v->port.active_mtu,
        .link_layer = v->port.link_layer,
        .needs_grh = (v->port.flags & IBV_QPF_GRH_REQUIRED) != 0,
        .gid_count = (uint8_t)v->gid_count,
        .reads = (uint8_t)(v->reads < READS_MAX ? v->reads : READS_MAX),
        .connection_manager = v->cm != NULL,
        .token = v->cm ? htole64(v->cm->token) : 0,
    };

    if (*size < sizeof blob)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "an address needs %zu bytes", sizeof blob);
    for (size_t i = 0; i < v->gid_count; i++) {
        blob.gids[i] = v->gids[i];
        blob.gids[i].index = htole32(v->gids[i].index);
        blob.listening[i] = v->cm ? htole16(v->cm->listening[i]) : 0;
    }
    for (uint32_t q = 0; q < v->probe->queue_pairs; q++) {
        blob.queues[q].number = htole32(v->queues[q].qp->qp_num);
        blob.queues[q].sequence = htole32(v->queues[q].psn);
    }
    memcpy(data, &blob, sizeof blob);
    *size = sizeof blob;
    return 0;
}

/* ---- the other end's address ---- */

static const struct gtopo_blob_form form = {"RDMA", BLOB_MAGIC, BLOB_VERSION, sizeof(struct blob)};

static int refuse(struct gtopo_error *error, const char *what)
{
    return gtopo_blob_refuse(&form, what, error);
}

static void to_host_order(struct blob *blob)
{
    blob->queue_pairs = le16toh(blob->queue_pairs);
    blob->message_B = le64toh(blob->message_B);
    blob->address = le64toh(blob->address);
    blob->room_B = le64toh(blob->room_B);
    blob->control = le64toh(blob->control);
    blob->key = le32toh(blob->key);
    blob->control_key = le32toh(blob->control_key);
    blob->lid = le16toh(blob->lid);
    blob->token = le64toh(blob->token);
    for (size_t i = 0; i < GTOPO_VERBS_GIDS_MAX; i++) {
        blob->gids[i].index = le32toh(blob->gids[i].index);
        blob->listening[i] = le16toh(blob->listening[i]);
    }
    for (size_t i = 0; i < GTOPO_VERBS_QUEUES_MAX; i++) {
        blob->queues[i].number = le32toh(blob->queues[i].number);
        blob->queues[i].sequence = le32toh(blob->queues[i].sequence);
    }
}

static int check_blob(const struct gtopo_verbs *v, const struct blob *blob, struct gtopo_error *error)
{
    const struct gtopo_probe_options *probe = v->probe;

    if (blob->initiator != !v->initiator)
        return refuse(error, "both ends have the same role");
    if (blob->metric != probe->metric || blob->operation != probe->operation || blob->message_B != v->message_B ||
        blob->queue_pairs != probe->queue_pairs || blob->staged > 1)
        return refuse(error, "the ends are to measure different things");
    if (blob->connection_manager != (v->cm != NULL))
        return refuse(error, "one end is to connect through RDMA CM and the other is not");
    if ((!blob->staged && blob->room_B < v->region->size) || blob->address > UINT64_MAX - blob->room_B)
        return refuse(error, "its memory is too small");
    if (blob->mtu < IBV_MTU_256 || blob->mtu > IBV_MTU_4096 || blob->needs_grh > 1)
        return refuse(error, "its MTU or routing flag is out of range");
    if (blob->gid_count > GTOPO_VERBS_GIDS_MAX)
        return refuse(error, "it has too many GIDs");
    for (size_t i = 0; i < blob->gid_count; i++)
        if (!gtopo_verbs_gid_is_valid(&blob->gids[i]) || (v->cm && v->initiator && !blob->listening[i]))
            return refuse(error, "one of its GIDs is none");
    for (uint32_t q = 0; q < probe->queue_pairs; q++)
        if (!blob->queues[q].number || blob->queues[q].number > GTOPO_VERBS_NUMBER_MASK ||
            blob->queues[q].sequence > GTOPO_VERBS_NUMBER_MASK)
            return refuse(error, "its queue pair or sequence number is out of range");
    return 0;
}

/* To host byte order, with every field checked. */
static int read_blob(const struct gtopo_verbs *v, const void *data, size_t size, struct blob *blob,
                     struct gtopo_error *error)
{
    int status = gtopo_blob_copy(&form, data, size, blob, error);

    if (status)
        return status;
    to_host_order(blob);
    return check_blob(v, blob, error);
}

/* ---- the route ---- */

/* The pair of GIDs, or of addresses where RDMA CM connects: which of ours, and which of the other end's. */
static int choose_pair(struct gtopo_verbs *v, const struct blob *peer, size_t *own, size_t *other,
                       struct gtopo_error *error)
{
    const struct gtopo_verbs_gid *initiator = v->initiator ? v->gids : peer->gids;
    const struct gtopo_verbs_gid *responder = v->initiator ? peer->gids : v->gids;
    size_t initiator_count = v->initiator ? v->gid_count : peer->gid_count;
    size_t responder_count = v->initiator ? peer->gid_count : v->gid_count;
    size_t chosen[2];
    int status =
        gtopo_verbs_gids_choose(initiator, initiator_count, responder, responder_count, chosen, &v->gid_reason, error);

    if (!status) {
        *own = chosen[!v->initiator];
        *other = chosen[v->initiator != 0];
    }
    return status;
}

/* Route by GID where the link layer or a router needs it, else by LID. */
static int choose_route(struct gtopo_verbs *v, const struct blob *peer, struct gtopo_error *error)
{
    struct ibv_ah_attr *route = &v->route;
    int ethernet = v->port.link_layer == IBV_LINK_LAYER_ETHERNET, status;
    int needs_grh = peer->needs_grh || (v->port.flags & IBV_QPF_GRH_REQUIRED) || v->own->gid != GTOPO_AUTO ||
                    v->probe->traffic_class; /* which only a GRH has */
    size_t own, other;

    *route = (struct ibv_ah_attr){
        .port_num = (uint8_t)v->own->port, .dlid = peer->lid, .sl = (uint8_t)v->probe->service_level};
    status = choose_pair(v, peer, &own, &other, error);
    if (status && (ethernet || needs_grh))
        return status;
    if (!status && !ethernet && memcmp(v->gids[own].raw, peer->gids[other].raw, 8))
        needs_grh = 1; /* two subnet prefixes: a router is between */
    if (!ethernet && (!peer->lid || peer->lid > UNICAST_LID_MAX))
        return refuse(error, "its LID is out of range");
    if (!ethernet && !needs_grh)
        return 0;
    v->gid = &v->gids[own];
    route->is_global = 1;
    route->grh.hop_limit = 255;
    route->grh.traffic_class = (uint8_t)v->probe->traffic_class;
    route->grh.sgid_index = (uint8_t)v->gid->index;
    memcpy(route->grh.dgid.raw, peer->gids[other].raw, sizeof route->grh.dgid.raw);
    return 0;
}

/* The smaller end's, or less when asked for. */
static int choose_mtu(struct gtopo_verbs *v, const struct blob *peer, struct gtopo_error *error)
{
    enum ibv_mtu smaller = peer->mtu < v->port.active_mtu ? (enum ibv_mtu)peer->mtu : v->port.active_mtu;
    enum ibv_mtu mtu = smaller;

    while (v->probe->mtu_B && (128u << mtu) > v->probe->mtu_B)
        mtu--;
    if (v->probe->mtu_B && (128u << mtu) != v->probe->mtu_B)
        return gtopo_fail(error, GTOPO_EUSAGE, "raise the MTU of the network devices, or ask for less",
                          "an RDMA MTU of %u was asked for; the smaller of the two ports has %u (%s port %u: %u, the "
                          "other end: %u)",
                          v->probe->mtu_B, 128u << smaller, v->own->device, v->own->port, 128u << v->port.active_mtu,
                          128u << peer->mtu);
    v->mtu = mtu;
    return 0;
}

/*
 * The exponent of the acknowledgement timeout (4.096 us * 2^n). A device may wait up to four times that, for each of
 * 1 + RETRIES tries (InfiniBand specification, volume 1, 9.7.6.1.3): the peer shall be given up within the deadline, so
 * that the error says that it does not answer, but not before it must: an end that is stopped for a moment, as busy
 * hosts and pausing switches are, is no fault. perftest has 14 (67 ms); NCCL has gone from 14 to 18 to 20 (4.3 s).
 */
static uint8_t timeout_exponent(uint64_t deadline_ns)
{
    uint8_t exponent = 20;

    while (exponent > 10 && (UINT64_C(4096) << exponent) * 4 * (1 + GTOPO_VERBS_RETRIES) > deadline_ns)
        exponent--;
    return exponent;
}

/* ---- the connection ---- */

uint8_t gtopo_verbs_receiver_retries(const struct gtopo_verbs *v)
{
    return gtopo_verbs_uses_receives(v->probe) || gtopo_verbs_is_staged(v) ? RNR_ENDLESS : GTOPO_VERBS_RETRIES;
}

int gtopo_verbs_connect_queue(struct gtopo_verbs *v, uint32_t q, struct gtopo_error *error)
{
    const struct gtopo_verbs_queue *queue = &v->queues[q];
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = v->route,
        .path_mtu = v->mtu,
        .dest_qp_num = queue->peer_number,
        .rq_psn = queue->peer_psn,
        .max_dest_rd_atomic = v->reads_served,
        .min_rnr_timer = RNR_TIMER,
    };
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = queue->psn,
        .timeout = timeout_exponent(v->deadline_ns),
        .retry_cnt = GTOPO_VERBS_RETRIES,
        .rnr_retry = gtopo_verbs_receiver_retries(v),
        .max_rd_atomic = v->reads_started,
    };
    int cause = ibv_modify_qp(queue->qp, &receive,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

    if (cause)
        return gtopo_verbs_fail_route(v, cause, error);
    cause = ibv_modify_qp(queue->qp, &send,
                          IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_MAX_QP_RD_ATOMIC);
    if (cause)
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)", "cannot start a queue pair on %s: %s",
                          v->own->device, strerror(cause));
    /* what the other end may send at once after this must find a receive request */
    if (gtopo_verbs_uses_receives(v->probe) || gtopo_verbs_is_staged(v))
        return gtopo_verbs_post_receives(v, q, 0, v->receive_depth, error);
    return 0;
}

static void keep_peer(struct gtopo_verbs *v, const struct blob *peer)
{
    uint32_t starts = (uint32_t)v->device.max_qp_init_rd_atom;

    v->peer_address = peer->address;
    v->peer_key = peer->key;
    v->peer_control = peer->control;
    v->peer_control_key = peer->control_key;
    v->peer_lid = peer->lid;
    v->peer_staged = peer->staged;
    v->reads_served = (uint8_t)(v->reads < READS_MAX ? v->reads : READS_MAX);
    v->reads_started = (uint8_t)(starts < peer->reads ? starts : peer->reads);
    for (uint32_t q = 0; q < v->probe->queue_pairs; q++) {
        v->queues[q].peer_number = peer->queues[q].number;
        v->queues[q].peer_psn = peer->queues[q].sequence;
    }
}

/* What the two need to meet. */
static int keep_meeting(struct gtopo_verbs *v, const struct blob *peer, struct gtopo_error *error)
{
    size_t own, other;
    int status = choose_pair(v, peer, &own, &other, error);

    if (status)
        return status;
    if (v->port.link_layer == IBV_LINK_LAYER_ETHERNET)
        v->gid = &v->gids[own];
    v->cm->chosen = own;
    v->cm->peer_listening = peer->listening[other];
    v->cm->peer_token = peer->token;
    memcpy(v->cm->peer_raw, peer->gids[other].raw, sizeof v->cm->peer_raw);
    return 0;
}

int gtopo_verbs_connect(void *endpoint, const void *data, size_t size, struct gtopo_error *error)
{
    struct gtopo_verbs *v = endpoint;
    struct blob peer = {0};
    int status = read_blob(v, data, size, &peer, error);

    if (!status && v->port.link_layer != peer.link_layer)
        status = gtopo_fail(error, GTOPO_EDEVICE, "choose two ports of one kind",
                            "one port is InfiniBand and the other Ethernet: %s port %u and the other end's",
                            v->own->device, v->own->port);
    if (!status)
        status = v->cm ? keep_meeting(v, &peer, error) : choose_route(v, &peer, error);
    if (!status)
        status = choose_mtu(v, &peer, error);
    if (status)
        return status;
    keep_peer(v, &peer);
    if (gtopo_verbs_is_staged(v))
        status = gtopo_verbs_check_staged(v, error);
    for (uint32_t q = 0; !status && !v->cm && q < v->probe->queue_pairs; q++)
        status = gtopo_verbs_connect_queue(v, q, error);
    return status;
}
