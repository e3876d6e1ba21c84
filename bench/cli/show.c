/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench show: a map for people. */
#include "cli.h"
#include <getopt.h>
#include <string.h>

enum { MATRIX = 256, AFFINITY, RAILS, PATH };

static const struct cli_option options[] = {
    {MATRIX, "matrix", "[=nccl]",
     "how near every device is to every other, as nvidia-smi topo\n"
     "                             has it, or in NCCL's classes"},
    {AFFINITY, "affinity", NULL,
     "what every memory was measured to do through every port\n"
     "                             (`run --loopback`)"},
    {RAILS, "rails", NULL, "which NIC each GPU is to use"},
    {PATH, "path", "FROM TO", "the best path between two objects, hop by hop"},
    {0, NULL, NULL, NULL},
};

static int show(const struct gtopo_map *map, int table, int of_nccl, const char *from, const char *to,
                struct gtopo_error *error)
{
    if (from)
        return cli_show_path(stdout, map, from, to, error);
    if (table == MATRIX)
        return cli_show_matrix(stdout, map, of_nccl, error);
    if (table == AFFINITY)
        return cli_show_affinity(stdout, map, error);
    if (table == RAILS)
        return cli_show_rails(stdout, map, error);
    cli_show_tree(stdout, map);
    cli_show_measurements(stdout, map);
    cli_show_findings(stdout, map);
    return 0;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    const char *from = NULL, *to = NULL;
    struct gtopo_map *map = NULL;
    struct gtopo_error error;
    int letter, table = 0, of_nccl = 0, status;

    while ((letter = cli_next_option(command, argc, argv)) != -1)
        switch (letter) {
        case MATRIX:
        case AFFINITY:
        case RAILS:
            if (table && table != letter)
                return cli_usage(command, "--matrix, --affinity and --rails exclude each other");
            if (letter == MATRIX && optarg && strcmp(optarg, "nccl"))
                return cli_usage(command, "--matrix=%s: there is the matrix of nvidia-smi and --matrix=nccl", optarg);
            of_nccl = letter == MATRIX && optarg;
            table = letter;
            break;
        case PATH:
            from = optarg;
            if (optind >= argc)
                return cli_usage(command, "--path needs two addresses");
            to = argv[optind++];
            break;
        default:
            return CLI_USAGE;
        }
    if (optind + 1 < argc)
        return cli_usage(command, "unexpected argument \"%s\"", argv[optind + 1]);
    if (table && from)
        return cli_usage(command, "--%s and --path exclude each other",
                         table == MATRIX     ? "matrix"
                         : table == AFFINITY ? "affinity"
                                             : "rails");
    status = cli_load(argv[optind], &map, &error); /* NULL when there is none */
    if (!status)
        status = show(map, table, of_nccl, from, to, &error);
    gtopo_map_free(map);
    return status ? cli_fail(&error) : CLI_GOOD;
}

const struct cli_command cli_show = {
    "show",
    "[MAP]",
    "Show a map: its tree, what was measured, what was found",
    "MAP is a file that `map` or `run` wrote, or - for standard input; hwloc's XML and topology files of NCCL's are "
    "taken\n"
    "too. Without it, this host is discovered.\n"
    "Addresses look like node3, node3/gpu2, node3/nic1, node3/nic1:1; with one host in the map, `gpu2` will do.",
    options,
    run};
