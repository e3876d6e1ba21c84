/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/transport/verbs_cm.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "bench/clock.h"

#define CM_FILE "/dev/infiniband/rdma_cm"
#define BACKLOG (2 * GTOPO_VERBS_QUEUES_MAX) /* all queue pairs at once, and strangers */
#define REJECTED_NOBODY 8                    /* reasons of InfiniBand's REJ message, volume 1, 12.6.7.2 */
#define REJECTED_STALE 10
#define REJECTED_BY_PROGRAM 28

/* Private data of a request and of its answer: the token of the end that gets it. Little-endian. */
struct greeting {
    uint64_t token;
    uint32_t queue;
} __attribute__((packed));

/* An event, copied so that it can be given back at once: destroying an identifier waits until its events are. */
struct news {
    enum rdma_cm_event_type type;
    int status;
    struct rdma_cm_id *id;
    int greeted;
    struct greeting greeting; /* in host byte order */
};

/* ---- what went wrong ---- */

static int fail_call(const struct gtopo_verbs *v, const char *what, struct gtopo_error *error)
{
    int cause = errno, down = gtopo_verbs_fail_if_down(v, error);

    return down ? down
                : gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                             "%s port %u: RDMA CM cannot %s: %s", v->own->device, v->own->port, what, strerror(cause));
}

/* … with a connection that the other end may have given up. */
static int fail_step(const struct gtopo_verbs *v, const char *what, struct gtopo_error *error)
{
    if (errno != EINVAL)
        return fail_call(v, what, error);
    return gtopo_fail(error, GTOPO_EPEER,
                      "look at the other end's error: it may have hung up; else at the kernel log (dmesg)",
                      "%s port %u: RDMA CM cannot %s: %s", v->own->device, v->own->port, what, strerror(EINVAL));
}

static int fail_channel(struct gtopo_error *error)
{
    int cause = errno;

    if (access(CM_FILE, F_OK))
        return gtopo_fail(error, GTOPO_EMISSING, "load it (`modprobe rdma_ucm`); in a container, pass " CM_FILE " on",
                          "there is no RDMA CM: " CM_FILE " is not there");
    return gtopo_fail(error, GTOPO_ESYSTEM, "look at the permissions of " CM_FILE, "cannot use RDMA CM: %s",
                      strerror(cause));
}

static int fail_no_address(const struct gtopo_verbs *v, struct gtopo_error *error)
{
    if (v->own->gid != GTOPO_AUTO)
        return gtopo_fail(error, GTOPO_EUSAGE,
                          "choose a GID that has one (`gtopo-bench show`, `ip addr`), or leave --gid or --rdma-cm out",
                          "RDMA CM connects by IP addresses, and GID %d of %s port %u has none on this host",
                          v->own->gid, v->own->device, v->own->port);
    return gtopo_fail(error, GTOPO_EDEVICE,
                      "give its network device an address (`rdma link`, `ip addr add`), or leave --rdma-cm out",
                      "RDMA CM connects by IP addresses, and %s port %u has none", v->own->device, v->own->port);
}

static int fail_other_port(const struct gtopo_verbs *v, const struct rdma_cm_id *id, struct gtopo_error *error)
{
    return gtopo_fail(
        error, GTOPO_EDEVICE,
        "give the ports addresses of different subnets, or routes of their own (`ip route get`, `ip rule`)",
        "RDMA CM goes through %s port %u, and not through %s port %u as asked",
        id->verbs ? ibv_get_device_name(id->verbs->device) : "no device", id->port_num, v->own->device, v->own->port);
}

