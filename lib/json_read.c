/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a map. Nothing in a file is trusted: every type, name, number and reference is checked, and everything goes
 * through the functions that fill a map, which check again what they store. A file that says more than this version
 * knows is refused, so that nothing is lost when it is written again.
 */
#include "lib/file.h"
#include "lib/json.h"
#include "lib/map.h"
#include <arpa/inet.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT_B ((size_t)4 << 30)

struct reader {
    struct gtopo_map *map;
    const char *name; /* of the source, for messages */
    char place[128];  /* in the document: "shapes[0].objects[3]" */
    struct gtopo_error *error;
    json_t *shapes;
    uint32_t *first_host; /* of each shape in the file: who has it, or GTOPO_NONE */
};

/* ---- messages ---- */

GTOPO_PRINTF(2, 3) static int bad(struct reader *r, const char *format, ...)
{
    char what[300];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return gtopo_fail(r->error, GTOPO_EFORMAT, "doc/map.schema.json describes the format", "%.120s: %s: %s", r->name,
                      r->place, what);
}

/* A failure of a function that fills the map becomes one of the file, at its place. */
static int refused(struct reader *r, int status, const struct gtopo_error *cause)
{
    if (status == GTOPO_ENOMEM)
        return gtopo_fail(r->error, GTOPO_ENOMEM, NULL, "out of memory while reading %.200s", r->name);
    return bad(r, "%.200s", cause->message);
}

static void at(struct reader *r, const char *section, size_t i, const char *part, size_t j)
{
    if (part)
        snprintf(r->place, sizeof r->place, "%s[%zu].%s[%zu]", section, i, part, j);
    else
        snprintf(r->place, sizeof r->place, "%s[%zu]", section, i);
}

/* ---- typed members ---- */

static int get_text(struct reader *r, const json_t *object, const char *key, const char **text)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_string(value))
        return bad(r, "\"%s\" has to be a text", key);
    *text = json_string_value(value);
    return 0;
}

static int get_text_or_null(struct reader *r, const json_t *object, const char *key, const char **text)
{
    *text = NULL;
    return json_is_null(json_object_get(object, key)) ? 0 : get_text(r, object, key, text);
}

/* A whole number from 0 to `highest`; null counts as 0 where `nullable`. */
static int get_number(struct reader *r, const json_t *object, const char *key, uint64_t highest, int nullable,
                      uint64_t *number)
{
    const json_t *value = json_object_get(object, key);

    *number = 0;
    if (nullable && json_is_null(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > highest)
        return bad(r, "\"%s\" has to be a whole number from 0 to %llu%s", key, (unsigned long long)highest,
                   nullable ? ", or null" : "");
    *number = (uint64_t)json_integer_value(value);
    return 0;
}

static int get_uint32(struct reader *r, const json_t *object, const char *key, int nullable, uint32_t *number)
{
    uint64_t wide;
    int status = get_number(r, object, key, UINT32_MAX, nullable, &wide);

    *number = (uint32_t)wide;
    return status;
}

/* One of the words that name_of gives for 0 … count - 1. */
static int get_word(struct reader *r, const json_t *object, const char *key, unsigned count,
                    const char *(*name_of)(unsigned), uint32_t *value)
{
    const char *word;
    int status = get_text(r, object, key, &word);

    if (status)
        return status;
    for (*value = 0; *value < count; ++*value)
        if (!strcmp(name_of(*value), word))
            return 0;
    return bad(r, "\"%s\" cannot be \"%.60s\"", key, word);
}

#define WORDS(function, type)                                                                                          \
    static const char *function##_(unsigned value)                                                                     \
    {                                                                                                                  \
        return function((enum type)value);                                                                             \
    }
WORDS(gtopo_object_kind_name, gtopo_object_kind)
WORDS(gtopo_link_kind_name, gtopo_link_kind)
WORDS(gtopo_gid_type_name, gtopo_gid_type)
WORDS(gtopo_provenance_name, gtopo_provenance)
WORDS(gtopo_severity_name, gtopo_severity)

static int get_array(struct reader *r, const json_t *object, const char *key, json_t **array)
{
    *array = json_object_get(object, key);
    return json_is_array(*array) ? 0 : bad(r, "\"%s\" has to be an array", key);
}

/* Refuse what is not among the keys, a list closed by NULL. */
static int check_keys(struct reader *r, json_t *object, const char *const *keys)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return bad(r, "has to be an object");
    json_object_foreach(object, key, value)
    {
        size_t i = 0;

        while (keys[i] && strcmp(keys[i], key))
            i++;
        if (!keys[i])
            return bad(r, "\"%.60s\" is not known here", key);
    }
    return 0;
}

