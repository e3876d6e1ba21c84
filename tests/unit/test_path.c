/* SPDX-License-Identifier: Apache-2.0 */
/* Paths on maps that a reader can draw: classes, what carries traffic for others, bottlenecks, hops. */
#include "build.h"
#include "lib/map.h"

static struct gtopo_error error;

/* The class of the path, the same in both directions, by its name. */
static const char *class_between(const struct gtopo_map *map, const char *a, const char *b)
{
    struct gtopo_path there, back;
    uint32_t path_class;

    assert_ok(gtopo_path_find(map, at(map, a), at(map, b), &there, &error));
    assert_ok(gtopo_path_find(map, at(map, b), at(map, a), &back, &error));
    assert_string_equal(gtopo_path_class_name(there.path_class), gtopo_path_class_name(back.path_class));
    path_class = there.path_class;
    gtopo_path_clear(&there);
    gtopo_path_clear(&back);
    return gtopo_path_class_name(path_class);
}

/* The objects of the path, separated by spaces. */
static void assert_way(const struct gtopo_map *map, const char *a, const char *b, const char *expected)
{
    char way[1024] = "", name[GTOPO_ADDRESS_MAX];
    struct gtopo_path path;

    assert_ok(gtopo_path_find(map, at(map, a), at(map, b), &path, &error));
    for (uint32_t i = 0; path.objects && i <= path.hops; i++) {
        strcat(way, i ? " " : "");
        strcat(way, gtopo_address_format(map, path.objects[i], name));
    }
    for (uint32_t i = 0; i < path.hops; i++) {
        struct gtopo_link link;

        assert_ok(gtopo_map_link(map, path.links[i], &link, &error));
        assert_true((link.ends[0] == path.objects[i] && link.ends[1] == path.objects[i + 1]) ||
                    (link.ends[1] == path.objects[i] && link.ends[0] == path.objects[i + 1]));
    }
    assert_string_equal(way, expected);
    gtopo_path_clear(&path);
}

static uint64_t bottleneck(const struct gtopo_map *map, const char *a, const char *b)
{
    struct gtopo_path path;
    uint64_t rate;

    assert_ok(gtopo_path_find(map, at(map, a), at(map, b), &path, &error));
    rate = path.bottleneck_Bps;
    gtopo_path_clear(&path);
    return rate;
}

static struct gtopo_map *one_host(const char *description)
{
    struct gtopo_map *map = build_map();

    build_host(map, "h", description);
    build_seal(map);
    return map;
}

static void classes_follow_what_lies_between(void **state)
{
    struct gtopo_map *map = one_host(
        "package0 package1 package0=package1 numa0<package0 numa1<package1 host-bridge0<package0 host-bridge1<package0 "
        "host-bridge2<package1 pci-switch0<host-bridge0 pci-switch1<pci-switch0 pci-switch2<pci-switch0 "
        "gpu0<pci-switch1 nic0<pci-switch1 gpu1<pci-switch2 gpu2<host-bridge0 gpu3<host-bridge1 gpu4<host-bridge2 "
        "nic0:1<nic0");

    (void)state;
    assert_string_equal(class_between(map, "gpu0", "gpu0"), "X");
    assert_string_equal(class_between(map, "nic0", "nic0:1"), "X");
    assert_string_equal(class_between(map, "gpu0", "nic0"), "PIX");
    assert_string_equal(class_between(map, "gpu0", "nic0:1"), "PIX");
    assert_string_equal(class_between(map, "gpu0", "gpu1"), "PXB");
    assert_string_equal(class_between(map, "gpu0", "gpu2"), "PHB");
    assert_string_equal(class_between(map, "gpu0", "gpu3"), "NODE");
    assert_string_equal(class_between(map, "gpu0", "gpu4"), "SYS");
    assert_string_equal(class_between(map, "gpu0", "numa0"), "PHB");
    assert_string_equal(class_between(map, "gpu0", "numa1"), "SYS");
    assert_string_equal(class_between(map, "numa0", "numa1"), "SYS");
    assert_string_equal(class_between(map, "package0", "numa0"), "X");
    assert_string_equal(class_between(map, "host-bridge0", "gpu2"), "PHB");
    assert_string_equal(class_between(map, "host-bridge0", "host-bridge1"), "NODE");
    assert_string_equal(class_between(map, "host-bridge0", "host-bridge0"), "X");
    gtopo_map_free(map);
}

