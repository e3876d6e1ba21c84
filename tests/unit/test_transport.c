/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports between two processes: what they measure, that the data is what was sent, that a dead peer ends a run.
 * verbs runs where there is an RDMA device: in the lab (`tests/lab/run rdma-one`), or that of $GTOPO_TEST_RDMA
 * ("mlx5_0").
 */
#include "transport_end.h"

#define DEADLINE_NS UINT64_C(1000000000) /* where an end dies */
#define SLACK_NS UINT64_C(2000000000)    /* a busy machine, and a device that gives up late */
#define TEST_TIMEOUT_MS 60000

/* What an end tells the test. */
struct report {
    int status;
    int verified; /* status of the check of the data */
    struct gtopo_error error;
    struct gtopo_summary summary;
    uint64_t length_ns; /* of run() or serve() */
    double sum_ns;      /* of the samples */
    uint64_t seen;      /* samples */
    uint64_t posted_B;
    char description[256];
};

/* ---- one end, a process ---- */

struct sampling {
    struct gtopo_samples samples;
    uint64_t length_ns, end_ns; /* from the first sample on: to meet may take a while (rxm: some 60 ms) */
    double sum_ns;
};

static int sample(void *context, double sample_ns)
{
    struct sampling *s = context;
    uint64_t now_ns = gtopo_clock_ns();

    if (!s->end_ns)
        s->end_ns = now_ns + s->length_ns;
    s->sum_ns += sample_ns;
    return gtopo_samples_add(&s->samples, sample_ns) ||
           (now_ns > s->end_ns && s->samples.seen >= 2 * GTOPO_SAMPLES_MIN);
}

static void must(int ok)
{
    if (!ok)
        _exit(99);
}

static void read_all(int fd, void *data, size_t size)
{
    must(recv(fd, data, size, MSG_WAITALL) == (ssize_t)size);
}

static void write_all(int fd, const void *data, size_t size)
{
    must(send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void run_end(const struct spec *spec, const struct gtopo_transport *transport, void *endpoint,
                    struct report *report)
{
    struct sampling s = {.samples = {.batches = spec->metric == GTOPO_BANDWIDTH_Bps}};
    struct gtopo_run run = {
        .batch = spec->depth < 4 ? 1 : spec->depth / 4,
        .sample = sample,
        .context = &s,
    };

    s.length_ns = (uint64_t)(spec->seconds * 1e9);
    report->status = transport->run(endpoint, &run, &report->error);
    if (!report->status)
        report->status = gtopo_samples_summarise(&s.samples, &report->summary, &report->error);
    report->sum_ns = s.sum_ns;
    report->seen = s.samples.seen;
    gtopo_samples_clear(&s.samples);
}

/* Speaks over fd: our address, the other's, 'c' when connected, 'g' to go, the report, 's' to stop, the last report. */
static void end_process(const struct spec *spec, int initiator, int fd)
{
    struct report report = {0};
    const struct gtopo_transport *transport;
    struct end end;
    unsigned char blob[GTOPO_BLOB_MAX] = {0};
    size_t size = sizeof blob;
    uint64_t start_ns;
    char word = 'c';

    report.status = open_end(spec, initiator, &end, &report.error);
    transport = end.transport;
    if (!report.status)
        report.status = transport->address(end.endpoint, blob, &size, &report.error);
    write_all(fd, &report.status, sizeof report.status);
    if (report.status) {
        write_all(fd, &report, sizeof report);
        _exit(1);
    }
    write_all(fd, &size, sizeof size);
    write_all(fd, blob, size);
    read_all(fd, &size, sizeof size);
    read_all(fd, blob, size);
    report.status = transport->connect(end.endpoint, blob, size, &report.error);
    write_all(fd, &word, 1);
    read_all(fd, &word, 1);
    start_ns = gtopo_clock_ns();
    if (!report.status && initiator)
        run_end(spec, transport, end.endpoint, &report);
    else if (!report.status && transport->serve)
        report.status = transport->serve(end.endpoint, NULL, &report.error);
    report.length_ns = gtopo_clock_ns() - start_ns;
    transport->describe(end.endpoint, report.description, sizeof report.description);
    report.posted_B = transport->posted_B ? transport->posted_B(end.endpoint) : 0;
    write_all(fd, &report, sizeof report);
    read_all(fd, &word, 1);
    if (!report.status)
        report.verified = transport->verify(end.endpoint, &report.error);
    write_all(fd, &report, sizeof report);
    close_end(&end);
    exit(0); /* not _exit(): the leak checker looks now */
}

/* ---- the pair ---- */

struct pair {
    pid_t pids[2]; /* initiator, responder */
    int fds[2];
};

static void start(const struct spec *spec, struct pair *pair)
{
    int i;

    for (i = 0; i < 2; i++) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        pair->pids[i] = fork();
        assert_true(pair->pids[i] >= 0);
        if (!pair->pids[i]) {
            signal(SIGSEGV, SIG_DFL); /* cmocka's handler would jump into the test, and say that the parent fell */
            close(fds[0]);
            if (i)
                close(pair->fds[0]);
            end_process(spec, i == 0, fds[1]);
        }
        close(fds[1]);
        pair->fds[i] = fds[0];
    }
}

static void take(int fd, void *data, size_t size)
{
    struct pollfd input = {fd, POLLIN, 0};

    assert_int_equal(poll(&input, 1, TEST_TIMEOUT_MS), 1);
    assert_int_equal(recv(fd, data, size, MSG_WAITALL), size);
}

static void give(int fd, const void *data, size_t size)
{
    assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), size);
}

