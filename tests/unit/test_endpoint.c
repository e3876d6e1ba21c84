/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints of transports, and their memory: what they must refuse, and what they must leave alone. */
#include <pthread.h>
#include "transport_end.h"

/* ---- addresses that are none ---- */

struct two_ends {
    struct end ends[2];
};

static void close_two(struct two_ends *two)
{
    close_end(&two->ends[0]);
    close_end(&two->ends[1]);
}

static void open_two(const struct spec *spec, struct two_ends *two)
{
    struct gtopo_error error = {0};
    int i, status = 0;

    memset(two, 0, sizeof *two);
    for (i = 0; i < 2 && !status; i++)
        status = open_end(spec, i == 0, &two->ends[i], &error);
    if (status == GTOPO_EMISSING) {
        close_two(two);
        skip_missing(&error);
    }
    assert_int_equal(status, 0);
}

static int connect_first(struct two_ends *two, const void *blob, size_t size, struct gtopo_error *error)
{
    return two->ends[0].transport->connect(two->ends[0].endpoint, blob, size, error);
}

static int address_of(struct two_ends *two, int which, void *blob, size_t *size)
{
    return two->ends[which].transport->address(two->ends[which].endpoint, blob, size, NULL);
}

static void refused(struct two_ends *two, const void *blob, size_t size)
{
    struct gtopo_error error = {0};
    int status = connect_first(two, blob, size, &error);

    assert_true(status == GTOPO_EPROTOCOL || status == GTOPO_EVERSION);
    assert_int_equal(error.code, status);
    assert_true(strlen(error.message) > 0 && strlen(error.message) < sizeof error.message - 1);
}

static void check_blobs(const struct spec *spec)
{
    unsigned char own[GTOPO_BLOB_MAX], good[GTOPO_BLOB_MAX], bad[GTOPO_BLOB_MAX + 1] = {0};
    size_t size = sizeof good, own_size = sizeof own, small = 8, i;
    struct two_ends two;
    uint32_t random = 1;

    open_two(spec, &two);
    assert_int_equal(address_of(&two, 1, good, &size), 0);
    assert_int_equal(address_of(&two, 0, own, &own_size), 0);
    assert_int_equal(address_of(&two, 1, bad, &small), GTOPO_EUSAGE);
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
            connect_first(&two, bad, size, NULL);
    }
    close_two(&two);
    open_two(spec, &two);
    size = sizeof good;
    assert_int_equal(address_of(&two, 1, good, &size), 0);
    assert_int_equal(connect_first(&two, good, size, NULL), 0);
    close_two(&two);
}

/* ---- what a transport must refuse or leave alone ---- */

static void test_unknown_names(void **state)
{
    const struct gtopo_transport *transport;
    struct gtopo_region region;
    struct gtopo_error error = {0};

    (void)state;
    assert_int_equal(gtopo_transport_find("pigeon", &transport, &error), GTOPO_EUSAGE);
    assert_non_null(strstr(error.hint, "verbs"));
    assert_non_null(strstr(error.hint, "ofi"));
    assert_int_equal(gtopo_memory_find("disk", &region, &error), GTOPO_EUSAGE);
}

/* Opening must fail, with this status. */
static void open_fails(const struct spec *spec, int wanted, const char *said)
{
    struct gtopo_error error = {0};
    struct end end;
    int status = open_end(spec, 1, &end, &error);

    assert_null(end.endpoint);
    close_end(&end);
    if (status == GTOPO_EMISSING && !end.transport)
        skip_missing(&error);
    print_message("%s: %s (%s)\n", gtopo_status_name(status), error.message, error.hint);
    assert_int_equal(status, wanted);
    assert_non_null(strstr(error.message, said));
}

static void test_ofi_unknown_provider(void **state)
{
    struct spec spec = {"ofi", "pigeon", GTOPO_SEND, GTOPO_LATENCY_ns, 8, 1, 0, 0, 0};

    (void)state;
    open_fails(&spec, GTOPO_EMISSING, "pigeon");
    spec.device = "tcp:nowhere0";
    open_fails(&spec, GTOPO_EMISSING, "nowhere0");
    spec.device = ":";
    open_fails(&spec, GTOPO_EUSAGE, "provider");
    spec = (struct spec){"ofi", "tcp", GTOPO_SEND, GTOPO_BANDWIDTH_Bps, 0, 1, 0, 0, 0};
    open_fails(&spec, GTOPO_EUSAGE, "message_B");
    spec = (struct spec){"ofi", "shm", GTOPO_SEND, GTOPO_BANDWIDTH_Bps, 1, 8000, 0, 0, 0};
    open_fails(&spec, GTOPO_EUSAGE, "in flight");
}

