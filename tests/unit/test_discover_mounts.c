/* SPDX-License-Identifier: Apache-2.0 */
/* File systems: on which disks they are, over the network, and a scratch that is slow. */
#include "discover.h"

/* A GPU, an NVMe disk, two SATA disks, and the kernel's table of mounts; "" for none. */
static struct fake *fake_node_with(const char *mounts)
{
    struct fake *m = fake_machine(1, 2);

    for (int i = 1; i <= 3; i++) {
        char address[16];

        snprintf(address, sizeof address, "0000:00:%02x.0", i);
        fake_bridge(m, address, i, i);
    }
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_device(m, "0000:02:00.0", "010802", "144d:a80a");
    fake_disk(m, "0000:02:00.0", "nvme/nvme0", "nvme0n1");
    fake_device(m, "0000:03:00.0", "010601", "8086:8d02");
    fake_disk(m, "0000:03:00.0", "ata1/host0/target0:0:0/0:0:0:0/block", "sda");
    fake_disk(m, "0000:03:00.0", "ata2/host1/target1:0:0/1:0:0:0/block", "sdb");
    if (*mounts)
        fake_write(m, mounts, "proc/mounts");
    return m;
}

static struct gtopo_map *map_of(const char *mounts)
{
    struct fake *m = fake_node_with(mounts);
    struct gtopo_map *map = fake_discover(m);

    fake_free(m);
    return map;
}

/* A device of software: a logical volume or a RAID on others. */
static void fake_stack(struct fake *m, const char *name, const char *volume, const char *below)
{
    char folder[FAKE_PATH], entry[FAKE_PATH];

    snprintf(folder, sizeof folder, "sys/devices/virtual/block/%s", name);
    snprintf(entry, sizeof entry, "sys/class/block/%s", name);
    fake_link_to(m, folder, entry);
    fake_write(m, "2000", "%s/size", folder);
    if (volume)
        fake_write(m, volume, "%s/dm/name", folder);
    fake_write(m, "", "%s/slaves/%s", folder, below);
}

/* "" for no finding, else the object that it is on. */
static const char *scratch_of(const struct gtopo_map *map, unsigned severity)
{
    static char address[GTOPO_ADDRESS_MAX];
    struct gtopo_finding finding;

    if (!findings_of(map, "scratch-slow", &finding))
        return "";
    assert_int_equal(findings_of(map, "scratch-slow", NULL), 1);
    assert_int_equal(finding.severity, severity);
    gtopo_address_format(map, finding.object, address);
    return address + 2; /* "n/" */
}

static void assert_scratch(const char *mounts, unsigned severity, const char *expected)
{
    struct gtopo_map *map = map_of(mounts);

    assert_string_equal(scratch_of(map, severity), expected);
    gtopo_map_free(map);
}

/* ---- what is mounted ---- */

static void file_systems_are_told_with_the_disk_of_their_partition(void **state)
{
    struct gtopo_map *map = map_of("rootfs / rootfs rw 0 0\n"
                                   "/dev/nvme0n1p2 / ext4 rw 0 0\n"
                                   "/dev/nvme0n2 /second xfs rw 0 0\n" /* a namespace of the same disk */
                                   "/dev/sda1 /with\\040blank ext4 rw 0 0\n"
                                   "/dev/sdaa1 /other ext4 rw 0 0\n" /* a disk that is not in the map */
                                   "tmpfs /tmp tmpfs rw 0 0");

    (void)state;
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_MOUNTED_AT, "/, /second");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_MOUNTED_AT, "/with blank");
    assert_text(map, "storage2", GTOPO_ATTRIBUTE_MOUNTED_AT, "(none)");
    assert_text(map, "machine", GTOPO_ATTRIBUTE_NETWORK_FILE_SYSTEMS, "(none)");
    gtopo_map_free(map);
}

static void volumes_and_raids_are_followed_to_their_disks(void **state)
{
    struct fake *m = fake_node_with("/dev/mapper/data-all /data xfs rw 0 0\n/dev/md0p1 /raid1 xfs rw 0 0");
    struct gtopo_map *map;

    (void)state;
    fake_stack(m, "dm-0", "data-al", "nvme0n1");
    fake_stack(m, "dm-7", "data-all", "md0");
    fake_stack(m, "md0", NULL, "sda1");
    fake_write(m, "", "sys/devices/virtual/block/md0/slaves/sdb");
    map = fake_discover(m);
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_MOUNTED_AT, "(none)");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_MOUNTED_AT, "/data, /raid1");
    assert_text(map, "storage2", GTOPO_ATTRIBUTE_MOUNTED_AT, "/data, /raid1");
    gtopo_map_free(map);
    fake_free(m);
}

