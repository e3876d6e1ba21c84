/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a map with hosts, objects, switches and links, and reading them back by number. */
#include "lib/map.h"
#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY(error) gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory")

struct gtopo_map *gtopo_map_new(void)
{
    struct gtopo_map *map = calloc(1, sizeof *map);

    if (map && gtopo_texts_init(&map->texts)) {
        free(map);
        map = NULL;
    }
    return map;
}

void gtopo_shape_clear(struct gtopo_shape *shape)
{
    free(shape->nodes);
    free(shape->node_slots);
    free(shape->links);
    free(shape->adjacency.row);
    free(shape->adjacency.links);
    gtopo_values_clear(&shape->values);
    memset(shape, 0, sizeof *shape);
}

void gtopo_map_free(struct gtopo_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->shape_count; i++)
        gtopo_shape_clear(&map->shapes[i]);
    for (size_t i = 0; i < map->host_count; i++)
        gtopo_values_clear(&map->hosts[i].values);
    gtopo_values_clear(&map->switch_values);
    gtopo_texts_clear(&map->texts);
    free(map->gids);
    free(map->shapes);
    free(map->hosts);
    free(map->switches);
    free(map->network);
    free(map->names);
    free(map->measurements);
    free(map->findings);
    free(map->cable_ends);
    free(map->crossings);
    free(map);
}

/* ---- names ---- */

static size_t name_slot(const struct gtopo_map *map, uint32_t text)
{
    size_t mask = map->name_slots - 1;
    size_t slot = gtopo_hash_number(0, text) & mask;

    while (map->names[slot].text && map->names[slot].text != text)
        slot = (slot + 1) & mask;
    return slot;
}

static int grow_names(struct gtopo_map *map)
{
    struct gtopo_name *old = map->names;
    size_t old_slots = map->name_slots;
    size_t slots = old_slots ? old_slots * 2 : 16;
    struct gtopo_name *names = calloc(slots, sizeof *names);

    if (!names)
        return GTOPO_ENOMEM;
    map->names = names;
    map->name_slots = slots;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].text)
            names[name_slot(map, old[i].text)] = old[i];
    free(old);
    return 0;
}

uint32_t gtopo_map_find_name(const struct gtopo_map *map, const char *name)
{
    uint32_t text = gtopo_texts_find(&map->texts, name);

    if (!text || text == UINT32_MAX || !map->name_slots)
        return GTOPO_NONE;
    return map->names[name_slot(map, text)].text ? map->names[name_slot(map, text)].object : GTOPO_NONE;
}

/* Check a name, store it and reserve room for its owner. */
static int take_name(struct gtopo_map *map, const char *name, uint32_t *text, struct gtopo_error *error)
{
    const char *rule = "names hold no \"/\", \":\", \"@\" or control characters and at most 255 bytes of UTF-8";

    if (!name)
        return gtopo_fail(error, GTOPO_EUSAGE, rule, "a host or switch needs a name");
    if (!*name || strlen(name) > 255 || strpbrk(name, "/:@") || !gtopo_text_is_clean(name))
        return gtopo_fail(error, GTOPO_EUSAGE, rule, "\"%.300s\" cannot be the name of a host or switch",
                          gtopo_text_is_clean(name) ? name : "(not text)");
    if (gtopo_map_find_name(map, name) != GTOPO_NONE)
        return gtopo_fail(error, GTOPO_EUSAGE, "names are unique among hosts and switches",
                          "there are two hosts or switches named \"%s\"", name);
    if (gtopo_texts_add(&map->texts, name, text) || ((map->name_count + 1) * 2 > map->name_slots && grow_names(map)))
        return OUT_OF_MEMORY(error);
    return 0;
}

static void give_name(struct gtopo_map *map, uint32_t text, uint32_t object)
{
    struct gtopo_name *name = &map->names[name_slot(map, text)];

    name->text = text;
    name->object = object;
    map->name_count++;
}

/* ---- filling ---- */

