/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA writes of 8 B through one device, exactly so many a run, the initiator in this process and the other end in an
 * agent: what tests/bench/instructions counts the instructions of.
 *
 * Usage: write_messages AGENT_PROGRAM DEVICE MESSAGES:POST_LIST:MODERATION...
 * One run after the other, each with its seconds printed; POST_LIST and MODERATION are the messages a list and a
 * completion, 0 for the default. Exit status 0 when all data was verified, 1 when a run failed, 2 for wrong usage.
 */
#include <gputopo/campaign.h>
#include <gputopo/probe.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/clock.h"

extern char **environ;

/* The agent, with our end of its stream in *fd. A program of its own, so that it does not run under the profiler. */
static pid_t start_agent(const char *program, int *fd)
{
    char *arguments[] = {(char *)program, "agent", NULL};
    posix_spawn_file_actions_t actions;
    int fds[2], cause;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
        perror("write_messages: cannot make a socket pair");
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    cause = posix_spawn(&pid, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    *fd = fds[0];
    if (!cause)
        return pid;
    close(fds[0]);
    fprintf(stderr, "write_messages: cannot start %s: %s\n", program, strerror(cause));
    return -1;
}

static int run(int fd, const char *device, const char *what)
{
    struct gtopo_probe_result *result = calloc(1, sizeof *result);
    struct gtopo_probe_stream to = {fd, fd, "the agent"};
    struct gtopo_probe_options options;
    struct gtopo_error error = {0};
    uint64_t start_ns = gtopo_clock_ns();
    int failed = 1;

    gtopo_probe_options_init(&options);
    options.from.device = options.to.device = device;
    options.message_B = 8;
    options.deadline_s = 60; /* a profiler makes setting up slow */
    if (sscanf(what, "%" SCNu64 ":%" SCNu32 ":%" SCNu32, &options.iterations, &options.post_list,
               &options.moderation) != 3)
        fprintf(stderr, "write_messages: \"%s\" is not MESSAGES:POST_LIST:MODERATION\n", what);
    else if (!result)
        fprintf(stderr, "write_messages: out of memory\n");
    else if (gtopo_probe_run(&options, NULL, &to, NULL, result, &error))
        fprintf(stderr, "write_messages: %s\n  %s\n", error.message, error.hint);
    else if (!result->verified)
        fprintf(stderr, "write_messages: the data was not verified\n");
    else {
        printf("%.6f\n", (double)(gtopo_clock_ns() - start_ns) * 1e-9);
        failed = 0;
    }
    free(result);
    return failed;
}

int main(int argc, char **argv)
{
    int fd, failed = 0;
    pid_t agent;

    if (argc < 4) {
        fprintf(stderr, "usage: write_messages AGENT_PROGRAM DEVICE MESSAGES:POST_LIST:MODERATION...\n");
        return 2;
    }
    agent = start_agent(argv[1], &fd);
    if (agent < 0)
        return 1;
    for (int i = 3; !failed && i < argc; i++)
        failed = run(fd, argv[2], argv[i]);
    close(fd); /* ends the agent */
    waitpid(agent, NULL, 0);
    return failed;
}