static const struct advice {
    enum rdma_cm_event_type type;
    int reason; /* of a rejection; 0 for any */
    int code;
    const char *cause, *hint;
} advices[] = {
    {RDMA_CM_EVENT_ADDR_ERROR, 0, GTOPO_EDEVICE, "the other end's address cannot be reached from this port",
     "can the two addresses reach each other (`ping -I`; VLAN, subnet, `ip neigh`)?"},
    {RDMA_CM_EVENT_ROUTE_ERROR, 0, GTOPO_EDEVICE, "there is no route to the other end's address",
     "look at the routes (`ip route get`) and, on InfiniBand, at the subnet manager (`sminfo`)"},
    {RDMA_CM_EVENT_UNREACHABLE, 0, GTOPO_EPEER, "the other end does not answer",
     "is its process alive? Does a firewall or a switch drop RDMA (for RoCE v2 UDP port 4791)?"},
    {RDMA_CM_EVENT_CONNECT_ERROR, 0, GTOPO_EPEER, "the connection failed while it was made",
     "look at the other end's error, and at the kernel logs of both (dmesg)"},
    {RDMA_CM_EVENT_REJECTED, REJECTED_NOBODY, GTOPO_EPEER, "nobody listens at the other end's address any more",
     "its process has ended: look at its error"},
    {RDMA_CM_EVENT_REJECTED, REJECTED_STALE, GTOPO_EPEER,
     "the other end takes it for an old connection: a queue pair of this number was closed a moment ago",
     "try again in a few seconds"},
    {RDMA_CM_EVENT_REJECTED, REJECTED_BY_PROGRAM, GTOPO_EPEER, "the other end refused it",
     "look at the other end's error; does another program listen at its address?"},
    {RDMA_CM_EVENT_REJECTED, 0, GTOPO_EPEER, "the other end's RDMA CM refused it",
     "look at the other end's error and at its kernel log (dmesg)"},
    {RDMA_CM_EVENT_DISCONNECTED, 0, GTOPO_EPEER, "the other end hung up", "look at the other end's error"},
    {RDMA_CM_EVENT_DEVICE_REMOVAL, 0, GTOPO_EDEVICE, "the device was removed", "look at the kernel log (dmesg)"},
};

/* 0 for an event that says nothing bad. */
static int fail_news(const struct gtopo_verbs *v, const struct news *news, struct gtopo_error *error)
{
    char status[64] = "";
    int down;

    if (news->status < 0)
        snprintf(status, sizeof status, ", %s", strerror(-news->status));
    else if (news->status)
        snprintf(status, sizeof status, ", reason %d", news->status);
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].type == news->type && (!advices[i].reason || advices[i].reason == news->status)) {
            down = gtopo_verbs_fail_if_down(v, error);
            return down ? down
                        : gtopo_fail(error, advices[i].code, advices[i].hint,
                                     "%s port %u cannot be connected through RDMA CM: %s (%s%s)", v->own->device,
                                     v->own->port, advices[i].cause, rdma_event_str(news->type), status);
        }
    return 0;
}

/* ---- addresses ---- */

static int is_ours(const struct gtopo_verbs *v, const struct rdma_cm_id *id)
{
    return id->verbs && !strcmp(ibv_get_device_name(id->verbs->device), v->own->device) && id->port_num == v->own->port;
}

/* A listener at an address of this port; the initiator only finds out whether RDMA CM knows the address for the port's.
 * What it does not is no error: there may be others. */
static int add_address(struct gtopo_verbs *v, const struct gtopo_verbs_gid *gid, const struct sockaddr *ip,
                       struct gtopo_error *error)
{
    struct gtopo_verbs_cm *cm = v->cm;
    struct sockaddr_storage *address = &cm->addresses[v->gid_count];
    struct rdma_cm_id *id = NULL;
    int status = 0;

    if (v->gid_count == GTOPO_VERBS_GIDS_MAX)
        return 0;
    if (rdma_create_id(cm->channel, &id, NULL, RDMA_PS_TCP))
        return fail_call(v, "make an identifier", error);
    memcpy(address, ip, ip->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    if (rdma_bind_addr(id, (struct sockaddr *)address)) {
        if (errno != EADDRNOTAVAIL && errno != ENODEV)
            status = fail_call(v, "use an address of it", error);
        goto out;
    }
    if (!is_ours(v, id))
        goto out;
    if (!v->initiator) {
        if (rdma_listen(id, BACKLOG)) {
            status = fail_call(v, "listen", error);
            goto out;
        }
        cm->listening[v->gid_count] = be16toh(rdma_get_src_port(id));
        cm->listeners[v->gid_count] = id;
        id = NULL;
    }
    v->gids[v->gid_count++] = *gid;
out:
    if (id)
        rdma_destroy_id(id);
    return status;
}

/* On Ethernet an address is a GID, so those stay of which RDMA CM knows the address. On InfiniBand it is that of a
 * network device (IPoIB) of the port. */
static int find_addresses(struct gtopo_verbs *v, struct gtopo_error *error)
{
    int ethernet = v->port.link_layer == IBV_LINK_LAYER_ETHERNET, status = 0;
    struct gtopo_verbs_gid known[GTOPO_VERBS_GIDS_MAX];
    size_t count = v->gid_count;
    struct ifaddrs *addresses;

    memcpy(known, v->gids, sizeof known);
    v->gid_count = 0;
    if (getifaddrs(&addresses))
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "cannot read this host's addresses: %s", strerror(errno));
    for (const struct ifaddrs *a = addresses; a && !status; a = a->ifa_next) {
        struct gtopo_verbs_gid gid = {.type = IBV_GID_TYPE_IB};

        if ((a->ifa_flags & IFF_LOOPBACK) || !gtopo_verbs_gid_of_address(a, &gid))
            continue;
        if (!ethernet)
            status = add_address(v, &gid, a->ifa_addr, error);
        for (size_t i = 0; ethernet && !status && i < count; i++)
            if (!memcmp(known[i].raw, gid.raw, sizeof gid.raw))
                status = add_address(v, &known[i], a->ifa_addr, error);
    }
    freeifaddrs(addresses);
    if (!status && !v->gid_count)
        status = fail_no_address(v, error);
    return status;
}

