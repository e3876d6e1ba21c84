/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/exchange.h"
#include "bench/clock.h"
#include "bench/result.h"
#include "bench/spec.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define SECOND_NS UINT64_C(1000000000)
/* What an agent may take on top of the transport's own deadline: registering memory, loading a module. */
#define SLACK_NS (5 * SECOND_NS)
/* … in mid-run, where it tells of itself twice a second. */
#define RUNNING_SLACK_NS SECOND_NS
/* … before and after a run, where it fills and registers its memory, and compares the bytes that came: slower than any
 * processor does. */
#define TOUCH_NS_A_BYTE 10
/* After a cancel, to hand over what was measured and to say whether the data was right. */
#define CANCELLED_RESULT_NS (SECOND_NS / 2)
#define CANCELLED_STOP_NS (SECOND_NS / 5)

struct state {
    const struct gtopo_exchange *exchange;
    const struct gtopo_probe_options *options;
    const struct gtopo_stream *ends[2]; /* initiator; responder or NULL */
    int cancelled;
    int broken; /* a stream failed: no more messages */
    struct gtopo_report reports[2];
    struct gtopo_error *error;
};

static uint64_t deadline_in(const struct state *s, uint64_t slack_ns)
{
    if (s->cancelled)
        return gtopo_clock_ns() + CANCELLED_STOP_NS;
    return gtopo_clock_ns() + (uint64_t)(s->options->deadline_s * 1e9) + slack_ns;
}

static uint64_t step_deadline(const struct state *s)
{
    return deadline_in(s, SLACK_NS);
}

static uint64_t touch_ns(const struct state *s)
{
    return s->options->queue_pairs * s->options->message_B * TOUCH_NS_A_BYTE;
}

static uint64_t prepare_deadline(const struct state *s)
{
    return deadline_in(s, SLACK_NS + touch_ns(s));
}

static uint64_t stop_deadline(const struct state *s)
{
    return deadline_in(s, RUNNING_SLACK_NS + touch_ns(s));
}

static int send(struct state *s, const struct gtopo_stream *stream, json_t *message)
{
    int status = gtopo_message_send(stream, message, step_deadline(s), s->error);

    s->broken |= status != 0;
    return status;
}

/* The next message; an agent's own failure becomes ours. */
static int receive(struct state *s, const struct gtopo_stream *stream, uint64_t deadline_ns, json_t **message)
{
    const struct gtopo_cancel *cancel = s->cancelled ? NULL : s->exchange->cancel;
    int status = gtopo_message_receive(stream, deadline_ns, cancel, message, s->error);

    s->broken |= status != 0;
    if (status || strcmp(gtopo_message_type(*message), "failed"))
        return status;
    status = gtopo_failure_read(*message, stream->peer, s->error);
    json_decref(*message);
    *message = NULL;
    return status;
}

static int is_of_type(struct state *s, const struct gtopo_stream *stream, const char *type, json_t **message)
{
    if (!strcmp(gtopo_message_type(*message), type))
        return 0;
    gtopo_fail(s->error, GTOPO_EPROTOCOL, NULL, "%s answered \"%.40s\" instead of \"%s\"", stream->peer,
               gtopo_message_type(*message), type);
    s->broken = 1;
    json_decref(*message);
    *message = NULL;
    return GTOPO_EPROTOCOL;
}

static int expect(struct state *s, const struct gtopo_stream *stream, const char *type, uint64_t deadline_ns,
                  json_t **message)
{
    int status = receive(s, stream, deadline_ns, message);

    return status ? status : is_of_type(s, stream, type, message);
}

/* ---- the steps ---- */

/* prepare on both; the addresses that they give. */
static int prepare(struct state *s, json_t *addresses[2])
{
    struct gtopo_spec spec;
    uint64_t seed;
    int status = 0;

    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return gtopo_fail(s->error, GTOPO_ESYSTEM, NULL, "no random numbers: %s", strerror(errno));
    for (int i = 0; !status && i < 2 && s->ends[i]; i++) {
        gtopo_spec_make(&spec, s->options, !i, s->exchange->shared, seed);
        status = send(s, s->ends[i], gtopo_spec_json(&spec));
    }
    for (int i = 0; i < 2 && s->ends[i] && !s->broken; i++) {
        json_t *message = NULL;
        struct gtopo_error earlier = *s->error;
        int failed = expect(s, s->ends[i], "prepared", prepare_deadline(s), &message);

        if (!failed)
            addresses[i] = json_incref(json_object_get(message, "address"));
        else if (status)
            *s->error = earlier; /* the first failure is the one to tell */
        status = status ? status : failed;
        json_decref(message);
    }
    return status;
}

