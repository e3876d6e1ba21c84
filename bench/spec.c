/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/spec.h"
#include "bench/clock.h"
#include "bench/options.h"
#include "bench/protocol.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const end_keys[2] = {"from", "to"};

static void keep_texts(struct gtopo_spec *spec)
{
    struct gtopo_probe_end *ends[2] = {&spec->options.from, &spec->options.to};

    for (int i = 0; i < 2; i++) {
        ends[i]->device = spec->end_texts[i].device;
        ends[i]->memory = spec->end_texts[i].memory;
        ends[i]->way = spec->end_texts[i].way[0] ? spec->end_texts[i].way : NULL;
    }
    spec->options.transport = spec->transport;
}

void gtopo_spec_make(struct gtopo_spec *spec, const struct gtopo_probe_options *options, int initiator, int shared,
                     uint64_t seed)
{
    const struct gtopo_probe_end *ends[2] = {&options->from, &options->to};

    memset(spec, 0, sizeof *spec);
    spec->options = *options;
    spec->initiator = initiator;
    spec->shared = shared;
    spec->seed = seed;
    for (int i = 0; i < 2; i++) {
        snprintf(spec->end_texts[i].device, sizeof spec->end_texts[i].device, "%s", ends[i]->device);
        snprintf(spec->end_texts[i].memory, sizeof spec->end_texts[i].memory, "%s", ends[i]->memory);
        snprintf(spec->end_texts[i].way, sizeof spec->end_texts[i].way, "%s", ends[i]->way ? ends[i]->way : "");
    }
    snprintf(spec->transport, sizeof spec->transport, "%s", options->transport);
    keep_texts(spec);
}

/* ---- to a message ---- */

static json_t *number_json(const struct gtopo_option *option, const void *options)
{
    double value = gtopo_option_get(option, options);

    return option->type == GTOPO_OPTION_REAL ? json_real(value) : json_integer((json_int_t)value);
}

int gtopo_numbers_json(const struct gtopo_option *table, const void *options, json_t *object)
{
    int failed = 0;

    for (const struct gtopo_option *option = table; option->key; option++)
        failed |= json_object_set_new(object, option->key, number_json(option, options));
    return failed;
}

static json_t *end_json(const struct gtopo_probe_end *end)
{
    json_t *json =
        json_pack("{ss, ss, ss}", "device", end->device, "memory", end->memory, "way", end->way ? end->way : "");

    if (json && gtopo_numbers_json(gtopo_end_numbers, end, json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

json_t *gtopo_spec_json(const struct gtopo_spec *spec)
{
    const struct gtopo_probe_options *options = &spec->options;
    char seed[20];
    json_t *json;

    snprintf(seed, sizeof seed, "%016llx", (unsigned long long)spec->seed);
    json = json_pack("{ss, ss, ss, sb, ss, so, so}", "type", "prepare", "transport", options->transport, "role",
                     spec->initiator ? "initiator" : "responder", "shared", spec->shared, "seed", seed, end_keys[0],
                     end_json(&options->from), end_keys[1], end_json(&options->to));
    if (json && gtopo_numbers_json(gtopo_probe_numbers, options, json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* ---- from a message ---- */

int gtopo_numbers_read(const struct gtopo_option *table, const json_t *object, void *options, struct gtopo_error *error)
{
    for (const struct gtopo_option *option = table; option->key; option++) {
        const json_t *value = json_object_get(object, option->key);
        double number = json_number_value(value);
        int right = option->type == GTOPO_OPTION_REAL ? json_is_number(value) : json_is_integer(value);

        if (!right || !(number >= option->lowest && number <= option->highest))
            return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "in a message, \"%s\" has to be from %g to %g", option->key,
                              option->lowest, option->highest);
        gtopo_option_set(option, options, number);
    }
    return 0;
}

static int read_text(const json_t *object, const char *key, char *text, size_t size, struct gtopo_error *error)
{
    const char *value = json_string_value(json_object_get(object, key));

    if (!value || strlen(value) >= size)
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL,
                          "in a message \"prepare\", \"%s\" has to be a text of less than %zu bytes", key, size);
    memcpy(text, value, strlen(value) + 1);
    return 0;
}

static int read_end(const json_t *message, int which, struct gtopo_spec *spec, struct gtopo_error *error)
{
    const json_t *object = json_object_get(message, end_keys[which]);
    int status;

    if ((status =
             read_text(object, "device", spec->end_texts[which].device, sizeof spec->end_texts[which].device, error)) ||
        (status =
             read_text(object, "memory", spec->end_texts[which].memory, sizeof spec->end_texts[which].memory, error)) ||
        (status = read_text(object, "way", spec->end_texts[which].way, sizeof spec->end_texts[which].way, error)))
        return status;
    return gtopo_numbers_read(gtopo_end_numbers, object, which ? &spec->options.to : &spec->options.from, error);
}

static int read_role(const json_t *message, struct gtopo_spec *spec, struct gtopo_error *error)
{
    const json_t *shared = json_object_get(message, "shared");
    char role[16], seed[20], *end;
    int status = read_text(message, "role", role, sizeof role, error);

    if (!status)
        status = read_text(message, "seed", seed, sizeof seed, error);
    if (status)
        return status;
    spec->initiator = !strcmp(role, "initiator");
    spec->shared = json_is_true(shared);
    spec->seed = strtoull(seed, &end, 16);
    if ((!spec->initiator && strcmp(role, "responder")) || !json_is_boolean(shared) || *end || strlen(seed) != 16)
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "a message \"prepare\" has a wrong role, seed or \"shared\"");
    return 0;
}

int gtopo_spec_read(const json_t *message, struct gtopo_spec *spec, struct gtopo_error *error)
{
    int status;

    memset(spec, 0, sizeof *spec);
    spec->options.size = sizeof spec->options;
    if ((status = read_role(message, spec, error)) ||
        (status = read_text(message, "transport", spec->transport, sizeof spec->transport, error)) ||
        (status = read_end(message, 0, spec, error)) || (status = read_end(message, 1, spec, error)) ||
        (status = gtopo_numbers_read(gtopo_probe_numbers, message, &spec->options, error)))
        return status;
    keep_texts(spec);
    return gtopo_probe_options_check(&spec->options, error);
}

uint64_t gtopo_run_limit_ns(const struct gtopo_probe_options *options)
{
    if (options->iterations) /* they may take as long as they move */
        return UINT64_MAX;
    return gtopo_clock_ns() + (uint64_t)((options->seconds * GTOPO_PATIENCE + options->deadline_s) * 1e9);
}