int gtopo_verbs_cm_open(struct gtopo_verbs *v, struct gtopo_error *error)
{
    int flags;

    if (v->port.link_layer != IBV_LINK_LAYER_ETHERNET && v->own->gid != GTOPO_AUTO)
        return gtopo_fail(error, GTOPO_EUSAGE, "leave --gid or --rdma-cm out",
                          "on InfiniBand RDMA CM chooses the GID itself: %s port %u cannot be given one",
                          v->own->device, v->own->port);
    v->cm = calloc(1, sizeof *v->cm);
    if (!v->cm)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (getrandom(&v->cm->token, sizeof v->cm->token, 0) != sizeof v->cm->token)
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "no random numbers: %s", strerror(errno));
    v->cm->channel = rdma_create_event_channel();
    if (!v->cm->channel)
        return fail_channel(error);
    flags = fcntl(v->cm->channel->fd, F_GETFL);
    if (flags < 0 || fcntl(v->cm->channel->fd, F_SETFL, flags | O_NONBLOCK))
        return fail_call(v, "be asked without waiting", error);
    return find_addresses(v, error);
}

/* Destroying an identifier disconnects it. What librdmacm itself has open of the device stays until the process ends.
 */
void gtopo_verbs_cm_close(struct gtopo_verbs *v)
{
    struct gtopo_verbs_cm *cm = v->cm;

    if (!cm)
        return;
    for (size_t i = 0; i < GTOPO_VERBS_QUEUES_MAX; i++)
        if (cm->ids[i])
            rdma_destroy_id(cm->ids[i]);
    for (size_t i = 0; i < GTOPO_VERBS_GIDS_MAX; i++)
        if (cm->listeners[i])
            rdma_destroy_id(cm->listeners[i]);
    if (cm->channel)
        rdma_destroy_event_channel(cm->channel);
    free(cm);
    v->cm = NULL;
}

/* ---- a queue pair, as RDMA CM says ---- */

/* The way that RDMA CM found may be narrower than both ports, and from another GID than we would have taken. */
static int take_path(struct gtopo_verbs *v, const struct ibv_qp_attr *path, struct gtopo_error *error)
{
    uint32_t index = path->ah_attr.grh.sgid_index;
    size_t count;
    int status;

    if (v->probe->traffic_class && !path->ah_attr.is_global)
        return gtopo_fail(
            error, GTOPO_EUSAGE, "leave --rdma-cm out: then a GID is used, or leave --traffic-class out",
            "a traffic class was asked for, which only a GRH has; the path that RDMA CM found from %s port "
            "%u has none",
            v->own->device, v->own->port);
    if (path->path_mtu < v->mtu && v->probe->mtu_B)
        return gtopo_fail(error, GTOPO_EUSAGE, "ask for less, or leave --mtu out",
                          "an RDMA MTU of %u was asked for; the path that RDMA CM found from %s port %u has %u",
                          v->probe->mtu_B, v->own->device, v->own->port, 128u << path->path_mtu);
    if (path->path_mtu < v->mtu)
        v->mtu = path->path_mtu;
    if (!path->ah_attr.is_global || (v->gid && v->gid->index == index))
        return 0;
    if (v->own->gid != GTOPO_AUTO)
        return gtopo_fail(error, GTOPO_EUSAGE,
                          "ask for that one, or set RDMA CM's type of GID (`cma_roce_mode`), or leave --rdma-cm out",
                          "GID %d of %s port %u was asked for; RDMA CM takes GID %u for its address", v->own->gid,
                          v->own->device, v->own->port, index);
    status = gtopo_verbs_gids_read(v->context, v->own->port, (int32_t)index, &v->cm->gid, &count, error);
    if (status)
        return status;
    v->gid = &v->cm->gid;
    v->gid_reason = "as RDMA CM chose";
    return 0;
}