/* The slot of a node, or the free one where it would be. Only ports are numbered by their parent. */
static size_t node_slot(const struct gtopo_shape *shape, const struct gtopo_node *wanted)
{
    uint32_t parent = wanted->kind == GTOPO_PORT ? wanted->parent : 0;
    size_t mask = shape->slot_count - 1;
    size_t slot = gtopo_hash_number(gtopo_hash_number(wanted->kind, parent), wanted->number) & mask;

    for (; shape->node_slots[slot]; slot = (slot + 1) & mask) {
        const struct gtopo_node *node = &shape->nodes[shape->node_slots[slot] - 1];

        if (node->kind == wanted->kind && node->number == wanted->number &&
            (node->kind != GTOPO_PORT || node->parent == parent))
            break;
    }
    return slot;
}

uint32_t gtopo_shape_find(const struct gtopo_shape *shape, uint32_t kind, uint32_t parent, uint32_t number)
{
    struct gtopo_node wanted = {kind, parent, number};
    uint32_t found = shape->slot_count ? shape->node_slots[node_slot(shape, &wanted)] : 0;

    return found ? found - 1 : GTOPO_NONE;
}

static int grow_slots(struct gtopo_shape *shape)
{
    size_t count = shape->slot_count ? shape->slot_count * 2 : 64;
    uint32_t *slots = calloc(count, sizeof *slots);

    if (!slots)
        return GTOPO_ENOMEM;
    free(shape->node_slots);
    shape->node_slots = slots;
    shape->slot_count = count;
    for (uint32_t i = 0; i < shape->node_count; i++)
        slots[node_slot(shape, &shape->nodes[i])] = i + 1;
    return 0;
}

static int add_node(struct gtopo_shape *shape, struct gtopo_values *identity, struct gtopo_node node)
{
    if (gtopo_grow((void **)&shape->nodes, &shape->node_capacity, shape->node_count + 1, sizeof *shape->nodes))
        return GTOPO_ENOMEM;
    if ((shape->node_count + 1) * 2 > shape->slot_count && grow_slots(shape))
        return GTOPO_ENOMEM;
    if (gtopo_values_add_object(&shape->values))
        return GTOPO_ENOMEM;
    if (gtopo_values_add_object(identity)) {
        shape->values.object_count--;
        return GTOPO_ENOMEM;
    }
    shape->node_slots[node_slot(shape, &node)] = (uint32_t)shape->node_count + 1;
    shape->nodes[shape->node_count++] = node;
    shape->kind_count[node.kind]++;
    return 0;
}

/* Append a host of a shape. Takes the identity values of `added`, on success only. */
static int append_host(struct gtopo_map *map, struct gtopo_host added, uint32_t *host, struct gtopo_error *error)
{
    if (map->host_count) {
        const struct gtopo_host *last = &map->hosts[map->host_count - 1];
        const struct gtopo_shape *shape = &map->shapes[last->shape];

        added.first_object = last->first_object + (uint32_t)shape->node_count;
        added.first_link = last->first_link + (uint32_t)shape->link_count;
    }
    if (added.first_object + map->shapes[added.shape].node_count >= GTOPO_FABRIC_BASE ||
        added.first_link + map->shapes[added.shape].link_count >= GTOPO_FABRIC_BASE)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a map holds at most 2^31 objects and links of hosts");
    if (gtopo_grow((void **)&map->hosts, &map->host_capacity, map->host_count + 1, sizeof *map->hosts))
        return OUT_OF_MEMORY(error);
    map->sealed = 0;
    map->hosts[map->host_count] = added;
    give_name(map, added.name, added.first_object);
    *host = (uint32_t)map->host_count++;
    return 0;
}

int gtopo_map_add_host(struct gtopo_map *map, const char *name, uint32_t *host, struct gtopo_error *error)
{
    struct gtopo_host added = {.shape = (uint32_t)map->shape_count};
    struct gtopo_node machine = {GTOPO_MACHINE, GTOPO_NONE, 0};
    struct gtopo_shape *shape;
    int status = take_name(map, name, &added.name, error);

    if (status)
        return status;
    if (gtopo_grow((void **)&map->shapes, &map->shape_capacity, map->shape_count + 1, sizeof *map->shapes))
        return OUT_OF_MEMORY(error);
    shape = &map->shapes[map->shape_count];
    memset(shape, 0, sizeof *shape);
    status = add_node(shape, &added.values, machine) ? OUT_OF_MEMORY(error) : append_host(map, added, host, error);
    if (status) {
        gtopo_shape_clear(shape);
        gtopo_values_clear(&added.values);
        return status;
    }
    map->shape_count++;
    return 0;
}

