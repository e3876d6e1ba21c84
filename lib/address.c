/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: node3, node3/gpu2, node3/nic1:1, node3/gpu2@nic1, leaf4, leaf4:17. */
#include "lib/map.h"
#include <stdio.h>
#include <string.h>

#define SYNTAX "an address looks like node3, node3/gpu2, node3/nic1:1, node3/gpu2@nic1, leaf4 or leaf4:17"

const char *gtopo_local_name(const struct gtopo_shape *shape, uint32_t local, char text[GTOPO_LOCAL_NAME_MAX])
{
    const struct gtopo_node *node = &shape->nodes[local];

    if (node->kind == GTOPO_MACHINE)
        snprintf(text, GTOPO_LOCAL_NAME_MAX, "machine");
    else if (node->kind == GTOPO_PORT)
        snprintf(text, GTOPO_LOCAL_NAME_MAX, "nic%u:%u", shape->nodes[node->parent].number, node->number);
    else
        snprintf(text, GTOPO_LOCAL_NAME_MAX, "%s%u", gtopo_object_kind_name(node->kind), node->number);
    return text;
}

/* Read a number of 1 to 9 digits without leading zeros that ends the text; UINT32_MAX when it is none. */
static uint32_t parse_number(const char *text, size_t length)
{
    uint32_t number = 0;

    if (!length || length > 9 || (length > 1 && text[0] == '0'))
        return UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return UINT32_MAX;
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    return number;
}

uint32_t gtopo_local_find(const struct gtopo_shape *shape, const char *name, size_t length)
{
    const char *colon = memchr(name, ':', length);
    size_t word = colon ? (size_t)(colon - name) : length;
    size_t letters = word;
    uint32_t number, object;

    if (length == 7 && !memcmp(name, "machine", 7))
        return 0;
    while (letters && name[letters - 1] >= '0' && name[letters - 1] <= '9')
        letters--;
    number = parse_number(name + letters, word - letters);
    if (number == UINT32_MAX)
        return GTOPO_NONE;
    for (unsigned kind = GTOPO_PACKAGE; kind < GTOPO_SWITCH; kind++) {
        const char *kind_name = gtopo_object_kind_name(kind);

        if (kind == GTOPO_PORT || strlen(kind_name) != letters || memcmp(kind_name, name, letters))
            continue;
        object = gtopo_shape_find(shape, kind, GTOPO_NONE, number);
        if (!colon || object == GTOPO_NONE)
            return object;
        if (kind != GTOPO_NIC)
            return GTOPO_NONE;
        number = parse_number(colon + 1, length - word - 1);
        return number == UINT32_MAX ? GTOPO_NONE : gtopo_shape_find(shape, GTOPO_PORT, object, number);
    }
    return GTOPO_NONE;
}

/* The host or switch that begins an address, and what of the text is left behind its "/" or ":". */
static uint32_t parse_owner(const struct gtopo_map *map, const char **text)
{
    size_t length = strcspn(*text, "/:@");
    char name[256];
    uint32_t object;

    if (length >= sizeof name)
        return GTOPO_NONE;
    memcpy(name, *text, length);
    name[length] = 0;
    object = gtopo_map_find_name(map, name);
    if (object != GTOPO_NONE)
        *text += length;
    return object;
}

static int parse_switch_port(const char *rest, struct gtopo_address *address, const char *text,
                             struct gtopo_error *error)
{
    uint32_t port;

    if (!*rest)
        return 0;
    port = *rest == ':' ? parse_number(rest + 1, strlen(rest + 1)) : UINT32_MAX;
    if (port == UINT32_MAX || port > UINT16_MAX)
        return gtopo_fail(error, GTOPO_EUSAGE, SYNTAX, "\"%.300s\" is not the address of a switch's port", text);
    address->port = port;
    return 0;
}

/* "gpu2" or "gpu2@nic1" in a host. */
static int parse_in_host(const struct gtopo_map *map, uint32_t host, const char *rest, struct gtopo_address *address,
                         const char *text, struct gtopo_error *error)
{
    const struct gtopo_shape *shape = &map->shapes[map->hosts[host].shape];
    const char *at = strchr(rest, '@');
    size_t length = at ? (size_t)(at - rest) : strlen(rest);
    uint32_t object = gtopo_local_find(shape, rest, length);
    uint32_t via = at ? gtopo_local_find(shape, at + 1, strlen(at + 1)) : GTOPO_NONE;

    if (object == GTOPO_NONE || (at && via == GTOPO_NONE)) {
        const char *part = object == GTOPO_NONE ? rest : at + 1;

        return gtopo_fail(error, GTOPO_ENOTFOUND, "`gtopo-bench show` lists what is in the map; " SYNTAX,
                          "\"%.200s\": host \"%.200s\" has no \"%.*s\"", text, gtopo_map_host_name(map, host),
                          (int)strcspn(part, "@"), part);
    }
    address->object = map->hosts[host].first_object + object;
    address->via = at ? map->hosts[host].first_object + via : GTOPO_NONE;
    return 0;
}

int gtopo_address_parse(const struct gtopo_map *map, const char *text, struct gtopo_address *address,
                        struct gtopo_error *error)
{
    struct gtopo_address parsed = {GTOPO_NONE, GTOPO_NONE, 0};
    const char *rest = text;
    struct gtopo_place place;
    uint32_t owner;
    int status;

