/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_stdout(void *context, const void *data, size_t size)
{
    (void)context;
    return fwrite(data, 1, size, stdout) != size;
}

int cli_save(const struct gtopo_map *map, const char *path, struct gtopo_error *error)
{
    int status;

    if (strcmp(path, "-"))
        return gtopo_map_save(map, path, error);
    status = gtopo_map_write(map, write_stdout, NULL, error);
    if (status == GTOPO_EIO)
        return gtopo_fail(error, GTOPO_EIO, NULL, "standard output cannot be written: %s", strerror(errno));
    return status;
}

int cli_check_output(const char *path, struct gtopo_error *error)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');

    if (!strcmp(path, "-"))
        return 0;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    if (access(folder, W_OK) || (!access(path, F_OK) && access(path, W_OK)))
        return gtopo_fail(error, GTOPO_EIO, "name another file", "\"%s\" cannot be written: %s", path, strerror(errno));
    return 0;
}

/* Takes the descriptor. */
static int fill(int fd, const char *data, size_t size)
{
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    int failed;

    if (!file) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    failed = fwrite(data, 1, size, file) != size;
    return fclose(file) || failed ? -1 : 0;
}

/* A file of its own beside it takes the place of the one that was there, and has its mode. */
static int replace(const char *path, const struct stat *former, const char *data, size_t size)
{
    const char *slash = strrchr(path, '/');
    char *temporary;
    mode_t mask = umask(0);
    int fd, cause;

    umask(mask);
    if (asprintf(&temporary, "%.*s.gputopo-XXXXXX", slash ? (int)(slash + 1 - path) : 0, path) < 0)
        return -1;
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        free(temporary);
        return -1;
    }
    if (fchmod(fd, former ? former->st_mode & 0777 : 0666 & ~mask) || fill(fd, data, size) || rename(temporary, path)) {
        cause = errno;
        unlink(temporary);
        errno = cause;
        free(temporary);
        return -1;
    }
    free(temporary);
    return 0;
}

int cli_write_file(const char *path, const char *data, size_t size, struct gtopo_error *error)
{
    char *real = realpath(path, NULL); /* a link stays one */
    struct stat former;
    int exists = !stat(path, &former), failed;

    if (exists && !S_ISREG(former.st_mode)) /* a pipe or a device; a folder refuses */
        failed = fill(open(path, O_WRONLY | O_CLOEXEC), data, size);
    else
        failed = replace(real ? real : path, exists ? &former : NULL, data, size);
    free(real);
    return failed ? gtopo_fail(error, GTOPO_EIO, "check that the folder exists, is writable and has room",
                               "\"%s\" cannot be written: %s", path, strerror(errno))
                  : 0;
}

int cli_lose(FILE *out, int cause)
{
    clearerr(out); /* told once */
    fprintf(stderr, "gtopo-bench: standard output cannot be written: %s\n", strerror(cause));
    return CLI_USAGE;
}

int cli_flush(int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    cli_lose(stdout, errno);
    return status ? status : CLI_USAGE;
}