/* ---- attributes ---- */

static int read_gids(struct reader *r, uint32_t id, const json_t *table)
{
    static const char *const keys[] = {"index", "gid", "type", NULL};
    size_t count = json_array_size(table);
    struct gtopo_gid *gids = calloc(count + 1, sizeof *gids);
    struct gtopo_error cause;
    int status = gids ? 0 : refused(r, GTOPO_ENOMEM, NULL);

    if (!status && !json_is_array(table))
        status = bad(r, "\"gids\" has to be an array");
    for (size_t i = 0; !status && i < count; i++) {
        json_t *line = json_array_get(table, i);
        const char *text;

        status = check_keys(r, line, keys);
        if (!status)
            status = get_uint32(r, line, "index", 0, &gids[i].index);
        if (!status)
            status = get_word(r, line, "type", GTOPO_GID_ROCE_V2 + 1, gtopo_gid_type_name_, &gids[i].type);
        if (!status)
            status = get_text(r, line, "gid", &text);
        if (!status && inet_pton(AF_INET6, text, gids[i].raw) != 1)
            status = bad(r, "\"%.60s\" is not a GID", text);
    }
    if (!status) {
        status = gtopo_map_set_gids(r->map, id, gids, count, &cause);
        status = status ? refused(r, status, &cause) : 0;
    }
    free(gids);
    return status;
}

/* "0x" and 16 hexadecimal digits in lower case. */
static int read_identifier(struct reader *r, const char *key, const json_t *value, uint64_t *number)
{
    const char *text = json_string_value(value);

    if (!text || strlen(text) != 18 || strncmp(text, "0x", 2) || strspn(text + 2, "0123456789abcdef") != 16)
        return bad(r, "\"%s\" has to be a text of \"0x\" and 16 hexadecimal digits", key);
    *number = strtoull(text + 2, NULL, 16);
    return 0;
}

static int read_value(struct reader *r, uint32_t id, enum gtopo_attribute attribute, const json_t *value)
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
                return bad(r, "\"%s\" has to be a text or null", key);
            status = gtopo_map_set_text(r->map, id, attribute, json_string_value(value), &cause);
            break;
        case GTOPO_VALUE_ID:
            status = read_identifier(r, key, value, &number);
            if (status)
                return status;
            status = gtopo_map_set_number(r->map, id, attribute, number, &cause);
            break;
        case GTOPO_VALUE_GIDS:
            return read_gids(r, id, value);
        default:
            if (!json_is_integer(value) || json_integer_value(value) < 0)
                return bad(r, "\"%s\" has to be a whole number that is not negative, or null", key);
            status = gtopo_map_set_number(r->map, id, attribute, (uint64_t)json_integer_value(value), &cause);
        }
    return status ? refused(r, status, &cause) : 0;
}

/* Every member but those named in `structure` is an attribute; identity: 1 for those of a host, 0 of a shape, -1 any. */
static int read_values(struct reader *r, uint32_t id, json_t *object, const char *const *structure, int identity)
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
            return bad(r, "\"%.60s\" is not known here", key);
        if (identity >= 0 && gtopo_attribute_is_identity(attribute) != identity)
            return bad(r, "\"%s\" belongs to %s", key, identity ? "the shape" : "the host");
        status = read_value(r, id, attribute, value);
        if (status)
            break;
    }
    return status;
}

/* ---- shapes ---- */

/* The object of a name in the host that is being read. */
static uint32_t find_local(const struct reader *r, const char *name)
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

