/* SPDX-License-Identifier: Apache-2.0 */
/* Discovering processors, the PCI tree and its links. */
#include "discover.h"

#define DEGRADED "pcie-link-degraded"

/* Root ports to buses 1 and 2, and a root port to bus 3 on the second package. */
static struct fake *two_sockets(void)
{
    struct fake *m = fake_machine(2, 2);

    fake_bridge(m, "0000:00:01.0", 1, 1);
    fake_bridge(m, "0000:00:02.0", 2, 2);
    fake_bridge(m, "0000:80:01.0", 0x81, 0x81);
    return m;
}

/* ---- where things are ---- */

static void packages_and_nodes_are_found_with_their_processors(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map = fake_discover(m);

    (void)state;
    assert_parent(map, "numa1", "package1");
    assert_number(map, "package1", GTOPO_ATTRIBUTE_CORES, 2);
    assert_text(map, "package1", GTOPO_ATTRIBUTE_CPUS, "2-3");
    assert_text(map, "numa1", GTOPO_ATTRIBUTE_CPUS, "2-3");
    assert_number(map, "numa1", GTOPO_ATTRIBUTE_OS_INDEX, 1);
    assert_number(map, "numa1", GTOPO_ATTRIBUTE_MEMORY_B, 1 << 30);
    assert_false(is_there(map, "host-bridge0")); /* root ports with nothing on them */
    gtopo_map_free(map);
    fake_free(m);
}

static void devices_are_on_the_node_that_the_kernel_names(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_device(m, "0000:81:00.0", "030200", "10de:2330");
    fake_numa(m, "0000:01:00.0", 0);
    fake_numa(m, "0000:81:00.0", 1);
    map = fake_discover(m);
    assert_parent(map, "host-bridge0", "numa0");
    assert_parent(map, "host-bridge1", "numa1");
    assert_parent(map, "gpu1", "host-bridge1");
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_NUMA, 0);
    assert_number(map, "gpu1", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_number(map, "host-bridge1", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_int_equal(findings_of(map, "locality-hidden", NULL), 0);
    gtopo_map_free(map);
    fake_free(m);
}

static void check_hidden(struct fake *m)
{
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    fake_bridge(m, "0000:00:01.0", 1, 1);
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_numa(m, "0000:00:01.0", -1);
    fake_numa(m, "0000:01:00.0", -1);
    map = fake_discover(m);
    assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_NUMA);
    assert_unknown(map, "host-bridge0", GTOPO_ATTRIBUTE_NUMA);
    assert_parent(map, "host-bridge0", "n");
    assert_int_equal(findings_of(map, "locality-hidden", &finding), 1);
    assert_int_equal(finding.severity, GTOPO_NOTE);
    gtopo_map_free(map);
    fake_free(m);
}

static void a_node_that_firmware_hides_stays_unknown_and_is_never_0(void **state)
{
    struct fake *m = fake_machine(2, 2);

    (void)state;
    check_hidden(m);
    check_hidden(fake_machine(1, 4));
    check_hidden(fake_processors(2, 2, 1));
    m = fake_machine(1, 4); /* a processor that is switched off makes the rest a group of its own */
    fake_write(m, "0-2", "sys/devices/system/cpu/online");
    fake_write(m, "7", "sys/devices/system/node/node0/cpumap");
    m->all_cpus[0] = '7';
    check_hidden(m);
}

static void without_the_kernels_word_the_processors_nearby_tell_the_node(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:81:00.0", "030200", "10de:2330");
    fake_pci_file(m, "0000:80:01.0", "local_cpus", "c");
    fake_pci_file(m, "0000:81:00.0", "local_cpus", "c");
    map = fake_discover(m);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_parent(map, "host-bridge0", "numa1");
    gtopo_map_free(map);
    fake_free(m);
}

