/* SPDX-License-Identifier: Apache-2.0 */
/* Transport "copy": with the stand-in driver, and with GTOPO_TEST_GPU=real on the machine's own GPU. */
#include "copying.h"
#include <pthread.h>
#include "bench/clock.h"
#include "bench/engine.h"
#include "bench/memory/gpu.h"

/* ---- what is copied ---- */

static const struct {
    const char *from, *to, *says;
} ends[] = {
    {"host", "gpu:0", "host to GPU"},  {"gpu:0", "host", "GPU to host"},  {"gpu:0", "gpu:0", "within the GPU"},
    {"gpu:0", "gpu:1", "peer access"}, {"gpu:1", "gpu:0", "peer access"},
};
#define ENDS (sizeof ends / sizeof *ends)

static void bytes_arrive_from_each_memory_in_each(void **state)
{
    (void)state;
    for (size_t i = 0; i < (is_real() ? 3 : ENDS); i++)
        for (int two_way = 0; two_way < 2; two_way++)
            for (uint32_t streams = 1; streams < 10; streams += 4)
                must_copy(&(struct wish){.from = ends[i].from,
                                         .to = ends[i].to,
                                         .streams = streams,
                                         .two_way = two_way,
                                         .batch = 8 * streams,
                                         .samples = 3},
                          ends[i].says);
}

static void messages_of_any_size_arrive(void **state)
{
    static const size_t sizes[] = {1, 7, 255, 256, 257, 65536, (1 << 20) - 1, (1 << 20) + 9, 3 << 20};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t e = 0; e < 3; e++)
            must_copy(&(struct wish){.from = ends[e].from,
                                     .to = ends[e].to,
                                     .message_B = sizes[i],
                                     .streams = 2,
                                     .two_way = 1,
                                     .batch = 4,
                                     .samples = 2},
                      "and back");
}

static void latency_is_that_of_one_copy(void **state)
{
    (void)state;
    for (size_t i = 0; i < (is_real() ? 3 : ENDS); i++)
        must_copy(
            &(struct wish){
                .from = ends[i].from, .to = ends[i].to, .metric = GTOPO_LATENCY_ns, .message_B = 8, .messages = 20},
            ends[i].says);
}

static void all_streams_at_once(void **state)
{
    (void)state;
    must_copy(
        &(struct wish){
            .from = "host", .to = "gpu:0", .streams = 64, .two_way = 1, .message_B = 1000, .batch = 64, .messages = 3},
        "128 streams");
}

static void each_message_is_checked_where_that_is_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < (is_real() ? 3 : ENDS); i++)
        must_copy(
            &(struct wish){
                .from = ends[i].from, .to = ends[i].to, .streams = 2, .verify_every = 1, .batch = 4, .messages = 9},
            ends[i].says);
}

/* ---- what is refused ---- */

static void host_to_host_is_refused(void **state)
{
    struct copying c;
    struct gtopo_error error;

    (void)state;
    assert_fails(GTOPO_EUSAGE, open_copy(&(struct wish){.from = "host", .to = "host"}, &c, &error));
    assert_contains(error.message, "neither end is a GPU's memory");
    assert_contains(error.hint, "memory of a GPU");
}

static void methods_are_told_for_what_there_is(void **state)
{
    struct gtopo_probe_options probe = {.operation = GTOPO_COPY, .message_B = 1, .queue_pairs = 1};
    const struct gtopo_copy copy = {.probe = &probe};

    (void)state;
    assert_contains(gtopo_transport_copy.method(&copy), "GPU's events");
    probe.two_way = 1;
    assert_contains(gtopo_transport_copy.method(&copy), "both directions together");
    probe.metric = GTOPO_LATENCY_ns;
    assert_contains(gtopo_transport_copy.method(&copy), "host's clock");
}

static void closing_nothing_is_accepted(void **state)
{
    (void)state;
    gtopo_transport_copy.close(NULL);
}

/* ---- how much ---- */