int gtopo_map_add_host_like(struct gtopo_map *map, const char *name, uint32_t like, uint32_t *host,
                            struct gtopo_error *error)
{
    struct gtopo_host added = {0};
    int status = take_name(map, name, &added.name, error);

    if (status)
        return status;
    if (like >= map->host_count)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "there is no host %u to add one like", like);
    added.shape = map->hosts[like].shape;
    for (size_t i = 0; !status && i < map->shapes[added.shape].node_count; i++)
        status = gtopo_values_add_object(&added.values) ? OUT_OF_MEMORY(error) : 0;
    if (!status)
        status = append_host(map, added, host, error);
    if (status) {
        gtopo_values_clear(&added.values);
        return status;
    }
    map->shapes[added.shape].frozen = 1;
    return 0;
}

uint32_t gtopo_map_host_machine(const struct gtopo_map *map, uint32_t host)
{
    return host < map->host_count ? map->hosts[host].first_object : GTOPO_NONE;
}

/* The number of a new object: the next of its kind, or the one asked for if it is a port. */
static int number_of(const struct gtopo_shape *shape, struct gtopo_node *node, struct gtopo_error *error)
{
    if (node->kind != GTOPO_PORT) {
        node->number = shape->kind_count[node->kind];
        return 0;
    }
    if (shape->nodes[node->parent].kind != GTOPO_NIC || node->number < 1 || node->number > UINT16_MAX)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a port is on a NIC and has a number from 1 to 65535");
    if (gtopo_shape_find(shape, GTOPO_PORT, node->parent, node->number) != GTOPO_NONE)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the NIC has a port %u already", node->number);
    return 0;
}

int gtopo_map_add_object(struct gtopo_map *map, enum gtopo_object_kind kind, uint32_t parent, uint32_t number,
                         uint32_t *id, struct gtopo_error *error)
{
    struct gtopo_place place;
    struct gtopo_host *host;
    struct gtopo_shape *shape;
    struct gtopo_node node = {kind, 0, number};
    int status;

    if ((unsigned)kind >= GTOPO_OBJECT_KINDS || kind == GTOPO_MACHINE || kind == GTOPO_SWITCH)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "an object of kind \"%s\" cannot be added to a host",
                          gtopo_object_kind_name(kind));
    if (!gtopo_map_place(map, parent, &place) || place.host != map->host_count - 1)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "object %u is not of the host begun last", parent);
    host = &map->hosts[place.host];
    shape = &map->shapes[host->shape];
    if (shape->frozen)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the host is sealed");
    if (host->first_object + shape->node_count + 1 >= GTOPO_FABRIC_BASE)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a map holds at most 2^31 objects");
    node.parent = place.local;
    status = number_of(shape, &node, error);
    if (status)
        return status;
    if (add_node(shape, &host->values, node))
        return OUT_OF_MEMORY(error);
    map->sealed = 0;
    *id = host->first_object + (uint32_t)shape->node_count - 1;
    return 0;
}

int gtopo_map_add_switch(struct gtopo_map *map, const char *name, uint32_t *id, struct gtopo_error *error)
{
    struct gtopo_fabric_switch added;
    int status = take_name(map, name, &added.name, error);

    if (status)
        return status;
    if (gtopo_grow((void **)&map->switches, &map->switch_capacity, map->switch_count + 1, sizeof *map->switches) ||
        gtopo_values_add_object(&map->switch_values))
        return OUT_OF_MEMORY(error);
    map->sealed = 0;
    map->switches[map->switch_count] = added;
    *id = GTOPO_FABRIC_BASE + (uint32_t)map->switch_count++;
    give_name(map, added.name, *id);
    return 0;
}

