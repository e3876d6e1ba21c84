/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL calls the way between two devices (2.30, graph/paths.cc and graph/topo.cc): our own best paths, in its
 * words, and the three ways that only it knows, through another GPU (NVB, PXN) and over C2C (P2C). NCCL_P2P_LEVEL and
 * the other settings of a job are not taken into account, and neither is which NIC has GPUDirect.
 */
#include "lib/map.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two devices of the table. */
struct way {
    uint8_t class; /* enum gtopo_nccl_class */
    uint64_t bottleneck_Bps;
};

struct table {
    const struct gtopo_map *map;
    const uint32_t *objects;
    uint32_t *kinds;
    struct way *ways; /* [from * count + to] */
    size_t count;
};

/* ---- switches ---- */

static int ids_of(const struct gtopo_map *map, uint32_t id, unsigned ids[4])
{
    const char *device = gtopo_map_text(map, id, GTOPO_ATTRIBUTE_PCI_ID);
    const char *subsystem = gtopo_map_text(map, id, GTOPO_ATTRIBUTE_PCI_SUBSYSTEM);

    return device && subsystem && sscanf(device, "%4x:%4x", &ids[0], &ids[1]) == 2 &&
           sscanf(subsystem, "%4x:%4x", &ids[2], &ids[3]) == 2;
}

/* The generation of a Broadcom switch that is one chip with the switches above or below it; 0 for any other. */
static int broadcom_generation(const struct gtopo_map *map, uint32_t id, unsigned level)
{
    unsigned ids[4];

    if (!ids_of(map, id, ids) || ids[0] != 0x1000 || ids[2] != 0x1000)
        return 0;
    if (ids[1] == 0xc010 && (ids[3] & 0xf000) == 0xa000)
        return 4;
    return ids[1] == 0xc030 && ids[3] >> 12 == level ? 5 : 0;
}

/* The switch that stands for this one: one chip may show as two levels of switches. */
static uint32_t chip_of(const struct gtopo_map *map, uint32_t id)
{
    struct gtopo_object object = {0};
    int generation;

    gtopo_map_object(map, id, &object, NULL);
    generation = object.parent == GTOPO_NONE ? 0 : broadcom_generation(map, object.parent, 0);
    return generation && generation == broadcom_generation(map, id, 1) ? object.parent : id;
}

/* Does the path cross more than one switch, as NCCL counts them? */
static int crosses_switches(const struct gtopo_map *map, const struct gtopo_path *path)
{
    uint32_t first = GTOPO_NONE;

    for (uint32_t i = 0; i <= path->hops; i++) {
        struct gtopo_object object = {0};
        uint32_t chip;

        gtopo_map_object(map, path->objects[i], &object, NULL);
        if (object.kind != GTOPO_PCI_SWITCH)
            continue;
        chip = chip_of(map, path->objects[i]);
        if (first != GTOPO_NONE && chip != first)
            return 1;
        first = chip;
    }
    return 0;
}

/* ---- one way ---- */

static enum gtopo_nccl_class class_of(const struct gtopo_map *map, const struct gtopo_path *path)
{
    static const uint8_t classes[GTOPO_PATH_CLASSES] = {
        [GTOPO_PATH_SELF] = GTOPO_NCCL_LOC,        [GTOPO_PATH_NVLINK] = GTOPO_NCCL_NVL,
        [GTOPO_PATH_C2C] = GTOPO_NCCL_C2C,         [GTOPO_PATH_PIX] = GTOPO_NCCL_PIX,
        [GTOPO_PATH_PXB] = GTOPO_NCCL_PXB,         [GTOPO_PATH_PHB] = GTOPO_NCCL_PHB,
        [GTOPO_PATH_NODE] = GTOPO_NCCL_PHB,        [GTOPO_PATH_SYS] = GTOPO_NCCL_SYS,
        [GTOPO_PATH_NET] = GTOPO_NCCL_NET,         [GTOPO_PATH_NONE] = GTOPO_NCCL_DIS,
        [GTOPO_PATH_UNKNOWN] = GTOPO_NCCL_UNKNOWN,
    };
    enum gtopo_nccl_class class = classes[path->path_class];

