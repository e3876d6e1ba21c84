/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two ends meet through RDMA CM, and what happens when they do not: a stranger, an end that is gone, an end that
 * stays silent, an address that nobody has. Runs where there is an RDMA device, in the lab (`tests/lab/run rdma-one`).
 */
#include "transport_end.h"

#define SHORT_NS UINT64_C(2000000000) /* where nobody will come */
#define TOKEN_B 8                     /* the last bytes of an address are the token */

struct blob {
    size_t size;
    unsigned char data[GTOPO_BLOB_MAX];
};

struct answer {
    int status;
    struct gtopo_error error;
};

static struct spec spec_with(uint64_t deadline_ns)
{
    return (struct spec){.transport = "verbs",
                         .device = need_rdma(),
                         .operation = GTOPO_SEND, /* the responder waits for the last one */
                         .metric = GTOPO_BANDWIDTH_Bps,
                         .message_B = 4096,
                         .depth = 16,
                         .deadline_ns = deadline_ns,
                         .connection_manager = 1};
}

static int open_with_address(const struct spec *spec, int initiator, struct end *end, struct blob *blob,
                             struct gtopo_error *error)
{
    int status = open_end(spec, initiator, end, error);

    memset(blob, 0, sizeof *blob);
    blob->size = sizeof blob->data;
    return status ? status : end->transport->address(end->endpoint, blob->data, &blob->size, error);
}

static int count_messages(void *context, double sample_ns)
{
    (void)sample_ns;
    return ++*(unsigned *)context >= 100;
}

static int connect_and_run(struct end *end, const struct blob *peer, struct gtopo_error *error)
{
    unsigned samples = 0;
    struct gtopo_run run = {.batch = 1, .sample = count_messages, .context = &samples};
    int status = end->transport->connect(end->endpoint, peer->data, peer->size, error);

    return status ? status : end->transport->run(end->endpoint, &run, error);
}

/* ---- the responder, a process ---- */

struct responder {
    pid_t pid;
    int fd;
    struct blob blob;
};

/* Tells its address, and serves when it is told the initiator's. */
static void respond(const struct spec *spec, int fd)
{
    struct answer answer = {0};
    struct blob own, peer;
    struct end end;

    answer.status = open_with_address(spec, 0, &end, &own, &answer.error);
    if (answer.status || send(fd, &own, sizeof own, MSG_NOSIGNAL) != sizeof own)
        _exit(1);
    if (recv(fd, &peer, sizeof peer, MSG_WAITALL) == sizeof peer) {
        answer.status = end.transport->connect(end.endpoint, peer.data, peer.size, &answer.error);
        if (!answer.status)
            answer.status = end.transport->serve(end.endpoint, NULL, &answer.error);
        send(fd, &answer, sizeof answer, MSG_NOSIGNAL);
        recv(fd, &peer, 1, 0); /* until the initiator has ended, too */
    }
    close_end(&end);
    exit(0); /* not _exit(): the leak checker looks now */
}

static void start_responder(const struct spec *spec, struct responder *responder)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    fflush(NULL);
    responder->pid = fork();
    assert_true(responder->pid >= 0);
    if (!responder->pid) {
        close(fds[0]);
        respond(spec, fds[1]);
    }
    close(fds[1]);
    responder->fd = fds[0];
    assert_int_equal(recv(responder->fd, &responder->blob, sizeof responder->blob, MSG_WAITALL),
                     sizeof responder->blob);
}

static void serve(struct responder *responder, const struct blob *initiator)
{
    assert_int_equal(send(responder->fd, initiator, sizeof *initiator, MSG_NOSIGNAL), sizeof *initiator);
}

static void await_answer(struct responder *responder, struct answer *answer)
{
    assert_int_equal(recv(responder->fd, answer, sizeof *answer, MSG_WAITALL), sizeof *answer);
}

