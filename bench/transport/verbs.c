/* SPDX-License-Identifier: Apache-2.0 */
/* Transport "verbs": RDMA over reliable connected queue pairs. Device, port, queue pairs. */
#include "bench/transport/verbs.h"
#include "bench/transport/verbs_cm.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PAGE_B ((size_t)4096)
#define LINE_B ((size_t)64)
#define CHECKED_MAX_B ((size_t)2 << 20)
#define SENDS_MIN 16 /* what staging has under way */
#define RECEIVES 512 /* perftest's; as many as may be under way, or the sender would be told to come again later */
/* perftest's defaults for latency: a message that travels in the work request spares the device a read of memory. */
#define INLINE_WRITE_B 220
#define INLINE_SEND_B 236

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/*
 * The ring of slots of one area. Where each message is checked, a slot for each that is in flight, as far as memory
 * goes; of a ping-pong two, so that the next message can be written while the device may still read the last.
 */
static size_t area(const struct gtopo_probe_options *probe, size_t *slot_B, size_t *slots)
{
    size_t fitting;

    *slot_B = round_up((size_t)probe->message_B, LINE_B);
    fitting = CHECKED_MAX_B / *slot_B;
    *slots = 2 * *slot_B <= PAGE_B ? PAGE_B / *slot_B : 1;
    if (probe->verify_every && fitting > *slots)
        *slots = fitting < gtopo_options_depth(probe) ? fitting : gtopo_options_depth(probe);
    if (probe->metric == GTOPO_LATENCY_ns && *slots < 2 && fitting >= 2)
        *slots = 2;
    return round_up(*slot_B * *slots, PAGE_B);
}

static size_t verbs_buffer(const struct gtopo_probe_options *probe, int initiator)
{
    size_t slot_B, slots;

    (void)initiator; /* as in perftest the messages in flight share their memory */
    return 2 * probe->queue_pairs * area(probe, &slot_B, &slots);
}

/* ---- the device ---- */

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
        if (!strcmp(ibv_get_device_name(devices[i]), v->own->device))
            break;
    if (!devices || i == count) {
        status = fail_no_device(v->own->device, devices, devices ? count : 0, error);
        goto out;
    }
    v->context = ibv_open_device(devices[i]);
    if (!v->context)
        status = fail_open(v->own->device, devices[i], error);
out:
    if (devices)
        ibv_free_device_list(devices);
    return status;
}

/* ---- the port ---- */

/* Can the device do what is asked for? */
static int check_limits(struct gtopo_verbs *v, struct gtopo_error *error)
{
    const struct gtopo_probe_options *probe = v->probe;
    uint32_t most = (uint32_t)(v->device.max_qp_wr < v->device.max_cqe ? v->device.max_qp_wr : v->device.max_cqe);

    if (v->message_B > v->port.max_msg_sz)
        return gtopo_fail(error, GTOPO_EUSAGE, "use a smaller message",
                          "%s port %u sends messages of at most %u bytes, not %zu", v->own->device, v->own->port,
                          v->port.max_msg_sz, v->message_B);
    if (v->send_depth > most || (uint64_t)v->send_depth * probe->queue_pairs > (uint64_t)v->device.max_cqe)
        return gtopo_fail(error, GTOPO_EUSAGE, "use a smaller depth or fewer queue pairs",
                          "%s takes at most %u messages in flight a queue pair and %d completions, not %u on each of "
                          "%u queue pairs",
                          v->own->device, most, v->device.max_cqe, v->send_depth, probe->queue_pairs);
    if (v->receive_depth > most)
        v->receive_depth = most;
    if ((uint64_t)v->receive_depth * probe->queue_pairs > (uint64_t)v->device.max_cqe)
        v->receive_depth = (uint32_t)v->device.max_cqe / probe->queue_pairs;
    if (gtopo_operation_is_atomic(probe->operation) && v->device.atomic_cap == IBV_ATOMIC_NONE)
        return gtopo_fail(error, GTOPO_EDEVICE, NULL, "%s has no atomic operations", v->own->device);
    v->reads = (uint32_t)v->device.max_qp_rd_atom;
    if (gtopo_operation_is_round_trip(probe->operation) && !v->reads)
        return gtopo_fail(error, GTOPO_EDEVICE, NULL, "%s has no RDMA reads", v->own->device);
    return 0;
}