static int ready_queue(struct gtopo_verbs *v, uint32_t q, struct gtopo_error *error)
{
    struct gtopo_verbs_queue *queue = &v->queues[q];
    struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR}, send = {.qp_state = IBV_QPS_RTS};
    int mask, status;

    if (rdma_init_qp_attr(v->cm->ids[q], &receive, &mask) || rdma_init_qp_attr(v->cm->ids[q], &send, &mask))
        return fail_step(v, "tell how to set a queue pair", error);
    if (receive.dest_qp_num != queue->peer_number)
        return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                          "RDMA CM connected queue pair %u of the other end, which has given %u", receive.dest_qp_num,
                          queue->peer_number);
    status = take_path(v, &receive, error);
    if (status)
        return status;
    queue->psn = send.sq_psn;
    queue->peer_psn = receive.rq_psn;
    /* what was not asked for stays as RDMA CM found it: a service level of the subnet manager's, a default of the host
     */
    if (v->probe->service_level)
        receive.ah_attr.sl = (uint8_t)v->probe->service_level;
    if (v->probe->traffic_class)
        receive.ah_attr.grh.traffic_class = (uint8_t)v->probe->traffic_class;
    v->route = receive.ah_attr;
    return gtopo_verbs_connect_queue(v, q, error);
}

/* `connect` is rdma_connect or rdma_accept. */
static int send_greeting(struct gtopo_verbs *v, uint32_t q,
                         int (*connect)(struct rdma_cm_id *id, struct rdma_conn_param *parameters), const char *what,
                         struct gtopo_error *error)
{
    struct greeting greeting = {.token = htole64(v->cm->peer_token), .queue = htole32(q)};
    struct rdma_conn_param parameters = {
        .private_data = &greeting,
        .private_data_len = sizeof greeting,
        .responder_resources = v->reads_served,
        .initiator_depth = v->reads_started,
        .flow_control = 1,
        .retry_count = GTOPO_VERBS_RETRIES,
        .rnr_retry_count = gtopo_verbs_receiver_retries(v),
        .qp_num = v->queues[q].qp->qp_num,
    };

    return connect(v->cm->ids[q], &parameters) ? fail_step(v, what, error) : 0;
}

/* ---- the initiator ---- */

/* Half of the deadline, so that RDMA CM tells of an address that nobody has before we tell that nothing came. */
static int resolve_ms(const struct gtopo_verbs *v)
{
    uint64_t ms = v->deadline_ns / 2000000;

    return ms < 1 ? 1 : ms > 60000 ? 60000 : (int)ms;
}

static void peer_address(const struct gtopo_verbs_cm *cm, struct sockaddr_storage *address)
{
    *address = cm->addresses[cm->chosen]; /* of one family; a link-local one has the scope of our own */
    if (address->ss_family == AF_INET) {
        struct sockaddr_in *in = (struct sockaddr_in *)address;

        memcpy(&in->sin_addr, cm->peer_raw + 12, sizeof in->sin_addr);
        in->sin_port = htobe16(cm->peer_listening);
    } else {
        struct sockaddr_in6 *in = (struct sockaddr_in6 *)address;

        memcpy(&in->sin6_addr, cm->peer_raw, sizeof in->sin6_addr);
        in->sin6_port = htobe16(cm->peer_listening);
    }
}

static int call(struct gtopo_verbs *v, uint32_t q, struct gtopo_error *error)
{
    struct gtopo_verbs_cm *cm = v->cm;
    struct sockaddr_storage own = cm->addresses[cm->chosen], peer;
    uint8_t traffic_class = (uint8_t)v->probe->traffic_class;

    peer_address(cm, &peer);
    if (rdma_create_id(cm->channel, &cm->ids[q], (void *)(uintptr_t)q, RDMA_PS_TCP))
        return fail_call(v, "make an identifier", error);
    if (traffic_class &&
        rdma_set_option(cm->ids[q], RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof traffic_class))
        return fail_call(v, "set the traffic class", error);
    if (rdma_resolve_addr(cm->ids[q], (struct sockaddr *)&own, (struct sockaddr *)&peer, resolve_ms(v)))
        return gtopo_verbs_fail_route(v, errno, error);
    return 0;
}

