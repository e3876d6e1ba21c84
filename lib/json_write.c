/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a map. The document is streamed one object, link, host or measurement at a time, so that a map of any size
 * needs the memory of its largest element.
 */
#include "lib/file.h"
#include "lib/json.h"
#include "lib/map.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct writer {
    const struct gtopo_map *map;
    gtopo_write_function write;
    void *context;
    int status;      /* of the first failure; nothing is written after it */
    int has_element; /* the open array has one: the next needs a comma */
};

static void put(struct writer *w, const char *text)
{
    if (!w->status && w->write(w->context, text, strlen(text)))
        w->status = GTOPO_EIO;
}

static int dump_piece(const char *data, size_t size, void *writer)
{
    struct writer *w = writer;

    if (!w->status && w->write(w->context, data, size))
        w->status = GTOPO_EIO;
    return w->status ? -1 : 0;
}

/* Write one element of the open array and release it. NULL stands for memory that was short. */
static void put_element(struct writer *w, json_t *element, const char *indent)
{
    put(w, w->has_element ? ",\n" : "\n");
    put(w, indent);
    if (!w->status &&
        (!element || json_dump_callback(element, dump_piece, w, JSON_COMPACT | JSON_REAL_PRECISION(15))) && !w->status)
        w->status = GTOPO_ENOMEM;
    w->has_element = 1;
    json_decref(element);
}

static void open_array(struct writer *w, const char *text)
{
    put(w, text);
    w->has_element = 0;
}

static void close_array(struct writer *w, const char *indent)
{
    if (w->has_element) {
        put(w, "\n");
        put(w, indent);
    }
    put(w, "]");
    w->has_element = 1;
}

/* Set a key, taking the value. Memory that was short shows when the element is put: it is then NULL. */
static void set(json_t **object, const char *key, json_t *value)
{
    if (!*object)
        json_decref(value);
    else if (json_object_set_new(*object, key, value)) {
        json_decref(*object);
        *object = NULL;
    }
}

/* 0 is unknown. */
static json_t *known_number(uint64_t number)
{
    return number ? json_integer((json_int_t)number) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *identifier(uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "0x%016" PRIx64, number);
    return json_string(text);
}

/* ---- objects ---- */

static json_t *gid_table(const struct gtopo_map *map, const struct gtopo_value *value)
{
    json_t *table = json_array();

    for (uint32_t i = 0; i < value->gids.count; i++) {
        const struct gtopo_gid *gid = &map->gids[value->gids.first + i];
        char text[INET6_ADDRSTRLEN];
        json_t *line = json_object();

        set(&line, "index", json_integer(gid->index));
        set(&line, "gid", json_string(inet_ntop(AF_INET6, gid->raw, text, sizeof text)));
        set(&line, "type", json_string(gtopo_gid_type_name(gid->type)));
        if (json_array_append_new(table, line)) { /* fails for a NULL table or line too */
            json_decref(table);
            return NULL;
        }
    }
    return table;
}

static json_t *value_json(const struct gtopo_map *map, const struct gtopo_value *value)
{
    if (value->unknown)
        return json_null();
    switch (gtopo_attribute_type(value->attribute)) {
    case GTOPO_VALUE_TEXT:
        return json_string(gtopo_texts_get(&map->texts, value->text));
    case GTOPO_VALUE_ID:
        return identifier(value->number);
    case GTOPO_VALUE_GIDS:
        return gid_table(map, value);
    case GTOPO_VALUE_NUMBER:
        break;
    }
    return json_integer((json_int_t)value->number);
}

static void set_values(json_t **object, const struct gtopo_map *map, const struct gtopo_values *values, uint32_t local)
{
    for (uint32_t i = values->first[local]; i != GTOPO_NONE; i = values->items[i].next)
        set(object, gtopo_attribute_key(values->items[i].attribute), value_json(map, &values->items[i]));
}

static json_t *node_json(const struct gtopo_map *map, const struct gtopo_shape *shape, uint32_t local)
{
    const struct gtopo_node *node = &shape->nodes[local];
    char name[GTOPO_LOCAL_NAME_MAX];
    json_t *object = json_object();

    set(&object, "name", json_string(gtopo_local_name(shape, local, name)));
    set(&object, "kind", json_string(gtopo_object_kind_name(node->kind)));
    set(&object, "parent",
        node->parent == GTOPO_NONE ? json_null() : json_string(gtopo_local_name(shape, node->parent, name)));
    set_values(&object, map, &shape->values, local);
    return object;
}

/* ---- links ---- */

static void set_link_facts(json_t **object, const struct gtopo_link *link)
{
    set(object, "count", json_integer(link->count));
    set(object, "width", known_number(link->width));
    set(object, "capable_width", known_number(link->capable_width));
    set(object, "speed_MTps", known_number(link->speed_MTps));
    set(object, "capable_speed_MTps", known_number(link->capable_speed_MTps));
    set(object, "nominal_Bps", known_number(link->nominal_Bps));
    set(object, "capable_Bps", known_number(link->capable_Bps));
}

