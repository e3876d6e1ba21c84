/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * One probe: bandwidth, message rate or latency between two memories, each reached through a port or copied directly.
 *
 * The two ends are two processes. The one that asks calls gtopo_probe_run(); the other serves with gtopo_agent_serve()
 * over any byte stream (a socket, the standard streams of ssh, a pair of pipes).
 */
#ifndef GPUTOPO_PROBE_H
#define GPUTOPO_PROBE_H

#include <gputopo/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What moves the bytes. `from` is the initiator, which posts the operations and keeps time. */
enum gtopo_operation {
    GTOPO_WRITE,        /**< RDMA write, from `from` to `to` */
    GTOPO_READ,         /**< RDMA read: `from` fetches what lies at `to` */
    GTOPO_SEND,         /**< send and receive */
    GTOPO_WRITE_IMM,    /**< RDMA write with immediate data, which the other end is told of */
    GTOPO_FETCH_ADD,    /**< atomic fetch and add on 8 bytes at `to` */
    GTOPO_COMPARE_SWAP, /**< atomic compare and swap on 8 bytes at `to` */
    GTOPO_COPY,         /**< a copy engine's copy within one host */
    GTOPO_OPERATIONS
};
/** "write", "read", "send", "write-imm", "fetch-add", "compare-swap", "copy"; NULL for what is none. */
GTOPO_API const char *gtopo_operation_name(uint32_t operation);
/** GTOPO_OPERATIONS when there is none of that name. */
GTOPO_API uint32_t gtopo_operation_of_name(const char *name);

/** By a rule, where a number may be given. */
#define GTOPO_AUTO (-1)

/** One end of a probe. Texts are the caller's. */
struct gtopo_probe_end {
    const char *device; /**< RDMA device ("mlx5_0"), libfabric provider ("tcp", "shm"); "" for a copy */
    uint32_t port;      /**< port number on the device, from 1 */
    const char *memory; /**< "host", "gpu:N" (N as the CUDA driver counts), or by PCI address, "gpu:0000:1b:00.0" */
    /**
     * How GPU memory is to be registered: "dma-buf", "peer-memory" or "staged"; NULL for the best that works, in this
     * order. What was used, and why what stands before it was not, is in the result.
     */
    const char *way;
    int32_t numa; /**< operating system's index of the NUMA node of its thread and host memory, or GTOPO_AUTO for any */
    int32_t gid;  /**< index in the port's GID table, or GTOPO_AUTO for the rule of doc/probes.md */
};

struct gtopo_probe_options {
    size_t size;
    const char *transport; /**< "verbs", "ofi", "copy" */
    struct gtopo_probe_end from, to;
    uint32_t operation;   /**< enum gtopo_operation */
    uint32_t metric;      /**< enum gtopo_metric; the message rate comes with the bandwidth */
    uint64_t message_B;   /**< 1 B to 1 GiB; atomic operations have 8 */
    uint32_t queue_pairs; /**< 1 to 64; latency uses one */
    uint32_t depth; /**< messages in flight a queue pair, up to 8192; 0: 128, fewer when all are 256 MiB, at least 2 */
    uint32_t moderation; /**< one completion in so many messages; 0 by rule (perftest's: 100, above 8 KiB 1) */
    uint32_t
        post_list; /**< at most so many messages are handed over in one call, 1 to 64; 0 by rule (16, above 8 KiB 1) */
    int32_t inline_B;         /**< messages of up to so many bytes travel inside the work request; GTOPO_AUTO by rule */
    int32_t relaxed_ordering; /**< 1, 0, or GTOPO_AUTO: on, except where the end of a message is polled for in memory */
    uint32_t mtu_B;           /**< 256 to 4096; 0 for the smaller of what the two ports run with */
    uint32_t traffic_class;   /**< of the GRH or the IP header, 0 to 255 */
    uint32_t service_level;   /**< 0 to 15; on Ethernet the priority of untagged traffic's map, 0 to 7 */
    int32_t two_way;          /**< both ends drive at once (bandwidth) */
    int32_t connection_manager; /**< connect queue pairs through RDMA CM, by IP addresses */
    int32_t flush;              /**< latency into GPU memory counts until the GPU sees the bytes */
    int32_t verify_every;       /**< check each message while it runs, not only the last ones after it */
    uint64_t iterations;        /**< exactly so many messages instead of precision and seconds; 0 for those */
    double precision;           /**< stop when the interval's half-width is this share of the median */
    double seconds;             /**< … or after this long */
    double deadline_s;          /**< give up after this long without progress */
};

/**
 * The transport that is best between two ends, as people name it ("verbs", "copy", "ofi:shm"; constant): through RDMA
 * ports, or within one host, between memories of which one is a GPU's, or none.
 */
GTOPO_API const char *gtopo_probe_transport(int through_ports, int gpu_memory);

/** Defaults: verbs, host memory at both ends, write, bandwidth, 64 KiB, 1 queue pair, depth by rule, 1 %, 2 s, 5 s. */
GTOPO_API void gtopo_probe_options_init(struct gtopo_probe_options *options);
/**
 * Are the values in their ranges, and do they go together? Errors: GTOPO_EUSAGE, naming what is wrong and what would
 * be right. What a device can do is only known once it is opened.
 */
GTOPO_API int gtopo_probe_options_check(const struct gtopo_probe_options *options, struct gtopo_error *error);

#define GTOPO_HISTOGRAM_MAX 256
#define GTOPO_COUNTERS_MAX 64
#define GTOPO_PROBE_FINDINGS_MAX 16

