/* SPDX-License-Identifier: Apache-2.0 */
/* Transport "ofi": messages over a provider of libfabric, for TCP and shared memory where there is no RDMA. */
#include "bench/transport/ofi.h"
#include "bench/transport/blob.h"
#include "bench/signals.h"
#include <arpa/inet.h>
#include <endian.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define API_VERSION FI_VERSION(1, 11)
#define PAGE_B ((size_t)4096)
#define SHARED_MEMORY "/dev/shm"
#define LINE_B ((size_t)64)
/* Slots that take more memory than this share it: all messages are equal. */
#define RING_MAX_B ((size_t)64 << 20)
#define LATENCY_RECEIVES 2 /* one is filled while the other waits to be handed back */
#define BLOB_MAGIC "GTOF"
#define BLOB_VERSION 1
#define ADDRESS_MAX_B 512

/* An end's address. Little-endian but for what the provider put into `address`. */
struct blob {
    uint8_t magic[4];
    uint16_t version;
    uint8_t initiator, metric;
    uint64_t message_B;
    uint32_t depth, format; /* FI_SOCKADDR_IN … */
    uint32_t address_B;
    char provider[32];
    uint8_t address[ADDRESS_MAX_B];
} __attribute__((packed));

_Static_assert(sizeof(struct blob) <= GTOPO_BLOB_MAX, "an address must fit into a blob");

int gtopo_ofi_fail(const struct gtopo_ofi *o, int cause, const char *what, struct gtopo_error *error)
{
    switch (cause) {
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_ECANCELED: /* what was under way when the connection broke */
    case FI_EIO:       /* shm: the memory that was to be read is gone */
    case EPIPE:
        return gtopo_fail(error, GTOPO_EPEER, "its process ended, or a firewall is between: look at its error",
                          "provider %s lost the other end: %s: %s", o->provider, what, fi_strerror(cause));
    case FI_ENOMEM:
        return gtopo_fail(error, GTOPO_ENOMEM, "use a smaller message or depth; look at `ulimit -v`",
                          "provider %s failed: %s: %s", o->provider, what, fi_strerror(cause));
    }
    return gtopo_fail(error, GTOPO_EDEVICE, "FI_LOG_LEVEL=info in the environment shows libfabric's own words",
                      "provider %s failed: %s: %s", o->provider, what, fi_strerror(cause));
}

/* ---- the buffer ---- */

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static size_t slot_size(size_t message_B)
{
    return round_up(message_B + 1, LINE_B); /* the last message is a byte longer */
}

static size_t slot_count(size_t message_B, uint32_t depth)
{
    size_t receives = (size_t)depth + 1; /* one for the last message; at least LATENCY_RECEIVES */
    size_t fitting = RING_MAX_B / slot_size(message_B);

    if (fitting > receives)
        return receives;
    return fitting ? fitting : 1;
}

static size_t ofi_buffer(const struct gtopo_probe_options *probe, int initiator)
{
    size_t credits_B = 2 * GTOPO_OFI_CREDITS * sizeof(uint64_t), message_B = (size_t)probe->message_B;

    (void)initiator;
    return round_up((1 + slot_count(message_B, gtopo_options_depth(probe))) * slot_size(message_B) + credits_B, PAGE_B);
}

static void lay_out(struct gtopo_ofi *o)
{
    o->slot_B = slot_size(o->message_B);
    o->slots = slot_count(o->message_B, gtopo_options_depth(o->probe));
    o->message = o->region->data;
    o->ring = o->message + o->slot_B;
    o->credits_in = o->ring + o->slots * o->slot_B;
    o->credits_out = o->credits_in + GTOPO_OFI_CREDITS * sizeof(uint64_t);
}

/* ---- opening ---- */

/* The first IPv4 address of an interface, else its first routable IPv6 address. */
static int interface_address(const char *name, char *text, size_t size)
{
    struct ifaddrs *addresses, *a;
    int found = -1;

    if (getifaddrs(&addresses))
        return -1;
    for (a = addresses; a; a = a->ifa_next) {
        if (!a->ifa_addr || strcmp(a->ifa_name, name))
            continue;
        if (a->ifa_addr->sa_family == AF_INET) {
            inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr, text,
                      (socklen_t)size);
            found = 0;
            break;
        }
        if (a->ifa_addr->sa_family == AF_INET6 && found) {
            const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr;

            if (!IN6_IS_ADDR_LINKLOCAL(v6))
                found = inet_ntop(AF_INET6, v6, text, (socklen_t)size) ? 0 : -1;
        }
    }
    freeifaddrs(addresses);
    return found;
}