static json_t *ends_json(const char *a, const char *b)
{
    return json_pack("[ss]", a, b);
}

static json_t *link_json(const struct gtopo_shape *shape, const struct gtopo_link *link)
{
    char a[GTOPO_LOCAL_NAME_MAX], b[GTOPO_LOCAL_NAME_MAX];
    json_t *object = json_object();

    set(&object, "kind", json_string(gtopo_link_kind_name(link->kind)));
    set(&object, "ends",
        ends_json(gtopo_local_name(shape, link->ends[0], a), gtopo_local_name(shape, link->ends[1], b)));
    set_link_facts(&object, link);
    return object;
}

static json_t *cable_json(const struct gtopo_map *map, const struct gtopo_link *link)
{
    char ends[2][GTOPO_ADDRESS_MAX];
    json_t *object = json_object();

    for (int i = 0; i < 2; i++) {
        gtopo_address_format(map, link->ends[i], ends[i]);
        if (link->ports[i])
            snprintf(ends[i] + strlen(ends[i]), GTOPO_ADDRESS_MAX - strlen(ends[i]), ":%u", link->ports[i]);
    }
    set(&object, "kind", json_string(gtopo_link_kind_name(link->kind)));
    set(&object, "ends", ends_json(ends[0], ends[1]));
    set_link_facts(&object, link);
    return object;
}

/* ---- hosts, switches, measurements, findings ---- */

static json_t *host_json(const struct gtopo_map *map, const struct gtopo_host *host)
{
    const struct gtopo_shape *shape = &map->shapes[host->shape];
    json_t *object = json_object(), *own = json_object();

    for (uint32_t local = 0; local < shape->node_count; local++) {
        char name[GTOPO_LOCAL_NAME_MAX];
        json_t *values;

        if (host->values.first[local] == GTOPO_NONE)
            continue;
        values = json_object();
        set_values(&values, map, &host->values, local);
        set(&own, gtopo_local_name(shape, local, name), values);
    }
    set(&object, "name", json_string(gtopo_texts_get(&map->texts, host->name)));
    set(&object, "shape", json_integer(host->shape));
    set(&object, "objects", own);
    return object;
}

static json_t *switch_json(const struct gtopo_map *map, uint32_t local)
{
    json_t *object = json_object();

    set(&object, "name", json_string(gtopo_texts_get(&map->texts, map->switches[local].name)));
    set_values(&object, map, &map->switch_values, local);
    return object;
}

/* Whole bytes per second and thousandths of a nanosecond are finer than any clock here. */
static json_t *quantity(unsigned metric, double value)
{
    double rounded = value >= 0.001 && value < 1e12 ? round(value * 1000) / 1000 : value;

    if (metric == GTOPO_BANDWIDTH_Bps && rounded >= 1 && rounded < 9e18)
        return json_integer(llround(value));
    return json_real(rounded);
}

static json_t *interval(const struct gtopo_measurement *m)
{
    json_t *object = json_object();

    set(&object, "median", quantity(m->metric, m->median));
    set(&object, "low", quantity(m->metric, m->low));
    set(&object, "high", quantity(m->metric, m->high));
    set(&object, "confidence", json_real(0.95));
    return object;
}

static json_t *directions(const struct gtopo_measurement *m)
{
    json_t *object = json_object();

    set(&object, "forward", quantity(m->metric, m->forward));
    set(&object, "reverse", quantity(m->metric, m->reverse));
    return object;
}

static void set_way(json_t **object, const char *key, const struct gtopo_map *map, uint32_t memory, const char *way)
{
    struct gtopo_object owner;

    gtopo_map_object(map, memory, &owner, NULL);
    if (way && (owner.kind != GTOPO_NUMA || strcmp(way, GTOPO_WAY_HOST)))
        set(object, key, json_string(way));
}

/* What most measurements do not have: a key that is not there stands for that. */
static void set_exceptions(json_t **object, const struct gtopo_map *map, const struct gtopo_measurement *m)
{
    if (m->two_way)
        set(object, "two_way", directions(m));
    if (m->p99 > 0)
        set(object, "p99_ns", quantity(m->metric, m->p99));
    if (m->p999 > 0)
        set(object, "p999_ns", quantity(m->metric, m->p999));
    set_way(object, "from_way", map, m->from.memory, m->from_way);
    set_way(object, "to_way", map, m->to.memory, m->to_way);
    if (m->concurrent > 1)
        set(object, "concurrent", json_integer(m->concurrent));
}