static void exactly_as_many_messages_as_asked(void **state)
{
    static const struct {
        uint32_t streams;
        uint64_t batch, messages, samples;
    } cases[] = {{1, 1, 1, 1}, {1, 5, 13, 2}, {3, 6, 7, 3}, {4, 2, 10, 20}, {2, 600, 700, 2}, {1, 100, 50, 0}};
    struct gtopo_error error;
    struct copying c;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wish wish = {.from = "gpu:0",
                            .to = "gpu:0",
                            .message_B = 1000,
                            .streams = cases[i].streams,
                            .batch = cases[i].batch,
                            .messages = cases[i].messages};
        unsigned long before = fake_calls("cuMemcpyDtoDAsync_v2");

        assert_ok(open_copy(&wish, &c, &error));
        assert_ok(run_copy(&wish, &c, &error));
        assert_int_equal(fake_calls("cuMemcpyDtoDAsync_v2") - before, cases[i].messages * cases[i].streams);
        assert_int_equal(c.samples, cases[i].samples);
        close_copy(&c);
    }
}

static void a_run_can_follow_another(void **state)
{
    const struct wish wish = {.from = "host", .to = "gpu:0", .batch = 4, .messages = 12};
    struct gtopo_error error;
    struct copying c;

    (void)state;
    assert_ok(open_copy(&wish, &c, &error));
    for (int i = 0; i < 3; i++) {
        assert_ok(run_copy(&wish, &c, &error));
        assert_ok(gtopo_transport_copy.verify(c.endpoint, &error));
    }
    assert_int_equal(c.samples, 9);
    close_copy(&c);
}

/* ---- the gate ---- */

static void copies_wait_for_the_gate(void **state)
{
    unsigned long before = fake_calls("cuStreamWaitValue32_v2");
    struct gtopo_error error;
    struct copying c;
    const struct wish wish = {.from = "host", .to = "gpu:0", .streams = 4, .batch = 16, .messages = 8};
    char text[256];

    (void)state;
    assert_ok(open_copy(&wish, &c, &error));
    assert_ok(run_copy(&wish, &c, &error));
    assert_int_equal(fake_calls("cuStreamWaitValue32_v2") - before, 2); /* one for the four streams, each burst */
    gtopo_transport_copy.describe(c.endpoint, text, sizeof text);
    assert_null(strstr(text, "gate"));
    close_copy(&c);
}

static void a_gate_that_is_refused_is_done_without(void **state)
{
    const struct wish wish = {.from = "host", .to = "gpu:0", .streams = 2, .batch = 8, .messages = 40};

    (void)state;
    fake_set("FAIL", "cuStreamWaitValue32_v2:0:801");
    must_copy(&wish, "no gate before the copies: the driver refused it (801)");
    fake_set("FAIL", "cuStreamWaitValue32_v2:3:801");
    must_copy(&wish, "no gate before the copies: the driver refused it (801)");
    fake_set("FAIL", "cuMemHostGetDevicePointer_v2:0:801");
    must_copy(&wish, "no gate before the copies: GPU 0: cannot read host memory");
}

static void a_gate_that_blocks_the_driver_is_opened(void **state)
{
    const uint64_t start_ns = gtopo_clock_ns();

    (void)state;
    fake_set("QUEUE", "8");
    must_copy(
        &(struct wish){
            .from = "host", .to = "gpu:0", .message_B = 1000, .batch = 32, .messages = 320, .deadline_ns = 400000000},
        "no gate before the copies: the driver did not take a batch behind one");
    assert_true(gtopo_clock_ns() - start_ns < UINT64_C(5000000000));
}

static int without_gate(void)
{
    const struct wish wish = {.from = "gpu:0", .to = "host", .streams = 2, .batch = 8, .messages = 40};
    struct gtopo_error error;
    struct copying c;
    char text[256];

    MUST(!fake_load("old/"));
    MUST(!open_copy(&wish, &c, &error));
    MUST(!run_copy(&wish, &c, &error));
    MUST(!gtopo_transport_copy.verify(c.endpoint, &error));
    gtopo_transport_copy.describe(c.endpoint, text, sizeof text);
    MUST(strstr(text, "no gate before the copies: the driver is too old for one"));
    close_copy(&c);
    MUST(fake_left() == 0);
    return 0;
}

