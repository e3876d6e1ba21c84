/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_command *const commands[] = {&cli_map,   &cli_show,    &cli_export, &cli_run,
                                                     &cli_probe, &cli_version, &cli_agent};
#define COMMANDS (sizeof commands / sizeof *commands)

#define OPTIONS_MAX 48

static void print_help(void)
{
    puts("Usage: gtopo-bench COMMAND [OPTION]... [ARGUMENT]...\n"
         "Discover the topology of this host, measure its links, and show both.\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
    puts("  help     show this, or the help of a command\n"
         "\n"
         "`gtopo-bench COMMAND --help` tells more, gtopo-bench(1) all.\n"
         "Exit status: 0 good, 1 something was found that is likely to cost performance, 2 usage or bad\n"
         "input, 3 hardware or software is missing, 4 a peer or a measurement failed, 5 internal error.");
}

static void print_command_help(const struct cli_command *command)
{
    printf("Usage: gtopo-bench %s [OPTION]...%s%s\n%s.\n\n", command->name, *command->arguments ? " " : "",
           command->arguments, command->summary);
    for (const struct cli_option *option = command->options; option->name; option++) {
        char name[64];

        snprintf(name, sizeof name, "--%s%s%s", option->name, option->argument && *option->argument != '[' ? " " : "",
                 option->argument ? option->argument : "");
        if (option->letter < 128)
            printf("  -%c, ", option->letter);
        else
            printf("      ");
        /* one that is too long for its column has a line of its own */
        printf("%-22s%s %s\n", name, strlen(name) > 22 ? "\n                            " : "", option->help);
    }
    printf("  -h, %-22s %s\n", "--help", "show this");
    if (command->help)
        printf("\n%s\n", command->help);
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

int cli_next_option(const struct cli_command *command, int argc, char **argv)
{
    struct option table[OPTIONS_MAX] = {0};
    char letters[2 * OPTIONS_MAX + 2] = "h";
    int count = 0, letter;

    for (const struct cli_option *option = command->options; option->name; option++, count++) {
        size_t length = strlen(letters);
        int argument = !option->argument          ? no_argument
                       : *option->argument == '[' ? optional_argument
                                                  : required_argument;

        table[count] = (struct option){option->name, argument, NULL, option->letter};
        if (option->letter < 128)
            snprintf(letters + length, sizeof letters - length, "%c%s", option->letter, option->argument ? ":" : "");
    }
    table[count] = (struct option){"help", no_argument, NULL, 'h'};
    letter = getopt_long(argc, argv, letters, table, NULL);
    if (letter == 'h') {
        print_command_help(command);
        exit(cli_flush(CLI_GOOD));
    }
    if (letter == '?')
        fprintf(stderr, "Try `gtopo-bench %s --help`.\n", command->name);
    return letter;
}

int cli_usage(const struct cli_command *command, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "gtopo-bench %s: ", command->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry `gtopo-bench %s --help`.\n", command->name);
    return CLI_USAGE;
}

int cli_exit_of_status(int status)
{
    switch (status) {
    case GTOPO_OK:
        return CLI_GOOD;
    case GTOPO_EUSAGE:
    case GTOPO_ENOTFOUND:
    case GTOPO_EFORMAT:
    case GTOPO_EVERSION:
    case GTOPO_EIO:
        return CLI_USAGE;
    case GTOPO_EMISSING:
    case GTOPO_ELINKDOWN:
        return CLI_MISSING;
    case GTOPO_ENOMEM:
    case GTOPO_EINTERNAL:
        return CLI_INTERNAL;
    default:
        return CLI_FAILED;
    }
}

int cli_fail(const struct gtopo_error *error)
{
    fprintf(stderr, "gtopo-bench: %s%s%s\n", error->message, *error->hint ? "\n  " : "", error->hint);
    return cli_exit_of_status(error->code);
}

int cli_exit_of_findings(const struct gtopo_map *map)
{
    struct gtopo_finding finding;

    for (uint32_t i = 0; !gtopo_map_finding(map, i, &finding, NULL); i++)
        if (finding.severity >= GTOPO_WARNING)
            return CLI_FINDING;
    return CLI_GOOD;
}

static int run_version(const struct cli_command *command, int argc, char **argv)
{
    int letter = cli_next_option(command, argc, argv);

    if (letter != -1 || optind < argc)
        return letter == '?' ? CLI_USAGE : cli_usage(command, "unexpected argument \"%s\"", argv[optind]);
    printf("gtopo-bench %s\n", gtopo_version());
    return CLI_GOOD;
}

static const struct cli_option no_options[] = {{0, NULL, NULL, NULL}};
const struct cli_command cli_version = {"version", "", "Print the version", NULL, no_options, run_version};

static int run_help(int argc, char **argv)
{
    const struct cli_command *command = argc > 1 ? find_command(argv[1]) : NULL;
    int of_itself = argc > 1 && (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));

    if (argc > 1 && !command && !of_itself) {
        fprintf(stderr, "gtopo-bench: there is no command \"%s\"\nTry `gtopo-bench help`.\n", argv[1]);
        return CLI_USAGE;
    }
    if (command)
        print_command_help(command);
    else
        print_help();
    return CLI_GOOD;
}

/*
 * What is opened next takes the lowest number that is free: where the caller closed one of the first three, what is
 * written to it would end in a file or a socket of ours. Standard output is opened for reading, so that it fails.
 */
static void hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(CLI_INTERNAL);
}

int main(int argc, char **argv)
{
    const struct cli_command *command;
    char name[32];

    hold_standard_descriptors();
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);            /* a closed pipe is a failed write, */
    signal(SIGXFSZ, SIG_IGN);            /* as is a file that may not grow */
    setenv("HWLOC_HIDE_ERRORS", "2", 0); /* what hwloc stumbles over does not belong on our screen */
    if (argc < 2) {
        print_help();
        return cli_flush(CLI_USAGE);
    }
    if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return cli_flush(run_help(argc - 1, argv + 1));
    command = find_command(!strcmp(argv[1], "--version") ? "version" : argv[1]);
    if (!command) {
        fprintf(stderr, "gtopo-bench: there is no command \"%s\"\nTry `gtopo-bench help`.\n", argv[1]);
        return CLI_USAGE;
    }
    snprintf(name, sizeof name, "gtopo-bench %s", command->name); /* in what getopt says */
    argv[1] = name;
    return cli_flush(command->run(command, argc - 1, argv + 1));
}
