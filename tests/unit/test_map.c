/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a map and reading it back by number; sharing of shapes. */
#include "build.h"

static struct gtopo_error error;

static void a_host_begins_with_its_machine(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_object object;
    uint32_t host = build_host(map, "a", ""), first, count;

    (void)state;
    assert_ok(gtopo_map_host_objects(map, host, &first, &count, &error));
    assert_int_equal(count, 1);
    assert_int_equal(first, gtopo_map_host_machine(map, host));
    assert_ok(gtopo_map_object(map, first, &object, &error));
    assert_int_equal(object.kind, GTOPO_MACHINE);
    assert_int_equal(object.parent, GTOPO_NONE);
    assert_int_equal(object.host, host);
    assert_string_equal(gtopo_map_host_name(map, host), "a");
    gtopo_map_free(map);
}

static void objects_are_numbered_by_kind_in_their_order(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_object object;

    (void)state;
    build_host(map, "a", TWO_SOCKETS);
    assert_ok(gtopo_map_object(map, at(map, "a/gpu1"), &object, &error));
    assert_int_equal(object.kind, GTOPO_GPU);
    assert_int_equal(object.number, 1);
    assert_int_equal(object.parent, at(map, "a/host-bridge1"));
    assert_ok(gtopo_map_object(map, at(map, "a/nic1:1"), &object, &error));
    assert_int_equal(object.number, 1);
    assert_int_equal(object.parent, at(map, "a/nic1"));
    gtopo_map_free(map);
}

static void parents_come_before_children(void **state)
{
    struct gtopo_map *map = build_map();
    uint32_t host = build_host(map, "a", TWO_SOCKETS), first, count;

    (void)state;
    assert_ok(gtopo_map_host_objects(map, host, &first, &count, &error));
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_object object;

        assert_ok(gtopo_map_object(map, id, &object, &error));
        assert_true(object.parent == GTOPO_NONE || object.parent < id);
    }
    gtopo_map_free(map);
}

static void links_keep_what_they_were_given(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_link link = {.kind = GTOPO_LINK_PCIE,
                              .count = 2,
                              .width = 8,
                              .capable_width = 16,
                              .speed_MTps = 16000,
                              .capable_speed_MTps = 32000,
                              .nominal_Bps = 1,
                              .capable_Bps = 2};
    struct gtopo_link read;
    uint32_t id;

    (void)state;
    build_host(map, "a", "host-bridge0 gpu0");
    link.ends[0] = at(map, "a/gpu0");
    link.ends[1] = at(map, "a/host-bridge0");
    assert_ok(gtopo_map_add_link(map, &link, &id, &error));
    assert_ok(gtopo_map_link(map, id, &read, &error));
    assert_memory_equal(&read, &link, sizeof link);
    gtopo_map_free(map);
}

static void check_links_one_by_one(const struct gtopo_map *map, uint32_t id)
{
    uint32_t links[8];
    size_t count = gtopo_map_links_of(map, id, links, 8);
    struct gtopo_link link, same;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(gtopo_map_link_of(map, id, i, &link), links[i]);
        assert_int_equal(gtopo_map_link(map, links[i], &same, NULL), 0);
        assert_memory_equal(&link, &same, sizeof link);
    }
    assert_int_equal(gtopo_map_link_of(map, id, count, &link), GTOPO_NONE);
}