/* 0, or why the ends cannot be opened, which is the same at both. */
static int join(struct pair *pair, struct gtopo_error *error)
{
    unsigned char blobs[2][GTOPO_BLOB_MAX];
    size_t sizes[2];
    int status[2], i;
    char word;

    for (i = 0; i < 2; i++) {
        take(pair->fds[i], &status[i], sizeof status[i]);
        if (status[i]) {
            struct report report;

            take(pair->fds[i], &report, sizeof report);
            *error = report.error;
            continue;
        }
        take(pair->fds[i], &sizes[i], sizeof sizes[i]);
        take(pair->fds[i], blobs[i], sizes[i]);
    }
    if (status[0] || status[1])
        return status[0] ? status[0] : status[1];
    for (i = 0; i < 2; i++) {
        give(pair->fds[i], &sizes[!i], sizeof sizes[!i]);
        give(pair->fds[i], blobs[!i], sizes[!i]);
    }
    for (i = 0; i < 2; i++)
        take(pair->fds[i], &word, 1);
    give(pair->fds[1], "g", 1);
    give(pair->fds[0], "g", 1);
    return 0;
}

/* A process that was killed leaves libfabric's files in /dev/shm: named by its number, 16 MiB each. */
static void sweep(pid_t pid)
{
    char path[300], prefix[32];
    struct dirent *entry;
    DIR *folder = opendir("/dev/shm");

    snprintf(prefix, sizeof prefix, "%d:", (int)pid);
    while (folder && (entry = readdir(folder)))
        if (!strncmp(entry->d_name, prefix, strlen(prefix))) {
            snprintf(path, sizeof path, "/dev/shm/%s", entry->d_name);
            unlink(path);
        }
    if (folder)
        closedir(folder);
}

static void end(struct pair *pair)
{
    int i;

    for (i = 0; i < 2; i++) {
        close(pair->fds[i]);
        waitpid(pair->pids[i], NULL, 0);
        sweep(pair->pids[i]);
    }
}

static void measure(const struct spec *spec, struct report reports[2])
{
    struct gtopo_error error = {0};
    struct pair pair;
    int i, status, exits[2];

    start(spec, &pair);
    status = join(&pair, &error);
    if (status == GTOPO_EMISSING) {
        end(&pair);
        skip_missing(&error);
    }
    if (status)
        fail_msg("%s (%s)", error.message, error.hint);
    for (i = 0; i < 2; i++) {
        take(pair.fds[i], &reports[i], sizeof reports[i]);
        if (reports[i].status)
            fail_msg("end %d: %s (%s)", i, reports[i].error.message, reports[i].error.hint);
    }
    for (i = 1; i >= 0; i--) {
        give(pair.fds[i], "s", 1);
        take(pair.fds[i], &reports[i], sizeof reports[i]);
        if (reports[i].verified)
            fail_msg("end %d: %s (%s)", i, reports[i].error.message, reports[i].error.hint);
    }
    for (i = 0; i < 2; i++) {
        close(pair.fds[i]);
        waitpid(pair.pids[i], &exits[i], 0);
    }
    assert_int_equal(exits[0], 0);
    assert_int_equal(exits[1], 0);
}

static void check_measurement(const struct spec *spec)
{
    struct report reports[2];
    const struct gtopo_summary *summary = &reports[0].summary;

    measure(spec, reports);
    print_message("%s:%s %s %s %zu B depth %u: median %.0f ns [%.0f .. %.0f], %llu samples, %llu warm-up; %s\n",
                  spec->transport, spec->device, gtopo_operation_name(spec->operation),
                  spec->metric == GTOPO_LATENCY_ns ? "latency" : "batches", spec->message_B, spec->depth,
                  summary->median, summary->low, summary->high, (unsigned long long)summary->samples,
                  (unsigned long long)summary->warmup, reports[0].description);
    assert_true(summary->low > 0 && summary->low <= summary->median && summary->median <= summary->high);
    /* the samples are times of this run, not more than there were (half a round trip counts half) */
    assert_true(reports[0].sum_ns <= (double)reports[0].length_ns);
    if (!strcmp(spec->transport, "verbs")) { /* all that was posted: the warm-up, which gave samples, and more */
        uint64_t batch = spec->metric == GTOPO_LATENCY_ns || spec->depth < 4 ? 1 : spec->depth / 4;

        assert_true(reports[0].posted_B > reports[0].seen * batch * spec->message_B);
        assert_true(spec->metric == GTOPO_LATENCY_ns ? reports[1].posted_B > 0 : reports[1].posted_B == 0);
    }
    assert_true(strlen(reports[0].description) > 5);
    assert_true(strlen(reports[0].description) < sizeof reports[0].description - 1);
}