static int check_link(const struct gtopo_map *map, const struct gtopo_link *link, struct gtopo_place ends[2],
                      struct gtopo_error *error)
{
    if (link->kind >= GTOPO_LINK_KINDS || !link->count)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a link needs a kind and a count of at least 1");
    for (int i = 0; i < 2; i++)
        if (!gtopo_map_place(map, link->ends[i], &ends[i]))
            return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a link ends at object %u, which is not there", link->ends[i]);
    if (link->nominal_Bps > INT64_MAX || link->capable_Bps > INT64_MAX)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a link's rate cannot be above 2^63 - 1 B/s");
    return 0;
}

/* A network link joins ports of NICs and switches, wherever they are. */
static int add_network_link(struct gtopo_map *map, const struct gtopo_link *link, uint32_t *id,
                            struct gtopo_error *error)
{
    for (int i = 0; i < 2; i++) {
        struct gtopo_object end;

        gtopo_map_object(map, link->ends[i], &end, NULL);
        if (end.kind != GTOPO_PORT && end.kind != GTOPO_SWITCH)
            return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a network link ends at a port or a switch, not at a %s",
                              gtopo_object_kind_name(end.kind));
        if (end.kind == GTOPO_PORT && link->ports[i])
            return gtopo_fail(error, GTOPO_EUSAGE, NULL, "only a switch's end of a link has a port number");
    }
    if (gtopo_grow((void **)&map->network, &map->network_capacity, map->network_count + 1, sizeof *map->network))
        return OUT_OF_MEMORY(error);
    map->sealed = 0;
    map->network[map->network_count] = *link;
    *id = GTOPO_FABRIC_BASE + (uint32_t)map->network_count++;
    return 0;
}

int gtopo_map_add_link(struct gtopo_map *map, const struct gtopo_link *link, uint32_t *id, struct gtopo_error *error)
{
    struct gtopo_place ends[2];
    struct gtopo_shape *shape;
    int status = check_link(map, link, ends, error);

    if (status)
        return status;
    if (link->kind == GTOPO_LINK_NETWORK)
        return add_network_link(map, link, id, error);
    if (ends[0].host != ends[1].host || ends[0].host == GTOPO_NONE || ends[0].host != map->host_count - 1 ||
        map->shapes[map->hosts[ends[0].host].shape].frozen || link->ports[0] || link->ports[1] ||
        link->ends[0] == link->ends[1])
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a %s link joins two different objects of the host begun last",
                          gtopo_link_kind_name(link->kind));
    shape = &map->shapes[map->hosts[ends[0].host].shape];
    if (gtopo_grow((void **)&shape->links, &shape->link_capacity, shape->link_count + 1, sizeof *shape->links))
        return OUT_OF_MEMORY(error);
    map->sealed = 0;
    shape->links[shape->link_count] = *link;
    shape->links[shape->link_count].ends[0] = ends[0].local;
    shape->links[shape->link_count].ends[1] = ends[1].local;
    *id = map->hosts[ends[0].host].first_link + (uint32_t)shape->link_count++;
    return 0;
}

/* ---- reading by number ---- */

