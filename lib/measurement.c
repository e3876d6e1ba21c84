/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements and findings: storing and reading them. Where measurements lie on links is lib/seal.c's. */
#include "lib/map.h"
#include <math.h>
#include <string.h>

static int add_text(struct gtopo_map *map, const char *text, uint32_t *number, struct gtopo_error *error)
{
    if (text && !gtopo_text_is_clean(text))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a text is not UTF-8 or holds a control character");
    if (gtopo_texts_add(&map->texts, text ? text : "", number))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    return 0;
}

static const char *text_or_null(const struct gtopo_map *map, uint32_t number)
{
    return number ? gtopo_texts_get(&map->texts, number) : NULL;
}

static int check_end(const struct gtopo_map *map, struct gtopo_end end, struct gtopo_error *error)
{
    struct gtopo_object memory, via;

    if (gtopo_map_object(map, end.memory, &memory, NULL))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement is on object %u, which is not there", end.memory);
    if (memory.kind != GTOPO_NUMA && memory.kind != GTOPO_GPU)
        return gtopo_fail(error, GTOPO_EUSAGE, "the end of a probe is a numa or a gpu object",
                          "a %s has no memory to measure", gtopo_object_kind_name(memory.kind));
    if (end.via == GTOPO_NONE)
        return 0;
    if (gtopo_map_object(map, end.via, &via, NULL))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement is through object %u, which is not there", end.via);
    if (via.host != memory.host || (via.kind != GTOPO_PORT && via.kind != GTOPO_PACKAGE))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "bytes are moved by a port or a package of the memory's own host");
    return 0;
}

/* Of a sum the parts, which stay below it when each is rounded. */
static int check_directions(const struct gtopo_measurement *m, struct gtopo_error *error)
{
    if (m->two_way != 0 && m->two_way != 1)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement is two-way (1) or is not (0)");
    if (!m->two_way)
        return m->forward != 0 || m->reverse != 0
                   ? gtopo_fail(error, GTOPO_EUSAGE, NULL, "only a two-way measurement has a figure for each direction")
                   : 0;
    if (m->metric != GTOPO_BANDWIDTH_Bps)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "only a bandwidth is measured two-way");
    if (!(m->forward > 0 && m->forward <= m->median && m->reverse > 0 && m->reverse <= m->median))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL,
                          "each direction of a two-way measurement is above 0 and at most the median of both");
    return 0;
}

static int check_percentiles(const struct gtopo_measurement *m, struct gtopo_error *error)
{
    if ((m->p99 != 0 || m->p999 != 0) && m->metric != GTOPO_LATENCY_ns)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "only a latency has percentiles");
    if (!(isfinite(m->p99) && isfinite(m->p999) && (m->p99 == 0 || m->p99 >= m->median) &&
          (m->p999 == 0 || (m->p99 > 0 && m->p999 >= m->p99))))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL,
                          "percentiles are finite, with median <= 99 %% <= 99.9 %%, and 0 where they are not known");
    return 0;
}

static int check_measurement(const struct gtopo_map *map, const struct gtopo_measurement *m, struct gtopo_error *error)
{
    int status = check_end(map, m->from, error);

    if (!status)
        status = check_end(map, m->to, error);
    if (status)
        return status;
    if (m->provenance >= GTOPO_PROVENANCES || m->metric >= GTOPO_METRICS)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement has an unknown provenance or metric");
    if (!m->operation || !*m->operation || !m->transport || !*m->transport)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement needs an operation and a transport");
    if (!(isfinite(m->median) && isfinite(m->low) && isfinite(m->high) && m->low > 0 && m->low <= m->median &&
          m->median <= m->high))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement needs 0 < low <= median <= high, all finite");
    if (m->time_unix_s < 0)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement cannot have ended before 1970");
    if (!m->samples || m->samples > INT64_MAX || m->warmup_samples > INT64_MAX || m->message_B > INT64_MAX)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a measurement's samples or message size are out of range");
    status = check_directions(m, error);
    return status ? status : check_percentiles(m, error);
}

int gtopo_map_add_measurement(struct gtopo_map *map, const struct gtopo_measurement *measurement,
                              struct gtopo_error *error)
{
    struct gtopo_stored_measurement stored = {.value = *measurement};
    int status = check_measurement(map, measurement, error);