static void an_old_driver_has_no_gate(void **state)
{
    (void)state;
    assert_int_equal(in_child(without_gate), 0);
}

/* ---- two GPUs ---- */

static void gpus_that_cannot_reach_each_other_go_through_the_host(void **state)
{
    const struct wish wish = {.from = "gpu:0", .to = "gpu:1", .two_way = 1, .streams = 2, .batch = 8, .messages = 20};
    unsigned long before;

    (void)state;
    before = fake_calls("cuStreamWaitValue32_v2");
    fake_set("NO_PEER", "1");
    must_copy(&wish, "through the host");
    must_copy(&wish, "no gate before the copies");
    assert_int_equal(fake_calls("cuStreamWaitValue32_v2"), before);
}

static void the_programs_peer_access_stays(void **state)
{
    const struct wish wish = {.from = "gpu:0", .to = "gpu:1", .batch = 2, .messages = 8};
    struct gtopo_cu_context *contexts[2], *popped;
    const struct gtopo_cuda *cuda;
    struct gtopo_error error;

    (void)state;
    assert_ok(gtopo_cuda_load(&cuda, &error));
    for (int i = 0; i < 2; i++)
        assert_int_equal(cuda->cuDevicePrimaryCtxRetain(&contexts[i], i), 0);
    assert_int_equal(cuda->cuCtxPushCurrent_v2(contexts[0]), 0);
    assert_int_equal(cuda->cuCtxEnablePeerAccess(contexts[1], 0), 0);
    must_copy(&wish, "peer access");
    assert_int_equal(cuda->cuCtxDisablePeerAccess(contexts[1]), 0); /* still on */
    must_copy(&wish, "peer access");
    assert_int_not_equal(cuda->cuCtxDisablePeerAccess(contexts[1]), 0); /* and off again */
    assert_int_equal(cuda->cuCtxPopCurrent_v2(&popped), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cuda->cuDevicePrimaryCtxRelease_v2(i), 0);
}

static void peer_access_lasts_as_long_as_its_last_user(void **state)
{
    const struct wish wish = {.from = "gpu:0", .to = "gpu:1", .batch = 2, .messages = 8};
    struct copying first, second;
    struct gtopo_error error;
    unsigned long off = fake_calls("cuCtxDisablePeerAccess");

    (void)state;
    assert_ok(open_copy(&wish, &first, &error));
    assert_ok(open_copy(&wish, &second, &error));
    close_copy(&first);
    assert_int_equal(fake_calls("cuCtxDisablePeerAccess"), off);
    assert_ok(run_copy(&wish, &second, &error));
    close_copy(&second);
    assert_int_equal(fake_calls("cuCtxDisablePeerAccess"), off + 2);
}

/* ---- wrong bytes, and no bytes ---- */

static void a_wrong_byte_is_found_with_its_place(void **state)
{
    struct gtopo_error error;
    struct copying c;

    (void)state;
    for (size_t i = 0; i < ENDS; i++) {
        const struct wish wish = {.from = ends[i].from, .to = ends[i].to, .message_B = 5000, .batch = 1, .messages = 1};

        assert_ok(open_copy(&wish, &c, &error));
        fake_set("CORRUPT", i % 2 ? "1" : "01"); /* counting begins anew */
        assert_ok(run_copy(&wish, &c, &error));
        assert_fails(GTOPO_EDATA, gtopo_transport_copy.verify(c.endpoint, &error));
        assert_contains(error.message, "byte 2500 of a copy of 5000 is 0x");
        close_copy(&c);
    }
}

