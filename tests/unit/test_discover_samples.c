/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real machines: records and XML that hwloc's and mpibind's tests use, in $GTOPO_SAMPLES or beside the source tree.
 * Every one gives a map that seals, is written, and reads back to the same bytes; and what is known of it is in it.
 */
#include "discover.h"
#include <dirent.h>

static const char *sample(const char *name)
{
    char place[FAKE_PATH];

    snprintf(place, sizeof place, "hwloc/%s", name);
    return sample_path(place);
}

/* The folder in which an archive has the machine's sys. */
static void find_root(const char *above, char root[2 * FAKE_PATH])
{
    DIR *folder = opendir(above);
    struct dirent *entry;

    assert_non_null(folder);
    snprintf(root, 2 * FAKE_PATH, "%s", above);
    while ((entry = readdir(folder))) {
        char path[2 * FAKE_PATH];

        snprintf(path, sizeof path, "%s/%s/sys", above, entry->d_name);
        if (entry->d_name[0] != '.' && !access(path, F_OK) && strcmp(entry->d_name, "sys"))
            snprintf(root, 2 * FAKE_PATH, "%s/%s", above, entry->d_name);
    }
    closedir(folder);
}

/* The map of a sample: *.tar.bz2 or *.xml. It has been through a file. */
static struct gtopo_map *map_of(const char *name)
{
    const char *path = sample(name);
    struct gtopo_host_options options;
    struct fake *unpacked = fake_empty();
    struct gtopo_map *map = build_map(), *again;
    struct gtopo_error error;
    char command[6 * FAKE_PATH], root[2 * FAKE_PATH], *text, *second;

    gtopo_host_options_init(&options);
    options.name = "n";
    if (strstr(name, ".tar.")) {
        snprintf(command, sizeof command, "rm -r '%s'/* && tar -C '%s' -xjf '%s'", unpacked->root, unpacked->root,
                 path);
        assert_int_equal(system(command), 0);
        find_root(unpacked->root, root);
        options.fsroot = root;
    } else
        options.hwloc_xml = path;
    assert_ok(gtopo_host_discover(map, &options, &error));
    assert_int_equal(findings_of(map, "nic-missing", NULL) + findings_of(map, "nic-wrong-socket", NULL) +
                         findings_of(map, "nic-without-port", NULL) + findings_of(map, "gpu-traffic-on-gigabit", NULL),
                     0);
    fake_free(unpacked);
    build_seal(map);
    text = build_write(map);
    again = build_read(text);
    second = build_write(again);
    assert_string_equal(text, second);
    free(text);
    free(second);
    gtopo_map_free(map);
    return again;
}

static unsigned count_of(const struct gtopo_map *map, enum gtopo_object_kind kind)
{
    uint32_t first, count, found = 0;

    assert_int_equal(gtopo_map_host_objects(map, 0, &first, &count, NULL), 0);
    for (uint32_t i = 0; i < count; i++)
        found += build_kind_of(map, first + i) == (uint32_t)kind;
    return found;
}

static const char *class_of(const struct gtopo_map *map, const char *from, const char *to)
{
    struct gtopo_path path = {0};
    struct gtopo_error error;
    const char *name;

    assert_ok(gtopo_path_find(map, at(map, from), at(map, to), &path, &error));
    name = gtopo_path_class_name(path.path_class);
    gtopo_path_clear(&path);
    return name;
}

/* The NIC's port that an RDMA device is. */
static void port_of(const struct gtopo_map *map, const char *rdma, char address[GTOPO_ADDRESS_MAX])
{
    uint32_t first, count;

    assert_int_equal(gtopo_map_host_objects(map, 0, &first, &count, NULL), 0);
    for (uint32_t i = first; i < first + count; i++) {
        const char *device = gtopo_map_text(map, i, GTOPO_ATTRIBUTE_DEVICE);

        if (build_kind_of(map, i) != GTOPO_PORT || !device || strcmp(device, rdma))
            continue;
        gtopo_address_format(map, i, address);
        return;
    }
    fail_msg("there is no %s", rdma);
}

/* ---- XML ---- */

