/* SPDX-License-Identifier: Apache-2.0 */
/* File systems: which are on a disk of the host, and of which it is a client over the network. */
#include "topo/host/mounts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_TEXT 1024
#define LEFT_OUT_TEXT 32

/* "a, b, c", as far as there is room; a node of Kubernetes mounts one disk hundreds of times. */
struct list {
    char text[LIST_TEXT];
    size_t length, left_out;
};

static void put(struct list *list, const char *item)
{
    size_t need = strlen(item) + (list->length ? 2 : 0);

    if (list->left_out || list->length + need >= sizeof list->text - LEFT_OUT_TEXT) {
        list->left_out++;
        return;
    }
    snprintf(list->text + list->length, sizeof list->text - list->length, "%s%s", list->length ? ", " : "", item);
    list->length += need;
}

static int set_list(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, struct list *list)
{
    if (list->left_out)
        snprintf(list->text + list->length, sizeof list->text - list->length, "%s%zu more", list->length ? ", " : "",
                 list->left_out);
    return gtopo_discovery_text(d, id, attribute, list->text);
}

/* ---- over the network ---- */

/* The same from the same servers, mounted again elsewhere, is one. 1 when it is new, or GTOPO_ENOMEM. */
static int is_new(struct gtopo_texts *seen, const struct gtopo_mount *mount, const char *source)
{
    char key[LIST_TEXT];
    uint32_t number;

    snprintf(key, sizeof key, "%s %s", mount->type, source);
    if (gtopo_texts_find(seen, key) != UINT32_MAX)
        return 0;
    return gtopo_texts_add(seen, key, &number) ? GTOPO_ENOMEM : 1;
}

static int tell_network(struct gtopo_discovery *d, const struct gtopo_mounts *mounts)
{
    struct list list = {.length = 0};
    struct gtopo_texts seen;
    int status = gtopo_texts_init(&seen);

    for (size_t i = 0; i < mounts->count && status >= 0; i++) {
        const struct gtopo_mount *mount = &mounts->items[i];
        const char *source = gtopo_texts_get(&mounts->texts, mount->source);
        char item[LIST_TEXT];

        if (!mount->is_network || (status = is_new(&seen, mount, source)) <= 0)
            continue;
        snprintf(item, sizeof item, "%s %s from %s%s", mount->type, gtopo_texts_get(&mounts->texts, mount->directory),
                 source, mount->by_rdma ? " by RDMA" : "");
        put(&list, item);
    }
    gtopo_texts_clear(&seen);
    if (status < 0)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    return set_list(d, d->machine, GTOPO_ATTRIBUTE_NETWORK_FILE_SYSTEMS, &list);
}

/* ---- on disks ---- */

static int tell_disks(struct gtopo_discovery *d, const struct gtopo_mounts *mounts, struct gtopo_block *block)
{
    struct list *lists = calloc(block->count + 1, sizeof *lists);
    int status = lists ? 0 : gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");

    for (size_t i = 0; i < mounts->count && block->count && !status; i++) {
        const struct gtopo_mount *mount = &mounts->items[i];

        if (mount->is_network)
            continue;
        if (gtopo_block_search(block, gtopo_texts_get(&mounts->texts, mount->source)))
            status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
        for (size_t j = 0; j < block->found_count && !status; j++)
            put(&lists[block->found[j]], gtopo_texts_get(&mounts->texts, mount->directory));
    }
    for (size_t i = 0; i < block->count && !status; i++)
        status = set_list(d, block->disks[i].id, GTOPO_ATTRIBUTE_MOUNTED_AT, &lists[i]);
    free(lists);
    return status;
}

int gtopo_discover_file_systems(struct gtopo_discovery *d)
{
    struct gtopo_mounts mounts;
    struct gtopo_block block = {.count = 0};
    int is_there = gtopo_mounts_read(&d->sysfs, &mounts), status = 0;

    if (is_there > 0)
        is_there = gtopo_block_init(&block, d) ? GTOPO_ENOMEM : 1;
    if (is_there < 0)
        status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    if (is_there > 0 && !(status = tell_network(d, &mounts)) && !(status = tell_disks(d, &mounts, &block)))
        status = gtopo_check_scratch(d, &mounts, &block);
    gtopo_block_clear(&block);
    gtopo_mounts_clear(&mounts);
    return status;
}