/* "tcp" listens on the loopback only, "tcp:eth0" and "tcp:10.9.0.1" where they say, "shm" nowhere. */
static int read_device(struct gtopo_ofi *o, const char *device, struct gtopo_error *error)
{
    const char *where = strchr(device, ':');
    size_t length = where ? (size_t)(where - device) : strlen(device);
    unsigned char address[16];

    if (!length)
        return gtopo_fail(error, GTOPO_EUSAGE, "tcp and shm are there on every host (`fi_info -l`)",
                          "a probe over libfabric needs the provider's name, such as ofi:tcp");
    if (length >= sizeof o->provider)
        return gtopo_fail(error, GTOPO_EUSAGE, "tcp and shm are there on every host (`fi_info -l`)",
                          "\"%.60s\" names no provider of libfabric", device);
    memcpy(o->provider, device, length);
    if (!where) {
        snprintf(o->source, sizeof o->source, "%s", strcmp(o->provider, "tcp") ? "" : "127.0.0.1");
        return 0;
    }
    where++;
    if (inet_pton(AF_INET, where, address) == 1 || inet_pton(AF_INET6, where, address) == 1)
        snprintf(o->source, sizeof o->source, "%s", where);
    else if (interface_address(where, o->source, sizeof o->source))
        return gtopo_fail(error, GTOPO_EMISSING, "`ip addr` shows interfaces and their addresses",
                          "\"%.60s\" is neither an address nor an interface with one", where);
    return 0;
}

static int find_provider(struct gtopo_ofi *o, struct gtopo_error *error)
{
    struct fi_info *hints = fi_allocinfo();
    struct statvfs shared;
    char hint[128];
    int status;

    if (!hints)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = FI_ORDER_SAS; /* the last message must come last */
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(o->provider);
    status = -FI_ENOMEM;
    if (hints->fabric_attr->prov_name)
        status = fi_getinfo(API_VERSION, o->source[0] ? o->source : NULL, NULL, o->source[0] ? FI_SOURCE : 0, hints,
                            &o->info);
    fi_freeinfo(hints);
    if (!status)
        return 0;
    if (status != -FI_ENODATA)
        return gtopo_ofi_fail(o, -status, "the search for it", error);
    if (!strcmp(o->provider, "shm") && !statvfs(SHARED_MEMORY, &shared))
        snprintf(hint, sizeof hint, "it needs room in " SHARED_MEMORY ", where %llu MiB are free",
                 (unsigned long long)shared.f_bavail * shared.f_frsize >> 20);
    else
        snprintf(hint, sizeof hint, "`fi_info -p %.30s -t FI_EP_RDM` shows what libfabric has", o->provider);
    return gtopo_fail(error, GTOPO_EMISSING, hint, "libfabric has no provider %s%s%s on this host", o->provider,
                      o->source[0] ? " at " : "", o->source);
}

static int open_endpoint(struct gtopo_ofi *o, struct gtopo_error *error)
{
    struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = 1};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .size = o->receive_count + o->send_count};
    int status;

    if ((status = fi_fabric(o->info->fabric_attr, &o->fabric, NULL)))
        return gtopo_ofi_fail(o, -status, "its fabric", error);
    if ((status = fi_domain(o->fabric, o->info, &o->domain, NULL)))
        return gtopo_ofi_fail(o, -status, "its domain", error);
    if ((status = fi_av_open(o->domain, &av, &o->av, NULL)))
        return gtopo_ofi_fail(o, -status, "its address vector", error);
    if ((status = fi_cq_open(o->domain, &cq, &o->cq, NULL)))
        return gtopo_ofi_fail(o, -status, "its completion queue", error);
    if ((status = fi_endpoint(o->domain, o->info, &o->ep, NULL)) || (status = fi_ep_bind(o->ep, &o->av->fid, 0)) ||
        (status = fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV)) || (status = fi_enable(o->ep)))
        return gtopo_ofi_fail(o, -status, "its endpoint", error);
    if (o->info->domain_attr->mr_mode & FI_MR_LOCAL) {
        status = fi_mr_reg(o->domain, o->region->data, o->region->size, FI_SEND | FI_RECV, 0, 0, 0, &o->mr, NULL);
        if (status)
            return gtopo_ofi_fail(o, -status, "registering memory (`ulimit -l`)", error);
    }
    return 0;
}

