/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a probe as one table, so that they are checked, sent and written in one way. */
#ifndef GTOPO_BENCH_OPTIONS_H
#define GTOPO_BENCH_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/probe.h>

#define GTOPO_MESSAGE_MAX_B (UINT64_C(1) << 30)
#define GTOPO_MESSAGES_MAX UINT64_C(10000000) /* of a run with a count: each is traced */

enum gtopo_option_type { GTOPO_OPTION_U32, GTOPO_OPTION_I32, GTOPO_OPTION_U64, GTOPO_OPTION_REAL };

/* A number: where it stands in its struct, and what it may be. */
struct gtopo_option {
    const char *key;
    size_t offset;
    enum gtopo_option_type type;
    double lowest, highest;
    uint32_t honours; /* bit of enum gtopo_honours; 0: every transport does */
};
/* Of struct gtopo_probe_options, gtopo_probe_end and gtopo_probe_used; each ends with a key of NULL. */
extern const struct gtopo_option gtopo_probe_numbers[], gtopo_end_numbers[], gtopo_used_numbers[];

double gtopo_option_get(const struct gtopo_option *option, const void *options);
void gtopo_option_set(const struct gtopo_option *option, void *options, double value);

/* perftest's, as far as what is under way is no more bytes than a slow link takes within a deadline */
#define GTOPO_DEPTH 128
#define GTOPO_DEPTH_MIN 2
#define GTOPO_UNDER_WAY_B (UINT64_C(256) << 20) /* of all queue pairs: 2 s at 1 Gb/s, 5 ms at 400 Gb/s */
/* perftest's: one completion in 100 messages, and above this size one for each */
#define GTOPO_MODERATION 100
#define GTOPO_MODERATE_UP_TO_B 8192
/* Long enough that the cost of ringing the doorbell is spread, short enough that the queue does not run dry. */
#define GTOPO_POST_LIST 16

/* What a rule makes of an option that was left to it. */

/* Of a run with a count: with more under way, most of what is measured is how a pipe fills and empties. */
static inline uint64_t gtopo_options_counted_depth(const struct gtopo_probe_options *options)
{
    return options->iterations ? options->iterations / 4 : UINT64_MAX;
}

static inline uint32_t gtopo_options_depth(const struct gtopo_probe_options *options)
{
    uint64_t fitting, counted = gtopo_options_counted_depth(options);

    if (options->depth)
        return options->depth;
    fitting = GTOPO_UNDER_WAY_B / options->message_B / options->queue_pairs;
    if (fitting > counted)
        fitting = counted;
    return fitting > GTOPO_DEPTH ? GTOPO_DEPTH : fitting < GTOPO_DEPTH_MIN ? GTOPO_DEPTH_MIN : (uint32_t)fitting;
}

/* A queue that is full of messages without a completion never empties. */
static inline uint32_t gtopo_options_moderation(const struct gtopo_probe_options *options)
{
    uint32_t moderation = options->moderation, depth = gtopo_options_depth(options);

    if (!moderation)
        moderation = options->message_B > GTOPO_MODERATE_UP_TO_B ? 1 : GTOPO_MODERATION;
    return moderation > depth ? depth : moderation;
}

static inline uint32_t gtopo_options_post_list(const struct gtopo_probe_options *options)
{
    uint32_t length = options->post_list, depth = gtopo_options_depth(options);

    if (!length) /* a doorbell is nothing beside a large message */
        length = options->message_B > GTOPO_MODERATE_UP_TO_B ? 1 : GTOPO_POST_LIST;
    return length > depth ? depth : length;
}

/* A run with a count has so many samples at least, if it has as many messages. */
#define GTOPO_COUNTED_SAMPLES 64
#define GTOPO_BATCH_MAX_B (UINT64_C(1) << 20)

/* Messages of a sample of bandwidth: a quarter of what is in flight, or what takes a while on any link; long enough to
 * time, short enough for many samples on a slow one. */
static inline uint64_t gtopo_options_batch(const struct gtopo_probe_options *options)
{
    uint64_t batch = (uint64_t)gtopo_options_depth(options) * options->queue_pairs / 4;
    uint64_t most = options->iterations * options->queue_pairs / GTOPO_COUNTED_SAMPLES;

    if (batch > GTOPO_BATCH_MAX_B / options->message_B)
        batch = GTOPO_BATCH_MAX_B / options->message_B;
    if (options->iterations && batch > most)
        batch = most;
    return batch ? batch : 1;
}

static inline int gtopo_operation_is_atomic(uint32_t operation)
{
    return operation == GTOPO_FETCH_ADD || operation == GTOPO_COMPARE_SWAP;
}

/* Does its latency count the whole round trip? There the answer brings the data. */
static inline int gtopo_operation_is_round_trip(uint32_t operation)
{
    return operation == GTOPO_READ || gtopo_operation_is_atomic(operation);
}

#endif
