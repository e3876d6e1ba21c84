/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and messages between a coordinator and an agent, and an agent under a hostile coordinator. */
#include "bench/clock.h"
#include "bench/spec.h"
#include "bench/memory.h"
#include "bench/protocol.h"
#include <gputopo/campaign.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define SOON (gtopo_clock_ns() + UINT64_C(2000000000))

struct wire {
    struct gtopo_stream ours, theirs;
};

static int set_up(void **state)
{
    struct wire *wire = calloc(1, sizeof *wire);
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    wire->ours = (struct gtopo_stream){pair[0], pair[0], "the other side"};
    wire->theirs = (struct gtopo_stream){pair[1], pair[1], "this side"};
    assert_int_equal(gtopo_stream_prepare_fd(pair[0], NULL), 0);
    assert_int_equal(gtopo_stream_prepare_fd(pair[1], NULL), 0);
    *state = wire;
    return 0;
}

static int tear_down(void **state)
{
    struct wire *wire = *state;

    close(wire->ours.input_fd);
    close(wire->theirs.input_fd);
    free(wire);
    return 0;
}

static void a_message_arrives_as_it_was_sent(void **state)
{
    struct wire *wire = *state;
    struct gtopo_error error;
    unsigned char bytes[4];
    size_t size = sizeof bytes;
    json_t *message;
    uint64_t number;

    assert_int_equal(
        gtopo_message_send(&wire->ours,
                           json_pack("{ss, si, so}", "type", "test", "n", 7, "b", gtopo_bytes_json("\x00\xff\x10", 3)),
                           SOON, &error),
        0);
    assert_int_equal(gtopo_message_receive(&wire->theirs, SOON, NULL, &message, &error), 0);
    assert_string_equal(gtopo_message_type(message), "test");
    assert_int_equal(gtopo_message_number(message, "n", 7, &number, &error), 0);
    assert_int_equal(number, 7);
    assert_int_equal(gtopo_message_number(message, "n", 6, &number, &error), GTOPO_EPROTOCOL);
    assert_int_equal(gtopo_message_bytes(message, "b", bytes, &size, &error), 0);
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "\x00\xff\x10", 3);
    size = 2;
    assert_int_equal(gtopo_message_bytes(message, "b", bytes, &size, &error), GTOPO_EPROTOCOL);
    json_decref(message);
}

/* What a peer may send instead of a message, and what it is taken for. */
static void what_is_no_message_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        int status;
    } cases[] = {
        {"\0\0\0\0", 4, GTOPO_EPROTOCOL},               /* empty */
        {"\xff\xff\xff\xff", 4, GTOPO_EPROTOCOL},       /* 4 GiB */
        {"\x01\x00\x00\x01", 4, GTOPO_EPROTOCOL},       /* one byte over the bound */
        {"\0\0\0\2hi", 6, GTOPO_EPROTOCOL},             /* no JSON */
        {"\0\0\0\2[]", 6, GTOPO_EPROTOCOL},             /* no object */
        {"\0\0\0\2{}", 6, GTOPO_EPROTOCOL},             /* no type */
        {"\0\0\0\12{\"type\":1}", 14, GTOPO_EPROTOCOL}, /* a type that is no text */
        {"\0\0\0\22{\"type\":\"a\",\"type\":\"b\"}", 26, GTOPO_EPROTOCOL},
        {"\0\0", 2, GTOPO_EPEER},           /* cut in the head */
        {"\0\0\0\11{\"ty", 8, GTOPO_EPEER}, /* cut in the body */
        {"", 0, GTOPO_EPEER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gtopo_error error = {0};
        json_t *message = NULL;
        void *wire_state;
        struct wire *wire;

        set_up(&wire_state);
        wire = wire_state;
        assert_int_equal(write(wire->ours.output_fd, cases[i].bytes, cases[i].size), cases[i].size);
        shutdown(wire->ours.output_fd, SHUT_WR);
        assert_int_equal(gtopo_message_receive(&wire->theirs, SOON, NULL, &message, &error), cases[i].status);
        assert_true(strlen(error.message) > 0);
        assert_null(message);
        tear_down(&wire_state);
    }
}

static void a_silent_peer_costs_the_deadline(void **state)
{
    struct wire *wire = *state;
    struct gtopo_error error;
    uint64_t begin = gtopo_clock_ns();
    json_t *message;

    assert_int_equal(gtopo_message_receive(&wire->ours, begin + 50000000, NULL, &message, &error), GTOPO_ETIMEOUT);
    assert_true(gtopo_clock_ns() - begin < UINT64_C(2000000000));
}