static void lassen_has_four_gpus_and_four_infiniband_ports_on_two_sockets(void **state)
{
    static const uint64_t lids[] = {1319, 1326, 2722, 2729};
    struct gtopo_map *map = map_of("mpibind-coral-lassen.xml");
    char port[GTOPO_ADDRESS_MAX];

    (void)state;
    assert_int_equal(count_of(map, GTOPO_GPU), 4);
    assert_int_equal(count_of(map, GTOPO_PACKAGE), 2);
    for (int i = 0; i < 4; i++) {
        char rdma[32];

        snprintf(rdma, sizeof rdma, "mlx5_%d", i);
        port_of(map, rdma, port);
        assert_number(map, port, GTOPO_ATTRIBUTE_LID, lids[i]);
        assert_text(map, port, GTOPO_ATTRIBUTE_STATE, "active");
    }
    for (int i = 0; i < 6; i++) {
        char nic[16];

        snprintf(nic, sizeof nic, "nic%d", i);
        if (i == 2 || i == 3) { /* Gigabit Ethernet of another card */
            assert_text(map, nic, GTOPO_ATTRIBUTE_ROLE, "management");
            assert_text(map, nic, GTOPO_ATTRIBUTE_CARD, "0005:01:00.0");
            continue;
        }
        assert_text(map, nic, GTOPO_ATTRIBUTE_ROLE, "fabric");
        assert_text(map, nic, GTOPO_ATTRIBUTE_CARD, "0003:01:00.0");
        assert_number(map, nic, GTOPO_ATTRIBUTE_SOCKET_DIRECT, 1);
    }
    assert_string_equal(class_of(map, "gpu0", "gpu1"), "PIX");
    assert_string_equal(class_of(map, "gpu2", "gpu3"), "PIX");
    assert_string_equal(class_of(map, "gpu1", "gpu2"), "SYS");
    assert_string_equal(class_of(map, "gpu0", "nic0"), "NODE");
    assert_number(map, "gpu3", GTOPO_ATTRIBUTE_NUMA, 8); /* POWER9 numbers its sockets 0 and 8 */
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "nvme0n1");
    assert_null(strstr(text_of(map, "storage0", GTOPO_ATTRIBUTE_MODEL), "LVM"));
    gtopo_map_free(map);
}

static void a_dgx_2_has_sixteen_gpus_behind_two_levels_of_switches(void **state)
{
    struct gtopo_map *map = map_of("nvidiaDGX2.xml");

    (void)state;
    assert_int_equal(count_of(map, GTOPO_GPU), 16);
    assert_int_equal(count_of(map, GTOPO_NVSWITCH), 12); /* of one the configuration space was not to be read */
    assert_int_equal(count_of(map, GTOPO_HOST_BRIDGE), 4);
    assert_string_equal(class_of(map, "gpu0", "nvswitch0"), "NV");
    gtopo_map_free(map);
}

/* Six NVSwitches a board, which the GPUs of the other board reach through them: NV6 to each (DGX-2 user guide). */
static void on_a_dgx_2_every_gpu_reaches_every_other_by_six_nvlinks(void **state)
{
    struct gtopo_map *map = map_of("nvidiaDGX2.xml");

    (void)state;
    for (int a = 0; a < 16; a++)
        for (int b = 0; b < 16; b++) {
            char names[2][16];
            struct gtopo_error error;
            struct gtopo_path path;

            snprintf(names[0], sizeof names[0], "gpu%d", a);
            snprintf(names[1], sizeof names[1], "gpu%d", b);
            if (a == b)
                continue;
            assert_int_equal(gtopo_nvlink_count(map, build_find(map, names[0]), build_find(map, names[1])), 6);
            assert_ok(gtopo_path_find(map, build_find(map, names[0]), build_find(map, names[1]), &path, &error));
            assert_int_equal(path.path_class, GTOPO_PATH_NVLINK);
            assert_int_equal(path.bottleneck_Bps, UINT64_C(150000000000));
            gtopo_path_clear(&path);
        }
    gtopo_map_free(map);
}