static void test_verbs_unknown_device(void **state)
{
    struct spec spec = {"verbs", "pigeon0", GTOPO_WRITE, GTOPO_LATENCY_ns, 8, 1, 0, 0, 0};

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
    struct spec spec = {"ofi", "shm", GTOPO_SEND, GTOPO_LATENCY_ns, 8, 1, 0, 0, 0};
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
    struct gtopo_region region;
    struct gtopo_error error = {0};
    struct gtopo_affinity affinity = {0};
    const unsigned char *data;
    size_t i;

    (void)state;
    assert_int_equal(gtopo_memory_find("host", &region, NULL), 0);
    assert_int_equal(gtopo_affinity_save(&affinity, &error), 0);
    assert_int_equal(gtopo_memory_bind_thread(0, GTOPO_SHARE_ALL, NULL, &error), 0);
    region.size = 3 << 20;
    assert_int_equal(region.memory->allocate(&region, &error), 0);
    data = region.data;
    assert_int_equal((uintptr_t)data % 4096, 0);
    for (i = 0; i < 3 << 20; i++)
        assert_int_equal(data[i], 0);
    region.memory->release(&region);
    region.memory->release(&region);
    gtopo_affinity_restore(&affinity);
    assert_null(affinity.set);
    gtopo_affinity_restore(&affinity);
    region.numa = 1000;
    assert_int_equal(region.memory->allocate(&region, &error), GTOPO_EMISSING);
    assert_non_null(strstr(error.message, "1000"));
    assert_int_equal(gtopo_memory_bind_thread(1000, GTOPO_SHARE_ALL, NULL, &error), GTOPO_EMISSING);
    region.numa = GTOPO_NUMA_ANY;
    region.size = SIZE_MAX / 4;
    assert_int_equal(region.memory->allocate(&region, &error), GTOPO_ENOMEM);
}

static void test_tcp_blobs(void **state)
{
    (void)state;
    check_blobs(&(struct spec){"ofi", "tcp", GTOPO_SEND, GTOPO_BANDWIDTH_Bps, 4096, 16, 0, 0, 0});
}

static void test_shm_blobs(void **state)
{
    (void)state;
    check_blobs(&(struct spec){"ofi", "shm", GTOPO_SEND, GTOPO_BANDWIDTH_Bps, 4096, 16, 0, 0, 0});
}

static void test_verbs_blobs(void **state)
{
    (void)state;
    check_blobs(&(struct spec){"verbs", need_rdma(), GTOPO_WRITE, GTOPO_BANDWIDTH_Bps, 4096, 16, 0, 0, 0});
}

static void test_connection_manager_blobs(void **state)
{
    (void)state;
    check_blobs(&(struct spec){"verbs", need_rdma(), GTOPO_WRITE, GTOPO_BANDWIDTH_Bps, 4096, 16, 0, 0, 1});
}

/* ---- each message checked ---- */

struct serving {
    const struct end *end;
    int status;
    struct gtopo_error error;
};

static void *serve(void *context)
{
    struct serving *s = context;

    s->status = s->end->transport->serve(s->end->endpoint, NULL, &s->error);
    return NULL;
}

/* Called when the first round has arrived: what the second sends from its first slot is wrong. */
static int spoil(void *context, double sample_ns)
{
    (void)sample_ns;
    if (context)
        *(volatile uint8_t *)context ^= 1;
    return 0;
}

/* 50 messages in rounds of 32: the last round is not whole. */
static void check_last_round(uint32_t operation, int is_spoilt)
{
    struct spec spec = {"verbs", need_rdma(), operation, GTOPO_BANDWIDTH_Bps, 4096, 32, 0, UINT64_C(1000000000), 0};
    struct gtopo_run run = {.batch = 1, .messages = 50, .sample = spoil};
    struct gtopo_error error = {0};
    unsigned char blob[GTOPO_BLOB_MAX];
    struct two_ends two;
    struct serving serving = {.end = &two.ends[1]};
    pthread_t thread;
    int status;

    for (int i = 0; i < 2; i++) {
        make_end(&spec, &two.ends[i]);
        two.ends[i].probe.iterations = run.messages;
        two.ends[i].probe.verify_every = 1;
        assert_int_equal(open_made(&spec, !i, &two.ends[i], &error), 0);
    }
    for (int i = 0; i < 2; i++) {
        size_t size = sizeof blob;

        assert_int_equal(address_of(&two, !i, blob, &size), 0);
        assert_int_equal(two.ends[i].transport->connect(two.ends[i].endpoint, blob, size, &error), 0);
    }
    if (is_spoilt)
        run.context = two.ends[operation == GTOPO_READ].region.data;
    assert_int_equal(pthread_create(&thread, NULL, serve, &serving), 0);
    status = two.ends[0].transport->run(two.ends[0].endpoint, &run, &error);
    pthread_join(thread, NULL);
    if (is_spoilt)
        assert_int_equal(operation == GTOPO_READ ? status : serving.status, GTOPO_EDATA);
    else {
        assert_int_equal(status, 0);
        assert_int_equal(serving.status, 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(two.ends[i].transport->verify(two.ends[i].endpoint, &error), 0);
    }
    close_two(&two);
}

static void test_last_round_is_checked(void **state)
{
    (void)state;
    for (uint32_t operation = GTOPO_WRITE; operation <= GTOPO_WRITE_IMM; operation++)
        for (int is_spoilt = 0; is_spoilt < 2; is_spoilt++)
            check_last_round(operation, is_spoilt);
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
        cmocka_unit_test(test_connection_manager_blobs),
        cmocka_unit_test(test_last_round_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
