/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench probe: the command line. */
#include "probe.h"
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Letters are those of perftest, where it has the option. */
enum {
    TRANSPORT = 256,
    OPERATION,
    METRIC,
    RELAXED_ORDERING,
    FLUSH,
    VERIFY_EVERY,
    PRECISION,
    TIMEOUT,
    WAY,
    JSON,
    COMPAT,
    COUNTERS,
    MAP,
    LAUNCH,
};

const struct cli_option probe_options[] = {
    {TRANSPORT, "transport", "NAME",
     "verbs, ofi:tcp, ofi:shm or copy (default: verbs for ports, copy for\n"
     "                             GPUs without a port, else ofi:shm); between hosts only verbs"},
    {OPERATION, "operation", "NAME",
     "write, read, send, write-imm, fetch-add or compare-swap\n"
     "                             (default: write; send over ofi, copy over copy)"},
    {METRIC, "metric", "NAME", "bandwidth, latency or both (default)"},
    {'s', "size", "LIST",
     "message sizes: 64K, a sweep by doubling 1..64M, or 4K,64K,1M\n"
     "                             (default: 64K for bandwidth, 8 for latency)"},
    {'q', "queue-pairs", "N", "queue pairs at once, 1 to 64 (bandwidth; default 1)"},
    {'t', "depth", "N",
     "messages in flight a queue pair (bandwidth; default 128, as far as\n"
     "                             all are 256 MiB, and a quarter of --iterations)"},
    {'Q', "moderation", "N", "one completion in N messages (default 100; above 8 KiB 1)"},
    {'l', "post-list", "N", "hand over at most N messages in one call (default 16)"},
    {'I', "inline", "N|auto", "messages of up to N bytes travel inside the work request"},
    {RELAXED_ORDERING, "relaxed-ordering", "WHEN", "of PCIe writes: on, off or auto (default)"},
    {'m', "mtu", "BYTES", "256 to 4096 (default: the smaller of what the ports run with)"},
    {'T', "traffic-class", "N", "of the GRH or the IP header, 0 to 255 (default 0)"},
    {'S', "service-level", "N", "0 to 15; on Ethernet the priority, 0 to 7 (default 0)"},
    {'x', "gid", "N|A,B", "index in the GID table of both ports, or of A's and B's"},
    {'b', "two-way", NULL, "both ends send at once (bandwidth)"},
    {'R', "rdma-cm", NULL, "connect the queue pairs through RDMA CM (librdmacm)"},
    {WAY, "way", "W|A,B", "reach GPU memory by dma-buf, peer-memory or staged only"},
    {FLUSH, "flush", NULL, "latency into GPU memory counts until the GPU sees the bytes"},
    {VERIFY_EVERY, "verify-every", NULL, "check every message while it runs, not only the last ones"},
    {'n', "iterations", "N", "exactly N messages (at least 16) a queue pair, instead of the two below"},
    {PRECISION, "precision", "P",
     "stop when the interval is this share of the median to either side\n"
     "                             (default 0.01)"},
    {'D', "seconds", "S", "or after this long (default 2)"},
    {TIMEOUT, "timeout", "S", "give a probe up after this long without progress (default 5)"},
    {JSON, "json", NULL, "one JSON document instead of a table"},
    {COMPAT, "compat", "perftest", "perftest's columns, by its formulas (implies --iterations)"},
    {COUNTERS, "counters", NULL, "below each row, by how much the ports' counters rose"},
    {'o', "output", "FILE", "where it goes; - is standard output, the default"},
    {MAP, "map", "FILE", "add the measurements to this map; made when it is not there"},
    {LAUNCH, "launch", "COMMAND",
     "how an agent is started on another {host}\n"
     "                             (default: ssh {host} gtopo-bench agent)"},
    {0, NULL, NULL, NULL},
};

#define DAY_S 86400.0

