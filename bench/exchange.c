/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/exchange.h"
#include "bench/clock.h"
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
/* What an agent may take on top of the transport's own deadline: registering memory, loading a module. */
#define SLACK_NS (5 * SECOND_NS)
/* After a cancel, to hand over what was measured and to say whether the data was right. */
#define CANCELLED_RESULT_NS (SECOND_NS / 2)
#define CANCELLED_STOP_NS (SECOND_NS / 5)

struct state {
    const struct gtopo_exchange *exchange;
    const struct gtopo_probe_spec *specs;
    int cancelled;
    int broken; /* a stream failed: no more messages */
    struct gtopo_error *error;
};

static uint64_t step_deadline(const struct state *s)
{
    if (s->cancelled)
        return gtopo_clock_ns() + CANCELLED_STOP_NS;
    return gtopo_clock_ns() + (uint64_t)(s->specs[0].deadline_s * 1e9) + SLACK_NS;
}

static int send(struct state *s, const struct gtopo_agent_process *agent, json_t *message)
{
    int status = gtopo_message_send(&agent->stream, message, step_deadline(s), s->error);

    s->broken |= status != 0;
    return status;
}

/* The next message, which has to be of this type; an agent's own failure becomes ours. */
static int expect(struct state *s, const struct gtopo_agent_process *agent, const char *type, uint64_t deadline_ns,
                  json_t **message)
{
    const struct gtopo_cancel *cancel = s->cancelled ? NULL : s->exchange->cancel;
    int status = gtopo_message_receive(&agent->stream, deadline_ns, cancel, message, s->error);

    if (status) {
        s->broken = 1;
        return status;
    }
    if (!strcmp(gtopo_message_type(*message), type))
        return 0;
    if (!strcmp(gtopo_message_type(*message), "failed"))
        status = gtopo_failure_read(*message, agent->stream.peer, s->error);
    else {
        status = gtopo_fail(s->error, GTOPO_EPROTOCOL, NULL, "%s answered \"%.40s\" instead of \"%s\"",
                            agent->stream.peer, gtopo_message_type(*message), type);
        s->broken = 1;
    }
    json_decref(*message);
    *message = NULL;
    return status;
}