static int read_node(struct reader *r, json_t *object, int first)
{
    static const char *const structure[] = {"name", "kind", "parent", NULL};
    const struct gtopo_host *host = &r->map->hosts[r->map->host_count - 1];
    const char *name, *parent;
    char given[GTOPO_LOCAL_NAME_MAX];
    struct gtopo_error cause;
    uint32_t kind, id = host->first_object, parent_id;
    int status;

    if (!json_is_object(object))
        return bad(r, "has to be an object");
    if ((status = get_text(r, object, "name", &name)) || (status = get_text_or_null(r, object, "parent", &parent)) ||
        (status = get_word(r, object, "kind", GTOPO_OBJECT_KINDS, gtopo_object_kind_name_, &kind)))
        return status;
    if (first != (kind == GTOPO_MACHINE) || first != !parent)
        return bad(r, "the machine, and nothing else, comes first and has no parent");
    if (!first) {
        parent_id = find_local(r, parent);
        if (parent_id == GTOPO_NONE)
            return bad(r, "\"parent\" names \"%.60s\", which does not come before it", parent);
        status = gtopo_map_add_object(r->map, kind, parent_id, port_number(name), &id, &cause);
        if (status)
            return refused(r, status, &cause);
    }
    gtopo_local_name(&r->map->shapes[host->shape], id - host->first_object, given);
    if (strcmp(given, name))
        return bad(r, "\"name\" has to be \"%s\", not \"%.60s\": objects of a kind are numbered in their order", given,
                   name);
    return read_values(r, id, object, structure, 0);
}

static int read_link_facts(struct reader *r, const json_t *object, struct gtopo_link *link)
{
    int status;

    if ((status = get_word(r, object, "kind", GTOPO_LINK_KINDS, gtopo_link_kind_name_, &link->kind)) ||
        (status = get_uint32(r, object, "count", 0, &link->count)) ||
        (status = get_uint32(r, object, "width", 1, &link->width)) ||
        (status = get_uint32(r, object, "capable_width", 1, &link->capable_width)) ||
        (status = get_uint32(r, object, "speed_MTps", 1, &link->speed_MTps)) ||
        (status = get_uint32(r, object, "capable_speed_MTps", 1, &link->capable_speed_MTps)) ||
        (status = get_number(r, object, "nominal_Bps", INT64_MAX, 1, &link->nominal_Bps)) ||
        (status = get_number(r, object, "capable_Bps", INT64_MAX, 1, &link->capable_Bps)))
        return status;
    return 0;
}

static int get_ends(struct reader *r, const json_t *object, const char *ends[2])
{
    const json_t *array = json_object_get(object, "ends");

    for (size_t i = 0; i < 2; i++) {
        ends[i] = json_string_value(json_array_get(array, i));
        if (!ends[i] || json_array_size(array) != 2)
            return bad(r, "\"ends\" has to be an array of two texts");
    }
    return 0;
}

static const char *const link_keys[] = {"kind",       "ends",        "count",       "width", "capable_width",
                                        "speed_MTps", "nominal_Bps", "capable_Bps", "capable_speed_MTps", NULL};

static int read_link(struct reader *r, json_t *object)
{
    struct gtopo_link link = {0};
    struct gtopo_error cause;
    const char *ends[2];
    uint32_t id;
    int status = check_keys(r, object, link_keys);

    if (!status)
        status = read_link_facts(r, object, &link);
    if (!status)
        status = get_ends(r, object, ends);
    for (int i = 0; !status && i < 2; i++) {
        link.ends[i] = find_local(r, ends[i]);
        if (link.ends[i] == GTOPO_NONE)
            status = bad(r, "\"ends\" names \"%.60s\", which the shape does not have", ends[i]);
    }
    if (!status && link.kind == GTOPO_LINK_NETWORK)
        status = bad(r, "network links stand under \"cables\"");
    if (status)
        return status;
    status = gtopo_map_add_link(r->map, &link, &id, &cause);
    return status ? refused(r, status, &cause) : 0;
}

