/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements, the links that they crossed, and findings. */
#include "build.h"
#include <math.h>

static struct gtopo_error error;

static struct gtopo_map *two_hosts(void)
{
    struct gtopo_map *map = build_map();

    build_host(map, "a", TWO_SOCKETS);
    build_host_like(map, "b", 0);
    build_switch(map, "leaf");
    build_cable(map, "a/nic0:1", "leaf:1", 25 * GB);
    build_cable(map, "a/nic1:1", "leaf:2", 25 * GB);
    build_cable(map, "b/nic0:1", "leaf:3", 25 * GB);
    return map;
}

/* The link between two neighbours. */
static uint32_t link_between(const struct gtopo_map *map, const char *a, const char *b)
{
    uint32_t links[64];
    size_t count = gtopo_map_links_of(map, at(map, a), links, 64);

    for (size_t i = 0; i < count; i++) {
        struct gtopo_link link;

        assert_ok(gtopo_map_link(map, links[i], &link, &error));
        if (link.ends[0] == at(map, b) || link.ends[1] == at(map, b))
            return links[i];
    }
    fail_msg("no link joins %s and %s", a, b);
    return GTOPO_NONE;
}

static int is_crossed(const struct gtopo_map *map, const char *a, const char *b)
{
    uint32_t index;

    return gtopo_map_link_measurement(map, link_between(map, a, b), GTOPO_BANDWIDTH_Bps, &index, NULL) == 0;
}

static void what_is_added_is_read_back(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/numa0@nic0:1", "b/gpu0@nic0:1"), read;

    (void)state;
    m.fallback = "dma-buf was refused";
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    assert_int_equal(gtopo_map_measurement_count(map), 1);
    assert_ok(gtopo_map_measurement(map, 0, &read, &error));
    assert_int_equal(read.from.memory, m.from.memory);
    assert_int_equal(read.to.via, m.to.via);
    assert_string_equal(read.operation, "write");
    assert_string_equal(read.fallback, "dma-buf was refused");
    assert_true(read.median == m.median && read.low == m.low && read.high == m.high);
    assert_int_equal(read.samples, 100);
    assert_int_equal(read.verified, 1);
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_measurement(map, 1, &read, &error));
    gtopo_map_free(map);
}

static void texts_with_nothing_to_say_are_null(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/numa0", "a/numa1"), read;

    (void)state;
    m.method = NULL;
    m.fallback = "";
    m.tool = NULL;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    assert_ok(gtopo_map_measurement(map, 0, &read, &error));
    assert_null(read.method);
    assert_null(read.fallback);
    assert_null(read.tool);
    gtopo_map_free(map);
}

static void what_is_not_the_usual_is_read_back(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/gpu0@nic0:1", "b/numa0@nic0:1"), read;

    (void)state;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    m.from_way = "dma-buf";
    m.to_way = "host";
    m.two_way = 1;
    m.forward = 0.75e9;
    m.reverse = 0.25e9;
    m.concurrent = 4;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    m = build_measurement(map, "a/gpu0@nic0:1", "b/numa0@nic0:1");
    m.metric = GTOPO_LATENCY_ns;
    m.p99 = 1.5e9;
    m.p999 = 1.75e9;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    assert_ok(gtopo_map_measurement(map, 0, &read, &error));
    assert_int_equal(read.two_way, 0);
    assert_int_equal(read.concurrent, 1);
    assert_null(read.from_way); /* of a GPU nothing is taken for granted */
    assert_string_equal(read.to_way, "host");
    assert_ok(gtopo_map_measurement(map, 1, &read, &error));
    assert_int_equal(read.two_way, 1);
    assert_true(read.forward == 0.75e9 && read.reverse == 0.25e9);
    assert_string_equal(read.from_way, "dma-buf");
    assert_int_equal(read.concurrent, 4);
    assert_ok(gtopo_map_measurement(map, 2, &read, &error));
    assert_true(read.p99 == 1.5e9 && read.p999 == 1.75e9);
    gtopo_map_free(map);
}

