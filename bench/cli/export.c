/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench export: a map in another tool's format. */
#include "cli.h"
#include <errno.h>
#include <getopt.h>
#include <gputopo/export.h>
#include <stdlib.h>
#include <string.h>

enum { INJECT = 256, HOST };

static const struct cli_option options[] = {
    {'o', "output", "FILE", "where it goes; - is standard output, the default"},
    {INJECT, "inject", NULL,
     "only processors and PCI devices: what NCCL cannot see itself\n"
     "                             where a machine hides its tree"},
    {HOST, "host", "NAME", "which host of a map that has several"},
    {0, NULL, NULL, NULL},
};

static int take(void *context, const void *data, size_t size)
{
    return fwrite(data, 1, size, context) != size;
}

static int find_host(const struct gtopo_map *map, const char *name, uint32_t *host, struct gtopo_error *error)
{
    *host = name ? gtopo_map_find_host(map, name) : 0;
    if (name && *host == GTOPO_NONE)
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "the map has no host \"%.255s\"", name);
    if (!name && gtopo_map_host_count(map) != 1)
        return gtopo_fail(error, GTOPO_EUSAGE, "name one with --host", "the map has %u hosts; a file for NCCL has one",
                          gtopo_map_host_count(map));
    return 0;
}

static int export_map(const struct gtopo_map *map, const char *name, enum gtopo_nccl_profile profile,
                      const char *output, struct gtopo_error *error)
{
    char *data = NULL;
    size_t size = 0;
    FILE *memory;
    uint32_t host;
    int status = find_host(map, name, &host, error);

    if (status)
        return status;
    memory = open_memstream(&data, &size);
    if (!memory)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    status = gtopo_export_nccl(map, host, profile, take, memory, error);
    if (fclose(memory) && !status)
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (!status && strcmp(output, "-"))
        status = cli_write_file(output, data, size, error);
    else if (!status && fwrite(data, 1, size, stdout) != size)
        status = gtopo_fail(error, GTOPO_EIO, NULL, "standard output cannot be written: %s", strerror(errno));
    free(data);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    enum gtopo_nccl_profile profile = GTOPO_NCCL_DUMP;
    const char *output = "-", *name = NULL;
    struct gtopo_map *map = NULL;
    struct gtopo_error error;
    int letter, status;

    while ((letter = cli_next_option(command, argc, argv)) != -1)
        switch (letter) {
        case 'o':
            output = optarg;
            break;
        case INJECT:
            profile = GTOPO_NCCL_INJECT;
            break;
        case HOST:
            name = optarg;
            break;
        default:
            return CLI_USAGE;
        }
    if (optind >= argc || strcmp(argv[optind], "nccl"))
        return cli_usage(command, "name the format: nccl");
    if (optind + 2 < argc)
        return cli_usage(command, "unexpected argument \"%s\"", argv[optind + 2]);
    status = cli_load(argv[optind + 1], &map, &error); /* NULL when there is none */
    if (!status)
        status = export_map(map, name, profile, output, &error);
    gtopo_map_free(map);
    return status ? cli_fail(&error) : CLI_GOOD;
}

const struct cli_command cli_export = {
    "export",
    "nccl [MAP]",
    "Write a host of a map as another tool's file",
    "nccl is a topology file for NCCL (NCCL_TOPO_FILE), or for RCCL where GPUs are joined by XGMI.\n"
    "MAP is a file that `map` or `run` wrote, hwloc's XML, a topology file of NCCL's, or - for standard input; "
    "without\n"
    "it, this host is discovered.",
    options,
    run};
