/* SPDX-License-Identifier: Apache-2.0 */
/* Appending the hosts of one map to another: how the maps of several agents become one. */
#include "full_map.h"

static struct gtopo_error error;

static struct gtopo_map *one_host(const char *name, const char *description)
{
    struct gtopo_map *map = build_map();

    build_host(map, name, description);
    build_seal(map);
    return map;
}

static void hosts_of_one_look_share_a_shape_after_the_next_seal(void **state)
{
    struct gtopo_map *map = one_host("a", TWO_SOCKETS), *same = one_host("b", TWO_SOCKETS),
                     *odd = one_host("c", "gpu0");

    (void)state;
    assert_ok(gtopo_map_add_hosts_of(map, same, &error));
    assert_ok(gtopo_map_add_hosts_of(map, odd, &error));
    build_seal(map);
    assert_int_equal(gtopo_map_host_count(map), 3);
    assert_int_equal(gtopo_map_shape_count(map), 2);
    assert_int_equal(build_kind_of(map, at(map, "b/nic1:1")), GTOPO_PORT);
    gtopo_map_free(map);
    gtopo_map_free(same);
    gtopo_map_free(odd);
}

static void values_measurements_and_findings_come_along(void **state)
{
    struct gtopo_map *map = one_host("first", "gpu0"), *other = full_map();
    struct gtopo_measurement m;
    struct gtopo_finding finding;
    uint64_t guid = 0;

    (void)state;
    assert_ok(gtopo_map_add_hosts_of(map, other, &error));
    build_seal(map);
    assert_int_equal(gtopo_map_host_count(map), 4);
    assert_int_equal(gtopo_map_number(map, at(map, "b/nic0:1"), GTOPO_ATTRIBUTE_GUID, &guid), 1);
    assert_int_equal(guid, 1);
    assert_string_equal(gtopo_map_text(map, at(map, "b/gpu0"), GTOPO_ATTRIBUTE_MODEL), "H200");
    assert_int_equal(gtopo_map_measurement_count(map), 4);
    assert_ok(gtopo_map_measurement(map, 0, &m, &error));
    assert_int_equal(m.to.memory, at(map, "b/gpu0"));
    assert_int_equal(m.to.via, at(map, "b/nic0:1"));
    assert_ok(gtopo_map_finding(map, 0, &finding, &error));
    assert_int_equal(finding.object, at(map, "b/nic1:1"));
    gtopo_map_free(map);
    gtopo_map_free(other);
}

static void a_name_that_is_taken_is_refused(void **state)
{
    struct gtopo_map *map = one_host("a", "gpu0"), *other = one_host("a", "gpu0");

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_hosts_of(map, other, &error));
    assert_contains(error.message, "\"a\"");
    gtopo_map_free(map);
    gtopo_map_free(other);
}

static void an_unsealed_map_or_the_map_itself_is_refused(void **state)
{
    struct gtopo_map *map = one_host("a", "gpu0"), *other = build_map();

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_hosts_of(map, other, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_hosts_of(map, map, &error));
    assert_int_equal(gtopo_map_host_count(map), 1);
    gtopo_map_free(map);
    gtopo_map_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_of_one_look_share_a_shape_after_the_next_seal),
        cmocka_unit_test(values_measurements_and_findings_come_along),
        cmocka_unit_test(a_name_that_is_taken_is_refused),
        cmocka_unit_test(an_unsealed_map_or_the_map_itself_is_refused),
    };

    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
