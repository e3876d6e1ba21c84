/* SPDX-License-Identifier: Apache-2.0 */
/* Appending the hosts of one map to another. */
#include "lib/map.h"
#include <stdlib.h>

struct merge {
    struct gtopo_map *to;
    const struct gtopo_map *from;
    uint32_t *host_of_shape; /* in `to`, for each shape of `from`: the first host that has it, or GTOPO_NONE */
    uint32_t first_host;     /* in `to`, of the first one appended */
    struct gtopo_error *error;
};

static int copy_value(const struct merge *m, const struct gtopo_value *value, uint32_t id)
{
    if (value->unknown)
        return gtopo_map_set_unknown(m->to, id, value->attribute, m->error);
    switch (gtopo_attribute_type(value->attribute)) {
    case GTOPO_VALUE_TEXT:
        return gtopo_map_set_text(m->to, id, value->attribute, gtopo_texts_get(&m->from->texts, value->text), m->error);
    case GTOPO_VALUE_GIDS:
        return gtopo_map_set_gids(m->to, id, m->from->gids + value->gids.first, value->gids.count, m->error);
    default:
        return gtopo_map_set_number(m->to, id, value->attribute, value->number, m->error);
    }
}

static int copy_object(const struct merge *m, const struct gtopo_values *values, uint32_t local, uint32_t id)
{
    int status = 0;

    for (uint32_t i = values->first[local]; !status && i != GTOPO_NONE; i = values->items[i].next)
        status = copy_value(m, &values->items[i], id);
    return status;
}

static int copy_values(const struct merge *m, const struct gtopo_values *values, uint32_t first_object)
{
    int status = 0;

    for (uint32_t local = 0; !status && local < values->object_count; local++)
        status = copy_object(m, values, local, first_object + local);
    return status;
}

int gtopo_map_copy_values(struct gtopo_map *map, uint32_t id, const struct gtopo_map *other, uint32_t other_id,
                          struct gtopo_error *error)
{
    struct merge m = {.to = map, .from = other, .error = error};
    struct gtopo_place place;
    int status = 0;

    if (!gtopo_map_place(other, other_id, &place))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "there is no object %u to copy from", other_id);
    if (place.host != GTOPO_NONE)
        status = copy_object(&m, &other->shapes[other->hosts[place.host].shape].values, place.local, id);
    return status ? status : copy_object(&m, gtopo_map_identity_values(other, place), place.local, id);
}

static int copy_shape(const struct merge *m, const struct gtopo_shape *shape, uint32_t first_object)
{
    int status = 0;
    uint32_t id;

    for (size_t i = 1; !status && i < shape->node_count; i++)
        status = gtopo_map_add_object(m->to, shape->nodes[i].kind, first_object + shape->nodes[i].parent,
                                      shape->nodes[i].number, &id, m->error);
    for (size_t i = 0; !status && i < shape->link_count; i++) {
        struct gtopo_link link = shape->links[i];

        link.ends[0] += first_object;
        link.ends[1] += first_object;
        status = gtopo_map_add_link(m->to, &link, &id, m->error);
    }
    return status ? status : copy_values(m, &shape->values, first_object);
}

static int copy_host(const struct merge *m, const struct gtopo_host *host)
{
    const char *name = gtopo_texts_get(&m->from->texts, host->name);
    uint32_t *like = &m->host_of_shape[host->shape];
    uint32_t added, first_object;
    int status;

    if (*like != GTOPO_NONE)
        status = gtopo_map_add_host_like(m->to, name, *like, &added, m->error);
    else
        status = gtopo_map_add_host(m->to, name, &added, m->error);
    if (status)
        return status;
    first_object = gtopo_map_host_machine(m->to, added);
    if (*like == GTOPO_NONE) {
        *like = added;
        status = copy_shape(m, &m->from->shapes[host->shape], first_object);
    }
    return status ? status : copy_values(m, &host->values, first_object);
}

/* The object in `to` of one in `from`; GTOPO_NONE for what was not copied. */
static uint32_t moved(const struct merge *m, uint32_t id)
{
    struct gtopo_place place;

    if (id == GTOPO_NONE || !gtopo_map_place(m->from, id, &place) || place.host == GTOPO_NONE)
        return GTOPO_NONE;
    return gtopo_map_host_machine(m->to, m->first_host + place.host) + place.local;
}

static int copy_records(const struct merge *m)
{
    struct gtopo_measurement measurement;
    struct gtopo_finding finding;
    int status = 0;

    for (uint32_t i = 0; !status && !gtopo_map_measurement(m->from, i, &measurement, NULL); i++) {
        struct gtopo_end *ends[2] = {&measurement.from, &measurement.to};

        for (int end = 0; end < 2; end++) {
            ends[end]->memory = moved(m, ends[end]->memory);
            ends[end]->via = moved(m, ends[end]->via);
        }
        status = gtopo_map_add_measurement(m->to, &measurement, m->error);
    }
    for (uint32_t i = 0; !status && !gtopo_map_finding(m->from, i, &finding, NULL); i++) {
        finding.object = moved(m, finding.object);
        status = gtopo_map_add_finding(m->to, &finding, m->error);
    }
    return status;
}

int gtopo_map_add_hosts_of(struct gtopo_map *map, const struct gtopo_map *other, struct gtopo_error *error)
{
    struct merge m = {map, other, NULL, (uint32_t)map->host_count, error};
    int status = 0;

    if (!other->sealed || map == other)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_map_seal() first", "the map to append is not sealed");
    m.host_of_shape = malloc((other->shape_count + 1) * sizeof *m.host_of_shape);
    if (!m.host_of_shape)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < other->shape_count; i++)
        m.host_of_shape[i] = GTOPO_NONE;
    for (size_t i = 0; !status && i < other->host_count; i++)
        status = copy_host(&m, &other->hosts[i]);
    if (!status)
        status = copy_records(&m);
    free(m.host_of_shape);
    return status;
}