/* The last host whose first object (or link) is not above the number. O(log hosts). */
static uint32_t host_of(const struct gtopo_map *map, uint32_t number, size_t first_offset)
{
    size_t low = 0, high = map->host_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint32_t first = *(const uint32_t *)((const char *)&map->hosts[middle] + first_offset);

        if (first <= number)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

int gtopo_map_place(const struct gtopo_map *map, uint32_t object, struct gtopo_place *place)
{
    if (object >= GTOPO_FABRIC_BASE) {
        place->host = GTOPO_NONE;
        place->local = object - GTOPO_FABRIC_BASE;
        return place->local < map->switch_count;
    }
    if (!map->host_count)
        return 0;
    place->host = host_of(map, object, offsetof(struct gtopo_host, first_object));
    place->local = object - map->hosts[place->host].first_object;
    return place->local < map->shapes[map->hosts[place->host].shape].node_count;
}

int gtopo_map_link_place(const struct gtopo_map *map, uint32_t link, struct gtopo_place *place)
{
    if (link >= GTOPO_FABRIC_BASE) {
        place->host = GTOPO_NONE;
        place->local = link - GTOPO_FABRIC_BASE;
        return place->local < map->network_count;
    }
    if (!map->host_count)
        return 0;
    place->host = host_of(map, link, offsetof(struct gtopo_host, first_link));
    place->local = link - map->hosts[place->host].first_link;
    return place->local < map->shapes[map->hosts[place->host].shape].link_count;
}

int gtopo_map_object(const struct gtopo_map *map, uint32_t id, struct gtopo_object *object, struct gtopo_error *error)
{
    struct gtopo_place place;
    const struct gtopo_node *node;

    if (!gtopo_map_place(map, id, &place))
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "there is no object %u in the map", id);
    memset(object, 0, sizeof *object);
    object->id = id;
    object->host = place.host;
    if (place.host == GTOPO_NONE) {
        object->kind = GTOPO_SWITCH;
        object->parent = GTOPO_NONE;
        object->number = place.local;
        return 0;
    }
    node = &map->shapes[map->hosts[place.host].shape].nodes[place.local];
    object->kind = node->kind;
    object->number = node->number;
    object->parent = node->parent == GTOPO_NONE ? GTOPO_NONE : map->hosts[place.host].first_object + node->parent;
    return 0;
}

int gtopo_map_link(const struct gtopo_map *map, uint32_t id, struct gtopo_link *link, struct gtopo_error *error)
{
    struct gtopo_place place;

    if (!gtopo_map_link_place(map, id, &place))
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "there is no link %u in the map", id);
    if (place.host == GTOPO_NONE) {
        *link = map->network[place.local];
        return 0;
    }
    *link = map->shapes[map->hosts[place.host].shape].links[place.local];
    link->ends[0] += map->hosts[place.host].first_object;
    link->ends[1] += map->hosts[place.host].first_object;
    return 0;
}

uint32_t gtopo_map_host_count(const struct gtopo_map *map)
{
    return (uint32_t)map->host_count;
}

const char *gtopo_map_host_name(const struct gtopo_map *map, uint32_t host)
{
    return host < map->host_count ? gtopo_texts_get(&map->texts, map->hosts[host].name) : NULL;
}

uint32_t gtopo_map_find_host(const struct gtopo_map *map, const char *name)
{
    uint32_t object = gtopo_map_find_name(map, name);
    struct gtopo_place place;

    if (object == GTOPO_NONE || !gtopo_map_place(map, object, &place))
        return GTOPO_NONE;
    return place.host;
}

uint32_t gtopo_map_shape_count(const struct gtopo_map *map)
{
    return (uint32_t)map->shape_count;
}

uint32_t gtopo_map_host_shape(const struct gtopo_map *map, uint32_t host)
{
    return host < map->host_count ? map->hosts[host].shape : GTOPO_NONE;
}

uint64_t gtopo_map_shape_fingerprint(const struct gtopo_map *map, uint32_t shape)
{
    return shape < map->shape_count ? map->shapes[shape].fingerprint : 0;
}

int gtopo_map_host_objects(const struct gtopo_map *map, uint32_t host, uint32_t *first, uint32_t *count,
                           struct gtopo_error *error)
{
    if (host >= map->host_count)
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "there is no host %u in the map", host);
    *first = map->hosts[host].first_object;
    *count = (uint32_t)map->shapes[map->hosts[host].shape].node_count;
    return 0;
}

int gtopo_map_host_links(const struct gtopo_map *map, uint32_t host, uint32_t *first, uint32_t *count,
                         struct gtopo_error *error)
{
    if (host >= map->host_count)
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "there is no host %u in the map", host);
    *first = map->hosts[host].first_link;
    *count = (uint32_t)map->shapes[map->hosts[host].shape].link_count;
    return 0;
}

uint32_t gtopo_map_switch_count(const struct gtopo_map *map)
{
    return (uint32_t)map->switch_count;
}

uint32_t gtopo_map_network_link_count(const struct gtopo_map *map)
{
    return (uint32_t)map->network_count;
}
