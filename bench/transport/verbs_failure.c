/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, in words: the status, the likely cause and the next step. */
#include "bench/transport/verbs.h"
#include "bench/transport/reach.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LINK_LOOKS 10
#define LINK_LOOK_US 20000

static const struct advice {
    enum ibv_wc_status status;
    int code;
    const char *cause, *hint;
} advices[] = {
    {IBV_WC_RETRY_EXC_ERR, GTOPO_EPEER, "the other end does not answer",
     "is its process alive? Then the path loses packets: check GID, VLAN, MTU (`ping -M do -s 4096`), PFC and the port "
     "counters of both ends"},
    {IBV_WC_RNR_RETRY_EXC_ERR, GTOPO_EPEER, "the other end is not ready to receive", "is its process alive?"},
    {IBV_WC_REM_ACCESS_ERR, GTOPO_EPEER, "the other end does not allow the access",
     "the key is wrong or its memory was unregistered, most likely because its process ended: look at its error"},
    {IBV_WC_REM_OP_ERR, GTOPO_EPEER, "the other end failed to carry it out",
     "its queue pair failed, or the memory it receives into is not registered: look at its error and kernel log"},
    {IBV_WC_REM_INV_REQ_ERR, GTOPO_EPEER, "the other end takes it for invalid",
     "the two ends differ in MTU, message size or access rights: run the same version on both; rdma_rxe says so "
     "of packets that come again, too"},
    {IBV_WC_REM_ABORT_ERR, GTOPO_EPEER, "the other end aborted it", "look at the other end's kernel log"},
    {IBV_WC_BAD_RESP_ERR, GTOPO_EDEVICE, "an answer came that cannot be", "look at the error counters of both ports"},
    {IBV_WC_LOC_QP_OP_ERR, GTOPO_EDEVICE, "our device could not send it, and put the queue pair into error",
     "is there still a way to the other end (address, route, VLAN: `ip route get`)? Is the memory still registered "
     "(for GPU memory, was it freed or reset)? Then look at the kernel log (dmesg)"},
    {IBV_WC_LOC_PROT_ERR, GTOPO_EDEVICE, "our memory is not registered for it",
     "look at the kernel log (dmesg); for GPU memory, was it freed or reset?"},
    {IBV_WC_LOC_ACCESS_ERR, GTOPO_EDEVICE, "our memory does not allow the access", "look at the kernel log (dmesg)"},
    {IBV_WC_LOC_LEN_ERR, GTOPO_EDEVICE, "the message is longer than the port or the receiver can take",
     "use a smaller message"},
    {IBV_WC_WR_FLUSH_ERR, GTOPO_EDEVICE, "the queue pair was in error before",
     "its first failure is the cause: look at the other end's error and at the kernel log (dmesg)"},
    {IBV_WC_RESP_TIMEOUT_ERR, GTOPO_EPEER, "the other end does not answer", "is its process alive?"},
    {IBV_WC_FATAL_ERR, GTOPO_EDEVICE, "the device failed", "look at the kernel log (dmesg); reset the device"},
};

static int link_is_down(const struct gtopo_verbs *v, struct ibv_port_attr *port)
{
    return !ibv_query_port(v->context, (uint8_t)v->own->port, port) && port->state != IBV_PORT_ACTIVE &&
           port->state != IBV_PORT_ACTIVE_DEFER;
}

/* A device may fail what it sends before its port says that it is down: it is given a moment. */
static int link_went_down(const struct gtopo_verbs *v, enum ibv_wc_status status, struct ibv_port_attr *port)
{
    int looks = status == IBV_WC_LOC_QP_OP_ERR ? LINK_LOOKS : 1;

    while (!link_is_down(v, port) && --looks)
        usleep(LINK_LOOK_US);
    return looks > 0;
}

static int fail_link(const struct gtopo_verbs *v, const struct ibv_port_attr *port, const char *then,
                     struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_ELINKDOWN, "check the cable and the network device (`rdma link`, `ip link`)",
                      "the link of %s port %u went down: it is %s%s%s", v->own->device, v->own->port,
                      ibv_port_state_str(port->state), then ? "; " : "", then ? then : "");
}

int gtopo_verbs_fail_if_down(const struct gtopo_verbs *v, struct gtopo_error *error)
{
    struct ibv_port_attr port;

    return link_is_down(v, &port) ? fail_link(v, &port, NULL, error) : 0;
}

