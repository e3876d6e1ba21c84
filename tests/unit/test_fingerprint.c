/* SPDX-License-Identifier: Apache-2.0 */
/* What makes two hosts look the same, and what does not. */
#include "build.h"

static struct gtopo_error error;

static uint64_t fingerprint_of_last(struct gtopo_map *map)
{
    build_seal(map);
    return gtopo_map_shape_fingerprint(map, gtopo_map_host_shape(map, gtopo_map_host_count(map) - 1));
}

static uint64_t fingerprint_of(const char *description)
{
    struct gtopo_map *map = build_map();
    uint64_t fingerprint;

    build_host(map, "a", description);
    fingerprint = fingerprint_of_last(map);
    gtopo_map_free(map);
    return fingerprint;
}

static void order_of_enumeration_does_not_matter(void **state)
{
    (void)state;
    assert_int_equal(
        fingerprint_of("package0 host-bridge0<package0 gpu0<host-bridge0@32 nic0<host-bridge0@16 nic0:1<nic0"),
        fingerprint_of("package0 host-bridge0<package0 nic0<host-bridge0@16 nic0:1<nic0 gpu0<host-bridge0@32"));
}

/* Eight devices of different models, added in random order under random parents of equal look. */
static uint64_t shuffled(unsigned seed)
{
    static const char *const models[] = {"A", "B", "C", "D", "A", "B", "C", "C"};
    unsigned order[8] = {0, 1, 2, 3, 4, 5, 6, 7}, bridges[2];
    struct gtopo_map *map = build_map();
    uint64_t fingerprint;

    for (unsigned i = 7; i > 0; i--) {
        unsigned j = (unsigned)rand_r(&seed) % (i + 1), held = order[i];

        order[i] = order[j];
        order[j] = held;
    }
    build_host(map, "a", "package0 host-bridge0<package0 host-bridge1<package0");
    bridges[0] = build_find(map, seed & 1 ? "host-bridge0" : "host-bridge1");
    bridges[1] = build_find(map, seed & 1 ? "host-bridge1" : "host-bridge0");
    for (unsigned i = 0; i < 8; i++) {
        uint32_t id, parent = bridges[order[i] >= 4];

        assert_ok(gtopo_map_add_object(map, GTOPO_GPU, parent, 0, &id, &error));
        assert_ok(gtopo_map_set_text(map, id, GTOPO_ATTRIBUTE_MODEL, models[order[i]], &error));
        build_link(map, GTOPO_LINK_PCIE, id, parent, 32 * GB);
    }
    fingerprint = fingerprint_of_last(map);
    gtopo_map_free(map);
    return fingerprint;
}

static void shuffled_devices_give_the_same_fingerprint(void **state)
{
    uint64_t first = shuffled(0);

    (void)state;
    for (unsigned seed = 1; seed < 200; seed++)
        assert_int_equal(shuffled(seed), first);
}

static void identity_does_not_matter(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    for (int i = 0; i < 2; i++) {
        build_host(map, i ? "b" : "a", TWO_SOCKETS);
        assert_ok(gtopo_map_set_number(map, build_find(map, "nic0:1"), GTOPO_ATTRIBUTE_GUID, 7 + (uint64_t)i, &error));
        assert_ok(gtopo_map_set_text(map, build_find(map, "gpu0"), GTOPO_ATTRIBUTE_UUID, i ? "x" : "y", &error));
        assert_ok(gtopo_map_set_text(map, build_find(map, "gpu1"), GTOPO_ATTRIBUTE_PCI_ADDRESS,
                                     i ? "0000:3b:00.0" : "0000:5e:00.0", &error));
    }
    build_seal(map);
    assert_int_equal(gtopo_map_shape_count(map), 1);
    gtopo_map_free(map);
}

static void one_nic_at_half_its_lanes_is_another_shape(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct gtopo_link link = {.kind = GTOPO_LINK_PCIE, .count = 1, .width = i ? 8 : 16, .capable_width = 16};
        uint32_t id;

        build_host(map, i ? "b" : "a", "host-bridge0 nic0 nic1");
        link.ends[0] = build_find(map, "nic1");
        link.ends[1] = build_find(map, "host-bridge0");
        assert_ok(gtopo_map_add_link(map, &link, &id, &error));
    }
    build_seal(map);
    assert_int_equal(gtopo_map_shape_count(map), 2);
    assert_int_not_equal(gtopo_map_shape_fingerprint(map, 0), gtopo_map_shape_fingerprint(map, 1));
    gtopo_map_free(map);
}

