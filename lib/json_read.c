/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a map. Nothing in a file is trusted: every type, name, number and reference is checked, and
 * everything goes through the functions that fill a map, which check again what they store. A file that says
 * more than this version knows is refused, so that nothing is lost when it is written again.
 */
#include "lib/file.h"
#include "lib/json.h"
#include "lib/json_member.h"
#include "lib/map.h"
#include <arpa/inet.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT_B ((size_t)4 << 30)

GTOPO_WORDS(gtopo_object_kind_name, gtopo_object_kind)
GTOPO_WORDS(gtopo_link_kind_name, gtopo_link_kind)
GTOPO_WORDS(gtopo_gid_type_name, gtopo_gid_type)

/* ---- attributes ---- */

static int read_gids(struct gtopo_reader *r, uint32_t id, const json_t *table)
{
    static const char *const keys[] = {"index", "gid", "type", NULL};
    size_t count = json_array_size(table);
    struct gtopo_gid *gids = calloc(count + 1, sizeof *gids);
    struct gtopo_error cause;
    int status = gids ? 0 : gtopo_refused(r, GTOPO_ENOMEM, NULL);

    if (!status && !json_is_array(table))
        status = gtopo_bad(r, "\"gids\" has to be an array");
    for (size_t i = 0; !status && i < count; i++) {
        json_t *line = json_array_get(table, i);
        const char *text;

        status = gtopo_check_keys(r, line, keys);
        if (!status)
            status = gtopo_get_uint32(r, line, "index", 0, &gids[i].index);
        if (!status)
            status = gtopo_get_word(r, line, "type", GTOPO_GID_ROCE_V2 + 1, gtopo_gid_type_name_, &gids[i].type);
        if (!status)
            status = gtopo_get_text(r, line, "gid", &text);
        if (!status && inet_pton(AF_INET6, text, gids[i].raw) != 1)
            status = gtopo_bad(r, "\"%.60s\" is not a GID", text);
    }
    if (!status) {
        status = gtopo_map_set_gids(r->map, id, gids, count, &cause);
        status = status ? gtopo_refused(r, status, &cause) : 0;
    }
    free(gids);
    return status;
}

static int read_value(struct gtopo_reader *r, uint32_t id, enum gtopo_attribute attribute, const json_t *value)
{
    const char *key = gtopo_attribute_key(attribute);
    struct gtopo_error cause = {0};
    uint64_t number;
    int status;

    if (json_is_null(value))
        status = gtopo_map_set_unknown(r->map, id, attribute, &cause);
    else
        switch (gtopo_attribute_type(attribute)) {
        case GTOPO_VALUE_TEXT:
            if (!json_is_string(value))
                return gtopo_bad(r, "\"%s\" has to be a text or null", key);
            status = gtopo_map_set_text(r->map, id, attribute, json_string_value(value), &cause);
            break;
        case GTOPO_VALUE_ID:
            status = gtopo_get_identifier(r, key, value, &number);
            if (status)
                return status;
            status = gtopo_map_set_number(r->map, id, attribute, number, &cause);
            break;
        case GTOPO_VALUE_GIDS:
            return read_gids(r, id, value);
        default:
            if (!json_is_integer(value) || json_integer_value(value) < 0)
                return gtopo_bad(r, "\"%s\" has to be a whole number that is not negative, or null", key);
            status = gtopo_map_set_number(r->map, id, attribute, (uint64_t)json_integer_value(value), &cause);
        }
    return status ? gtopo_refused(r, status, &cause) : 0;
}

/* Every member but those named in `structure` is an attribute; identity: 1 for those of a host, 0 of a shape,
 * -1 any. */
static int read_values(struct gtopo_reader *r, uint32_t id, json_t *object, const char *const *structure, int identity)
{
    const char *key;
    json_t *value;
    int status = 0;

    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        enum gtopo_attribute attribute;

        while (structure[i] && strcmp(structure[i], key))
            i++;
        if (structure[i])
            continue;
        attribute = gtopo_attribute_of_key(key);
        if (attribute == GTOPO_ATTRIBUTES)
            return gtopo_bad(r, "\"%.60s\" is not known here", key);
        if (identity >= 0 && gtopo_attribute_is_identity(attribute) != identity)
            return gtopo_bad(r, "\"%s\" belongs to %s", key, identity ? "the shape" : "the host");
        status = read_value(r, id, attribute, value);
        if (status)
            break;
    }
    return status;
}

/* ---- shapes ---- */