static void links_between_accelerators_have_their_classes(void **state)
{
    struct gtopo_map *map = one_host("package0 numa0<package0 gpu0 gpu1 gpu2 gpu3 nvswitch0 gpu0=gpu1 gpu1=nvswitch0 "
                                     "nvswitch0=gpu2 package0=gpu3");

    (void)state;
    assert_string_equal(class_between(map, "gpu0", "gpu1"), "NV");
    assert_string_equal(class_between(map, "gpu1", "gpu2"), "NV");
    assert_string_equal(class_between(map, "gpu0", "gpu2"), "-"); /* gpu1 forwards nothing */
    assert_string_equal(class_between(map, "gpu3", "numa0"), "C2C");
    gtopo_map_free(map);
}

static void a_machine_that_hides_its_buses_gives_unknown(void **state)
{
    struct gtopo_map *map = one_host("gpu0<machine nic0<machine package0<machine numa0<package0 gpu1");

    (void)state;
    assert_string_equal(class_between(map, "gpu0", "nic0"), "?");
    assert_string_equal(class_between(map, "gpu0", "numa0"), "?");
    assert_string_equal(class_between(map, "machine", "gpu0"), "?");
    assert_string_equal(class_between(map, "gpu0", "gpu1"), "-");
    gtopo_map_free(map);
}

/* On the one bus of a virtual machine, and behind a switch that was given to it. */
static void a_bus_that_a_hypervisor_made_up_gives_unknown(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_host(map, "h",
               "package0 numa0<package0 host-bridge0<machine gpu0<host-bridge0 nic0<host-bridge0 "
               "pci-switch0<host-bridge0 gpu1<pci-switch0 nic1<pci-switch0");
    assert_ok(gtopo_map_set_number(map, at(map, "host-bridge0"), GTOPO_ATTRIBUTE_VIRTUAL, 1, &error));
    build_seal(map);
    assert_string_equal(class_between(map, "gpu0", "nic0"), "?");
    assert_string_equal(class_between(map, "gpu0", "gpu1"), "?");
    assert_string_equal(class_between(map, "host-bridge0", "gpu0"), "?");
    assert_string_equal(class_between(map, "gpu1", "nic1"), "PIX");
    gtopo_map_free(map);
}

static void a_device_on_no_bus_is_at_its_package(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_host(map, "h", "package0 numa0<package0 host-bridge0<package0 gpu0<host-bridge0 nic0");
    build_link(map, GTOPO_LINK_PLATFORM, at(map, "h/nic0"), at(map, "h/package0"), 0);
    build_seal(map);
    assert_string_equal(class_between(map, "gpu0", "nic0"), "NODE");
    assert_string_equal(class_between(map, "numa0", "nic0"), "NODE");
    gtopo_map_free(map);
}

/* Even where the inside is unknown, and the network would join the two as well. */
static void devices_of_one_host_meet_inside_before_the_network(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_host(map, "h", "gpu0<machine nic0<machine nic0:1<nic0 nic1<machine nic1:1<nic1");
    build_switch(map, "leaf");
    build_cable(map, "h/nic0:1", "leaf:1", 0);
    build_cable(map, "h/nic1:1", "leaf:2", 0);
    build_seal(map);
    assert_string_equal(class_between(map, "h/gpu0", "h/nic1"), "?");
    assert_way(map, "h/nic0", "h/nic1", "h/nic0 h h/nic1");
    gtopo_map_free(map);
}

static struct gtopo_map *two_hosts(void)
{
    struct gtopo_map *map = build_map();

    build_host(map, "a", TWO_SOCKETS);
    build_host_like(map, "b", 0);
    build_switch(map, "leaf");
    build_cable(map, "a/nic0:1", "leaf:1", 25 * GB);
    build_cable(map, "b/nic1:1", "leaf:2", 12 * GB);
    build_seal(map);
    return map;
}

