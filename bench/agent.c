/* SPDX-License-Identifier: Apache-2.0 */
/* An agent: one end of each probe, at the word of a coordinator. */
#include <gputopo/campaign.h>
#include <gputopo/host.h>
#include "bench/clock.h"
#include "bench/engine.h"
#include "bench/protocol.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEND_DEADLINE_NS UINT64_C(5000000000)

/* How often the coordinator hears that a run goes on. */
#define BEAT_NS UINT64_C(500000000)

struct agent {
    struct gtopo_stream stream;
    struct gtopo_engine *engine;
    int initiator;
    int is_connected;
    uint64_t beat_ns; /* when it was last told that the run goes on */
};

static int reply(struct agent *agent, json_t *message, struct gtopo_error *error)
{
    return gtopo_message_send(&agent->stream, message, gtopo_clock_ns() + SEND_DEADLINE_NS, error);
}

static void close_engine(struct agent *agent)
{
    gtopo_engine_close(agent->engine);
    agent->engine = NULL;
    agent->is_connected = 0;
}

/* A probe that failed is over, but not the agent. */
static int reply_failure(struct agent *agent, const struct gtopo_error *cause, struct gtopo_error *error)
{
    close_engine(agent);
    return reply(agent, gtopo_failure_json(cause), error);
}

/* Has the coordinator anything to say? In mid-run that is the run's end, or the end of the stream. */
static int is_spoken_to(void *context)
{
    const struct agent *agent = context;
    struct pollfd input = {agent->stream.input_fd, POLLIN, 0};

    return poll(&input, 1, 0) > 0;
}

/* Of the agent that drives. From time to time it tells that the run goes on: a run may be long, and a silent agent may
 * be a stopped one. */
static int interrupted(void *context)
{
    struct agent *agent = context;
    uint64_t now_ns = gtopo_clock_ns();

    if (now_ns - agent->beat_ns >= BEAT_NS) {
        agent->beat_ns = now_ns;
        if (reply(agent, json_pack("{ss}", "type", "running"), NULL))
            return 1;
    }
    return is_spoken_to(agent);
}

static int keep(void *text, const void *data, size_t size)
{
    return fwrite(data, 1, size, text) != size;
}

/* This host's map as text, which is the caller's to free. */
static int discover(const char *name, char **text, size_t *size, struct gtopo_error *error)
{
    struct gtopo_map *map = gtopo_map_new();
    struct gtopo_host_options options;
    FILE *file = open_memstream(text, size);
    int status = map && file ? 0 : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");

    gtopo_host_options_init(&options);
    options.name = name;
    if (!status)
        status = gtopo_host_discover(map, &options, error);
    if (!status)
        status = gtopo_map_seal(map, error);
    if (!status)
        status = gtopo_map_write(map, keep, file, error);
    if (file)
        fclose(file);
    gtopo_map_free(map);
    return status;
}

static int on_discover(struct agent *agent, const json_t *message, struct gtopo_error *error)
{
    struct gtopo_error cause;
    const char *name;
    char *text = NULL;
    size_t size;
    int status = gtopo_message_text(message, "name", &name, error);

    if (status)
        return status;
    if (discover(name, &text, &size, &cause))
        status = reply(agent, gtopo_failure_json(&cause), error);
    else
        status = reply(agent, json_pack("{ss, so}", "type", "map", "map", json_loadb(text, size, 0, NULL)), error);
    free(text);
    return status;
}

static int on_prepare(struct agent *agent, const json_t *message, struct gtopo_error *error)
{
    struct gtopo_spec spec;
    struct gtopo_error cause;
    unsigned char blob[GTOPO_BLOB_MAX];
    size_t size = sizeof blob;
    int status = gtopo_spec_read(message, &spec, &cause);

    if (status == GTOPO_EPROTOCOL)
        return gtopo_fail(error, status, cause.hint, "%s", cause.message);
    close_engine(agent);
    agent->initiator = spec.initiator;
    if (status || gtopo_engine_open(&spec, &agent->engine, &cause) ||
        gtopo_engine_address(agent->engine, blob, &size, &cause))
        return reply_failure(agent, &cause, error);
    return reply(agent, json_pack("{ss, so}", "type", "prepared", "address", gtopo_bytes_json(blob, size)), error);
}

