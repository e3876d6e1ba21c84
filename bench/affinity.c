/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/affinity.h"
#include <stdio.h>

/* Below this share, and with intervals that do not meet, a figure is clearly less than another. */
#define CLEARLY_LESS 0.8

struct judge {
    struct gtopo_map *map;
    uint32_t first_measurement;
    uint32_t first, count; /* objects of the host at hand */
    struct gtopo_error *error;
};

/* What was measured from a memory through a port. */
struct witness {
    uint32_t memory;
    uint32_t path_class;
    struct gtopo_measurement m;
};

static int is_clearly_less(const struct gtopo_measurement *a, const struct gtopo_measurement *b)
{
    return a->high < b->low && a->median < CLEARLY_LESS * b->median;
}

static int find(const struct judge *j, uint32_t memory, uint32_t port, int at_once, struct gtopo_measurement *m)
{
    uint32_t index;

    return !gtopo_map_loopback(j->map, (struct gtopo_end){memory, port}, GTOPO_BANDWIDTH_Bps, at_once, &index, NULL) &&
           index >= j->first_measurement && !gtopo_map_measurement(j->map, index, m, NULL);
}

/* What software RDMA does is up to the processors: worth knowing, and no fault of the machine. */
static int is_software(const struct judge *j, uint32_t port)
{
    uint64_t is_virtual;

    return gtopo_map_number(j->map, port, GTOPO_ATTRIBUTE_VIRTUAL, &is_virtual) && is_virtual;
}

static int add(const struct judge *j, const char *rule, uint32_t port, const char *text, const char *next_step)
{
    struct gtopo_finding finding = {rule, is_software(j, port) ? GTOPO_NOTE : GTOPO_WARNING, port, text, next_step};

    if (is_software(j, port))
        finding.next_step = "the port is software: it is the processors that make the difference";
    return gtopo_map_add_finding(j->map, &finding, j->error);
}

/* ---- the nearest is not the fastest ---- */

static int report_mismatch(const struct judge *j, uint32_t port, const struct witness *near, const struct witness *far)
{
    char text[3 * GTOPO_ADDRESS_MAX], names[2][GTOPO_ADDRESS_MAX];

    snprintf(text, sizeof text,
             "%s is near (%s) and does %.3g GB/s through this port, %s is farther (%s) and does %.3g GB/s",
             gtopo_address_format(j->map, near->memory, names[0]), gtopo_path_class_name(near->path_class),
             near->m.median / 1e9, gtopo_address_format(j->map, far->memory, names[1]),
             gtopo_path_class_name(far->path_class), far->m.median / 1e9);
    return add(
        j, "affinity-mismatch", port, text,
        "look at ACS and IOMMU on the way between the two, at how GPU memory was reached, and whether the slot is "
        "wired to the processor that the firmware says");
}

/* The slowest of those that are nearest, and the fastest of the rest. Both have memory GTOPO_NONE when there is none.
 */
static int find_extremes(const struct judge *j, uint32_t port, struct witness *near, struct witness *far)
{
    *near = *far = (struct witness){.memory = GTOPO_NONE};
    for (int pass = 0; pass < 2; pass++) /* how near the nearest is, has to be known first */
        for (uint32_t id = j->first; id < j->first + j->count; id++) {
            struct witness w = {.memory = id};
            struct gtopo_path path;
            int status;

            if (!find(j, id, port, 0, &w.m))
                continue;
            if ((status = gtopo_path_find(j->map, id, port, &path, j->error)))
                return status;
            w.path_class = path.path_class;
            gtopo_path_clear(&path);
            if (!pass && (near->memory == GTOPO_NONE || w.path_class < near->path_class ||
                          (w.path_class == near->path_class && w.m.median < near->m.median)))
                *near = w;
            if (pass && w.path_class > near->path_class && w.path_class < GTOPO_PATH_UNKNOWN &&
                (far->memory == GTOPO_NONE || w.m.median > far->m.median))
                *far = w;
        }
    return 0;
}

static int judge_nearest(const struct judge *j, uint32_t port)
{
    struct witness near, far;
    int status = find_extremes(j, port, &near, &far);

    if (status || far.memory == GTOPO_NONE || !is_clearly_less(&near.m, &far.m))
        return status;
    return report_mismatch(j, port, &near, &far);
}

/* ---- ports slow each other down ---- */

static int judge_sharing(const struct judge *j, uint32_t port)
{
    char text[2 * GTOPO_ADDRESS_MAX], name[GTOPO_ADDRESS_MAX];
    struct gtopo_measurement alone, at_once;
    int status = 0;

    for (uint32_t id = j->first; !status && id < j->first + j->count; id++) {
        if (!find(j, id, port, 0, &alone) || !find(j, id, port, 1, &at_once) || !is_clearly_less(&at_once, &alone))
            continue;
        snprintf(text, sizeof text,
                 "%s gets %.3g GB/s when %u ports run at once, %.0f %% of the %.3g GB/s that it gets alone",
                 gtopo_end_format(j->map, at_once.from, name), at_once.median / 1e9, at_once.concurrent,
                 100 * at_once.median / alone.median, alone.median / 1e9);
        status =
            add(j, "rails-share", port, text,
                "look in the tree for what the ports have in common: a PCIe switch or its upstream link, a socket's "
                "memory, the link between sockets");
    }
    return status;
}

int gtopo_affinity_judge(struct gtopo_map *map, uint32_t first_measurement, struct gtopo_error *error)
{
    struct judge j = {.map = map, .first_measurement = first_measurement, .error = error};
    int status = 0;

    for (uint32_t host = 0; !status && host < gtopo_map_host_count(map); host++) {
        gtopo_map_host_objects(map, host, &j.first, &j.count, NULL);
        for (uint32_t id = j.first; !status && id < j.first + j.count; id++) {
            struct gtopo_object object;

            gtopo_map_object(map, id, &object, NULL);
            if (object.kind != GTOPO_PORT)
                continue;
            status = judge_nearest(&j, id);
            if (!status)
                status = judge_sharing(&j, id);
        }
    }
    return status;
}
