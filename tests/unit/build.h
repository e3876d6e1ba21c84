/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small maps in a few readable lines, for tests:
 *
 *     struct gtopo_map *map = build_map();
 *     build_host(map, "a", "package0 numa0<package0 host-bridge0<package0 gpu0<host-bridge0@32 nic0<host-bridge0@16");
 *     build_seal(map);
 *
 * A word is an object, or a link between two that are there already. "child<parent" adds the child under its parent
 * with the link that such a pair has; "child" alone is added under the machine without one. "a=b" adds a link between
 * two objects: NVLink between GPUs and NVSwitches, the socket link between packages, C2C between a GPU and a package.
 * "@32" gives the link a nominal rate of 32 GB/s.
 */
#ifndef GTOPO_TESTS_BUILD_H
#define GTOPO_TESTS_BUILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gputopo/map.h>

#define GB UINT64_C(1000000000)

/* A call that must succeed; what the library said is shown when it does not. */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        error = (struct gtopo_error){0};                                                                               \
        if ((call) != 0)                                                                                               \
            fail_msg("%s: %s", #call, error.message);                                                                  \
    } while (0)

/* A call that must fail with this status and say so in words. */
#define assert_fails(status_, call)                                                                                    \
    do {                                                                                                               \
        error = (struct gtopo_error){0};                                                                               \
        assert_string_equal(gtopo_status_name(call), gtopo_status_name(status_));                                      \
        assert_int_equal(error.code, status_);                                                                         \
        assert_true(error.message[0]);                                                                                 \
    } while (0)

#define assert_contains(text, part)                                                                                    \
    do {                                                                                                               \
        if (!strstr(text, part))                                                                                       \
            fail_msg("\"%s\" does not say \"%s\"", text, part);                                                        \
    } while (0)

static inline struct gtopo_map *build_map(void)
{
    struct gtopo_map *map = gtopo_map_new();

    assert_non_null(map);
    return map;
}

static inline void build_seal(struct gtopo_map *map)
{
    struct gtopo_error error;

    assert_ok(gtopo_map_seal(map, &error));
}

/* The object of an address. */
static inline uint32_t at(const struct gtopo_map *map, const char *address)
{
    struct gtopo_address parsed = {0};
    struct gtopo_error error;

    assert_ok(gtopo_address_parse(map, address, &parsed, &error));
    return parsed.object;
}

/* The object of a name in the host that was begun last. */
static inline uint32_t build_find(const struct gtopo_map *map, const char *name)
{
    char address[GTOPO_ADDRESS_MAX];

    snprintf(address, sizeof address, "%s/%s", gtopo_map_host_name(map, gtopo_map_host_count(map) - 1), name);
    return at(map, address);
}

static inline uint32_t build_kind_of(const struct gtopo_map *map, uint32_t id)
{
    struct gtopo_object object = {0};
    struct gtopo_error error;

    assert_ok(gtopo_map_object(map, id, &object, &error));
    return object.kind;
}

static inline uint32_t build_link(struct gtopo_map *map, uint32_t kind, uint32_t a, uint32_t b, uint64_t rate_Bps)
{
    struct gtopo_link link = {.kind = kind, .ends = {a, b}, .count = 1, .nominal_Bps = rate_Bps};
    struct gtopo_error error;
    uint32_t id = GTOPO_NONE;

    assert_ok(gtopo_map_add_link(map, &link, &id, &error));
    return id;
}

/* The link that a child has to its parent. */
static inline uint32_t build_link_kind(uint32_t child, uint32_t parent)
{
    if (child == GTOPO_PORT)
        return GTOPO_LINK_PORT;
    if (parent == GTOPO_MACHINE)
        return GTOPO_LINK_PLATFORM;
    return parent == GTOPO_PACKAGE ? GTOPO_LINK_MEMORY : GTOPO_LINK_PCIE;
}

static inline void build_child(struct gtopo_map *map, const char *child, const char *parent, uint64_t rate_Bps)
{
    uint32_t parent_id = parent ? build_find(map, parent) : gtopo_map_host_machine(map, gtopo_map_host_count(map) - 1);
    const char *colon = strchr(child, ':');
    size_t letters = strcspn(child, "0123456789:");
    uint32_t kind = colon ? GTOPO_PORT : GTOPO_PACKAGE, id = GTOPO_NONE;
    struct gtopo_error error;

    while (!colon && kind < GTOPO_SWITCH &&
           (strlen(gtopo_object_kind_name(kind)) != letters || strncmp(gtopo_object_kind_name(kind), child, letters)))
        kind++;
    assert_ok(gtopo_map_add_object(map, kind, parent_id, colon ? (uint32_t)atoi(colon + 1) : 0, &id, &error));
    assert_int_equal(build_find(map, child), id); /* the description numbers them as the map does */
    if (parent)
        build_link(map, build_link_kind(kind, build_kind_of(map, parent_id)), id, parent_id, rate_Bps);
}

static inline void build_cross_link(struct gtopo_map *map, const char *a, const char *b, uint64_t rate_Bps)
{
    uint32_t ends[2] = {build_find(map, a), build_find(map, b)};
    uint32_t kinds[2] = {build_kind_of(map, ends[0]), build_kind_of(map, ends[1])};
    int packages = (kinds[0] == GTOPO_PACKAGE) + (kinds[1] == GTOPO_PACKAGE);
    uint32_t kind = packages == 2 ? GTOPO_LINK_SOCKET : packages ? GTOPO_LINK_C2C : GTOPO_LINK_NVLINK;

    build_link(map, kind, ends[0], ends[1], rate_Bps);
}