/* prepare on both; the addresses that they give. */
static int prepare(struct state *s, json_t *addresses[2])
{
    const struct gtopo_agent_process *agents[2] = {s->exchange->initiator, s->exchange->responder};
    int status = 0;

    for (int i = 0; !status && i < 2; i++)
        status = send(s, agents[i], gtopo_probe_spec_json(&s->specs[i]));
    for (int i = 0; i < 2 && !s->broken; i++) {
        json_t *message = NULL;
        struct gtopo_error earlier = *s->error;
        int failed = expect(s, agents[i], "prepared", step_deadline(s), &message);

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
    return json_pack("{ss, sO?}", "type", "go", "address", address);
}

/* Wait for the initiator's result. A cancel, or the campaign's end, asks it to hand over what it has. */
static int await_result(struct state *s, json_t **result)
{
    const struct gtopo_agent_process *initiator = s->exchange->initiator;
    uint64_t deadline_ns = step_deadline(s) + (uint64_t)(s->specs[0].seconds * 1e9) * GTOPO_PATIENCE;
    uint64_t until_ns = s->exchange->end_ns < deadline_ns ? s->exchange->end_ns : deadline_ns;
    int status = expect(s, initiator, "result", until_ns, result);

    if (!s->broken || (status != GTOPO_ECANCELLED && !(status == GTOPO_ETIMEOUT && until_ns != deadline_ns)))
        return status;
    s->cancelled = 1;
    s->broken = 0;
    status = send(s, initiator, json_pack("{ss}", "type", "cancel"));
    return status ? status : expect(s, initiator, "result", gtopo_clock_ns() + CANCELLED_RESULT_NS, result);
}

/* Read until an agent says stopped; a failure that it tells before becomes the probe's, unless it has one. */
static void await_stopped(struct state *s, const struct gtopo_agent_process *agent, int *status)
{
    int stopped = 0;

    while (!stopped && !s->broken) {
        struct gtopo_error earlier = *s->error;
        json_t *message = NULL;
        int failed = expect(s, agent, "stopped", step_deadline(s), &message);

        stopped = !failed;
        if (failed && *status)
            *s->error = earlier; /* the first failure is the one to tell */
        else if (failed && !s->broken)
            *status = failed;
        json_decref(message);
    }
}

/* Have both ends check their data and close: the end of every probe, also of one that failed. */
static int stop(struct state *s, int status, int *verified)
{
    const struct gtopo_agent_process *agents[2] = {s->exchange->initiator, s->exchange->responder};

    for (int i = 0; i < 2 && !s->broken; i++)
        send(s, agents[i], json_pack("{ss}", "type", "stop"));
    for (int i = 0; i < 2 && !s->broken; i++)
        await_stopped(s, agents[i], &status);
    *verified = !status && !s->broken;
    return status; /* a stream that failed only now cost the check of the data, not the measurement */
}

static int copy_text(const json_t *message, const char *key, char *text, size_t size, struct gtopo_error *error)
{
    const char *value;
    int status = gtopo_message_text(message, key, &value, error);

    if (!status)
        snprintf(text, size, "%s", value);
    return status;
}

static int read_result(const json_t *message, uint32_t metric, struct gtopo_outcome *o, struct gtopo_error *error)
{
    const char *method = metric == GTOPO_LATENCY_ns ? "latency_method" : "bandwidth_method";
    int status;

    if ((status = gtopo_message_real(message, "median", 0, 1e18, &o->summary.median, error)) ||
        (status = gtopo_message_real(message, "low", 0, 1e18, &o->summary.low, error)) ||
        (status = gtopo_message_real(message, "high", 0, 1e18, &o->summary.high, error)) ||
        (status = gtopo_message_number(message, "samples", INT64_MAX, &o->summary.samples, error)) ||
        (status = gtopo_message_number(message, "warmup_samples", INT64_MAX, &o->summary.warmup, error)) ||
        (status = copy_text(message, "stopped_by", o->stopped_by, sizeof o->stopped_by, error)) ||
        (status = copy_text(message, "operation", o->operation, sizeof o->operation, error)) ||
        (status = copy_text(message, method, o->method, sizeof o->method, error)) ||
        (status = copy_text(message, "description", o->description, sizeof o->description, error)))
        return status;
    return 0;
}

int gtopo_exchange_run(const struct gtopo_exchange *exchange, const struct gtopo_probe_spec specs[2],
                       struct gtopo_outcome *outcome, int *agents_usable, struct gtopo_error *error)
{
    struct gtopo_error unused;
    struct state s = {.exchange = exchange, .specs = specs, .error = error ? error : &unused};
    json_t *addresses[2] = {NULL, NULL}, *message = NULL;
    int status = prepare(&s, addresses);

    if (!status)
        status = send(&s, exchange->responder, go(addresses[0]));
    if (!status)
        status = expect(&s, exchange->responder, "connected", step_deadline(&s), &message);
    json_decref(message);
    message = NULL;
    if (!status)
        status = send(&s, exchange->initiator, go(addresses[1]));
    if (!status)
        status = await_result(&s, &message);
    if (!status) {
        status = read_result(message, specs[0].metric, outcome, s.error);
        s.broken |= status != 0;
    }
    json_decref(message);
    json_decref(addresses[0]);
    json_decref(addresses[1]);
    status = stop(&s, status, &outcome->verified);
    *agents_usable = !s.broken && !s.cancelled;
    if (status && s.cancelled)
        status = gtopo_fail(s.error, GTOPO_ECANCELLED, NULL, "cancelled before there were enough samples");
    return status;
}
