/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/launch.h"
#include "bench/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Signals as a fresh process has them, whatever the program that we are part of has blocked or ignored. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int spawn(char *const *argv, int fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failure;

    failure = posix_spawn_file_actions_init(&actions);
    if (failure)
        return failure;
    failure = posix_spawnattr_init(&attributes);
    if (!failure) {
        failure = set_attributes(&attributes);
        if (!failure)
            failure = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
        if (!failure)
            failure = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
        if (!failure)
            failure = posix_spawn(pid, argv[0], &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

/*
 * Both ends of a stream to an agent. In a program that has closed its standard descriptors they would take their
 * numbers, and hear what it prints.
 */
static int open_stream(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return -1;
    for (int i = 0; i < 2; i++) {
        int moved, low = pair[i];

        if (low > STDERR_FILENO)
            continue;
        moved = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (moved < 0) {
            close(pair[0]);
            close(pair[1]);
            return -1;
        }
        close(low);
        pair[i] = moved;
    }
    return 0;
}

/* Append text to *end, up to `limit`. */
static void append(char **end, const char *limit, const char *text, size_t length)
{
    for (size_t i = 0; i < length && *end < limit; i++)
        *(*end)++ = text[i];
}

int gtopo_launch_command(const char *launch, const char *host, char **command, struct gtopo_error *error)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    static const char mark[] = "{host}";
    size_t length = strlen(host), room = strlen(launch) + 1;
    char *end;

    if (!length || host[0] == '-' || strspn(host, plain) != length)
        return gtopo_fail(error, GTOPO_EUSAGE, "letters, digits, dots, hyphens and underscores make a host's name",
                          "\"%.200s\" cannot be the name of a host to start an agent on", host);
    for (const char *at = launch; (at = strstr(at, mark)); at++)
        room += length;
    *command = end = malloc(room);
    if (!end)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    while (*launch) {
        int is_mark = !strncmp(launch, mark, sizeof mark - 1);

        append(&end, *command + room - 1, is_mark ? host : launch, is_mark ? length : 1);
        launch += is_mark ? sizeof mark - 1 : 1;
    }
    *end = 0;
    return 0;
}

int gtopo_agent_ended(struct gtopo_agent_process *agent, char text[GTOPO_ENDED_TEXT])
{
    const struct timespec nap = {0, 10000000};
    struct pollfd stream = {agent->stream.input_fd, POLLIN, 0};
    int ended = 0, status;

    /* Its stream closes a moment before it has ended; one that is open is that of an agent that lives. */
    for (int i = 0; agent->pid && i < 50 && !ended; i++) {
        ended = waitpid(agent->pid, &status, WNOHANG) > 0;
        if (!ended && (poll(&stream, 1, 0) <= 0 || !(stream.revents & POLLHUP)))
            return 0;
        if (!ended)
            nanosleep(&nap, NULL);
    }
    if (!ended)
        return 0;
    close(agent->stream.input_fd);
    kill(-agent->pid, SIGKILL);      /* what it has left behind */
    memset(agent, 0, sizeof *agent); /* it has been waited for */
    if (WIFEXITED(status))
        snprintf(text, GTOPO_ENDED_TEXT, "ended with status %d", WEXITSTATUS(status));
    else
        snprintf(text, GTOPO_ENDED_TEXT, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 1;
}

/* The command ended without an agent having answered: say which, and how it ended if it does so soon. */
static int fail_ended(struct gtopo_agent_process *agent, char *const *argv, const char *name, struct gtopo_error *error)
{
    const char *command = argv[1] && argv[2] ? argv[2] : argv[0]; /* behind sh -c */
    char how[GTOPO_ENDED_TEXT];

    if (!gtopo_agent_ended(agent, how))
        return gtopo_fail(error, GTOPO_EPEER, "does the command pass the agent's input and output on?",
                          "%s cannot be reached: `%.200s` closed its output", name, command);
    return gtopo_fail(error, GTOPO_EPEER, "try the command by hand: it has to start gtopo-bench agent on that host",
                      "%s cannot be reached: `%.200s` %s", name, command, how);
}

int gtopo_agent_start(struct gtopo_agent_process *agent, char *const *argv, const char *name, uint64_t end_ns,
                      const struct gtopo_cancel *cancel, struct gtopo_error *error)
{
    int pair[2], failure, status;

    memset(agent, 0, sizeof *agent);
    if (open_stream(pair))
        return gtopo_fail(error, GTOPO_ESYSTEM, "raise the limit of open files (ulimit -n)",
                          "no socket for an agent: %s", strerror(errno));
    failure = spawn(argv, pair[1], &agent->pid);
    close(pair[1]);
    if (failure) {
        close(pair[0]);
        agent->pid = 0;
        return gtopo_fail(error, failure == ENOENT ? GTOPO_EMISSING : GTOPO_ESYSTEM,
                          "install gtopo-bench or name it in the campaign's options", "%s cannot be started: %s",
                          argv[0], strerror(failure));
    }
    agent->stream = (struct gtopo_stream){pair[0], pair[0], name};
    status = gtopo_stream_prepare_fd(pair[0], error);
    if (!status)
        status = gtopo_hello(&agent->stream, end_ns, cancel, NULL, error);
    if (status == GTOPO_EPEER)
        status = fail_ended(agent, argv, name, error);
    if (status)
        gtopo_agent_end(agent, 0);
    return status;
}

void gtopo_agent_say_bye(struct gtopo_agent_process *agent)
{
    if (!agent->pid || agent->stream.input_fd < 0)
        return;
    gtopo_message_send(&agent->stream, json_pack("{ss}", "type", "bye"), gtopo_clock_ns(), NULL);
    close(agent->stream.input_fd);
    agent->stream.input_fd = agent->stream.output_fd = -1;
}

void gtopo_agent_end(struct gtopo_agent_process *agent, uint64_t deadline_ns)
{
    const struct timespec nap = {0, 1000000};

    if (!agent->pid)
        return;
    gtopo_agent_say_bye(agent);
    /* Whatever a launch command has left behind goes with it. */
    while (waitpid(agent->pid, NULL, WNOHANG) == 0) {
        if (gtopo_clock_ns() >= deadline_ns)
            kill(-agent->pid, SIGKILL);
        nanosleep(&nap, NULL);
    }
    kill(-agent->pid, SIGKILL);
    memset(agent, 0, sizeof *agent);
}