static void memory_without_processors_is_no_place_for_a_device(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    fake_node(m, 2, "", ""); /* CXL */
    fake_write(m, "0-2", "sys/devices/system/node/online");
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_numa(m, "0000:01:00.0", 2);
    fake_pci_file(m, "0000:00:01.0", "local_cpus", "3");
    fake_device(m, "0000:81:00.0", "030200", "10de:2330"); /* by the processors nearby */
    fake_pci_file(m, "0000:80:01.0", "local_cpus", "c");
    fake_pci_file(m, "0000:81:00.0", "local_cpus", "c");
    map = fake_discover(m);
    assert_number(map, "numa2", GTOPO_ATTRIBUTE_OS_INDEX, 2);
    assert_string_equal(text_of(map, "numa2", GTOPO_ATTRIBUTE_CPUS), "(none)");
    assert_parent(map, "host-bridge0", "package0");
    assert_parent(map, "host-bridge1", "numa1");
    gtopo_map_free(map);
    fake_free(m);
}

static void a_package_without_a_node_of_its_own_holds_its_devices(void **state)
{
    struct fake *m = fake_processors(2, 2, 1);
    struct gtopo_map *map;

    (void)state;
    fake_bridge(m, "0000:00:01.0", 1, 1);
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_numa(m, "0000:01:00.0", -1);
    fake_pci_file(m, "0000:00:01.0", "local_cpus", "c");
    fake_pci_file(m, "0000:01:00.0", "local_cpus", "c");
    map = fake_discover(m);
    assert_parent(map, "host-bridge0", "package1");
    assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_NUMA);
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- the tree ---- */

static void ports_of_a_switch_fold_into_one_and_root_ports_vanish(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map;

    (void)state;
    fake_bridge(m, "0000:00:01.0", 1, 9);
    fake_bridge(m, "0000:01:00.0", 2, 9); /* upstream */
    fake_bridge(m, "0000:02:00.0", 3, 3); /* downstream */
    fake_device(m, "0000:03:00.0", "030200", "10de:2330");
    fake_bridge(m, "0000:02:01.0", 4, 9);
    fake_bridge(m, "0000:04:00.0", 5, 9); /* a second switch below */
    fake_bridge(m, "0000:05:00.0", 6, 6);
    fake_device(m, "0000:06:00.0", "020700", "15b3:1021");
    fake_bridge(m, "0000:00:02.0", 0xa, 0xa);
    fake_device(m, "0000:0a:00.0", "010802", "144d:a80a");
    map = fake_discover(m);
    assert_parent(map, "pci-switch0", "host-bridge0");
    assert_text(map, "pci-switch0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:01:00.0");
    assert_parent(map, "gpu0", "pci-switch0");
    assert_parent(map, "pci-switch1", "pci-switch0");
    assert_parent(map, "nic0", "pci-switch1");
    assert_parent(map, "storage0", "host-bridge0");
    assert_false(is_there(map, "pci-switch2"));
    assert_false(is_there(map, "host-bridge1"));
    gtopo_map_free(map);
    fake_free(m);
}

static void a_bridge_to_conventional_pci_is_no_switch(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map;

    (void)state;
    fake_bridge(m, "0000:00:01.0", 1, 3);
    fake_bridge(m, "0000:01:00.0", 2, 3);
    fake_trained(m, "0000:01:00.0", "1 2.5", "1 2.5");
    fake_bridge(m, "0000:02:01.0", 3, 3); /* conventional on both sides: it has no link */
    fake_device(m, "0000:02:00.0", "020000", "8086:100e");
    fake_device(m, "0000:03:00.0", "020000", "8086:100e");
    map = fake_discover(m);
    assert_false(is_there(map, "pci-switch0"));
    assert_parent(map, "nic0", "host-bridge0");
    assert_parent(map, "nic1", "host-bridge0");
    gtopo_map_free(map);
    fake_free(m);
}