static void a_measurement_without_sense_is_refused(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement good = build_measurement(map, "a/numa0@nic0:1", "b/numa0@nic0:1"), bad;

    (void)state;
#define REFUSED_WITH(change)                                                                                           \
    do {                                                                                                               \
        bad = good;                                                                                                    \
        change;                                                                                                        \
        assert_fails(GTOPO_EUSAGE, gtopo_map_add_measurement(map, &bad, &error));                                      \
    } while (0)
    REFUSED_WITH(bad.median = NAN);
    REFUSED_WITH(bad.low = NAN);
    REFUSED_WITH(bad.high = NAN);
    REFUSED_WITH(bad.high = INFINITY);
    REFUSED_WITH((bad.median = INFINITY, bad.high = INFINITY));
    REFUSED_WITH(bad.low = -INFINITY);
    REFUSED_WITH(bad.low = bad.median * 1.001);
    REFUSED_WITH(bad.high = bad.median * 0.999);
    REFUSED_WITH(bad.low = 0);
    REFUSED_WITH((bad.low = -3, bad.median = -2, bad.high = -1));
    REFUSED_WITH(bad.samples = 0);
    REFUSED_WITH(bad.samples = UINT64_MAX);
    REFUSED_WITH(bad.warmup_samples = UINT64_MAX);
    REFUSED_WITH(bad.message_B = UINT64_MAX);
    REFUSED_WITH(bad.time_unix_s = -1);
    REFUSED_WITH(bad.provenance = GTOPO_PROVENANCES);
    REFUSED_WITH(bad.metric = GTOPO_METRICS);
    REFUSED_WITH(bad.operation = NULL);
    REFUSED_WITH(bad.transport = "");
    REFUSED_WITH(bad.tool = "a\nb");
    REFUSED_WITH(bad.from.memory = GTOPO_NONE);
    REFUSED_WITH(bad.from.memory = at(map, "a/nic0"));
    REFUSED_WITH(bad.to.memory = at(map, "leaf"));
    REFUSED_WITH(bad.to.via = at(map, "a/nic0:1"));
    REFUSED_WITH(bad.to.via = at(map, "b/nic0"));
    REFUSED_WITH(bad.to.via = 99999);
    REFUSED_WITH(bad.two_way = 1);
    REFUSED_WITH(bad.two_way = 2);
    REFUSED_WITH(bad.forward = 1);
    REFUSED_WITH((bad.two_way = 1, bad.forward = bad.median, bad.reverse = NAN));
    REFUSED_WITH((bad.two_way = 1, bad.forward = bad.median, bad.reverse = 0));
    REFUSED_WITH((bad.two_way = 1, bad.forward = bad.median * 1.001, bad.reverse = 1));
    REFUSED_WITH((bad.two_way = 1, bad.metric = GTOPO_LATENCY_ns, bad.forward = bad.reverse = bad.median / 2));
    REFUSED_WITH(bad.p99 = bad.median);
    REFUSED_WITH((bad.metric = GTOPO_LATENCY_ns, bad.p99 = bad.median * 0.999));
    REFUSED_WITH((bad.metric = GTOPO_LATENCY_ns, bad.p99 = NAN));
    REFUSED_WITH((bad.metric = GTOPO_LATENCY_ns, bad.p999 = bad.median));
    REFUSED_WITH((bad.metric = GTOPO_LATENCY_ns, bad.p99 = 2 * bad.median, bad.p999 = bad.median));
    REFUSED_WITH((bad.metric = GTOPO_LATENCY_ns, bad.p99 = bad.median, bad.p999 = INFINITY));
    REFUSED_WITH(bad.from_way = "\x1b");
    REFUSED_WITH(bad.to_way = "\xff");
    assert_int_equal(gtopo_map_measurement_count(map), 0);
    assert_ok(gtopo_map_add_measurement(map, &good, &error));
    gtopo_map_free(map);
}

static void a_measurement_counts_for_the_links_on_its_way(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/numa0@nic0:1", "b/gpu0@nic0:1");

    (void)state;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    build_seal(map);
    assert_true(is_crossed(map, "a/numa0", "a/package0"));
    assert_true(is_crossed(map, "a/pci-switch0", "a/nic0"));
    assert_true(is_crossed(map, "a/nic0", "a/nic0:1"));
    assert_true(is_crossed(map, "a/nic0:1", "leaf"));
    assert_true(is_crossed(map, "b/nic0:1", "leaf"));
    assert_true(is_crossed(map, "b/gpu0", "b/pci-switch0"));
    assert_false(is_crossed(map, "b/pci-switch0", "b/host-bridge0")); /* the GPU's bytes do not go up */
    assert_false(is_crossed(map, "a/gpu0", "a/pci-switch0"));
    assert_false(is_crossed(map, "b/numa0", "b/package0")); /* the same link of the shape, in another host */
    assert_false(is_crossed(map, "a/package0", "a/package1"));
    gtopo_map_free(map);
}

