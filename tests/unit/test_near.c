/* SPDX-License-Identifier: Apache-2.0 */
/* What is near a device: its processors, also where memory of GPUs has nodes of its own, and its NICs in their order.
 */
#include "build.h"
#include <gputopo/affinity.h>

static struct gtopo_error error;

static void set_number(struct gtopo_map *map, const char *name, enum gtopo_attribute attribute, uint64_t number)
{
    assert_ok(gtopo_map_set_number(map, at(map, name), attribute, number, &error));
}

/* A NUMA node with this number and these processors; "" for memory alone. */
static void set_node(struct gtopo_map *map, const char *name, uint64_t os_index, const char *cpus)
{
    set_number(map, name, GTOPO_ATTRIBUTE_OS_INDEX, os_index);
    if (*cpus)
        assert_ok(gtopo_map_set_text(map, at(map, name), GTOPO_ATTRIBUTE_CPUS, cpus, &error));
}

static struct gtopo_map *one_host(const char *description)
{
    struct gtopo_map *map = build_map();

    build_host(map, "h", description);
    return map;
}

/* The name within the host of what is near, or "?". */
static const char *place_name(const struct gtopo_map *map, int status, uint32_t place)
{
    static char text[GTOPO_ADDRESS_MAX];

    if (status) {
        assert_int_equal(status, GTOPO_EMISSING);
        assert_int_equal(error.code, GTOPO_EMISSING);
        return "?";
    }
    gtopo_address_format(map, place, text);
    return strchr(text, '/') + 1;
}

static const char *near(const struct gtopo_map *map, const char *device)
{
    uint32_t place = GTOPO_NONE;
    int status = gtopo_processors_near(map, at(map, device), &place, &error);

    return place_name(map, status, place);
}

static const char *pair(const struct gtopo_map *map, const char *gpu, const char *nic)
{
    uint32_t place = GTOPO_NONE;
    int status = gtopo_processors_of_pair(map, at(map, gpu), at(map, nic), &place, &error);

    return place_name(map, status, place);
}

static void a_device_has_the_processors_of_its_node(void **state)
{
    struct gtopo_map *map = one_host(TWO_SOCKETS);

    (void)state;
    set_node(map, "numa0", 0, "0-7");
    set_node(map, "numa1", 1, "8-15");
    set_number(map, "gpu0", GTOPO_ATTRIBUTE_NUMA, 1); /* the kernel's word goes before the tree's */
    build_seal(map);
    assert_string_equal(near(map, "gpu0"), "numa1");
    assert_string_equal(near(map, "nic0:1"), "numa0");
    assert_string_equal(pair(map, "gpu0", "nic0"), "numa1"); /* apart: the GPU's */
    assert_string_equal(pair(map, "gpu1", "nic1:1"), "numa1");
    gtopo_map_free(map);
}

/* GH200, POWER9: the GPU's memory is a node without processors, and some firmware names that as the GPU's node. */
static void memory_of_a_gpu_is_no_place_for_a_thread(void **state)
{
    struct gtopo_map *map = one_host("package0 numa0<package0 numa1<package0 package1 numa2<package1 numa3<package1 "
                                     "host-bridge0<package1 gpu0<host-bridge0 gpu1 package0=gpu1");

    (void)state;
    set_node(map, "numa0", 0, "0-7");
    set_node(map, "numa1", 255, "");
    set_node(map, "numa2", 8, "8-15");
    set_node(map, "numa3", 254, "");
    set_number(map, "gpu0", GTOPO_ATTRIBUTE_NUMA, 254);
    build_seal(map);
    assert_string_equal(near(map, "gpu0"), "numa2");
    assert_string_equal(near(map, "numa3"), "numa2");
    assert_string_equal(near(map, "gpu1"), "numa0"); /* over C2C, on no bus */
    gtopo_map_free(map);
}

static void a_package_of_several_nodes_is_the_place_until_one_is_named(void **state)
{
    struct gtopo_map *map = one_host("package0 package1 numa0<package0 numa1<package0 numa2<package1 "
                                     "host-bridge0<package0 gpu0<host-bridge0 nic0<host-bridge0");

    (void)state;
    set_node(map, "numa0", 0, "0-3");
    set_node(map, "numa1", 1, "4-7");
    set_node(map, "numa2", 2, "8-15");
    assert_ok(gtopo_map_set_text(map, at(map, "package0"), GTOPO_ATTRIBUTE_CPUS, "0-7", &error));
    set_number(map, "nic0", GTOPO_ATTRIBUTE_NUMA, 1);
    build_seal(map);
    assert_string_equal(near(map, "gpu0"), "package0");
    assert_string_equal(pair(map, "gpu0", "nic0"), "numa1");
    gtopo_map_free(map);
}