static void links_of_an_object_are_its_own(void **state)
{
    struct gtopo_map *map = build_map();
    uint32_t links[8], sw;

    (void)state;
    build_host(map, "a", TWO_SOCKETS);
    build_host(map, "b", TWO_SOCKETS);
    sw = build_switch(map, "leaf");
    build_cable(map, "b/nic0:1", "leaf:4", 25 * GB);
    assert_int_equal(gtopo_map_links_of(map, at(map, "b/nic0"), links, 8), 0); /* not sealed yet */
    build_seal(map);
    assert_int_equal(gtopo_map_links_of(map, at(map, "b/nic0:1"), links, 8), 2);
    for (int i = 0; i < 2; i++) {
        struct gtopo_link link;

        assert_ok(gtopo_map_link(map, links[i], &link, &error));
        assert_true(link.ends[0] == at(map, "b/nic0:1") || link.ends[1] == at(map, "b/nic0:1"));
    }
    assert_int_equal(gtopo_map_links_of(map, at(map, "b/pci-switch0"), links, 1), 3); /* more than there is room for */
    assert_int_equal(gtopo_map_links_of(map, sw, links, 8), 1);
    assert_int_equal(gtopo_map_links_of(map, 12345, links, 8), 0);
    check_links_one_by_one(map, at(map, "b/nic0:1"));
    check_links_one_by_one(map, at(map, "b/pci-switch0"));
    check_links_one_by_one(map, sw);
    check_links_one_by_one(map, 12345);
    gtopo_map_free(map);
}

static void a_host_name_is_refused_when_it_cannot_be_an_address(void **state)
{
    struct gtopo_map *map = build_map();
    static const char *const bad[] = {"", "a/b", "a:b", "a@b", "a\nb", "\xff", "\x7f", "\xc2\x85"};
    char long_name[257];
    uint32_t id;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(GTOPO_EUSAGE, gtopo_map_add_host(map, bad[i], &id, &error));
        assert_fails(GTOPO_EUSAGE, gtopo_map_add_switch(map, bad[i], &id, &error));
    }
    memset(long_name, 'x', sizeof long_name);
    long_name[256] = 0;
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_host(map, long_name, &id, &error));
    long_name[255] = 0;
    assert_ok(gtopo_map_add_host(map, long_name, &id, &error));
    assert_int_equal(gtopo_map_host_count(map), 1);
    gtopo_map_free(map);
}

static void names_are_unique_among_hosts_and_switches(void **state)
{
    struct gtopo_map *map = build_map();
    uint32_t id;

    (void)state;
    build_host(map, "a", "");
    build_switch(map, "leaf");
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_host(map, "a", &id, &error));
    assert_contains(error.message, "\"a\"");
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_host(map, "leaf", &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_switch(map, "a", &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_switch(map, "leaf", &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_host_like(map, "a", 0, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_host_like(map, "b", 7, &id, &error));
    assert_int_equal(gtopo_map_find_host(map, "leaf"), GTOPO_NONE);
    assert_int_equal(gtopo_map_find_host(map, "b"), GTOPO_NONE);
    assert_int_equal(gtopo_map_find_host(map, ""), GTOPO_NONE);
    gtopo_map_free(map);
}

static void objects_go_on_the_host_begun_last_only(void **state)
{
    struct gtopo_map *map = build_map();
    uint32_t id;

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_GPU, 0, 0, &id, &error));
    build_host(map, "a", "package0");
    build_host(map, "b", "package0");
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_GPU, at(map, "a/package0"), 0, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_GPU, GTOPO_NONE, 0, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_MACHINE, at(map, "b"), 0, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_SWITCH, at(map, "b"), 0, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_OBJECT_KINDS, at(map, "b"), 0, &id, &error));
    gtopo_map_free(map);
}

static void a_port_is_on_a_nic_and_has_a_free_number(void **state)
{
    struct gtopo_map *map = build_map();
    uint32_t id, nic;

    (void)state;
    build_host(map, "a", "nic0 gpu0");
    nic = at(map, "a/nic0");
    assert_ok(gtopo_map_add_object(map, GTOPO_PORT, nic, 2, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_PORT, nic, 2, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_PORT, nic, 0, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_PORT, nic, 65536, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_PORT, at(map, "a/gpu0"), 1, &id, &error));
    assert_ok(gtopo_map_add_object(map, GTOPO_PORT, nic, 1, &id, &error));
    gtopo_map_free(map);
}