static void a_power8_has_a_gpu_on_each_of_four_host_bridges(void **state)
{
    struct gtopo_map *map = map_of("power8gpudistances.xml");

    (void)state;
    assert_int_equal(count_of(map, GTOPO_GPU), 4);
    assert_int_equal(count_of(map, GTOPO_HOST_BRIDGE), 4);
    assert_int_equal(count_of(map, GTOPO_PCI_SWITCH), 0);
    assert_string_equal(class_of(map, "gpu0", "gpu1"), "NV");
    assert_string_equal(class_of(map, "gpu0", "package0"), "NV");
    assert_string_equal(class_of(map, "gpu0", "gpu2"), "SYS");
    gtopo_map_free(map);
}

static void a_host_of_virtual_functions_has_its_cards(void **state)
{
    struct gtopo_map *map = map_of("hwloc-16intel64-manyVFs.xml");
    char port[GTOPO_ADDRESS_MAX];

    (void)state;
    assert_int_equal(count_of(map, GTOPO_PCI_SWITCH), 4);
    for (int i = 0; i < 3; i++) {
        char rdma[32];

        snprintf(rdma, sizeof rdma, "usnic_%d", i);
        port_of(map, rdma, port);
    }
    assert_text(map, "nic3", GTOPO_ATTRIBUTE_ROLE, "virtual-function");
    assert_text(map, "nic3", GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION, "0000:0b:00.0");
    assert_text(map, "nic2", GTOPO_ATTRIBUTE_ROLE, "fabric");
    gtopo_map_free(map);
}

static void xml_of_version_3_is_refused_with_the_way_out(void **state)
{
    const char *path = sample("nvidia-dgx-gb10.xml");
    struct gtopo_host_options options;
    struct gtopo_map *map = build_map();
    struct gtopo_error error;
    int status;

    (void)state;
    gtopo_host_options_init(&options);
    options.hwloc_xml = path;
    status = gtopo_host_discover(map, &options, &error);
    if (status) { /* hwloc 3 reads it */
        assert_int_equal(status, GTOPO_EVERSION);
        assert_contains(error.message, "3.0");
        assert_contains(error.hint, "v2");
    }
    gtopo_map_free(map);
}

static void four_slingshot_nics_of_perlmutter_are_its_fabric(void **state)
{
    struct gtopo_map *map = nccl_sample("simllm-perlmutter-a100-slingshot.xml");

    (void)state;
    assert_int_equal(count_of(map, GTOPO_NIC), 4);
    for (int i = 0; i < 4; i++) {
        char nic[16];

        snprintf(nic, sizeof nic, "nic%d", i);
        assert_text(map, nic, GTOPO_ATTRIBUTE_ROLE, "fabric");
    }
    gtopo_map_free(map);
}

/* Of all samples one has findings for its NICs: 8 GPUs, and eth0 of 1000 Mb/s. */
static void no_machine_is_said_to_lack_a_nic_that_does_not(void **state)
{
    static const char *const rules[] = {"nic-missing", "nic-wrong-socket", "nic-without-port", "bond-member-down",
                                        "gpu-traffic-on-gigabit"};
    DIR *folder = opendir(sample_path("nccl-xml"));
    struct dirent *entry;
    unsigned found = 0;

    (void)state;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        struct gtopo_map *map;

        if (!strstr(entry->d_name, ".xml"))
            continue;
        map = nccl_sample(entry->d_name);
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
            found += findings_of(map, rules[i], NULL);
        assert_int_equal(findings_of(map, "gpu-traffic-on-gigabit", NULL), !strcmp(entry->d_name, "rccl-8p_90a.xml"));
        gtopo_map_free(map);
    }
    closedir(folder);
    assert_int_equal(found, 1);
}

/* ---- records ---- */

static void a_gb10_shows_no_pci_and_that_is_said(void **state)
{
    struct gtopo_map *map = map_of("nvidia-dgx-gb10.tar.bz2");

    (void)state;
    assert_text(map, "machine", GTOPO_ATTRIBUTE_MODEL, "NVIDIA_DGX_Spark");
    assert_number(map, "package0", GTOPO_ATTRIBUTE_CORES, 20);
    assert_int_equal(count_of(map, GTOPO_HOST_BRIDGE), 0);
    assert_int_equal(findings_of(map, "pci-hidden", NULL), 1);
    gtopo_map_free(map);
}

