/* SPDX-License-Identifier: Apache-2.0 */
/* A format of another tool. Adding one is a file that has its gtopo_exporter, and a line in registry.c. */
#ifndef GTOPO_LIB_EXPORT_EXPORTER_H
#define GTOPO_LIB_EXPORT_EXPORTER_H

#include <gputopo/export.h>

/* What is written, and to where. */
struct gtopo_export_job {
    const struct gtopo_map *map; /* sealed */
    uint32_t host;               /* GTOPO_NONE for a format that is of the whole map */
    size_t profile;              /* in the exporter's profiles */
    gtopo_write_function write;
    void *context;
    struct gtopo_error *error;
};

struct gtopo_exporter {
    const char *name, *summary;
    const char *const *profiles; /* the first is the default; NULL at the end, and for a format without */
    int is_of_host;              /* of one host, not of a whole map */
    /* All of it, or nothing where an error is found before. */
    int (*run)(const struct gtopo_export_job *job);
};

extern const struct gtopo_exporter gtopo_export_nccl;

#endif