static void across_the_network_the_class_is_net(void **state)
{
    struct gtopo_map *map = two_hosts();

    (void)state;
    assert_string_equal(class_between(map, "a/gpu0", "b/gpu1"), "NET");
    assert_string_equal(class_between(map, "a/numa1", "b/numa0"), "NET");
    assert_string_equal(class_between(map, "a/nic0:1", "leaf"), "NET");
    assert_string_equal(class_between(map, "a/nic1:1", "leaf"), "-"); /* it has no cable */
    assert_way(map, "a/gpu0", "b/gpu1",
               "a/gpu0 a/pci-switch0 a/nic0 a/nic0:1 leaf b/nic1:1 b/nic1 b/host-bridge1 b/gpu1");
    assert_int_equal(bottleneck(map, "a/gpu0", "b/gpu1"), 12 * GB);
    gtopo_map_free(map);
}

static void a_host_forwards_nothing_from_port_to_port(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_host(map, "a", "nic0 nic0:1<nic0");
    build_host(map, "b", "host-bridge0 nic0<host-bridge0 nic0:1<nic0 nic0:2<nic0 nic1<host-bridge0 nic1:1<nic1");
    build_host(map, "c", "nic0 nic0:1<nic0");
    for (int i = 1; i <= 3; i++)
        build_switch(map, (const char *[]){"", "s1", "s2", "s3"}[i]);
    build_cable(map, "a/nic0:1", "s1", 0);
    build_cable(map, "b/nic0:1", "s1", 0);
    build_cable(map, "b/nic0:2", "s2", 0);
    build_cable(map, "b/nic1:1", "s3", 0);
    build_cable(map, "c/nic0:1", "s2", 0);
    build_seal(map);
    assert_string_equal(class_between(map, "a/nic0", "c/nic0"), "-");
    assert_string_equal(class_between(map, "a/nic0", "b/nic0:2"), "-"); /* not even to an end of its own */
    assert_string_equal(class_between(map, "a/nic0", "b/nic1:1"), "-");
    assert_string_equal(class_between(map, "a/nic0", "b/nic1"), "NET");
    assert_string_equal(class_between(map, "s1", "s2"), "-");
    gtopo_map_free(map);
}

static void ports_of_a_host_have_a_way_inside(void **state)
{
    struct gtopo_map *map =
        one_host("host-bridge0 nic0<host-bridge0 nic0:1<nic0 nic0:2<nic0 nic1<host-bridge0 nic1:1<nic1");

    (void)state;
    assert_way(map, "nic0:1", "nic0:2", "h/nic0:1 h/nic0 h/nic0:2");
    assert_string_equal(class_between(map, "nic0:1", "nic0:2"), "X"); /* parts of one card */
    assert_way(map, "nic0:1", "nic1:1", "h/nic0:1 h/nic0 h/host-bridge0 h/nic1 h/nic1:1");
    gtopo_map_free(map);
}

static void gpus_and_storage_carry_nothing_for_others(void **state)
{
    struct gtopo_map *map =
        one_host("host-bridge0 host-bridge1 gpu0<host-bridge0 storage0<host-bridge0 nic0<host-bridge0 "
                 "gpu1<host-bridge1 gpu0=gpu1");

    (void)state;
    assert_string_equal(class_between(map, "nic0", "gpu0"), "PHB");
    assert_string_equal(class_between(map, "gpu0", "gpu1"), "NV");
    assert_string_equal(class_between(map, "nic0", "gpu1"), "-");
    gtopo_map_free(map);
}

static void other_hosts_carry_nothing(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    for (int i = 0; i < 3; i++)
        build_host(map, (const char *[]){"a", "b", "c"}[i], "nic0 nic0:1<nic0");
    build_cable(map, "a/nic0:1", "b/nic0:1", 0);
    build_cable(map, "b/nic0:1", "c/nic0:1", 0);
    build_seal(map);
    assert_string_equal(class_between(map, "a/nic0:1", "b/nic0:1"), "NET");
    assert_string_equal(class_between(map, "a/nic0:1", "c/nic0:1"), "-");
    gtopo_map_free(map);
}

