/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports between two processes: what they measure, that the data is what was sent, that a dead peer ends a run and
 * a malformed address is refused. verbs runs where there is an RDMA device: in the lab (`tests/lab/run rdma-one`), or
 * that of $GTOPO_TEST_RDMA ("mlx5_0").
 */
#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "bench/clock.h"
#include "bench/memory.h"
#include "bench/statistics.h"
#include "bench/transport.h"

#define DEADLINE_NS UINT64_C(1000000000)  /* where an end dies */
#define PATIENCE_NS UINT64_C(10000000000) /* where none does, on a busy machine or an emulated one */
#define SLACK_NS UINT64_C(2000000000)     /* a busy machine, and a device that gives up late */
#define TEST_TIMEOUT_MS 60000

struct spec {
    const char *transport, *device;
    uint32_t metric;
    size_t message_B;
    uint32_t depth;
    double seconds;
    uint64_t deadline_ns; /* 0 for PATIENCE_NS */
};

/* What an end tells the test. */
struct report {
    int status;
    int verified; /* status of the check of the data */
    struct gtopo_error error;
    struct gtopo_summary summary;
    uint64_t length_ns; /* of run() or serve() */
    double sum_ns;      /* of the samples */
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

static int open_end(const struct spec *spec, int initiator, const struct gtopo_transport **transport, void **buffer,
                    size_t *buffer_B, void **endpoint, struct gtopo_error *error)
{
    const struct gtopo_memory *memory;
    struct gtopo_endpoint_options options = {
        .device = spec->device,
        .port = 1,
        .metric = spec->metric,
        .initiator = initiator,
        .message_B = spec->message_B,
        .depth = spec->depth,
        .deadline_ns = spec->deadline_ns ? spec->deadline_ns : PATIENCE_NS,
    };
    int status = gtopo_transport_find(spec->transport, transport, error);

    if (status || (status = gtopo_memory_find("host", &memory, error)))
        return status;
    options.buffer_B = *buffer_B = (*transport)->buffer_B(spec->message_B, spec->depth);
    status = memory->allocate(GTOPO_NUMA_ANY, *buffer_B, buffer, error);
    if (status)
        return status;
    options.buffer = *buffer;
    return (*transport)->open(&options, endpoint, error);
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
    gtopo_samples_clear(&s.samples);
}

/* Speaks over fd: our address, the other's, 'c' when connected, 'g' to go, the report, 's' to stop, the last report. */
static void end_process(const struct spec *spec, int initiator, int fd)
{
    struct report report = {0};
    const struct gtopo_transport *transport = NULL;
    const struct gtopo_memory *memory;
    void *buffer = NULL, *endpoint = NULL;
    unsigned char blob[GTOPO_BLOB_MAX] = {0};
    size_t size = sizeof blob, buffer_B = 0;
    uint64_t start_ns;
    char word = 'c';

    report.status = open_end(spec, initiator, &transport, &buffer, &buffer_B, &endpoint, &report.error);
    if (!report.status)
        report.status = transport->address(endpoint, blob, &size, &report.error);
    write_all(fd, &report.status, sizeof report.status);
    if (report.status) {
        write_all(fd, &report, sizeof report);
        _exit(1);
    }
    write_all(fd, &size, sizeof size);
    write_all(fd, blob, size);
    read_all(fd, &size, sizeof size);
    read_all(fd, blob, size);
    report.status = transport->connect(endpoint, blob, size, &report.error);
    write_all(fd, &word, 1);
    read_all(fd, &word, 1);
    start_ns = gtopo_clock_ns();
    if (!report.status && initiator)
        run_end(spec, transport, endpoint, &report);
    else if (!report.status && transport->serve)
        report.status = transport->serve(endpoint, &report.error);
    report.length_ns = gtopo_clock_ns() - start_ns;
    transport->describe(endpoint, report.description, sizeof report.description);
    write_all(fd, &report, sizeof report);
    read_all(fd, &word, 1);
    if (!report.status)
        report.verified = transport->verify(endpoint, &report.error);
    write_all(fd, &report, sizeof report);
    transport->close(endpoint);
    gtopo_memory_find("host", &memory, NULL);
    memory->release(buffer, buffer_B);
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

static void skip_missing(const struct gtopo_error *error)
{
    print_message("skipped: %s (%s)\n", error->message, error->hint);
    skip();
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
    print_message("%s:%s %s %zu B depth %u: median %.0f ns [%.0f .. %.0f], %llu samples, %llu warm-up; %s\n",
                  spec->transport, spec->device, spec->metric == GTOPO_LATENCY_ns ? "latency" : "batches",
                  spec->message_B, spec->depth, summary->median, summary->low, summary->high,
                  (unsigned long long)summary->samples, (unsigned long long)summary->warmup, reports[0].description);
    assert_true(summary->low > 0 && summary->low <= summary->median && summary->median <= summary->high);
    /* the samples are times of this run, not more than there were (half a round trip counts half) */
    assert_true(reports[0].sum_ns <= (double)reports[0].length_ns);
    assert_true(strlen(reports[0].description) > 5);
    assert_true(strlen(reports[0].description) < sizeof reports[0].description - 1);
}

/* Every size that is laid out in another way, and depths at which credits and signals differ. */
static void check_shapes(const char *transport, const char *device)
{
    static const size_t sizes[] = {1, 2, 65, 4096, 8193, 65536, 1048576};
    static const uint32_t depths[] = {1, 7, 128, 1000};
    size_t i;

    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct spec spec = {transport, device, GTOPO_BANDWIDTH_Bps, sizes[i], 16, 0.05, 0};

        check_measurement(&spec);
        spec.metric = GTOPO_LATENCY_ns;
        check_measurement(&spec);
    }
    for (i = 0; i < sizeof depths / sizeof *depths; i++) {
        struct spec spec = {transport, device, GTOPO_BANDWIDTH_Bps, 4096, depths[i], 0.05, 0};

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

static void check_deaths(const char *transport, const char *device)
{
    struct spec spec = {transport, device, GTOPO_BANDWIDTH_Bps, 65536, 32, 30, DEADLINE_NS};
    int victim;

    for (victim = 0; victim < 2; victim++) {
        spec.metric = GTOPO_BANDWIDTH_Bps;
        check_death(&spec, victim);
        spec.metric = GTOPO_LATENCY_ns;
        check_death(&spec, victim);
    }
}

/* ---- addresses that are none ---- */

struct two_ends {
    const struct gtopo_transport *transport;
    const struct gtopo_memory *memory;
    void *endpoints[2], *buffers[2];
    size_t sizes[2];
};

static void close_two(struct two_ends *two)
{
    int i;

    for (i = 0; i < 2; i++) {
        if (two->transport)
            two->transport->close(two->endpoints[i]);
        if (two->buffers[i])
            two->memory->release(two->buffers[i], two->sizes[i]);
    }
}

static void open_two(const struct spec *spec, struct two_ends *two)
{
    struct gtopo_error error = {0};
    int i, status = 0;

    memset(two, 0, sizeof *two);
    assert_int_equal(gtopo_memory_find("host", &two->memory, NULL), 0);
    for (i = 0; i < 2 && !status; i++)
        status = open_end(spec, i == 0, &two->transport, &two->buffers[i], &two->sizes[i], &two->endpoints[i], &error);
    if (status == GTOPO_EMISSING) {
        close_two(two);
        skip_missing(&error);
    }
    assert_int_equal(status, 0);
}

static void refused(const struct two_ends *two, const void *blob, size_t size)
{
    struct gtopo_error error = {0};
    int status = two->transport->connect(two->endpoints[0], blob, size, &error);

    assert_true(status == GTOPO_EPROTOCOL || status == GTOPO_EVERSION);
    assert_int_equal(error.code, status);
    assert_true(strlen(error.message) > 0 && strlen(error.message) < sizeof error.message - 1);
}

static void check_blobs(const char *transport, const char *device)
{
    struct spec spec = {transport, device, GTOPO_BANDWIDTH_Bps, 4096, 16, 0, 0};
    unsigned char own[GTOPO_BLOB_MAX], good[GTOPO_BLOB_MAX], bad[GTOPO_BLOB_MAX + 1] = {0};
    size_t size = sizeof good, own_size = sizeof own, small = 8, i;
    struct two_ends two;
    uint32_t random = 1;

    open_two(&spec, &two);
    assert_int_equal(two.transport->address(two.endpoints[1], good, &size, NULL), 0);
    assert_int_equal(two.transport->address(two.endpoints[0], own, &own_size, NULL), 0);
    assert_int_equal(two.transport->address(two.endpoints[1], bad, &small, NULL), GTOPO_EUSAGE);
    refused(&two, own, own_size); /* both ends the same role */
    for (i = 0; i < size; i++)
        refused(&two, good, i);
    memcpy(bad, good, size);
    refused(&two, bad, size + 1);
    for (i = 0; i < 24; i++) { /* magic, version, role, metric, message size */
        memcpy(bad, good, size);
        bad[i] ^= 0x40;
        if (i < 16)
            refused(&two, bad, size);
    }
    memset(bad + 6, 0xff, size - 6);
    refused(&two, bad, size);
    memset(bad + 16, 0, size - 16);
    memcpy(bad, good, 16);
    refused(&two, bad, size);
    for (i = 0; i < 2000; i++) { /* any answer will do, but for a crash */
        memcpy(bad, good, size);
        random = random * 1664525 + 1013904223;
        bad[16 + (random >> 8) % (size - 16)] = (unsigned char)(random >> 24);
        if (memcmp(bad, good, size))
            two.transport->connect(two.endpoints[0], bad, size, NULL);
    }
    close_two(&two);
    open_two(&spec, &two);
    size = sizeof good;
    assert_int_equal(two.transport->address(two.endpoints[1], good, &size, NULL), 0);
    assert_int_equal(two.transport->connect(two.endpoints[0], good, size, NULL), 0);
    close_two(&two);
}

/* ---- what a transport must refuse or leave alone ---- */

static void test_unknown_names(void **state)
{
    const struct gtopo_transport *transport;
    const struct gtopo_memory *memory;
    struct gtopo_error error = {0};

    (void)state;
    assert_int_equal(gtopo_transport_find("pigeon", &transport, &error), GTOPO_EUSAGE);
    assert_non_null(strstr(error.hint, "verbs"));
    assert_non_null(strstr(error.hint, "ofi"));
    assert_int_equal(gtopo_memory_find("disk", &memory, &error), GTOPO_EUSAGE);
}

/* Opening must fail, with this status. */
static void open_fails(const struct spec *spec, int wanted, const char *said)
{
    const struct gtopo_transport *transport = NULL;
    const struct gtopo_memory *memory;
    struct gtopo_error error = {0};
    void *buffer = NULL, *endpoint = NULL;
    size_t buffer_B = 0;
    int status = open_end(spec, 1, &transport, &buffer, &buffer_B, &endpoint, &error);

    gtopo_memory_find("host", &memory, NULL);
    memory->release(buffer, buffer_B);
    if (!transport)
        skip_missing(&error);
    print_message("%s: %s (%s)\n", gtopo_status_name(status), error.message, error.hint);
    assert_int_equal(status, wanted);
    assert_null(endpoint);
    assert_non_null(strstr(error.message, said));
}

static void test_ofi_unknown_provider(void **state)
{
    struct spec spec = {"ofi", "pigeon", GTOPO_LATENCY_ns, 8, 1, 0, 0};

    (void)state;
    open_fails(&spec, GTOPO_EMISSING, "pigeon");
    spec.device = "tcp:nowhere0";
    open_fails(&spec, GTOPO_EMISSING, "nowhere0");
    spec.device = ":";
    open_fails(&spec, GTOPO_EUSAGE, "provider");
    spec = (struct spec){"ofi", "tcp", GTOPO_BANDWIDTH_Bps, 0, 1, 0, 0};
    open_fails(&spec, GTOPO_EUSAGE, "0 bytes");
    spec = (struct spec){"ofi", "shm", GTOPO_BANDWIDTH_Bps, 1, 100000, 0, 0};
    open_fails(&spec, GTOPO_EUSAGE, "in flight");
}

static void test_verbs_unknown_device(void **state)
{
    struct spec spec = {"verbs", "pigeon0", GTOPO_LATENCY_ns, 8, 1, 0, 0};

    (void)state;
    open_fails(&spec, GTOPO_EMISSING, "pigeon0");
}

static void note_signal(int number)
{
    (void)number;
}

/* The library installs no signal handlers, and libfabric none through us. */
static void test_ofi_leaves_signals_alone(void **state)
{
    struct spec spec = {"ofi", "shm", GTOPO_LATENCY_ns, 8, 1, 0, 0};
    struct sigaction action = {.sa_handler = note_signal}, term, interrupt, after;
    struct two_ends two;

    (void)state;
    sigaction(SIGTERM, &action, &term);
    sigaction(SIGINT, NULL, &interrupt);
    open_two(&spec, &two);
    close_two(&two);
    sigaction(SIGTERM, &term, &after);
    assert_ptr_equal(after.sa_handler, note_signal);
    sigaction(SIGINT, NULL, &after);
    assert_ptr_equal(after.sa_handler, interrupt.sa_handler);
}

/* ---- memory ---- */

static void test_memory(void **state)
{
    const struct gtopo_memory *memory;
    struct gtopo_error error = {0};
    struct gtopo_affinity affinity = {0};
    unsigned char *data;
    void *memory_data;
    size_t i;

    (void)state;
    assert_int_equal(gtopo_memory_find("host", &memory, NULL), 0);
    assert_int_equal(gtopo_affinity_save(&affinity, &error), 0);
    assert_int_equal(gtopo_memory_bind_thread(0, GTOPO_SHARE_ALL, &error), 0);
    assert_int_equal(memory->allocate(0, 3 << 20, &memory_data, &error), 0);
    data = memory_data;
    assert_int_equal((uintptr_t)data % 4096, 0);
    for (i = 0; i < 3 << 20; i++)
        assert_int_equal(data[i], 0);
    memory->release(data, 3 << 20);
    gtopo_affinity_restore(&affinity);
    assert_null(affinity.set);
    gtopo_affinity_restore(&affinity);
    assert_int_equal(memory->allocate(1000, 4096, &memory_data, &error), GTOPO_EMISSING);
    assert_non_null(strstr(error.message, "1000"));
    assert_int_equal(gtopo_memory_bind_thread(1000, GTOPO_SHARE_ALL, &error), GTOPO_EMISSING);
    assert_int_equal(memory->allocate(GTOPO_NUMA_ANY, SIZE_MAX / 4, &memory_data, &error), GTOPO_ENOMEM);
}

/* ---- the cases ---- */

/* An RDMA device of this host, or NULL. */
static const char *rdma_device(void)
{
    static char name[256];
    const char *named = getenv("GTOPO_TEST_RDMA");
    struct dirent *entry;
    DIR *folder;

    if (named)
        return named;
    folder = opendir("/sys/class/infiniband");
    name[0] = 0;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && (!name[0] || strcmp(entry->d_name, name) < 0))
            snprintf(name, sizeof name, "%s", entry->d_name);
    if (folder)
        closedir(folder);
    return name[0] ? name : NULL;
}

static const char *need_rdma(void)
{
    const char *device = rdma_device();

    if (!device) {
        print_message("skipped: no RDMA device on this host (/sys/class/infiniband)\n");
        skip();
    }
    return device;
}

static void test_tcp_shapes(void **state)
{
    (void)state;
    check_shapes("ofi", "tcp");
}

static void test_shm_shapes(void **state)
{
    (void)state;
    check_shapes("ofi", "shm");
}

static void test_verbs_shapes(void **state)
{
    (void)state;
    check_shapes("verbs", need_rdma());
}

static void test_tcp_deaths(void **state)
{
    (void)state;
    check_deaths("ofi", "tcp");
}

static void test_shm_deaths(void **state)
{
    (void)state;
    check_deaths("ofi", "shm");
}

static void test_verbs_deaths(void **state)
{
    (void)state;
    check_deaths("verbs", need_rdma());
}

static void test_tcp_blobs(void **state)
{
    (void)state;
    check_blobs("ofi", "tcp");
}

static void test_shm_blobs(void **state)
{
    (void)state;
    check_blobs("ofi", "shm");
}

static void test_verbs_blobs(void **state)
{
    (void)state;
    check_blobs("verbs", need_rdma());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_ofi_leaves_signals_alone),
        cmocka_unit_test(test_ofi_unknown_provider),
        cmocka_unit_test(test_verbs_unknown_device),
        cmocka_unit_test(test_tcp_blobs),
        cmocka_unit_test(test_shm_blobs),
        cmocka_unit_test(test_verbs_blobs),
        cmocka_unit_test(test_tcp_shapes),
        cmocka_unit_test(test_shm_shapes),
        cmocka_unit_test(test_verbs_shapes),
        cmocka_unit_test(test_tcp_deaths),
        cmocka_unit_test(test_shm_deaths),
        cmocka_unit_test(test_verbs_deaths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