static void end_responder(struct responder *responder)
{
    int status;

    close(responder->fd);
    assert_int_equal(waitpid(responder->pid, &status, 0), responder->pid);
    assert_int_equal(status, 0);
}

/* An initiator and a responder that know of each other; skips where librdmacm was left out. */
static void open_pair(const struct spec *spec, struct end *initiator, struct blob *own, struct responder *responder)
{
    struct gtopo_error error = {0};
    int status = open_with_address(spec, 1, initiator, own, &error);

    if (status == GTOPO_EMISSING) {
        close_end(initiator);
        skip_missing(&error);
    }
    if (status)
        fail_msg("%s (%s)", error.message, error.hint);
    start_responder(spec, responder);
}

static void must_say(int status, int wanted, const struct gtopo_error *error, const char *said)
{
    print_message("%s: %s (%s)\n", gtopo_status_name(status), error->message, error->hint);
    assert_int_equal(status, wanted);
    assert_int_equal(error->code, wanted);
    if (!strstr(error->message, said))
        fail_msg("\"%s\" does not say \"%s\"", error->message, said);
}

/* ---- the tests ---- */

/* Who does not know the token is turned away, and the one who does is still served. */
static void test_strangers(void **state)
{
    struct spec spec = spec_with(0);
    struct gtopo_error error = {0};
    struct blob own, strange, forged;
    struct responder responder;
    struct end initiator, stranger;
    struct answer answer;
    int status;

    (void)state;
    open_pair(&spec, &initiator, &own, &responder);
    serve(&responder, &own);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(open_with_address(&spec, 1, &stranger, &strange, &error), 0);
        forged = responder.blob;
        forged.data[forged.size - 1 - (size_t)i % TOKEN_B] ^= 1;
        status = connect_and_run(&stranger, &forged, &error);
        must_say(status, GTOPO_EPEER, &error, "the other end refused it");
        close_end(&stranger);
    }
    status = connect_and_run(&initiator, &responder.blob, &error);
    if (status)
        fail_msg("%s (%s)", error.message, error.hint);
    await_answer(&responder, &answer);
    if (answer.status)
        fail_msg("%s (%s)", answer.error.message, answer.error.hint);
    close_end(&initiator);
    end_responder(&responder);
}

/* Who answers without the initiator's token is not believed. */
static void test_impostor(void **state)
{
    struct spec spec = spec_with(SHORT_NS);
    struct gtopo_error error = {0};
    struct responder responder;
    struct end initiator;
    struct answer answer;
    struct blob own;
    int status;

    (void)state;
    open_pair(&spec, &initiator, &own, &responder);
    own.data[own.size - TOKEN_B] ^= 1;
    serve(&responder, &own);
    status = connect_and_run(&initiator, &responder.blob, &error);
    must_say(status, GTOPO_EPROTOCOL, &error, "is not the other end of the probe");
    close_end(&initiator);
    await_answer(&responder, &answer);
    must_say(answer.status, GTOPO_ETIMEOUT, &answer.error, "for 2 s");
    end_responder(&responder);
}

/* The right token, and a queue pair that the two have not agreed on. */
static void test_other_queue_pair(void **state)
{
    struct spec spec = spec_with(SHORT_NS);
    struct gtopo_error error = {0};
    struct responder responder;
    struct end initiator, other;
    struct blob own, others;
    struct answer answer;
    int status;

    (void)state;
    open_pair(&spec, &initiator, &own, &responder);
    assert_int_equal(open_with_address(&spec, 1, &other, &others, &error), 0);
    serve(&responder, &others);
    status = connect_and_run(&initiator, &responder.blob, &error);
    must_say(status, GTOPO_EPEER, &error, "the other end refused it");
    await_answer(&responder, &answer);
    must_say(answer.status, GTOPO_EPROTOCOL, &answer.error, "RDMA CM connected queue pair");
    close_end(&initiator);
    close_end(&other);
    end_responder(&responder);
}

