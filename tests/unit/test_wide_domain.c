/* SPDX-License-Identifier: Apache-2.0 */
/* PCI functions that hwloc leaves out, those in domains of more than 16 bits, are placed by their path in sysfs. */
#include "discover.h"
#include "topo/host/pci.h"

/* Two NVMe behind root ports on the second socket, and a NIC, a GPU and a switch for good measure. */
static struct fake *domains(void)
{
    struct fake *m = fake_machine(2, 2);

    fake_device(m, "0000:00:03.0", "020000", "8086:1572");
    fake_numa(m, "0000:00:03.0", 0);
    fake_bridge(m, "10000:00:02.0", 1, 1);
    fake_numa(m, "10000:00:02.0", 1);
    fake_bridge(m, "10000:00:03.0", 2, 2);
    fake_device(m, "10000:01:00.0", "010802", "8086:0a54");
    fake_device(m, "10000:02:00.0", "010802", "8086:0a54");
    fake_numa(m, "10000:01:00.0", 1);
    fake_numa(m, "10000:02:00.0", 1);
    fake_trained(m, "10000:00:02.0", "4 8.0", "4 8.0");
    fake_trained(m, "10000:01:00.0", "4 8.0", "4 8.0");
    fake_disk(m, "10000:01:00.0", "nvme/nvme0", "nvme0n1");
    fake_disk(m, "10000:02:00.0", "nvme/nvme1", "nvme1n1");
    fake_bridge(m, "10002:00:00.0", 1, 4);
    fake_bridge(m, "10002:01:00.0", 2, 4);
    fake_bridge(m, "10002:02:00.0", 3, 3);
    fake_bridge(m, "10002:02:01.0", 4, 4);
    fake_device(m, "10002:03:00.0", "030200", "10de:2330");
    fake_device(m, "10002:04:00.0", "020700", "15b3:1021");
    fake_netdev(m, "10002:04:00.0", "ib0");
    return m;
}

static void what_is_in_wide_domains_is_in_the_map_with_its_place(void **state)
{
    struct fake *m = domains();
    struct gtopo_map *map = fake_discover(m);
    struct gtopo_link link = {0};

    (void)state;
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "10000:01:00.0");
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "nvme0n1");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_DEVICE, "nvme1n1");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_PCI_ID, "8086:0a54");
    assert_number(map, "storage0", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_number(map, "host-bridge1", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_parent(map, "storage0", "host-bridge1");
    assert_parent(map, "storage1", "host-bridge1");
    gtopo_map_link_of(map, build_find(map, "storage0"), 0, &link);
    assert_int_equal(link.width, 4);
    assert_int_equal(link.speed_MTps, 8000);
    assert_parent(map, "gpu0", "pci-switch0");
    assert_parent(map, "nic1", "pci-switch0");
    assert_text(map, "nic1:1", GTOPO_ATTRIBUTE_NETDEV, "ib0");
    assert_int_equal(findings_of(map, "pci-domain-hidden", NULL), 0);
    gtopo_map_free(map);
    fake_free(m);
}

/* A GPU and an NVMe disk behind VMD, on the host bridge of bus 97. */
static struct fake *with_vmd(void)
{
    struct fake *m = fake_machine(2, 2);

    fake_device(m, "0000:97:00.5", "010400", "8086:28c0");
    fake_bridge(m, "0000:97:01.0", 0x98, 0x98);
    fake_device(m, "0000:98:00.0", "030200", "10de:2330");
    fake_numa(m, "0000:98:00.0", 1);
    fake_root_bus(m, "10001:80", "0000:97:00.5");
    fake_bridge(m, "10001:80:01.0", 0x81, 0x81);
    fake_device(m, "10001:81:00.0", "010802", "144d:a80a");
    fake_numa(m, "10001:81:00.0", 1);
    fake_trained(m, "10001:80:01.0", "4 16.0", "4 16.0");
    fake_trained(m, "10001:81:00.0", "2 16.0", "4 16.0");
    fake_disk(m, "10001:81:00.0", "nvme/nvme0", "nvme0n1");
    return m;
}

static void a_disk_behind_vmd_is_on_the_host_bridge_of_vmd(void **state)
{
    struct fake *m = with_vmd();
    struct gtopo_map *map = fake_discover(m);

    (void)state;
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "10001:81:00.0");
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "nvme0n1");
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_PCI_ID, "144d:a80a");
    assert_number(map, "storage0", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_parent(map, "storage0", "host-bridge0");
    assert_parent(map, "gpu0", "host-bridge0");
    assert_false(is_there(map, "host-bridge1"));
    assert_false(is_there(map, "storage1"));
    gtopo_map_free(map);
    fake_free(m);
}

static void its_link_has_its_rates_and_its_finding(void **state)
{
    struct fake *m = with_vmd();
    struct gtopo_map *map = fake_discover(m);
    struct gtopo_finding finding = {0};
    struct gtopo_link link = {0};

    (void)state;
    assert_int_not_equal(gtopo_map_link_of(map, at(map, "storage0"), 0, &link), GTOPO_NONE);
    assert_int_equal(link.width, 2);
    assert_int_equal(link.capable_width, 4);
    assert_int_equal(findings_of(map, "pcie-link-degraded", &finding), 1);
    assert_contains(finding.text, "10001:81:00.0 below 10001:80:01.0");
    gtopo_map_free(map);
    fake_free(m);
}

