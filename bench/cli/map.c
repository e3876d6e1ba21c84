/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench map: discover a host and write its map. */
#include "cli.h"
#include <getopt.h>
#include <string.h>

enum { FSROOT = 256, HWLOC_XML, NCCL_XML, DRIVER, OVERLAY, NAME };

static const struct cli_option options[] = {
    {'o', "output", "FILE", "where the map goes; - is standard output, the default"},
    {FSROOT, "fsroot", "DIR",
     "read another machine from DIR/sys and DIR/proc, as\n"
     "                             hwloc-gather-topology leaves them"},
    {HWLOC_XML, "hwloc-xml", "FILE", "read another machine's tree from hwloc's XML (lstopo)"},
    {NCCL_XML, "nccl-xml", "FILE",
     "read another machine from a topology file of NCCL's or RCCL's\n"
     "                             (NCCL_TOPO_DUMP_FILE)"},
    {DRIVER, "driver", "WHEN",
     "ask the NVIDIA driver: always, never, or auto, the default: for\n"
     "                             this machine, not for a record of another"},
    {OVERLAY, "overlay", "FILE",
     "lay the tree of a topology file of NCCL's, or of a map, over the\n"
     "                             machine, which hides its own"},
    {NAME, "name", "NAME", "the host's name in the map"},
    {0, NULL, NULL, NULL},
};

/* 0, or -1 for what is no such word. */
static int parse_driver(const char *word, uint32_t *driver)
{
    static const char *const words[] = {
        [GTOPO_DRIVER_AUTO] = "auto", [GTOPO_DRIVER_ALWAYS] = "always", [GTOPO_DRIVER_NEVER] = "never"};

    for (*driver = 0; *driver < sizeof words / sizeof *words; ++*driver)
        if (!strcmp(words[*driver], word))
            return 0;
    return -1;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct gtopo_host_options host;
    const char *output = "-";
    struct gtopo_map *map = NULL;
    struct gtopo_error error;
    int letter, status;

    gtopo_host_options_init(&host);
    while ((letter = cli_next_option(command, argc, argv)) != -1)
        switch (letter) {
        case 'o':
            output = cli_output(optarg);
            break;
        case FSROOT:
            host.fsroot = optarg;
            break;
        case HWLOC_XML:
            host.hwloc_xml = optarg;
            break;
        case NCCL_XML:
            host.nccl_xml = optarg;
            break;
        case DRIVER:
            if (parse_driver(optarg, &host.driver))
                return cli_usage(command, "--driver takes auto, always or never, not \"%s\"", optarg);
            break;
        case OVERLAY:
            host.overlay = optarg;
            break;
        case NAME:
            host.name = optarg;
            break;
        default:
            return CLI_USAGE;
        }
    if (optind < argc)
        return cli_usage(command, "unexpected argument \"%s\"", argv[optind]);
    if (cli_discover(&host, &map, &error))
        return cli_fail(&error);
    status = cli_save(map, output, &error) ? cli_fail(&error) : cli_exit_of_findings(map);
    if (status == CLI_FINDING)
        cli_show_findings(stderr, map);
    gtopo_map_free(map);
    return status;
}

const struct cli_command cli_map = {
    "map",
    "",
    "Discover this host and write its map",
    "Exits with 1 when something was found that is likely to cost performance; the map is written all the same.",
    options,
    run};