/* From port to port of one host over the switch: the cables, not the inside between the two NICs. */
static void ports_of_one_host_meet_over_their_cables(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/numa0@nic0:1", "a/numa1@nic1:1");

    (void)state;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    build_seal(map);
    assert_true(is_crossed(map, "a/nic0:1", "leaf"));
    assert_true(is_crossed(map, "a/nic1:1", "leaf"));
    assert_false(is_crossed(map, "a/package0", "a/package1"));
    gtopo_map_free(map);
}

static void ports_without_known_cables_cross_nothing_between(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_measurement m;

    (void)state;
    build_host(map, "a", TWO_SOCKETS);
    m = build_measurement(map, "a/numa0@nic0:1", "a/numa1@nic1:1");
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    build_seal(map);
    assert_true(is_crossed(map, "a/nic0", "a/nic0:1"));
    assert_false(is_crossed(map, "a/package0", "a/package1"));
    gtopo_map_free(map);
}

static void a_port_in_loopback_crosses_its_nic_only(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/numa0@nic0:1", "a/numa0@nic0:1");

    (void)state;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    build_seal(map);
    assert_true(is_crossed(map, "a/nic0", "a/nic0:1"));
    assert_false(is_crossed(map, "a/nic0:1", "leaf"));
    gtopo_map_free(map);
}

static void memory_to_memory_crosses_the_socket_link(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/numa0@package0", "a/numa1@package0");

    (void)state;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    build_seal(map);
    assert_true(is_crossed(map, "a/package0", "a/package1"));
    assert_true(is_crossed(map, "a/numa0", "a/package0"));
    assert_true(is_crossed(map, "a/numa1", "a/package1"));
    gtopo_map_free(map);
}

/* Add one and give its number. */
static uint32_t add(struct gtopo_map *map, uint32_t provenance, uint32_t metric, double median)
{
    struct gtopo_measurement m = build_measurement(map, "a/numa0@nic0:1", "b/numa0@nic0:1");

    m.provenance = provenance;
    m.metric = metric;
    m.low = m.median = m.high = median;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    return gtopo_map_measurement_count(map) - 1;
}

static uint32_t best(struct gtopo_map *map, enum gtopo_metric metric)
{
    uint32_t index = GTOPO_NONE;

    build_seal(map);
    assert_ok(gtopo_map_link_measurement(map, link_between(map, "a/nic0:1", "leaf"), metric, &index, &error));
    return index;
}

static void the_best_measurement_of_a_link_is_the_fastest(void **state)
{
    struct gtopo_map *map = two_hosts();
    uint32_t fast, near;

    (void)state;
    add(map, GTOPO_MEASURED, GTOPO_BANDWIDTH_Bps, 1e9);
    fast = add(map, GTOPO_MEASURED, GTOPO_BANDWIDTH_Bps, 3e9);
    add(map, GTOPO_MEASURED, GTOPO_BANDWIDTH_Bps, 2e9);
    add(map, GTOPO_MEASURED, GTOPO_LATENCY_ns, 2000);
    near = add(map, GTOPO_MEASURED, GTOPO_LATENCY_ns, 1000);
    assert_int_equal(best(map, GTOPO_BANDWIDTH_Bps), fast);
    assert_int_equal(best(map, GTOPO_LATENCY_ns), near);
    gtopo_map_free(map);
}

static void what_was_not_measured_never_outdoes_what_was(void **state)
{
    struct gtopo_map *map = two_hosts();
    uint32_t measured;

    (void)state;
    add(map, GTOPO_SIMULATED, GTOPO_BANDWIDTH_Bps, 9e9);
    measured = add(map, GTOPO_MEASURED, GTOPO_BANDWIDTH_Bps, 1e9);
    for (uint32_t provenance = GTOPO_NOMINAL; provenance < GTOPO_PROVENANCES; provenance++)
        add(map, provenance, GTOPO_BANDWIDTH_Bps, 9e9);
    assert_int_equal(best(map, GTOPO_BANDWIDTH_Bps), measured);
    gtopo_map_free(map);
}

