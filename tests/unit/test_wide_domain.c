/* SPDX-License-Identifier: Apache-2.0 */
/* PCI domains of more than 16 bits, as behind Intel's VMD, of which hwloc 2 shows nothing. */
#include "discover.h"

/* Two NVMe behind root ports of a VMD on the second socket, and a NIC, a GPU and a switch for good measure. */
static struct fake *vmd(void)
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

static void what_is_behind_a_vmd_is_in_the_map_with_its_place(void **state)
{
    struct fake *m = vmd();
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

/* Of three devices nobody says what they are below: one that is below itself, one without a link, one on no bridge. */
static void what_has_no_place_is_said_to_be_hidden(void **state)
{
    struct fake *m = vmd();
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "10003:01:00.0", "010802", "8086:0a54");
    fake_replace_by_link(m, "sys/bus/pci/devices/10003:01:00.0", "../10003:01:00.0/10003:01:00.0");
    fake_write(m, "0x010802", "sys/bus/pci/devices/10003:02:00.0/class");
    fake_device(m, "10003:03:00.0", "010802", "8086:0a54");
    fake_replace_by_link(m, "sys/bus/pci/devices/10003:03:00.0", "10003:03:00.0");
    fake_write(m, "0x010802", "sys/bus/pci/devices/10003:zz:00.0/class");
    map = fake_discover(m);
    assert_int_equal(findings_of(map, "pci-domain-hidden", &finding), 1);
    assert_contains(finding.text, " 3 PCI devices");
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "nvme0n1");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_behind_a_vmd_is_in_the_map_with_its_place),
        cmocka_unit_test(what_has_no_place_is_said_to_be_hidden),
        cmocka_unit_test(thousands_of_devices_are_all_there),
    };

    return cmocka_run_group_tests_name("wide_domain", tests, NULL, NULL);
}