/* Read a shape of the file into the host that was begun last. */
static int read_shape(struct reader *r, size_t index)
{
    static const char *const keys[] = {"fingerprint", "objects", "links", NULL};
    json_t *shape = json_array_get(r->shapes, index), *objects, *links;
    uint64_t fingerprint;
    int status;

    at(r, "shapes", index, NULL, 0);
    if ((status = check_keys(r, shape, keys)) ||
        (status = read_identifier(r, "fingerprint", json_object_get(shape, "fingerprint"), &fingerprint)) ||
        (status = get_array(r, shape, "objects", &objects)) || (status = get_array(r, shape, "links", &links)))
        return status;
    if (!json_array_size(objects))
        return bad(r, "\"objects\" holds no machine");
    for (size_t i = 0; !status && i < json_array_size(objects); i++) {
        at(r, "shapes", index, "objects", i);
        status = read_node(r, json_array_get(objects, i), !i);
    }
    for (size_t i = 0; !status && i < json_array_size(links); i++) {
        at(r, "shapes", index, "links", i);
        status = read_link(r, json_array_get(links, i));
    }
    return status;
}

/* ---- hosts and switches ---- */

static int read_host(struct reader *r, json_t *object, size_t index)
{
    static const char *const keys[] = {"name", "shape", "objects", NULL}, *const none[] = {NULL};
    struct gtopo_error cause;
    const char *name, *local;
    json_t *objects, *values;
    uint64_t shape;
    uint32_t host;
    int status = check_keys(r, object, keys);

    if (status || (status = get_text(r, object, "name", &name)) ||
        (status = get_number(r, object, "shape", INT32_MAX, 0, &shape)))
        return status;
    objects = json_object_get(object, "objects");
    if (!json_is_object(objects))
        return bad(r, "\"objects\" has to be an object");
    if (shape >= json_array_size(r->shapes))
        return bad(r, "\"shape\" is %llu, but there are %zu shapes", (unsigned long long)shape,
                   json_array_size(r->shapes));
    if (r->first_host[shape] == GTOPO_NONE)
        status = gtopo_map_add_host(r->map, name, &host, &cause);
    else
        status = gtopo_map_add_host_like(r->map, name, r->first_host[shape], &host, &cause);
    if (status)
        return refused(r, status, &cause);
    if (r->first_host[shape] == GTOPO_NONE) {
        r->first_host[shape] = host;
        status = read_shape(r, shape);
        at(r, "hosts", index, NULL, 0);
    }
    json_object_foreach(objects, local, values)
    {
        uint32_t id = status ? GTOPO_NONE : find_local(r, local);

        if (status)
            break;
        if (id == GTOPO_NONE || !json_is_object(values))
            return bad(r, "\"objects\" holds \"%.60s\", which is no object of the shape with its values", local);
        status = read_values(r, id, values, none, 1);
    }
    return status;
}

static int read_switch(struct reader *r, json_t *object, size_t index)
{
    static const char *const structure[] = {"name", NULL};
    struct gtopo_error cause;
    const char *name;
    uint32_t id;
    int status = json_is_object(object) ? get_text(r, object, "name", &name) : bad(r, "has to be an object");

    (void)index;
    if (status)
        return status;
    status = gtopo_map_add_switch(r->map, name, &id, &cause);
    return status ? refused(r, status, &cause) : read_values(r, id, object, structure, -1);
}

static int read_cable(struct reader *r, json_t *object, size_t index)
{
    struct gtopo_link link = {0};
    struct gtopo_error cause;
    const char *ends[2];
    uint32_t id;
    int status = check_keys(r, object, link_keys);

    (void)index;
    if (!status)
        status = read_link_facts(r, object, &link);
    if (!status)
        status = get_ends(r, object, ends);
    for (int i = 0; !status && i < 2; i++) {
        struct gtopo_address address;

        status = gtopo_address_parse(r->map, ends[i], &address, &cause);
        if (status)
            return refused(r, status, &cause);
        link.ends[i] = address.object;
        link.ports[i] = (uint16_t)address.port;
    }
    if (!status && link.kind != GTOPO_LINK_NETWORK)
        status = bad(r, "a cable is of kind \"network\"");
    if (status)
        return status;
    status = gtopo_map_add_link(r->map, &link, &id, &cause);
    return status ? refused(r, status, &cause) : 0;
}

