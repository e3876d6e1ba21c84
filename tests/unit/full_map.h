/* SPDX-License-Identifier: Apache-2.0 */
/* A map that holds one of everything that a map can hold. */
#ifndef GTOPO_TESTS_FULL_MAP_H
#define GTOPO_TESTS_FULL_MAP_H

#include "build.h"

/* Every attribute there is, on one object. */
static inline void full_attributes(struct gtopo_map *map, uint32_t id)
{
    struct gtopo_gid gids[2] = {{0, GTOPO_GID_IB, {0xfe, 0x80, [15] = 1}},
                                {3, GTOPO_GID_ROCE_V2, {[10] = 0xff, 0xff, 10, 9, 0, 1}}};
    struct gtopo_error error;

    for (unsigned i = 0; i < GTOPO_ATTRIBUTES; i++)
        switch (gtopo_attribute_type(i)) {
        case GTOPO_VALUE_NUMBER:
            assert_ok(gtopo_map_set_number(map, id, i, i ? i : INT64_MAX, &error));
            break;
        case GTOPO_VALUE_ID:
            assert_ok(gtopo_map_set_number(map, id, i, UINT64_C(0xfedcba9876543210) + i, &error));
            break;
        case GTOPO_VALUE_TEXT:
            assert_ok(gtopo_map_set_text(map, id, i, "text \"é\" → \\", &error));
            break;
        case GTOPO_VALUE_GIDS:
            assert_ok(gtopo_map_set_gids(map, id, gids, 2, &error));
        }
}

static inline void full_measurements(struct gtopo_map *map)
{
    struct gtopo_measurement m = build_measurement(map, "a/numa0@nic0:1", "b/gpu0@nic0:1");
    struct gtopo_error error;

    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    m.metric = GTOPO_LATENCY_ns;
    m.median = 1234.5678;
    m.low = 1200.25;
    m.high = 1300;
    m.fallback = "dma-buf was refused: staged through the host";
    m.verified = 0;
    m.time_unix_s = 0;
    m.provenance = GTOPO_SIMULATED;
    m.p99 = 1500.125;
    m.p999 = 90000;
    m.to_way = "staged";
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    m = build_measurement(map, "a/numa0@package0", "a/numa1@package0");
    m.method = m.fallback = m.stopped_by = m.tool = NULL;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    m = build_measurement(map, "a/gpu0@nic0:1", "a/gpu0@nic0:1");
    m.two_way = 1;
    m.forward = 0.625e9;
    m.reverse = 0.375e9;
    m.from_way = "dma-buf";
    m.to_way = "peer-memory";
    m.concurrent = 8;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
}

static inline void full_findings(struct gtopo_map *map)
{
    struct gtopo_finding findings[] = {
        {"port-down", GTOPO_FAULT, at(map, "b/nic1:1"), "b/nic1:1 has no link", "look at its cable"},
        {"narrow-link", GTOPO_WARNING, at(map, "leaf"), "leaf is slow", NULL},
        {"hidden-tree", GTOPO_NOTE, GTOPO_NONE, "the machine hides its buses", NULL},
    };
    struct gtopo_error error;

    for (size_t i = 0; i < sizeof findings / sizeof *findings; i++)
        assert_ok(gtopo_map_add_finding(map, &findings[i], &error));
}

/* Three hosts of two shapes, two switches, four cables, four measurements, three findings. Sealed. */
static inline struct gtopo_map *full_map(void)
{
    struct gtopo_map *map = build_map();
    struct gtopo_link link = {.kind = GTOPO_LINK_NVLINK,
                              .count = 18,
                              .width = 4,
                              .capable_width = 4,
                              .speed_MTps = 100000,
                              .capable_speed_MTps = 100000,
                              .nominal_Bps = 450 * GB,
                              .capable_Bps = INT64_MAX};
    struct gtopo_error error;
    uint32_t id;

    build_host(map, "odd", "nic0<machine nic0:1<nic0 nic0:2<nic0 storage0<machine nvswitch0");
    full_attributes(map, build_find(map, "nic0:1"));
    build_host(map, "a", TWO_SOCKETS);
    link.ends[0] = build_find(map, "gpu0");
    link.ends[1] = build_find(map, "gpu1");
    assert_ok(gtopo_map_add_link(map, &link, &id, &error));
    assert_ok(gtopo_map_set_text(map, build_find(map, "gpu0"), GTOPO_ATTRIBUTE_MODEL, "H200", &error));
    assert_ok(gtopo_map_set_unknown(map, build_find(map, "gpu0"), GTOPO_ATTRIBUTE_NUMA, &error));
    assert_ok(gtopo_map_set_unknown(map, build_find(map, "gpu0"), GTOPO_ATTRIBUTE_SERIAL, &error));
    build_host_like(map, "b", 1);
    assert_ok(gtopo_map_set_number(map, at(map, "b/nic0:1"), GTOPO_ATTRIBUTE_GUID, 1, &error));
    assert_ok(gtopo_map_set_gids(map, at(map, "b/nic0:1"), NULL, 0, &error));
    full_attributes(map, build_switch(map, "leaf"));
    build_switch(map, "spine");
    build_cable(map, "a/nic0:1", "leaf:1", 25 * GB);
    build_cable(map, "b/nic0:1", "leaf:2", 25 * GB);
    build_cable(map, "leaf:33", "spine:65535", 50 * GB);
    build_cable(map, "odd/nic0:1", "spine", 0);
    full_measurements(map);
    full_findings(map);
    build_seal(map);
    return map;
}

#endif
