/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that there are. */
#include "lib/export/exporter.h"
#include "lib/map.h"
#include <stdio.h>
#include <string.h>

static const struct gtopo_exporter *const exporters[] = {
    &gtopo_export_nccl,
};
#define EXPORTERS (sizeof exporters / sizeof *exporters)

void gtopo_export_options_init(struct gtopo_export_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
    options->host = GTOPO_NONE;
}

const char *gtopo_export_format(size_t index, const char **summary)
{
    if (index >= EXPORTERS)
        return NULL;
    if (summary)
        *summary = exporters[index]->summary;
    return exporters[index]->name;
}

/* Append a word to a list of them. */
static void list_word(char list[256], const char *word)
{
    size_t length = strlen(list);

    snprintf(list + length, 256 - length, "%s%s", length ? ", " : "", word);
}

static const struct gtopo_exporter *find_exporter(const char *format, struct gtopo_error *error)
{
    char known[256] = "";

    for (size_t i = 0; i < EXPORTERS; i++) {
        if (!strcmp(exporters[i]->name, format))
            return exporters[i];
        list_word(known, exporters[i]->name);
    }
    gtopo_fail(error, GTOPO_EUSAGE, NULL, "there is no format \"%.64s\" but: %s", format, known);
    return NULL;
}

static int find_profile(const struct gtopo_exporter *exporter, const char *profile, size_t *index,
                        struct gtopo_error *error)
{
    char known[256] = "";

    *index = 0;
    for (size_t i = 0; profile && exporter->profiles && exporter->profiles[i]; i++) {
        if (!strcmp(exporter->profiles[i], profile)) {
            *index = i;
            return 0;
        }
        list_word(known, exporter->profiles[i]);
    }
    return profile ? gtopo_fail(error, GTOPO_EUSAGE, NULL, "the format %s has no profile \"%.64s\"%s%s", exporter->name,
                                profile, *known ? " but: " : "", known)
                   : 0;
}

static int find_host(const struct gtopo_exporter *exporter, const struct gtopo_map *map, uint32_t *host,
                     struct gtopo_error *error)
{
    uint32_t count = gtopo_map_host_count(map);

    if (!exporter->is_of_host)
        return *host == GTOPO_NONE ? 0
                                   : gtopo_fail(error, GTOPO_EUSAGE, NULL,
                                                "the format %s is of a whole map, not of a host", exporter->name);
    if (*host == GTOPO_NONE && count == 1)
        *host = 0;
    if (*host == GTOPO_NONE)
        return gtopo_fail(error, GTOPO_EUSAGE, "name one", "the map has %u hosts; the format %s is of one", count,
                          exporter->name);
    return *host < count ? 0 : gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "there is no host %u in the map", *host);
}

int gtopo_export(const struct gtopo_map *map, const char *format, const struct gtopo_export_options *options,
                 gtopo_write_function write, void *context, struct gtopo_error *error)
{
    struct gtopo_export_job job = {
        .map = map, .host = options->host, .write = write, .context = context, .error = error};
    const struct gtopo_exporter *exporter;
    int status;

    if (options->size != sizeof *options)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_export_options_init()", "the options are not initialised");
    if (!map->sealed)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_map_seal() first", "the map is not sealed");
    exporter = find_exporter(format, error);
    if (!exporter)
        return GTOPO_EUSAGE;
    status = find_profile(exporter, options->profile, &job.profile, error);
    if (!status)
        status = find_host(exporter, map, &job.host, error);
    return status ? status : exporter->run(&job);
}
