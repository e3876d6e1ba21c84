/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealing: equal shapes become one, links get their adjacency, measurements find the links that they crossed.
 * O(hosts + V + E + M · path).
 */
#include "lib/map.h"
#include <stdlib.h>
#include <string.h>

/* ---- adjacency of a shape, in CSR form ---- */

static int build_adjacency(struct gtopo_shape *shape)
{
    struct gtopo_adjacency built = {calloc(shape->node_count + 2, sizeof *built.row),
                                    calloc(2 * shape->link_count + 1, sizeof *built.links)};
    uint32_t *fill;

    if (!built.row || !built.links) {
        free(built.row);
        free(built.links);
        return GTOPO_ENOMEM;
    }
    /* Counting sort by end; row is filled one place ahead, so that it ends up as the beginnings. */
    fill = built.row + 1;
    for (size_t i = 0; i < shape->link_count; i++)
        for (int end = 0; end < 2; end++)
            fill[shape->links[i].ends[end] + 1]++;
    for (size_t i = 1; i <= shape->node_count; i++)
        fill[i] += fill[i - 1];
    for (uint32_t i = 0; i < shape->link_count; i++)
        for (int end = 0; end < 2; end++)
            built.links[fill[shape->links[i].ends[end]]++] = i;
    shape->adjacency = built;
    return 0;
}

/* ---- sharing equal shapes ---- */

static int same_value(const struct gtopo_value *a, const struct gtopo_value *b)
{
    /* Texts are numbered once in a map; GIDs are never part of a shape. */
    if (a->attribute != b->attribute || a->unknown != b->unknown)
        return 0;
    if (a->unknown)
        return 1;
    return gtopo_attribute_type(a->attribute) == GTOPO_VALUE_TEXT ? a->text == b->text : a->number == b->number;
}

static int same_values(const struct gtopo_values *a, uint32_t i, const struct gtopo_values *b, uint32_t j)
{
    while (i != GTOPO_NONE && j != GTOPO_NONE) {
        if (!same_value(&a->items[i], &b->items[j]))
            return 0;
        i = a->items[i].next;
        j = b->items[j].next;
    }
    return i == j;
}

static int same_link(const struct gtopo_link *a, const struct gtopo_link *b)
{
    return a->kind == b->kind && a->ends[0] == b->ends[0] && a->ends[1] == b->ends[1] && a->count == b->count &&
           a->width == b->width && a->capable_width == b->capable_width && a->speed_MTps == b->speed_MTps &&
           a->capable_speed_MTps == b->capable_speed_MTps && a->nominal_Bps == b->nominal_Bps &&
           a->capable_Bps == b->capable_Bps;
}

static int same_shape(const struct gtopo_shape *a, const struct gtopo_shape *b)
{
    if (a->fingerprint != b->fingerprint || a->node_count != b->node_count || a->link_count != b->link_count)
        return 0;
    if (memcmp(a->nodes, b->nodes, a->node_count * sizeof *a->nodes))
        return 0;
    for (size_t i = 0; i < a->link_count; i++)
        if (!same_link(&a->links[i], &b->links[i]))
            return 0;
    for (size_t i = 0; i < a->node_count; i++)
        if (!same_values(&a->values, a->values.first[i], &b->values, b->values.first[i]))
            return 0;
    return 1;
}

/* Shapes hashed by fingerprint, with open addressing; slots hold shape + 1. */
struct shape_table {
    uint32_t *slots;
    size_t mask;
};

/* The number under which this shape is kept: an equal one's, or its own. */
static uint32_t keep_shape(const struct gtopo_map *map, struct shape_table *table, uint32_t shape)
{
    size_t slot = gtopo_hash_number(0, map->shapes[shape].fingerprint) & table->mask;

    for (; table->slots[slot]; slot = (slot + 1) & table->mask)
        if (same_shape(&map->shapes[table->slots[slot] - 1], &map->shapes[shape]))
            return table->slots[slot] - 1;
    table->slots[slot] = shape + 1;
    return shape;
}

