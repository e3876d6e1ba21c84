/* SPDX-License-Identifier: Apache-2.0 */
/* Transport "verbs": RDMA writes over a reliable connected queue pair. */
#include "bench/transport/verbs.h"
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE_B ((size_t)4096)
#define LINE_B ((size_t)64)
#define INLINE_MAX_B 220      /* perftest's default for write latency */
#define NUMBER_MASK 0xffffffu /* queue pair and packet sequence numbers have 24 bits */
#define UNICAST_LID_MAX 0xbfff
#define RETRIES 6 /* rxe takes 7 for endless, which it only is for a receiver that is not ready */
#define BLOB_MAGIC "GTOV"
#define BLOB_VERSION 1

/* An end's address. Little-endian. */
struct blob {
    uint8_t magic[4];
    uint16_t version;
    uint8_t initiator, metric;
    uint64_t message_B;
    uint64_t address, room_B; /* the receive area */
    uint32_t key, queue_pair, sequence;
    uint16_t lid;
    uint8_t mtu, link_layer; /* enum ibv_mtu, IBV_LINK_LAYER_… */
    uint8_t needs_grh, gid_count, reserved[6];
    struct gtopo_verbs_gid gids[GTOPO_VERBS_GIDS_MAX];
} __attribute__((packed));

_Static_assert(sizeof(struct blob) <= GTOPO_BLOB_MAX, "an address must fit into a blob");

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* The ring of slots of one area. */
static size_t area(size_t message_B, size_t *slot_B, size_t *slots)
{
    *slot_B = round_up(message_B, LINE_B);
    *slots = 2 * *slot_B <= PAGE_B ? PAGE_B / *slot_B : 1;
    return round_up(*slot_B * *slots, PAGE_B);
}

static size_t verbs_buffer(size_t message_B, uint32_t depth)
{
    size_t slot_B, slots;

    (void)depth; /* as in perftest the messages in flight share their memory */
    return 2 * area(message_B, &slot_B, &slots);
}

/* ---- opening ---- */

static int fail_no_device(const char *name, struct ibv_device **devices, int count, struct gtopo_error *error)
{
    char known[192] = "", path[128];
    int i;

    snprintf(path, sizeof path, "/sys/class/infiniband/%.64s", name);
    if (!access(path, F_OK))
        return gtopo_fail(error, GTOPO_EMISSING, "install the provider of that device (Debian: ibverbs-providers)",
                          "the kernel has RDMA device %s, but libibverbs has no driver for it", name);
    if (!count)
        return gtopo_fail(error, GTOPO_EMISSING,
                          "load its driver (mlx5_ib, rdma_rxe …); in a container, pass /dev/infiniband on",
                          "this host has no RDMA device, and so no %s", name);
    for (i = 0; i < count; i++) {
        strncat(known, i ? " " : "there are: ", sizeof known - strlen(known) - 1);
        strncat(known, ibv_get_device_name(devices[i]), sizeof known - strlen(known) - 1);
    }
    return gtopo_fail(error, GTOPO_EMISSING, known, "this host has no RDMA device %s", name);
}

static int fail_open(const char *name, const struct ibv_device *device, struct gtopo_error *error)
{
    int cause = errno;
    char path[128];

    /* libibverbs tries further ways to open it, and leaves the errno of the last */
    snprintf(path, sizeof path, "/dev/infiniband/%.64s", device->dev_name);
    if (access(path, R_OK | W_OK))
        return gtopo_fail(error, GTOPO_ESYSTEM, "look at its permissions; in a container, pass /dev/infiniband on",
                          "cannot open RDMA device %s: %s: %s", name, path, strerror(errno));
    return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)", "cannot open RDMA device %s: %s", name,
                      strerror(cause));
}

static int open_device(struct gtopo_verbs *v, struct gtopo_error *error)
{
    int count = 0, i, status = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);

    for (i = 0; devices && i < count; i++)
        if (!strcmp(ibv_get_device_name(devices[i]), v->device))
            break;
    if (!devices || i == count) {
        status = fail_no_device(v->device, devices, devices ? count : 0, error);
        goto out;
    }
    v->context = ibv_open_device(devices[i]);
    if (!v->context)
        status = fail_open(v->device, devices[i], error);
