/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench agent: one end of probes, for a coordinator at the other end of standard input and output. */
#include "cli.h"
#include <getopt.h>
#include <unistd.h>

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct gtopo_error error;
    int letter = cli_next_option(command, argc, argv);

    if (letter != -1 || optind < argc)
        return letter == '?' ? CLI_USAGE : cli_usage(command, "unexpected argument \"%s\"", argv[optind]);
    if (isatty(STDIN_FILENO))
        return cli_usage(command, "an agent is started by a coordinator, not by hand");
    if (gtopo_agent_serve(STDIN_FILENO, STDOUT_FILENO, &error)) {
        /* A coordinator that is gone is no failure of ours, and has nobody to read of it. */
        return error.code == GTOPO_EPEER ? CLI_FAILED : cli_fail(&error);
    }
    return CLI_GOOD;
}

static const struct cli_option options[] = {{0, NULL, NULL, NULL}};
const struct cli_command cli_agent = {
    "agent", "", "Serve a coordinator (started by `run` and `probe`, not by hand)", NULL, options, run};