static void what_can_be_taken_out_and_partitions_are_no_disks_there_either(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "10000:00:17.0", "010601", "8086:a102");
    fake_disk(m, "10000:00:17.0", "block", "sdb");
    fake_disk(m, "10000:00:17.0", "block", "sda");
    fake_disk(m, "10000:00:17.0", "block", "sda1");
    fake_disk(m, "10000:00:17.0", "block", "sdc");
    fake_disk(m, "10000:00:17.0", "block", "sr0");
    fake_write(m, "1", "sys/class/block/sda1/partition");
    fake_write(m, "1", "sys/class/block/sdc/removable");
    map = fake_discover(m);
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "sda");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_DEVICE, "sdb");
    assert_false(is_there(map, "storage2"));
    gtopo_map_free(map);
    fake_free(m);
}

static void thousands_of_devices_are_all_there(void **state)
{
    struct fake *m = fake_machine(1, 1);
    struct gtopo_map *map;
    char address[32];

    (void)state;
    for (unsigned i = 0; i < 4096; i++) {
        snprintf(address, sizeof address, "%x:%02x:%02x.%x", 0x10000 + i / 1024, i / 256 % 4, i / 8 % 32, i % 8);
        fake_device(m, address, "010802", "8086:0a54");
    }
    map = fake_discover(m);
    assert_text(map, "storage4095", GTOPO_ATTRIBUTE_PCI_ADDRESS, "10003:03:1f.7");
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- hostile paths ---- */

static void paths_that_place_nothing_are_said(void **state)
{
    static const char *const targets[] = {
        "../../../devices/pci10000:00/10000:00:05.0",                    /* another function's */
        "../../../devices/10000:00:04.0",                                /* on nothing */
        "../../../devices/pci10000:00/10000:00:09.0/10000:00:04.0",      /* below what is not there */
        "../../../devices/pci10000:00/10000:00:04.0/10000:00:04.0",      /* below itself */
        "../../../devices/pci10000:0/10000:00:04.0",                     /* not as the kernel writes it */
        "../../../devices/pci10000:00/0000010000:00:01.0/10000:00:04.0", /* likewise */
        "/",
    };

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct fake *m = fake_machine(1, 2);
        struct gtopo_finding finding = {0};
        struct gtopo_map *map;

        fake_device(m, "10000:00:04.0", "020700", "15b3:1021");
        fake_replace_by_link(m, "sys/bus/pci/devices/10000:00:04.0", targets[i]);
        map = fake_discover(m);
        assert_false(is_there(map, "nic0"));
        assert_int_equal(findings_of(map, "pci-domain-hidden", &finding), 1);
        assert_contains(finding.text, "10000:00:04.0");
        gtopo_map_free(map);
        fake_free(m);
    }
}

static void two_functions_below_each_other_are_nowhere(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "10000:00:01.0", "060400", "8086:1234");
    fake_device(m, "10000:00:02.0", "060400", "8086:1234");
    fake_replace_by_link(m, "sys/bus/pci/devices/10000:00:01.0",
                         "../../../devices/pci10000:00/10000:00:02.0/10000:00:01.0");
    fake_replace_by_link(m, "sys/bus/pci/devices/10000:00:02.0",
                         "../../../devices/pci10000:00/10000:00:01.0/10000:00:02.0");
    map = fake_discover(m);
    assert_int_equal(findings_of(map, "pci-domain-hidden", NULL), 1);
    gtopo_map_free(map);
    fake_free(m);
}

static void the_last_function_of_a_path_is_found_and_nothing_like_it(void **state)
{
    static const char *const paths[][2] = {
        {"../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1", "0000:01:00.0"},
        {"../../devices/pci0000:97/0000:97:00.5/pci10001:80/10001:81:00.0/", "10001:81:00.0"},
        {"ffffffff:ff:1f.7", "ffffffff:ff:1f.7"},
        {"../../devices/virtual/block/loop0", ""},
        {"0000:1:00.0", ""},
        {"0000:01:00.0x", ""},
        {"0000:01:00.", ""},
        {" 000:01:00.0", ""},
        {"1234567890:01:00.0", ""},
        {"////", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char address[GTOPO_PCI_ADDRESS_MAX] = "";

        assert_int_equal(gtopo_pci_of_path(paths[i][0], address), *paths[i][1] != 0);
        assert_string_equal(address, paths[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_in_wide_domains_is_in_the_map_with_its_place),
        cmocka_unit_test(a_disk_behind_vmd_is_on_the_host_bridge_of_vmd),
        cmocka_unit_test(its_link_has_its_rates_and_its_finding),
        cmocka_unit_test(what_can_be_taken_out_and_partitions_are_no_disks_there_either),
        cmocka_unit_test(thousands_of_devices_are_all_there),
        cmocka_unit_test(paths_that_place_nothing_are_said),
        cmocka_unit_test(two_functions_below_each_other_are_nowhere),
        cmocka_unit_test(the_last_function_of_a_path_is_found_and_nothing_like_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