static void test_nobody_there(void **state)
{
    struct spec spec = spec_with(SHORT_NS);
    struct gtopo_error error = {0};
    struct responder responder;
    struct end initiator;
    struct blob own;
    int status;

    (void)state;
    open_pair(&spec, &initiator, &own, &responder);
    end_responder(&responder);
    status = connect_and_run(&initiator, &responder.blob, &error);
    must_say(status, GTOPO_EPEER, &error, "nobody listens");
    close_end(&initiator);
}

/* An end that listens and never answers; when it does at last, who asked has hung up. */
static void test_silence(void **state)
{
    struct spec spec = spec_with(SHORT_NS);
    struct gtopo_error error = {0};
    struct responder responder;
    struct end initiator;
    struct answer answer;
    struct blob own;
    uint64_t start_ns;
    int status;

    (void)state;
    open_pair(&spec, &initiator, &own, &responder);
    start_ns = gtopo_clock_ns();
    status = connect_and_run(&initiator, &responder.blob, &error);
    must_say(status, GTOPO_ETIMEOUT, &error, "no connection through RDMA CM for 2 s");
    assert_true(gtopo_clock_ns() - start_ns < 2 * SHORT_NS);
    close_end(&initiator);
    serve(&responder, &own);
    await_answer(&responder, &answer);
    must_say(answer.status, GTOPO_EPEER, &answer.error, "RDMA CM cannot");
    end_responder(&responder);
}

static void test_nobody_comes(void **state)
{
    struct spec spec = spec_with(SHORT_NS);
    struct responder responder;
    struct end initiator;
    struct answer answer;
    struct blob own;

    (void)state;
    open_pair(&spec, &initiator, &own, &responder);
    serve(&responder, &own);
    await_answer(&responder, &answer);
    must_say(answer.status, GTOPO_ETIMEOUT, &answer.error, "no connection through RDMA CM for 2 s");
    close_end(&initiator);
    end_responder(&responder);
}

/* Change the last byte of each IPv4 address in a blob to one that no host of the network has. */
static void move_address(struct blob *blob)
{
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};
    unsigned moved = 0;

    for (size_t i = 0; i + 16 <= blob->size; i++)
        if (!memcmp(blob->data + i, prefix, sizeof prefix) && blob->data[i + 12]) {
            blob->data[i + 15] ^= 0x55;
            moved++;
        }
    if (!moved) {
        print_message("skipped: the RDMA device has no IPv4 address\n");
        skip();
    }
}

static void test_address_of_nobody(void **state)
{
    struct spec spec = spec_with(2 * SHORT_NS);
    struct gtopo_error error = {0};
    struct responder responder;
    struct end initiator;
    struct blob own;
    int status;

    (void)state;
    open_pair(&spec, &initiator, &own, &responder);
    move_address(&responder.blob);
    status = connect_and_run(&initiator, &responder.blob, &error);
    must_say(status, GTOPO_EDEVICE, &error, "the other end's address cannot be reached");
    close_end(&initiator);
    end_responder(&responder);
}

/* One end through RDMA CM and the other not. */
static void test_different_ways(void **state)
{
    struct spec spec = spec_with(SHORT_NS), plain = spec;
    struct gtopo_error error = {0};
    struct responder responder;
    struct end initiator, other;
    struct blob own, others;

    (void)state;
    plain.connection_manager = 0;
    open_pair(&spec, &initiator, &own, &responder);
    assert_int_equal(open_with_address(&plain, 1, &other, &others, &error), 0);
    must_say(connect_and_run(&other, &responder.blob, &error), GTOPO_EPROTOCOL, &error, "through RDMA CM");
    close_end(&initiator);
    close_end(&other);
    end_responder(&responder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strangers),        cmocka_unit_test(test_impostor),
        cmocka_unit_test(test_other_queue_pair), cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_silence),          cmocka_unit_test(test_address_of_nobody),
        cmocka_unit_test(test_different_ways),   cmocka_unit_test(test_nobody_comes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