/* The object of a name in the host that is being read. */
static uint32_t find_local(const struct gtopo_reader *r, const char *name)
{
    const struct gtopo_host *host = &r->map->hosts[r->map->host_count - 1];
    uint32_t local = gtopo_local_find(&r->map->shapes[host->shape], name, strlen(name));

    return local == GTOPO_NONE ? GTOPO_NONE : host->first_object + local;
}

/* The number that a port's name carries behind its colon. */
static uint32_t port_number(const char *name)
{
    const char *colon = strchr(name, ':');

    return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

static int read_node(struct gtopo_reader *r, json_t *object, int first)
{
    static const char *const structure[] = {"name", "kind", "parent", NULL};
    const struct gtopo_host *host = &r->map->hosts[r->map->host_count - 1];
    const char *name, *parent;
    char given[GTOPO_LOCAL_NAME_MAX];
    struct gtopo_error cause;
    uint32_t kind, id = host->first_object, parent_id;
    int status;

    if (!json_is_object(object))
        return gtopo_bad(r, "has to be an object");
    if ((status = gtopo_get_text(r, object, "name", &name)) ||
        (status = gtopo_get_text_or_null(r, object, "parent", &parent)) ||
        (status = gtopo_get_word(r, object, "kind", GTOPO_OBJECT_KINDS, gtopo_object_kind_name_, &kind)))
        return status;
    if (first != (kind == GTOPO_MACHINE) || first != !parent)
        return gtopo_bad(r, "the machine, and nothing else, comes first and has no parent");
    if (!first) {
        parent_id = find_local(r, parent);
        if (parent_id == GTOPO_NONE)
            return gtopo_bad(r, "\"parent\" names \"%.60s\", which does not come before it", parent);
        status = gtopo_map_add_object(r->map, kind, parent_id, port_number(name), &id, &cause);
        if (status)
            return gtopo_refused(r, status, &cause);
    }
    gtopo_local_name(&r->map->shapes[host->shape], id - host->first_object, given);
    if (strcmp(given, name))
        return gtopo_bad(r, "\"name\" has to be \"%s\", not \"%.60s\": objects of a kind are numbered in their order",
                         given, name);
    return read_values(r, id, object, structure, 0);
}

static int read_link_facts(struct gtopo_reader *r, const json_t *object, struct gtopo_link *link)
{
    int status;

    if ((status = gtopo_get_word(r, object, "kind", GTOPO_LINK_KINDS, gtopo_link_kind_name_, &link->kind)) ||
        (status = gtopo_get_uint32(r, object, "count", 0, &link->count)) ||
        (status = gtopo_get_uint32(r, object, "width", 1, &link->width)) ||
        (status = gtopo_get_uint32(r, object, "capable_width", 1, &link->capable_width)) ||
        (status = gtopo_get_uint32(r, object, "speed_MTps", 1, &link->speed_MTps)) ||
        (status = gtopo_get_uint32(r, object, "capable_speed_MTps", 1, &link->capable_speed_MTps)) ||
        (status = gtopo_get_number(r, object, "nominal_Bps", INT64_MAX, 1, &link->nominal_Bps)) ||
        (status = gtopo_get_number(r, object, "capable_Bps", INT64_MAX, 1, &link->capable_Bps)))
        return status;
    return 0;
}

static int get_ends(struct gtopo_reader *r, const json_t *object, const char *ends[2])
{
    const json_t *array = json_object_get(object, "ends");

    for (size_t i = 0; i < 2; i++) {
        ends[i] = json_string_value(json_array_get(array, i));
        if (!ends[i] || json_array_size(array) != 2)
            return gtopo_bad(r, "\"ends\" has to be an array of two texts");
    }
    return 0;
}

static const char *const link_keys[] = {
    "kind", "ends", "count", "width", "capable_width", "speed_MTps", "nominal_Bps", "capable_Bps", "capable_speed_MTps",
    NULL};

static int read_link(struct gtopo_reader *r, json_t *object)
{
    struct gtopo_link link = {0};
    struct gtopo_error cause;
    const char *ends[2];
    uint32_t id;
    int status = gtopo_check_keys(r, object, link_keys);

    if (!status)
        status = read_link_facts(r, object, &link);
    if (!status)
        status = get_ends(r, object, ends);
    for (int i = 0; !status && i < 2; i++) {
        link.ends[i] = find_local(r, ends[i]);
        if (link.ends[i] == GTOPO_NONE)
            status = gtopo_bad(r, "\"ends\" names \"%.60s\", which the shape does not have", ends[i]);
    }
    if (!status && link.kind == GTOPO_LINK_NETWORK)
        status = gtopo_bad(r, "network links stand under \"cables\"");
    if (status)
        return status;
    status = gtopo_map_add_link(r->map, &link, &id, &cause);
    return status ? gtopo_refused(r, status, &cause) : 0;
}

/* Read a shape of the file into the host that was begun last. */
static int read_shape(struct gtopo_reader *r, size_t index)
{
    static const char *const keys[] = {"fingerprint", "objects", "links", NULL};
    json_t *shape = json_array_get(r->shapes, index), *objects, *links;
    uint64_t fingerprint;
    int status;

    gtopo_at(r, "shapes", index, NULL, 0);
    if ((status = gtopo_check_keys(r, shape, keys)) ||
        (status = gtopo_get_identifier(r, "fingerprint", json_object_get(shape, "fingerprint"), &fingerprint)) ||
        (status = gtopo_get_array(r, shape, "objects", &objects)) ||
        (status = gtopo_get_array(r, shape, "links", &links)))
        return status;
    if (!json_array_size(objects))
        return gtopo_bad(r, "\"objects\" holds no machine");
    for (size_t i = 0; !status && i < json_array_size(objects); i++) {
        gtopo_at(r, "shapes", index, "objects", i);
        status = read_node(r, json_array_get(objects, i), !i);
    }
    for (size_t i = 0; !status && i < json_array_size(links); i++) {
        gtopo_at(r, "shapes", index, "links", i);
        status = read_link(r, json_array_get(links, i));
    }
    return status;
}

/* ---- hosts and switches ---- */

static int read_host(struct gtopo_reader *r, json_t *object, size_t index)
{
    static const char *const keys[] = {"name", "shape", "objects", NULL}, *const none[] = {NULL};
    struct gtopo_error cause;
    const char *name, *local;
    json_t *objects, *values;
    uint64_t shape;
    uint32_t host;
    int status = gtopo_check_keys(r, object, keys);

    if (status || (status = gtopo_get_text(r, object, "name", &name)) ||
        (status = gtopo_get_number(r, object, "shape", INT32_MAX, 0, &shape)))
        return status;
    objects = json_object_get(object, "objects");
    if (!json_is_object(objects))
        return gtopo_bad(r, "\"objects\" has to be an object");
    if (shape >= json_array_size(r->shapes))
        return gtopo_bad(r, "\"shape\" is %llu, but there are %zu shapes", (unsigned long long)shape,
                         json_array_size(r->shapes));
    if (r->first_host[shape] == GTOPO_NONE)
        status = gtopo_map_add_host(r->map, name, &host, &cause);
    else
        status = gtopo_map_add_host_like(r->map, name, r->first_host[shape], &host, &cause);
    if (status)
        return gtopo_refused(r, status, &cause);
    if (r->first_host[shape] == GTOPO_NONE) {
        r->first_host[shape] = host;
        status = read_shape(r, shape);
        gtopo_at(r, "hosts", index, NULL, 0);
    }
    json_object_foreach(objects, local, values)
    {
        uint32_t id = status ? GTOPO_NONE : find_local(r, local);

        if (status)
            break;
        if (id == GTOPO_NONE || !json_is_object(values))
            return gtopo_bad(r, "\"objects\" holds \"%.60s\", which is no object of the shape with its values", local);
        status = read_values(r, id, values, none, 1);
    }
    return status;
}

static int read_switch(struct gtopo_reader *r, json_t *object, size_t index)
{
    static const char *const structure[] = {"name", NULL};
    struct gtopo_error cause;
    const char *name;
    uint32_t id;
    int status =
        json_is_object(object) ? gtopo_get_text(r, object, "name", &name) : gtopo_bad(r, "has to be an object");

    (void)index;
    if (status)
        return status;
    status = gtopo_map_add_switch(r->map, name, &id, &cause);
    return status ? gtopo_refused(r, status, &cause) : read_values(r, id, object, structure, -1);
}

static int read_cable(struct gtopo_reader *r, json_t *object, size_t index)
{
    struct gtopo_link link = {0};
    struct gtopo_error cause;
    const char *ends[2];
    uint32_t id;
    int status = gtopo_check_keys(r, object, link_keys);

    (void)index;
    if (!status)
        status = read_link_facts(r, object, &link);
    if (!status)
        status = get_ends(r, object, ends);
    for (int i = 0; !status && i < 2; i++) {
        struct gtopo_address address;

        status = gtopo_address_parse(r->map, ends[i], &address, &cause);
        if (status)
            return gtopo_refused(r, status, &cause);
        if (address.via != GTOPO_NONE)
            return gtopo_bad(r, "\"%.60s\" is no end of a cable", ends[i]);
        link.ends[i] = address.object;
        link.ports[i] = (uint16_t)address.port;
    }
    if (!status && link.kind != GTOPO_LINK_NETWORK)
        status = gtopo_bad(r, "a cable is of kind \"network\"");
    if (status)
        return status;
    status = gtopo_map_add_link(r->map, &link, &id, &cause);
    return status ? gtopo_refused(r, status, &cause) : 0;
}

/* ---- the document ---- */

static int check_head(struct gtopo_reader *r, json_t *root)
{
    const json_t *version = json_object_get(root, "version");
    const char *format = json_string_value(json_object_get(root, "format"));

    snprintf(r->place, sizeof r->place, "top level");
    if (!format || strcmp(format, GTOPO_MAP_FORMAT))
        return gtopo_bad(r, "this is no topology map: \"format\" has to be \"%s\"", GTOPO_MAP_FORMAT);
    if (!json_is_integer(version) || json_integer_value(version) < 1)
        return gtopo_bad(r, "\"version\" has to be a whole number from 1");
    if (json_integer_value(version) > GTOPO_MAP_VERSION)
        return gtopo_fail(r->error, GTOPO_EVERSION,
                          "read it with the gputopo that wrote it (\"producer\"), or a newer one",
                          "%.200s is a map of version %lld; gputopo %s reads version %d", r->name,
                          (long long)json_integer_value(version), gtopo_version(), GTOPO_MAP_VERSION);
    return 0;
}

static int read_document(struct gtopo_reader *r, json_t *root)
{
    static const char *const keys[] = {"format",   "version", "producer",     "shapes",   "hosts",
                                       "switches", "cables",  "measurements", "findings", NULL};
    static const struct {
        const char *key;
        int (*read)(struct gtopo_reader *r, json_t *element, size_t index);
    } sections[] = {{"hosts", read_host},
                    {"switches", read_switch},
                    {"cables", read_cable},
                    {"measurements", gtopo_read_measurement},
                    {"findings", gtopo_read_finding}};
    const char *producer;
    int status;

    if ((status = check_head(r, root)) || (status = gtopo_check_keys(r, root, keys)) ||
        (status = gtopo_get_text(r, root, "producer", &producer)) ||
        (status = gtopo_get_array(r, root, "shapes", &r->shapes)))
        return status;
    r->first_host = malloc((json_array_size(r->shapes) + 1) * sizeof *r->first_host);
    if (!r->first_host)
        return gtopo_refused(r, GTOPO_ENOMEM, NULL);
    memset(r->first_host, 0xff, (json_array_size(r->shapes) + 1) * sizeof *r->first_host);
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        json_t *array;

        snprintf(r->place, sizeof r->place, "top level");
        status = gtopo_get_array(r, root, sections[s].key, &array);
        for (size_t i = 0; !status && i < json_array_size(array); i++) {
            gtopo_at(r, sections[s].key, i, NULL, 0);
            status = sections[s].read(r, json_array_get(array, i), i);
        }
        if (status)
            return status;
    }
    for (size_t i = 0; i < json_array_size(r->shapes); i++)
        if (r->first_host[i] == GTOPO_NONE) {
            gtopo_at(r, "shapes", i, NULL, 0);
            return gtopo_bad(r, "no host has this shape");
        }
    return 0;
}