static void a_link_shows_one_direction_before_the_sum_of_two(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_measurement m = build_measurement(map, "a/numa0@nic0:1", "b/numa0@nic0:1");
    uint32_t one_way;

    (void)state;
    m.two_way = 1;
    m.forward = m.reverse = m.median / 2;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    assert_int_equal(best(map, GTOPO_BANDWIDTH_Bps), 0);
    one_way = add(map, GTOPO_MEASURED, GTOPO_BANDWIDTH_Bps, 0.5e9);
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    assert_int_equal(best(map, GTOPO_BANDWIDTH_Bps), one_way);
    gtopo_map_free(map);
}

static void a_link_that_nothing_crossed_has_no_measurement(void **state)
{
    struct gtopo_map *map = two_hosts();
    uint32_t index = 7;

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_map_link_measurement(map, 0, GTOPO_LATENCY_ns, &index, &error));
    add(map, GTOPO_MEASURED, GTOPO_BANDWIDTH_Bps, 1e9);
    build_seal(map);
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_link_measurement(map, link_between(map, "a/nic0:1", "leaf"),
                                                             GTOPO_LATENCY_ns, &index, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_link_measurement(map, 99999, GTOPO_BANDWIDTH_Bps, &index, &error));
    assert_int_equal(index, 7);
    gtopo_map_free(map);
}

static void findings_are_kept_in_their_order(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_finding finding = {"port-down", GTOPO_FAULT, at(map, "b/nic1:1"), "b/nic1:1 has no link",
                                    "look at its cable"},
                         read;

    (void)state;
    assert_ok(gtopo_map_add_finding(map, &finding, &error));
    finding = (struct gtopo_finding){"note", GTOPO_NOTE, GTOPO_NONE, "nothing to see", NULL};
    assert_ok(gtopo_map_add_finding(map, &finding, &error));
    assert_int_equal(gtopo_map_finding_count(map), 2);
    assert_ok(gtopo_map_finding(map, 0, &read, &error));
    assert_string_equal(read.rule, "port-down");
    assert_string_equal(read.next_step, "look at its cable");
    assert_int_equal(read.object, at(map, "b/nic1:1"));
    assert_ok(gtopo_map_finding(map, 1, &read, &error));
    assert_int_equal(read.object, GTOPO_NONE);
    assert_null(read.next_step);
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_finding(map, 2, &read, &error));
    gtopo_map_free(map);
}

static void a_finding_without_sense_is_refused(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_finding good = {"rule", GTOPO_NOTE, GTOPO_NONE, "text", NULL}, bad;

    (void)state;
#define FINDING_REFUSED_WITH(change)                                                                                   \
    do {                                                                                                               \
        bad = good;                                                                                                    \
        change;                                                                                                        \
        assert_fails(GTOPO_EUSAGE, gtopo_map_add_finding(map, &bad, &error));                                          \
    } while (0)
    FINDING_REFUSED_WITH(bad.rule = NULL);
    FINDING_REFUSED_WITH(bad.rule = "");
    FINDING_REFUSED_WITH(bad.text = NULL);
    FINDING_REFUSED_WITH(bad.text = "\x1b[31m");
    FINDING_REFUSED_WITH(bad.severity = GTOPO_SEVERITIES);
    FINDING_REFUSED_WITH(bad.object = 99999);
    FINDING_REFUSED_WITH(bad.next_step = "\xff");
    assert_int_equal(gtopo_map_finding_count(map), 0);
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_is_read_back),
        cmocka_unit_test(texts_with_nothing_to_say_are_null),
        cmocka_unit_test(what_is_not_the_usual_is_read_back),
        cmocka_unit_test(a_measurement_without_sense_is_refused),
        cmocka_unit_test(a_measurement_counts_for_the_links_on_its_way),
        cmocka_unit_test(ports_of_one_host_meet_over_their_cables),
        cmocka_unit_test(ports_without_known_cables_cross_nothing_between),
        cmocka_unit_test(a_port_in_loopback_crosses_its_nic_only),
        cmocka_unit_test(memory_to_memory_crosses_the_socket_link),
        cmocka_unit_test(the_best_measurement_of_a_link_is_the_fastest),
        cmocka_unit_test(what_was_not_measured_never_outdoes_what_was),
        cmocka_unit_test(a_link_shows_one_direction_before_the_sum_of_two),
        cmocka_unit_test(a_link_that_nothing_crossed_has_no_measurement),
        cmocka_unit_test(findings_are_kept_in_their_order),
        cmocka_unit_test(a_finding_without_sense_is_refused),
    };

    return cmocka_run_group_tests_name("measurement", tests, NULL, NULL);
}