    if (!gtopo_text_is_clean(text))
        return gtopo_fail(error, GTOPO_EUSAGE, SYNTAX, "the address is not UTF-8 or holds a control character");
    owner = parse_owner(map, &rest);
    if (owner == GTOPO_NONE && map->host_count == 1 && !strchr(text, '/'))
        status = parse_in_host(map, 0, text, &parsed, text, error);
    else if (owner == GTOPO_NONE)
        return gtopo_fail(error, GTOPO_ENOTFOUND, "`gtopo-bench show` lists what is in the map; " SYNTAX,
                          "no host or switch of the map begins the address \"%.300s\"", text);
    else {
        gtopo_map_place(map, owner, &place);
        parsed.object = owner;
        if (place.host == GTOPO_NONE)
            status = parse_switch_port(rest, &parsed, text, error);
        else if (*rest == '/')
            status = parse_in_host(map, place.host, rest + 1, &parsed, text, error);
        else
            status = *rest ? gtopo_fail(error, GTOPO_EUSAGE, SYNTAX, "\"%.300s\" is not an address", text) : 0;
    }
    if (!status)
        *address = parsed;
    return status;
}

/* ---- ends ---- */

#define AN_END "name a memory (numa0, gpu0), a port (nic0:1), or a memory through a port (gpu0@nic0:1)"

static uint32_t kind_of(const struct gtopo_map *map, uint32_t id)
{
    struct gtopo_object object;

    return gtopo_map_object(map, id, &object, NULL) ? GTOPO_OBJECT_KINDS : object.kind;
}

/* The port that a NIC stands for. */
static int find_port(const struct gtopo_map *map, uint32_t *id, struct gtopo_error *error)
{
    uint32_t first, count, port = GTOPO_NONE, ports = 0;
    char address[GTOPO_ADDRESS_MAX], hint[GTOPO_LOCAL_NAME_MAX + 64];
    struct gtopo_object object;

    gtopo_map_object(map, *id, &object, NULL);
    gtopo_map_host_objects(map, object.host, &first, &count, NULL);
    for (uint32_t other = first; other < first + count; other++) {
        gtopo_map_object(map, other, &object, NULL);
        if (object.kind != GTOPO_PORT || object.parent != *id)
            continue;
        if (!ports++)
            port = other;
    }
    gtopo_address_format(map, *id, address);
    if (!ports)
        return gtopo_fail(error, GTOPO_EMISSING, "load its driver; `gtopo-bench show` lists the ports of this host",
                          "%.400s has no port", address);
    gtopo_map_object(map, port, &object, NULL);
    snprintf(hint, sizeof hint, "name one, as %.60s:%u", strrchr(address, '/') + 1, object.number);
    if (ports > 1)
        return gtopo_fail(error, GTOPO_EUSAGE, hint, "%.400s has %u ports", address, ports);
    *id = port;
    return 0;
}

int gtopo_end_parse(const struct gtopo_map *map, const char *text, struct gtopo_end *end, struct gtopo_error *error)
{
    struct gtopo_address address;
    struct gtopo_end parsed;
    uint32_t kind;
    int status = gtopo_address_parse(map, text, &address, error);

    if (status)
        return status;
    parsed = (struct gtopo_end){address.object, address.via};
    kind = kind_of(map, parsed.memory);
    if (parsed.via == GTOPO_NONE && (kind == GTOPO_PORT || kind == GTOPO_NIC))
        parsed = (struct gtopo_end){GTOPO_NONE, address.object};
    if (parsed.via != GTOPO_NONE && kind_of(map, parsed.via) == GTOPO_NIC) {
        status = find_port(map, &parsed.via, error);
        if (status)
            return status;
    }
    kind = parsed.via == GTOPO_NONE ? GTOPO_PORT : kind_of(map, parsed.via);
    if (kind != GTOPO_PORT && kind != GTOPO_PACKAGE)
        return gtopo_fail(error, GTOPO_EUSAGE, AN_END, "\"%.300s\": no memory is reached through that", text);
    kind = parsed.memory == GTOPO_NONE ? GTOPO_NUMA : kind_of(map, parsed.memory);
    if (kind != GTOPO_NUMA && kind != GTOPO_GPU)
        return gtopo_fail(error, GTOPO_EUSAGE, AN_END, "\"%.300s\" is neither a memory nor a port", text);
    *end = parsed;
    return 0;
}

/* ---- writing ---- */

const char *gtopo_address_format(const struct gtopo_map *map, uint32_t object, char text[GTOPO_ADDRESS_MAX])
{
    char local[GTOPO_LOCAL_NAME_MAX];
    struct gtopo_place place;

    if (!gtopo_map_place(map, object, &place))
        snprintf(text, GTOPO_ADDRESS_MAX, "-");
    else if (place.host == GTOPO_NONE)
        snprintf(text, GTOPO_ADDRESS_MAX, "%s", gtopo_texts_get(&map->texts, map->switches[place.local].name));
    else if (!place.local)
        snprintf(text, GTOPO_ADDRESS_MAX, "%s", gtopo_map_host_name(map, place.host));
    else
        snprintf(text, GTOPO_ADDRESS_MAX, "%s/%s", gtopo_map_host_name(map, place.host),
                 gtopo_local_name(&map->shapes[map->hosts[place.host].shape], place.local, local));
    return text;
}

const char *gtopo_end_format(const struct gtopo_map *map, struct gtopo_end end, char text[GTOPO_ADDRESS_MAX])
{
    char local[GTOPO_LOCAL_NAME_MAX];
    struct gtopo_place place;
    size_t length;

    if (end.memory == GTOPO_NONE)
        return gtopo_address_format(map, end.via, text);
    gtopo_address_format(map, end.memory, text);
    if (end.via == GTOPO_NONE || !gtopo_map_place(map, end.via, &place) || place.host == GTOPO_NONE)
        return text;
    length = strlen(text);
    snprintf(text + length, GTOPO_ADDRESS_MAX - length, "@%s",
             gtopo_local_name(&map->shapes[map->hosts[place.host].shape], place.local, local));
    return text;
}