/* Options that are one number of struct gtopo_probe_options. */
enum type { U32, U64, REAL };
static const struct number {
    int letter;
    size_t offset;
    enum type type;
    double lowest, highest;
    const char *allowed; /* in words, for people who gave another */
} numbers[] = {
    {'q', offsetof(struct gtopo_probe_options, queue_pairs), U32, 1, 64, "a number from 1 to 64"},
    {'t', offsetof(struct gtopo_probe_options, depth), U32, 1, 8192, "a number from 1 to 8192"},
    {'Q', offsetof(struct gtopo_probe_options, moderation), U32, 1, 8192, "a number from 1 to 8192"},
    {'l', offsetof(struct gtopo_probe_options, post_list), U32, 1, 64, "a number from 1 to 64"},
    {'m', offsetof(struct gtopo_probe_options, mtu_B), U32, 256, 4096, "256, 512, 1024, 2048 or 4096"},
    {'T', offsetof(struct gtopo_probe_options, traffic_class), U32, 0, 255, "a number from 0 to 255"},
    {'S', offsetof(struct gtopo_probe_options, service_level), U32, 0, 15, "a number from 0 to 15"},
    {'n', offsetof(struct gtopo_probe_options, iterations), U64, 16, 1e7, "a number from 16 to 10000000"},
    {PRECISION, offsetof(struct gtopo_probe_options, precision), REAL, 0, 1, "a share of the median, from 0 to 1"},
    {'D', offsetof(struct gtopo_probe_options, seconds), REAL, 0.001, DAY_S, "seconds, from 0.001 to 86400"},
    {TIMEOUT, offsetof(struct gtopo_probe_options, deadline_s), REAL, 0.001, DAY_S, "seconds, from 0.001 to 86400"},
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

/* What the other options take. */
static const struct {
    int letter;
    const char *allowed;
} words[] = {
    {OPERATION, "write, read, send, write-imm, fetch-add, compare-swap or copy"},
    {METRIC, "bandwidth, latency or both"},
    {'s', "sizes from 1 to 1G, as 64K, 1..64M or 4K,64K,1M (at most 64 of them)"},
    {'I', "a number of bytes from 0 to 4096, or auto"},
    {RELAXED_ORDERING, "on, off or auto"},
    {'x', "a number from 0 to 255 or auto, or two of them as 3,1"},
    {WAY, "dma-buf, peer-memory, staged or auto, or two of them as staged,auto"},
    {COMPAT, "perftest"},
};

static int refuse_value(const struct cli_command *command, int letter, const char *value)
{
    const struct cli_option *option = command->options;
    const char *allowed = NULL;

    while (option->letter != letter)
        option++;
    for (size_t i = 0; i < NUMBERS; i++)
        if (numbers[i].letter == letter)
            allowed = numbers[i].allowed;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].letter == letter)
            allowed = words[i].allowed;
    return cli_usage(command, "--%s takes %s, not \"%s\"", option->name, allowed, value);
}

/* ---- values ---- */

/* 1 and the value set, 0 when it is not in its range, -1 when the letter is none of a number. */
static int parse_number(int letter, const char *text, struct gtopo_probe_options *options)
{
    const struct number *number = numbers;
    char *place;
    double value;

    while (number < numbers + NUMBERS && number->letter != letter)
        number++;
    if (number == numbers + NUMBERS)
        return -1;
    if (!cli_parse_number(text, number->lowest, number->highest, 0, &value) ||
        (number->type != REAL && value != floor(value)))
        return 0;
    place = (char *)options + number->offset;
    if (number->type == REAL)
        *(double *)place = value;
    else if (number->type == U64)
        *(uint64_t *)place = (uint64_t)value;
    else
        *(uint32_t *)place = (uint32_t)value;
    return letter != 'm' || !(options->mtu_B & (options->mtu_B - 1));
}

/* A part of a list, zero-terminated; 0 when it is too long to be anything. */
static int copy_part(const char *text, size_t length, char part[32])
{
    if (length >= 32)
        return 0;
    memcpy(part, text, length);
    part[length] = 0;
    return 1;
}

/* "64K", or "1..64M" by doubling. */
static int parse_sizes_of(const char *part, struct probe_settings *s)
{
    const char *dots = strstr(part, "..");
    double low, high;
    char first[32];

    if (!copy_part(part, dots ? (size_t)(dots - part) : strlen(part), first) ||
        !cli_parse_number(first, 1, 1 << 30, 1, &low))
        return 0;
    high = low;
    if (dots && !cli_parse_number(dots + 2, low, 1 << 30, 1, &high))
        return 0;
    for (; low <= high; low *= 2) {
        if (s->size_count == PROBE_SIZES_MAX)
            return 0;
        s->sizes[s->size_count++] = (uint64_t)low;
    }
    return 1;
}

static int parse_sizes(const char *list, struct probe_settings *s)
{
    char part[32];

    s->size_count = 0;
    for (;; list++) {
        size_t length = strcspn(list, ",");

        if (!copy_part(list, length, part) || !parse_sizes_of(part, s))
            return 0;
        list += length;
        if (!*list)
            return 1;
    }
}

/* A whole number or "auto". */
static int parse_automatic(const char *text, double highest, int32_t *number)
{
    double value;

    *number = GTOPO_AUTO;
    if (!strcmp(text, "auto"))
        return 1;
    if (!cli_parse_number(text, 0, highest, 0, &value) || value != floor(value))
        return 0;
    *number = (int32_t)value;
    return 1;
}

/* "X" for both ends, or "A,B"; returns how many there were, 0 for none that can be. */
static int split_pair(const char *list, char parts[2][32])
{
    const char *comma = strchr(list, ',');

    if (!copy_part(list, comma ? (size_t)(comma - list) : strlen(list), parts[0]))
        return 0;
    if (!copy_part(comma ? comma + 1 : list, strlen(comma ? comma + 1 : list), parts[1]))
        return 0;
    return comma ? 2 : 1;
}

static int parse_gids(const char *list, struct gtopo_probe_options *options)
{
    char parts[2][32];

    return split_pair(list, parts) && parse_automatic(parts[0], 255, &options->from.gid) &&
           parse_automatic(parts[1], 255, &options->to.gid);
}

