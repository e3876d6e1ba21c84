/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench probe: measure between two memories, one size after the other. */
#include "probe.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After so many failures in a row nothing is to be hoped for from the rest of a sweep. */
#define FAILURES_IN_A_ROW 3

/* ---- the options of each probe ---- */

static int is_atomic(uint32_t operation)
{
    return operation == GTOPO_FETCH_ADD || operation == GTOPO_COMPARE_SWAP;
}

static uint64_t default_size(const struct probe_settings *s, uint32_t metric)
{
    if (is_atomic(s->operation))
        return 8;
    if (metric == GTOPO_BANDWIDTH_Bps)
        return 65536;
    return s->form == PROBE_PERFTEST ? 2 : 8;
}

/* Its figures are compared with perftest's, so what was left out is as it is there. */
static void default_as_perftest(struct gtopo_probe_options *o)
{
    int is_write = o->operation == GTOPO_WRITE || o->operation == GTOPO_WRITE_IMM;

    if (!o->iterations)
        o->iterations = o->metric == GTOPO_BANDWIDTH_Bps && is_write ? 5000 : 1000;
    if (!o->moderation)
        o->moderation = o->post_list; /* of a list its last message */
    if (!o->post_list)
        o->post_list = 1;
}

/* Options that are of one metric only do not hold for the other when both are measured. */
static void keep_to_metric(const struct probe_settings *s, struct gtopo_probe_options *o)
{
    if (!s->metrics[GTOPO_BANDWIDTH_Bps] || !s->metrics[GTOPO_LATENCY_ns])
        return; /* what was asked for and cannot be is refused by the library */
    if (o->metric == GTOPO_BANDWIDTH_Bps) {
        o->flush = 0;
        return;
    }
    o->queue_pairs = 1;
    o->two_way = 0;
    o->verify_every = 0;
}

static void make_options(const struct probe_settings *s, const struct probe_place *place, uint32_t metric, size_t index,
                         struct gtopo_probe_options *o)
{
    struct gtopo_probe_end *ends[2];

    *o = s->options;
    ends[0] = &o->from;
    ends[1] = &o->to;
    o->transport = s->transport;
    o->operation = s->operation;
    o->metric = metric;
    o->message_B = s->size_count ? s->sizes[index] : default_size(s, metric);
    if (s->form == PROBE_PERFTEST)
        default_as_perftest(o);
    for (int end = 0; end < 2; end++)
        ends[end]->way = s->is_one_way && !place->is_gpu[end] ? NULL : s->ways[end];
    keep_to_metric(s, o);
}

/* The library names the members of its struct; people know the options by other names. */
static void name_in(char *text, size_t size)
{
    static const char *const names[][2] = {
        {"message_B", "--size"},
        {"queue_pairs", "--queue-pairs"},
        {"depth", "--depth"},
        {"moderation", "--moderation"},
        {"post_list", "--post-list"},
        {"inline_B", "--inline"},
        {"relaxed_ordering", "--relaxed-ordering"},
        {"mtu_B", "--mtu"},
        {"traffic_class", "--traffic-class"},
        {"service_level", "--service-level"},
        {"two_way", "--two-way"},
        {"connection_manager", "--rdma-cm"},
        {"flush", "--flush"},
        {"verify_every", "--verify-every"},
        {"iterations", "--iterations"},
    };
    char old[sizeof((struct gtopo_error *)0)->message];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *member = strstr(text, names[i][0]);

        if (!member || (member != text && member[-1] != ' '))
            continue;
        snprintf(old, sizeof old, "%s", text);
        snprintf(text, size, "%.*s%s%s", (int)(member - text), old, names[i][1],
                 old + (member - text) + strlen(names[i][0]));
    }
}

static void name_options(struct gtopo_error *error)
{
    if (!strncmp(error->message, "option ", strlen("option ")))
        name_in(error->message, sizeof error->message);
    name_in(error->hint, sizeof error->hint);
}