/* How many operations of each kind can be under way at this end. */
static int count_operations(struct gtopo_ofi *o, struct gtopo_error *error)
{
    size_t most_sends = o->info->tx_attr->size, most_receives = o->info->rx_attr->size;
    size_t needed = o->probe->metric == GTOPO_LATENCY_ns ? LATENCY_RECEIVES : (size_t)gtopo_options_depth(o->probe) + 1;

    if (needed > most_receives || GTOPO_OFI_CREDITS > most_receives)
        return gtopo_fail(error, GTOPO_EUSAGE, "use a smaller depth",
                          "provider %s takes at most %zu messages in flight, not %zu", o->provider, most_receives - 1,
                          needed - 1);
    /* Credits come in lumps: as many as are under way are no rate. */
    if (o->probe->metric == GTOPO_BANDWIDTH_Bps && needed - 1 > gtopo_options_counted_depth(o->probe))
        return gtopo_fail(error, GTOPO_EUSAGE, "use a smaller depth, or more iterations",
                          "a run of %llu messages over libfabric has at most a quarter of them in flight, not %zu",
                          (unsigned long long)o->probe->iterations, needed - 1);
    if (o->probe->metric == GTOPO_LATENCY_ns) {
        o->receive_count = needed;
        o->send_count = 2;
    } else if (o->initiator) {
        o->receive_count = GTOPO_OFI_CREDITS;
        o->send_count = needed;
    } else {
        o->receive_count = needed;
        o->send_count = GTOPO_OFI_CREDITS;
    }
    if (o->send_count > most_sends)
        o->send_count = most_sends;
    o->receives = calloc(o->receive_count, sizeof *o->receives);
    if (o->slots > o->receive_count)
        o->slots = o->receive_count;
    o->sends = calloc(o->send_count, sizeof *o->sends);
    o->free_sends = calloc(o->send_count, sizeof *o->free_sends);
    if (!o->receives || !o->sends || !o->free_sends)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    return 0;
}

static int post_receives(struct gtopo_ofi *o, struct gtopo_error *error)
{
    int credits = o->probe->metric == GTOPO_BANDWIDTH_Bps && o->initiator, status = 0;
    size_t i;

    for (i = 0; i < o->send_count; i++)
        o->free_sends[o->free_send_count++] = &o->sends[i];
    for (i = 0; i < o->receive_count && !status; i++) {
        struct gtopo_ofi_operation *operation = &o->receives[i];

        operation->receives = 1;
        operation->data = credits ? o->credits_in + i * sizeof(uint64_t) : o->ring + i % o->slots * o->slot_B;
        operation->size = credits ? sizeof(uint64_t) : o->message_B + 1;
        status = gtopo_ofi_post_receive(o, operation, error);
    }
    return status;
}

static void ofi_close(void *endpoint)
{
    struct gtopo_ofi *o = endpoint;
    struct fid *fids[6] = {NULL};
    size_t i;

    if (!o)
        return;
    if (o->abandoned) { /* closing would wait for locks that nobody will open: libfabric's part is leaked */
        free(o);
        return;
    }
    fids[0] = o->ep ? &o->ep->fid : NULL; /* first, as it uses the others */
    fids[1] = o->mr ? &o->mr->fid : NULL;
    fids[2] = o->cq ? &o->cq->fid : NULL;
    fids[3] = o->av ? &o->av->fid : NULL;
    fids[4] = o->domain ? &o->domain->fid : NULL;
    fids[5] = o->fabric ? &o->fabric->fid : NULL;
    for (i = 0; i < sizeof fids / sizeof *fids; i++)
        if (fids[i])
            fi_close(fids[i]);
    if (o->info)
        fi_freeinfo(o->info);
    free(o->receives);
    free(o->sends);
    free(o->free_sends);
    free(o);
}

static int ofi_open(const struct gtopo_endpoint_options *options, void **endpoint, struct gtopo_error *error)
{
    struct gtopo_signals signals;
    struct gtopo_ofi *o;
    int status;

    o = calloc(1, sizeof *o);
    if (!o)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    o->probe = options->probe;
    o->message_B = (size_t)options->probe->message_B;
    o->initiator = options->initiator;
    o->seed = options->seed;
    o->region = options->region;
    o->deadline_ns = options->deadline_ns;
    o->one_processor = options->one_processor;
    o->peer = FI_ADDR_UNSPEC;
    lay_out(o);
    gtopo_signals_save(&signals);
    status = read_device(o, options->own->device, error);
    if (!status)
        status = find_provider(o, error);
    if (!status)
        status = count_operations(o, error);
    if (!status)
        gtopo_ofi_fill(o);
    if (!status)
        status = open_endpoint(o, error);
    if (!status)
        status = post_receives(o, error);
    gtopo_signals_restore(&signals);
    if (status) {
        ofi_close(o);
        return status;
    }
    *endpoint = o;
    return 0;
}

/* ---- connecting ---- */