/* ---- measurements and findings ---- */

static int get_end(struct reader *r, const json_t *object, const char *key, struct gtopo_end *end)
{
    struct gtopo_address address;
    struct gtopo_error cause;
    const char *text;
    int status = get_text(r, object, key, &text);

    if (status)
        return status;
    status = gtopo_address_parse(r->map, text, &address, &cause);
    if (status)
        return refused(r, status, &cause);
    end->memory = address.object;
    end->via = address.via;
    return 0;
}

static int get_interval(struct reader *r, const json_t *object, struct gtopo_measurement *m)
{
    static const char *const keys[] = {"median", "low", "high", "confidence", NULL};
    double *values[] = {&m->median, &m->low, &m->high};
    json_t *interval = NULL;
    int status;

    for (m->metric = 0; m->metric < GTOPO_METRICS; m->metric++)
        if ((interval = json_object_get(object, gtopo_metric_key(m->metric))))
            break;
    if (!interval)
        return bad(r, "there is neither \"bandwidth_Bps\" nor \"latency_ns\"");
    if ((status = check_keys(r, interval, keys)))
        return status;
    if (json_number_value(json_object_get(interval, "confidence")) != 0.95)
        return bad(r, "\"confidence\" has to be 0.95");
    for (int i = 0; i < 3; i++) {
        const json_t *value = json_object_get(interval, keys[i]);

        if (!json_is_number(value))
            return bad(r, "\"%s\" has to be a number", keys[i]);
        *values[i] = json_number_value(value);
    }
    return 0;
}

static int get_verified(struct reader *r, const json_t *object, int32_t *verified)
{
    const json_t *value = json_object_get(object, "verified");

    *verified = json_is_true(value);
    return json_is_boolean(value) ? 0 : bad(r, "\"verified\" has to be true or false");
}

static int read_measurement(struct reader *r, json_t *object, size_t index)
{
    static const char *const keys[] = {"from",        "to",       "provenance",     "bandwidth_Bps", "latency_ns",
                                       "operation",   "method",   "transport",      "fallback",      "stopped_by",
                                       "tool",        "samples",  "warmup_samples", "message_B",     "queue_pairs",
                                       "depth",       "verified", "time_unix_s",    NULL};
    struct gtopo_measurement m = {0};
    struct gtopo_error cause;
    uint64_t time = 0;
    int status = check_keys(r, object, keys);

    if (status || (status = get_end(r, object, "from", &m.from)) || (status = get_end(r, object, "to", &m.to)) ||
        (status = get_word(r, object, "provenance", GTOPO_PROVENANCES, gtopo_provenance_name_, &m.provenance)) ||
        (status = get_interval(r, object, &m)) || (status = get_text(r, object, "operation", &m.operation)) ||
        (status = get_text(r, object, "transport", &m.transport)) ||
        (status = get_text_or_null(r, object, "method", &m.method)) ||
        (status = get_text_or_null(r, object, "fallback", &m.fallback)) ||
        (status = get_text_or_null(r, object, "stopped_by", &m.stopped_by)) ||
        (status = get_text_or_null(r, object, "tool", &m.tool)) ||
        (status = get_number(r, object, "message_B", INT64_MAX, 0, &m.message_B)) ||
        (status = get_uint32(r, object, "queue_pairs", 0, &m.queue_pairs)) ||
        (status = get_uint32(r, object, "depth", 0, &m.depth)) ||
        (status = get_number(r, object, "samples", INT64_MAX, 0, &m.samples)) ||
        (status = get_number(r, object, "warmup_samples", INT64_MAX, 0, &m.warmup_samples)) ||
        (status = get_verified(r, object, &m.verified)) ||
        (status = get_number(r, object, "time_unix_s", INT64_MAX, 1, &time)))
        return status;
    (void)index;
    m.time_unix_s = (int64_t)time;
    status = gtopo_map_add_measurement(r->map, &m, &cause);
    return status ? refused(r, status, &cause) : 0;
}