out:
    if (devices)
        ibv_free_device_list(devices);
    return status;
}

/* Does the port exist and run, and can it do what is asked for? */
static int check_port(struct gtopo_verbs *v, struct gtopo_error *error)
{
    struct ibv_device_attr device;
    int cause = ibv_query_device(v->context, &device);

    if (!cause && (!v->options.port || v->options.port > device.phys_port_cnt))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "RDMA device %s has no port %u: it has %u", v->device,
                          v->options.port, device.phys_port_cnt);
    if (!cause)
        cause = ibv_query_port(v->context, (uint8_t)v->options.port, &v->port);
    if (cause)
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)", "cannot ask %s port %u: %s",
                          v->device, v->options.port, strerror(cause));
    if (v->port.state != IBV_PORT_ACTIVE && v->port.state != IBV_PORT_ACTIVE_DEFER)
        return gtopo_fail(error, GTOPO_ELINKDOWN,
                          v->port.link_layer == IBV_LINK_LAYER_ETHERNET
                              ? "check the cable, and set the network device up (`rdma link`, `ip link`)"
                              : "check the cable and the subnet manager (`ibstat`, `sminfo`)",
                          "%s port %u has no link: it is %s", v->device, v->options.port,
                          ibv_port_state_str(v->port.state));
    if (v->options.message_B > v->port.max_msg_sz)
        return gtopo_fail(error, GTOPO_EUSAGE, "use a smaller message",
                          "%s port %u sends messages of at most %u bytes, not %zu", v->device, v->options.port,
                          v->port.max_msg_sz, v->options.message_B);
    if (v->queue_depth > (uint32_t)device.max_qp_wr || v->queue_depth > (uint32_t)device.max_cqe)
        return gtopo_fail(error, GTOPO_EUSAGE, "use a smaller depth", "%s takes at most %d writes in flight, not %u",
                          v->device, device.max_qp_wr < device.max_cqe ? device.max_qp_wr : device.max_cqe,
                          v->queue_depth);
    return 0;
}

static int fail_resource(const struct gtopo_verbs *v, const char *what, struct gtopo_error *error)
{
    struct rlimit limit = {0};
    int cause = errno;

    if (cause != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return gtopo_fail(error, cause == ENOMEM ? GTOPO_ESYSTEM : GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                          "cannot %s on %s: %s", what, v->device, strerror(cause));
    return gtopo_fail(error, GTOPO_ESYSTEM,
                      "raise it: `ulimit -l unlimited`, or memlock in /etc/security/limits.conf and log in again; for "
                      "a service (slurmd) LimitMEMLOCK=infinity",
                      "cannot %s on %s: %s; this process may lock %llu bytes (RLIMIT_MEMLOCK) and %zu are needed", what,
                      v->device, strerror(cause), (unsigned long long)limit.rlim_cur, v->options.buffer_B);
}

static int register_memory(struct gtopo_verbs *v, struct gtopo_error *error)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

    /* Some processors need it for full bandwidth. It may not be used where the end of a message is polled for: there
     * the last byte must be written last. */
    if (v->options.metric == GTOPO_BANDWIDTH_Bps)
        access |= IBV_ACCESS_RELAXED_ORDERING;
    v->pd = ibv_alloc_pd(v->context);
    if (!v->pd)
        return fail_resource(v, "make a protection domain", error);
    v->mr = ibv_reg_mr(v->pd, v->options.buffer, v->options.buffer_B, access);
    return v->mr ? 0 : fail_resource(v, "register memory", error);
}