static void a_wrong_byte_that_the_next_copy_repairs_is_found_too(void **state)
{
    const struct wish every = {.from = "gpu:0", .to = "host", .verify_every = 1, .message_B = 5000, .messages = 50};
    const struct wish last = {.from = "gpu:0", .to = "host", .message_B = 5000, .messages = 50};
    struct gtopo_error error;
    struct copying c;

    (void)state;
    assert_ok(open_copy(&last, &c, &error));
    fake_set("CORRUPT", "20");
    assert_ok(run_copy(&last, &c, &error));
    assert_ok(gtopo_transport_copy.verify(c.endpoint, &error));
    close_copy(&c);
    assert_ok(open_copy(&every, &c, &error));
    fake_set("CORRUPT", "020"); /* of two a message, the second: the pattern goes to the GPU, then to the host */
    assert_fails(GTOPO_EDATA, run_copy(&every, &c, &error));
    assert_contains(error.message, "byte 2500");
    assert_fails(GTOPO_EUSAGE, gtopo_transport_copy.verify(c.endpoint, &error));
    close_copy(&c);
}

static void before_a_copy_no_byte_is_right(void **state)
{
    const struct wish wish = {.from = "gpu:0", .to = "host", .message_B = 3000};
    struct gtopo_error error;
    uint8_t is, should;
    struct copying c;
    size_t wrong;

    (void)state;
    assert_ok(open_copy(&wish, &c, &error));
    for (size_t i = 0; i < 3000; i++) {
        uint8_t byte = 0;

        assert_ok(c.from.memory->load(&c.from, i, &byte, 1, &error));
        assert_int_not_equal(((uint8_t *)c.to.data)[i], byte);
    }
    assert_ok(gtopo_pattern_compare(&c.to, 0, 3000, ((struct gtopo_copy *)c.endpoint)->streams[0].seed, &wrong, &is,
                                    &should, &error));
    assert_int_equal(wrong, 0);
    close_copy(&c);
}

static void copies_that_never_end_are_given_up(void **state)
{
    static const struct {
        uint32_t metric;
        const char *fail;
    } cases[] = {{GTOPO_BANDWIDTH_Bps, "cuEventQuery:0:600"}, {GTOPO_LATENCY_ns, "cuStreamQuery:0:600"}};
    uint64_t start_ns = gtopo_clock_ns();
    struct gtopo_error error;
    struct copying c;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct wish wish = {
            .from = "host", .to = "gpu:0", .metric = cases[i].metric, .messages = 9, .deadline_ns = 100000000};

        assert_ok(open_copy(&wish, &c, &error));
        fake_set("FAIL", cases[i].fail);
        assert_fails(GTOPO_ETIMEOUT, run_copy(&wish, &c, &error));
        assert_contains(error.message, "0.1 s");
        assert_fails(GTOPO_EUSAGE, gtopo_transport_copy.verify(c.endpoint, &error));
        fake_set("FAIL", NULL);
        close_copy(&c);
    }
    assert_true(gtopo_clock_ns() - start_ns < UINT64_C(5000000000));
}

/* ---- as an embedder runs it ---- */

static void a_probe_gives_a_result(void **state)
{
    struct gtopo_probe_result *result = calloc(1, sizeof *result);
    struct gtopo_probe_options options;
    struct gtopo_error error;

    (void)state;
    assert_non_null(result);
    for (int i = 0; i < 4; i++) {
        gtopo_probe_options_init(&options);
        options.transport = "copy";
        options.operation = GTOPO_COPY;
        options.from.memory = "gpu:0";
        options.metric = i == 2 ? GTOPO_LATENCY_ns : GTOPO_BANDWIDTH_Bps;
        options.two_way = i == 1;
        options.iterations = i == 3 ? 1000 : 0;
        options.seconds = 0.1;
        options.precision = 0.5;
        assert_ok(gtopo_probe_run(&options, NULL, NULL, NULL, result, &error));
        assert_true(result->verified && result->low > 0 && result->median <= result->high);
        assert_string_equal(result->method, gtopo_transport_copy.method(&(struct gtopo_copy){.probe = &options}));
        assert_int_equal(result->from.used.queue_pairs, 1);
        assert_int_equal(result->from.used.mtu_B, GTOPO_AUTO); /* it has none */
        assert_string_equal(result->from.way, "device");
        assert_contains(result->from.description, i == 1 ? "GPU to host and back" : "GPU to host");
        assert_true(result->perftest.bandwidth_average_MiBps == 0); /* which no copy has */
        assert_true(result->forward == (i == 1 ? result->median / 2 : 0) && result->reverse == result->forward);
    }
    options.from.memory = "host";
    assert_fails(GTOPO_EUSAGE, gtopo_probe_run(&options, NULL, NULL, NULL, result, &error));
    assert_contains(error.message, "neither end is a GPU's memory");
    free(result);
}