static void file_systems_of_the_network_are_told_once_each(void **state)
{
    struct gtopo_map *map = map_of("10.0.0.1@o2ib:/work /work lustre rw,flock 0 0\n"
                                   "gpfs0 /gpfs gpfs rw 0 0\n"
                                   "server:/home /home nfs4 rw,vers=4.2,proto=rdma,port=20049 0 0\n"
                                   "server:/home /var/lib/pod/home nfs4 rw,proto=rdma 0 0\n"
                                   "beegfs_nodev /bee beegfs rw 0 0\n"
                                   "nfsd /proc/fs/nfsd nfsd rw 0 0");

    (void)state;
    assert_text(map, "machine", GTOPO_ATTRIBUTE_NETWORK_FILE_SYSTEMS,
                "lustre /work from 10.0.0.1@o2ib:/work, gpfs /gpfs from gpfs0, nfs4 /home from server:/home by RDMA, "
                "beegfs /bee from beegfs_nodev");
    gtopo_map_free(map);
}

static void the_interface_is_told_by_the_way_to_the_disk(void **state)
{
    static const struct {
        const char *below, *vendor, *interface;
    } disks[] = {
        {"ata1/host0/target0:0:0/0:0:0:0/block", "ATA", "sata"},
        {"host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block", "SEAGATE", "sas"},
        {"host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block", "ATA", "sata"},
        {"host0/target0:2:0/0:2:0:0/block", "DELL", "(none)"},
        {"host0/rport-0:0-1/target0:0:0/0:0:0:0/block", "NETAPP", "fc"},
        {"host0/session1/target0:0:0/0:0:0:0/block", "LIO-ORG", "iscsi"},
        {"usb1/1-1/1-1:1.0/host6/target6:0:0/6:0:0:0/block", "ATA", "usb"},
        {"virtio1/block", "", "virtio"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        struct fake *m = fake_machine(1, 2);
        struct gtopo_map *map;

        fake_device(m, "0000:00:03.0", "010400", "1000:005d");
        fake_class(m, "0000:00:03.0", disks[i].below, "block", "sda");
        fake_replace_by_link(m, "sys/class/block/sda/device", "..");
        fake_write(m, disks[i].vendor, "sys/class/block/sda/device/vendor");
        fake_write(m, "2000", "sys/class/block/sda/size");
        map = fake_discover(m);
        assert_text(map, "storage0", GTOPO_ATTRIBUTE_INTERFACE, disks[i].interface);
        gtopo_map_free(map);
        fake_free(m);
    }
}

/* ---- scratch ---- */

static void a_scratch_on_sata_is_a_finding(void **state)
{
    (void)state;
    assert_scratch("/dev/nvme0n1p2 / ext4 rw 0 0\n/dev/sda1 /scratch xfs rw 0 0", GTOPO_WARNING, "storage1");
    assert_scratch("/dev/sdb /mnt/local_scratch xfs rw 0 0\n/dev/sdb /pods/7/scratch xfs rw 0 0", GTOPO_WARNING,
                   "storage2");
    assert_scratch("/dev/sdb /raid ext4 rw 0 0", GTOPO_WARNING, "storage2");
    assert_scratch("/dev/nvme0n1 /scratch xfs rw 0 0\n/dev/sda1 / ext4 rw 0 0", 0, "");
    /* one of the network is the scratch, whatever /tmp is on; a local one beside it is judged */
    assert_scratch("x@o2ib:/s /scratch lustre rw 0 0\n/dev/sda1 / ext4 rw 0 0", 0, "");
    assert_scratch("x@o2ib:/s /scratch lustre rw 0 0\n/dev/sda1 /localscratch ext4 rw 0 0", GTOPO_WARNING, "storage1");
    /* the later one is what programs see */
    assert_scratch("/dev/sda1 /scratch xfs rw 0 0\n/dev/nvme0n1 /scratch xfs rw 0 0", 0, "");
}

static void where_nothing_is_named_scratch_it_is_where_tmp_is(void **state)
{
    (void)state;
    assert_scratch("/dev/sda1 / ext4 rw 0 0", GTOPO_NOTE, "storage1");
    assert_scratch("/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /tmp ext4 rw 0 0", GTOPO_NOTE, "storage2");
    assert_scratch("/dev/sda1 / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0", 0, "");
    /* what holds the NVMe disk's file system may be scratch by a name that we do not know */
    assert_scratch("/dev/sda1 / ext4 rw 0 0\n/dev/nvme0n1 /var/lib/data xfs rw 0 0", 0, "");
}

static void what_is_not_known_is_not_judged(void **state)
{
    struct fake *m;
    struct gtopo_map *map;

    (void)state;
    assert_scratch("", 0, ""); /* no table */
    assert_scratch("overlay / overlay rw,lowerdir=/a:/b 0 0", 0, "");
    assert_scratch("pool/scratch /scratch zfs rw 0 0\n/dev/sda1 / ext4 rw 0 0", 0, "");
    assert_scratch("/dev/mapper/gone-away /scratch xfs rw 0 0", 0, "");
    m = fake_node_with("/dev/md0 /scratch xfs rw 0 0"); /* of two parts, one is in the map */
    fake_stack(m, "md0", NULL, "sda1");
    fake_write(m, "", "sys/devices/virtual/block/md0/slaves/sdq1");
    map = fake_discover(m);
    assert_string_equal(scratch_of(map, 0), "");
    gtopo_map_free(map);
    fake_free(m);
    m = fake_machine(1, 2); /* no GPU */
    fake_device(m, "0000:00:03.0", "010601", "8086:8d02");
    fake_disk(m, "0000:00:03.0", "ata1/host0/target0:0:0/0:0:0:0/block", "sda");
    fake_write(m, "/dev/sda1 /scratch xfs rw 0 0", "proc/mounts");
    map = fake_discover(m);
    assert_string_equal(scratch_of(map, 0), "");
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- hostile records ---- */

static void a_table_may_hold_anything(void **state)
{
    size_t size = 0;
    char *table = malloc(4 << 20);
    struct gtopo_map *map;
    struct fake *m = fake_node_with("");

    (void)state;
    assert_non_null(table);
    size += (size_t)sprintf(table, "x\n\n# y\n/dev/ / ext4\n/dev/sda1 /a\\012b ext4 rw 0 0\n/dev/mapper/ /c xfs\n");
    memset(table + size, 'a', 100000); /* a line beyond what is kept */
    size += 100000;
    for (int i = 0; i < 50000; i++)
        size += (size_t)sprintf(table + size, "\n/dev/sda1 /scratch/%d/scratch ext4 rw 0 0", i % 5000);
    table[size++] = 0;
    fake_write_bytes(m, "proc/mounts", table, size);
    free(table);
    map = fake_discover(m);
    assert_non_null(strstr(text_of(map, "storage1", GTOPO_ATTRIBUTE_MOUNTED_AT), "/a?b, /scratch/0/scratch, "));
    assert_non_null(strstr(text_of(map, "storage1", GTOPO_ATTRIBUTE_MOUNTED_AT), " more"));
    assert_string_equal(scratch_of(map, GTOPO_WARNING), "storage1");
    gtopo_map_free(map);
    fake_free(m);
}

/* Every one stands on every one: as many ways as a tree of 30 to the depth of 8 has. */
static void devices_may_stand_on_each_other(void **state)
{
    struct fake *m = fake_node_with("/dev/md0 /scratch xfs rw 0 0\n/dev/mapper/self /x xfs rw 0 0");
    struct gtopo_map *map;
    char name[16], file[128];

    (void)state;
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "md%d", i);
        fake_stack(m, name, NULL, "sda1");
        for (int j = 0; j < 30; j++) {
            snprintf(file, sizeof file, "sys/devices/virtual/block/md%d/slaves/md%d", i, j);
            fake_write(m, "", "%s", file);
        }
    }
    fake_stack(m, "dm-0", "self", "dm-0");
    map = fake_discover(m);
    assert_string_equal(scratch_of(map, 0), "");
    gtopo_map_free(map);
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_systems_are_told_with_the_disk_of_their_partition),
        cmocka_unit_test(volumes_and_raids_are_followed_to_their_disks),
        cmocka_unit_test(file_systems_of_the_network_are_told_once_each),
        cmocka_unit_test(the_interface_is_told_by_the_way_to_the_disk),
        cmocka_unit_test(a_scratch_on_sata_is_a_finding),
        cmocka_unit_test(where_nothing_is_named_scratch_it_is_where_tmp_is),
        cmocka_unit_test(what_is_not_known_is_not_judged),
        cmocka_unit_test(a_table_may_hold_anything),
        cmocka_unit_test(devices_may_stand_on_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