/* Is it a probe that can be? Ends stand for what they are on their hosts; "ofi:tcp" is a transport and a provider. */
static int check_options(const struct probe_place *place, const struct gtopo_probe_options *options,
                         struct gtopo_error *error)
{
    struct gtopo_probe_options o = *options;
    char transport[32];

    snprintf(transport, sizeof transport, "%.*s", (int)strcspn(options->transport, ":"), options->transport);
    o.transport = transport;
    o.from.memory = place->is_gpu[0] ? "gpu:0" : "host";
    o.to.memory = place->is_gpu[1] ? "gpu:0" : "host";
    return gtopo_probe_options_check(&o, error);
}

/* The first operation that the transport has between such ends; GTOPO_OPERATIONS when it has none. */
static uint32_t first_operation(const char *transport, const struct probe_place *place, struct gtopo_error *error)
{
    struct gtopo_probe_options o;

    gtopo_probe_options_init(&o);
    o.transport = transport;
    for (o.operation = 0; o.operation < GTOPO_OPERATIONS; o.operation++) {
        o.message_B = is_atomic(o.operation) ? 8 : 65536;
        if (!check_options(place, &o, error))
            break;
    }
    return o.operation;
}

static int find_operation(struct probe_settings *s, const struct probe_place *place, struct gtopo_error *error)
{
    static const struct probe_place host_memory;

    s->operation = first_operation(s->transport, place, error);
    if (s->operation == GTOPO_OPERATIONS) /* what is wrong with the ends shows when each probe is checked */
        s->operation = first_operation(s->transport, &host_memory, error);
    return s->operation == GTOPO_OPERATIONS ? GTOPO_EUSAGE : 0;
}

/* What was left open, now that it is known where the ends are; then every probe is checked before the first runs. */
static int complete(struct probe_settings *s, const struct probe_place *place, struct gtopo_error *error)
{
    size_t count = s->size_count ? s->size_count : 1;
    int has_gpu = place->is_gpu[0] || place->is_gpu[1], status = 0;

    if (!s->transport)
        s->transport = gtopo_probe_transport(place->is_network, has_gpu);
    if ((s->ways[0] || s->ways[1]) && !has_gpu)
        return gtopo_fail(error, GTOPO_EUSAGE, "name a GPU's memory (gpu0@nic0:1), or leave --way out",
                          "--way is for GPU memory, and neither end is one");
    if (!place->is_network && (s->options.from.gid != GTOPO_AUTO || s->options.to.gid != GTOPO_AUTO))
        return gtopo_fail(error, GTOPO_EUSAGE, "name a port (nic0:1), or leave --gid out",
                          "--gid is for RDMA ports, and neither end is one");
    if (!place->is_network && s->counters)
        return gtopo_fail(error, GTOPO_EUSAGE, "name a port (nic0:1), or leave --counters out",
                          "--counters are of RDMA ports, and neither end is one");
    if (s->form == PROBE_PERFTEST && strcmp(s->transport, gtopo_probe_transport(1, 0)))
        return gtopo_fail(error, GTOPO_EUSAGE, "leave --compat out, or measure through ports with --transport verbs",
                          "transport %s does not time single messages, which perftest's figures are made of",
                          s->transport);
    if (s->operation == GTOPO_OPERATIONS)
        status = find_operation(s, place, error);
    for (uint32_t metric = 0; !status && metric < GTOPO_METRICS; metric++)
        for (size_t i = 0; !status && s->metrics[metric] && i < count; i++) {
            struct gtopo_probe_options o;

            make_options(s, place, metric, i, &o);
            status = check_options(place, &o, error);
            if (status)
                name_options(error);
        }
    return status;
}

/* ---- the sweep ---- */

