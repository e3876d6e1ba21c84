/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes as an embedder runs them: the initiator in this process, the other end in a child that serves. Every operation
 * and option once, its data checked. verbs runs where there is an RDMA device, in the lab (`tests/lab/run rdma-one`).
 */
#include <gputopo/campaign.h>
#include <math.h>
#include "bench/options.h"
#include "transport_end.h"

struct child {
    pid_t pid;
    int fd;
};

static void start_child(struct child *child)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    fflush(NULL);
    child->pid = fork();
    if (!child->pid) {
        close(fds[0]);
        exit(gtopo_agent_serve(fds[1], fds[1], NULL) ? 1 : 0);
    }
    close(fds[1]);
    child->fd = fds[0];
}

static void end_child(struct child *child)
{
    int status;

    close(child->fd);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
}

static void defaults(struct gtopo_probe_options *options, const char *transport, const char *device)
{
    gtopo_probe_options_init(options);
    options->transport = transport;
    options->from.device = options->to.device = device;
    options->seconds = 0.5;
    options->precision = 0.5;
    options->deadline_s = 10;
    if (!strcmp(transport, "ofi"))
        options->operation = GTOPO_SEND;
}

static int run(struct child *child, const struct gtopo_probe_options *options, struct gtopo_probe_result *result,
               struct gtopo_error *error)
{
    struct gtopo_probe_stream to = {child->fd, child->fd, "the child"};

    return gtopo_probe_run(options, NULL, &to, NULL, result, error);
}

static void must_run(struct child *child, const struct gtopo_probe_options *options)
{
    struct gtopo_probe_result *result = calloc(1, sizeof *result);
    struct gtopo_error error = {0};
    int status = run(child, options, result, &error);

    if (status)
        fail_msg("%s %llu B: %s (%s)", gtopo_operation_name(options->operation), (unsigned long long)options->message_B,
                 error.message, error.hint);
    print_message("%s %s %llu B, %u queue pairs%s%s: %g [%g .. %g], %llu samples, %s; %s; %s\n",
                  gtopo_operation_name(options->operation), gtopo_metric_key(options->metric),
                  (unsigned long long)options->message_B, options->queue_pairs, options->two_way ? ", two-way" : "",
                  options->verify_every ? ", each checked" : "", result->median, result->low, result->high,
                  (unsigned long long)result->samples, result->stopped_by, result->method, result->from.description);
    assert_true(result->low > 0 && result->low <= result->median && result->median <= result->high);
    assert_true(result->verified);
    assert_string_equal(result->from.way, "host");
    assert_string_equal(result->to.way, "host");
    if (!strcmp(options->transport, "verbs"))
        assert_int_equal(!strncmp(result->to.description, "RC, RDMA CM, MTU ", 17), options->connection_manager);
    if (options->two_way) {
        assert_true(result->forward > 0 && result->reverse > 0);
        assert_true(result->forward + result->reverse == result->median);
    }
    if (options->iterations)
        assert_string_equal(result->stopped_by, "iterations");
    free(result);
}

static void set_size(struct gtopo_probe_options *options, uint64_t size)
{
    options->message_B = options->operation == GTOPO_FETCH_ADD || options->operation == GTOPO_COMPARE_SWAP ? 8 : size;
}

static void test_operations(void **state)
{
    const char *device = need_rdma();
    static const uint64_t sizes[] = {1, 8, 65, 4096, 10000, 1 << 20};
    struct child child;

    (void)state;
    start_child(&child);
    for (uint32_t operation = GTOPO_WRITE; operation <= GTOPO_COMPARE_SWAP; operation++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct gtopo_probe_options options;

            defaults(&options, "verbs", device);
            options.operation = operation;
            set_size(&options, sizes[i]);
            options.depth = 16;
            if (sizes[i] > 65536)
                options.seconds = 1;
            if (options.message_B == 8 && i != 1 && sizes[i] != 8)
                continue;
            must_run(&child, &options);
            options.metric = GTOPO_LATENCY_ns;
            must_run(&child, &options);
        }
    end_child(&child);
}
/* Many large messages would not arrive within a deadline on a slow link. */
static void test_depth_by_rule(void **state)
{
    struct gtopo_probe_options options;

    (void)state;
    gtopo_probe_options_init(&options);
    assert_int_equal(gtopo_options_depth(&options), 128);
    options.message_B = UINT64_C(2) << 20;
    assert_int_equal(gtopo_options_depth(&options), 128);
    options.queue_pairs = 2;
    assert_int_equal(gtopo_options_depth(&options), 64);
    options.message_B = GTOPO_MESSAGE_MAX_B;
    options.queue_pairs = 64;
    assert_int_equal(gtopo_options_depth(&options), 2);
    assert_int_equal(gtopo_options_moderation(&options), 1);
    options.depth = 512;
    assert_int_equal(gtopo_options_depth(&options), 512);
}

