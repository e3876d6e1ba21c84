/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fingerprint of a shape: colour refinement (Weisfeiler and Leman 1968), which gives equal results for graphs that
 * differ only in the order of their objects. Each object starts with a colour made of its own facts, and takes in its
 * neighbours' colours until the number of distinct colours stops growing.
 * O(rounds · (V + E) log E), rounds at most ROUNDS_MAX.
 */
#include "lib/map.h"
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 16

struct refinement {
    const struct gtopo_map *map;
    const struct gtopo_shape *shape;
    uint64_t *colours, *next, *scratch; /* scratch: room for the links of one object, or for all colours */
};

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static uint64_t own_facts(const struct refinement *r, uint32_t object)
{
    const struct gtopo_node *node = &r->shape->nodes[object];
    uint64_t hash = gtopo_hash_number(GTOPO_HASH_START, node->kind);

    if (node->kind == GTOPO_PORT)
        hash = gtopo_hash_number(hash, node->number); /* printed on the card, no enumeration */
    for (uint32_t i = r->shape->values.first[object]; i != GTOPO_NONE; i = r->shape->values.items[i].next) {
        const struct gtopo_value *value = &r->shape->values.items[i];

        hash = gtopo_hash_number(hash, value->attribute * 2u + value->unknown);
        if (value->unknown)
            continue;
        if (gtopo_attribute_type(value->attribute) == GTOPO_VALUE_TEXT) {
            const char *text = gtopo_texts_get(&r->map->texts, value->text);

            hash = gtopo_hash_bytes(hash, text, strlen(text));
        } else
            hash = gtopo_hash_number(hash, value->number);
    }
    return hash;
}

static uint64_t link_facts(const struct gtopo_link *link)
{
    uint64_t hash = gtopo_hash_number(GTOPO_HASH_START, link->kind);

    hash = gtopo_hash_number(hash, link->count);
    hash = gtopo_hash_number(hash, (uint64_t)link->width << 32 | link->capable_width);
    hash = gtopo_hash_number(hash, (uint64_t)link->speed_MTps << 32 | link->capable_speed_MTps);
    hash = gtopo_hash_number(hash, link->nominal_Bps);
    return gtopo_hash_number(hash, link->capable_Bps);
}

static void refine(struct refinement *r)
{
    for (uint32_t object = 0; object < r->shape->node_count; object++) {
        const struct gtopo_node *node = &r->shape->nodes[object];
        uint32_t begin = r->shape->adjacency.row[object], end = r->shape->adjacency.row[object + 1];
        uint64_t hash =
            gtopo_hash_number(r->colours[object], node->parent == GTOPO_NONE ? 0 : r->colours[node->parent]);

        for (uint32_t i = begin; i < end; i++) {
            const struct gtopo_link *link = &r->shape->links[r->shape->adjacency.links[i]];
            uint32_t other = link->ends[link->ends[0] == object];

            r->scratch[i - begin] = gtopo_hash_number(link_facts(link), r->colours[other]);
        }
        qsort(r->scratch, end - begin, sizeof *r->scratch, compare);
        for (uint32_t i = 0; i < end - begin; i++)
            hash = gtopo_hash_number(hash, r->scratch[i]);
        r->next[object] = hash;
    }
    memcpy(r->colours, r->next, r->shape->node_count * sizeof *r->colours);
}

/* Sort the colours into scratch and count the distinct ones. */
static size_t count_colours(struct refinement *r)
{
    size_t n = r->shape->node_count, distinct = 0;

    memcpy(r->scratch, r->colours, n * sizeof *r->colours);
    qsort(r->scratch, n, sizeof *r->scratch, compare);
    for (size_t i = 0; i < n; i++)
        distinct += !i || r->scratch[i] != r->scratch[i - 1];
    return distinct;
}

int gtopo_shape_fingerprint(const struct gtopo_map *map, struct gtopo_shape *shape)
{
    size_t n = shape->node_count, room = n > 2 * shape->link_count ? n : 2 * shape->link_count;
    struct refinement r = {map, shape, calloc(n, 8), calloc(n, 8), calloc(room, 8)};
    size_t colours, before = 0;
    int status = GTOPO_ENOMEM;

    if (!r.colours || !r.next || !r.scratch)
        goto out;
    for (uint32_t object = 0; object < n; object++)
        r.colours[object] = own_facts(&r, object);
    colours = count_colours(&r);
    for (int round = 0; round < ROUNDS_MAX && colours > before; round++) {
        before = colours;
        refine(&r);
        colours = count_colours(&r);
    }
    shape->fingerprint = gtopo_hash_number(GTOPO_HASH_START, n);
    for (size_t i = 0; i < n; i++)
        shape->fingerprint = gtopo_hash_number(shape->fingerprint, r.scratch[i]);
    status = 0;
out:
    free(r.colours);
    free(r.next);
    free(r.scratch);
    return status;
}