int gtopo_map_read(const void *data, size_t size, const char *name, struct gtopo_map **map, struct gtopo_error *error)
{
    struct gtopo_reader r = {.map = gtopo_map_new(), .name = name, .error = error};
    json_error_t at_line;
    json_t *root = NULL;
    int status;

    if (!r.map)
        return gtopo_refused(&r, GTOPO_ENOMEM, NULL);
    root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &at_line);
    if (!root && (!at_line.text[0] || json_error_code(&at_line) == json_error_out_of_memory))
        status = gtopo_refused(&r, GTOPO_ENOMEM, NULL); /* jansson often says nothing then */
    else if (!root)
        status = gtopo_fail(error, GTOPO_EFORMAT, "is the file whole? write it again with `gtopo-bench map -o FILE`",
                            "%.200s:%d:%d: this is not JSON: %.160s", name, at_line.line, at_line.column, at_line.text);
    else
        status = read_document(&r, root);
    if (!status)
        status = gtopo_map_seal(r.map, error);
    free(r.first_host);
    json_decref(root);
    if (status) {
        gtopo_map_free(r.map);
        return status;
    }
    *map = r.map;
    return 0;
}

int gtopo_map_load(const char *path, struct gtopo_map **map, struct gtopo_error *error)
{
    char *data = NULL;
    size_t size;
    int status = gtopo_file_read(path, FILE_LIMIT_B, &data, &size, error);

    if (!status)
        status = gtopo_map_read(data, size, path, map, error);
    free(data);
    return status;
}
