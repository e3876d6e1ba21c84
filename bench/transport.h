/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport moves bytes between two memories and says how fast. One file an entry, listed in
 * bench/transport/registry.c; an entry that brings a library is a module ($libdir/gputopo/NAME.so).
 *
 * The two ends of a probe are the same code: each opens an endpoint, learns the other's address as an opaque blob,
 * connects, and then one drives (the initiator) while the other serves. Only the initiator keeps time, but for a
 * two-way probe, where each end times what it drives itself.
 */
#ifndef GTOPO_BENCH_TRANSPORT_H
#define GTOPO_BENCH_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>
#include <gputopo/map.h>
#include <gputopo/probe.h>
#include "bench/memory.h"
#ifdef HAVE_CONFIG_H
#include "config.h" /* GTOPO_STATIC_MODULES, GTOPO_HAVE_… */
#endif

#define GTOPO_TRANSPORT_ABI 3
#define GTOPO_BLOB_MAX 8192

/* What a transport goes through that has no devices of its own; constant. */
struct gtopo_transport_provider {
    const char *name;      /* "shm"; NULL closes a list */
    const char *full_name; /* as people name the transport with it: "ofi:shm" */
    int between_nodes;     /* its figure depends on which NUMA nodes the two ends are on */
};

/* Options that not every transport honours. One that is asked for and not honoured is refused before the run. */
enum gtopo_honours {
    GTOPO_HONOURS_QUEUE_PAIRS = 1 << 0,
    GTOPO_HONOURS_DEPTH = 1 << 1,
    GTOPO_HONOURS_MODERATION = 1 << 2,
    GTOPO_HONOURS_POST_LIST = 1 << 3,
    GTOPO_HONOURS_INLINE = 1 << 4,
    GTOPO_HONOURS_RELAXED_ORDERING = 1 << 5,
    GTOPO_HONOURS_MTU = 1 << 6,
    GTOPO_HONOURS_TRAFFIC_CLASS = 1 << 7,
    GTOPO_HONOURS_SERVICE_LEVEL = 1 << 8,
    GTOPO_HONOURS_TWO_WAY = 1 << 9, /* both ends can drive at once */
    GTOPO_HONOURS_CONNECTION_MANAGER = 1 << 10,
    GTOPO_HONOURS_FLUSH = 1 << 11,
    GTOPO_HONOURS_VERIFY_EVERY = 1 << 12,
    GTOPO_HONOURS_GID = 1 << 13,
    GTOPO_HONOURS_ALL = (1 << 14) - 1
};

/* What is known of a transport without its library; bench/transport/registry.c. */
struct gtopo_transport_facts {
    const char *name;
    uint32_t usual;                                   /* the operation that a campaign measures */
    const struct gtopo_transport_provider *providers; /* of memory that goes through no port; NULL for none */
    uint32_t operations;                              /* bit 1 << enum gtopo_operation */
    int alone;                                        /* one process has both memories: there is no other end */
    uint32_t honours;                                 /* enum gtopo_honours */
    int is_rdma;                                      /* its devices are RDMA devices with numbered ports */
    int gpu_memory;                                   /* may use memory that processors cannot touch */
};
/* Errors: GTOPO_EUSAGE. The result is constant. */
int gtopo_transport_facts(const char *name, const struct gtopo_transport_facts **facts, struct gtopo_error *error);
/* All of them, the best first; NULL at the end. */
const struct gtopo_transport_facts *gtopo_transport_facts_at(size_t index);

/* What an endpoint is opened with. All that is pointed at is the caller's and stays until close(). */
struct gtopo_endpoint_options {
    const struct gtopo_probe_options *probe; /* checked by gtopo_probe_options_check() */
    const struct gtopo_probe_end *own;       /* &probe->from or &probe->to */
    int initiator;                           /* 1 for the end that drives */
    uint64_t seed;                           /* of the pattern; the same at both ends */
    struct gtopo_region *region;             /* at least buffer_B() bytes */
    struct gtopo_region *other;              /* the memory of probe->to, for a transport that is alone; else NULL */
    const struct gtopo_memory *host;         /* for what the transport itself needs */
    uint64_t deadline_ns;                    /* longest time without progress */
    int one_processor;                       /* both ends have but one: the other can only move when this one waits */
};

/*
 * When each message was posted and when it was seen complete, for perftest's figures. Of messages that were posted as
 * one list, or seen complete at once, the first has the time and the others may keep GTOPO_TRACE_SAME, so that noting
 * them costs nothing in the loop; gtopo_engine_run() fills them in after it.
 */
#define GTOPO_TRACE_SAME UINT64_MAX
struct gtopo_trace {
    uint64_t *posted_ns, *completed_ns; /* of so many messages: gtopo_run.messages · queue pairs */
    uint64_t posted, completed;
};