/* ---- failures ---- */

static int copy_once(const char *from, const char *to, uint32_t metric, struct gtopo_error *error)
{
    const struct wish wish = {.from = from,
                              .to = to,
                              .metric = metric,
                              .streams = metric == GTOPO_LATENCY_ns ? 1 : 2,
                              .message_B = 2000,
                              .two_way = metric != GTOPO_LATENCY_ns,
                              .batch = 4,
                              .messages = 4};
    struct copying c;
    int status = open_copy(&wish, &c, error);

    if (status)
        return status;
    status = run_copy(&wish, &c, error);
    if (!status)
        status = gtopo_transport_copy.verify(c.endpoint, error);
    fake_set("FAIL", NULL); /* what cannot be given back is not our test */
    close_copy(&c);
    return status;
}

static void each_failure_of_the_driver_is_said_and_nothing_stays(void **state)
{
    static const char *const names[] = {
        "cuDevicePrimaryCtxRetain", "cuMemAlloc_v2",         "cuMemHostRegister_v2", "cuDeviceCanAccessPeer",
        "cuCtxEnablePeerAccess",    "cuStreamCreate",        "cuEventCreate",        "cuEventRecord",
        "cuStreamWaitEvent",        "cuEventQuery",          "cuEventElapsedTime",   "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2",     "cuMemcpyDtoDAsync_v2",  "cuMemcpyPeerAsync",    "cuStreamQuery",
        "cuCtxPushCurrent_v2",      "cuPointerSetAttribute", "cuMemsetD8Async"};
    unsigned failures[sizeof names / sizeof *names] = {0};
    struct gtopo_error error;
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t e = 0; e < ENDS - 1; e++)
            for (int n = 0; n < 16; n += n / 2 + 1) {
                error = (struct gtopo_error){0};
                snprintf(text, sizeof text, "%s:%d:719:1", names[i], n); /* once, so that the way back is open */
                fake_set("FAIL", text);
                if (copy_once(ends[e].from, ends[e].to, n % 2 ? GTOPO_BANDWIDTH_Bps : GTOPO_LATENCY_ns, &error)) {
                    failures[i]++;
                    assert_int_equal(error.code, GTOPO_EDEVICE);
                    assert_contains(error.message, ": cannot ");
                    assert_contains(error.message, "719");
                }
                if (fake_left())
                    fail_msg("%s from %s to %s: %u objects are left", text, ends[e].from, ends[e].to, fake_left());
            }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!failures[i])
            fail_msg("%s never failed", names[i]);
}

static void the_processor_never_touches_gpu_memory(void **state)
{
    (void)state;
    fake_set("ACCESS", "none");
    bytes_arrive_from_each_memory_in_each(state);
    each_message_is_checked_where_that_is_asked(state);
    latency_is_that_of_one_copy(state);
}

static void *copy_often(void *context)
{
    struct gtopo_error error;
    int *failures = context;

    for (int i = 0; i < 10; i++) {
        const struct wish wish = {.from = "gpu:0",
                                  .to = i % 2 ? "gpu:1" : "host",
                                  .message_B = 3000,
                                  .streams = 2,
                                  .two_way = 1,
                                  .batch = 4,
                                  .messages = 8};
        struct copying c;

        if (open_copy(&wish, &c, &error)) {
            ++*failures;
            continue;
        }
        if (run_copy(&wish, &c, &error) || gtopo_transport_copy.verify(c.endpoint, &error))
            ++*failures;
        close_copy(&c);
    }
    return NULL;
}

