/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench export: a map in another tool's format. */
#include "cli.h"
#include <errno.h>
#include <getopt.h>
#include <gputopo/export.h>
#include <stdlib.h>
#include <string.h>

enum { INJECT = 256, HOST, LIST };

static const struct cli_option options[] = {
    {'o', "output", "FILE", "where it goes; - is standard output, the default"},
    {INJECT, "inject", NULL,
     "of nccl: only processors and PCI devices, which NCCL cannot\n"
     "                             see itself where a machine hides its tree"},
    {HOST, "host", "NAME", "which host of a map that has several"},
    {LIST, "list", NULL, "name the formats"},
    {0, NULL, NULL, NULL},
};

static int take(void *context, const void *data, size_t size)
{
    return fwrite(data, 1, size, context) != size;
}

static int export_map(const struct gtopo_map *map, const char *format, const struct gtopo_export_options *export,
                      const char *output, struct gtopo_error *error)
{
    char *data = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&data, &size);
    int status;

    if (!memory)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    status = gtopo_export(map, format, export, take, memory, error);
    if (fclose(memory) && !status)
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (!status && strcmp(output, "-"))
        status = cli_write_file(output, data, size, error);
    else if (!status && fwrite(data, 1, size, stdout) != size)
        status = gtopo_fail(error, GTOPO_EIO, NULL, "standard output cannot be written: %s", strerror(errno));
    free(data);
    return status;
}

static int list_formats(void)
{
    const char *summary, *name;

    for (size_t i = 0; (name = gtopo_export_format(i, &summary)); i++)
        printf("%-8s  %s\n", name, summary);
    return CLI_GOOD;
}

static int is_format(const char *name)
{
    const char *format;

    for (size_t i = 0; (format = gtopo_export_format(i, NULL)); i++)
        if (!strcmp(format, name))
            return 1;
    return 0;
}

static int load_and_export(const char *format, const char *path, const char *host, struct gtopo_export_options *export,
                           const char *output)
{
    struct gtopo_map *map = NULL;
    struct gtopo_error error;
    int status = cli_load(path, &map, &error);

    if (!status && host && (export->host = gtopo_map_find_host(map, host)) == GTOPO_NONE)
        status = gtopo_fail(&error, GTOPO_ENOTFOUND, NULL, "the map has no host \"%.255s\"", host);
    else if (!status)
        status = export_map(map, format, export, output, &error);
    gtopo_map_free(map);
    return status ? cli_fail(&error) : CLI_GOOD;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    const char *output = "-", *host = NULL;
    struct gtopo_export_options export;
    int letter;

    gtopo_export_options_init(&export);
    while ((letter = cli_next_option(command, argc, argv)) != -1)
        switch (letter) {
        case 'o':
            output = cli_output(optarg);
            break;
        case INJECT:
            export.profile = "inject";
            break;
        case HOST:
            host = optarg;
            break;
        case LIST:
            return list_formats();
        default:
            return CLI_USAGE;
        }
    if (optind >= argc)
        return cli_usage(command, "name a format; --list names those that there are");
    if (!is_format(argv[optind]))
        return cli_usage(command, "there is no format \"%s\"; --list names those that there are", argv[optind]);
    if (optind + 2 < argc)
        return cli_usage(command, "unexpected argument \"%s\"", argv[optind + 2]);
    return load_and_export(argv[optind], argv[optind + 1], host, &export, output); /* NULL when there is no map */
}

const struct cli_command cli_export = {
    "export",
    "FORMAT [MAP]",
    "Write a host of a map as another tool's file",
    "FORMAT is nccl: a topology file for NCCL (NCCL_TOPO_FILE), or for RCCL where GPUs are AMD's.\n"
    "MAP is a file that `map` or `run` wrote, hwloc's XML, a topology file of NCCL's, or - for standard input; "
    "without\n"
    "it, this host is discovered.",
    options,
    run};