static int create_queue_pair(struct gtopo_verbs *v, struct gtopo_error *error)
{
    struct ibv_qp_init_attr wanted =
                                {
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = v->queue_depth,
                                            .max_recv_wr = 1,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                },
                            made;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)v->options.port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    int cause;

    v->cq = ibv_create_cq(v->context, (int)v->queue_depth, NULL, NULL, 0);
    if (!v->cq)
        return fail_resource(v, "make a completion queue", error);
    wanted.send_cq = wanted.recv_cq = v->cq;
    if (v->options.metric == GTOPO_LATENCY_ns && v->options.message_B <= INLINE_MAX_B)
        wanted.cap.max_inline_data = (uint32_t)v->options.message_B;
    made = wanted;
    v->qp = ibv_create_qp(v->pd, &made);
    if (!v->qp && wanted.cap.max_inline_data) { /* some refuse what they cannot inline, others make it less */
        made = wanted;
        made.cap.max_inline_data = 0;
        v->qp = ibv_create_qp(v->pd, &made);
    }
    if (!v->qp)
        return fail_resource(v, "make a queue pair", error);
    v->inlined = wanted.cap.max_inline_data && made.cap.max_inline_data >= v->options.message_B;
    cause = ibv_modify_qp(v->qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (cause)
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                          "cannot prepare a queue pair on %s: %s", v->device, strerror(cause));
    return 0;
}

static void verbs_close(void *endpoint)
{
    struct gtopo_verbs *v = endpoint;

    if (!v)
        return;
    if (v->qp)
        ibv_destroy_qp(v->qp);
    if (v->cq)
        ibv_destroy_cq(v->cq);
    if (v->mr)
        ibv_dereg_mr(v->mr);
    if (v->pd)
        ibv_dealloc_pd(v->pd);
    if (v->context)
        ibv_close_device(v->context);
    free(v);
}

static int verbs_open(const struct gtopo_endpoint_options *options, void **endpoint, struct gtopo_error *error)
{
    struct gtopo_verbs *v;
    int status = 0;

    if (!options->message_B || !options->depth || options->buffer_B < verbs_buffer(options->message_B, 1))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL,
                          "a message of %zu bytes and a depth of %u do not fit a buffer of "
                          "%zu bytes",
                          options->message_B, options->depth, options->buffer_B);
    v = calloc(1, sizeof *v);
    if (!v)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    v->options = *options;
    v->options.device = NULL;
    snprintf(v->device, sizeof v->device, "%s", options->device);
    v->queue_depth = options->metric == GTOPO_LATENCY_ns ? 1 : options->depth;
    v->area_B = area(options->message_B, &v->slot_B, &v->slots);
    v->send = options->buffer;
    v->receive = v->send + v->area_B;
    if (getrandom(&v->psn, sizeof v->psn, 0) != sizeof v->psn)
        status = gtopo_fail(error, GTOPO_ESYSTEM, NULL, "no random numbers: %s", strerror(errno));
    v->psn &= NUMBER_MASK;
    if (!status)
        status = open_device(v, error);
    if (!status)
        status = check_port(v, error);
    if (!status)
        status = gtopo_verbs_gids_read(v->context, options->port, v->gids, &v->gid_count, error);
    if (!status)
        status = register_memory(v, error);
    if (!status)
        status = create_queue_pair(v, error);
    if (status) {
        verbs_close(v);
        return status;
    }
    gtopo_verbs_fill(v);
    *endpoint = v;
    return 0;
}

/* ---- connecting ---- */

static int verbs_address(void *endpoint, void *data, size_t *size, struct gtopo_error *error)
{
    const struct gtopo_verbs *v = endpoint;
    struct blob blob = {
        .magic = BLOB_MAGIC,
        .version = htole16(BLOB_VERSION),
        .initiator = v->options.initiator != 0,
        .metric = (uint8_t)v->options.metric,
        .message_B = htole64(v->options.message_B),
        .address = htole64((uintptr_t)v->receive),
        .room_B = htole64(v->area_B),
        .key = htole32(v->mr->rkey),
        .queue_pair = htole32(v->qp->qp_num),
        .sequence = htole32(v->psn),
        .lid = htole16(v->port.lid),
        .mtu = (uint8_t)v->port.active_mtu,
        .link_layer = v->port.link_layer,
        .needs_grh = (v->port.flags & IBV_QPF_GRH_REQUIRED) != 0,
        .gid_count = (uint8_t)v->gid_count,
    };
    size_t i;

    if (*size < sizeof blob)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "an address needs %zu bytes", sizeof blob);
    for (i = 0; i < v->gid_count; i++) {
        blob.gids[i] = v->gids[i];
        blob.gids[i].index = htole32(v->gids[i].index);
    }
    memcpy(data, &blob, sizeof blob);
    *size = sizeof blob;
    return 0;
}

