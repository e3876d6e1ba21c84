/* SPDX-License-Identifier: Apache-2.0 */
/* From a block device that is mounted to the disks it stands on: by the kernel's way to name partitions, and by sysfs.
 */
#include "topo/host/mounts.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8 /* a volume, of a pool, on a RAID, on multipath, on a partition: real ones have no more */
#define VISITS_MAX 65536

/* An NVMe disk of the map stands for all of its namespaces: nvme2n1 is of nvme2. */
static void cut_namespace(char *name)
{
    unsigned controller, space;
    int digits = 0, end = 0;

    if (sscanf(name, "nvme%9u%nn%9u%n", &controller, &digits, &space, &end) == 2 && !name[end])
        name[digits] = 0;
}

/* "sda1" is of "sda", "nvme0n1p2" of "nvme0n1": a p stands between where the whole ends with a digit. 1 when it is. */
static int whole_of(const char *name, char whole[GTOPO_SYSFS_TEXT])
{
    size_t length = strlen(name), end = length;

    while (end && isdigit((unsigned char)name[end - 1]))
        end--;
    if (end == length || end < 2)
        return 0;
    if (name[end - 1] == 'p' && isdigit((unsigned char)name[end - 2]))
        end--;
    snprintf(whole, GTOPO_SYSFS_TEXT, "%.*s", (int)end, name);
    return 1;
}

/* ---- the disks of the map ---- */

static int compare_disks(const void *a, const void *b)
{
    const struct gtopo_block_disk *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

static int list_disks(struct gtopo_block *block, struct gtopo_discovery *d)
{
    uint32_t first, count;

    if (gtopo_map_host_objects(d->map, d->host, &first, &count, NULL))
        return 0;
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_object object = {0};
        const char *name;

        gtopo_map_object(d->map, id, &object, NULL);
        name = object.kind == GTOPO_STORAGE ? gtopo_map_text(d->map, id, GTOPO_ATTRIBUTE_DEVICE) : NULL;
        if (!name)
            continue;
        if (gtopo_grow((void **)&block->disks, &block->capacity, block->count + 1, sizeof *block->disks))
            return GTOPO_ENOMEM;
        block->disks[block->count] = (struct gtopo_block_disk){.id = id};
        snprintf(block->disks[block->count].name, GTOPO_SYSFS_TEXT, "%s", name);
        cut_namespace(block->disks[block->count++].name);
    }
    if (block->count)
        qsort(block->disks, block->count, sizeof *block->disks, compare_disks);
    return 0;
}

/* ---- what the device mapper made ---- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of sysfs, "dm-3", become "VOLUME dm-3", so that a search by the volume's name finds them. */
static int list_mapped(struct gtopo_block *block)
{
    struct gtopo_sysfs_names names;
    char volume[GTOPO_SYSFS_TEXT];
    size_t kept = 0;
    int status = gtopo_sysfs_list(block->sysfs, &names, "sys/class/block");

    for (size_t i = 0; i < names.count && !status; i++) {
        char *line;

        if (strncmp(names.names[i], "dm-", 3) ||
            !gtopo_sysfs_text(block->sysfs, volume, "sys/class/block/%s/dm/name", names.names[i]))
            continue;
        if (asprintf(&line, "%s %s", volume, names.names[i]) < 0) {
            status = GTOPO_ENOMEM;
            break;
        }
        free(names.names[i]);
        names.names[i] = names.names[kept];
        names.names[kept++] = line;
    }
    for (size_t i = kept; i < names.count; i++)
        free(names.names[i]);
    names.count = kept;
    block->mapped = names;
    if (kept)
        qsort(names.names, kept, sizeof *names.names, compare_texts);
    return status;
}

static int compare_volume(const void *key, const void *item)
{
    const char *volume = key, *line = *(char *const *)item;
    size_t length = strlen(volume);
    int order = strncmp(volume, line, length);

    return order ? order : ' ' - (unsigned char)line[length];
}

/* The kernel's name of "mapper/VOLUME", else the name itself, in which sysfs has '!' for '/'. */
static void kernel_name(const struct gtopo_block *block, const char *source, char name[GTOPO_SYSFS_TEXT])
{
    char *const *line = NULL;

    if (!strncmp(source, "mapper/", 7) && block->mapped.count)
        line = bsearch(source + 7, block->mapped.names, block->mapped.count, sizeof *line, compare_volume);
    snprintf(name, GTOPO_SYSFS_TEXT, "%s", line ? strrchr(*line, ' ') + 1 : source);
    for (char *slash = name; (slash = strchr(slash, '/'));)
        *slash = '!';
}

/* ---- the search ---- */

/* Add the disks of this name: several are ways to one. 1 when there is one, or GTOPO_ENOMEM. */
static int find_disk(struct gtopo_block *block, const char *device)
{
    char name[GTOPO_SYSFS_TEXT];
    size_t first = 0, end = block->count;

    snprintf(name, sizeof name, "%s", device);
    cut_namespace(name);
    while (first < end) {
        size_t middle = first + (end - first) / 2;

        if (strcmp(block->disks[middle].name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    for (end = first; end < block->count && !strcmp(block->disks[end].name, name); end++) {
        if (block->disks[end].asked_for == block->searches)
            continue;
        block->disks[end].asked_for = block->searches;
        if (gtopo_grow((void **)&block->found, &block->found_capacity, block->found_count + 1, sizeof *block->found))
            return GTOPO_ENOMEM;
        block->found[block->found_count++] = end;
    }
    return end > first;
}

/* A disk, or a partition of one: the most, and it costs nothing. Else what it stands on. */
static int visit(struct gtopo_block *block, const char *name, unsigned depth)
{
    char whole[GTOPO_SYSFS_TEXT];
    struct gtopo_sysfs_names parts;
    int is_part = whole_of(name, whole), status = find_disk(block, name);

    if (!status && is_part)
        status = find_disk(block, whole);
    if (status)
        return status < 0 ? status : 0;
    if (depth > DEPTH_MAX || !block->visits_left) {
        block->is_complete = 0;
        return 0;
    }
    block->visits_left--;
    if ((status = gtopo_sysfs_list(block->sysfs, &parts, "sys/class/block/%s/slaves", name)))
        return status;
    for (size_t i = 0; i < parts.count && !status; i++)
        status = visit(block, parts.names[i], depth + 1);
    if (!parts.count && is_part)
        status = visit(block, whole, depth + 1);
    else if (!parts.count)
        block->is_complete = 0;
    gtopo_sysfs_names_clear(&parts);
    return status;
}

int gtopo_block_search(struct gtopo_block *block, const char *source)
{
    char name[GTOPO_SYSFS_TEXT];

    block->searches++;
    block->found_count = 0;
    block->is_complete = !strncmp(source, "/dev/", 5);
    if (!block->is_complete)
        return 0;
    kernel_name(block, source + 5, name);
    return visit(block, name, 0);
}

int gtopo_block_init(struct gtopo_block *block, struct gtopo_discovery *d)
{
    int status;

    *block = (struct gtopo_block){.sysfs = &d->sysfs, .visits_left = VISITS_MAX};
    status = list_disks(block, d);
    return status ? status : list_mapped(block);
}

void gtopo_block_clear(struct gtopo_block *block)
{
    gtopo_sysfs_names_clear(&block->mapped);
    free(block->disks);
    free(block->found);
    memset(block, 0, sizeof *block);
}