static void six_gpus_of_a_power9_are_on_their_sockets_and_their_memory_is_no_place(void **state)
{
    struct gtopo_map *map = map_of("nvidiagpunumanodes.tar.bz2");

    (void)state;
    assert_int_equal(count_of(map, GTOPO_GPU), 6);
    assert_string_equal(class_of(map, "gpu0", "gpu1"), "NODE");
    assert_string_equal(class_of(map, "gpu2", "gpu3"), "SYS");
    for (int i = 0; i < 6; i++) {
        char bridge[32];

        snprintf(bridge, sizeof bridge, "host-bridge%d", i);
        assert_parent(map, bridge, i < 3 ? "numa0" : "numa1");
    }
    gtopo_map_free(map);
}

static void wrong_localities_give_what_the_kernel_says(void **state)
{
    struct gtopo_map *map = map_of("fakepcilocalities.tar.bz2");
    char port[GTOPO_ADDRESS_MAX];

    (void)state;
    port_of(map, "qib0", port);
    assert_number(map, port, GTOPO_ATTRIBUTE_LID, 298);
    assert_number(map, port, GTOPO_ATTRIBUTE_RATE_Bps, UINT64_C(5000000000));
    assert_int_equal(count_of(map, GTOPO_NUMA), 4);
    assert_int_equal(count_of(map, GTOPO_NIC), 5);
    gtopo_map_free(map);
}

static void two_sockets_with_everything_have_it(void **state)
{
    struct gtopo_map *map = map_of("32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2");
    char port[GTOPO_ADDRESS_MAX];

    (void)state;
    port_of(map, "mlx4_0", port);
    assert_number(map, port, GTOPO_ATTRIBUTE_LID, 932);
    assert_text(map, port, GTOPO_ATTRIBUTE_NETDEV, "ib0");
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "nvme0n1");
    assert_text(map, "storage1", GTOPO_ATTRIBUTE_DEVICE, "sda");
    assert_string_equal(class_of(map, "nic0", port), "SYS");
    assert_int_equal(count_of(map, GTOPO_GPU), 0); /* a Xeon Phi is none */
    gtopo_map_free(map);
}

static void a_disk_in_a_wide_domain_that_hwloc_leaves_out_is_on_its_bus(void **state)
{
    struct gtopo_map *map = map_of("2pa-pcidomain32bits.tar.bz2");

    (void)state;
    assert_unknown(map, "nic0", GTOPO_ATTRIBUTE_NUMA); /* one node, and the kernel says -1 */
    assert_unknown(map, "host-bridge0", GTOPO_ATTRIBUTE_NUMA);
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "10000:00:04.0");
    assert_text(map, "storage0", GTOPO_ATTRIBUTE_DEVICE, "vda");
    assert_number(map, "storage0", GTOPO_ATTRIBUTE_CAPACITY_B, UINT64_C(41943040) * 512);
    assert_parent(map, "storage0", "host-bridge1");
    assert_int_equal(count_of(map, GTOPO_STORAGE), 1);
    assert_int_equal(findings_of(map, "pci-domain-hidden", NULL), 0);
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lassen_has_four_gpus_and_four_infiniband_ports_on_two_sockets),
        cmocka_unit_test(a_dgx_2_has_sixteen_gpus_behind_two_levels_of_switches),
        cmocka_unit_test(on_a_dgx_2_every_gpu_reaches_every_other_by_six_nvlinks),
        cmocka_unit_test(a_power8_has_a_gpu_on_each_of_four_host_bridges),
        cmocka_unit_test(a_host_of_virtual_functions_has_its_cards),
        cmocka_unit_test(xml_of_version_3_is_refused_with_the_way_out),
        cmocka_unit_test(four_slingshot_nics_of_perlmutter_are_its_fabric),
        cmocka_unit_test(no_machine_is_said_to_lack_a_nic_that_does_not),
        cmocka_unit_test(a_gb10_shows_no_pci_and_that_is_said),
        cmocka_unit_test(six_gpus_of_a_power9_are_on_their_sockets_and_their_memory_is_no_place),
        cmocka_unit_test(wrong_localities_give_what_the_kernel_says),
        cmocka_unit_test(two_sockets_with_everything_have_it),
        cmocka_unit_test(a_disk_in_a_wide_domain_that_hwloc_leaves_out_is_on_its_bus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
