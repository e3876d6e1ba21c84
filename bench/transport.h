/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport moves bytes between two processes and says how fast. One file an entry, listed in
 * bench/transport/registry.c; an entry that brings a library is a module ($libdir/gputopo/NAME.so).
 *
 * The two ends of a probe are the same code: each opens an endpoint, learns the other's address as an opaque blob,
 * connects, and then one drives (the initiator) while the other serves. Only the initiator keeps time.
 */
#ifndef GTOPO_BENCH_TRANSPORT_H
#define GTOPO_BENCH_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>
#include <gputopo/map.h>
#ifdef HAVE_CONFIG_H
#include "config.h" /* GTOPO_STATIC_MODULES, GTOPO_HAVE_… */
#endif

#define GTOPO_TRANSPORT_ABI 1
#define GTOPO_BLOB_MAX 1024

/* What both ends agree on before the endpoints are opened. */
struct gtopo_endpoint_options {
    const char *device; /* RDMA device ("mlx5_0") or, for ofi, the provider ("tcp", "shm"); not kept after open() */
    uint32_t port;      /* port number on that device, from 1 */
    uint32_t metric;    /* enum gtopo_metric */
    int initiator;      /* 1 for the end that drives */
    void *buffer;       /* page-aligned; the transport uses all of it, and the caller keeps it until close() */
    size_t buffer_B;    /* at least gtopo_transport.buffer_B(message_B, depth) */
    size_t message_B;
    uint32_t depth;       /* messages in flight */
    uint64_t deadline_ns; /* longest time without progress */
};

/*
 * The initiator's loop fills samples until sample() says so. A sample is the time of `batch` messages (bandwidth), or
 * one way of one message (latency). Arrivals are seen in lumps: when more than a batch arrived at once, each batch of
 * the lump gets its share of the time since the last one. The samples of a run sum to its length, so their mean is the
 * rate; their median is not, until they are merged into blocks (statistics.c).
 */
struct gtopo_run {
    uint64_t batch; /* messages a sample, at least 1; set by the engine, bandwidth only */
    /* Takes one sample in nanoseconds; non-zero ends the run. Called between samples, outside what is timed for
     * latency; for bandwidth it must cost little beside a batch. */
    int (*sample)(void *context, double sample_ns);
    void *context;
};

struct gtopo_transport {
    uint32_t abi; /* GTOPO_TRANSPORT_ABI */
    const char *name;
    const char *operation;                         /* "write", "send" */
    const char *bandwidth_method, *latency_method; /* in words, for the result */
    /* Bytes of memory an endpoint needs. */
    size_t (*buffer_B)(size_t message_B, uint32_t depth);
    int (*open)(const struct gtopo_endpoint_options *options, void **endpoint, struct gtopo_error *error);
    /* This end's address, to be given to the other; *size holds the room in blob (GTOPO_BLOB_MAX). */
    int (*address)(void *endpoint, void *blob, size_t *size, struct gtopo_error *error);
    /* The blob comes from a peer: every field of it is checked. */
    int (*connect)(void *endpoint, const void *blob, size_t size, struct gtopo_error *error);
    /* The initiator's loop: bandwidth or latency, as opened. Ends when run->sample says so, on an error or when
     * nothing moved for deadline_ns; tells the other end's serve() to return. */
    int (*run)(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
    /* The other end's loop, until the initiator's run ended. NULL when that end has nothing to do (the NIC serves). */
    int (*serve)(void *endpoint, struct gtopo_error *error);
    /* After run and serve: does the memory hold what the other end sent (gtopo_pattern_byte)? */
    int (*verify)(void *endpoint, struct gtopo_error *error);
    /* What was chosen, for people: "RC, MTU 4096, GID 1 ::ffff:10.9.0.1 (RoCE v2)". Zero-terminated. */
    void (*describe)(void *endpoint, char *text, size_t size);
    void (*close)(void *endpoint); /* NULL is accepted */
};

/* The bytes that an initiator sends: position in the message, so that a shifted or stale message shows. */
static inline uint8_t gtopo_pattern_byte(size_t position)
{
    return (uint8_t)(position * 131 + (position >> 8) * 29 + 0x5a);
}

/*
 * The one symbol of a transport module, for example gtopo_module_transport_verbs. It bears the module's name so that
 * several can be built into the library, which shows none of them.
 */
typedef const struct gtopo_transport *gtopo_module_transport_function(void);
#ifdef GTOPO_STATIC_MODULES
#define GTOPO_MODULE_TRANSPORT(module) const struct gtopo_transport *gtopo_module_transport_##module(void)
#else
#define GTOPO_MODULE_TRANSPORT(module) GTOPO_API const struct gtopo_transport *gtopo_module_transport_##module(void)
#endif

/*
 * Find a transport, loading its module at first use. The result lives as long as the process. Errors: GTOPO_EUSAGE for
 * a name that is none, GTOPO_EMISSING when it is not built or not installed, GTOPO_EVERSION when it is of another
 * version.
 */
int gtopo_transport_find(const char *name, const struct gtopo_transport **transport, struct gtopo_error *error);

#endif