    return class == GTOPO_NCCL_PXB && !crosses_switches(map, path) ? GTOPO_NCCL_PIX : class;
}

static int find_ways(struct table *t, struct gtopo_error *error)
{
    for (size_t i = 0; i < t->count; i++)
        for (size_t j = i; j < t->count; j++) { /* the way back is the same */
            struct gtopo_path path;
            int status = gtopo_path_find(t->map, t->objects[i], t->objects[j], &path, error);

            if (status)
                return status;
            t->ways[i * t->count + j] = t->ways[j * t->count + i] =
                (struct way){class_of(t->map, &path), path.bottleneck_Bps};
            gtopo_path_clear(&path);
        }
    return 0;
}

/* ---- ways through another GPU ---- */

static int has_c2c(const struct gtopo_map *map, uint32_t gpu)
{
    struct gtopo_link link;

    for (size_t i = 0; gtopo_map_link_of(map, gpu, i, &link) != GTOPO_NONE; i++)
        if (link.kind == GTOPO_LINK_C2C)
            return 1;
    return 0;
}

/* GPU and NIC of one NUMA node, and the GPU reaches it by C2C. */
static void find_c2c(struct table *t, size_t gpu, size_t nic)
{
    struct way *there = &t->ways[gpu * t->count + nic], *back = &t->ways[nic * t->count + gpu];

    if (there->class == GTOPO_NCCL_PHB && has_c2c(t->map, t->objects[gpu]))
        there->class = back->class = GTOPO_NCCL_P2C;
}

/* Is this a better way from a GPU to another, or to a NIC, by way of a third GPU? */
static int is_better_by(const struct table *t, size_t from, size_t to, size_t by)
{
    const struct way *own = &t->ways[from * t->count + to], *first = &t->ways[from * t->count + by],
                     *second = &t->ways[by * t->count + to];

    if (by == from || by == to || t->kinds[by] != GTOPO_GPU || first->class != GTOPO_NCCL_NVL)
        return 0;
    if (t->kinds[to] == GTOPO_GPU)
        return second->class == GTOPO_NCCL_NVL && own->class > GTOPO_NCCL_NVB;
    return second->class <= GTOPO_NCCL_P2C &&
           (own->class > GTOPO_NCCL_PXN || second->bottleneck_Bps > own->bottleneck_Bps);
}

static void find_detours(const struct table *t, uint8_t *classes)
{
    for (size_t from = 0; from < t->count; from++)
        for (size_t to = 0; to < t->count; to++) {
            uint8_t *class = &classes[from * t->count + to];

            *class = t->ways[from * t->count + to].class;
            if (from == to || t->kinds[from] != GTOPO_GPU || (t->kinds[to] != GTOPO_GPU && t->kinds[to] != GTOPO_NIC))
                continue;
            for (size_t by = 0; by < t->count; by++)
                if (is_better_by(t, from, to, by)) {
                    *class = t->kinds[to] == GTOPO_GPU ? GTOPO_NCCL_NVB : GTOPO_NCCL_PXN;
                    break;
                }
        }
}

int gtopo_nccl_classes(const struct gtopo_map *map, const uint32_t *objects, size_t count, uint8_t *classes,
                       struct gtopo_error *error)
{
    struct table t = {.map = map, .objects = objects, .count = count};
    int status = 0;

    t.kinds = calloc(count + 1, sizeof *t.kinds);
    t.ways = count && count > SIZE_MAX / sizeof *t.ways / count ? NULL : calloc(count * count + 1, sizeof *t.ways);
    if (!t.kinds || !t.ways)
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < count && !status; i++) {
        struct gtopo_object object;

        status = gtopo_map_object(map, objects[i], &object, error);
        if (!status)
            t.kinds[i] = object.kind;
    }
    if (!status)
        status = find_ways(&t, error);
    for (size_t i = 0; i < count && !status; i++)
        for (size_t j = 0; j < count; j++)
            if (t.kinds[i] == GTOPO_GPU && t.kinds[j] == GTOPO_NIC)
                find_c2c(&t, i, j);
    if (!status)
        find_detours(&t, classes);
    free(t.kinds);
    free(t.ways);
    return status;
}
