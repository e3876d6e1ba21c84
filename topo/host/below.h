/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files below a folder that links cannot lead out of. Of the library, and of the program that reads records. */
#ifndef GTOPO_TOPO_HOST_BELOW_H
#define GTOPO_TOPO_HOST_BELOW_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GTOPO_LINKS_MAX 40 /* as the kernel's */

/* Put what a link leads to before the rest of a path. 0, or -1 when it is too long. */
static inline int gtopo_prepend(char pending[PATH_MAX], const char *target, const char *rest)
{
    size_t length = strlen(target), rest_B = strlen(rest) + 1;

    if (length + 1 + rest_B > PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memmove(pending + length + 1, rest, rest_B);
    memcpy(pending, target, length);
    pending[length] = '/';
    return 0;
}

/*
 * The same file as a path without links: `real` and `pending` together name it, and what is real has none. Returns -1
 * when there are too many, or too long ones.
 */
static inline int gtopo_resolve_below(int root, char pending[PATH_MAX], int follow_last, char real[PATH_MAX])
{
    int links = 0;

    *real = 0;
    while (*pending) {
        char *name = pending + strspn(pending, "/"), *rest = name + strcspn(name, "/"), target[PATH_MAX];
        size_t length = (size_t)(rest - name), real_B = strlen(real);
        int is_last = !rest[strspn(rest, "/")];
        ssize_t target_B;

        if (length == 2 && !strncmp(name, "..", 2)) {
            char *slash = strrchr(real, '/'); /* above the root is the root */

            *(slash ? slash : real) = 0;
        } else if (length && !(length == 1 && *name == '.')) {
            if (real_B + 1 + length >= PATH_MAX) {
                errno = ENAMETOOLONG;
                return -1;
            }
            if (real_B)
                real[real_B] = '/';
            memcpy(real + real_B + (real_B > 0), name, length);
            real[real_B + (real_B > 0) + length] = 0;
            target_B = is_last && !follow_last ? -1 : syscall(SYS_readlinkat, root, real, target, sizeof target - 1);
            if (target_B > 0) {
                target[target_B] = 0;
                real[*target == '/' ? 0 : real_B] = 0;
                if (++links > GTOPO_LINKS_MAX)
                    errno = ELOOP;
                if (links > GTOPO_LINKS_MAX || gtopo_prepend(pending, target, rest))
                    return -1;
                continue;
            }
        }
        memmove(pending, rest, strlen(rest) + 1);
    }
    return 0;
}

/* For kernels before 5.6, and sandboxes that forbid openat2: safe as long as nobody changes the links meanwhile. */
static inline int gtopo_walk_below(int root, const char *path, int flags)
{
    char pending[PATH_MAX], real[PATH_MAX];

    if (strlen(path) >= sizeof pending) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(pending, path);
    if (gtopo_resolve_below(root, pending, !(flags & O_NOFOLLOW), real))
        return -1;
    return (int)syscall(SYS_openat, root, *real ? real : ".", flags | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* Open what is there. `walks` is set when the kernel has no better way, and then not asked again. */
static inline int gtopo_open_below(int root, const char *path, int flags, int *walks)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    int fd = *walks ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof how);

    if (fd < 0 && !*walks && (errno == ENOSYS || errno == EPERM))
        *walks = 1;
    return *walks ? gtopo_walk_below(root, path, flags) : fd;
}

#endif
