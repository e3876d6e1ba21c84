/* SPDX-License-Identifier: Apache-2.0 */
/* One probe between two processes of an embedder: the initiator may be a thread of this one. */
#include <gputopo/campaign.h>
#include <gputopo/probe.h>
#include "bench/clock.h"
#include "bench/exchange.h"
#include "bench/transport.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define START_NS UINT64_C(5000000000) /* a program that serves may still be starting */

/* An agent in a thread of this process, at the other end of a socket pair. */
struct here {
    pthread_t thread;
    int fd, agent_fd;
};

static void *serve(void *context)
{
    const struct here *here = context;

    gtopo_agent_serve(here->agent_fd, here->agent_fd, NULL);
    close(here->agent_fd);
    return NULL;
}

static int start_here(struct here *here, struct gtopo_error *error)
{
    sigset_t all, before;
    int fds[2], cause;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return gtopo_fail(error, GTOPO_ESYSTEM, "look at `ulimit -n`", "cannot make a socket pair: %s",
                          strerror(errno));
    here->fd = fds[0];
    here->agent_fd = fds[1];
    sigfillset(&all); /* signals are for the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    cause = pthread_create(&here->thread, NULL, serve, here);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!cause)
        return 0;
    close(fds[0]);
    close(fds[1]);
    here->fd = -1;
    return gtopo_fail(error, GTOPO_ESYSTEM, "look at `ulimit -u`, `ulimit -v` and the cgroup's pids.max",
                      "cannot start a thread: %s", strerror(cause));
}

static void end_here(struct here *here)
{
    if (here->fd < 0)
        return;
    close(here->fd); /* ends the agent */
    pthread_join(here->thread, NULL);
}

static int greet(const struct gtopo_stream *stream, double deadline_s, const struct gtopo_cancel *cancel,
                 char machine[GTOPO_MACHINE_MAX], struct gtopo_error *error)
{
    int status = gtopo_stream_prepare_fd(stream->input_fd, error);

    if (!status)
        status = gtopo_stream_prepare_fd(stream->output_fd, error);
    if (!status)
        status =
            gtopo_hello(stream, gtopo_clock_ns() + (uint64_t)(deadline_s * 1e9) + START_NS, cancel, machine, error);
    return status;
}

int gtopo_probe_run(const struct gtopo_probe_options *options, const struct gtopo_probe_stream *from,
                    const struct gtopo_probe_stream *to, const struct gtopo_cancel *cancel,
                    struct gtopo_probe_result *result, struct gtopo_error *error)
{
    struct here here = {.fd = -1};
    struct gtopo_stream streams[2] = {{-1, -1, "this process"}, {-1, -1, NULL}};
    struct gtopo_exchange exchange = {.initiator = &streams[0], .cancel = cancel, .end_ns = UINT64_MAX};
    char machines[2][GTOPO_MACHINE_MAX] = {"", ""};
    const struct gtopo_transport_facts *facts;
    int usable, status = gtopo_probe_options_check(options, error);

    if (status || (status = gtopo_transport_facts(options->transport, &facts, error)))
        return status;
    if (!to && !facts->alone)
        return gtopo_fail(error, GTOPO_EUSAGE, "give the stream to a process that serves",
                          "a probe over %s needs another end", facts->name);
    if (!from && (status = start_here(&here, error)))
        return status;
    if (from)
        streams[0] = (struct gtopo_stream){from->input_fd, from->output_fd, from->name ? from->name : "the initiator"};
    else
        streams[0].input_fd = streams[0].output_fd = here.fd;
    status = greet(&streams[0], options->deadline_s, cancel, machines[0], error);
    if (!facts->alone) {
        streams[1] = (struct gtopo_stream){to->input_fd, to->output_fd, to->name ? to->name : "the responder"};
        exchange.responder = &streams[1];
        if (!status)
            status = greet(&streams[1], options->deadline_s, cancel, machines[1], error);
    }
    exchange.one_machine = machines[0][0] && !strcmp(machines[0], machines[1]);
    exchange.shared = exchange.one_machine && options->from.numa == options->to.numa;
    if (!status)
        status = gtopo_exchange_run(&exchange, options, result, &usable, error);
    end_here(&here);
    return status;
}