static void a_link_that_makes_no_sense_is_refused(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_link good = {.kind = GTOPO_LINK_PCIE, .count = 1}, bad;
    uint32_t id;

    (void)state;
    build_host(map, "a", "gpu0");
    build_host(map, "b", "gpu0 gpu1");
    build_switch(map, "leaf");
    good.ends[0] = at(map, "b/gpu0");
    good.ends[1] = at(map, "b/gpu1");
#define REFUSED_WITH(change)                                                                                           \
    do {                                                                                                               \
        bad = good;                                                                                                    \
        change;                                                                                                        \
        assert_fails(GTOPO_EUSAGE, gtopo_map_add_link(map, &bad, &id, &error));                                        \
    } while (0)
    REFUSED_WITH(bad.kind = GTOPO_LINK_KINDS);
    REFUSED_WITH(bad.count = 0);
    REFUSED_WITH(bad.ends[0] = GTOPO_NONE);
    REFUSED_WITH(bad.ends[1] = 999);
    REFUSED_WITH(bad.ends[1] = bad.ends[0]);
    REFUSED_WITH(bad.ends[0] = at(map, "a/gpu0"));
    REFUSED_WITH(bad.ends[1] = at(map, "leaf"));
    REFUSED_WITH((bad.ends[0] = at(map, "a/gpu0"), bad.ends[1] = at(map, "a")));
    REFUSED_WITH(bad.ports[1] = 3);
    REFUSED_WITH(bad.nominal_Bps = UINT64_MAX);
    REFUSED_WITH(bad.capable_Bps = UINT64_C(1) << 63);
    REFUSED_WITH(bad.kind = GTOPO_LINK_NETWORK);
    assert_ok(gtopo_map_add_link(map, &good, &id, &error));
    gtopo_map_free(map);
}

static void a_cable_ends_at_ports_and_switches(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_link cable = {.kind = GTOPO_LINK_NETWORK, .count = 1, .ports = {0, 17}}, read;
    uint32_t id;

    (void)state;
    build_host(map, "a", "nic0 nic0:1<nic0");
    cable.ends[0] = at(map, "a/nic0");
    cable.ends[1] = build_switch(map, "leaf");
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_link(map, &cable, &id, &error));
    assert_contains(error.message, "nic");
    cable.ends[0] = at(map, "a/nic0:1");
    cable.ports[0] = 1;
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_link(map, &cable, &id, &error));
    cable.ports[0] = 0;
    assert_ok(gtopo_map_add_link(map, &cable, &id, &error));
    assert_true(id >= GTOPO_FABRIC_BASE);
    assert_ok(gtopo_map_link(map, id, &read, &error));
    assert_memory_equal(&read, &cable, sizeof read);
    assert_int_equal(gtopo_map_network_link_count(map), 1);
    gtopo_map_free(map);
}