static void a_peer_that_does_not_read_costs_the_deadline(void **state)
{
    struct wire *wire = *state;
    struct gtopo_error error;
    char *text = malloc(4 << 20);

    memset(text, 'x', (4 << 20) - 1);
    text[(4 << 20) - 1] = 0;
    assert_int_equal(gtopo_message_send(&wire->ours, json_pack("{ss, ss}", "type", "long", "t", text),
                                        gtopo_clock_ns() + 50000000, &error),
                     GTOPO_ETIMEOUT);
    free(text);
}

static void a_closed_peer_raises_no_signal(void **state)
{
    struct wire *wire = *state;
    struct gtopo_error error;

    shutdown(wire->theirs.input_fd, SHUT_RDWR);
    assert_int_equal(gtopo_message_send(&wire->ours, json_pack("{ss}", "type", "bye"), SOON, &error), GTOPO_EPEER);
}

static void waiting_ends_when_cancelled(void **state)
{
    struct wire *wire = *state;
    struct gtopo_cancel *cancel = gtopo_cancel_new();
    struct gtopo_error error;
    json_t *message;

    gtopo_cancel_trip(cancel);
    assert_int_equal(gtopo_message_receive(&wire->ours, SOON, cancel, &message, &error), GTOPO_ECANCELLED);
    gtopo_cancel_free(cancel);
}

static void a_failure_keeps_its_words(void **state)
{
    struct gtopo_error sent, received;
    json_t *message;

    (void)state;
    gtopo_fail(&sent, GTOPO_ELINKDOWN, "plug it in", "mlx5_0 port 1 is down");
    message = gtopo_failure_json(&sent);
    assert_int_equal(gtopo_failure_read(message, "node3", &received), GTOPO_ELINKDOWN);
    assert_string_equal(received.message, "node3: mlx5_0 port 1 is down");
    assert_string_equal(received.hint, "plug it in");
    json_object_set_new(message, "code", json_integer(0)); /* a failure that claims to be none */
    assert_int_equal(gtopo_failure_read(message, "node3", &received), GTOPO_EPROTOCOL);
    json_decref(message);
}

static void a_spec_survives_the_wire(void **state)
{
    struct gtopo_probe_options options;
    struct gtopo_spec spec, read;
    struct gtopo_error error;
    json_t *message;

    (void)state;
    gtopo_probe_options_init(&options);
    options.from = (struct gtopo_probe_end){"mlx5_0", 2, "host", NULL, 1, 3};
    options.to.device = "mlx5_1";
    options.operation = GTOPO_COMPARE_SWAP;
    options.message_B = 8;
    options.queue_pairs = 4;
    options.inline_B = GTOPO_AUTO;
    options.precision = 0.02;
    options.seconds = 0.5;
    gtopo_spec_make(&spec, &options, 1, 0, 0xfedcba9876543210);
    message = gtopo_spec_json(&spec);
    assert_int_equal(gtopo_spec_read(message, &read, &error), 0);
    assert_string_equal(gtopo_spec_own(&read)->device, "mlx5_0");
    assert_string_equal(read.options.to.device, "mlx5_1");
    assert_int_equal(read.options.from.port, 2);
    assert_int_equal(read.options.from.numa, 1);
    assert_int_equal(read.options.from.gid, 3);
    assert_null(read.options.from.way);
    assert_int_equal(read.initiator, 1);
    assert_int_equal(read.options.operation, GTOPO_COMPARE_SWAP);
    assert_int_equal(read.options.queue_pairs, 4);
    assert_int_equal(read.options.inline_B, GTOPO_AUTO);
    assert_true(read.seed == 0xfedcba9876543210);
    assert_true(read.options.precision == 0.02 && read.options.seconds == 0.5);
    json_object_set_new(message, "message_B", json_integer(16)); /* what does not go together */
    assert_int_equal(gtopo_spec_read(message, &read, &error), GTOPO_EUSAGE);
    json_object_set_new(message, "message_B", json_integer(0));
    assert_int_equal(gtopo_spec_read(message, &read, &error), GTOPO_EPROTOCOL);
    json_object_set_new(message, "message_B", json_integer(INT64_MAX));
    assert_int_equal(gtopo_spec_read(message, &read, &error), GTOPO_EPROTOCOL);
    json_decref(message);
}