struct sweep {
    const struct probe_settings *settings;
    struct probe_place *place;
    struct gtopo_pair *pair;
    struct probe_report *report;
    FILE *out;
    struct cli_progress progress;
    struct gtopo_probe_result *result;
    size_t done, total, measured;
    int in_a_row; /* failures */
    int lost;     /* errno of a write that failed */
    int is_over;  /* no more probes */
    int status;   /* the exit code of the first failure, or CLI_GOOD */
};

static void fail(struct sweep *s, const struct gtopo_probe_options *options, const struct gtopo_error *error)
{
    int is_first = !s->done && !s->measured;

    s->in_a_row++;
    if (!s->status)
        s->status = cli_exit_of_status(error->code);
    if (error->code != GTOPO_ECANCELLED) /* that is told at the end */
        probe_report_failure(s->report, options, error);
    /* What is missing is missing for every size; what cannot be at all shows in the first probe. */
    s->is_over |= error->code == GTOPO_EMISSING || error->code == GTOPO_ELINKDOWN || error->code == GTOPO_ENOMEM ||
                  error->code == GTOPO_ECANCELLED || (is_first && error->code == GTOPO_EUSAGE) ||
                  s->in_a_row == FAILURES_IN_A_ROW;
}

static void succeed(struct sweep *s, struct gtopo_probe_options *options)
{
    const struct gtopo_perftest_figures *perftest = &s->result->perftest;
    struct gtopo_error error;

    if (s->settings->form == PROBE_PERFTEST && !(perftest->bandwidth_average_MiBps > 0 || perftest->t_max_us > 0)) {
        gtopo_fail(&error, GTOPO_EUSAGE,
                   "leave --compat out, or let the port reach the GPU's memory (--way dma-buf says what is missing)",
                   "GPU memory was staged through host memory, in chunks: there are no times of single messages, which "
                   "perftest's figures are made of");
        fail(s, options, &error);
        return;
    }
    s->in_a_row = 0;
    s->measured++;
    gtopo_pair_fill(s->pair, options);
    errno = 0;
    probe_report_result(s->report, options, s->result);
    if (ferror(s->out)) {
        s->lost = errno;
        s->is_over = 1;
    }
    if (s->settings->map && gtopo_pair_record(s->pair, options, s->result, s->place->map, &error))
        fail(s, options, &error);
}

static void run_probe(struct sweep *s, uint32_t metric, size_t index)
{
    struct gtopo_probe_options options;
    struct gtopo_error error;
    char name[CLI_TEXT];
    int status;

    make_options(s->settings, s->place, metric, index, &options);
    cli_progress_show(&s->progress, "[%zu/%zu] %s", s->done + 1, s->total, probe_name(&options, name));
    memset(s->result, 0, sizeof *s->result);
    status = gtopo_pair_probe(s->pair, &options, s->result, &error);
    cli_progress_wipe(&s->progress);
    if (status)
        fail(s, &options, &error);
    else
        succeed(s, &options);
    s->done++;
    if (gtopo_cancel_tripped(s->settings->campaign.cancel))
        s->is_over = 1;
}

static void run_all(struct sweep *s)
{
    size_t count = s->settings->size_count ? s->settings->size_count : 1;

    for (uint32_t metric = 0; metric < GTOPO_METRICS; metric++)
        s->total += s->settings->metrics[metric] ? count : 0;
    for (uint32_t metric = 0; metric < GTOPO_METRICS; metric++)
        for (size_t i = 0; s->settings->metrics[metric] && i < count && !s->is_over; i++)
            run_probe(s, metric, i);
    if (gtopo_cancel_tripped(s->settings->campaign.cancel)) {
        fprintf(stderr, "gtopo-bench: cancelled after %zu of %zu probes\n", s->measured, s->total);
        s->status = CLI_FAILED;
    } else if (s->done < s->total && !ferror(s->out))
        fprintf(stderr, "gtopo-bench: the other %zu of %zu probes were left out\n", s->total - s->done, s->total);
}

/* ---- all ---- */