static int refuse(struct gtopo_error *error, const char *what)
{
    return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                      "the other end's RDMA address is not one: %s", what);
}

/* To host byte order, with every field checked. */
static int read_blob(const struct gtopo_verbs *v, const void *data, size_t size, struct blob *blob,
                     struct gtopo_error *error)
{
    size_t i;

    if (size < 6 || memcmp(data, BLOB_MAGIC, 4))
        return refuse(error, "it begins with something else");
    memcpy(blob, data, size < sizeof *blob ? size : sizeof *blob);
    if (le16toh(blob->version) != BLOB_VERSION)
        return gtopo_fail(error, GTOPO_EVERSION, "run the same version on both ends",
                          "the other end's RDMA address is of version %u, not %u", le16toh(blob->version),
                          BLOB_VERSION);
    if (size != sizeof *blob)
        return refuse(error, "its length is wrong");
    blob->message_B = le64toh(blob->message_B);
    blob->address = le64toh(blob->address);
    blob->room_B = le64toh(blob->room_B);
    blob->key = le32toh(blob->key);
    blob->queue_pair = le32toh(blob->queue_pair);
    blob->sequence = le32toh(blob->sequence);
    blob->lid = le16toh(blob->lid);
    if (blob->initiator != !v->options.initiator)
        return refuse(error, "both ends have the same role");
    if (blob->metric != v->options.metric || blob->message_B != v->options.message_B)
        return refuse(error, "the ends are to measure different things");
    if (blob->room_B < v->area_B || blob->address > UINT64_MAX - blob->room_B)
        return refuse(error, "its memory is too small");
    if (!blob->queue_pair || blob->queue_pair > NUMBER_MASK || blob->sequence > NUMBER_MASK)
        return refuse(error, "its queue pair or sequence number is out of range");
    if (blob->mtu < IBV_MTU_256 || blob->mtu > IBV_MTU_4096 || blob->needs_grh > 1)
        return refuse(error, "its MTU or routing flag is out of range");
    if (blob->gid_count > GTOPO_VERBS_GIDS_MAX)
        return refuse(error, "it has too many GIDs");
    for (i = 0; i < blob->gid_count; i++) {
        blob->gids[i].index = le32toh(blob->gids[i].index);
        if (!gtopo_verbs_gid_is_valid(&blob->gids[i]))
            return refuse(error, "one of its GIDs is none");
    }
    return 0;
}

/* Route by GID where the link layer or a router needs it, else by LID. */
static int choose_route(struct gtopo_verbs *v, const struct blob *peer, struct ibv_ah_attr *route,
                        struct gtopo_error *error)
{
    const struct gtopo_verbs_gid *initiator = v->options.initiator ? v->gids : peer->gids;
    const struct gtopo_verbs_gid *responder = v->options.initiator ? peer->gids : v->gids;
    size_t initiator_count = v->options.initiator ? v->gid_count : peer->gid_count;
    size_t responder_count = v->options.initiator ? peer->gid_count : v->gid_count;
    int ethernet = v->port.link_layer == IBV_LINK_LAYER_ETHERNET, status;
    int needs_grh = peer->needs_grh || (v->port.flags & IBV_QPF_GRH_REQUIRED);
    size_t chosen[2];

    if (v->port.link_layer != peer->link_layer)
        return gtopo_fail(error, GTOPO_EDEVICE, "choose two ports of one kind",
                          "one port is InfiniBand and the other Ethernet: %s port %u and the other end's", v->device,
                          v->options.port);
    *route = (struct ibv_ah_attr){.port_num = (uint8_t)v->options.port, .dlid = peer->lid};
    status =
        gtopo_verbs_gids_choose(initiator, initiator_count, responder, responder_count, chosen, &v->gid_reason, error);
    if (status && (ethernet || needs_grh))
        return status;
    if (!status && !ethernet && memcmp(initiator[chosen[0]].raw, responder[chosen[1]].raw, 8))
        needs_grh = 1; /* two subnet prefixes: a router is between */
    if (!ethernet && (!peer->lid || peer->lid > UNICAST_LID_MAX))
        return refuse(error, "its LID is out of range");
    if (!ethernet && !needs_grh)
        return 0;
    v->gid = &v->gids[chosen[!v->options.initiator]];
    route->is_global = 1;
    route->grh.hop_limit = 255;
    route->grh.sgid_index = (uint8_t)v->gid->index;
    memcpy(route->grh.dgid.raw, peer->gids[chosen[v->options.initiator != 0]].raw, sizeof route->grh.dgid.raw);
    return 0;
}