static void what_the_machine_hides_is_unknown_unless_there_is_one_node(void **state)
{
    struct gtopo_map *map = one_host("package0 package1 numa0<package0 numa1<package1 gpu0<machine nic0<machine");

    (void)state;
    set_node(map, "numa0", 0, "0-3");
    set_node(map, "numa1", 1, "4-7");
    set_number(map, "nic0", GTOPO_ATTRIBUTE_NUMA, 1);
    build_seal(map);
    assert_string_equal(near(map, "gpu0"), "?");
    assert_contains(error.message, "gpu0");
    assert_string_equal(pair(map, "gpu0", "nic0"), "numa1");
    gtopo_map_free(map);
    map = one_host("package0 numa0<package0 gpu0<machine nic0<machine");
    set_node(map, "numa0", 0, "0-3");
    build_seal(map);
    assert_string_equal(pair(map, "gpu0", "nic0"), "numa0");
    gtopo_map_free(map);
    map = one_host("gpu0<machine nic0<machine");
    build_seal(map);
    assert_string_equal(pair(map, "gpu0", "nic0"), "?");
    gtopo_map_free(map);
    map = one_host("package0 numa0<package0 numa1<machine gpu0<numa1");
    set_node(map, "numa0", 0, "0-3");
    set_node(map, "numa1", 1, ""); /* as in a file that does not name them */
    build_seal(map);
    assert_string_equal(near(map, "gpu0"), "?");
    gtopo_map_free(map);
}

static void wrong_questions_are_refused(void **state)
{
    struct gtopo_map *map = one_host("gpu0 nic0");
    struct gtopo_near_nic nic;
    uint32_t place;
    size_t count;

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_processors_near(map, at(map, "gpu0"), &place, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_nearest_nics(map, at(map, "gpu0"), &nic, 1, &count, &error));
    build_seal(map);
    assert_fails(GTOPO_ENOTFOUND, gtopo_processors_near(map, 7, &place, &error));
    assert_fails(GTOPO_ENOTFOUND, gtopo_processors_of_pair(map, at(map, "gpu0"), 7, &place, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_nearest_nics(map, at(map, "nic0"), &nic, 1, &count, &error));
    assert_contains(error.message, "nic");
    gtopo_map_free(map);
}

static void nics_come_nearest_first_and_without_a_link_last(void **state)
{
    struct gtopo_map *map = one_host(
        "package0 numa0<package0 host-bridge0<package0 pci-switch0<host-bridge0@16 gpu0<pci-switch0@64 "
        "nic0<host-bridge0@32 nic1<pci-switch0@32 nic1:1<nic1@12 nic1:2<nic1@25 nic2<pci-switch0@32 nic2:1<nic2@50 "
        "nic3<pci-switch0@64 nic3:1<nic3@50 nic4");
    static const struct {
        const char *nic, *port, *path_class;
        uint64_t bottleneck_Bps;
        int is_down;
    } expected[] = {{"nic2", "nic2:1", "PIX", 32 * GB, 0},
                    {"nic1", "nic1:2", "PIX", 25 * GB, 0},
                    {"nic0", NULL, "PHB", 16 * GB, 0},
                    {"nic4", NULL, "-", 0, 0},
                    {"nic3", "nic3:1", "PIX", 50 * GB, 1}};
    struct gtopo_near_nic nics[8];
    size_t count;

    (void)state;
    assert_ok(gtopo_map_set_text(map, at(map, "nic3:1"), GTOPO_ATTRIBUTE_STATE, "down", &error));
    build_seal(map);
    assert_ok(gtopo_nearest_nics(map, at(map, "gpu0"), nics, 8, &count, &error));
    assert_int_equal(count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(nics[i].nic, at(map, expected[i].nic));
        assert_int_equal(nics[i].port, expected[i].port ? at(map, expected[i].port) : GTOPO_NONE);
        assert_string_equal(gtopo_path_class_name(nics[i].path_class), expected[i].path_class);
        assert_int_equal(nics[i].bottleneck_Bps, expected[i].bottleneck_Bps);
        assert_int_equal(nics[i].is_down, expected[i].is_down);
        assert_int_equal(nics[i].bottleneck_link == GTOPO_NONE, !expected[i].bottleneck_Bps);
    }
    nics[1].nic = GTOPO_NONE;
    assert_ok(gtopo_nearest_nics(map, at(map, "gpu0"), nics, 1, &count, &error));
    assert_int_equal(count, 5);
    assert_int_equal(nics[1].nic, GTOPO_NONE);
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_the_processors_of_its_node),
        cmocka_unit_test(memory_of_a_gpu_is_no_place_for_a_thread),
        cmocka_unit_test(a_package_of_several_nodes_is_the_place_until_one_is_named),
        cmocka_unit_test(what_the_machine_hides_is_unknown_unless_there_is_one_node),
        cmocka_unit_test(wrong_questions_are_refused),
        cmocka_unit_test(nics_come_nearest_first_and_without_a_link_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
