/* SPDX-License-Identifier: Apache-2.0 */
/* Discovering disks. */
#include "discover.h"

static struct fake *fake_storage(void)
{
    struct fake *m = fake_machine(1, 2);

    fake_bridge(m, "0000:00:01.0", 1, 1);
    fake_bridge(m, "0000:00:02.0", 2, 2);
    fake_bridge(m, "0000:00:03.0", 0x81, 0x81);
    return m;
}

static void an_nvme_controller_is_one_object_and_every_other_disk_is(void **state)
{
    struct fake *m = fake_storage();
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "010802", "144d:a80a");
    fake_disk(m, "0000:01:00.0", "nvme/nvme0", "nvme0n1");
    fake_disk(m, "0000:01:00.0", "nvme/nvme0", "nvme0n2");
    fake_device(m, "0000:02:00.0", "010601", "8086:8d02");
    fake_trained(m, "0000:02:00.0", "1 5.0", "4 5.0"); /* one finding, however many disks */
    fake_disk(m, "0000:02:00.0", "ata1/host0/target0:0:0/0:0:0:0/block", "sda");
    fake_disk(m, "0000:02:00.0", "ata2/host1/target1:0:0/1:0:0:0/block", "sdb");
    fake_device(m, "0000:81:00.0", "010400", "1000:005d"); /* no disks */
    map = fake_discover(m);
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "nvme0n1");
    assert_number(map, "storage0", GTOPO_ATTRIBUTE_CAPACITY_B, 2000 * 512);
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_DEVICE, "sda");
    assert_text(map, "storage2", GTOPO_ATTRIBUTE_DEVICE, "sdb");
    assert_text(map, "storage2", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:02:00.0");
    assert_number(map, "storage2", GTOPO_ATTRIBUTE_ROTATIONAL, 0);
    assert_false(is_there(map, "storage3"));
    assert_int_equal(findings_of(map, "pcie-link-degraded", NULL), 1);
    gtopo_map_free(map);
    fake_free(m);
}

static void an_nvme_namespace_with_several_paths_has_the_name_that_is_used(void **state)
{
    struct fake *m = fake_storage();
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "010802", "144d:a80a");
    fake_disk(m, "0000:01:00.0", "nvme/nvme3", "nvme2c3n1");
    fake_disk(m, NULL, "nvme-subsystem/nvme-subsys2", "nvme2n1");
    fake_device(m, "0000:02:00.0", "010802", "144d:a80a"); /* its path is hidden from the class */
    fake_pci_file(m, "0000:02:00.0", "nvme/nvme4/nvme5c4n1/size", "2000");
    fake_disk(m, NULL, "nvme-subsystem/nvme-subsys5", "nvme5n1");
    fake_write(m, "A model", "sys/class/block/nvme5n1/device/model");
    map = fake_discover(m);
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "nvme2n1");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_DEVICE, "nvme5n1");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_MODEL, "A model");
    assert_false(is_there(map, "storage2"));
    gtopo_map_free(map);
    fake_free(m);
}

static void a_disk_on_no_bus_is_on_the_machine_and_what_software_makes_is_none(void **state)
{
    struct fake *m = fake_storage();
    struct gtopo_map *map;

    (void)state;
    fake_write(m, "2000", "sys/devices/platform/emmc/block/mmcblk0/size");
    fake_link_to(m, "sys/devices/platform/emmc/block/mmcblk0", "sys/class/block/mmcblk0");
    fake_link_to(m, "sys/devices/platform/emmc", "sys/devices/platform/emmc/block/mmcblk0/device");
    fake_write(m, "2000", "sys/devices/platform/x/block/rbd0/size"); /* on no device */
    fake_link_to(m, "sys/devices/platform/x/block/rbd0", "sys/class/block/rbd0");
    map = fake_discover(m);
    assert_parent(map, "storage0", "n");
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "mmcblk0");
    assert_unknown(map, "storage0", GTOPO_ATTRIBUTE_NUMA);
    assert_false(is_there(map, "storage1"));
    gtopo_map_free(map);
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_nvme_controller_is_one_object_and_every_other_disk_is),
        cmocka_unit_test(an_nvme_namespace_with_several_paths_has_the_name_that_is_used),
        cmocka_unit_test(a_disk_on_no_bus_is_on_the_machine_and_what_software_makes_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