static int check_port(struct gtopo_verbs *v, struct gtopo_error *error)
{
    int cause = ibv_query_device(v->context, &v->device);

    if (!cause && (!v->own->port || v->own->port > v->device.phys_port_cnt))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "RDMA device %s has no port %u: it has %u", v->own->device,
                          v->own->port, v->device.phys_port_cnt);
    if (!cause)
        cause = ibv_query_port(v->context, (uint8_t)v->own->port, &v->port);
    if (cause)
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)", "cannot ask %s port %u: %s",
                          v->own->device, v->own->port, strerror(cause));
    if (v->port.state != IBV_PORT_ACTIVE && v->port.state != IBV_PORT_ACTIVE_DEFER)
        return gtopo_fail(error, GTOPO_ELINKDOWN,
                          v->port.link_layer == IBV_LINK_LAYER_ETHERNET
                              ? "check the cable, and set the network device up (`rdma link`, `ip link`)"
                              : "check the cable and the subnet manager (`ibstat`, `sminfo`)",
                          "%s port %u has no link: it is %s", v->own->device, v->own->port,
                          ibv_port_state_str(v->port.state));
    return check_limits(v, error);
}

/* ---- queue pairs ---- */

/* What shall travel in the work request: as asked, or by perftest's rule, which is for latency only. Not from memory
 * that the processor cannot read. */
static uint32_t wanted_inline(const struct gtopo_verbs *v)
{
    const struct gtopo_probe_options *probe = v->probe;
    uint32_t most = probe->operation == GTOPO_SEND ? INLINE_SEND_B : INLINE_WRITE_B;

    if (gtopo_operation_is_round_trip(probe->operation) || !v->region->memory->is_host)
        return 0;
    if (!v->initiator && !probe->two_way && probe->metric != GTOPO_LATENCY_ns) /* it sends nothing */
        return 0;
    if (probe->inline_B != GTOPO_AUTO)
        most = (uint32_t)probe->inline_B;
    else if (probe->metric != GTOPO_LATENCY_ns)
        return 0;
    return v->message_B <= most ? (uint32_t)v->message_B : 0;
}

/* The device tells its most only by what it refuses. */
static int fail_inline(const struct gtopo_verbs *v, const struct ibv_qp_init_attr *refused, struct gtopo_error *error)
{
    uint32_t most = 0, too_much = refused->cap.max_inline_data;

    while (most + 1 < too_much) {
        struct ibv_qp_init_attr made = *refused;
        uint32_t size = made.cap.max_inline_data = (most + too_much) / 2;
        struct ibv_qp *qp = ibv_create_qp(v->pd, &made);

        if (qp && made.cap.max_inline_data >= size)
            most = size;
        else
            too_much = size;
        if (qp)
            ibv_destroy_qp(qp);
    }
    return gtopo_fail(error, GTOPO_EUSAGE, "ask for no more with --inline, or leave it out",
                      "%s cannot take a message of %zu bytes inside a work request: at most %u", v->own->device,
                      v->message_B, most);
}

static int create_queue_pair(struct gtopo_verbs *v, struct gtopo_verbs_queue *queue, struct gtopo_error *error)
{
    struct ibv_qp_init_attr wanted = {
        .qp_type = IBV_QPT_RC,
        .send_cq = v->send_cq,
        .recv_cq = v->receive_cq,
        .cap = {.max_send_wr = v->send_depth,
                .max_recv_wr = v->receive_depth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = wanted_inline(v)},
    };
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)v->own->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    struct ibv_qp_init_attr made = wanted;
    int cause;

    if (v->device.atomic_cap != IBV_ATOMIC_NONE)
        attributes.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    queue->qp = ibv_create_qp(v->pd, &made);
    if (!queue->qp && wanted.cap.max_inline_data) { /* some refuse what they cannot inline, others make it less */
        made = wanted;
        made.cap.max_inline_data = 0;
        queue->qp = ibv_create_qp(v->pd, &made);
    }
    if (!queue->qp)
        return gtopo_verbs_fail_resource(v, "make a queue pair", 0, error);
    v->inline_B = made.cap.max_inline_data < wanted.cap.max_inline_data ? 0 : wanted.cap.max_inline_data;
    if (v->probe->inline_B > 0 && v->inline_B < wanted.cap.max_inline_data)
        return fail_inline(v, &wanted, error);
    cause = ibv_modify_qp(queue->qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (cause)
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                          "cannot prepare a queue pair on %s: %s", v->own->device, strerror(cause));
    if (getrandom(&queue->psn, sizeof queue->psn, 0) != sizeof queue->psn)
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "no random numbers: %s", strerror(errno));
    queue->psn &= GTOPO_VERBS_NUMBER_MASK;
    return 0;
}

static int create_queues(struct gtopo_verbs *v, struct gtopo_error *error)
{
    uint32_t count = v->probe->queue_pairs;
    int status = 0;

    v->send_cq = ibv_create_cq(v->context, (int)(v->send_depth * count), NULL, NULL, 0);
    if (v->send_cq)
        v->receive_cq = ibv_create_cq(v->context, (int)(v->receive_depth * count), NULL, NULL, 0);
    if (!v->receive_cq)
        return gtopo_verbs_fail_resource(v, "make a completion queue", 0, error);
    for (uint32_t q = 0; !status && q < count; q++)
        status = create_queue_pair(v, &v->queues[q], error);
    return status;
}

