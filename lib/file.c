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

/* Where a path leads, through symbolic links; the last one's target need not exist. To be freed; NULL without memory.
 */
static char *target_of(const char *path, int links)
{
    char *real = realpath(path, NULL), *next, link[PATH_MAX];
    const char *slash = strrchr(path, '/');
    ssize_t length;
    int status;

    if (real)
        return real;
    length = links < LINKS_MAX ? readlink(path, link, sizeof link) : -1;
    if (length < 0)
        return strdup(path);
    status =
        asprintf(&next, "%.*s%.*s", slash && link[0] != '/' ? (int)(slash + 1 - path) : 0, path, (int)length, link);
    if (status < 0)
        return NULL;
    real = target_of(next, links + 1);
    free(next);
    return real;
}

int gtopo_file_write(const char *path, gtopo_file_producer *produce, const void *context, struct gtopo_error *error)
{
    struct stat target;
    char *real;
    FILE *file;
    int status;

    if (!stat(path, &target)) {
        if (!S_ISREG(target.st_mode)) {
            file = open_stream(path, 0, 0666);
            return file ? fill(file, path, produce, context, error) : fail_write(path, errno, error);
        }
    } else if (errno != ENOENT)
        return fail_write(path, errno, error);
    real = target_of(path, 0); /* a symbolic link stays one */
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
    int status = 0;

    if (!file)
        return gtopo_fail(error, GTOPO_EIO, hint, "%s cannot be read: %s", path, strerror(errno));
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