static int share_shapes(struct gtopo_map *map)
{
    struct shape_table table = {NULL, 15};
    uint32_t *renamed = calloc(map->shape_count + 1, sizeof *renamed);
    size_t kept = 0;

    while (table.mask + 1 < 2 * map->shape_count)
        table.mask = table.mask * 2 + 1;
    table.slots = calloc(table.mask + 1, sizeof *table.slots);
    if (!renamed || !table.slots) {
        free(renamed);
        free(table.slots);
        return GTOPO_ENOMEM;
    }
    for (uint32_t i = 0; i < map->shape_count; i++)
        renamed[i] = keep_shape(map, &table, i);
    for (uint32_t i = 0; i < map->shape_count; i++) {
        if (renamed[i] != i) {
            renamed[i] = renamed[renamed[i]];
            gtopo_shape_clear(&map->shapes[i]);
            continue;
        }
        renamed[i] = (uint32_t)kept;
        if (kept != i) {
            map->shapes[kept] = map->shapes[i];
            memset(&map->shapes[i], 0, sizeof map->shapes[i]);
        }
        kept++;
    }
    map->shape_count = kept;
    for (size_t i = 0; i < map->host_count; i++)
        map->hosts[i].shape = renamed[map->hosts[i].shape];
    free(renamed);
    free(table.slots);
    return 0;
}

static int seal_shapes(struct gtopo_map *map)
{
    for (size_t i = 0; i < map->shape_count; i++) {
        struct gtopo_shape *shape = &map->shapes[i];

        if (shape->adjacency.row)
            continue;
        shape->frozen = 1;
        if (build_adjacency(shape))
            return GTOPO_ENOMEM;
        if (gtopo_shape_fingerprint(map, shape)) {
            free(shape->adjacency.row);
            free(shape->adjacency.links);
            memset(&shape->adjacency, 0, sizeof shape->adjacency); /* to be built again, with its fingerprint */
            return GTOPO_ENOMEM;
        }
    }
    return share_shapes(map);
}

/* ---- cables ---- */

static int compare_ends(const void *a, const void *b)
{
    const struct gtopo_cable_end *x = a, *y = b;

    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return x->link < y->link ? -1 : x->link > y->link;
}

static int sort_cables(struct gtopo_map *map)
{
    struct gtopo_cable_end *ends = calloc(2 * map->network_count + 1, sizeof *ends);

    if (!ends)
        return GTOPO_ENOMEM;
    for (size_t i = 0; i < 2 * map->network_count; i++) {
        ends[i].object = map->network[i / 2].ends[i % 2];
        ends[i].link = GTOPO_FABRIC_BASE + (uint32_t)(i / 2);
    }
    qsort(ends, 2 * map->network_count, sizeof *ends, compare_ends);
    free(map->cable_ends);
    map->cable_ends = ends;
    map->cable_end_count = 2 * map->network_count;
    return 0;
}

size_t gtopo_map_cables_of(const struct gtopo_map *map, uint32_t object, const struct gtopo_cable_end **first)
{
    size_t low = 0, high = map->cable_end_count, end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->cable_ends[middle].object < object)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < map->cable_end_count && map->cable_ends[end].object == object;)
        end++;
    *first = map->cable_ends + low;
    return end - low;
}

uint32_t gtopo_map_link_of(const struct gtopo_map *map, uint32_t id, size_t index, struct gtopo_link *link)
{
    const struct gtopo_cable_end *cables;
    uint32_t found = GTOPO_NONE;
    struct gtopo_place place;

    if (!map->sealed || !gtopo_map_place(map, id, &place))
        return GTOPO_NONE;
    if (place.host != GTOPO_NONE) {
        const struct gtopo_host *host = &map->hosts[place.host];
        const struct gtopo_adjacency *adjacency = &map->shapes[host->shape].adjacency;
        size_t inside = adjacency->row[place.local + 1] - adjacency->row[place.local];

        if (index < inside)
            found = host->first_link + adjacency->links[adjacency->row[place.local] + index];
        else
            index -= inside;
    }
    if (found == GTOPO_NONE && index < gtopo_map_cables_of(map, id, &cables))
        found = cables[index].link;
    if (found != GTOPO_NONE)
        gtopo_map_link(map, found, link, NULL);
    return found;
}

size_t gtopo_map_links_of(const struct gtopo_map *map, uint32_t id, uint32_t *links, size_t capacity)
{
    const struct gtopo_cable_end *cables;
    struct gtopo_place place;
    size_t count = 0, cable_count;

    if (!map->sealed || !gtopo_map_place(map, id, &place))
        return 0;
    if (place.host != GTOPO_NONE) {
        const struct gtopo_host *host = &map->hosts[place.host];
        const struct gtopo_adjacency *adjacency = &map->shapes[host->shape].adjacency;

        for (uint32_t i = adjacency->row[place.local]; i < adjacency->row[place.local + 1]; i++, count++)
            if (count < capacity)
                links[count] = host->first_link + adjacency->links[i];
    }
    cable_count = gtopo_map_cables_of(map, id, &cables);
    for (size_t i = 0; i < cable_count; i++, count++)
        if (count < capacity)
            links[count] = cables[i].link;
    return count;
}