static json_t *measurement_json(const struct gtopo_map *map, uint32_t index)
{
    struct gtopo_measurement m;
    char from[GTOPO_ADDRESS_MAX], to[GTOPO_ADDRESS_MAX];
    json_t *object = json_object();

    gtopo_map_measurement(map, index, &m, NULL);
    set(&object, "from", json_string(gtopo_end_format(map, m.from, from)));
    set(&object, "to", json_string(gtopo_end_format(map, m.to, to)));
    set(&object, "provenance", json_string(gtopo_provenance_name(m.provenance)));
    set(&object, gtopo_metric_key(m.metric), interval(&m));
    set(&object, "operation", json_string(m.operation));
    set(&object, "transport", json_string(m.transport));
    set(&object, "method", text_or_null(m.method));
    set(&object, "fallback", text_or_null(m.fallback));
    set(&object, "stopped_by", text_or_null(m.stopped_by));
    set(&object, "tool", text_or_null(m.tool));
    set(&object, "message_B", json_integer((json_int_t)m.message_B));
    set(&object, "queue_pairs", json_integer(m.queue_pairs));
    set(&object, "depth", json_integer(m.depth));
    set(&object, "samples", json_integer((json_int_t)m.samples));
    set(&object, "warmup_samples", json_integer((json_int_t)m.warmup_samples));
    set(&object, "verified", json_boolean(m.verified));
    set(&object, "time_unix_s", m.time_unix_s ? json_integer(m.time_unix_s) : json_null());
    set_exceptions(&object, map, &m);
    return object;
}

static json_t *finding_json(const struct gtopo_map *map, uint32_t index)
{
    struct gtopo_finding finding;
    char address[GTOPO_ADDRESS_MAX];
    json_t *object = json_object();

    gtopo_map_finding(map, index, &finding, NULL);
    set(&object, "rule", json_string(finding.rule));
    set(&object, "severity", json_string(gtopo_severity_name(finding.severity)));
    set(&object, "object",
        finding.object == GTOPO_NONE ? json_null() : json_string(gtopo_address_format(map, finding.object, address)));
    set(&object, "text", json_string(finding.text));
    set(&object, "next_step", text_or_null(finding.next_step));
    return object;
}

/* ---- the document ---- */

static void write_shape(struct writer *w, const struct gtopo_shape *shape)
{
    char head[64];

    put(w, w->has_element ? ",\n" : "\n");
    snprintf(head, sizeof head, "    {\"fingerprint\":\"0x%016" PRIx64 "\",\n", shape->fingerprint);
    put(w, head);
    open_array(w, "     \"objects\":[");
    for (uint32_t i = 0; i < shape->node_count; i++)
        put_element(w, node_json(w->map, shape, i), "      ");
    close_array(w, "     ");
    open_array(w, ",\n     \"links\":[");
    for (size_t i = 0; i < shape->link_count; i++)
        put_element(w, link_json(shape, &shape->links[i]), "      ");
    close_array(w, "     ");
    put(w, "}");
    w->has_element = 1;
}

static void write_document(struct writer *w)
{
    const struct gtopo_map *map = w->map;
    char head[128];

    snprintf(head, sizeof head, "{\n  \"format\":\"%s\",\n  \"version\":%d,\n  \"producer\":\"gputopo %s\",\n",
             GTOPO_MAP_FORMAT, GTOPO_MAP_VERSION, gtopo_version());
    put(w, head);
    open_array(w, "  \"shapes\":[");
    for (size_t i = 0; i < map->shape_count; i++)
        write_shape(w, &map->shapes[i]);
    close_array(w, "  ");
    open_array(w, ",\n  \"hosts\":[");
    for (size_t i = 0; i < map->host_count; i++)
        put_element(w, host_json(map, &map->hosts[i]), "    ");
    close_array(w, "  ");
    open_array(w, ",\n  \"switches\":[");
    for (uint32_t i = 0; i < map->switch_count; i++)
        put_element(w, switch_json(map, i), "    ");
    close_array(w, "  ");
    open_array(w, ",\n  \"cables\":[");
    for (size_t i = 0; i < map->network_count; i++)
        put_element(w, cable_json(map, &map->network[i]), "    ");
    close_array(w, "  ");
    open_array(w, ",\n  \"measurements\":[");
    for (uint32_t i = 0; i < map->measurement_count; i++)
        put_element(w, measurement_json(map, i), "    ");
    close_array(w, "  ");
    open_array(w, ",\n  \"findings\":[");
    for (uint32_t i = 0; i < map->finding_count; i++)
        put_element(w, finding_json(map, i), "    ");
    close_array(w, "  ");
    put(w, "\n}\n");
}

int gtopo_map_write(const struct gtopo_map *map, gtopo_write_function write, void *context, struct gtopo_error *error)
{
    struct writer w = {.map = map, .write = write, .context = context};

    if (!map->sealed)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_map_seal() first", "the map is not sealed");
    write_document(&w);
    if (w.status == GTOPO_EIO)
        return gtopo_fail(error, GTOPO_EIO, NULL, "the map could not be written in full");
    return w.status ? gtopo_fail(error, w.status, NULL, "out of memory while writing the map") : 0;
}

/* ---- a file ---- */

static int write_stream(void *context, const void *data, size_t size)
{
    return fwrite(data, 1, size, context) != size;
}

static int produce(const void *map, FILE *file, struct gtopo_error *error)
{
    return gtopo_map_write(map, write_stream, file, error);
}

int gtopo_map_save(const struct gtopo_map *map, const char *path, struct gtopo_error *error)
{
    return gtopo_file_write(path, produce, map, error);
}
