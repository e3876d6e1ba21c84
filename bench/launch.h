/* SPDX-License-Identifier: Apache-2.0 */
/* Starting an agent as a process of this host, and ending it. */
#ifndef GTOPO_BENCH_LAUNCH_H
#define GTOPO_BENCH_LAUNCH_H

#include <sys/types.h>
#include "bench/protocol.h"

struct gtopo_agent_process {
    struct gtopo_stream stream;
    pid_t pid; /* 0 when there is none */
};

/*
 * Start a command (argv, closed by NULL) with a socket as its standard input and output, in a process group of its own
 * (a terminal's Ctrl-C is for the coordinator to hear), and greet the agent at the other end, until end_ns at the
 * latest. `name` is kept. Errors: GTOPO_EMISSING, GTOPO_ESYSTEM, and gtopo_hello()'s.
 */
int gtopo_agent_start(struct gtopo_agent_process *agent, char *const *argv, const char *name, uint64_t end_ns,
                      const struct gtopo_cancel *cancel, struct gtopo_error *error);

/* The command line for a host: {host} replaced in a template. *command is the caller's to free. A host's name may
 * hold letters, digits, dots, hyphens and underscores, since a shell reads it. Errors: GTOPO_EUSAGE, GTOPO_ENOMEM. */
int gtopo_launch_command(const char *launch, const char *host, char **command, struct gtopo_error *error);

/* Has it closed its stream and ended? Then how is written ("ended with status 1"), and nothing is left of it. Waits a
 * little for one whose stream is closed. */
#define GTOPO_ENDED_TEXT 64
int gtopo_agent_ended(struct gtopo_agent_process *agent, char text[GTOPO_ENDED_TEXT]);

/* Say bye and close the stream. A zeroed struct is accepted, here and below. */
void gtopo_agent_say_bye(struct gtopo_agent_process *agent);
/* Say bye if it was not said, wait until deadline_ns (0: not at all), kill what is left: the process group that was
 * started. */
void gtopo_agent_end(struct gtopo_agent_process *agent, uint64_t deadline_ns);

#endif