static void every_fact_of_a_link_counts(void **state)
{
    struct gtopo_link base = {.kind = GTOPO_LINK_PCIE, .count = 1}, links[8];
    uint64_t seen[8];

    (void)state;
    for (int i = 0; i < 8; i++)
        links[i] = base;
    links[1].kind = GTOPO_LINK_C2C;
    links[2].count = 2;
    links[3].width = 1;
    links[4].capable_width = 1;
    links[5].speed_MTps = 1;
    links[6].capable_speed_MTps = 1;
    links[7].nominal_Bps = 1;
    for (int i = 0; i < 8; i++) {
        struct gtopo_map *map = build_map();
        uint32_t id;

        build_host(map, "a", "host-bridge0 gpu0");
        links[i].ends[0] = build_find(map, "gpu0");
        links[i].ends[1] = build_find(map, "host-bridge0");
        assert_ok(gtopo_map_add_link(map, &links[i], &id, &error));
        seen[i] = fingerprint_of_last(map);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(seen[i], seen[j]);
        gtopo_map_free(map);
    }
}

/* The same devices, joined otherwise. */
static void where_a_device_hangs_matters(void **state)
{
    (void)state;
    assert_int_not_equal(
        fingerprint_of("host-bridge0 host-bridge1 gpu0<host-bridge0 gpu1<host-bridge0 nic0<host-bridge1"),
        fingerprint_of("host-bridge0 host-bridge1 gpu0<host-bridge0 gpu1<host-bridge1 nic0<host-bridge1"));
    assert_int_not_equal(fingerprint_of("gpu0 gpu1 gpu2 gpu3 gpu0=gpu1 gpu1=gpu2 gpu2=gpu3 gpu3=gpu0"),
                         fingerprint_of("gpu0 gpu1 gpu2 gpu3 gpu0=gpu1 gpu1=gpu2 gpu2=gpu0 gpu2=gpu3"));
}

/* Colour refinement cannot tell a ring of six from two rings of three; sharing compares the shapes themselves. */
static void shapes_of_one_fingerprint_that_differ_are_not_shared(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_host(map, "a", "gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu0=gpu1 gpu1=gpu2 gpu2=gpu3 gpu3=gpu4 gpu4=gpu5 gpu5=gpu0");
    build_host(map, "b", "gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu0=gpu1 gpu1=gpu2 gpu2=gpu0 gpu3=gpu4 gpu4=gpu5 gpu5=gpu3");
    build_seal(map);
    assert_int_equal(gtopo_map_shape_count(map), 2);
    gtopo_map_free(map);
}

static void the_number_of_devices_matters(void **state)
{
    (void)state;
    assert_int_not_equal(fingerprint_of("gpu0 gpu1"), fingerprint_of("gpu0 gpu1 gpu2"));
    assert_int_not_equal(fingerprint_of(""), fingerprint_of("gpu0"));
}

/* A port's number is printed on the card; it is no enumeration. */
static void the_number_of_a_port_matters(void **state)
{
    (void)state;
    assert_int_not_equal(fingerprint_of("nic0 nic0:1<nic0"), fingerprint_of("nic0 nic0:2<nic0"));
}

/* Files hold it, and maps of different machines are compared by it: a change needs a new version of the format. */
static void a_known_host_keeps_its_fingerprint(void **state)
{
    (void)state;
    assert_int_equal(fingerprint_of(TWO_SOCKETS), fingerprint_of(TWO_SOCKETS));
    assert_int_equal(fingerprint_of(TWO_SOCKETS), UINT64_C(0x26b2a19ea95ab9e1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_enumeration_does_not_matter),
        cmocka_unit_test(shuffled_devices_give_the_same_fingerprint),
        cmocka_unit_test(identity_does_not_matter),
        cmocka_unit_test(one_nic_at_half_its_lanes_is_another_shape),
        cmocka_unit_test(every_fact_of_a_link_counts),
        cmocka_unit_test(where_a_device_hangs_matters),
        cmocka_unit_test(shapes_of_one_fingerprint_that_differ_are_not_shared),
        cmocka_unit_test(the_number_of_devices_matters),
        cmocka_unit_test(the_number_of_a_port_matters),
        cmocka_unit_test(a_known_host_keeps_its_fingerprint),
    };

    return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
