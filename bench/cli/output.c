/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "lib/file.h"
#include <errno.h>
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

const char *cli_output(const char *path)
{
    return gtopo_file_descriptor(path) == STDOUT_FILENO ? "-" : path;
}

int cli_check_output(const char *option, const char *path, struct gtopo_error *error)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    struct stat is;

    if (!strcmp(path, "-"))
        return 0;
    if (!*path)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "%s needs the name of a file, not an empty one", option);
    if (!stat(path, &is) && S_ISDIR(is.st_mode))
        return gtopo_fail(error, GTOPO_EUSAGE, "name a file in it", "%s needs a file, and \"%s\" is a folder", option,
                          path);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    if (access(folder, W_OK) || (!access(path, F_OK) && access(path, W_OK)))
        return gtopo_fail(error, GTOPO_EIO, "name another file", "\"%s\" cannot be written: %s", path, strerror(errno));
    return 0;
}

/* The folder that a file is in, to be freed; NULL when there is none. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = strndup(slash ? path : ".", slash ? (size_t)(slash + 1 - path) : 1);
    char *real = folder ? realpath(folder, NULL) : NULL;

    free(folder);
    return real;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int cli_is_same_file(const char *a, const char *b)
{
    struct stat is[2];
    char *folders[2];
    int exists[2] = {!stat(a, &is[0]), !stat(b, &is[1])}, same;

    if (exists[0] && exists[1])
        return S_ISREG(is[0].st_mode) && is[0].st_dev == is[1].st_dev && is[0].st_ino == is[1].st_ino;
    if (exists[0] || exists[1])
        return 0;
    folders[0] = folder_of(a);
    folders[1] = folder_of(b);
    same = folders[0] && folders[1] && !strcmp(folders[0], folders[1]) && !strcmp(name_of(a), name_of(b));
    free(folders[0]);
    free(folders[1]);
    return same;
}

int cli_keep_former(const char *path)
{
    struct stat former;

    if (!strcmp(path, "-") || stat(path, &former) || !S_ISREG(former.st_mode) || !former.st_size)
        return 0;
    fprintf(stderr, "gtopo-bench: nothing was measured: \"%s\" is left as it was\n", path);
    return 1;
}

struct text {
    const char *data;
    size_t size;
};

static int produce(const void *context, FILE *file, struct gtopo_error *error)
{
    const struct text *text = context;

    (void)error; /* gtopo_file_write() fills it for GTOPO_EIO */
    return fwrite(text->data, 1, text->size, file) == text->size ? 0 : GTOPO_EIO;
}

int cli_write_file(const char *path, const char *data, size_t size, struct gtopo_error *error)
{
    const struct text text = {data, size};

    return gtopo_file_write(path, produce, &text, error);
}

int cli_lose(FILE *out, int cause)
{
    clearerr(out);      /* told once */
    if (cause != EPIPE) /* who closed it does not want to know */
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