/* One queue pair further; *met counts those that are connected. */
static int on_answer(struct gtopo_verbs *v, const struct news *news, uint32_t *met, struct gtopo_error *error)
{
    uint32_t q = (uint32_t)(uintptr_t)news->id->context;
    int status;

    switch (news->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (!is_ours(v, news->id))
            return fail_other_port(v, news->id, error);
        return rdma_resolve_route(news->id, resolve_ms(v)) ? gtopo_verbs_fail_route(v, errno, error) : 0;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return send_greeting(v, q, rdma_connect, "ask for a connection", error);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        if (!news->greeted || news->greeting.token != v->cm->token || news->greeting.queue != q)
            return gtopo_fail(error, GTOPO_EPROTOCOL, "does another program listen there?",
                              "who answered %s port %u through RDMA CM is not the other end of the probe",
                              v->own->device, v->own->port);
        status = ready_queue(v, q, error);
        if (!status && rdma_establish(news->id))
            status = fail_step(v, "confirm a connection", error);
        *met += !status;
        return status;
    default:
        return fail_news(v, news, error);
    }
}

/* ---- the responder ---- */

/* Its queue pair is ready when it is accepted. That the initiator has heard so need not be waited for: its first
 * message says as much, and the loops end when none comes. */
static int on_request(struct gtopo_verbs *v, const struct news *news, uint32_t *met, struct gtopo_error *error)
{
    struct gtopo_verbs_cm *cm = v->cm;
    uint32_t q = news->greeting.queue;
    int status;

    if (news->type != RDMA_CM_EVENT_CONNECT_REQUEST)
        return fail_news(v, news, error);
    if (!news->greeted || news->greeting.token != cm->token || q >= v->probe->queue_pairs || cm->ids[q]) {
        rdma_reject(news->id, NULL, 0); /* a stranger */
        rdma_destroy_id(news->id);
        return 0;
    }
    cm->ids[q] = news->id;
    status = is_ours(v, news->id) ? ready_queue(v, q, error) : fail_other_port(v, news->id, error);
    if (!status)
        status = send_greeting(v, q, rdma_accept, "accept a connection", error);
    if (status)
        rdma_reject(news->id, NULL, 0); /* the initiator need not wait until we have closed */
    *met += !status;
    return status;
}

/* ---- both ---- */

static void read_event(struct rdma_cm_event *event, struct news *news)
{
    const struct rdma_conn_param *parameters = &event->param.conn;
    int asks = event->event == RDMA_CM_EVENT_CONNECT_REQUEST || event->event == RDMA_CM_EVENT_CONNECT_RESPONSE;

    *news = (struct news){.type = event->event, .status = event->status, .id = event->id};
    news->greeted = asks && parameters->private_data && parameters->private_data_len >= sizeof news->greeting;
    if (news->greeted) {
        memcpy(&news->greeting, parameters->private_data, sizeof news->greeting);
        news->greeting.token = le64toh(news->greeting.token);
        news->greeting.queue = le32toh(news->greeting.queue);
    }
    rdma_ack_cm_event(event);
}

static int await_news(const struct gtopo_verbs *v, uint64_t deadline_ns, struct news *news, struct gtopo_error *error)
{
    struct pollfd input = {v->cm->channel->fd, POLLIN, 0};
    struct rdma_cm_event *event;

    while (rdma_get_cm_event(v->cm->channel, &event)) {
        uint64_t now_ns = gtopo_clock_ns(), left_ms = now_ns < deadline_ns ? (deadline_ns - now_ns) / 1000000 + 1 : 0;

        if (errno != EAGAIN && errno != EINTR)
            return fail_call(v, "tell what happened", error);
        if (!left_ms)
            return gtopo_verbs_fail_expired(v, NULL, "connection through RDMA CM", error);
        poll(&input, 1, left_ms < 1000 ? (int)left_ms : 1000);
    }
    read_event(event, news);
    return 0;
}

int gtopo_verbs_cm_meet(struct gtopo_verbs *v, struct gtopo_error *error)
{
    uint64_t deadline_ns = gtopo_clock_ns() + v->deadline_ns;
    uint32_t met = 0;
    int status = 0;

    for (uint32_t q = 0; v->initiator && !status && q < v->probe->queue_pairs; q++)
        status = call(v, q, error);
    while (!status && met < v->probe->queue_pairs) {
        struct news news = {0};

        status = await_news(v, deadline_ns, &news, error);
        if (!status)
            status = v->initiator ? on_answer(v, &news, &met, error) : on_request(v, &news, &met, error);
    }
    return status;
}