/* Of requests that were flushed another one was the first to fail, perhaps on the other queue: that says more. */
static void find_first(const struct gtopo_verbs *v, struct ibv_wc *wc)
{
    struct ibv_cq *const queues[] = {v->send_cq, v->receive_cq};
    struct ibv_wc other;

    for (int i = 0; i < 2; i++)
        while (wc->status == IBV_WC_WR_FLUSH_ERR && queues[i] && ibv_poll_cq(queues[i], 1, &other) > 0)
            if (other.status != IBV_WC_SUCCESS)
                *wc = other;
}

static int fail_completion(const struct gtopo_verbs *v, struct ibv_wc *wc, struct gtopo_error *error)
{
    static const struct advice unknown = {0, GTOPO_EDEVICE, "the device refused", "look at the kernel log (dmesg)"};
    const struct advice *advice = &unknown;
    struct ibv_port_attr port;

    find_first(v, wc);
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].status == wc->status)
            advice = &advices[i];
    if (link_went_down(v, wc->status, &port)) /* whatever the device makes of it */
        return fail_link(v, &port, ibv_wc_status_str(wc->status), error);
    return gtopo_fail(error, advice->code, advice->hint,
                      "an RDMA %s through %s port %u failed: %s: \"%s\" (status %d, vendor 0x%x)",
                      gtopo_operation_name(v->probe->operation), v->own->device, v->own->port, advice->cause,
                      ibv_wc_status_str(wc->status), (int)wc->status, wc->vendor_err);
}

int gtopo_verbs_poll(const struct gtopo_verbs *v, struct ibv_cq *cq, int most, struct ibv_wc *wc,
                     struct gtopo_error *error)
{
    int count = ibv_poll_cq(cq, most, wc);

    if (count < 0)
        return gtopo_fail(error, GTOPO_EDEVICE, NULL, "%s: the completion queue failed", v->own->device);
    for (int i = 0; i < count; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            return fail_completion(v, &wc[i], error);
    return count;
}

/* A queue pair that the device has put into error without a completion that says so. */
static int queue_in_error(const struct gtopo_verbs *v)
{
    struct ibv_qp_attr attributes;
    struct ibv_qp_init_attr made;

    for (uint32_t q = 0; q < v->probe->queue_pairs; q++)
        if (v->queues[q].qp && !ibv_query_qp(v->queues[q].qp, &attributes, IBV_QP_STATE, &made) &&
            (attributes.qp_state == IBV_QPS_ERR || attributes.qp_state == IBV_QPS_SQE))
            return 1;
    return 0;
}

int gtopo_verbs_fail_expired(const struct gtopo_verbs *v, const struct gtopo_wait *wait, const char *awaited,
                             struct gtopo_error *error)
{
    int status;

    if (wait && wait->given_up)
        return gtopo_wait_fail_given_up(error);
    status = gtopo_verbs_fail_if_down(v, error);
    if (status)
        return status;
    if (queue_in_error(v))
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg) and at the other end's error",
                          "%s port %u: a queue pair is in error, and no %s came for %.3g s", v->own->device,
                          v->own->port, awaited, (double)v->deadline_ns * 1e-9);
    return gtopo_fail(error, GTOPO_ETIMEOUT,
                      "is the other end alive, or stopped, or has the way to it gone? Look at its error, and at the "
                      "port counters of both ends",
                      "%s port %u: no %s for %.3g s", v->own->device, v->own->port, awaited,
                      (double)v->deadline_ns * 1e-9);
}

int gtopo_verbs_fail_route(const struct gtopo_verbs *v, int cause, struct gtopo_error *error)
{
    int status = gtopo_verbs_fail_if_down(v, error);

    if (status)
        return status;
    if (queue_in_error(v))
        return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                          "%s port %u: a queue pair was in error before it was connected", v->own->device,
                          v->own->port);
    return gtopo_fail(error, GTOPO_EDEVICE,
                      "can the two ports reach each other (`ping`, `ibping`; VLAN, address, subnet)?",
                      "%s port %u finds no way to the other end: %s", v->own->device, v->own->port, strerror(cause));
}

int gtopo_verbs_fail_post(const struct gtopo_verbs *v, int cause, struct gtopo_error *error)
{
    int status = gtopo_verbs_fail_if_down(v, error);

    if (status)
        return status;
    return gtopo_fail(error, GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                      "%s port %u does not take an RDMA %s: %s%s", v->own->device, v->own->port,
                      gtopo_operation_name(v->probe->operation), strerror(cause),
                      queue_in_error(v) ? " (its queue pair is in error)" : "");
}

int gtopo_verbs_fail_resource(const struct gtopo_verbs *v, const char *what, size_t needed_B, struct gtopo_error *error)
{
    return gtopo_reach_fail_resource(v->own->device, what, needed_B, errno, error);
}
