/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of gtopo-bench share. One file a subcommand; the table is in main.c. */
#ifndef GTOPO_CLI_H
#define GTOPO_CLI_H

#include <gputopo.h>
#include <stdio.h>

/* Documented in gtopo-bench(1). */
enum cli_exit {
    CLI_GOOD = 0,
    CLI_FINDING = 1,
    CLI_USAGE = 2,
    CLI_MISSING = 3,
    CLI_FAILED = 4,
    CLI_INTERNAL = 5,
};

/* An option of a subcommand; the last has name NULL. letter is unique in a table, and a short option if printable. */
struct cli_option {
    int letter;
    const char *name;
    const char *argument; /* its name in the help, "[=NAME]" for one that may be left out, NULL when there is none */
    const char *help;
};

struct cli_command {
    const char *name;
    const char *arguments; /* "[MAP]" */
    const char *summary;   /* one line */
    const char *help;      /* paragraphs after the options, or NULL */
    const struct cli_option *options;
    int (*run)(const struct cli_command *command, int argc, char **argv);
};

extern const struct cli_command cli_map, cli_show, cli_export, cli_run, cli_probe, cli_agent, cli_version;

/* ---- main.c ---- */

/*
 * The next option of a command line, as getopt_long() gives it; its argument is in optarg, the first operand in
 * optind at the end. --help prints the command's help and exits.
 * Returns the letter, -1 at the end, '?' after a mistake that was told to the user.
 */
int cli_next_option(const struct cli_command *command, int argc, char **argv);
/* Tell the user about a mistake in the command line; returns CLI_USAGE. */
int cli_usage(const struct cli_command *command, const char *format, ...) GTOPO_PRINTF(2, 3);
/* Tell the user about a failure; returns the exit code for it. */
int cli_fail(const struct gtopo_error *error);
int cli_exit_of_status(int status);
/* A finding that is a warning or worse makes a run exit with CLI_FINDING. */
int cli_exit_of_findings(const struct gtopo_map *map);

/* ---- input.c ---- */

/* Load a map from a file or, for "-", from standard input; other tools' XML is told from it. NULL discovers this host.
 */
int cli_load(const char *path, struct gtopo_map **map, struct gtopo_error *error);
/* Discover a host into a new, sealed map. */
int cli_discover(const struct gtopo_host_options *options, struct gtopo_map **map, struct gtopo_error *error);
/* A number in a range, with a unit letter k, K, M or G (powers of 1024) where `bytes`; 0 when it is none. */
int cli_parse_number(const char *text, double lowest, double highest, int bytes, double *number);

/* ---- output.c ---- */

/* Write a map to a file, or to standard output for "-". */
int cli_save(const struct gtopo_map *map, const char *path, struct gtopo_error *error);
/* The path as given, or "-" where it names standard output (/dev/stdout). */
const char *cli_output(const char *path);
/* What cannot be written would cost the whole run: find out before. `option` gave it: "--map". */
int cli_check_output(const char *option, const char *path, struct gtopo_error *error);
/* Do two paths lead to one file, there or not yet? */
int cli_is_same_file(const char *a, const char *b);
/* Nothing was measured: does that leave a file in place that has something in it? Then the user is told. */
int cli_keep_former(const char *path);
/* Write a file whole or leave it as it was; see gtopo_file_write(). Errors: GTOPO_EIO. */
int cli_write_file(const char *path, const char *data, size_t size, struct gtopo_error *error);
/* Tell of a write to standard output that failed for this errno. Returns CLI_USAGE. */
int cli_lose(FILE *out, int cause);
/* Flush standard output; a full disk or a closed pipe is a failure. */
int cli_flush(int status);

/* ---- terminal.c ---- */

/*
 * From here on Ctrl-C, SIGTERM and SIGHUP (unless it is ignored) trip the cancel instead of ending the program; the
 * second one ends it at once.
 * Errors: GTOPO_ENOMEM.
 */
int cli_catch_signals(struct gtopo_cancel **cancel, struct gtopo_error *error);
void cli_release_signals(void); /* and the cancel */

/* A line on standard error that says what is going on, when that is a terminal. */
struct cli_progress {
    int is_terminal;
    size_t width; /* of the line that is on the screen */
};
void cli_progress_init(struct cli_progress *progress);
void cli_progress_show(struct cli_progress *progress, const char *format, ...) GTOPO_PRINTF(2, 3);
void cli_progress_wipe(struct cli_progress *progress);

/* ---- units.c ---- */

#define CLI_TEXT 96
/* "12.3 GB/s" */
const char *cli_rate(double Bps, char text[CLI_TEXT]);
/* "98.4 Gb/s" */
const char *cli_network_rate(double Bps, char text[CLI_TEXT]);
/* "64 KiB", "8 B" */
const char *cli_bytes(uint64_t bytes, char text[CLI_TEXT]);
/* "185 k/s" */
const char *cli_count_rate(double per_s, char text[CLI_TEXT]);
/* How a quantity of a metric is read: in microseconds; across a NIC in bits, inside the host in bytes. */
struct cli_scale {
    double factor;
    const char *unit;
};
struct cli_scale cli_scale(uint32_t metric, int is_network, double quantity);
/* Decimal, for capacities: "25.2 GB" */
const char *cli_capacity(uint64_t bytes, char text[CLI_TEXT]);
/* A quantity of a measurement's metric, in the unit of its median. */
const char *cli_quantity(const struct gtopo_map *map, const struct gtopo_measurement *m, double quantity,
                         char text[CLI_TEXT]);
/* A measurement in short: "measured 0.679 Gb/s". */
const char *cli_measured_value(const struct gtopo_map *map, uint32_t index, char text[CLI_TEXT]);
/* A measurement in one line: "0.679 Gb/s [0.671 .. 0.684] n=31, verbs write 64 KiB". */
#define CLI_LINE 512
const char *cli_measurement(const struct gtopo_map *map, uint32_t index, char text[CLI_LINE]);

/* ---- show_*.c ---- */

void cli_show_tree(FILE *out, const struct gtopo_map *map);
void cli_show_measurements(FILE *out, const struct gtopo_map *map);
void cli_show_findings(FILE *out, const struct gtopo_map *map);
/* An object's name within its host as a table has it: "GPU0". Returns text. */
const char *cli_upper_name(const struct gtopo_map *map, uint32_t id, char text[GTOPO_ADDRESS_MAX]);
int cli_show_affinity(FILE *out, const struct gtopo_map *map, struct gtopo_error *error);
int cli_show_rails(FILE *out, const struct gtopo_map *map, struct gtopo_error *error);
/* `only` is the address of a GPU, or NULL for all. */
int cli_show_nearest(FILE *out, const struct gtopo_map *map, const char *only, struct gtopo_error *error);
/* nvidia-smi's classes, of what it shows and with storage; NCCL's. */
enum cli_matrix { CLI_MATRIX_NVIDIA, CLI_MATRIX_STORAGE, CLI_MATRIX_NCCL };
int cli_show_matrix(FILE *out, const struct gtopo_map *map, enum cli_matrix kind, struct gtopo_error *error);
int cli_show_path(FILE *out, const struct gtopo_map *map, const char *from, const char *to, struct gtopo_error *error);

#endif