static void what_computes_is_a_gpu_and_what_paints_for_a_service_processor_is_not(void **state)
{
    static const char *const devices[][3] = {
        {"0000:01:00.0", "030000", "1a03:2000"}, /* ASPEED */
        {"0000:01:01.0", "030000", "102b:0534"}, /* Matrox */
        {"0000:01:02.0", "120000", "1002:74a1"}, /* MI300X: a processing accelerator */
        {"0000:01:03.0", "038000", "1002:740f"}, {"0000:01:04.0", "030200", "10de:2330"},
        {"0000:01:05.0", "068000", "10de:22a3"},                                          /* NVSwitch */
        {"0000:01:06.0", "068000", "8086:7113"}, {"0000:01:07.0", "0b4000", "8086:225c"}, /* a coprocessor */
    };
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        fake_device(m, devices[i][0], devices[i][1], devices[i][2]);
    map = fake_discover(m);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_PCI_ID, "1002:74a1");
    assert_text(map, "gpu1", GTOPO_ATTRIBUTE_PCI_CLASS, "0x038000");
    assert_text(map, "gpu2", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:01:04.0");
    assert_text(map, "nvswitch0", GTOPO_ATTRIBUTE_PCI_ID, "10de:22a3");
    assert_false(is_there(map, "gpu3"));
    assert_false(is_there(map, "nvswitch1"));
    gtopo_map_free(map);
    fake_free(m);
}

static void virtual_functions_of_gpus_are_left_out(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "030200", "1002:74a1");
    fake_device(m, "0000:01:02.0", "030200", "1002:74b5");
    fake_link_to(m, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0",
                 "sys/devices/pci0000:00/0000:00:01.0/0000:01:02.0/physfn");
    map = fake_discover(m);
    assert_true(is_there(map, "gpu0"));
    assert_false(is_there(map, "gpu1"));
    gtopo_map_free(map);
    fake_free(m);
}

static void the_driver_is_the_name_at_the_end_of_its_link(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_link_to(m, "sys/bus/pci/drivers/nvidia", "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/driver");
    map = fake_discover(m);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_DRIVER, "nvidia");
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- links ---- */

static struct gtopo_link link_above(const struct gtopo_map *map, const char *address)
{
    struct gtopo_link link = {0};
    uint32_t id = GTOPO_NONE;

    assert_int_equal(gtopo_map_links_of(map, at(map, address), &id, 1), 1);
    assert_int_equal(gtopo_map_link(map, id, &link, NULL), 0);
    return link;
}

static void a_link_has_its_negotiated_and_its_capable_rate(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_link link;
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_trained(m, "0000:00:01.0", "16 16.0", "16 16.0"); /* the slot is of an older generation */
    fake_trained(m, "0000:01:00.0", "16 16.0", "16 32.0");
    map = fake_discover(m);
    link = link_above(map, "gpu0");
    assert_int_equal(link.kind, GTOPO_LINK_PCIE);
    assert_int_equal(link.width, 16);
    assert_int_equal(link.speed_MTps, 16000);
    assert_int_equal(link.capable_speed_MTps, 16000);
    assert_in_range(link.nominal_Bps, UINT64_C(31507692000), UINT64_C(31507693000)); /* 256 Gbit/s, 128b/130b */
    assert_int_equal(link.capable_Bps, link.nominal_Bps);
    assert_int_equal(findings_of(map, DEGRADED, NULL), 0);
    gtopo_map_free(map);
    fake_free(m);
}

static void a_narrow_link_is_one_warning_with_both_numbers_and_both_ends(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "020700", "15b3:1021");
    fake_device(m, "0000:01:00.1", "020700", "15b3:1021"); /* the same card's second function, on the same link */
    fake_trained(m, "0000:00:01.0", "8 32.0", "16 32.0");
    fake_trained(m, "0000:01:00.0", "8 32.0", "16 32.0");
    fake_trained(m, "0000:01:00.1", "8 32.0", "16 32.0");
    map = fake_discover(m);
    assert_int_equal(findings_of(map, DEGRADED, &finding), 1);
    assert_int_equal(finding.severity, GTOPO_WARNING);
    assert_int_equal(finding.object, at(map, "nic0"));
    assert_contains(finding.text, "x8");
    assert_contains(finding.text, "x16");
    assert_contains(finding.text, "0000:01:00.0");
    assert_contains(finding.text, "0000:00:01.0");
    assert_non_null(finding.next_step);
    gtopo_map_free(map);
    fake_free(m);
}