/* ---- measurements on links ---- */

typedef int path_function(const struct gtopo_map *map, uint32_t from, uint32_t to, struct gtopo_path *path,
                          struct gtopo_error *error);

static int cross(struct gtopo_map *map, path_function *find, uint32_t from, uint32_t to, uint32_t measurement)
{
    struct gtopo_path path = {0};
    int status = find(map, from, to, &path, NULL);

    for (uint32_t i = 0; !status && i < path.hops; i++) {
        status = gtopo_grow((void **)&map->crossings, &map->crossing_capacity, map->crossing_count + 1,
                            sizeof *map->crossings);
        if (!status) {
            map->crossings[map->crossing_count].link = path.links[i];
            map->crossings[map->crossing_count++].measurement = measurement;
        }
    }
    gtopo_path_clear(&path);
    return status;
}

static int compare_crossings(const void *a, const void *b)
{
    const struct gtopo_crossing *x = a, *y = b;

    if (x->link != y->link)
        return x->link < y->link ? -1 : 1;
    return x->measurement < y->measurement ? -1 : x->measurement > y->measurement;
}

/*
 * The way of a measurement: from memory to what moves it, on to the other mover, and into memory. Between two ports
 * only cables that the map knows count: the bytes do not take the inside of a host from port to port.
 */
static int cross_measurement(struct gtopo_map *map, uint32_t index)
{
    const struct gtopo_measurement *m = &map->measurements[index].value;
    uint32_t out = m->from.via == GTOPO_NONE ? m->from.memory : m->from.via;
    uint32_t in = m->to.via == GTOPO_NONE ? m->to.memory : m->to.via;
    struct gtopo_object ends[2];
    path_function *between = gtopo_path_find;
    int status = cross(map, gtopo_path_find, m->from.memory, out, index);

    gtopo_map_object(map, out, &ends[0], NULL);
    gtopo_map_object(map, in, &ends[1], NULL);
    if (ends[0].kind == GTOPO_PORT && ends[1].kind == GTOPO_PORT)
        between = gtopo_path_find_outside;
    if (!status)
        status = cross(map, between, out, in, index);
    return status ? status : cross(map, gtopo_path_find, in, m->to.memory, index);
}

static int place_measurements(struct gtopo_map *map)
{
    int status = 0;

    map->crossing_count = 0;
    for (uint32_t i = 0; !status && i < map->measurement_count; i++)
        status = cross_measurement(map, i);
    if (!status && map->crossing_count)
        qsort(map->crossings, map->crossing_count, sizeof *map->crossings, compare_crossings);
    return status;
}

int gtopo_map_seal(struct gtopo_map *map, struct gtopo_error *error)
{
    if (map->sealed)
        return 0;
    if (seal_shapes(map) || sort_cables(map))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    map->sealed = 1; /* paths can be asked from here on */
    if (place_measurements(map)) {
        map->sealed = 0;
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    }
    return 0;
}

/* Is measurement a better witness than b: measured before anything else, of one direction, then faster. */
static int better(const struct gtopo_measurement *a, const struct gtopo_measurement *b, unsigned metric)
{
    if ((a->provenance == GTOPO_MEASURED) != (b->provenance == GTOPO_MEASURED))
        return a->provenance == GTOPO_MEASURED;
    if (a->two_way != b->two_way)
        return !a->two_way;
    return metric == GTOPO_BANDWIDTH_Bps ? a->median > b->median : a->median < b->median;
}

int gtopo_map_link_measurement(const struct gtopo_map *map, uint32_t link, enum gtopo_metric metric, uint32_t *index,
                               struct gtopo_error *error)
{
    const struct gtopo_measurement *best = NULL;
    size_t low = 0, high = map->crossing_count;

    if (!map->sealed)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_map_seal() first", "the map is not sealed");
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->crossings[middle].link < link)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < map->crossing_count && map->crossings[low].link == link; low++) {
        const struct gtopo_measurement *m = &map->measurements[map->crossings[low].measurement].value;

        if (m->metric == metric && (!best || better(m, best, metric))) {
            best = m;
            *index = map->crossings[low].measurement;
        }
    }
    if (!best)
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "nothing was measured across link %u", link);
    return 0;
}
