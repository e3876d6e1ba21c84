/* SPDX-License-Identifier: Apache-2.0 */
/* Records that were made to harm: they may give a poor map, never a crash, a hang, or a look at what is outside. */
#include "discover.h"
#include <time.h>

#define SECRET "a-text-from-outside"

/* A machine with something of everything on it. */
static struct fake *rich(void)
{
    struct fake *m = fake_machine(2, 2);

    fake_bridge(m, "0000:00:01.0", 1, 4);
    fake_bridge(m, "0000:01:00.0", 2, 4);
    fake_bridge(m, "0000:02:00.0", 3, 3);
    fake_bridge(m, "0000:02:01.0", 4, 4);
    fake_device(m, "0000:03:00.0", "030200", "10de:2330");
    fake_trained(m, "0000:03:00.0", "8 16.0", "16 32.0");
    fake_numa(m, "0000:03:00.0", 1);
    fake_device(m, "0000:04:00.0", "020700", "15b3:1021");
    fake_netdev(m, "0000:04:00.0", "ib0");
    fake_rdma(m, "0000:04:00.0", "mlx5_0", 2);
    fake_rdma_file(m, "mlx5_0", "ports/1/gid_attrs/ndevs/0", "ib0");
    fake_gid(m, "mlx5_0", 1, 0, "fe80:0000:0000:0000:0002:c903:0003:1f21", "IB/RoCE v1");
    fake_device(m, "0000:04:00.1", "010802", "144d:a80a");
    fake_disk(m, "0000:04:00.1", "nvme/nvme0", "nvme0n1");
    fake_netdev(m, NULL, "dummy0");
    fake_rdma(m, NULL, "rxe0", 1);
    fake_rdma_file(m, "rxe0", "parent", "dummy0");
    fake_write(m, "A machine", "sys/devices/virtual/dmi/id/product_name");
    return m;
}

/* The map as its file, after a turn through it. */
static char *discover_and_write(const struct fake *m)
{
    struct gtopo_map *map = fake_discover(m), *again;
    char *text = build_write(map), *second;

    again = build_read(text);
    second = build_write(again);
    assert_string_equal(text, second);
    free(second);
    gtopo_map_free(again);
    gtopo_map_free(map);
    return text;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- links ---- */

static void links_do_not_lead_out_of_the_record(void **state)
{
    static const char *const files[] = {"address", "type", "operstate", "mtu", "product_name", "model", "fw_ver"};
    static const char *const places[] = {"sys/class/net/ib0", "sys/class/infiniband/mlx5_0",
                                         "sys/devices/virtual/dmi/id", "sys/class/block/nvme0n1/device"};
    struct fake *outside = fake_empty();

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fake_write(outside, SECRET, "%s", files[i]);
    for (int relative = 0; relative < 2; relative++) {
        struct fake *m = rich();
        char target[2 * FAKE_PATH], *text;

        snprintf(target, sizeof target, "%s%s", relative ? "../../../../../../../../../../.." : "", outside->root);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            fake_replace_by_link(m, places[i], target);
        text = discover_and_write(m);
        assert_null(strstr(text, SECRET));
        assert_non_null(strstr(text, "\"gpu0\""));
        free(text);
        fake_free(m);
    }
    fake_free(outside);
}

static void loops_of_links_end(void **state)
{
    struct fake *m = rich();

    (void)state;
    fake_replace_by_link(m, "sys/class/net/ib0", "ib0");
    fake_replace_by_link(m, "sys/class/infiniband/mlx5_0/ports/1", ".");
    fake_replace_by_link(m, "sys/devices/virtual/dmi/id", "../dmi/id");
    fake_replace_by_link(m, "sys/class/block/nvme0n1/device", "../nvme0n1");
    fake_replace_by_link(m, "sys/devices/system/node/node1/cpulist", "cpulist");
    free(discover_and_write(m));
    fake_free(m);
}

/* ---- files that are not files ---- */

static void pipes_in_the_place_of_files_hold_nobody(void **state)
{
    static const char *const files[] = {"sys/class/net/ib0/mtu", "sys/bus/pci/devices/0000:03:00.0/local_cpus",
                                        "sys/bus/pci/devices/0000:03:00.0/numa_node",
                                        "sys/devices/system/cpu/cpu1/topology/core_id"};
    struct fake *m = rich();
    double begun = seconds();
    char path[FAKE_PATH];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fake_path(m, path, files[i]);
        unlink(path);
        assert_int_equal(mkfifo(path, 0644), 0);
    }
    free(discover_and_write(m));
    assert_true(seconds() - begun < 10);
    fake_free(m);
}

static void huge_files_are_read_to_a_bound(void **state)
{
    static const char *const files[] = {"sys/class/net/ib0/mtu", "sys/bus/pci/devices/0000:03:00.0/vendor",
                                        "sys/class/infiniband/mlx5_0/fw_ver",
                                        "sys/devices/virtual/dmi/id/product_name"};
    struct fake *m = rich();
    char path[FAKE_PATH];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fake_path(m, path, files[i]);
        fake_write(m, "12345678901234567890", "%s", files[i]);
        assert_int_equal(truncate(path, 100 << 20), 0);
    }
    free(discover_and_write(m));
    fake_free(m);
}

/* ---- what is in the files ---- */

static const char *content;
static size_t content_B;
static int spoiled;

static int spoil(const char *path, const struct stat *file, int kind, struct FTW *place)
{
    FILE *stream;

    (void)file, (void)place;
    if (kind != FTW_F || strstr(path, "/config"))
        return 0;
    stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(content, 1, content_B, stream), content_B);
    assert_int_equal(fclose(stream), 0);
    spoiled++;
    return 0;
}

