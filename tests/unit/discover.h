/* SPDX-License-Identifier: Apache-2.0 */
/* Discovering a machine of fake_machine.h, and asking for what was found, in one line each. */
#ifndef GTOPO_TESTS_DISCOVER_H
#define GTOPO_TESTS_DISCOVER_H

#include "fake_machine.h"
#include <gputopo/host.h>

/* The path of a folder or file of the samples, which are in $GTOPO_SAMPLES, or beside the source tree; the test is
 * skipped where it is not. */
static inline const char *sample_path(const char *name)
{
    static char path[2 * FAKE_PATH];
    const char *chosen = getenv("GTOPO_SAMPLES"), *source = getenv("GTOPO_SOURCE");

    if (chosen)
        snprintf(path, sizeof path, "%s/%s", chosen, name);
    else
        snprintf(path, sizeof path, "%s/../shared/samples/%s", source ? source : ".", name);
    if (access(path, R_OK)) {
        print_message("skipped: there is no %s; set GTOPO_SAMPLES\n", path);
        skip();
    }
    return path;
}

/* The map of a topology file of NCCL's among the samples. */
static inline struct gtopo_map *nccl_sample(const char *name)
{
    struct gtopo_host_options options;
    struct gtopo_map *map;
    struct gtopo_error error;
    char place[FAKE_PATH];

    snprintf(place, sizeof place, "nccl-xml/%s", name);
    gtopo_host_options_init(&options);
    options.nccl_xml = sample_path(place);
    map = build_map();
    assert_ok(gtopo_host_discover(map, &options, &error));
    build_seal(map);
    return map;
}

static inline int fake_try(const struct fake *m, struct gtopo_map *map, const char *name, struct gtopo_error *error)
{
    struct gtopo_host_options options;

    gtopo_host_options_init(&options);
    options.fsroot = m->root;
    options.name = name;
    return gtopo_host_discover(map, &options, error);
}

static inline struct gtopo_map *fake_discover(const struct fake *m)
{
    struct gtopo_map *map = build_map();
    struct gtopo_error error;

    assert_ok(fake_try(m, map, "n", &error));
    build_seal(map);
    return map;
}

static inline const char *text_of(const struct gtopo_map *map, const char *address, enum gtopo_attribute attribute)
{
    const char *text = gtopo_map_text(map, at(map, address), attribute);

    return text ? text : "(none)";
}

/* UINT64_MAX for a number that is not known. */
static inline uint64_t number_of(const struct gtopo_map *map, const char *address, enum gtopo_attribute attribute)
{
    uint64_t number = UINT64_MAX;

    gtopo_map_number(map, at(map, address), attribute, &number);
    return number;
}
#define assert_text(map, address, attribute, expected) assert_string_equal(text_of(map, address, attribute), expected)
#define assert_number(map, address, attribute, expected)                                                               \
    assert_int_equal(number_of(map, address, attribute), (uint64_t)(expected))
#define assert_unknown(map, address, attribute) assert_number(map, address, attribute, UINT64_MAX)

static inline int is_there(const struct gtopo_map *map, const char *address)
{
    struct gtopo_address parsed;

    return !gtopo_address_parse(map, address, &parsed, NULL);
}

/* How many findings of a rule there are; the last of them. */
static inline unsigned findings_of(const struct gtopo_map *map, const char *rule, struct gtopo_finding *last)
{
    struct gtopo_finding finding;
    unsigned count = 0;

    for (uint32_t i = 0; i < gtopo_map_finding_count(map); i++) {
        assert_int_equal(gtopo_map_finding(map, i, &finding, NULL), 0);
        if (strcmp(finding.rule, rule))
            continue;
        count++;
        if (last)
            *last = finding;
    }
    return count;
}

/* "numa0 < package0 < machine" gives "numa0" for package0's child. */
static inline const char *parent_of(const struct gtopo_map *map, const char *address)
{
    static char text[GTOPO_ADDRESS_MAX];
    struct gtopo_object object = {0};

    assert_int_equal(gtopo_map_object(map, at(map, address), &object, NULL), 0);
    gtopo_address_format(map, object.parent, text);
    return strchr(text, '/') ? strchr(text, '/') + 1 : text;
}
#define assert_parent(map, address, expected) assert_string_equal(parent_of(map, address), expected)

#endif