static void test_options(void **state)
{
    const char *device = need_rdma();
    struct child child;

    (void)state;
    start_child(&child);
    for (uint32_t operation = GTOPO_WRITE; operation <= GTOPO_COMPARE_SWAP; operation++) {
        struct gtopo_probe_options options;
        int atomic = operation == GTOPO_FETCH_ADD || operation == GTOPO_COMPARE_SWAP;

        defaults(&options, "verbs", device);
        options.operation = operation;
        set_size(&options, 4096);
        options.two_way = 1;
        must_run(&child, &options);
        options.queue_pairs = 5;
        must_run(&child, &options);
        options.two_way = 0;
        options.depth = 3;
        options.post_list = 2;
        options.moderation = 2;
        must_run(&child, &options);
        options.iterations = 1001;
        must_run(&child, &options);
        options.mtu_B = 256;
        options.inline_B = operation == GTOPO_READ || atomic ? GTOPO_AUTO : 64;
        options.relaxed_ordering = 0;
        must_run(&child, &options);
        options.queue_pairs = 1;
        options.metric = GTOPO_LATENCY_ns;
        must_run(&child, &options);
        if (atomic)
            continue;
        options.iterations = 0;
        options.metric = GTOPO_BANDWIDTH_Bps;
        options.verify_every = 1;
        must_run(&child, &options);
        options.queue_pairs = 3;
        options.message_B = 100;
        options.depth = 128;
        options.moderation = 0;
        must_run(&child, &options);
    }
    end_child(&child);
}

/* More than the device takes is an error that says how much it takes, and that much is taken. */
static void test_inline(void **state)
{
    const char *device = need_rdma();
    struct gtopo_probe_result *result = malloc(sizeof *result);
    struct gtopo_probe_options options;
    struct gtopo_error error = {0};
    struct child child;
    struct gtopo_probe_stream to;
    const char *most;

    (void)state;
    assert_non_null(result);
    start_child(&child);
    to = (struct gtopo_probe_stream){child.fd, child.fd, "the child"};
    defaults(&options, "verbs", device);
    set_size(&options, 4096);
    options.inline_B = 4096;
    assert_int_equal(gtopo_probe_run(&options, NULL, &to, NULL, result, &error), GTOPO_EUSAGE);
    most = strstr(error.message, "at most ");
    assert_non_null(most);
    set_size(&options, strtoul(most + strlen("at most "), NULL, 10));
    must_run(&child, &options);
    end_child(&child);
    free(result);
}