/* ---- opening and closing ---- */

static void verbs_close(void *endpoint)
{
    struct gtopo_verbs *v = endpoint;

    if (!v)
        return;
    gtopo_verbs_cm_close(v);
    for (uint32_t q = 0; q < v->probe->queue_pairs; q++)
        if (v->queues[q].qp)
            ibv_destroy_qp(v->queues[q].qp);
    if (v->send_cq)
        ibv_destroy_cq(v->send_cq);
    if (v->receive_cq)
        ibv_destroy_cq(v->receive_cq);
    gtopo_verbs_unregister(v);
    if (v->pd)
        ibv_dealloc_pd(v->pd);
    if (v->context)
        ibv_close_device(v->context);
    free(v);
}

/* One more than the depth, for a word to the other end. */
static void choose_depths(struct gtopo_verbs *v)
{
    uint32_t depth = gtopo_options_depth(v->probe);

    v->send_depth = v->probe->metric == GTOPO_LATENCY_ns ? 0 : depth + 1;
    if (v->send_depth < SENDS_MIN)
        v->send_depth = SENDS_MIN;
    v->receive_depth = depth > RECEIVES ? depth : RECEIVES;
}

static int verbs_open(const struct gtopo_endpoint_options *options, void **endpoint, struct gtopo_error *error)
{
    struct gtopo_verbs *v;
    int status;

    v = calloc(1, sizeof *v);
    if (!v)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    v->probe = options->probe;
    v->own = options->own;
    v->initiator = options->initiator;
    v->seed = options->seed;
    v->region = options->region;
    v->host = options->host;
    v->deadline_ns = options->deadline_ns;
    v->one_processor = options->one_processor;
    v->message_B = (size_t)options->probe->message_B;
    v->area_B = area(v->probe, &v->slot_B, &v->slots);
    choose_depths(v);
    status = open_device(v, error);
    if (!status)
        status = check_port(v, error);
    if (!status)
        status = gtopo_verbs_gids_read(v->context, v->own->port, v->own->gid, v->gids, &v->gid_count, error);
    if (!status && v->probe->connection_manager)
        status = gtopo_verbs_cm_open(v, error);
    if (!status && !(v->pd = ibv_alloc_pd(v->context)))
        status = gtopo_verbs_fail_resource(v, "make a protection domain", 0, error);
    if (!status)
        status = gtopo_verbs_register(v, error);
    if (!status)
        status = create_queues(v, error);
    if (!status)
        status = gtopo_verbs_fill(v, error);
    if (status) {
        verbs_close(v);
        return status;
    }
    *endpoint = v;
    return 0;
}

/* ---- running ---- */

static int verbs_run(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_verbs *v = endpoint;
    int status = v->cm ? gtopo_verbs_cm_meet(v, error) : 0;

    if (status)
        return status;
    if (gtopo_verbs_is_staged(v))
        status = gtopo_verbs_run_staged(v, run, error);
    else if (v->probe->metric == GTOPO_LATENCY_ns)
        status = gtopo_verbs_run_latency(v, run, error);
    else
        status = gtopo_verbs_run_bandwidth(v, run, error);
    v->finished = !status;
    return status;
}

static int verbs_serve(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct gtopo_verbs *v = endpoint;
    int status = v->cm ? gtopo_verbs_cm_meet(v, error) : 0;

    if (status)
        return status;
    if (gtopo_verbs_is_staged(v))
        status = gtopo_verbs_serve_staged(v, run, error);
    else if (v->probe->metric == GTOPO_LATENCY_ns)
        status = gtopo_verbs_serve_latency(v, run, error);
    else
        status = gtopo_verbs_serve_bandwidth(v, run, error);
    v->finished = !status;
    return status;
}

/* ---- telling ---- */

static const char *latency_method(const struct gtopo_probe_options *probe)
{
    switch (probe->operation) {
    case GTOPO_SEND:
        return "half a round trip of sends, polling for completions";
    case GTOPO_READ:
        return "the whole round trip of an RDMA read, polling for its completion";
    case GTOPO_FETCH_ADD:
    case GTOPO_COMPARE_SWAP:
        return "the whole round trip of an atomic operation, polling for its completion";
    }
    if (probe->flush)
        return "half a round trip of RDMA writes with immediate data, plus the flush that makes them visible to the "
               "GPU; polling for completions";
    if (probe->operation == GTOPO_WRITE_IMM)
        return "half a round trip of RDMA writes with immediate data, polling for completions";
    if (!gtopo_verbs_polls_memory(probe))
        return "half a round trip of RDMA writes with immediate data, polling for completions: the processor cannot "
               "poll on GPU memory";
    return "half a round trip of RDMA writes, polling on the last byte";
}

