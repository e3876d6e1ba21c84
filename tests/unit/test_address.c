/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: reading and writing them. */
#include "build.h"

static struct gtopo_error error;

static struct gtopo_map *two_hosts_and_a_leaf(void)
{
    struct gtopo_map *map = build_map();

    build_host(map, "node3", TWO_SOCKETS);
    build_host_like(map, "node4", 0);
    build_switch(map, "leaf4");
    return map;
}

static struct gtopo_address parse(const struct gtopo_map *map, const char *text)
{
    struct gtopo_address address;

    assert_ok(gtopo_address_parse(map, text, &address, &error));
    return address;
}

static void every_address_is_read_as_it_is_written(void **state)
{
    struct gtopo_map *map = two_hosts_and_a_leaf();
    uint32_t first, count;
    char text[GTOPO_ADDRESS_MAX];

    (void)state;
    for (uint32_t host = 0; host < 2; host++) {
        assert_ok(gtopo_map_host_objects(map, host, &first, &count, &error));
        for (uint32_t id = first; id < first + count; id++)
            assert_int_equal(parse(map, gtopo_address_format(map, id, text)).object, id);
    }
    assert_string_equal(gtopo_address_format(map, at(map, "node4/nic1:1"), text), "node4/nic1:1");
    assert_string_equal(gtopo_address_format(map, at(map, "node4/pci-switch0"), text), "node4/pci-switch0");
    assert_string_equal(gtopo_address_format(map, at(map, "leaf4"), text), "leaf4");
    assert_string_equal(gtopo_address_format(map, GTOPO_NONE, text), "-");
    gtopo_map_free(map);
}

static void a_host_alone_is_its_machine(void **state)
{
    struct gtopo_map *map = two_hosts_and_a_leaf();

    (void)state;
    assert_int_equal(parse(map, "node4").object, gtopo_map_host_machine(map, 1));
    assert_int_equal(parse(map, "node4/machine").object, gtopo_map_host_machine(map, 1));
    gtopo_map_free(map);
}

static void what_stands_behind_the_at_moves_the_bytes(void **state)
{
    struct gtopo_map *map = two_hosts_and_a_leaf();
    struct gtopo_address address = parse(map, "node4/gpu1@nic1:1");
    char text[GTOPO_ADDRESS_MAX];

    (void)state;
    assert_int_equal(address.object, at(map, "node4/gpu1"));
    assert_int_equal(address.via, at(map, "node4/nic1:1"));
    assert_int_equal(parse(map, "node4/gpu1").via, GTOPO_NONE);
    assert_string_equal(gtopo_end_format(map, (struct gtopo_end){address.object, address.via}, text),
                        "node4/gpu1@nic1:1");
    assert_string_equal(gtopo_end_format(map, (struct gtopo_end){address.object, GTOPO_NONE}, text), "node4/gpu1");
    gtopo_map_free(map);
}

static void a_switch_has_ports(void **state)
{
    struct gtopo_map *map = two_hosts_and_a_leaf();

    (void)state;
    assert_int_equal(parse(map, "leaf4").port, 0);
    assert_int_equal(parse(map, "leaf4:17").port, 17);
    assert_int_equal(parse(map, "leaf4:65535").port, 65535);
    gtopo_map_free(map);
}

static void the_only_host_may_be_left_out(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_host(map, "node3", TWO_SOCKETS);
    build_switch(map, "leaf4");
    assert_int_equal(parse(map, "gpu1@nic0:1").via, at(map, "node3/nic0:1"));
    assert_int_equal(parse(map, "node3").object, 0);
    assert_int_equal(parse(map, "leaf4:1").object, GTOPO_FABRIC_BASE);
    gtopo_map_free(map);
}

static void what_is_not_in_the_map_is_not_found(void **state)
{
    struct gtopo_map *map = two_hosts_and_a_leaf();
    static const char *const missing[] = {"",
                                          "node5",
                                          "node5/gpu0",
                                          "gpu0",
                                          "node3/gpu9",
                                          "node3/",
                                          "node3/gpu",
                                          "node3/gpu00",
                                          "node3/gpu0@",
                                          "node3/gpu0@nic7",
                                          "node3/leaf4",
                                          "node3/gpu0:1",
                                          "node3/nic0:0",
                                          "node3/nic0:01",
                                          "node3/nic0:",
                                          "node3/nic:1",
                                          "/gpu0",
                                          "node3/gpu-1",
                                          "node3/GPU0",
                                          "node3/gpu0 ",
                                          "node3/gpu4294967296",
                                          "node3/gpu99999999999999999999"};
    struct gtopo_address address = {7, 7, 7};

    (void)state;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_fails(GTOPO_ENOTFOUND, gtopo_address_parse(map, missing[i], &address, &error));
    assert_int_equal(address.object, 7); /* untouched */
    assert_fails(GTOPO_ENOTFOUND, gtopo_address_parse(map, "node3/gpu9", &address, &error));
    assert_contains(error.message, "\"node3\"");
    assert_contains(error.message, "\"gpu9\"");
    assert_true(error.hint[0]);
    gtopo_map_free(map);
}

