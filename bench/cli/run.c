/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench run: discover this host, measure its links, write the map, show the results. */
#include "cli.h"
#include <getopt.h>
#include <string.h>
#include <unistd.h>

enum { HOSTS = 256, LAUNCH, ONLY, TRANSPORT, SECONDS, PRECISION, SIZE, LATENCY_SIZE, TIMEOUT, DEADLINE, LOOPBACK };

static const struct cli_option options[] = {
    {'o', "output", "FILE",
     "where the map goes (default gputopo-map.json); - is standard\n"
     "                             output, and the report then goes to standard error"},
    {HOSTS, "hosts", "A,B,...", "measure these hosts and between them, not this one"},
    {LAUNCH, "launch", "COMMAND",
     "how an agent is started on {host}\n"
     "                             (default: ssh {host} gtopo-bench agent)"},
    {LOOPBACK, "loopback", NULL,
     "every memory through every RDMA port and back, then all ports at\n"
     "                             once: the affinity of each host, measured"},
    {ONLY, "only", "ADDRESS", "measure only this port, NIC or NUMA node; in loopback, also a GPU"},
    {TRANSPORT, "transport", "NAME", "verbs, ofi, ofi:shm or ofi:tcp (default: the best that works)"},
    {SECONDS, "seconds", "S", "measure a probe for at most this long (default 2)"},
    {PRECISION, "precision", "P",
     "stop a probe when its interval is this share of the median\n"
     "                             to either side (default 0.01)"},
    {SIZE, "size", "BYTES", "message size for bandwidth, with k, M, G (default 64k)"},
    {LATENCY_SIZE, "latency-size", "BYTES", "message size for latency (default 8)"},
    {TIMEOUT, "timeout", "S", "give a probe up after this long without progress (default 5)"},
    {DEADLINE, "deadline", "S", "end everything after this long, keeping what was measured"},
    {0, NULL, NULL, NULL},
};

#define HOSTS_MAX 1024

struct settings {
    struct gtopo_campaign_options campaign;
    const char *output, *only;
    const char *hosts[HOSTS_MAX];
    size_t host_count;
};

/* What the events need. */
struct screen {
    FILE *out; /* the report */
    const struct gtopo_map *map;
    struct cli_progress progress;
    int failed;
};

static void on_event(void *context, const struct gtopo_event *event)
{
    struct screen *s = context;
    char line[CLI_LINE];

    cli_progress_wipe(&s->progress);
    switch (event->kind) {
    case GTOPO_EVENT_STARTED:
        cli_progress_show(&s->progress, "[%u/%u, %.0f s left] %.90s", event->done + 1, event->total, event->remaining_s,
                          event->text);
        break;
    case GTOPO_EVENT_MEASURED:
        fprintf(s->out, "%s\n    %s\n", event->text, cli_measurement(s->map, event->measurement, line));
        fflush(s->out);
        break;
    case GTOPO_EVENT_FAILED:
        s->failed = 1;
        fprintf(stderr, "gtopo-bench: %s\n", event->text);
        break;
    case GTOPO_EVENT_WARNING:
        fprintf(stderr, "gtopo-bench: %s\n", event->text);
        break;
    case GTOPO_EVENT_PLANNED:
        break;
    }
}

/* Split a list at its commas, in place. */
static int parse_hosts(struct settings *s, char *list)
{
    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        if (s->host_count == HOSTS_MAX)
            return 0;
        s->hosts[s->host_count++] = name;
    }
    return s->host_count > 0;
}

/* What the values of options may be, for people who gave another. */
static int refuse_value(const struct cli_command *command, int letter, const char *value)
{
    static const struct {
        int letter;
        const char *allowed;
    } ranges[] = {
        {HOSTS, "names with commas between them"},
        {SECONDS, "seconds, from 0.001 to 86400"},
        {PRECISION, "a share of the median, from 0 to 1"},
        {SIZE, "bytes, from 1 to 1G, with k, M or G"},
        {LATENCY_SIZE, "bytes, from 1 to 1G, with k, M or G"},
        {TIMEOUT, "seconds, from 0.001 to 86400"},
        {DEADLINE, "seconds, from 0.001"},
    };
    const struct cli_option *option = command->options;
    size_t i = 0;

    while (option->letter != letter)
        option++;
    while (ranges[i].letter != letter)
        i++;
    return cli_usage(command, "--%s takes %s, not \"%s\"", option->name, ranges[i].allowed, value);
}

