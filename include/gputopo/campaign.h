/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Weighing a map: probes within and between hosts, run by two agent processes a host, their results put on the map.
 */
#ifndef GPUTOPO_CAMPAIGN_H
#define GPUTOPO_CAMPAIGN_H

#include <gputopo/map.h>
#include <gputopo/probe.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gtopo_event_kind {
    GTOPO_EVENT_PLANNED,  /**< before the first probe; total is set */
    GTOPO_EVENT_STARTED,  /**< a probe begins */
    GTOPO_EVENT_MEASURED, /**< a probe ended well; measurement is its index in the map */
    GTOPO_EVENT_FAILED,   /**< a probe ended badly; text says why, the finding is in the map */
    GTOPO_EVENT_WARNING,  /**< text says what */
};

/** What happened. Pointers are valid during the call only. */
struct gtopo_event {
    enum gtopo_event_kind kind;
    uint32_t done, total; /**< probes */
    const char *text;     /**< what is measured, or what went wrong */
    uint32_t measurement; /**< index in the map, or GTOPO_NONE */
    double remaining_s;   /**< estimate of the time left */
};

struct gtopo_campaign_options {
    size_t size;
    /** The program that is started as `PROGRAM agent` on this host; NULL takes the installed gtopo-bench. */
    const char *agent_program;
    /**
     * How to start an agent on each host of the map: a shell command in which {host} stands for the host's name, whose
     * standard input and output lead to the agent, for example "ssh {host} gtopo-bench agent". NULL: the map's only
     * host is the one that the program runs on.
     */
    const char *launch;
    /** Measure only this port, NIC or numa object; GTOPO_NONE for all. */
    uint32_t only;
    /** Only the transport of this name ("verbs", "ofi", "ofi:tcp"), or NULL for the best that works. */
    const char *transport;
    /** Bytes a message: for bandwidth (default 65536) and for latency (default 8). */
    uint64_t bandwidth_message_B;
    uint64_t latency_message_B;
    /** Stop a probe when the half-width of the interval is at most this share of the median (default 0.01). */
    double precision;
    /** … or when it has measured for this long (default 2 s). */
    double seconds_per_probe;
    /** A step of a probe without progress is given up after this long (default 5 s). */
    double deadline_s;
    /** Stop everything after this long, keeping what was measured; 0 for no limit. */
    double total_deadline_s;
    void (*on_event)(void *context, const struct gtopo_event *event);
    void *context;
    struct gtopo_cancel *cancel; /**< or NULL */
    /**
     * 1: instead of from port to port, each host by itself: from every memory (NUMA node, GPU) through every RDMA port
     * and back into the same memory, one after the other; then all ports at once, each with the memory nearest to it.
     */
    int32_t loopback;
};
GTOPO_API void gtopo_campaign_options_init(struct gtopo_campaign_options *options);

/**
 * Discover hosts by their names, each through an agent started with options->launch, and add them to a map in this
 * order. The map is left unsealed. A host that cannot be reached or discovered becomes a finding ("host-missing"), the
 * rest goes on. Errors: GTOPO_EPEER when no host was left, GTOPO_EUSAGE for a name that cannot be one,
 * GTOPO_ECANCELLED, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_campaign_gather(struct gtopo_map *map, const char *const *names, size_t count,
                                    const struct gtopo_campaign_options *options, struct gtopo_error *error);

/**
 * Measure the hosts of a sealed map. On each host: every RDMA port in loopback and port to port; where there is none,
 * the host's memory through libfabric. Between two hosts: from each RDMA port to the port of the same place. Each agent
 * is bound to the NUMA node of the port it uses. With options->loopback: each host's memories through its ports, and
 * findings where that contradicts the topology ("affinity-mismatch") or ports slow each other down ("rails-share").
 * Measurements, and findings for probes that failed, are added to the map, which comes back sealed.
 *
 * Returns 0 when every probe was tried, whatever the results say. Errors: GTOPO_ECANCELLED (with the map holding what
 * was measured), GTOPO_EMISSING when nothing can be measured, GTOPO_ELINKDOWN when what was asked for has no link,
 * GTOPO_EPEER when no agent can be started, GTOPO_EUSAGE, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_campaign_run(struct gtopo_map *map, const struct gtopo_campaign_options *options,
                                 struct gtopo_error *error);

/** Two agents for probes between the same two ends of a map, started when they are first needed. */
struct gtopo_pair;

/**
 * @param map   sealed; stays until gtopo_pair_close(). Without options->launch both ends are on its only host.
 * @param from, to  for RDMA a memory (numa, gpu) through a port; without a port (via GTOPO_NONE) the host's memory for
 *              libfabric, or what a copy is from and to. A memory of GTOPO_NONE is the host memory near the port.
 * @param options  agent_program, launch, deadline_s and cancel are used; stays until gtopo_pair_close()
 * Errors: GTOPO_EUSAGE (ends that no probe can have), GTOPO_EMISSING, GTOPO_ELINKDOWN, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_pair_open(const struct gtopo_map *map, const struct gtopo_end *from, const struct gtopo_end *to,
                              const struct gtopo_campaign_options *options, struct gtopo_pair **pair,
                              struct gtopo_error *error);
/**
 * Run a probe. Device, port, memory and NUMA node of both ends are those of the pair; of options->from and to only way
 * and gid are used. Errors: those of gtopo_probe_run(); agents that ended are started afresh by the next call.
 */
GTOPO_API int gtopo_pair_probe(struct gtopo_pair *pair, const struct gtopo_probe_options *options,
                               struct gtopo_probe_result *result, struct gtopo_error *error);
/** Put a result on a map (which is unsealed by it), as gtopo_campaign_run() does. Errors: GTOPO_EUSAGE, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_pair_record(const struct gtopo_pair *pair, const struct gtopo_probe_options *options,
                                const struct gtopo_probe_result *result, struct gtopo_map *map,
                                struct gtopo_error *error);
/**
 * Set what the pair decides of a probe's options, as for gtopo_probe_write_json(): device, port, memory and NUMA node
 * of both ends. The texts are the pair's.
 */
GTOPO_API void gtopo_pair_fill(const struct gtopo_pair *pair, struct gtopo_probe_options *options);
GTOPO_API void gtopo_pair_close(struct gtopo_pair *pair); /**< NULL is accepted */

/**
 * Serve a coordinator over a byte stream until it says bye or closes: the body of `gtopo-bench agent`. The calling
 * thread is bound to processors as the coordinator asks. Errors: GTOPO_EPROTOCOL, GTOPO_EPEER, GTOPO_EVERSION.
 */
GTOPO_API int gtopo_agent_serve(int input_fd, int output_fd, struct gtopo_error *error);

#ifdef __cplusplus
}
#endif
#endif