/* Every size that is laid out in another way, and depths at which credits and signals differ. */
static void check_shapes(const char *transport, const char *device, uint32_t operation)
{
    static const size_t sizes[] = {1, 2, 65, 4096, 8193, 65536, 1048576};
    static const uint32_t depths[] = {1, 7, 128, 1000};
    size_t i;

    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct spec spec = {transport, device, operation, GTOPO_BANDWIDTH_Bps, sizes[i], 16, 0.05, 0, 0};

        check_measurement(&spec);
        spec.metric = GTOPO_LATENCY_ns;
        check_measurement(&spec);
    }
    for (i = 0; i < sizeof depths / sizeof *depths; i++) {
        struct spec spec = {transport, device, operation, GTOPO_BANDWIDTH_Bps, 4096, depths[i], 0.05, 0, 0};

        check_measurement(&spec);
    }
}

/* One end is killed in mid-run: the other ends with an error, in time. */
static void check_death(const struct spec *spec, int victim)
{
    struct gtopo_error error = {0};
    struct report report;
    struct pair pair;
    int status;
    uint64_t killed_ns;

    start(spec, &pair);
    status = join(&pair, &error);
    if (status == GTOPO_EMISSING) {
        end(&pair);
        skip_missing(&error);
    }
    assert_int_equal(status, 0);
    usleep(100000);
    kill(pair.pids[victim], SIGKILL);
    killed_ns = gtopo_clock_ns();
    take(pair.fds[!victim], &report, sizeof report);
    if (!(victim == 0 && !strcmp(spec->transport, "verbs") && spec->metric == GTOPO_BANDWIDTH_Bps)) {
        print_message("%s:%s end %d died: after %.2f s: %s: %s (%s)\n", spec->transport, spec->device, victim,
                      (double)(gtopo_clock_ns() - killed_ns) * 1e-9, gtopo_status_name(report.status),
                      report.error.message, report.error.hint);
        assert_in_set(
            report.status,
            ((const LargestIntegralType[]){(LargestIntegralType)GTOPO_EPEER, (LargestIntegralType)GTOPO_ETIMEOUT}), 2);
    }
    assert_true(gtopo_clock_ns() - killed_ns < DEADLINE_NS + SLACK_NS);
    give(pair.fds[!victim], "s", 1); /* it can close its end, and exit */
    take(pair.fds[!victim], &report, sizeof report);
    assert_int_equal(poll(&(struct pollfd){pair.fds[!victim], POLLIN, 0}, 1, TEST_TIMEOUT_MS), 1);
    end(&pair);
}

static void check_deaths(const char *transport, const char *device, uint32_t operation)
{
    struct spec spec = {transport, device, operation, GTOPO_BANDWIDTH_Bps, 65536, 32, 30, DEADLINE_NS, 0};
    int victim;

    for (victim = 0; victim < 2; victim++) {
        spec.metric = GTOPO_BANDWIDTH_Bps;
        check_death(&spec, victim);
        spec.metric = GTOPO_LATENCY_ns;
        check_death(&spec, victim);
    }
}

static void test_tcp_shapes(void **state)
{
    (void)state;
    check_shapes("ofi", "tcp", GTOPO_SEND);
}

static void test_shm_shapes(void **state)
{
    (void)state;
    check_shapes("ofi", "shm", GTOPO_SEND);
}

static void test_verbs_shapes(void **state)
{
    (void)state;
    check_shapes("verbs", need_rdma(), GTOPO_WRITE);
}

static void test_tcp_deaths(void **state)
{
    (void)state;
    check_deaths("ofi", "tcp", GTOPO_SEND);
}

static void test_shm_deaths(void **state)
{
    (void)state;
    check_deaths("ofi", "shm", GTOPO_SEND);
}

static void test_verbs_deaths(void **state)
{
    (void)state;
    check_deaths("verbs", need_rdma(), GTOPO_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp_shapes), cmocka_unit_test(test_shm_shapes), cmocka_unit_test(test_verbs_shapes),
        cmocka_unit_test(test_tcp_deaths), cmocka_unit_test(test_shm_deaths), cmocka_unit_test(test_verbs_deaths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