static int parse(const struct cli_command *command, int argc, char **argv, struct settings *s)
{
    struct gtopo_campaign_options *c = &s->campaign;
    int letter = 0, ok = 1;
    double number;

    while (ok && (letter = cli_next_option(command, argc, argv)) != -1)
        switch (letter) {
        case 'o':
            s->output = cli_output(optarg);
            break;
        case HOSTS:
            ok = parse_hosts(s, optarg);
            break;
        case LOOPBACK:
            c->loopback = 1;
            break;
        case LAUNCH:
            c->launch = optarg;
            break;
        case ONLY:
            s->only = optarg;
            break;
        case TRANSPORT:
            c->transport = optarg;
            break;
        case SECONDS:
            ok = cli_parse_number(optarg, 0.001, 86400, 0, &c->seconds_per_probe);
            break;
        case PRECISION:
            ok = cli_parse_number(optarg, 0, 1, 0, &c->precision);
            break;
        case SIZE:
            ok = cli_parse_number(optarg, 1, 1 << 30, 1, &number);
            c->bandwidth_message_B = ok ? (uint64_t)number : 0;
            break;
        case LATENCY_SIZE:
            ok = cli_parse_number(optarg, 1, 1 << 30, 1, &number);
            c->latency_message_B = ok ? (uint64_t)number : 0;
            break;
        case TIMEOUT:
            ok = cli_parse_number(optarg, 0.001, 86400, 0, &c->deadline_s);
            break;
        case DEADLINE:
            ok = cli_parse_number(optarg, 0.001, 1e9, 0, &c->total_deadline_s);
            break;
        default:
            return CLI_USAGE;
        }
    if (!ok)
        return refuse_value(command, letter, optarg);
    if (c->launch && !s->host_count)
        return cli_usage(command, "--launch needs --hosts");
    if (s->host_count && !c->launch)
        c->launch = "ssh {host} gtopo-bench agent";
    return optind < argc ? cli_usage(command, "unexpected argument \"%s\"", argv[optind]) : CLI_GOOD;
}

static int discover(struct settings *s, struct gtopo_map **map, struct gtopo_error *error)
{
    struct gtopo_host_options host;
    int status;

    if (!s->host_count) {
        gtopo_host_options_init(&host);
        return cli_discover(&host, map, error);
    }
    *map = gtopo_map_new();
    if (!*map)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    status = gtopo_campaign_gather(*map, s->hosts, s->host_count, &s->campaign, error);
    return status ? status : gtopo_map_seal(*map, error);
}

static int measure(struct gtopo_map *map, struct settings *s, struct screen *screen, struct gtopo_error *error)
{
    struct gtopo_address address;
    int status = s->only ? gtopo_address_parse(map, s->only, &address, error) : 0;

    if (status)
        return status;
    s->campaign.only = s->only ? address.object : GTOPO_NONE;
    screen->map = map;
    status = gtopo_campaign_run(map, &s->campaign, error);
    cli_progress_wipe(&screen->progress);
    return status;
}

/* Write the map, whatever became of the measuring, and say how it went. */
static int finish(const struct gtopo_map *map, const struct settings *s, const struct screen *screen, int measured,
                  const struct gtopo_error *why)
{
    /* A run that failed before it measured anything does not take the place of a file that has something in it. */
    int is_empty = (measured || screen->failed) && !gtopo_map_measurement_count(map), status;
    struct gtopo_error error;

    cli_show_findings(screen->out, map);
    if (s->campaign.loopback) {
        fputc('\n', screen->out);
        if (cli_show_affinity(screen->out, map, &error))
            return cli_fail(&error);
    }
    if (!(is_empty && cli_keep_former(s->output)) && cli_save(map, s->output, &error))
        return cli_fail(&error);
    if (!is_empty && strcmp(s->output, "-"))
        fprintf(screen->out, "\nThe map is in %s; `gtopo-bench show %s` shows it.\n", s->output, s->output);
    if (measured)
        return cli_fail(why);
    status = cli_exit_of_findings(map);
    return screen->failed ? CLI_FAILED : status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct settings s = {.output = "gputopo-map.json"};
    struct screen screen = {0};
    char program[4096] = "";
    struct gtopo_map *map = NULL;
    struct gtopo_error error;
    int status;

    gtopo_campaign_options_init(&s.campaign);
    cli_progress_init(&screen.progress);
    status = parse(command, argc, argv, &s);
    if (status)
        return status;
    if (readlink("/proc/self/exe", program, sizeof program - 1) > 0)
        s.campaign.agent_program = program;
    screen.out = strcmp(s.output, "-") ? stdout : stderr;
    s.campaign.on_event = on_event;
    s.campaign.context = &screen;
    status = cli_check_output("--output", s.output, &error);
    if (!status)
        status = cli_catch_signals(&s.campaign.cancel, &error);
    if (!status)
        status = discover(&s, &map, &error);
    if ((status == GTOPO_EPEER || status == GTOPO_ECANCELLED) && map &&
        !gtopo_map_seal(map, NULL)) /* what was found is kept */
        status = finish(map, &s, &screen, status, &error);
    else if (status)
        status = cli_fail(&error);
    else {
        status = measure(map, &s, &screen, &error);
        /* A mistake in what was asked for leaves nothing worth writing. */
        status = status == GTOPO_EUSAGE || status == GTOPO_ENOTFOUND ? cli_fail(&error)
                                                                     : finish(map, &s, &screen, status, &error);
    }
    gtopo_map_free(map);
    cli_release_signals();
    return status;
}

const struct cli_command cli_run = {
    "run",
    "",
    "Discover this host, measure its links and write the map",
    "On a host, every RDMA port is measured in loopback and to every other; where there is none, the memory of the "
    "host\n"
    "through libfabric. Between hosts, each RDMA port is measured to the one in the same place. With --loopback\n"
    "each host is measured by itself, and the report ends with a matrix of memories and ports. Ctrl-C\n"
    "stops within a second and keeps what was measured; a second one is immediate.",
    options,
    run};