static int ofi_address(void *endpoint, void *data, size_t *size, struct gtopo_error *error)
{
    const struct gtopo_ofi *o = endpoint;
    struct blob blob = {
        .magic = BLOB_MAGIC,
        .version = htole16(BLOB_VERSION),
        .initiator = o->initiator != 0,
        .metric = (uint8_t)o->probe->metric,
        .message_B = htole64(o->message_B),
        .depth = htole32(gtopo_options_depth(o->probe)),
        .format = htole32(o->info->addr_format),
    };
    size_t address_B = sizeof blob.address;
    int status = fi_getname(&o->ep->fid, blob.address, &address_B);

    if (status)
        return gtopo_ofi_fail(o, -status, "its own address", error);
    if (*size < sizeof blob)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "an address needs %zu bytes", sizeof blob);
    blob.address_B = htole32((uint32_t)address_B);
    memcpy(blob.provider, o->provider, sizeof blob.provider);
    memcpy(data, &blob, sizeof blob);
    *size = sizeof blob;
    return 0;
}

static const struct gtopo_blob_form form = {"libfabric", BLOB_MAGIC, BLOB_VERSION, sizeof(struct blob)};

static int refuse(struct gtopo_error *error, const char *what)
{
    return gtopo_blob_refuse(&form, what, error);
}

/* Is the provider's part of the form that it says, so that the provider reads nothing beyond it? */
static int address_is_whole(const struct blob *blob)
{
    uint16_t family;

    memcpy(&family, blob->address, sizeof family);
    switch (blob->format) {
    case FI_SOCKADDR_IN:
        return blob->address_B == sizeof(struct sockaddr_in) && family == AF_INET;
    case FI_SOCKADDR_IN6:
        return blob->address_B == sizeof(struct sockaddr_in6) && family == AF_INET6;
    case FI_ADDR_STR:
        return strnlen((const char *)blob->address, blob->address_B) < blob->address_B;
    }
    return 1;
}

static int read_blob(const struct gtopo_ofi *o, const void *data, size_t size, struct blob *blob,
                     struct gtopo_error *error)
{
    int status = gtopo_blob_copy(&form, data, size, blob, error);

    if (status)
        return status;
    blob->message_B = le64toh(blob->message_B);
    blob->depth = le32toh(blob->depth);
    blob->format = le32toh(blob->format);
    blob->address_B = le32toh(blob->address_B);
    if (blob->initiator != !o->initiator)
        return refuse(error, "both ends have the same role");
    if (blob->metric != o->probe->metric || blob->message_B != o->message_B ||
        blob->depth != gtopo_options_depth(o->probe))
        return refuse(error, "the ends are to measure different things");
    if (memcmp(blob->provider, o->provider, sizeof blob->provider) || blob->format != o->info->addr_format)
        return refuse(error, "it is of another provider or address family");
    if (!blob->address_B || blob->address_B > sizeof blob->address || !address_is_whole(blob))
        return refuse(error, "its address is cut");
    return 0;
}

static int ofi_connect(void *endpoint, const void *data, size_t size, struct gtopo_error *error)
{
    struct gtopo_ofi *o = endpoint;
    struct blob peer = {0};
    int status = read_blob(o, data, size, &peer, error);

    if (status)
        return status;
    /* RDM endpoints meet when they first speak */
    status = fi_av_insert(o->av, peer.address, 1, &o->peer, 0, NULL);
    if (status == 1)
        return 0;
    return gtopo_ofi_fail(o, status < 0 ? -status : FI_EINVAL, "the other end's address", error);
}

static void ofi_describe(void *endpoint, char *text, size_t size)
{
    const struct gtopo_ofi *o = endpoint;

    snprintf(text, size, "libfabric %s, RDM%s%s", o->info->fabric_attr->prov_name, o->source[0] ? ", from " : "",
             o->source);
}

static void ofi_used(const void *endpoint, struct gtopo_probe_used *used)
{
    const struct gtopo_ofi *o = endpoint;

    used->queue_pairs = 1;
    used->depth = o->probe->metric == GTOPO_LATENCY_ns ? 1 : (int32_t)gtopo_options_depth(o->probe);
}

static const char *ofi_method(const void *endpoint)
{
    const struct gtopo_ofi *o = endpoint;

    return o->probe->metric == GTOPO_LATENCY_ns
               ? "half a round trip of messages, polling"
               : "messages, timed by the receiver's credits while the pipe is kept full";
}

static const struct gtopo_transport ofi = {
    .abi = GTOPO_TRANSPORT_ABI,
    .name = "ofi",
    .method = ofi_method,
    .buffer_B = ofi_buffer,
    .open = ofi_open,
    .address = ofi_address,
    .connect = ofi_connect,
    .run = gtopo_ofi_run,
    .serve = gtopo_ofi_serve,
    .verify = gtopo_ofi_verify,
    .describe = ofi_describe,
    .used = ofi_used,
    .close = ofi_close,
};

GTOPO_MODULE_TRANSPORT(ofi)
{
    return &ofi;
}
