/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gputopo-replay DIR: read a recorded machine (DIR/sys, DIR/proc) with hwloc and write its tree as XML, version 2, to
 * standard output. hwloc takes the root from the environment only, which a library must not change.
 * gputopo-replay --xml: the same from hwloc's XML on standard input. What is wrong with a file that a user brings then
 * makes this program fail, or print, and not the one that the library is in.
 */
#undef _FORTIFY_SOURCE /* it replaces functions that are defined here */
#include "topo/host/below.h"
#include "topo/host/filter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <gputopo/error.h>

/* PCI has 256 buses a domain. A tree that is much deeper is made up, to exhaust the stack of who walks it. */
#define DEPTH_MAX 1024

/* ---- hwloc's way into the record ---- */

static int open_in_root(int root, const char *path, int flags)
{
    static int walks;

    if (root == AT_FDCWD)
        return (int)syscall(SYS_openat, root, path, flags | O_CLOEXEC, 0);
    return gtopo_open_below(root, path, flags, &walks);
}

/*
 * hwloc reads a record through these, relative to the record's root, and would follow its links to anywhere and wait
 * for its pipes. They stand in for libc's, which takes that they are visible.
 */
GTOPO_API int openat(int root, const char *path, int flags, ...)
{
    struct stat file;
    int fd = open_in_root(root, path, (flags & (O_ACCMODE | O_DIRECTORY)) | O_NONBLOCK);

    if (fd >= 0 && (fstat(fd, &file) || !(S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)))) {
        close(fd);
        errno = EACCES;
        return -1;
    }
    return fd;
}

GTOPO_API int fstatat(int root, const char *path, struct stat *file, int flags)
{
    int fd = open_in_root(root, path, O_PATH | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0)), status;

    if (fd < 0)
        return -1;
    status = fstat(fd, file);
    close(fd);
    return status;
}

GTOPO_API int faccessat(int root, const char *path, int mode, int flags)
{
    struct stat file;

    (void)mode; /* opening it will tell */
    return fstatat(root, path, &file, flags);
}

GTOPO_API ssize_t readlinkat(int root, const char *path, char *target, size_t size)
{
    int fd = open_in_root(root, path, O_PATH | O_NOFOLLOW);
    ssize_t length;

    if (fd < 0)
        return -1;
    length = syscall(SYS_readlinkat, fd, "", target, size);
    close(fd);
    return length;
}

/* ---- the program ---- */

/* hwloc would take another machine from these than it is asked for. What corrects a machine (localities) may stay. */
static void forget_other_sources(void)
{
    static const char *const names[] = {"HWLOC_COMPONENTS", "HWLOC_FSROOT", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC",
                                        "HWLOC_CPUID_PATH"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static int prepare(const char *root)
{
    static const struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core); /* hwloc asserts what a record should be */
    forget_other_sources();
    if (setenv("HWLOC_HIDE_ERRORS", "2", 1) || setenv("HWLOC_THISSYSTEM", "0", 1))
        return -1;
    if (root && !strcmp(root, "/"))
        root = "/."; /* hwloc takes "/" for no root at all */
    return root && (setenv("HWLOC_FSROOT", root, 1) || setenv("HWLOC_COMPONENTS", "linux,stop", 1)) ? -1 : 0;
}

/* All of standard input with a zero behind it, or NULL. */
static char *read_input(size_t *size)
{
    size_t room = 0;
    char *data = NULL;
    ssize_t got;

    *size = 0;
    do {
        if (room - *size < 65536) {
            char *grown = realloc(data, room = room ? room * 2 : 1 << 20);

            if (!grown)
                break;
            data = grown;
        }
        got = read(STDIN_FILENO, data + *size, room - *size - 1);
        *size += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (data)
        data[*size] = 0;
    return data;
}

static int is_too_deep(hwloc_topology_t topology)
{
    hwloc_obj_t object = NULL;

    if (hwloc_topology_get_depth(topology) > DEPTH_MAX)
        return 1;
    while ((object = hwloc_get_next_bridge(topology, object))) {
        int depth = 0;

        for (hwloc_obj_t above = object->parent; above; above = above->parent)
            if (++depth > DEPTH_MAX)
                return 1;
    }
    return 0;
}

static int write_tree(hwloc_topology_t topology)
{
    char *xml;
    int length, failed;

    if (is_too_deep(topology) || hwloc_topology_export_xmlbuffer(topology, &xml, &length, 0))
        return -1;
    failed = fwrite(xml, 1, (size_t)length, stdout) != (size_t)length || fflush(stdout);
    hwloc_free_xmlbuffer(topology, xml);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    int is_xml = argc == 2 && !strcmp(argv[1], "--xml"), failed;
    hwloc_topology_t topology;
    char *xml = NULL;
    size_t size = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: gputopo-replay DIR | --xml\n");
        return 2;
    }
    if (prepare(is_xml ? NULL : argv[1]) || (is_xml && !(xml = read_input(&size))))
        return 5;
    if (hwloc_topology_init(&topology)) {
        free(xml);
        return 5;
    }
    failed = gtopo_topology_filter(topology) || (xml && hwloc_topology_set_xmlbuffer(topology, xml, (int)size + 1)) ||
             hwloc_topology_load(topology) || write_tree(topology);
    if (failed)
        fprintf(stderr, "hwloc cannot read %s\n", is_xml ? "standard input" : argv[1]);
    hwloc_topology_destroy(topology);
    free(xml);
    return failed ? 3 : 0;
}
