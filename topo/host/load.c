/* SPDX-License-Identifier: Apache-2.0 */
/* hwloc's tree: of this machine, of a recorded /sys, or from XML. */
#include "topo/host/host.h"
#include "lib/file.h"
#include "lib/library_file.h"
#include "lib/text.h"
#include "topo/host/filter.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define XML_LIMIT_B ((size_t)256 << 20)
#define XML_TAIL_B 4096
#define REPLAY_DEADLINE_S 30

extern char **environ;

static void set_components(hwloc_topology_t topology)
{
    /*
     * What we ask the drivers ourselves, and what only costs time. hwloc ignores names that it does not know. "pci" is
     * not needed, since "linux" sees the same devices, and its library keeps 700 kB more at every call.
     */
    static const char *const unwanted[] = {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl", "pci"};

    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
}

/* ---- records are read by the program beside us, replay.c ---- */

static int set_files(posix_spawn_file_actions_t *actions, int input, int output)
{
    int failure = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);

    if (!failure && input >= 0)
        failure = posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
    if (!failure && input < 0)
        failure = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    return failure ? failure : posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
}

/* `input` is a file for the program's standard input, or -1. */
static int spawn_replay(const char *argument, int input, pid_t *pid, int *output, struct gtopo_error *error)
{
    posix_spawn_file_actions_t actions;
    char program[4096];
    char *argv[] = {program, (char *)argument, NULL};
    int pipe_fds[2], failure, status = gtopo_library_file("gputopo-replay", program, sizeof program, error);

    if (status)
        return status;
    if (pipe2(pipe_fds, O_CLOEXEC))
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "no pipe: %s", strerror(errno));
    failure = posix_spawn_file_actions_init(&actions);
    if (!failure) {
        failure = set_files(&actions, input, pipe_fds[1]);
        if (!failure)
            failure = posix_spawn(pid, program, &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(pipe_fds[1]);
    if (failure) {
        close(pipe_fds[0]);
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "%s cannot be started: %s", program, strerror(failure));
    }
    *output = pipe_fds[0];
    return 0;
}

static int64_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* All that the program writes, up to a bound and a deadline. 0 or a status without words. */
static int drain(int fd, char **data, size_t *size)
{
    int64_t deadline_s = seconds_now() + REPLAY_DEADLINE_S;
    size_t capacity = 0;

    for (;;) {
        struct pollfd readable = {fd, POLLIN, 0};
        ssize_t got;

        if (*size > XML_LIMIT_B)
            return GTOPO_EFORMAT;
        if (gtopo_grow((void **)data, &capacity, *size + 65536, 1))
            return GTOPO_ENOMEM;
        if (seconds_now() >= deadline_s)
            return GTOPO_ETIMEOUT;
        if (poll(&readable, 1, 1000) <= 0)
            continue;
        got = read(fd, *data + *size, 65535);
        if (!got)
            return 0;
        if (got < 0 && errno != EINTR)
            return GTOPO_EIO;
        *size += got > 0 ? (size_t)got : 0;
    }
}

/* The tree of what is called `name`, as hwloc's XML. */
static int replay(const char *name, const char *hint, const char *argument, int input, char **xml, size_t *size,
                  struct gtopo_error *error)
{
    int output, wait_status = 0, status;
    pid_t pid;

    status = spawn_replay(argument, input, &pid, &output, error);
    if (status)
        return status;
    status = drain(output, xml, size);
    close(output);
    if (status)
        kill(pid, SIGKILL);
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
        ;
    if (status == GTOPO_ENOMEM)
        return gtopo_fail(error, status, NULL, "out of memory while reading %s", name);
    if (status == GTOPO_ETIMEOUT)
        return gtopo_fail(error, GTOPO_EFORMAT, hint, "hwloc has not read %s in %d s", name, REPLAY_DEADLINE_S);
    if (status || !WIFEXITED(wait_status) || WEXITSTATUS(wait_status) || !*size)
        return gtopo_fail(error, GTOPO_EFORMAT, hint, "hwloc cannot make a machine of %s", name);
    (*xml)[*size] = 0;
    return 0;
}

/* ---- a recorded /sys ---- */

static int check_root(const char *root, struct gtopo_error *error)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/sys", root);
    struct stat folder;

    if (length < (int)sizeof path && !stat(path, &folder) && S_ISDIR(folder.st_mode) &&
        !faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS))
        return 0;
    return gtopo_fail(error, GTOPO_EIO,
                      "name a folder that holds a machine's sys and proc, as hwloc-gather-topology leaves them",
                      "%s holds no readable folder sys", root);
}

