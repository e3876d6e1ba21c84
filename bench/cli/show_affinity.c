/* SPDX-License-Identifier: Apache-2.0 */
/* What every memory of a host was measured to do through every port, each with the class of the way between the two. */
#include "cli.h"
#include <stdlib.h>
#include <string.h>

struct affinity {
    FILE *out;
    const struct gtopo_map *map;
    uint32_t host;
    uint32_t *memories, *ports; /* rows and columns */
    size_t memory_count, port_count;
    uint32_t metric;
    struct cli_scale scale; /* one for the whole table */
};

/* GPUs first, as in the matrix of the classes. */
static int list_objects(struct affinity *a, struct gtopo_error *error)
{
    static const enum gtopo_object_kind kinds[] = {GTOPO_GPU, GTOPO_NUMA, GTOPO_PORT};
    uint32_t first, count;

    gtopo_map_host_objects(a->map, a->host, &first, &count, NULL);
    a->memory_count = a->port_count = 0;
    a->memories = calloc(count, sizeof *a->memories);
    a->ports = calloc(count, sizeof *a->ports);
    if (!a->memories || !a->ports)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t id = first; id < first + count; id++) {
            struct gtopo_object object;

            if (gtopo_map_object(a->map, id, &object, NULL) || object.kind != kinds[k])
                continue;
            if (object.kind != GTOPO_PORT)
                a->memories[a->memory_count++] = id;
            else if (gtopo_map_text(a->map, id, GTOPO_ATTRIBUTE_DEVICE)) /* an RDMA device */
                a->ports[a->port_count++] = id;
        }
    return 0;
}

static int find(const struct affinity *a, uint32_t memory, uint32_t port, int at_once, struct gtopo_measurement *m)
{
    uint32_t index;

    return !gtopo_map_loopback(a->map, (struct gtopo_end){memory, port}, a->metric, at_once, &index, NULL) &&
           !gtopo_map_measurement(a->map, index, m, NULL);
}

/* The greatest figure of the table, or 0 for an empty one. Bytes, as of what is inside a host. */
static double greatest(const struct affinity *a)
{
    struct gtopo_measurement m;
    double value = 0;

    for (size_t p = 0; p < a->port_count; p++)
        for (size_t i = 0; i < a->memory_count; i++)
            for (int at_once = 0; at_once < 2; at_once++)
                if (find(a, a->memories[i], a->ports[p], at_once, &m) && m.median > value)
                    value = m.median;
    return value;
}

/* ---- the table ---- */

#define LABEL "%-16s"
#define CELL "  %8s %-4s"

static int put_cell(const struct affinity *a, uint32_t memory, uint32_t port, const struct gtopo_measurement *m,
                    struct gtopo_error *error)
{
    struct gtopo_path path;
    char figure[CLI_TEXT] = "-";
    int status = gtopo_path_find(a->map, memory, port, &path, error);

    if (status)
        return status;
    if (m)
        snprintf(figure, sizeof figure, "%.4g", m->median * a->scale.factor);
    fprintf(a->out, CELL, figure, gtopo_path_class_name(path.path_class));
    gtopo_path_clear(&path);
    return 0;
}

static void put_head(const struct affinity *a)
{
    char title[CLI_TEXT], name[GTOPO_ADDRESS_MAX];

    snprintf(title, sizeof title, "%s, %s", a->metric == GTOPO_LATENCY_ns ? "latency" : "bandwidth", a->scale.unit);
    fprintf(a->out, "\n" LABEL, title);
    for (size_t p = 0; p < a->port_count; p++)
        fprintf(a->out, CELL, cli_upper_name(a->map, a->ports[p], name), "");
    fputc('\n', a->out);
}

static int put_memory(const struct affinity *a, uint32_t memory, struct gtopo_error *error)
{
    char name[GTOPO_ADDRESS_MAX];
    int status = 0;

    fprintf(a->out, LABEL, cli_upper_name(a->map, memory, name));
    for (size_t p = 0; !status && p < a->port_count; p++) {
        struct gtopo_measurement m;
        int is_there = find(a, memory, a->ports[p], 0, &m);

        status = put_cell(a, memory, a->ports[p], is_there ? &m : NULL, error);
    }
    fputc('\n', a->out);
    return status;
}

/* The memory that a port was measured with at once with the others, or GTOPO_NONE. */
static uint32_t memory_at_once(const struct affinity *a, uint32_t port, struct gtopo_measurement *m)
{
    for (size_t i = 0; i < a->memory_count; i++)
        if (find(a, a->memories[i], port, 1, m))
            return a->memories[i];
    return GTOPO_NONE;
}

/* Which memory it was with stands below the figure: the class alone does not say it. */
static void put_partners(const struct affinity *a)
{
    struct gtopo_measurement m;
    char name[GTOPO_ADDRESS_MAX];

    fprintf(a->out, LABEL, "  with");
    for (size_t p = 0; p < a->port_count; p++) {
        uint32_t memory = memory_at_once(a, a->ports[p], &m);

        fprintf(a->out, CELL, memory == GTOPO_NONE ? "-" : cli_upper_name(a->map, memory, name), "");
    }
    fputc('\n', a->out);
}

static int put_at_once(const struct affinity *a, struct gtopo_error *error)
{
    char text[CLI_TEXT];
    double sum = 0;
    int status = 0;

    fprintf(a->out, LABEL, "all at once");
    for (size_t p = 0; !status && p < a->port_count; p++) {
        struct gtopo_measurement m;
        uint32_t memory = memory_at_once(a, a->ports[p], &m);

        if (memory == GTOPO_NONE) {
            fprintf(a->out, CELL, "-", "");
            continue;
        }
        sum += m.median;
        status = put_cell(a, memory, a->ports[p], &m, error);
    }
    if (!(sum > 0)) {
        fputc('\n', a->out);
        return status;
    }
    fprintf(a->out, "  in all %s\n", cli_rate(sum, text));
    put_partners(a);
    return status;
}

static int put_table(struct affinity *a, uint32_t metric, struct gtopo_error *error)
{
    double value;
    int status = 0;

    a->metric = metric;
    value = greatest(a);
    if (!(value > 0) && metric == GTOPO_LATENCY_ns)
        return 0;
    a->scale = cli_scale(metric, 0, value);
    put_head(a);
    for (size_t i = 0; !status && i < a->memory_count; i++)
        status = put_memory(a, a->memories[i], error);
    if (!status && metric == GTOPO_BANDWIDTH_Bps)
        status = put_at_once(a, error);
    return status;
}

static int put_host(struct affinity *a, struct gtopo_error *error)
{
    const char *name = gtopo_map_host_name(a->map, a->host);
    int status = list_objects(a, error);

    if (a->host)
        fputc('\n', a->out);
    if (!status && (!a->port_count || !a->memory_count))
        fprintf(a->out, "%s has no RDMA port in the map\n", name);
    else if (!status) {
        fprintf(a->out, "%s: each memory through each port and back into it\n", name);
        for (uint32_t metric = 0; !status && metric < GTOPO_METRICS; metric++)
            status = put_table(a, metric, error);
    }
    free(a->memories);
    free(a->ports);
    return status;
}

int cli_show_affinity(FILE *out, const struct gtopo_map *map, struct gtopo_error *error)
{
    struct affinity a = {.out = out, .map = map};
    int status = 0;

    for (; !status && a.host < gtopo_map_host_count(map); a.host++)
        status = put_host(&a, error);
    return status;
}