static int read_finding(struct reader *r, json_t *object, size_t index)
{
    static const char *const keys[] = {"rule", "severity", "object", "text", "next_step", NULL};
    struct gtopo_finding finding = {.object = GTOPO_NONE};
    struct gtopo_address address;
    struct gtopo_error cause;
    const char *where;
    int status = check_keys(r, object, keys);

    (void)index;
    if (status || (status = get_text(r, object, "rule", &finding.rule)) ||
        (status = get_word(r, object, "severity", GTOPO_SEVERITIES, gtopo_severity_name_, &finding.severity)) ||
        (status = get_text_or_null(r, object, "object", &where)) ||
        (status = get_text(r, object, "text", &finding.text)) ||
        (status = get_text_or_null(r, object, "next_step", &finding.next_step)))
        return status;
    if (where) {
        status = gtopo_address_parse(r->map, where, &address, &cause);
        finding.object = address.object;
    }
    if (!status)
        status = gtopo_map_add_finding(r->map, &finding, &cause);
    return status ? refused(r, status, &cause) : 0;
}

/* ---- the document ---- */

static int check_head(struct reader *r, json_t *root)
{
    const json_t *version = json_object_get(root, "version");
    const char *format = json_string_value(json_object_get(root, "format"));

    snprintf(r->place, sizeof r->place, "top level");
    if (!format || strcmp(format, GTOPO_MAP_FORMAT))
        return bad(r, "this is no topology map: \"format\" has to be \"%s\"", GTOPO_MAP_FORMAT);
    if (!json_is_integer(version) || json_integer_value(version) < 1)
        return bad(r, "\"version\" has to be a whole number from 1");
    if (json_integer_value(version) > GTOPO_MAP_VERSION)
        return gtopo_fail(r->error, GTOPO_EVERSION, "read it with the gputopo that wrote it (\"producer\"), or a newer one",
                          "%.200s is a map of version %lld; gputopo %s reads version %d", r->name,
                          (long long)json_integer_value(version), gtopo_version(), GTOPO_MAP_VERSION);
    return 0;
}

static int read_document(struct reader *r, json_t *root)
{
    static const char *const keys[] = {"format",   "version", "producer",     "shapes",   "hosts",
                                       "switches", "cables",  "measurements", "findings", NULL};
    static const struct {
        const char *key;
        int (*read)(struct reader *r, json_t *element, size_t index);
    } sections[] = {{"hosts", read_host},
                    {"switches", read_switch},
                    {"cables", read_cable},
                    {"measurements", read_measurement},
                    {"findings", read_finding}};
    const char *producer;
    int status;

    if ((status = check_head(r, root)) || (status = check_keys(r, root, keys)) ||
        (status = get_text(r, root, "producer", &producer)) || (status = get_array(r, root, "shapes", &r->shapes)))
        return status;
    r->first_host = malloc((json_array_size(r->shapes) + 1) * sizeof *r->first_host);
    if (!r->first_host)
        return refused(r, GTOPO_ENOMEM, NULL);
    memset(r->first_host, 0xff, (json_array_size(r->shapes) + 1) * sizeof *r->first_host);
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        json_t *array;

        snprintf(r->place, sizeof r->place, "top level");
        status = get_array(r, root, sections[s].key, &array);
        for (size_t i = 0; !status && i < json_array_size(array); i++) {
            at(r, sections[s].key, i, NULL, 0);
            status = sections[s].read(r, json_array_get(array, i), i);
        }
        if (status)
            return status;
    }
    for (size_t i = 0; i < json_array_size(r->shapes); i++)
        if (r->first_host[i] == GTOPO_NONE) {
            at(r, "shapes", i, NULL, 0);
            return bad(r, "no host has this shape");
        }
    return 0;
}

int gtopo_map_read(const void *data, size_t size, const char *name, struct gtopo_map **map,
                   struct gtopo_error *error)
{
    struct reader r = {.map = gtopo_map_new(), .name = name, .error = error};
    json_error_t at_line;
    json_t *root = NULL;
    int status;

    if (!r.map)
        return refused(&r, GTOPO_ENOMEM, NULL);
    root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &at_line);
    if (!root)
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
