/* SPDX-License-Identifier: Apache-2.0 */
/* Where a host with GPUs has its scratch: the local file system that jobs stage data and checkpoints on. */
#include "topo/host/mounts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How sure a directory's name makes it that this is the host's scratch. */
enum certainty { NOT_SCRATCH, HOLDS_TMP, IS_TMP, IS_SCRATCH };

struct scratch {
    struct gtopo_discovery *d;
    const struct gtopo_mounts *mounts;
    struct gtopo_block *block;
    enum certainty certainty; /* the best of all mounts */
    char *reported;           /* disks that have their finding */
};

/* As sites and makers name it: /scratch, /localscratch, /scratch.local; /raid on a DGX. */
static enum certainty certainty_of(const char *directory)
{
    static const char *const scratch[] = {"/raid", "/local", "/localdisk", "/local_disk"};
    const char *last = strrchr(directory, '/');

    if (last && strcasestr(last, "scratch"))
        return IS_SCRATCH;
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        if (!strcmp(directory, scratch[i]))
            return IS_SCRATCH;
    if (!strcmp(directory, "/tmp") || !strcmp(directory, "/var/tmp"))
        return IS_TMP;
    return strcmp(directory, "/") ? NOT_SCRATCH : HOLDS_TMP;
}

/* What makes a disk slow, or NULL. The figures are of the interface: SATA 3 sends 6 Gb/s in 8b/10b code. */
static const char *slowness_of(const struct gtopo_map *map, uint32_t disk)
{
    const char *interface = gtopo_map_text(map, disk, GTOPO_ATTRIBUTE_INTERFACE);
    uint64_t is_rotational = 0;

    gtopo_map_number(map, disk, GTOPO_ATTRIBUTE_ROTATIONAL, &is_rotational);
    if (!interface)
        return NULL;
    if (!strcmp(interface, "sata"))
        return is_rotational ? "a spinning disk on SATA" : "a disk on SATA, which carries 600 MB/s at most";
    if (!strcmp(interface, "sas"))
        return is_rotational ? "a spinning disk on SAS" : NULL;
    if (!strcmp(interface, "usb"))
        return "a disk on USB";
    return strcmp(interface, "mmc") ? NULL : "an SD card or eMMC";
}

static enum certainty certainty_of_mount(const struct scratch *s, const struct gtopo_mount *mount)
{
    return mount->is_hidden ? NOT_SCRATCH : certainty_of(gtopo_texts_get(&s->mounts->texts, mount->directory));
}

/* A fast disk with a file system may hold the scratch under a name that is not known here. */
static int has_fast_disk_in_use(const struct scratch *s)
{
    for (size_t i = 0; i < s->block->count; i++) {
        const char *interface = gtopo_map_text(s->d->map, s->block->disks[i].id, GTOPO_ATTRIBUTE_INTERFACE);

        if (interface && !strcmp(interface, "nvme") &&
            gtopo_map_text(s->d->map, s->block->disks[i].id, GTOPO_ATTRIBUTE_MOUNTED_AT))
            return 1;
    }
    return 0;
}

static int has_gpu(const struct gtopo_discovery *d)
{
    struct gtopo_object object = {0};
    uint32_t first, count = 0;

    gtopo_map_host_objects(d->map, d->host, &first, &count, NULL);
    for (uint32_t i = 0; i < count; i++)
        if (!gtopo_map_object(d->map, first + i, &object, NULL) && object.kind == GTOPO_GPU)
            return 1;
    return 0;
}

static int report(struct scratch *s, const char *directory, uint32_t disk, const char *slowness)
{
    static const char *const which[] = {
        [HOLDS_TMP] = "with no file system named scratch, /tmp in ",
        [IS_TMP] = "with no file system named scratch, ",
        [IS_SCRATCH] = "its scratch ",
    };
    const char *name = gtopo_map_text(s->d->map, disk, GTOPO_ATTRIBUTE_DEVICE);
    char others[64] = "";

    if (s->block->found_count > 1)
        snprintf(others, sizeof others, " and %zu more", s->block->found_count - 1);
    return gtopo_discovery_find(
        s->d, "scratch-slow", s->certainty == IS_SCRATCH ? GTOPO_WARNING : GTOPO_NOTE, disk,
        "have the scratch on NVMe disks near the GPUs (`gtopo-bench show --matrix=storage`)",
        "the host has GPUs and %s%s on %s%s, %s: GPUs wait there for data that one NVMe disk gives at several GB/s",
        which[s->certainty], directory, name, others, slowness);
}

/* Slow are all the disks, or the file system is not: of an unknown one nothing is said. */
static int check_mount(struct scratch *s, const struct gtopo_mount *mount)
{
    const struct gtopo_block *block = s->block;
    const char *slowness = NULL;

    if (gtopo_block_search(s->block, gtopo_texts_get(&s->mounts->texts, mount->source)))
        return gtopo_fail(s->d->error, GTOPO_ENOMEM, NULL, "out of memory");
    if (!block->is_complete || !block->found_count || s->reported[block->found[0]])
        return 0;
    for (size_t i = block->found_count; i-- > 0;)
        if (!(slowness = slowness_of(s->d->map, block->disks[block->found[i]].id)))
            return 0;
    s->reported[block->found[0]] = 1;
    return report(s, gtopo_texts_get(&s->mounts->texts, mount->directory), block->disks[block->found[0]].id, slowness);
}

int gtopo_check_scratch(struct gtopo_discovery *d, const struct gtopo_mounts *mounts, struct gtopo_block *block)
{
    struct scratch s = {d, mounts, block, NOT_SCRATCH, NULL};
    int status = 0;

    if (!has_gpu(d))
        return 0;
    for (size_t i = 0; i < mounts->count; i++) {
        enum certainty certainty = certainty_of_mount(&s, &mounts->items[i]);

        s.certainty = certainty > s.certainty ? certainty : s.certainty;
    }
    if (!s.certainty || (s.certainty < IS_SCRATCH && has_fast_disk_in_use(&s)))
        return 0;
    s.reported = calloc(block->count + 1, 1);
    if (!s.reported)
        status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < mounts->count && !status; i++)
        if (!mounts->items[i].is_network && certainty_of_mount(&s, &mounts->items[i]) == s.certainty)
            status = check_mount(&s, &mounts->items[i]);
    free(s.reported);
    return status;
}
