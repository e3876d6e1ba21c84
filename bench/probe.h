/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a probe: memory, an endpoint of a transport, the loop that samples until the interval is tight enough,
 * and the check of the data.
 */
#ifndef GTOPO_BENCH_PROBE_H
#define GTOPO_BENCH_PROBE_H

#include <jansson.h>
#include <stdint.h>
#include <gputopo/map.h>
#include "bench/statistics.h"
#include "bench/transport.h"

#define GTOPO_MESSAGE_MAX_B (UINT64_C(1) << 30)
#define GTOPO_DEPTH_MAX 1024
/* A slow link may take so many times the asked seconds, until there are samples enough to say something. */
#define GTOPO_PATIENCE 4

/* What one end is told to do. */
struct gtopo_probe_spec {
    const char *transport, *device, *memory;
    uint32_t port;
    int numa;   /* GTOPO_NUMA_ANY */
    int shared; /* both ends are on this node of one host: each takes one half of its processors */
    int initiator;
    uint32_t metric;
    uint64_t message_B;
    uint32_t depth;
    double precision;  /* stop at this half-width of the interval, as a share of the median */
    double seconds;    /* or after this long */
    double deadline_s; /* longest time without progress */
};

struct gtopo_probe_result {
    struct gtopo_summary summary; /* in the metric's unit */
    const char *stopped_by;
    char description[256];
    int verified;
};

struct gtopo_probe;

/* As a message of type "prepare", and back. The texts of a spec that was read are borrowed from the message. */
json_t *gtopo_probe_spec_json(const struct gtopo_probe_spec *spec);
int gtopo_probe_spec_read(const json_t *message, struct gtopo_probe_spec *spec, struct gtopo_error *error);

/* Bind the thread, allocate, open. Release with gtopo_probe_close(). */
int gtopo_probe_open(const struct gtopo_probe_spec *spec, struct gtopo_probe **probe, struct gtopo_error *error);
void gtopo_probe_close(struct gtopo_probe *probe); /* NULL is accepted */
const struct gtopo_transport *gtopo_probe_transport(const struct gtopo_probe *probe);
int gtopo_probe_address(struct gtopo_probe *probe, void *blob, size_t *size, struct gtopo_error *error);
int gtopo_probe_connect(struct gtopo_probe *probe, const void *blob, size_t size, struct gtopo_error *error);

/*
 * The initiator's part. interrupted() is asked about every 10 ms; non-zero ends the run with what there is. Errors:
 * the transport's, GTOPO_ECANCELLED and GTOPO_ETIMEOUT when there are too few samples to say anything.
 */
int gtopo_probe_run(struct gtopo_probe *probe, int (*interrupted)(void *context), void *context,
                    struct gtopo_probe_result *result, struct gtopo_error *error);
/* The responder's part, until the initiator is done. */
int gtopo_probe_serve(struct gtopo_probe *probe, struct gtopo_error *error);
int gtopo_probe_verify(struct gtopo_probe *probe, struct gtopo_error *error);

#endif