static int parse_ways(const char *list, struct probe_settings *s)
{
    static const char *const known[] = {"dma-buf", "peer-memory", "staged", "auto"};
    char parts[2][32];
    int count = split_pair(list, parts);

    for (int end = 0; count && end < 2; end++) {
        size_t i = 0;

        while (i < sizeof known / sizeof *known && strcmp(known[i], parts[end]))
            i++;
        if (i == sizeof known / sizeof *known)
            return 0;
        s->ways[end] = !strcmp(known[i], "auto") ? NULL : known[i];
    }
    s->is_one_way = count == 1;
    return count;
}

static int parse_relaxed_ordering(const char *text, struct gtopo_probe_options *options)
{
    static const char *const known[] = {"auto", "off", "on"}; /* -1, 0, 1 */

    for (int i = 0; i < 3; i++)
        if (!strcmp(known[i], text)) {
            options->relaxed_ordering = i - 1;
            return 1;
        }
    return 0;
}

static int parse_metric(const char *text, struct probe_settings *s)
{
    int both = !strcmp(text, "both");

    s->metrics[GTOPO_BANDWIDTH_Bps] = both || !strcmp(text, "bandwidth");
    s->metrics[GTOPO_LATENCY_ns] = both || !strcmp(text, "latency");
    return s->metrics[GTOPO_BANDWIDTH_Bps] || s->metrics[GTOPO_LATENCY_ns];
}

/* ---- the line ---- */

/* Options without an argument, and those that are taken as they are; 0 when the letter is none of them. */
static int take_plain(int letter, const char *argument, struct probe_settings *s)
{
    switch (letter) {
    case TRANSPORT:
        s->transport = argument;
        return 1;
    case MAP:
        s->map = argument;
        return 1;
    case LAUNCH:
        s->launch = argument;
        return 1;
    case 'o':
        s->output = cli_output(argument);
        return 1;
    case 'b':
        return s->options.two_way = 1;
    case 'R':
        return s->options.connection_manager = 1;
    case FLUSH:
        return s->options.flush = 1;
    case VERIFY_EVERY:
        return s->options.verify_every = 1;
    case COUNTERS:
        return s->counters = 1;
    }
    return 0;
}

/* The others; 0 for a value that cannot be. */
static int take_value(int letter, const char *argument, struct probe_settings *s)
{
    switch (letter) {
    case OPERATION:
        s->operation = gtopo_operation_of_name(argument);
        return s->operation != GTOPO_OPERATIONS;
    case METRIC:
        return parse_metric(argument, s);
    case 's':
        return parse_sizes(argument, s);
    case 'I':
        return parse_automatic(argument, 4096, &s->options.inline_B);
    case RELAXED_ORDERING:
        return parse_relaxed_ordering(argument, &s->options);
    case 'x':
        return parse_gids(argument, &s->options);
    case WAY:
        return parse_ways(argument, s);
    case COMPAT:
        s->form = PROBE_PERFTEST;
        return !strcmp(argument, "perftest");
    }
    s->has_time |= letter == PRECISION || letter == 'D';
    return parse_number(letter, argument, &s->options) == 1;
}

/* What does not go together on the line; the library knows what does not in a probe. */
static int check(const struct cli_command *command, const struct probe_settings *s, int json)
{
    if (json && s->form == PROBE_PERFTEST)
        return cli_usage(command, "--json and --compat exclude each other: perftest's figures are in the document of "
                                  "--json --iterations N too");
    if (s->form == PROBE_PERFTEST && s->has_time)
        return cli_usage(command, "--compat perftest counts messages: use --iterations instead of --seconds and "
                                  "--precision");
    if (s->options.iterations && s->has_time)
        return cli_usage(command, "--iterations stands instead of --seconds and --precision");
    if (s->form == PROBE_PERFTEST && s->options.two_way)
        return cli_usage(command, "perftest's figures are of one direction: leave --two-way or --compat out");
    if (s->map && !strcmp(s->map, "-"))
        return cli_usage(command, "--map needs a file: measurements are added to what is in it");
    if (s->map && cli_is_same_file(s->map, s->output))
        return cli_usage(command, "--output and --map are one file: the report would replace the map");
    if (s->counters && s->form == PROBE_PERFTEST)
        return cli_usage(command, "--counters is of the table; --json has them always");
    return CLI_GOOD;
}

int probe_parse(const struct cli_command *command, int argc, char **argv, struct probe_settings *s)
{
    int letter, json = 0, status;

    while ((letter = cli_next_option(command, argc, argv)) != -1) {
        if (letter == '?')
            return CLI_USAGE;
        if (letter == JSON)
            json = 1;
        else if (!take_plain(letter, optarg, s) && !take_value(letter, optarg, s))
            return refuse_value(command, letter, optarg);
    }
    status = check(command, s, json);
    if (status)
        return status;
    if (json)
        s->form = PROBE_JSON;
    if (optind == argc)
        return cli_usage(command, "name what to measure: a port (nic0:1), a memory (gpu0), or two with a path between "
                                  "them");
    if (optind + 2 < argc)
        return cli_usage(command, "unexpected argument \"%s\"", argv[optind + 2]);
    s->addresses[0] = argv[optind];
    s->addresses[1] = argv[argc - 1];
    return CLI_GOOD;
}