static void probes_at_the_same_time_do_not_meet(void **state)
{
    pthread_t threads[3];
    int failures[3] = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_often, &failures[i]), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(failures[i], 0);
    }
}

/* Asked whether to stop, it takes its time, as the estimation of the interval does. */
static int ask_slowly(void *times)
{
    ++*(uint64_t *)times;
    usleep(5000);
    return 0;
}

static void a_turn_in_which_we_were_busy_is_no_sample(void **state)
{
    struct gtopo_probe_result *result = calloc(1, sizeof *result);
    struct gtopo_engine *engine;
    struct gtopo_spec spec;
    struct gtopo_probe_options options;
    struct gtopo_error error;
    uint64_t asked = 0, counted;

    (void)state;
    gtopo_probe_options_init(&options);
    options.transport = "copy";
    options.operation = GTOPO_COPY;
    options.metric = GTOPO_LATENCY_ns;
    options.message_B = 8;
    options.iterations = 20000;
    options.from.memory = "gpu:0";
    gtopo_spec_make(&spec, &options, 1, 0, 1);
    assert_int_equal(gtopo_engine_open(&spec, &engine, &error), 0);
    assert_int_equal(gtopo_engine_run(engine, ask_slowly, &asked, result, &error), 0);
    counted = result->samples + result->warmup_samples;
    assert_true(asked > 0);
    /* a turn that was very long itself is kept; and after the last sample there is none to leave out */
    assert_true(counted < options.iterations && counted + asked >= options.iterations);
    gtopo_engine_close(engine);
    free(result);
}

int main(void)
{
    const struct CMUnitTest anywhere[] = {
        unit(bytes_arrive_from_each_memory_in_each),
        unit(messages_of_any_size_arrive),
        unit(latency_is_that_of_one_copy),
        unit(all_streams_at_once),
        unit(each_message_is_checked_where_that_is_asked),
        unit(host_to_host_is_refused),
        unit(methods_are_told_for_what_there_is),
        unit(closing_nothing_is_accepted),
        unit(a_run_can_follow_another),
        unit(before_a_copy_no_byte_is_right),
        unit(a_probe_gives_a_result),
    };
    const struct CMUnitTest with_stand_in[] = {
        unit(exactly_as_many_messages_as_asked),
        unit(copies_wait_for_the_gate),
        unit(a_gate_that_is_refused_is_done_without),
        unit(a_gate_that_blocks_the_driver_is_opened),
        unit(gpus_that_cannot_reach_each_other_go_through_the_host),
        unit(the_programs_peer_access_stays),
        unit(peer_access_lasts_as_long_as_its_last_user),
        unit(a_wrong_byte_is_found_with_its_place),
        unit(a_wrong_byte_that_the_next_copy_repairs_is_found_too),
        unit(copies_that_never_end_are_given_up),
        unit(each_failure_of_the_driver_is_said_and_nothing_stays),
        unit(the_processor_never_touches_gpu_memory),
        unit(probes_at_the_same_time_do_not_meet),
        unit(a_turn_in_which_we_were_busy_is_no_sample),
    };
    const struct CMUnitTest children[] = {unit(an_old_driver_has_no_gate)};
    int failed = 0;

    if (is_real())
        return cmocka_run_group_tests_name("any driver", anywhere, NULL, NULL);
    failed += cmocka_run_group_tests_name("an old driver", children, NULL, NULL);
    if (fake_load(""))
        return 1;
    failed += cmocka_run_group_tests_name("any driver", anywhere, NULL, NULL);
    failed += cmocka_run_group_tests_name("the stand-in", with_stand_in, NULL, NULL);
    return failed;
}