static json_t *go(json_t *address)
{
    return address ? json_pack("{ss, sO}", "type", "go", "address", address)
                   : json_pack("{ss, ss}", "type", "go", "address", "");
}

/* Ask the initiator to hand over what it has. One that only says that it runs has no more time than a silent one. */
static int cancel_run(struct state *s, json_t **result)
{
    uint64_t deadline_ns;
    int status;

    s->cancelled = 1;
    s->broken = 0;
    status = send(s, s->ends[0], json_pack("{ss}", "type", "cancel"));
    deadline_ns = gtopo_clock_ns() + CANCELLED_RESULT_NS;
    do {
        json_decref(*result);
        *result = NULL;
        if (!status)
            status = receive(s, s->ends[0], deadline_ns, result);
    } while (!status && !strcmp(gtopo_message_type(*result), "running") && gtopo_clock_ns() < deadline_ns);
    return status ? status : is_of_type(s, s->ends[0], "result", result);
}

/*
 * The other end spoke in mid-run, or is gone: that is the cause of whatever the initiator will say, but what it says
 * (a work completion in words) is worth waiting for.
 */
static int responder_failed(struct state *s)
{
    struct gtopo_error cause, *error = s->error;
    json_t *message = NULL;
    int status, later = 0;

    status = receive(s, s->ends[1], gtopo_clock_ns() + SECOND_NS, &message);
    if (!status) {
        status = gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "%s said \"%.40s\" in mid-run", s->ends[1]->peer,
                            gtopo_message_type(message));
        json_decref(message);
        s->broken = 1;
        return status;
    }
    cause = *error;
    do {
        json_decref(message);
        message = NULL;
        later = receive(s, s->ends[0], deadline_in(s, RUNNING_SLACK_NS), &message);
    } while (!later && !strcmp(gtopo_message_type(message), "running"));
    json_decref(message);
    if (later && cause.code == GTOPO_EPEER && error->code != GTOPO_ETIMEOUT && strcmp(cause.message, error->message)) {
        struct gtopo_error said = *error;

        gtopo_fail(error, cause.code, said.hint[0] ? said.hint : cause.hint, "%.700s; %.300s", cause.message,
                   said.message);
    } else
        *error = cause;
    return status;
}

/* When the initiator has its result at the latest, however often it says that it runs. */
static uint64_t longest_ns(const struct state *s)
{
    uint64_t limit_ns = gtopo_run_limit_ns(s->options);
    uint64_t drain_ns = GTOPO_DRAIN_PATIENCE * (uint64_t)(s->options->deadline_s * 1e9) + RUNNING_SLACK_NS;

    return limit_ns < UINT64_MAX - drain_ns ? limit_ns + drain_ns : UINT64_MAX;
}

/* Wait for the initiator's result. A cancel, or the campaign's end, asks it to hand over what it has. */
static int await_result(struct state *s, json_t **result)
{
    uint64_t limit_ns = longest_ns(s);

    for (;;) {
        uint64_t deadline_ns = deadline_in(s, RUNNING_SLACK_NS), end_ns = s->exchange->end_ns;
        int which, status = gtopo_streams_wait(s->ends, end_ns < deadline_ns ? end_ns : deadline_ns,
                                               s->exchange->cancel, &which, s->error);

        if (status == GTOPO_ECANCELLED || (status == GTOPO_ETIMEOUT && end_ns < deadline_ns))
            return cancel_run(s, result);
        s->broken |= status != 0;
        if (status)
            return status;
        if (which)
            return responder_failed(s);
        status = receive(s, s->ends[0], deadline_ns, result);
        if (status || strcmp(gtopo_message_type(*result), "running"))
            return status ? status : is_of_type(s, s->ends[0], "result", result);
        json_decref(*result);
        *result = NULL;
        if (gtopo_clock_ns() > limit_ns) {
            s->broken = 1;
            return gtopo_fail(s->error, GTOPO_ETIMEOUT, NULL, "%s says that it runs, longer than a run can take",
                              s->ends[0]->peer);
        }
    }
}

/*
 * What fails at the end fails the probe. But an interrupted run keeps its figures when an end is lost, or does not say
 * in time whether its data was right: it is not verified then, and gtopo_result_join() finds that.
 */
