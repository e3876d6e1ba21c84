/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench show: a map for people. */
#include "cli.h"
#include <getopt.h>
#include <string.h>
#include <unistd.h>

enum { MATRIX = 256, AFFINITY, NEAREST, RAILS, PATH };

static const struct cli_option options[] = {
    {MATRIX, "matrix", "[=KIND]",
     "how near every two devices are, as nvidia-smi topo -m has\n"
     "                             it; storage: with storage too; nccl: in NCCL's classes"},
    {AFFINITY, "affinity", NULL,
     "what every memory was measured to do through every port\n"
     "                             (`run --loopback`)"},
    {NEAREST, "nearest", "[=GPU]",
     "the NICs of each GPU, nearest first, with bandwidth, reason,\n"
     "                             and the processors to drive them"},
    {RAILS, "rails", NULL, "which NIC each GPU is to use"},
    {PATH, "path", "FROM TO", "the best path between two objects, hop by hop"},
    {0, NULL, NULL, NULL},
};

/* What of a map is to be shown. */
struct request {
    int part;           /* the letter of its option, 0 for the whole */
    const char *detail; /* that option's argument, or NULL */
    const char *to;     /* where a path ends */
    enum cli_matrix matrix;
};

static int show(const struct gtopo_map *map, const struct request *request, struct gtopo_error *error)
{
    switch (request->part) {
    case MATRIX:
        return cli_show_matrix(stdout, map, request->matrix, error);
    case AFFINITY:
        return cli_show_affinity(stdout, map, error);
    case NEAREST:
        return cli_show_nearest(stdout, map, request->detail, error);
    case RAILS:
        return cli_show_rails(stdout, map, error);
    case PATH:
        return cli_show_path(stdout, map, request->detail, request->to, error);
    default:
        cli_show_tree(stdout, map);
        cli_show_measurements(stdout, map);
        cli_show_findings(stdout, map);
        return 0;
    }
}

static const char *name_of(int letter)
{
    const struct cli_option *option = options;

    while (option->letter != letter)
        option++;
    return option->name;
}

/* The kinds of matrix by their words; 0 for one that is none. */
static int choose_matrix(struct request *request)
{
    static const char *const words[] = {[CLI_MATRIX_STORAGE] = "storage", [CLI_MATRIX_NCCL] = "nccl"};

    request->matrix = CLI_MATRIX_NVIDIA;
    for (enum cli_matrix kind = CLI_MATRIX_STORAGE; request->detail && kind <= CLI_MATRIX_NCCL; kind++)
        if (!strcmp(request->detail, words[kind]))
            request->matrix = kind;
    return !request->detail || request->matrix != CLI_MATRIX_NVIDIA;
}

/* Take a part to show; 0, or what is wrong with it as an exit status. */
static int take(const struct cli_command *command, struct request *request, int letter, int argc, char **argv)
{
    if (request->part && request->part != letter)
        return cli_usage(command, "--%s and --%s exclude each other", name_of(request->part), name_of(letter));
    request->part = letter;
    request->detail = optarg;
    if (letter == MATRIX && !choose_matrix(request))
        return cli_usage(command, "--matrix=%s: there is --matrix, --matrix=storage and --matrix=nccl", optarg);
    if (letter != PATH)
        return 0;
    if (optind >= argc)
        return cli_usage(command, "--path needs two addresses");
    request->to = argv[optind++];
    return 0;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct request request = {0};
    struct gtopo_map *map = NULL;
    struct gtopo_error error;
    int letter, status;

    while ((letter = cli_next_option(command, argc, argv)) != -1) {
        status = letter == '?' ? CLI_USAGE : take(command, &request, letter, argc, argv);
        if (status)
            return status;
    }
    if (optind + 1 < argc)
        return cli_usage(command, "unexpected argument \"%s\"", argv[optind + 1]);
    if (request.to && optind == argc && !access(request.to, F_OK))
        return cli_usage(command, "--path needs two addresses, FROM and TO: \"%s\" is a file", request.to);
    status = cli_load(argv[optind], &map, &error); /* NULL when there is none */
    if (!status)
        status = show(map, &request, &error);
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