static const char *verbs_method(const void *endpoint)
{
    static const char *const bandwidth[GTOPO_OPERATIONS] = {
        [GTOPO_WRITE] = "RDMA writes, timed by their completions while the queue is kept full",
        [GTOPO_READ] = "RDMA reads, timed by their completions while the queue is kept full",
        [GTOPO_SEND] = "sends, timed by their completions while the queue is kept full",
        [GTOPO_WRITE_IMM] = "RDMA writes with immediate data, timed by their completions while the queue is kept full",
        [GTOPO_FETCH_ADD] = "atomic fetch and add, timed by their completions while the queue is kept full",
        [GTOPO_COMPARE_SWAP] = "atomic compare and swap, timed by their completions while the queue is kept full",
    };

    const struct gtopo_verbs *v = endpoint;

    if (gtopo_verbs_is_staged(v))
        return gtopo_verbs_staged_method(v->probe);
    return v->probe->metric == GTOPO_LATENCY_ns ? latency_method(v->probe) : bandwidth[v->probe->operation];
}

/* Chunks of what is staged never are. */
static int is_inline(const struct gtopo_verbs *v)
{
    return v->inline_B && !gtopo_verbs_is_staged(v);
}

static void verbs_describe(void *endpoint, char *text, size_t size)
{
    const struct gtopo_verbs *v = endpoint;
    const char *visibility = gtopo_verbs_visibility(v);
    char gid[INET6_ADDRSTRLEN] = "?", route[128], more[64] = "";

    if (v->gid) {
        inet_ntop(AF_INET6, v->gid->raw, gid, sizeof gid);
        snprintf(route, sizeof route, "GID %u %s (%s)", v->gid->index, gid, v->gid_reason);
    } else
        snprintf(route, sizeof route, "LID %u to %u", v->port.lid, v->peer_lid);
    if (gtopo_verbs_is_staged(v))
        gtopo_verbs_describe_staged(v, more, sizeof more);
    else if (v->probe->metric == GTOPO_BANDWIDTH_Bps)
        snprintf(more, sizeof more, ", a completion every %u, lists of %u", gtopo_options_moderation(v->probe),
                 gtopo_options_post_list(v->probe));
    snprintf(text, size, "RC%s, MTU %u, %s, %s ordering%s%s%s%s", v->cm ? ", RDMA CM" : "", 128u << v->mtu, route,
             gtopo_verbs_is_relaxed(v) ? "relaxed" : "strict", is_inline(v) ? ", inline" : "", more,
             visibility ? "; " : "", visibility ? visibility : "");
}

static void verbs_used(const void *endpoint, struct gtopo_probe_used *used)
{
    const struct gtopo_verbs *v = endpoint;
    int staged = gtopo_verbs_is_staged(v), latency = v->probe->metric == GTOPO_LATENCY_ns;

    used->mtu_B = (int32_t)(128u << v->mtu);
    if (v->route.is_global) {
        used->gid = v->route.grh.sgid_index;
        used->traffic_class = v->route.grh.traffic_class;
        snprintf(used->gid_reason, sizeof used->gid_reason, "%s", v->gid ? v->gid_reason : "");
    }
    used->service_level = v->route.sl;
    used->relaxed_ordering = gtopo_verbs_is_relaxed(v);
    used->inline_B = is_inline(v) ? (int32_t)v->inline_B : 0;
    used->queue_pairs = staged ? 1 : (int32_t)v->probe->queue_pairs;
    if (!staged)
        used->depth = latency ? 1 : (int32_t)gtopo_options_depth(v->probe);
    if (!staged && !latency) {
        used->moderation = (int32_t)gtopo_options_moderation(v->probe);
        used->post_list = (int32_t)gtopo_options_post_list(v->probe);
    }
}

static void verbs_reach(void *endpoint, struct gtopo_reach *reach)
{
    *reach = ((const struct gtopo_verbs *)endpoint)->reach;
}

static uint64_t verbs_posted_B(void *endpoint)
{
    const struct gtopo_verbs *v = endpoint;
    uint64_t messages = 0;

    for (uint32_t q = 0; q < v->probe->queue_pairs; q++)
        messages += v->sent[q];
    return messages * v->message_B;
}

static const struct gtopo_transport verbs = {
    .abi = GTOPO_TRANSPORT_ABI,
    .name = "verbs",
    .method = verbs_method,
    .buffer_B = verbs_buffer,
    .open = verbs_open,
    .address = gtopo_verbs_address,
    .connect = gtopo_verbs_connect,
    .run = verbs_run,
    .serve = verbs_serve,
    .verify = gtopo_verbs_verify,
    .describe = verbs_describe,
    .used = verbs_used,
    .reach = verbs_reach,
    .posted_B = verbs_posted_B,
    .close = verbs_close,
};

GTOPO_MODULE_TRANSPORT(verbs)
{
    return &verbs;
}