static int read_root(const char *root, char **xml, size_t *size, struct gtopo_error *error)
{
    return replay(root, "gather the machine again with hwloc-gather-topology", root, -1, xml, size, error);
}

/* ---- XML ---- */

/* hwloc says only "no" to a newer format: look for ourselves. */
static int check_xml(const char *name, const char *xml, size_t size, struct gtopo_error *error)
{
    const char *element = size ? memmem(xml, size < 65536 ? size : 65536, "<topology", 9) : NULL;
    const char *version = element ? strstr(element, "version=\"") : NULL;

    if (!element)
        return gtopo_fail(error, GTOPO_EFORMAT, "write one with `lstopo --of xml FILE`", "%s is not hwloc's XML", name);
    if (version && version < strchr(element, '>') && strtol(version + 9, NULL, 10) > 2)
        return gtopo_fail(error, GTOPO_EVERSION,
                          "export it with `lstopo --export-xml-flags v2`, or use a gputopo built with hwloc 3",
                          "%s is hwloc XML of version %.3s; hwloc %s, which gputopo runs with, reads version 2", name,
                          version + 9, HWLOC_VERSION);
    /* One of hwloc's two readers takes what is cut for the whole. */
    if (!memmem(xml + (size > XML_TAIL_B ? size - XML_TAIL_B : 0), size > XML_TAIL_B ? XML_TAIL_B : size, "</topology>",
                11))
        return gtopo_fail(error, GTOPO_EFORMAT, "write it again with `lstopo --of xml FILE`",
                          "%s is cut: it has no </topology> at its end", name);
    return 0;
}

/* A file without a name that holds the data, or -1. */
static int hold(const char *data, size_t size)
{
    int fd = memfd_create("gputopo-xml", MFD_CLOEXEC);
    size_t written = 0;

    while (fd >= 0 && written < size) {
        ssize_t step = write(fd, data + written, size - written);

        if (step < 0 && errno == EINTR)
            continue;
        if (step <= 0) {
            close(fd);
            return -1;
        }
        written += (size_t)step;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

static int read_xml(const char *path, char **xml, size_t *size, struct gtopo_error *error)
{
    char *data = NULL;
    size_t data_B = 0;
    int input, status = gtopo_file_read(path, XML_LIMIT_B, &data, &data_B, error);

    if (!status)
        status = check_xml(path, data, data_B, error);
    if (status) {
        free(data);
        return status;
    }
    input = hold(data, data_B);
    free(data);
    if (input < 0)
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "no memory file for %s: %s", path, strerror(errno));
    status =
        replay(path, "is the file whole? write it again with `lstopo --of xml FILE`", "--xml", input, xml, size, error);
    close(input);
    return status;
}

/* ---- hwloc in this process ---- */

/* The machine that we run on, or what the program beside us has read. */
static int load(hwloc_topology_t topology, const char *name, const char *xml, size_t size, struct gtopo_error *error)
{
    set_components(topology);
    if (gtopo_topology_filter(topology))
        return gtopo_fail(error, GTOPO_EINTERNAL, NULL, "hwloc refuses what is asked of it");
    if (xml && hwloc_topology_set_xmlbuffer(topology, xml, (int)size + 1))
        return gtopo_fail(error, GTOPO_EFORMAT, NULL, "hwloc cannot read again what it made of %s", name);
    if (!hwloc_topology_load(topology))
        return 0;
    return xml ? gtopo_fail(error, GTOPO_EFORMAT, NULL, "hwloc cannot read again what it made of %s", name)
               : gtopo_fail(error, GTOPO_EMISSING, "is /sys mounted?", "hwloc cannot read this machine: %s",
                            strerror(errno));
}

int gtopo_load_topology(const struct gtopo_host_options *options, hwloc_topology_t *topology, struct gtopo_error *error)
{
    const char *name = options->hwloc_xml ? options->hwloc_xml : options->fsroot;
    char *xml = NULL;
    size_t size = 0;
    int status = options->fsroot ? check_root(options->fsroot, error) : 0;

    if (!status && options->hwloc_xml)
        status = read_xml(options->hwloc_xml, &xml, &size, error);
    else if (!status && options->fsroot)
        status = read_root(options->fsroot, &xml, &size, error);
    if (!status && hwloc_topology_init(topology))
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "hwloc is out of memory");
    if (!status) {
        status = load(*topology, name, xml, size, error);
        if (status)
            hwloc_topology_destroy(*topology);
    }
    free(xml);
    return status;
}