    if (status || (status = add_text(map, measurement->operation, &stored.operation, error)) ||
        (status = add_text(map, measurement->transport, &stored.transport, error)) ||
        (status = add_text(map, measurement->method, &stored.method, error)) ||
        (status = add_text(map, measurement->fallback, &stored.fallback, error)) ||
        (status = add_text(map, measurement->stopped_by, &stored.stopped_by, error)) ||
        (status = add_text(map, measurement->tool, &stored.tool, error)) ||
        (status = add_text(map, measurement->from_way, &stored.from_way, error)) ||
        (status = add_text(map, measurement->to_way, &stored.to_way, error)))
        return status;
    if (!stored.value.concurrent)
        stored.value.concurrent = 1;
    if (gtopo_grow((void **)&map->measurements, &map->measurement_capacity, map->measurement_count + 1,
                   sizeof *map->measurements))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    map->sealed = 0;
    map->measurements[map->measurement_count++] = stored;
    return 0;
}

/* A processor's memory is reached in one way only, which therefore need not be told. */
static const char *way_or_host(const struct gtopo_map *map, uint32_t number, uint32_t memory)
{
    struct gtopo_object object;

    if (number || gtopo_map_object(map, memory, &object, NULL) || object.kind != GTOPO_NUMA)
        return text_or_null(map, number);
    return GTOPO_WAY_HOST;
}

uint32_t gtopo_map_measurement_count(const struct gtopo_map *map)
{
    return (uint32_t)map->measurement_count;
}

int gtopo_map_measurement(const struct gtopo_map *map, uint32_t index, struct gtopo_measurement *measurement,
                          struct gtopo_error *error)
{
    const struct gtopo_stored_measurement *stored;

    if (index >= map->measurement_count)
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "there is no measurement %u in the map", index);
    stored = &map->measurements[index];
    *measurement = stored->value;
    measurement->operation = text_or_null(map, stored->operation);
    measurement->transport = text_or_null(map, stored->transport);
    measurement->method = text_or_null(map, stored->method);
    measurement->fallback = text_or_null(map, stored->fallback);
    measurement->stopped_by = text_or_null(map, stored->stopped_by);
    measurement->tool = text_or_null(map, stored->tool);
    measurement->from_way = way_or_host(map, stored->from_way, stored->value.from.memory);
    measurement->to_way = way_or_host(map, stored->to_way, stored->value.to.memory);
    return 0;
}

static int is_end(struct gtopo_end a, struct gtopo_end b)
{
    return a.memory == b.memory && a.via == b.via;
}

int gtopo_map_loopback(const struct gtopo_map *map, struct gtopo_end end, enum gtopo_metric metric, int at_once,
                       uint32_t *index, struct gtopo_error *error)
{
    for (uint32_t i = (uint32_t)map->measurement_count; i--;) {
        const struct gtopo_measurement *m = &map->measurements[i].value;

        if (is_end(m->from, end) && is_end(m->to, end) && m->metric == metric && !m->two_way &&
            m->provenance == GTOPO_MEASURED && (m->concurrent > 1) == (at_once != 0)) {
            *index = i;
            return 0;
        }
    }
    return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "this memory was not measured through this port and back");
}

int gtopo_map_add_finding(struct gtopo_map *map, const struct gtopo_finding *finding, struct gtopo_error *error)
{
    struct gtopo_stored_finding stored = {.severity = finding->severity, .object = finding->object};
    struct gtopo_place place;
    int status;

    if (!finding->rule || !*finding->rule || !finding->text || !*finding->text || finding->severity >= GTOPO_SEVERITIES)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a finding needs a rule, a severity and a text");
    if (finding->object != GTOPO_NONE && !gtopo_map_place(map, finding->object, &place))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a finding is on object %u, which is not there", finding->object);
    if ((status = add_text(map, finding->rule, &stored.rule, error)) ||
        (status = add_text(map, finding->text, &stored.text, error)) ||
        (status = add_text(map, finding->next_step, &stored.next_step, error)))
        return status;
    if (gtopo_grow((void **)&map->findings, &map->finding_capacity, map->finding_count + 1, sizeof *map->findings))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    map->findings[map->finding_count++] = stored;
    return 0;
}

uint32_t gtopo_map_finding_count(const struct gtopo_map *map)
{
    return (uint32_t)map->finding_count;
}

int gtopo_map_finding(const struct gtopo_map *map, uint32_t index, struct gtopo_finding *finding,
                      struct gtopo_error *error)
{
    const struct gtopo_stored_finding *stored;

    if (index >= map->finding_count)
        return gtopo_fail(error, GTOPO_ENOTFOUND, NULL, "there is no finding %u in the map", index);
    stored = &map->findings[index];
    finding->rule = text_or_null(map, stored->rule);
    finding->severity = stored->severity;
    finding->object = stored->object;
    finding->text = text_or_null(map, stored->text);
    finding->next_step = text_or_null(map, stored->next_step);
    return 0;
}