/*
 * The exponent of the acknowledgement timeout (4.096 us * 2^n). A device may wait up to four times that, for each of
 * 1 + RETRIES tries (InfiniBand specification, volume 1, 9.7.6.1.3): the peer shall be given up within the deadline, so
 * that the error says that it does not answer. 14 (67 ms) is perftest's.
 */
static uint8_t timeout_exponent(uint64_t deadline_ns)
{
    uint8_t exponent = 14;

    while (exponent > 10 && (UINT64_C(4096) << exponent) * 4 * (1 + RETRIES) > deadline_ns)
        exponent--;
    return exponent;
}

static int verbs_connect(void *endpoint, const void *data, size_t size, struct gtopo_error *error)
{
    struct gtopo_verbs *v = endpoint;
    struct blob peer = {0};
    struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR}, send = {.qp_state = IBV_QPS_RTS};
    int cause, status = read_blob(v, data, size, &peer, error);

    if (status || (status = choose_route(v, &peer, &receive.ah_attr, error)))
        return status;
    v->peer_address = peer.address;
    v->peer_key = peer.key;
    v->peer_lid = peer.lid;
    v->mtu = peer.mtu < v->port.active_mtu ? (enum ibv_mtu)peer.mtu : v->port.active_mtu;
    receive.path_mtu = v->mtu;
    receive.dest_qp_num = peer.queue_pair;
    receive.rq_psn = peer.sequence;
    receive.max_dest_rd_atomic = 0;
    receive.min_rnr_timer = 12;
    cause = ibv_modify_qp(v->qp, &receive,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (cause)
        return gtopo_fail(error, GTOPO_EDEVICE,
                          "can the two ports reach each other (`ping`, `ibping`; VLAN, address, subnet)?",
                          "%s port %u finds no way to the other end: %s", v->device, v->options.port, strerror(cause));
    send.sq_psn = v->psn;
    send.timeout = timeout_exponent(v->options.deadline_ns);
    send.retry_cnt = send.rnr_retry = RETRIES;
    cause = ibv_modify_qp(v->qp, &send,
                          IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_MAX_QP_RD_ATOMIC);
    if (cause)
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)", "cannot start a queue pair on %s: %s",
                          v->device, strerror(cause));
    return 0;
}

static void verbs_describe(void *endpoint, char *text, size_t size)
{
    const struct gtopo_verbs *v = endpoint;
    char gid[INET6_ADDRSTRLEN] = "?", route[128];

    if (v->gid) {
        inet_ntop(AF_INET6, v->gid->raw, gid, sizeof gid);
        snprintf(route, sizeof route, "GID %u %s (%s)", v->gid->index, gid, v->gid_reason);
    } else
        snprintf(route, sizeof route, "LID %u to %u", v->port.lid, v->peer_lid);
    snprintf(text, size, "RC, MTU %u, %s%s", 128u << v->mtu, route, v->inlined ? ", inline" : "");
}

static const struct gtopo_transport verbs = {
    .abi = GTOPO_TRANSPORT_ABI,
    .name = "verbs",
    .operation = "write",
    .bandwidth_method = "RDMA writes, timed by their completions while the queue is kept full",
    .latency_method = "half a round trip of RDMA writes, polling on the last byte",
    .buffer_B = verbs_buffer,
    .open = verbs_open,
    .address = verbs_address,
    .connect = verbs_connect,
    .run = gtopo_verbs_run,
    .serve = gtopo_verbs_serve,
    .verify = gtopo_verbs_verify,
    .describe = verbs_describe,
    .close = verbs_close,
};

GTOPO_MODULE_TRANSPORT(verbs)
{
    return &verbs;
}