static inline void build_word(struct gtopo_map *map, char *word)
{
    char *rate = strchr(word, '@'), *other = strpbrk(word, "<=");
    uint64_t rate_Bps = rate ? strtoull(rate + 1, NULL, 10) * GB : 0;
    char sign = other ? *other : 0;

    if (rate)
        *rate = 0;
    if (other)
        *other++ = 0;
    if (sign == '=')
        build_cross_link(map, word, other, rate_Bps);
    else
        build_child(map, word, other, rate_Bps);
}

/* Add objects and links to the host that was begun last. */
static inline void build_more(struct gtopo_map *map, const char *description)
{
    char *words = strdup(description), *rest = words, *word;

    assert_non_null(words);
    while ((word = strsep(&rest, " \n")))
        if (*word)
            build_word(map, word);
    free(words);
}

/* Add a host and what the description says. */
static inline uint32_t build_host(struct gtopo_map *map, const char *name, const char *description)
{
    struct gtopo_error error;
    uint32_t host = GTOPO_NONE;

    assert_ok(gtopo_map_add_host(map, name, &host, &error));
    build_more(map, description);
    return host;
}

static inline uint32_t build_host_like(struct gtopo_map *map, const char *name, uint32_t like)
{
    struct gtopo_error error;
    uint32_t host = GTOPO_NONE;

    assert_ok(gtopo_map_add_host_like(map, name, like, &host, &error));
    return host;
}

static inline uint32_t build_switch(struct gtopo_map *map, const char *name)
{
    struct gtopo_error error;
    uint32_t id = GTOPO_NONE;

    assert_ok(gtopo_map_add_switch(map, name, &id, &error));
    return id;
}

/* A cable between two addresses: "a/nic0:1", "leaf:17". */
static inline uint32_t build_cable(struct gtopo_map *map, const char *a, const char *b, uint64_t rate_Bps)
{
    const char *addresses[2] = {a, b};
    struct gtopo_link link = {.kind = GTOPO_LINK_NETWORK, .count = 1, .nominal_Bps = rate_Bps};
    struct gtopo_error error;
    uint32_t id = GTOPO_NONE;

    for (int i = 0; i < 2; i++) {
        struct gtopo_address end = {0};

        assert_ok(gtopo_address_parse(map, addresses[i], &end, &error));
        link.ends[i] = end.object;
        link.ports[i] = (uint16_t)end.port;
    }
    assert_ok(gtopo_map_add_link(map, &link, &id, &error));
    return id;
}

/* A measurement of 1 GB/s from memory to memory that is good in every respect, to be changed by the test. */
static inline struct gtopo_measurement build_measurement(const struct gtopo_map *map, const char *from, const char *to)
{
    struct gtopo_measurement m = {.provenance = GTOPO_MEASURED,
                                  .metric = GTOPO_BANDWIDTH_Bps,
                                  .operation = "write",
                                  .transport = "verbs",
                                  .method = "64 messages in flight",
                                  .stopped_by = "precision",
                                  .tool = "a test",
                                  .message_B = 65536,
                                  .queue_pairs = 1,
                                  .depth = 64,
                                  .samples = 100,
                                  .warmup_samples = 10,
                                  .median = 1e9,
                                  .low = 0.99e9,
                                  .high = 1.01e9,
                                  .verified = 1,
                                  .time_unix_s = 1700000000};
    struct gtopo_address ends[2] = {{0}, {0}};
    struct gtopo_error error;

    assert_ok(gtopo_address_parse(map, from, &ends[0], &error));
    assert_ok(gtopo_address_parse(map, to, &ends[1], &error));
    m.from = (struct gtopo_end){ends[0].object, ends[0].via};
    m.to = (struct gtopo_end){ends[1].object, ends[1].via};
    return m;
}

/* A growing text that a map is written into. */
struct written {
    char *bytes;
    size_t size, capacity;
};

static inline int build_take(void *context, const void *data, size_t size)
{
    struct written *written = context;

    if (written->size + size + 1 > written->capacity) {
        size_t capacity = 2 * (written->size + size + 1);
        char *grown = realloc(written->bytes, capacity);

        if (!grown)
            return 1;
        written->bytes = grown;
        written->capacity = capacity;
    }
    memcpy(written->bytes + written->size, data, size);
    written->size += size;
    written->bytes[written->size] = 0;
    return 0;
}

/* The map as a file's text, to be freed. */
static inline char *build_write(const struct gtopo_map *map)
{
    struct written written = {0};
    struct gtopo_error error;

    assert_ok(gtopo_map_write(map, build_take, &written, &error));
    return written.bytes;
}

static inline struct gtopo_map *build_read(const char *text)
{
    struct gtopo_map *map = NULL;
    struct gtopo_error error;

    assert_ok(gtopo_map_read(text, strlen(text), "test.json", &map, &error));
    return map;
}

/* Written, read and written again it is the same bytes. */
static inline void build_round_trip(const struct gtopo_map *map)
{
    char *first = build_write(map), *second;
    struct gtopo_map *again = build_read(first);

    second = build_write(again);
    assert_string_equal(first, second);
    free(first);
    free(second);
    gtopo_map_free(again);
}

/* Two sockets with a GPU and a NIC each: what most tests need. */
#define TWO_SOCKETS                                                                                                    \
    "package0 package1 package0=package1@60 numa0<package0@100 numa1<package1@100 "                                    \
    "host-bridge0<package0 pci-switch0<host-bridge0@64 gpu0<pci-switch0@64 nic0<pci-switch0@32 nic0:1<nic0 "           \
    "host-bridge1<package1 gpu1<host-bridge1@64 nic1<host-bridge1@32 nic1:1<nic1"

#endif