static void what_is_not_there_is_not_found(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_object object;
    struct gtopo_link link;
    uint32_t first, count;

    (void)state;
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_object(map, 0, &object, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_link(map, 0, &link, &error));
    build_host(map, "a", "gpu0");
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_object(map, 2, &object, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_object(map, GTOPO_FABRIC_BASE, &object, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_link(map, 0, &link, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_link(map, GTOPO_NONE, &link, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_host_objects(map, 1, &first, &count, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_map_host_links(map, 1, &first, &count, &error));
    assert_null(gtopo_map_host_name(map, 1));
    assert_int_equal(gtopo_map_host_machine(map, 1), GTOPO_NONE);
    assert_int_equal(gtopo_map_host_shape(map, 1), GTOPO_NONE);
    gtopo_map_free(map);
    gtopo_map_free(NULL);
}

static void equal_hosts_share_a_shape_once_sealed(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_host(map, "a", TWO_SOCKETS);
    build_host(map, "odd", "package0");
    build_host(map, "b", TWO_SOCKETS);
    build_host(map, "c", TWO_SOCKETS);
    build_seal(map);
    assert_int_equal(gtopo_map_shape_count(map), 2);
    assert_int_equal(gtopo_map_host_shape(map, 0), gtopo_map_host_shape(map, 2));
    assert_int_equal(gtopo_map_host_shape(map, 0), gtopo_map_host_shape(map, 3));
    assert_int_not_equal(gtopo_map_host_shape(map, 0), gtopo_map_host_shape(map, 1));
    assert_int_equal(build_kind_of(map, at(map, "c/nic1:1")), GTOPO_PORT);
    gtopo_map_free(map);
}

static void a_host_like_another_has_its_objects_and_none_of_its_identity(void **state)
{
    struct gtopo_map *map = build_map();
    uint64_t number = 0;

    (void)state;
    build_host(map, "a", TWO_SOCKETS);
    assert_ok(gtopo_map_set_number(map, at(map, "a/nic0"), GTOPO_ATTRIBUTE_LANES, 8, &error));
    assert_ok(gtopo_map_set_number(map, at(map, "a/nic0"), GTOPO_ATTRIBUTE_GUID, 1, &error));
    build_host_like(map, "b", 0);
    assert_int_equal(gtopo_map_number(map, at(map, "b/nic0"), GTOPO_ATTRIBUTE_LANES, &number), 1);
    assert_int_equal(number, 8);
    assert_int_equal(gtopo_map_number(map, at(map, "b/nic0"), GTOPO_ATTRIBUTE_GUID, &number), 0);
    assert_ok(gtopo_map_set_number(map, at(map, "b/nic0"), GTOPO_ATTRIBUTE_GUID, 2, &error));
    assert_int_equal(gtopo_map_number(map, at(map, "a/nic0"), GTOPO_ATTRIBUTE_GUID, &number), 1);
    assert_int_equal(number, 1);
    gtopo_map_free(map);
}

static void nothing_is_added_to_a_shared_or_sealed_shape(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_link link = {.kind = GTOPO_LINK_NVLINK, .count = 1};
    uint32_t id;

    (void)state;
    build_host(map, "a", "package0 gpu0 gpu1");
    build_host_like(map, "b", 0);
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_GPU, at(map, "b"), 0, &id, &error));
    link.ends[0] = at(map, "b/gpu0");
    link.ends[1] = at(map, "b/gpu1");
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_link(map, &link, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_number(map, at(map, "a/gpu0"), GTOPO_ATTRIBUTE_NUMA, 0, &error));
    build_host(map, "c", "gpu0");
    build_seal(map);
    assert_fails(GTOPO_EUSAGE, gtopo_map_add_object(map, GTOPO_GPU, at(map, "c"), 0, &id, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_unknown(map, at(map, "c/gpu0"), GTOPO_ATTRIBUTE_MODEL, &error));
    gtopo_map_free(map);
}

static void a_sealed_map_can_be_filled_and_sealed_again(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_seal(map); /* empty */
    build_host(map, "a", TWO_SOCKETS);
    build_seal(map);
    build_seal(map);
    build_host(map, "b", TWO_SOCKETS);
    build_host_like(map, "c", 0);
    build_seal(map);
    assert_int_equal(gtopo_map_shape_count(map), 1);
    assert_int_equal(gtopo_map_host_count(map), 3);
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_begins_with_its_machine),
        cmocka_unit_test(objects_are_numbered_by_kind_in_their_order),
        cmocka_unit_test(parents_come_before_children),
        cmocka_unit_test(links_keep_what_they_were_given),
        cmocka_unit_test(links_of_an_object_are_its_own),
        cmocka_unit_test(a_host_name_is_refused_when_it_cannot_be_an_address),
        cmocka_unit_test(names_are_unique_among_hosts_and_switches),
        cmocka_unit_test(objects_go_on_the_host_begun_last_only),
        cmocka_unit_test(a_port_is_on_a_nic_and_has_a_free_number),
        cmocka_unit_test(a_link_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_cable_ends_at_ports_and_switches),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(equal_hosts_share_a_shape_once_sealed),
        cmocka_unit_test(a_host_like_another_has_its_objects_and_none_of_its_identity),
        cmocka_unit_test(nothing_is_added_to_a_shared_or_sealed_shape),
        cmocka_unit_test(a_sealed_map_can_be_filled_and_sealed_again),
    };

    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
