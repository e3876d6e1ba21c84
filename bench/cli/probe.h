/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the subcommand `probe` share. */
#ifndef GTOPO_CLI_PROBE_H
#define GTOPO_CLI_PROBE_H

#include "cli.h"
#include <sys/stat.h>

#define PROBE_SIZES_MAX 64
#define PROBE_NAME_MAX 256

enum probe_form { PROBE_TABLE, PROBE_JSON, PROBE_PERFTEST };

/* The command line. */
struct probe_settings {
    struct gtopo_probe_options options; /* what all probes have in common */
    struct gtopo_campaign_options campaign;
    const char *addresses[2];        /* the second is the first where only one was given */
    const char *transport;           /* NULL: by what the ends are */
    const char *ways[2];             /* NULL: the best that works */
    int is_one_way;                  /* --way named one for whatever end has GPU memory */
    uint32_t operation;              /* GTOPO_OPERATIONS: the first that the transport has */
    uint64_t sizes[PROBE_SIZES_MAX]; /* of both metrics; none: of each its own */
    size_t size_count;
    int metrics[GTOPO_METRICS]; /* 1 for those to measure */
    enum probe_form form;
    int counters;                      /* show them in the table */
    int has_time;                      /* --seconds or --precision was given */
    const char *output, *map, *launch; /* the last two may be NULL */
};

/* ---- probe_options.c ---- */

extern const struct cli_option probe_options[];
/* Returns CLI_GOOD, or CLI_USAGE with the user told. */
int probe_parse(const struct cli_command *command, int argc, char **argv, struct probe_settings *settings);

/* ---- probe_place.c ---- */

/* Where the two ends are. */
struct probe_place {
    struct gtopo_map *map;
    struct stat loaded;         /* the file that it comes from; all zero when there was none */
    uint32_t first_measurement; /* of ours, behind those that were loaded */
    struct gtopo_end ends[2];
    char names[2][GTOPO_ADDRESS_MAX]; /* of the ends, as the map writes them */
    char *launch;                     /* what settings->campaign.launch points to, or NULL */
    int is_network;                   /* an end goes through a port */
    int is_gpu[2];                    /* the memory of an end is a GPU's */
};

/*
 * Discover, load or gather the hosts of the two addresses, and find the ends there; sets the campaign's launch where
 * agents on other hosts are needed. Release with probe_place_clear() in any case.
 */
int probe_place_find(struct probe_settings *settings, struct probe_place *place, struct gtopo_error *error);
void probe_place_clear(struct probe_place *place);

/* ---- probe_map.c ---- */

/* The map of a file, or an empty one where there is none. */
int probe_map_load(const char *path, struct probe_place *place, struct gtopo_error *error);
/* Write our measurements to the file of --map, beside those that others have added since. Errors: GTOPO_EIO; those of
 * probe_place_find() when others have changed the file. */
int probe_map_save(const struct probe_settings *settings, struct probe_place *place, struct gtopo_error *error);

/* ---- probe_print.c ---- */

/* A report that grows as results come, in one of the forms. */
struct probe_report;

/* Nothing is written before the first result or failure. NULL when memory is short. */
struct probe_report *probe_report_new(FILE *out, const struct probe_settings *settings,
                                      const struct probe_place *place);
void probe_report_result(struct probe_report *report, const struct gtopo_probe_options *options,
                         const struct gtopo_probe_result *result);
/* Told on standard error at once, and kept for the end of a JSON document. */
void probe_report_failure(struct probe_report *report, const struct gtopo_probe_options *options,
                          const struct gtopo_error *error);
/* Close the document and tell what was found. Returns CLI_FINDING when that is a warning or worse, else CLI_GOOD. */
int probe_report_end(struct probe_report *report);
void probe_report_free(struct probe_report *report);
/* "write bandwidth 64 KiB" */
const char *probe_name(const struct gtopo_probe_options *options, char text[CLI_TEXT]);

#endif