/* Run an agent in a child and talk to it; returns what its serving returned. */
static int talk(void (*coordinator)(const struct gtopo_stream *stream))
{
    int pair[2], status;
    struct gtopo_stream stream;
    pid_t child;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    child = fork();
    if (!child) {
        close(pair[0]);
        _exit(-gtopo_agent_serve(pair[1], pair[1], NULL) - 255);
    }
    close(pair[1]);
    stream = (struct gtopo_stream){pair[0], pair[0], "the agent"};
    gtopo_stream_prepare_fd(pair[0], NULL);
    coordinator(&stream);
    close(pair[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 1 ? 0 : -(WEXITSTATUS(status) + 255);
}

static void say_bye(const struct gtopo_stream *stream)
{
    assert_int_equal(gtopo_hello(stream, SOON, NULL, NULL, NULL), 0);
    gtopo_message_send(stream, json_pack("{ss}", "type", "bye"), SOON, NULL);
}

static void come_from_the_future(const struct gtopo_stream *stream)
{
    json_t *theirs;

    gtopo_message_send(stream, json_pack("{ss, si, ss}", "type", "hello", "protocol", 99, "version", "9"), SOON, NULL);
    assert_int_equal(gtopo_message_receive(stream, SOON, NULL, &theirs, NULL), 0);
    json_decref(theirs);
}

static void vanish(const struct gtopo_stream *stream)
{
    assert_int_equal(gtopo_hello(stream, SOON, NULL, NULL, NULL), 0);
}

static void go_unprepared(const struct gtopo_stream *stream)
{
    assert_int_equal(gtopo_hello(stream, SOON, NULL, NULL, NULL), 0);
    gtopo_message_send(stream, json_pack("{ss, ss}", "type", "go", "address", "00"), SOON, NULL);
}

static void run_unconnected(const struct gtopo_stream *stream)
{
    assert_int_equal(gtopo_hello(stream, SOON, NULL, NULL, NULL), 0);
    gtopo_message_send(stream, json_pack("{ss}", "type", "run"), SOON, NULL);
}

static void talk_nonsense(const struct gtopo_stream *stream)
{
    assert_int_equal(gtopo_hello(stream, SOON, NULL, NULL, NULL), 0);
    gtopo_message_send(stream, json_pack("{ss}", "type", "dance"), SOON, NULL);
}

static void ask_for_the_unknown(const struct gtopo_stream *stream)
{
    struct gtopo_probe_options options;
    struct gtopo_spec spec;
    json_t *message;

    assert_int_equal(gtopo_hello(stream, SOON, NULL, NULL, NULL), 0);
    gtopo_probe_options_init(&options);
    options.transport = "pigeon";
    gtopo_spec_make(&spec, &options, 0, 0, 1);
    assert_int_equal(gtopo_message_send(stream, gtopo_spec_json(&spec), SOON, NULL), 0);
    assert_int_equal(gtopo_message_receive(stream, SOON, NULL, &message, NULL), 0);
    assert_string_equal(gtopo_message_type(message), "failed");
    json_decref(message);
    gtopo_message_send(stream, json_pack("{ss}", "type", "bye"), SOON, NULL);
}

static void an_agent_survives_any_coordinator(void **state)
{
    (void)state;
    assert_int_equal(talk(say_bye), 0);
    assert_int_equal(talk(ask_for_the_unknown), 0);
    assert_int_equal(talk(come_from_the_future), GTOPO_EVERSION);
    assert_int_equal(talk(vanish), GTOPO_EPEER);
    assert_int_equal(talk(go_unprepared), GTOPO_EPROTOCOL);
    assert_int_equal(talk(run_unconnected), GTOPO_EPROTOCOL);
    assert_int_equal(talk(talk_nonsense), GTOPO_EPROTOCOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_arrives_as_it_was_sent, set_up, tear_down),
        cmocka_unit_test(what_is_no_message_is_refused),
        cmocka_unit_test_setup_teardown(a_silent_peer_costs_the_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_does_not_read_costs_the_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_closed_peer_raises_no_signal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiting_ends_when_cancelled, set_up, tear_down),
        cmocka_unit_test(a_failure_keeps_its_words),
        cmocka_unit_test(a_spec_survives_the_wire),
        cmocka_unit_test(an_agent_survives_any_coordinator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