static void an_idle_gpus_low_speed_is_a_note_and_a_nics_is_a_warning(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_trained(m, "0000:01:00.0", "16 2.5", "16 32.0");
    map = fake_discover(m);
    assert_int_equal(findings_of(map, DEGRADED, &finding), 1);
    assert_int_equal(finding.severity, GTOPO_NOTE);
    assert_contains(finding.text, "2.5 GT/s");
    assert_contains(finding.text, "32 GT/s");
    gtopo_map_free(map);
    fake_device(m, "0000:02:00.0", "020700", "15b3:1021");
    fake_trained(m, "0000:02:00.0", "16 8.0", "16 32.0");
    map = fake_discover(m);
    assert_int_equal(findings_of(map, DEGRADED, &finding), 2);
    assert_int_equal(finding.severity, GTOPO_WARNING);
    gtopo_map_free(map);
    fake_free(m);
}

static void what_the_kernel_does_not_know_of_a_link_is_unknown(void **state)
{
    static const char *const words[][2] = {{"0", "Unknown"}, {"63", "Unknown speed"}, {"255", "7.0 GT/s PCIe"}};
    struct fake *m = two_sockets();

    (void)state;
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct gtopo_link link;
        struct gtopo_map *map;

        fake_pci_file(m, "0000:01:00.0", "current_link_width", words[i][0]);
        fake_pci_file(m, "0000:01:00.0", "max_link_width", words[i][0]);
        fake_pci_file(m, "0000:01:00.0", "current_link_speed", words[i][1]);
        map = fake_discover(m);
        link = link_above(map, "gpu0");
        assert_int_equal(link.width | link.speed_MTps | link.nominal_Bps | link.capable_Bps, 0);
        assert_int_equal(findings_of(map, DEGRADED, NULL), 0);
        gtopo_map_free(map);
    }
    fake_free(m);
}

/* ---- hosts ---- */

static void two_hosts_go_into_one_map_and_equal_ones_share_a_shape(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map = build_map();
    struct gtopo_error error;

    (void)state;
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    assert_ok(fake_try(m, map, "a", &error));
    assert_ok(fake_try(m, map, "b", &error));
    assert_fails(GTOPO_EUSAGE, fake_try(m, map, "b", &error));
    build_seal(map);
    assert_true(is_there(map, "a/gpu0") && is_there(map, "b/gpu0"));
    assert_int_equal(gtopo_map_shape_count(map), 1);
    gtopo_map_free(map);
    fake_free(m);
}

static void a_machine_without_a_visible_bus_says_so(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map = fake_discover(m);

    (void)state;
    assert_int_equal(findings_of(map, "pci-hidden", NULL), 1);
    gtopo_map_free(map);
    fake_free(m);
}

/* The hypervisor's flag or its firmware's name, and no word of a NUMA node: one bus for everything. */
static void check_virtual(struct fake *m, int is_virtual)
{
    static const char *const addresses[] = {"0000:00:05.0", "0000:00:06.0"};
    struct gtopo_finding finding = {0};
    struct gtopo_path path;
    struct gtopo_error error;
    struct gtopo_map *map;

    fake_device(m, addresses[0], "030200", "10de:2330");
    fake_device(m, addresses[1], "020700", "15b3:101e");
    for (int i = 0; i < 2; i++)
        fake_numa(m, addresses[i], -1);
    map = fake_discover(m);
    assert_ok(gtopo_path_find(map, at(map, "gpu0"), at(map, "nic0"), &path, &error));
    assert_string_equal(gtopo_path_class_name(path.path_class), is_virtual ? "?" : "PHB");
    gtopo_path_clear(&path);
    assert_number(map, "machine", GTOPO_ATTRIBUTE_VIRTUAL, is_virtual ? 1 : UINT64_MAX);
    assert_int_equal(findings_of(map, "locality-hidden", &finding), 1);
    assert_contains(finding.text, is_virtual ? "virtual machine" : "the machine does not say");
    assert_contains(finding.next_step, "--overlay");
    gtopo_map_free(map);
    fake_free(m);
}