static void the_bottleneck_is_the_first_slowest_link(void **state)
{
    struct gtopo_map *map =
        one_host("host-bridge0 pci-switch0<host-bridge0@64 gpu0<pci-switch0@16 nic0<host-bridge0@16");
    struct gtopo_path path;

    (void)state;
    assert_ok(gtopo_path_find(map, at(map, "gpu0"), at(map, "nic0"), &path, &error));
    assert_int_equal(path.hops, 3);
    assert_int_equal(path.bottleneck_Bps, 16 * GB);
    assert_int_equal(path.bottleneck_link, path.links[0]);
    gtopo_path_clear(&path);
    gtopo_map_free(map);
}

static void links_of_unknown_rate_are_no_bottleneck(void **state)
{
    struct gtopo_map *map = one_host("host-bridge0 gpu0<host-bridge0@32 nic0<host-bridge0 gpu1<host-bridge0");
    struct gtopo_path path;

    (void)state;
    assert_int_equal(bottleneck(map, "gpu0", "nic0"), 32 * GB);
    assert_ok(gtopo_path_find(map, at(map, "gpu1"), at(map, "nic0"), &path, &error));
    assert_int_equal(path.bottleneck_Bps, 0);
    assert_int_equal(path.bottleneck_link, GTOPO_NONE);
    gtopo_path_clear(&path);
    gtopo_map_free(map);
}

static void the_widest_of_parallel_ways_is_taken(void **state)
{
    struct gtopo_map *map = one_host("pci-switch0 pci-switch1 gpu0 nic0 gpu0=pci-switch0@50 pci-switch0=nic0@50 "
                                     "gpu0=pci-switch1@100 pci-switch1=nic0@75 gpu0=nic0@25");

    (void)state;
    assert_way(map, "gpu0", "nic0", "h/gpu0 h/pci-switch1 h/nic0");
    assert_int_equal(bottleneck(map, "gpu0", "nic0"), 75 * GB);
    gtopo_map_free(map);
}

static void to_nvswitches_all_links_of_a_gpu_count_together(void **state)
{
    struct gtopo_map *map = one_host("nvswitch0 nvswitch1 gpu0 gpu1 gpu2 gpu0=nvswitch0@50 nvswitch0=gpu1@50 "
                                     "gpu0=nvswitch1@100 nvswitch1=gpu1@75 gpu0=gpu1@25 gpu2=nvswitch1@25");

    (void)state;
    assert_int_equal(bottleneck(map, "gpu0", "gpu1"), 125 * GB);
    assert_int_equal(bottleneck(map, "gpu0", "gpu2"), 25 * GB);
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu0"), at(map, "gpu1")), 1); /* what is direct counts first */
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu1"), at(map, "gpu2")), 1);
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu0"), at(map, "nvswitch1")), 1);
    gtopo_map_free(map);
}

static void of_two_parallel_links_the_wider_is_taken(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_path path;
    uint32_t wide;

    (void)state;
    build_host(map, "h", "gpu0 gpu1 gpu0=gpu1@25");
    wide = build_link(map, GTOPO_LINK_NVLINK, at(map, "gpu0"), at(map, "gpu1"), 100 * GB);
    build_link(map, GTOPO_LINK_NVLINK, at(map, "gpu0"), at(map, "gpu1"), 50 * GB);
    build_seal(map);
    assert_ok(gtopo_path_find(map, at(map, "gpu1"), at(map, "gpu0"), &path, &error));
    assert_int_equal(path.hops, 1);
    assert_int_equal(path.links[0], wide);
    gtopo_path_clear(&path);
    gtopo_map_free(map);
}

static void of_equally_wide_ways_the_shortest_is_taken(void **state)
{
    struct gtopo_map *map = one_host("nvswitch0 nvswitch1 gpu0 gpu1 gpu0=nvswitch0@50 nvswitch0=nvswitch1@90 "
                                     "nvswitch1=gpu1@90 nvswitch0=gpu1@50");

    (void)state;
    assert_way(map, "gpu0", "gpu1", "h/gpu0 h/nvswitch0 h/gpu1");
    gtopo_map_free(map);
}

static void a_lower_class_wins_over_a_wider_way(void **state)
{
    struct gtopo_map *map = one_host("host-bridge0 gpu0<host-bridge0@64 gpu1<host-bridge0@64 gpu0=gpu1@1");

    (void)state;
    assert_string_equal(class_between(map, "gpu0", "gpu1"), "NV");
    assert_int_equal(bottleneck(map, "gpu0", "gpu1"), GB);
    gtopo_map_free(map);
}

