/* SPDX-License-Identifier: Apache-2.0 */
/* What one end of a probe is told to do, as a message of type "prepare" and as a struct that holds its own texts. */
#ifndef GTOPO_BENCH_SPEC_H
#define GTOPO_BENCH_SPEC_H

#include <jansson.h>
#include <gputopo/probe.h>
#include "bench/options.h"

/* A slow link may take so many times the asked seconds, until there are samples enough to say something. */
#define GTOPO_PATIENCE 4
/* What is in flight when a run ends may take so many deadlines to arrive; a link that is slower is broken. */
#define GTOPO_DRAIN_PATIENCE 4

struct gtopo_spec {
    struct gtopo_probe_options options; /* its texts lie below */
    int initiator;
    int shared;    /* both ends are on this node of one host: each takes one half of its processors */
    uint64_t seed; /* of the pattern of the data; the same at both ends */
    struct {
        char device[64], memory[64], way[16];
    } end_texts[2];
    char transport[32];
};

/* Copy options, which were checked. */
void gtopo_spec_make(struct gtopo_spec *spec, const struct gtopo_probe_options *options, int initiator, int shared,
                     uint64_t seed);
static inline const struct gtopo_probe_end *gtopo_spec_own(const struct gtopo_spec *spec)
{
    return spec->initiator ? &spec->options.from : &spec->options.to;
}

/* All numbers of a table as members of an object, from and to a struct; non-zero when memory is short. */
int gtopo_numbers_json(const struct gtopo_option *table, const void *options, json_t *object);
/* Errors: GTOPO_EPROTOCOL, naming the one that is missing or out of its range. */
int gtopo_numbers_read(const struct gtopo_option *table, const json_t *object, void *options,
                       struct gtopo_error *error);

/* When a run that begins now is given up at the latest, however it moves; UINT64_MAX where messages are counted. */
uint64_t gtopo_run_limit_ns(const struct gtopo_probe_options *options);

/* NULL when memory is short. */
json_t *gtopo_spec_json(const struct gtopo_spec *spec);
/* Errors: GTOPO_EPROTOCOL, and those of gtopo_probe_options_check(). */
int gtopo_spec_read(const json_t *message, struct gtopo_spec *spec, struct gtopo_error *error);

#endif