/* Write the same into every file below these folders of a rich machine, and discover it. */
static void check_spoiled(const char *text, size_t size, const char *const *folders)
{
    struct fake *m = rich();
    struct gtopo_map *map = build_map();
    struct gtopo_error error = {0};
    char path[FAKE_PATH];

    content = text;
    content_B = size;
    spoiled = 0;
    for (; *folders; folders++) {
        fake_path(m, path, *folders);
        assert_int_equal(nftw(path, spoil, 32, FTW_PHYS), 0);
    }
    assert_true(spoiled > 20);
    if (fake_try(m, map, NULL, &error)) /* a record of nothing but this may be refused, in words */
        assert_true(error.message[0]);
    else {
        char *written;

        build_seal(map);
        written = build_write(map);
        gtopo_map_free(build_read(written));
        free(written);
    }
    gtopo_map_free(map);
    fake_free(m);
}

static const char *const devices[] = {"sys/devices/pci0000:00", "sys/devices/virtual", NULL};
static const char *const all[] = {"sys", "proc", NULL};

static void garbage_in_every_file_is_survived(void **state)
{
    char garbage[2000];
    uint32_t random = 12345;

    (void)state;
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < sizeof garbage; i++) {
            random = random * 1664525 + 1013904223;
            garbage[i] = (char)(round % 2 ? random >> 24 : 0x80 | random >> 24); /* with zeros, and without */
        }
        check_spoiled(garbage, sizeof garbage, round < 4 ? devices : all);
    }
    check_spoiled("", 0, devices);
    check_spoiled("\xff\xfe\n", 3, devices);
    check_spoiled("    \t  ", 7, devices);
}

static void absurd_numbers_are_survived(void **state)
{
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "255",
                                          "4294967295",
                                          "99999999999999999999",
                                          "-9223372036854775808",
                                          "1e308",
                                          "nan",
                                          "0x",
                                          "0xffffffff",
                                          "1:2:3:4",
                                          "ffff:ffff:ffff:ffff",
                                          "2147483648",
                                          "9999999999999999999.5 GT/s PCIe",
                                          "4: ACTIVE",
                                          "18446744073709551615 Gb/sec (99999X)"};

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        check_spoiled(numbers[i], strlen(numbers[i]), devices);
    check_spoiled("4294967295", 10, all);
}

/* ---- size ---- */

/* A second is enough, but not for valgrind. */
static double limit_s(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload") ? 200 : 10;
}

static void four_thousand_devices_take_seconds(void **state)
{
    struct fake *m = fake_machine(2, 2);
    struct gtopo_map *map;
    double begun;

    (void)state;
    for (int bus = 0; bus < 16; bus++) {
        char address[32], name[16];

        snprintf(address, sizeof address, "0000:00:%02x.0", bus);
        fake_bridge(m, address, bus + 1, bus + 1);
        for (int function = 0; function < 256; function++) {
            snprintf(address, sizeof address, "0000:%02x:%02x.%x", bus + 1, function / 8, function % 8);
            snprintf(name, sizeof name, "eth%d", bus * 256 + function);
            fake_device(m, address, "020000", "15b3:1021");
            fake_class(m, address, "net", "net", name);
            fake_net_file(m, name, "type", "1");
        }
    }
    begun = seconds();
    map = fake_discover(m);
    assert_true(is_there(map, "nic4095:1"));
    assert_true(seconds() - begun < limit_s());
    gtopo_map_free(map);
    fake_free(m);
}

static void thousands_of_ports_of_one_nic_take_seconds(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map;
    double begun;

    (void)state;
    fake_device(m, "0000:00:01.0", "020000", "15b3:1021");
    fake_rdma(m, "0000:00:01.0", "mlx5_0", 255);
    for (int i = 0; i < 4096; i++) {
        char name[16];

        snprintf(name, sizeof name, "eth%d", i);
        fake_class(m, "0000:00:01.0", "net", "net", name);
        fake_net_file(m, name, "type", "1");
    }
    begun = seconds();
    map = fake_discover(m);
    assert_true(is_there(map, "nic0:4350")); /* 255, of which one has a netdev, and the rest */
    assert_true(seconds() - begun < limit_s());
    gtopo_map_free(map);
    fake_free(m);
}

static void bridges_nest_as_deep_as_there_are_buses(void **state)
{
    struct fake *m = fake_machine(1, 2);
    char address[32] = "0000:00:00.0";

    (void)state;
    for (int bus = 0; bus < 60; bus++) { /* a path has an end, too */
        snprintf(address, sizeof address, "0000:%02x:00.0", bus);
        fake_bridge(m, address, bus + 1, 255);
    }
    fake_device(m, "0000:3c:00.0", "030200", "10de:2330");
    free(discover_and_write(m));
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_do_not_lead_out_of_the_record),
        cmocka_unit_test(loops_of_links_end),
        cmocka_unit_test(pipes_in_the_place_of_files_hold_nobody),
        cmocka_unit_test(huge_files_are_read_to_a_bound),
        cmocka_unit_test(garbage_in_every_file_is_survived),
        cmocka_unit_test(absurd_numbers_are_survived),
        cmocka_unit_test(four_thousand_devices_take_seconds),
        cmocka_unit_test(thousands_of_ports_of_one_nic_take_seconds),
        cmocka_unit_test(bridges_nest_as_deep_as_there_are_buses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
