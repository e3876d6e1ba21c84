/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel's */
#define WRITE_HINT "check that the folder exists, is writable and has room"

static int fail_write(const char *path, int number, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EIO, WRITE_HINT, "%s cannot be written: %s", path, strerror(number));
}

static FILE *open_stream(const char *path, int flags, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

/* A new file beside `path` under a name nobody can guess; the name is the caller's to free. */
static FILE *open_temporary(const char *path, mode_t mode, char **name)
{
    FILE *file = NULL;
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0; /* the file's own name may be as long as names can be */

    *name = NULL;
    for (int attempt = 0; !file && attempt < 16; attempt++) {
        unsigned random;

        free(*name);
        if (getrandom(&random, sizeof random, 0) != sizeof random ||
            asprintf(name, "%.*s.gputopo-%08x.tmp", folder, path, random) < 0) {
            *name = NULL;
            return NULL;
        }
        file = open_stream(*name, O_EXCL, mode);
        if (!file && errno != EEXIST)
            break;
    }
    return file;
}

/* Write, flush to the disk and close. */
static int fill(FILE *file, const char *path, gtopo_file_producer *produce, const void *context,
                struct gtopo_error *error)
{
    int status = produce(context, file, error);

    if (status == GTOPO_EIO)
        fail_write(path, errno, error);
    if (!status && (fflush(file) || (fsync(fileno(file)) && errno != EINVAL && errno != EROFS)))
        status = fail_write(path, errno, error);
    if (fclose(file) && !status)
        status = fail_write(path, errno, error);
    return status;
}

static int replace(const char *path, gtopo_file_producer *produce, const void *context, struct gtopo_error *error)
{
    struct stat former;
    int replaces = !stat(path, &former);
    char *temporary;
    FILE *file = open_temporary(path, replaces ? former.st_mode & 0777 : 0666, &temporary);
    int status;

    if (!file) {
        status = fail_write(path, errno, error);
        free(temporary);
        return status;
    }
    /* What others may do with the file stays as it was, as far as we may say. */
    if (replaces && (fchown(fileno(file), former.st_uid, former.st_gid) || fchmod(fileno(file), former.st_mode & 0777)))
        errno = 0;
    status = fill(file, path, produce, context, error);
    if (!status && rename(temporary, path))
        status = fail_write(path, errno, error);
    if (status)
        unlink(temporary);
    free(temporary);
    return status;
}

/* The path that a symbolic link leads to, to be freed; NULL for what is none. */
static char *follow(const char *path)
{
    const char *slash = strrchr(path, '/');
    char link[PATH_MAX], *next;
    ssize_t length = readlink(path, link, sizeof link);

    if (length <= 0 ||
        asprintf(&next, "%.*s%.*s", slash && link[0] != '/' ? (int)(slash + 1 - path) : 0, path, (int)length, link) < 0)
        return NULL;
    return next;
}

/* Where a path leads, through symbolic links; the last one's target need not exist. To be freed; NULL without memory.
 */
static char *target_of(const char *path)
{
    char *real = realpath(path, NULL), *at, *next;

    if (real || !(at = strdup(path)))
        return real;
    for (int links = 0; links < LINKS_MAX && (next = follow(at)); links++) {
        free(at);
        at = next;
    }
    return at;
}

/* Is it the folder in which /proc has the descriptors of this process or thread? */
static int is_folder_of_descriptors(const char *folder)
{
    static const char *const names[] = {"/proc/self/fd", "/proc/thread-self/fd"};
    struct stat is, of;
    int found = 0;

    for (size_t i = 0; !found && i < sizeof names / sizeof *names && !stat(folder, &is); i++)
        found = !stat(names[i], &of) && is.st_dev == of.st_dev && is.st_ino == of.st_ino;
    return found;
}

static int descriptor_at(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder, *end;
    long number = -1;

    if (!slash || slash[1] < '0' || slash[1] > '9')
        return -1;
    folder = strndup(path, (size_t)(slash + 1 - path));
    if (folder && is_folder_of_descriptors(folder)) {
        number = strtol(slash + 1, &end, 10);
        number = *end || number > INT_MAX ? -1 : number;
    }
    free(folder);
    return (int)number;
}

int gtopo_file_descriptor(const char *path)
{
    char *at = strdup(path), *next;
    int number = -1;

    for (int links = 0; at && links < LINKS_MAX && (number = descriptor_at(at)) < 0; links++) {
        next = follow(at);
        free(at);
        at = next;
    }
    free(at);
    return number;
}

static FILE *open_descriptor(int number)
{
    int fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (fd >= 0 && !file)
        close(fd);
    return file;
}

int gtopo_file_write(const char *path, gtopo_file_producer *produce, const void *context, struct gtopo_error *error)
{
    int exists, descriptor = gtopo_file_descriptor(path);
    struct stat target;
    char *real;
    FILE *file;
    int status;

    exists = !stat(path, &target);
    if (!exists && errno != ENOENT)
        return fail_write(path, errno, error);
    if (descriptor >= 0 || (exists && !S_ISREG(target.st_mode))) {
        file = descriptor >= 0 ? open_descriptor(descriptor) : open_stream(path, 0, 0666);
        return file ? fill(file, path, produce, context, error) : fail_write(path, errno, error);
    }
    real = target_of(path); /* a symbolic link stays one */
    if (!real)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory while writing %s", path);
    status = replace(real, produce, context, error);
    free(real);
    return status;
}

int gtopo_file_read(const char *path, size_t limit_B, char **data, size_t *size, struct gtopo_error *error)
{
    const char *hint = "check the path and its permissions";
    FILE *file = fopen(path, "re");
    char *bytes = NULL;
    size_t used = 0, room = 0, got;
    struct stat is;
    int status = 0;

    if (!file)
        return gtopo_fail(error, GTOPO_EIO, hint, "%s cannot be read: %s", path, strerror(errno));
    /* All at once where the size is known, with room to see that there is no more. */
    if (!fstat(fileno(file), &is) && S_ISREG(is.st_mode) && (size_t)is.st_size < limit_B)
        bytes = malloc(room = (size_t)is.st_size + 2);
    room = bytes ? room : 0;
    while (!status && !feof(file)) {
        if (room - used < 2) { /* a byte is kept for the closing zero */
            char *grown = realloc(bytes, room = room ? room * 2 : 65536);

            if (!grown) {
                status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory while reading %s", path);
                break;
            }
            bytes = grown;
        }
        got = fread(bytes + used, 1, room - used - 1, file);
        used += got;
        if (memchr(bytes + used - got, 0, got)) /* found out before an endless device has filled the memory */
            status = gtopo_fail(error, GTOPO_EFORMAT, NULL, "%s is no text: it holds zero bytes", path);
        else if (ferror(file))
            status = gtopo_fail(error, GTOPO_EIO, hint, "%s cannot be read: %s", path, strerror(errno));
        else if (used > limit_B)
            status = gtopo_fail(error, GTOPO_EIO, NULL, "%s is larger than the %zu bytes that are read", path, limit_B);
    }
    fclose(file);
    if (status) {
        free(bytes);
        return status;
    }
    bytes[used] = 0;
    *data = bytes;
    *size = used;
    return 0;
}