static void on_the_bus_of_a_virtual_machine_nothing_is_near(void **state)
{
    struct fake *m = fake_machine(1, 2);

    (void)state;
    fake_write(m, "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm", "proc/cpuinfo");
    check_virtual(m, 1);
    m = fake_machine(2, 2);
    fake_write(m, "QEMU", "sys/class/dmi/id/sys_vendor");
    check_virtual(m, 1);
    m = fake_machine(1, 2); /* a desktop's one bus is a bus; the word is no part of another */
    fake_write(m, "flags\t\t: fpu hypervisor_like", "proc/cpuinfo");
    fake_write(m, "A Maker", "sys/class/dmi/id/sys_vendor");
    check_virtual(m, 0);
}

/* An administrator who gives the guest's bus a node has made the tree for it. */
static void a_bus_of_a_virtual_machine_with_a_node_is_a_bus(void **state)
{
    struct fake *m = fake_machine(2, 2);
    struct gtopo_map *map;

    (void)state;
    fake_write(m, "flags\t\t: hypervisor", "proc/cpuinfo");
    fake_device(m, "0000:80:05.0", "030200", "10de:2330");
    fake_numa(m, "0000:80:05.0", 1);
    map = fake_discover(m);
    assert_parent(map, "host-bridge0", "numa1");
    assert_unknown(map, "host-bridge0", GTOPO_ATTRIBUTE_VIRTUAL);
    assert_int_equal(findings_of(map, "locality-hidden", NULL), 0);
    gtopo_map_free(map);
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_and_nodes_are_found_with_their_processors),
        cmocka_unit_test(devices_are_on_the_node_that_the_kernel_names),
        cmocka_unit_test(a_node_that_firmware_hides_stays_unknown_and_is_never_0),
        cmocka_unit_test(without_the_kernels_word_the_processors_nearby_tell_the_node),
        cmocka_unit_test(memory_without_processors_is_no_place_for_a_device),
        cmocka_unit_test(a_package_without_a_node_of_its_own_holds_its_devices),
        cmocka_unit_test(ports_of_a_switch_fold_into_one_and_root_ports_vanish),
        cmocka_unit_test(a_bridge_to_conventional_pci_is_no_switch),
        cmocka_unit_test(what_computes_is_a_gpu_and_what_paints_for_a_service_processor_is_not),
        cmocka_unit_test(virtual_functions_of_gpus_are_left_out),
        cmocka_unit_test(the_driver_is_the_name_at_the_end_of_its_link),
        cmocka_unit_test(a_link_has_its_negotiated_and_its_capable_rate),
        cmocka_unit_test(a_narrow_link_is_one_warning_with_both_numbers_and_both_ends),
        cmocka_unit_test(an_idle_gpus_low_speed_is_a_note_and_a_nics_is_a_warning),
        cmocka_unit_test(what_the_kernel_does_not_know_of_a_link_is_unknown),
        cmocka_unit_test(two_hosts_go_into_one_map_and_equal_ones_share_a_shape),
        cmocka_unit_test(a_machine_without_a_visible_bus_says_so),
        cmocka_unit_test(on_the_bus_of_a_virtual_machine_nothing_is_near),
        cmocka_unit_test(a_bus_of_a_virtual_machine_with_a_node_is_a_bus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