static int drive(struct agent *agent, struct gtopo_error *error)
{
    struct gtopo_probe_result *result = calloc(1, sizeof *result);
    struct gtopo_error cause;
    int status;

    if (!result)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    agent->beat_ns = 0;
    if (gtopo_engine_run(agent->engine, interrupted, agent, result, &cause))
        status = reply_failure(agent, &cause, error);
    else
        status = reply(agent, gtopo_result_json(result), error);
    free(result);
    return status;
}

static int on_go(struct agent *agent, const json_t *message, struct gtopo_error *error)
{
    struct gtopo_error cause;
    unsigned char blob[GTOPO_BLOB_MAX];
    size_t size = sizeof blob;
    int status = gtopo_message_bytes(message, "address", blob, &size, error);

    if (!status && !agent->engine)
        status = gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "go came without prepare");
    if (status)
        return status;
    if (gtopo_engine_connect(agent->engine, blob, size, &cause))
        return reply_failure(agent, &cause, error);
    agent->is_connected = 1;
    return reply(agent, json_pack("{ss}", "type", "connected"), error);
}

static int on_run(struct agent *agent, struct gtopo_error *error)
{
    struct gtopo_error cause;

    if (!agent->is_connected)
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "run came without go");
    if (agent->initiator)
        return drive(agent, error);
    return gtopo_engine_serve(agent->engine, is_spoken_to, agent, &cause) ? reply_failure(agent, &cause, error) : 0;
}

/* The end of a probe: is the data what was sent? A probe that failed before is closed and was told of. */
static int on_stop(struct agent *agent, struct gtopo_error *error)
{
    struct gtopo_error cause;
    struct gtopo_report report = {.reach.way = ""};
    int status = 0;

    if (agent->engine)
        gtopo_engine_report(agent->engine, &report);
    if (agent->engine && gtopo_engine_verify(agent->engine, &cause))
        status = reply_failure(agent, &cause, error);
    close_engine(agent);
    return status ? status : reply(agent, gtopo_report_json(&report), error);
}

static int handle(struct agent *agent, const json_t *message, int *ended, struct gtopo_error *error)
{
    const char *type = gtopo_message_type(message);

    if (!strcmp(type, "hello")) /* another coordinator on the same stream */
        return gtopo_hello_answer(&agent->stream, message, gtopo_clock_ns() + GTOPO_HELLO_DEADLINE_NS, error);
    if (!strcmp(type, "discover"))
        return on_discover(agent, message, error);
    if (!strcmp(type, "prepare"))
        return on_prepare(agent, message, error);
    if (!strcmp(type, "go"))
        return on_go(agent, message, error);
    if (!strcmp(type, "run"))
        return on_run(agent, error);
    if (!strcmp(type, "stop"))
        return on_stop(agent, error);
    if (!strcmp(type, "cancel"))
        return 0; /* it ended the run by being there */
    if (!strcmp(type, "bye")) {
        *ended = 1;
        return 0;
    }
    return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "the coordinator sent an unknown message \"%.40s\"", type);
}

int gtopo_agent_serve(int input_fd, int output_fd, struct gtopo_error *error)
{
    struct agent agent = {.stream = {input_fd, output_fd, "the coordinator"}};
    int ended = 0;
    int status = gtopo_stream_prepare_fd(input_fd, error);

    if (!status)
        status = gtopo_stream_prepare_fd(output_fd, error);
    if (!status)
        status = gtopo_hello(&agent.stream, gtopo_clock_ns() + GTOPO_HELLO_DEADLINE_NS, NULL, NULL, error);
    while (!status && !ended) {
        json_t *message = NULL;

        status = gtopo_message_receive(&agent.stream, UINT64_MAX, NULL, &message, error);
        if (!status) {
            status = handle(&agent, message, &ended, error);
            json_decref(message);
        }
    }
    close_engine(&agent);
    return status;
}