/** Values v with low <= v < high. */
struct gtopo_histogram_bin {
    double low, high;
    uint64_t count;
};

/** By how much a counter of a port rose during the run. */
struct gtopo_port_counter {
    char name[48]; /**< the kernel's: "port_xmit_data" (in bytes here, as all data counters), "out_of_sequence" */
    uint64_t rise;
};

struct gtopo_probe_finding {
    char rule[32];
    uint32_t severity; /**< enum gtopo_severity */
    char text[512];
    char next_step[256]; /**< or "" */
};

/**
 * What a probe ran with at one end, whether it was asked for or chosen by a rule. GTOPO_AUTO for what does not apply: a
 * transport or way that has it not, memory that is no host's.
 */
struct gtopo_probe_used {
    int32_t queue_pairs, depth;    /**< depth: of messages; GPU memory that is staged is under way in chunks */
    int32_t moderation, post_list; /**< bandwidth */
    int32_t inline_B;              /**< size of the messages that travelled inside the work request, 0 for none */
    int32_t relaxed_ordering;      /**< 1 or 0: as the memory was registered */
    int32_t mtu_B;
    int32_t gid;           /**< index of the port's own; where LIDs do it is none */
    int32_t traffic_class; /**< of the GRH or the IP header */
    int32_t service_level;
    int32_t page_B;      /**< size of the pages that all of its host memory lies in */
    char gid_reason[64]; /**< why that GID: "RoCE v2: same subnet"; or "" */
};

/** What one end did. */
struct gtopo_probe_side {
    char way[16];          /**< how its memory was reached: "host", "dma-buf", "peer-memory", "staged", "device" */
    char mapping[32];      /**< of dma-buf memory: "PCIe", "default"; else "" */
    char fallback[512];    /**< what stands before that way and why it was not used, or "" */
    char description[256]; /**< what was chosen on its port: "RC, MTU 4096, GID 1 … (RoCE v2: same subnet)" */
    struct gtopo_probe_used used;
    uint32_t counter_count;
    struct gtopo_port_counter counters[GTOPO_COUNTERS_MAX];
};

/** The figures that perftest would print for the same times (its 6.x formulas; doc/probes.md). 0 where it has none. */
struct gtopo_perftest_figures {
    uint64_t iterations;
    double bandwidth_peak_MiBps, bandwidth_average_MiBps, message_rate_Mps;
    double t_min_us, t_max_us, t_typical_us, t_avg_us, t_stdev_us, t_99_us, t_999_us;
};

/** A probe's result. Plain data: copy it as you like. */
struct gtopo_probe_result {
    size_t size;
    double median, low, high; /**< in the metric's unit, with the 95 % interval; two-way: of both directions together */
    double forward, reverse;  /**< two-way: the median of each direction, else 0 */
    double messages_per_s;    /**< bandwidth: the median as messages; else 0 */
    uint64_t samples, warmup_samples;
    double minimum, maximum; /**< latency: of the samples counted */
    double p99, p999;        /**< latency; 0 where the sample is too small for them (fewer than 299, 2995) */
    uint32_t histogram_count;
    struct gtopo_histogram_bin histogram[GTOPO_HISTOGRAM_MAX]; /**< latency, of the samples counted */
    char stopped_by[16]; /**< "precision", "one-direction", "deadline", "iterations", "cancelled" */
    char method[256];    /**< how, in words: "half a round trip of RDMA writes, polling on the last byte" */
    int32_t verified;    /**< 1: the data was compared; 0: interrupted, and nobody said in time ("not-verified") */
    struct gtopo_probe_side from, to;
    uint32_t finding_count;
    struct gtopo_probe_finding findings[GTOPO_PROBE_FINDINGS_MAX];
    struct gtopo_perftest_figures perftest; /**< with options.iterations only */
};

/** A byte stream to a process that serves with gtopo_agent_serve(). */
struct gtopo_probe_stream {
    int input_fd, output_fd; /**< become non-blocking; may be the same */
    const char *name;        /**< who is there, for messages: "node3" */
};

/**
 * Run one probe and wait for it.
 * @param from  where the initiator is; NULL runs it in a thread of this process
 * @param to    where the other end is; not used, and may be NULL, for a copy
 * @param result  filled on success; ~40 KiB, so keep it off small stacks
 * Errors: GTOPO_EUSAGE, GTOPO_EMISSING (device, driver, library), GTOPO_ELINKDOWN, GTOPO_EDEVICE, GTOPO_ESYSTEM,
 * GTOPO_EDATA (the bytes were wrong), GTOPO_EPEER, GTOPO_EPROTOCOL, GTOPO_ETIMEOUT, GTOPO_ECANCELLED, GTOPO_ENOMEM.
 * After GTOPO_EPEER, GTOPO_EPROTOCOL, GTOPO_ETIMEOUT and GTOPO_ECANCELLED the streams are to be closed; after others
 * they serve the next probe. Thread-safe on separate streams.
 */
GTOPO_API int gtopo_probe_run(const struct gtopo_probe_options *options, const struct gtopo_probe_stream *from,
                              const struct gtopo_probe_stream *to, const struct gtopo_cancel *cancel,
                              struct gtopo_probe_result *result, struct gtopo_error *error);

/** Options and result as one JSON object (doc/probe.schema.json). Errors: GTOPO_EIO, GTOPO_ENOMEM. */
GTOPO_API int gtopo_probe_write_json(const struct gtopo_probe_options *options, const struct gtopo_probe_result *result,
                                     gtopo_write_function write, void *context, struct gtopo_error *error);

#ifdef __cplusplus
}
#endif
#endif