static void what_is_no_address_is_a_usage_error(void **state)
{
    struct gtopo_map *map = two_hosts_and_a_leaf();
    static const char *const bad[] = {"leaf4:",     "leaf4:0x1",  "leaf4:65536", "leaf4:-1", "leaf4:017",
                                      "leaf4/gpu0", "node3@nic0", "node3:1",     "a\x1b[2J", "\xff"};
    struct gtopo_address address;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(GTOPO_EUSAGE, gtopo_address_parse(map, bad[i], &address, &error));
    gtopo_map_free(map);
}

static void the_longest_names_fit(void **state)
{
    struct gtopo_map *map = build_map();
    char name[256], text[GTOPO_ADDRESS_MAX], other[GTOPO_ADDRESS_MAX];
    struct gtopo_address address = {0};

    (void)state;
    memset(name, 'n', sizeof name);
    name[255] = 0;
    build_host(map, name, "pci-switch0 nic0 nic0:65535<nic0 gpu0 gpu1");
    snprintf(other, sizeof other, "%s/gpu1@nic0:65535", name);
    address = parse(map, other);
    assert_string_equal(gtopo_end_format(map, (struct gtopo_end){address.object, address.via}, text), other);
    memset(other, 'x', sizeof other);
    other[sizeof other - 1] = 0;
    assert_fails(GTOPO_ENOTFOUND, gtopo_address_parse(map, other, &address, &error));
    gtopo_map_free(map);
}

/* ---- ends ---- */

static void every_end_is_read_as_it_is_written(void **state)
{
    static const char *const ends[] = {"node4/numa0",       "node4/gpu1",         "node3/nic1:1",
                                       "node4/gpu1@nic1:1", "node3/numa1@nic0:1", "node3/numa0@package0"};
    struct gtopo_map *map = two_hosts_and_a_leaf();
    struct gtopo_end end;
    char text[GTOPO_ADDRESS_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        assert_ok(gtopo_end_parse(map, ends[i], &end, &error));
        assert_string_equal(gtopo_end_format(map, end, text), ends[i]);
    }
    assert_string_equal(gtopo_end_format(map, (struct gtopo_end){GTOPO_NONE, GTOPO_NONE}, text), "-");
    gtopo_map_free(map);
}

static void a_port_alone_leaves_the_memory_open(void **state)
{
    struct gtopo_map *map = two_hosts_and_a_leaf();
    struct gtopo_end end;

    (void)state;
    assert_ok(gtopo_end_parse(map, "node4/nic1:1", &end, &error));
    assert_int_equal(end.memory, GTOPO_NONE);
    assert_int_equal(end.via, at(map, "node4/nic1:1"));
    assert_ok(gtopo_end_parse(map, "node4/gpu1", &end, &error));
    assert_int_equal(end.memory, at(map, "node4/gpu1"));
    assert_int_equal(end.via, GTOPO_NONE);
    gtopo_map_free(map);
}

static void a_nic_stands_for_its_only_port(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_end end;

    (void)state;
    build_host(map, "n", "numa0 gpu0 nic0 nic1 nic2 nic0:1<nic0 nic1:1<nic1 nic1:2<nic1");
    assert_ok(gtopo_end_parse(map, "nic0", &end, &error));
    assert_int_equal(end.via, at(map, "n/nic0:1"));
    assert_ok(gtopo_end_parse(map, "gpu0@nic0", &end, &error));
    assert_int_equal(end.memory, at(map, "n/gpu0"));
    assert_int_equal(end.via, at(map, "n/nic0:1"));
    assert_fails(GTOPO_EUSAGE, gtopo_end_parse(map, "nic1", &end, &error));
    assert_contains(error.message, "n/nic1 has 2 ports");
    assert_contains(error.hint, "nic1:1");
    assert_fails(GTOPO_EMISSING, gtopo_end_parse(map, "gpu0@nic2", &end, &error));
    assert_contains(error.message, "n/nic2 has no port");
    gtopo_map_free(map);
}

static void what_is_no_end_of_a_probe_is_refused(void **state)
{
    static const char *const bad[] = {"node3",   "node3/package0",  "node3/pci-switch0", "node3/gpu0@gpu1",    "leaf4",
                                      "leaf4:1", "node3/nic0@nic1", "node3/numa0@numa1", "node3/nic0@package0"};
    struct gtopo_map *map = two_hosts_and_a_leaf();
    struct gtopo_end end = {7, 7};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(GTOPO_EUSAGE, gtopo_end_parse(map, bad[i], &end, &error));
        assert_contains(error.hint, "gpu0@nic0:1");
    }
    assert_fails(GTOPO_ENOTFOUND, gtopo_end_parse(map, "node3/gpu9", &end, &error));
    assert_int_equal(end.memory, 7); /* untouched */
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_is_read_as_it_is_written),
        cmocka_unit_test(a_host_alone_is_its_machine),
        cmocka_unit_test(what_stands_behind_the_at_moves_the_bytes),
        cmocka_unit_test(a_switch_has_ports),
        cmocka_unit_test(the_only_host_may_be_left_out),
        cmocka_unit_test(what_is_not_in_the_map_is_not_found),
        cmocka_unit_test(what_is_no_address_is_a_usage_error),
        cmocka_unit_test(the_longest_names_fit),
        cmocka_unit_test(every_end_is_read_as_it_is_written),
        cmocka_unit_test(a_port_alone_leaves_the_memory_open),
        cmocka_unit_test(a_nic_stands_for_its_only_port),
        cmocka_unit_test(what_is_no_end_of_a_probe_is_refused),
    };

    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
