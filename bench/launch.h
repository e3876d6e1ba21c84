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
 * Start `program agent` with a socket as its standard input and output, in a process group of its own (a terminal's
 * Ctrl-C is for the coordinator to hear), and greet it. NULL takes the installed gtopo-bench. `name` is kept.
 * Errors: GTOPO_EMISSING, GTOPO_ESYSTEM, and gtopo_hello()'s.
 */
int gtopo_agent_start(struct gtopo_agent_process *agent, const char *program, const char *name,
                      const struct gtopo_cancel *cancel, struct gtopo_error *error);

/* Say bye, wait up to grace_ns, kill what is left by its pid. A zeroed struct is accepted. */
void gtopo_agent_end(struct gtopo_agent_process *agent, uint64_t grace_ns);

#endif