static void a_path_to_itself_has_no_hops(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_path path;

    (void)state;
    assert_ok(gtopo_path_find(map, at(map, "a/gpu0"), at(map, "a/gpu0"), &path, &error));
    assert_int_equal(path.hops, 0);
    assert_int_equal(path.objects[0], at(map, "a/gpu0"));
    gtopo_path_clear(&path);
    gtopo_path_clear(&path);
    assert_way(map, "a", "a", "a");
    gtopo_map_free(map);
}

static void the_way_outside_takes_cables_only(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_path path;

    (void)state;
    assert_ok(gtopo_path_find_outside(map, at(map, "a/nic0:1"), at(map, "b/nic1:1"), &path, &error));
    assert_int_equal(path.hops, 2);
    gtopo_path_clear(&path);
    assert_ok(gtopo_path_find_outside(map, at(map, "a/nic0:1"), at(map, "a/nic1:1"), &path, &error));
    assert_int_equal(path.path_class, GTOPO_PATH_NONE);
    gtopo_path_clear(&path);
    gtopo_map_free(map);
}

static void a_path_is_refused_without_ends_or_seal(void **state)
{
    struct gtopo_map *map = two_hosts();
    struct gtopo_path path;

    (void)state;
    assert_fails(GTOPO_ENOTFOUND, gtopo_path_find(map, GTOPO_NONE, 0, &path, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_path_find(map, 0, 99999, &path, &error));
    assert_null(path.objects);
    build_switch(map, "spine");
    assert_fails(GTOPO_EUSAGE, gtopo_path_find(map, 0, 1, &path, &error));
    assert_int_equal(path.path_class, GTOPO_PATH_NONE);
    gtopo_map_free(map);
}

/* A switch with more cables than fit the search's small array. */
static void a_switch_with_many_cables_is_crossed(void **state)
{
    struct gtopo_map *map = build_map();
    char name[32], address[32];

    (void)state;
    build_host(map, "h0", "nic0 nic0:1<nic0");
    for (int i = 1; i < 100; i++) {
        snprintf(name, sizeof name, "h%d", i);
        build_host_like(map, name, 0);
    }
    build_switch(map, "leaf");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "h%d/nic0:1", i);
        snprintf(address, sizeof address, "leaf:%d", i + 1);
        build_cable(map, name, address, 0);
    }
    build_seal(map);
    assert_way(map, "h3/nic0", "h98/nic0", "h3/nic0 h3/nic0:1 leaf h98/nic0:1 h98/nic0");
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_follow_what_lies_between),
        cmocka_unit_test(links_between_accelerators_have_their_classes),
        cmocka_unit_test(a_machine_that_hides_its_buses_gives_unknown),
        cmocka_unit_test(a_bus_that_a_hypervisor_made_up_gives_unknown),
        cmocka_unit_test(a_device_on_no_bus_is_at_its_package),
        cmocka_unit_test(devices_of_one_host_meet_inside_before_the_network),
        cmocka_unit_test(across_the_network_the_class_is_net),
        cmocka_unit_test(a_host_forwards_nothing_from_port_to_port),
        cmocka_unit_test(ports_of_a_host_have_a_way_inside),
        cmocka_unit_test(gpus_and_storage_carry_nothing_for_others),
        cmocka_unit_test(other_hosts_carry_nothing),
        cmocka_unit_test(the_bottleneck_is_the_first_slowest_link),
        cmocka_unit_test(links_of_unknown_rate_are_no_bottleneck),
        cmocka_unit_test(the_widest_of_parallel_ways_is_taken),
        cmocka_unit_test(to_nvswitches_all_links_of_a_gpu_count_together),
        cmocka_unit_test(of_two_parallel_links_the_wider_is_taken),
        cmocka_unit_test(of_equally_wide_ways_the_shortest_is_taken),
        cmocka_unit_test(a_lower_class_wins_over_a_wider_way),
        cmocka_unit_test(a_path_to_itself_has_no_hops),
        cmocka_unit_test(the_way_outside_takes_cables_only),
        cmocka_unit_test(a_path_is_refused_without_ends_or_seal),
        cmocka_unit_test(a_switch_with_many_cables_is_crossed),
    };

    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