/* Measure, and write the report to `out` and the map to its file; returns the exit code. *measured probes ended well.
 */
static int measure(const struct probe_settings *settings, struct probe_place *place, FILE *out, size_t *measured)
{
    struct sweep s = {.settings = settings, .place = place, .out = out};
    struct gtopo_error error;
    int status, found;

    cli_progress_init(&s.progress);
    s.result = malloc(sizeof *s.result);
    s.report = probe_report_new(out, settings, place);
    if (!s.result || !s.report)
        status = gtopo_fail(&error, GTOPO_ENOMEM, NULL, "out of memory");
    else
        status = gtopo_pair_open(place->map, &place->ends[0], &place->ends[1], &settings->campaign, &s.pair, &error);
    if (status)
        status = cli_fail(&error);
    else {
        run_all(&s);
        /* A mistake in what was asked for leaves nothing worth writing. */
        found = s.measured || s.status != CLI_USAGE ? probe_report_end(s.report) : CLI_GOOD;
        status = s.status ? s.status : found;
        if (ferror(out))
            status = cli_lose(out, s.lost);
        if (s.measured && settings->map && probe_map_save(settings, place, &error))
            status = cli_fail(&error);
    }
    gtopo_pair_close(s.pair);
    probe_report_free(s.report);
    free(s.result);
    *measured = s.measured;
    return status;
}

/* The report goes to a file when it is whole: what was there before stays until then. */
static int measure_to_file(const struct probe_settings *settings, struct probe_place *place)
{
    struct gtopo_error error;
    char *text = NULL;
    size_t size = 0, measured;
    FILE *out = open_memstream(&text, &size);
    int status;

    if (!out) {
        gtopo_fail(&error, GTOPO_ENOMEM, NULL, "out of memory");
        return cli_fail(&error);
    }
    status = measure(settings, place, out, &measured);
    if (fclose(out)) {
        gtopo_fail(&error, GTOPO_ENOMEM, NULL, "out of memory");
        status = cli_fail(&error);
    } else if ((measured || !cli_keep_former(settings->output)) && size &&
               cli_write_file(settings->output, text, size, &error))
        status = cli_fail(&error);
    free(text);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct probe_settings s = {.operation = GTOPO_OPERATIONS, .metrics = {1, 1}, .form = PROBE_TABLE, .output = "-"};
    struct probe_place place = {0};
    char program[4096] = "gtopo-bench";
    struct gtopo_error error;
    size_t measured;
    int status;

    gtopo_probe_options_init(&s.options);
    gtopo_campaign_options_init(&s.campaign);
    status = probe_parse(command, argc, argv, &s);
    if (status)
        return status;
    if (readlink("/proc/self/exe", program, sizeof program - 1) > 0)
        s.campaign.agent_program = program;
    s.campaign.deadline_s = s.options.deadline_s;
    status = cli_check_output("--output", s.output, &error);
    if (!status && s.map)
        status = cli_check_output("--map", s.map, &error);
    if (!status)
        status = cli_catch_signals(&s.campaign.cancel, &error);
    if (!status)
        status = probe_place_find(&s, &place, &error);
    if (!status)
        status = complete(&s, &place, &error);
    if (status)
        status = cli_fail(&error);
    else
        status = strcmp(s.output, "-") ? measure_to_file(&s, &place) : measure(&s, &place, stdout, &measured);
    probe_place_clear(&place);
    cli_release_signals();
    return status;
}

const struct cli_command cli_probe = {
    "probe",
    "A [B]",
    "Measure bandwidth and latency between two memories",
    "A and B are a memory (numa0, gpu0), a port (nic0:1, with the host's memory near it) or a memory through a\n"
    "port (gpu0@nic0:1); with another host's name and a slash before it (node3/gpu0@nic0:1) they are there. A drives\n"
    "and keeps time. Without B it is measured in loopback. Ctrl-C keeps what was measured; a second one is immediate.",
    probe_options,
    run};
