/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include <errno.h>
#include <string.h>

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

int cli_flush(int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    fprintf(stderr, "gtopo-bench: standard output cannot be written: %s\n", strerror(errno));
    return status ? status : CLI_USAGE;
}