static unsigned count_fds(pid_t pid)
{
    char path[64];
    unsigned count = 0;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* What RDMA CM connects measures the same, and leaves nothing open but what librdmacm keeps for the next time. */
static void test_connection_manager(void **state)
{
    const char *device = need_rdma();
    struct gtopo_probe_result *result = calloc(1, sizeof *result);
    struct gtopo_probe_options options;
    struct gtopo_error error = {0};
    struct child child;
    unsigned own, served;

    (void)state;
    start_child(&child);
    defaults(&options, "verbs", device);
    options.connection_manager = 1;
    if (run(&child, &options, result, &error) == GTOPO_EMISSING) {
        end_child(&child);
        free(result);
        skip_missing(&error);
    }
    own = count_fds(getpid());
    served = count_fds(child.pid);
    for (uint32_t operation = GTOPO_WRITE; operation <= GTOPO_COMPARE_SWAP; operation++) {
        defaults(&options, "verbs", device);
        options.connection_manager = 1;
        options.operation = operation;
        set_size(&options, 1024);
        options.depth = 16;
        must_run(&child, &options);
        options.queue_pairs = 5;
        options.two_way = 1;
        options.precision = 0; /* the whole time: enough samples at both ends, also in software on a busy machine */
        options.seconds = 2;
        options.mtu_B = 256;
        options.traffic_class = 96;
        options.service_level = 3;
        must_run(&child, &options);
        options.queue_pairs = 1;
        options.two_way = 0;
        options.precision = 0.5;
        options.metric = GTOPO_LATENCY_ns;
        must_run(&child, &options);
    }
    defaults(&options, "verbs", device);
    options.connection_manager = 1;
    set_size(&options, 256);
    options.depth = 2;
    options.queue_pairs = 64;
    options.seconds = 2;
    must_run(&child, &options);
    options.to.gid = 200;
    assert_int_equal(run(&child, &options, result, &error), GTOPO_EUSAGE);
    assert_int_equal(count_fds(getpid()), own);
    assert_int_equal(count_fds(child.pid), served);
    end_child(&child);
    free(result);
}

/* A count that leaves slots unused is no wrong data. */
static void test_few_messages(void **state)
{
    const char *device = need_rdma();
    struct child child;

    (void)state;
    start_child(&child);
    for (uint32_t operation = GTOPO_WRITE; operation <= GTOPO_COMPARE_SWAP; operation++) {
        struct gtopo_probe_options options;

        defaults(&options, "verbs", device);
        options.operation = operation;
        options.message_B = 8;
        options.iterations = 40;
        options.moderation = options.post_list = 1;
        must_run(&child, &options);
    }
    end_child(&child);
}

/* After a probe that failed, the other end serves the next. */
static void test_failure_is_not_the_end(void **state)
{
    const char *device = need_rdma();
    struct gtopo_probe_result *result = calloc(1, sizeof *result);
    struct gtopo_probe_options options;
    struct gtopo_error error;
    struct child child;

    (void)state;
    start_child(&child);
    defaults(&options, "verbs", device);
    options.to.gid = 200;
    assert_int_equal(run(&child, &options, result, &error), GTOPO_EUSAGE);
    assert_non_null(strstr(error.message, "no GID of index 200"));
    options.to.gid = GTOPO_AUTO;
    options.to.device = "pigeon0";
    assert_int_equal(run(&child, &options, result, &error), GTOPO_EMISSING);
    options.to.device = device;
    options.mtu_B = 4096;
    if (run(&child, &options, result, &error))
        assert_non_null(strstr(error.message, "the smaller of the two ports"));
    options.mtu_B = 0;
    must_run(&child, &options);
    end_child(&child);
    free(result);
}

static void test_ofi(void **state)
{
    static const char *const devices[] = {"tcp", "shm"};
    const struct gtopo_transport *transport;
    struct gtopo_error error;
    struct child child;

    (void)state;
    if (gtopo_transport_find("ofi", &transport, &error) == GTOPO_EMISSING)
        skip_missing(&error);
    start_child(&child);
    for (int i = 0; i < 2; i++) {
        struct gtopo_probe_options options;

        defaults(&options, "ofi", devices[i]);
        options.seconds = 1;
        must_run(&child, &options);
        options.iterations = 2000;
        must_run(&child, &options);
        options.metric = GTOPO_LATENCY_ns;
        must_run(&child, &options);
    }
    end_child(&child);
}

/* ---- what does not go together ---- */

static void refused(const struct gtopo_probe_options *options, const char *said)
{
    struct gtopo_error error = {0};

    assert_int_equal(gtopo_probe_options_check(options, &error), GTOPO_EUSAGE);
    if (!strstr(error.message, said))
        fail_msg("\"%s\" does not say \"%s\"", error.message, said);
}

static void test_check(void **state)
{
    struct gtopo_probe_options options, good;

    (void)state;
    gtopo_probe_options_init(&good);
    assert_int_equal(gtopo_probe_options_check(&good, NULL), 0);
#define REFUSED(change, said)                                                                                          \
    options = good;                                                                                                    \
    change;                                                                                                            \
    refused(&options, said)
    REFUSED(options.size = 3, "not initialised");
    REFUSED(options.transport = "pigeon", "no transport \"pigeon\"");
    REFUSED(options.from.device = "mlx5\xff", "no clean UTF-8 text");
    REFUSED(options.operation = GTOPO_COPY, "no operation \"copy\"");
    REFUSED(options.operation = 99, "operation");
    REFUSED(options.message_B = 0, "message_B");
    REFUSED(options.message_B = UINT64_C(1) << 40, "message_B");
    REFUSED(options.queue_pairs = 65, "queue_pairs");
    REFUSED(options.operation = GTOPO_FETCH_ADD, "8 bytes");
    REFUSED((options.metric = GTOPO_LATENCY_ns, options.two_way = 1), "one way");
    REFUSED((options.metric = GTOPO_LATENCY_ns, options.queue_pairs = 2), "one queue pair");
    REFUSED(options.mtu_B = 1000, "RDMA MTU");
    REFUSED((options.operation = GTOPO_READ, options.inline_B = 64), "takes no data along");
    REFUSED((options.from.memory = "gpu:0", options.inline_B = 64), "cannot read GPU memory");
    REFUSED(options.from.memory = "disk", "no memory \"disk\"");
    REFUSED(options.from.way = "pigeon", "no way \"pigeon\"");
    REFUSED(options.from.way = "dma-buf", "for GPU memory");
    REFUSED(options.flush = 1, "flush");
    REFUSED(options.iterations = 3, "16 iterations");
    REFUSED(options.seconds = 0, "seconds");
    REFUSED(options.precision = (double)NAN, "precision");
    REFUSED(options.from.numa = -7, "numa");
}

/* An option that would be ignored is refused, and it is said which transport would honour it. */
static void test_honoured(void **state)
{
    struct gtopo_probe_options options, good;
    struct gtopo_error error = {0};

    (void)state;
    gtopo_probe_options_init(&good);
    good.transport = "ofi";
    good.operation = GTOPO_SEND;
    good.depth = 16;
    assert_int_equal(gtopo_probe_options_check(&good, NULL), 0);
    REFUSED(options.queue_pairs = 2, "option queue_pairs is not honoured by transport ofi");
    REFUSED(options.moderation = 4, "option moderation");
    REFUSED(options.post_list = 1, "option post_list");
    REFUSED(options.inline_B = 0, "option inline_B");
    REFUSED(options.relaxed_ordering = 0, "option relaxed_ordering");
    REFUSED(options.mtu_B = 1024, "option mtu_B");
    REFUSED(options.traffic_class = 8, "option traffic_class");
    REFUSED(options.service_level = 1, "option service_level");
    REFUSED(options.two_way = 1, "option two_way");
    REFUSED(options.connection_manager = 1, "option connection_manager");
    REFUSED(options.verify_every = 1, "option verify_every");
    REFUSED(options.from.gid = 1, "option gid");
    REFUSED(options.to.gid = 1, "option gid");
    good.transport = "copy";
    good.operation = GTOPO_COPY;
    good.to.memory = "gpu:0";
    good.queue_pairs = 2;
    good.two_way = 1;
    assert_int_equal(gtopo_probe_options_check(&good, NULL), 0);
    REFUSED(options.inline_B = 64, "option inline_B is not honoured by transport copy");
    options = good;
    options.metric = GTOPO_LATENCY_ns;
    options.queue_pairs = 1;
    options.two_way = 0;
    options.flush = 1;
    refused(&options, "option flush is not honoured by transport copy");
    assert_int_equal(gtopo_probe_options_check(&options, &error), GTOPO_EUSAGE);
    assert_string_equal(error.hint, "leave flush out, or use transport verbs");
#undef REFUSED
}

static void test_names(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < GTOPO_OPERATIONS; i++)
        assert_int_equal(gtopo_operation_of_name(gtopo_operation_name(i)), i);
    assert_null(gtopo_operation_name(GTOPO_OPERATIONS));
    assert_int_equal(gtopo_operation_of_name("pigeon"), GTOPO_OPERATIONS);
}

static void test_usual_transports(void **state)
{
    (void)state;
    assert_string_equal(gtopo_probe_transport(1, 0), "verbs");
    assert_string_equal(gtopo_probe_transport(1, 1), "verbs");
    assert_string_equal(gtopo_probe_transport(0, 1), "copy");
    assert_string_equal(gtopo_probe_transport(0, 0), "ofi:shm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_usual_transports),
        cmocka_unit_test(test_check),        cmocka_unit_test(test_honoured),
        cmocka_unit_test(test_ofi),          cmocka_unit_test(test_operations),
        cmocka_unit_test(test_options),      cmocka_unit_test(test_depth_by_rule),
        cmocka_unit_test(test_inline),       cmocka_unit_test(test_connection_manager),
        cmocka_unit_test(test_few_messages), cmocka_unit_test(test_failure_is_not_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