static void take_failure(struct state *s, int failed, const struct gtopo_error *earlier, int *status)
{
    s->cancelled |= failed == GTOPO_ECANCELLED;
    if (*status)
        *s->error = *earlier; /* the first failure is the one to tell */
    else if (!(s->cancelled && s->broken))
        *status = failed;
}

/*
 * Read until an agent says stopped; a failure that it tells before becomes the probe's, unless it has one. All that it
 * says has one deadline, which is looked at here too: who waits for bytes does so only when there are none.
 */
static void await_stopped(struct state *s, int which, int *status)
{
    uint64_t deadline_ns = stop_deadline(s);
    int stopped = 0;

    while (!stopped && !s->broken) {
        struct gtopo_error earlier = *s->error;
        json_t *message = NULL;
        int failed = expect(s, s->ends[which], "stopped", deadline_ns, &message);

        stopped = !failed;
        if (stopped)
            failed = gtopo_report_read(message, &s->reports[which], s->error);
        if (failed)
            take_failure(s, failed, &earlier, status);
        s->broken |= !stopped && gtopo_clock_ns() > deadline_ns;
        json_decref(message);
    }
}

/* Have both ends check their data and close: the end of every probe, also of one that failed. */
static int stop(struct state *s, int status, int32_t *verified)
{
    for (int i = 0; i < 2 && s->ends[i] && !s->broken; i++) {
        struct gtopo_error earlier = *s->error;
        int failed = send(s, s->ends[i], json_pack("{ss}", "type", "stop"));

        if (failed)
            take_failure(s, failed, &earlier, &status);
    }
    for (int i = 0; i < 2 && s->ends[i] && !s->broken; i++)
        await_stopped(s, i, &status);
    *verified = !status && !s->broken;
    return status;
}

/* The figures of a two-way probe are those of both ends: without the other's there are none. */
static int check_reverse(const struct state *s)
{
    const struct gtopo_report *report = &s->reports[1];

    if (!s->options->two_way || !s->ends[1] ||
        (report->low > 0 && report->low <= report->median && report->median <= report->high))
        return 0;
    return gtopo_fail(s->error, GTOPO_EPEER, NULL, "%s did not say what it measured", s->ends[1]->peer);
}

/* Tell one end where the other is. */
static int connect_end(struct state *s, int which, json_t *address)
{
    json_t *message = NULL;
    int status = send(s, s->ends[which], go(address));

    if (!status)
        status = expect(s, s->ends[which], "connected", step_deadline(s), &message);
    json_decref(message);
    return status;
}

/* The end that answers first, so that it serves when the other begins. */
static int run(struct state *s, json_t **result)
{
    int status = 0;

    if (s->exchange->before_run)
        s->exchange->before_run->call(s->exchange->before_run->context);
    for (int i = 1; !status && i >= 0; i--)
        if (s->ends[i])
            status = send(s, s->ends[i], json_pack("{ss}", "type", "run"));
    return status ? status : await_result(s, result);
}

int gtopo_exchange_run(const struct gtopo_exchange *exchange, const struct gtopo_probe_options *options,
                       struct gtopo_probe_result *result, int *usable, struct gtopo_error *error)
{
    struct gtopo_error unused;
    struct state s = {.exchange = exchange,
                      .options = options,
                      .ends = {exchange->initiator, exchange->responder},
                      .error = error ? error : &unused};
    const char *const peers[2] = {exchange->initiator->peer, exchange->responder ? exchange->responder->peer : NULL};
    json_t *addresses[2] = {NULL, NULL}, *message = NULL;
    int status;

    memset(result, 0, sizeof *result);
    result->size = sizeof *result;
    status = prepare(&s, addresses);
    if (!status && s.ends[1])
        status = connect_end(&s, 1, addresses[0]);
    if (!status)
        status = connect_end(&s, 0, addresses[1]);
    if (!status)
        status = run(&s, &message);
    if (!status) {
        status = gtopo_result_read(message, result, s.error);
        s.broken |= status != 0;
    }
    json_decref(message);
    json_decref(addresses[0]);
    json_decref(addresses[1]);
    status = stop(&s, status, &result->verified);
    if (!status)
        status = check_reverse(&s);
    if (!status)
        gtopo_result_join(options, s.reports, peers, exchange->one_machine, result);
    *usable = !s.broken && !s.cancelled;
    if (status && s.cancelled && status != GTOPO_EDATA)
        status = gtopo_fail(s.error, GTOPO_ECANCELLED, NULL, "cancelled before there were enough samples");
    return status;
}