/*
 * The initiator's loop fills samples until sample() says so. A sample is the time of `batch` messages (bandwidth), or
 * the time that the metric's method names, of one message (latency). Arrivals are seen in lumps: when more than a batch
 * arrived at once, each batch of the lump gets its share of the time since the last one. The samples of a run sum to
 * its length, so their mean is the rate; their median is not, until they are merged into blocks (statistics.c).
 */
struct gtopo_run {
    uint64_t batch;    /* messages a sample, at least 1; bandwidth only */
    uint64_t messages; /* exactly so many for each queue pair; 0: until sample() says so */
    /* Takes one sample in nanoseconds; non-zero ends the run. For bandwidth it must cost little beside a batch. NULL
     * for an end that only serves. */
    int (*sample)(void *context, double sample_ns);
    /* Asked from time to time while nothing comes; non-zero gives the run up. NULL: as long as something moves. */
    int (*look)(void *context);
    void *context;
    struct gtopo_trace *trace; /* or NULL */
};

/* How this end's memory was reached; see struct gtopo_probe_side. */
struct gtopo_reach {
    char way[16], mapping[32], fallback[512];
    char finding[32]; /* rule that names the fallback ("no-gpudirect"), or "" */
    char next_step[256];
};

struct gtopo_transport {
    uint32_t abi; /* GTOPO_TRANSPORT_ABI */
    const char *name;
    /* How it measures, in words; constant. Of an endpoint that is connected. */
    const char *(*method)(const void *endpoint);
    /* Bytes of memory that an end needs. */
    size_t (*buffer_B)(const struct gtopo_probe_options *probe, int initiator);
    int (*open)(const struct gtopo_endpoint_options *options, void **endpoint, struct gtopo_error *error);
    /* This end's address, to be given to the other; *size holds the room in blob (GTOPO_BLOB_MAX). NULL when alone. */
    int (*address)(void *endpoint, void *blob, size_t *size, struct gtopo_error *error);
    /* The blob comes from a peer: every field of it is checked. NULL when alone. */
    int (*connect)(void *endpoint, const void *blob, size_t size, struct gtopo_error *error);
    /* The initiator's loop: as opened. Ends when run->sample says so, on an error or when nothing moved for
     * deadline_ns; tells the other end's serve() to return. */
    int (*run)(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
    /*
     * The other end's loop, until the initiator's run ended. In a two-way probe it drives too, and hands samples to
     * run->sample, whose answer it does not look at; else that is NULL, and run may be. NULL when that end has nothing
     * to do.
     */
    int (*serve)(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error);
    /* After run and serve: does the memory hold what the other end sent? Errors: GTOPO_EDATA, saying where. */
    int (*verify)(void *endpoint, struct gtopo_error *error);
    /* What was chosen, for people: "RC, MTU 4096, GID 1 ::ffff:10.9.0.1 (RoCE v2)". Zero-terminated. */
    void (*describe)(void *endpoint, char *text, size_t size);
    /* The same as numbers; comes with all of it not applicable. After run() or serve(). NULL: nothing to tell. */
    void (*used)(const void *endpoint, struct gtopo_probe_used *used);
    void (*reach)(void *endpoint, struct gtopo_reach *reach); /* NULL: the memory as it is */
    /* After run or serve: bytes of all messages that this end posted, warm-up and last ones too. NULL where there is no
     * port whose counters could be compared with it. */
    uint64_t (*posted_B)(void *endpoint);
    void (*close)(void *endpoint); /* NULL is accepted */
};

/*
 * The byte at a position of a message: of a seed (the probe's, and the place of the message in the ring), so that a
 * shifted, stale or swapped message shows.
 */
static inline uint64_t gtopo_pattern_word(uint64_t seed, size_t position)
{
    uint64_t word = (position / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ seed;

    word ^= word >> 29;
    word *= UINT64_C(0xbf58476d1ce4e5b9);
    return word ^ word >> 32;
}

static inline uint8_t gtopo_pattern_byte(uint64_t seed, size_t position)
{
    return (uint8_t)(gtopo_pattern_word(seed, position) >> (position % 8 * 8));
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

/* Fill a part of a region with the pattern, or compare it; messages of any size, in pieces. bench/pattern.c */
int gtopo_pattern_store(const struct gtopo_region *region, size_t offset, size_t size, uint64_t seed,
                        struct gtopo_error *error);
/* Fill it with bytes of which each differs from the pattern's. */
int gtopo_pattern_poison(const struct gtopo_region *region, size_t offset, size_t size, uint64_t seed,
                         struct gtopo_error *error);
/* *wrong is the position of the first byte that differs, or `size`; is and should are its values. */
int gtopo_pattern_compare(const struct gtopo_region *region, size_t offset, size_t size, uint64_t seed, size_t *wrong,
                          uint8_t *is, uint8_t *should, struct gtopo_error *error);

#endif
