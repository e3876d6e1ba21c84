/* SPDX-License-Identifier: Apache-2.0 */
/* Discovering NICs and their ports: netdevs, RDMA devices, and which belongs to which. */
#include "discover.h"

/* A card with two functions, "0000:01:00.0" and "0000:01:00.1". */
static struct fake *with_card(void)
{
    struct fake *m = fake_machine(1, 2);

    fake_bridge(m, "0000:00:01.0", 1, 1);
    fake_bridge(m, "0000:00:02.0", 2, 2);
    fake_device(m, "0000:01:00.0", "020000", "15b3:1021");
    fake_device(m, "0000:01:00.1", "020000", "15b3:1021");
    return m;
}

/* ---- Ethernet ---- */

static void a_plain_port_has_the_facts_of_its_netdev(void **state)
{
    struct fake *m = with_card();
    struct gtopo_map *map;

    (void)state;
    fake_netdev(m, "0000:01:00.0", "eth0");
    map = fake_discover(m);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_DEVICE, "eth0");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_NETDEV, "eth0");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_MAC, "52:54:00:00:00:01");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_LINK_LAYER, "Ethernet");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_STATE, "active");
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_MTU_B, 1500);
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_RATE_Bps, UINT64_C(12500000000));
    assert_unknown(map, "nic0:1", GTOPO_ATTRIBUTE_RDMA_MTU_B);
    assert_true(is_there(map, "nic1") && !is_there(map, "nic1:1"));
    assert_int_equal(findings_of(map, "port-down", NULL) + findings_of(map, "port-off", NULL), 0);
    gtopo_map_free(map);
    fake_free(m);
}

/* What is found for a netdev's operstate, carrier and flags. */
static void check_state(const char *operstate, const char *carrier, const char *flags, const char *state,
                        const char *rule)
{
    struct fake *m = with_card();
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    fake_netdev(m, "0000:01:00.0", "eth0");
    fake_net_file(m, "eth0", "operstate", operstate);
    fake_net_file(m, "eth0", "carrier", carrier);
    fake_net_file(m, "eth0", "flags", flags);
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_STATE, state);
    assert_int_equal(findings_of(map, rule ? rule : "port-down", &finding), rule != NULL);
    assert_int_equal(findings_of(map, "port-down", NULL) + findings_of(map, "port-off", NULL), rule != NULL);
    if (rule) {
        assert_int_equal(finding.severity, strcmp(rule, "port-off") ? GTOPO_WARNING : GTOPO_NOTE);
        assert_int_equal(finding.object, at(map, "nic0:1"));
        assert_contains(finding.text, "eth0");
    }
    gtopo_map_free(map);
    fake_free(m);
}

static void a_port_without_link_is_a_warning_and_one_that_is_off_a_note(void **state)
{
    (void)state;
    check_state("up", "1", "0x1003", "active", NULL);
    check_state("down", "0", "0x1003", "down", "port-down");
    check_state("lowerlayerdown", "0", "0x1003", "down", "port-down");
    check_state("down", "", "0x1002", "down", "port-off"); /* reading the carrier of what is off fails */
}

static void a_driver_that_knows_no_state_is_asked_for_the_carrier(void **state)
{
    (void)state;
    check_state("unknown", "1", "0x1003", "active", NULL);
    check_state("unknown", "0", "0x1003", "down", "port-down");
    check_state("unknown", "1", "0x1002", "down", "port-off");
}

static void a_virtio_nic_has_its_netdev_one_level_down(void **state)
{
    struct fake *m = with_card();
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0000:02:00.0", "020000", "1af4:1041");
    fake_netdev(m, "0000:02:00.0/virtio3", "eth0");
    fake_net_file(m, "eth0", "speed", "-1");
    map = fake_discover(m);
    assert_text(map, "nic2:1", GTOPO_ATTRIBUTE_NETDEV, "eth0");
    assert_unknown(map, "nic2:1", GTOPO_ATTRIBUTE_RATE_Bps);
    assert_false(is_there(map, "nic3"));
    gtopo_map_free(map);
    fake_free(m);
}

static void netdevs_of_one_function_are_numbered_by_their_place_on_it(void **state)
{
    struct fake *m = with_card();
    struct gtopo_map *map;

    (void)state;
    fake_netdev(m, "0000:01:00.0", "eth0"); /* older drivers: one function for both ports */
    fake_netdev(m, "0000:01:00.0", "eth1");
    fake_netdev(m, "0000:01:00.0", "eth2");
    fake_net_file(m, "eth0", "dev_port", "1");
    fake_net_file(m, "eth2", "dev_port", "1"); /* a driver that says the same of two */
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_NETDEV, "eth1");
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_NETDEV, "eth0");
    assert_text(map, "nic0:3", GTOPO_ATTRIBUTE_NETDEV, "eth2");
    gtopo_map_free(map);
    fake_free(m);
}

static void a_nic_on_no_pci_bus_is_on_the_machine_and_shares_of_a_card_are_none(void **state)
{
    struct fake *m = with_card();
    struct gtopo_map *map;

    (void)state;
    fake_netdev(m, "0000:01:00.0", "eth0");
    fake_netdev(m, "0000:01:00.0/mlx5_core.sf.2", "eth1"); /* a subfunction */
    fake_link_to(m, "sys/bus/auxiliary", "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/mlx5_core.sf.2/subsystem");
    fake_write(m, "1", "sys/devices/platform/soc/net/eth9/type");
    fake_link_to(m, "sys/devices/platform/soc/net/eth9", "sys/class/net/eth9");
    fake_link_to(m, "sys/devices/platform/soc", "sys/devices/platform/soc/net/eth9/device");
    fake_netdev(m, NULL, "docker0");
    map = fake_discover(m);
    assert_text(map, "nic2", GTOPO_ATTRIBUTE_DEVICE, "eth9");
    assert_parent(map, "nic2", "n");
    assert_unknown(map, "nic2", GTOPO_ATTRIBUTE_NUMA);
    assert_unknown(map, "nic2", GTOPO_ATTRIBUTE_VIRTUAL);
    assert_false(is_there(map, "nic3"));
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- RDMA ---- */

static void an_infiniband_card_has_two_ports_with_all_their_facts(void **state)
{
    struct fake *m = with_card();
    const struct gtopo_gid *gids;
    struct gtopo_map *map;
    size_t count = 0;

    (void)state;
    fake_rdma(m, "0000:01:00.0", "mlx5_0", 2);
    fake_rdma_file(m, "mlx5_0", "fw_ver", "16.35.2000");
    fake_rdma_file(m, "mlx5_0", "ports/1/lid", "0x11");
    fake_rdma_file(m, "mlx5_0", "ports/1/sm_lid", "0x1");
    fake_rdma_file(m, "mlx5_0", "ports/1/rate", "2.5 Gb/sec (1X SDR)");
    fake_netdev(m, "0000:01:00.0", "ib0");
    fake_net_file(m, "ib0", "type", "32");
    fake_net_file(m, "ib0", "address", "00:00:11:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:03:1f:21");
    fake_gid(m, "mlx5_0", 1, 0, "fe80:0000:0000:0000:0002:c903:0003:1f21", "IB/RoCE v1");
    fake_gid(m, "mlx5_0", 1, 1, "0000:0000:0000:0000:0000:0000:0000:0000", NULL);
    fake_gid(m, "mlx5_0", 2, 0, "fe80:0000:0000:0000:0002:c903:0003:1f22", NULL);
    map = fake_discover(m);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_FIRMWARE, "16.35.2000");
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_NODE_GUID, UINT64_C(0x0002c90300031f20));
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_SYSTEM_GUID, UINT64_C(0x0002c90300031f2f));
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_GUID, UINT64_C(0x0002c90300031f21));
    assert_number(map, "nic0:2", GTOPO_ATTRIBUTE_GUID, UINT64_C(0x0002c90300031f22));
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_LID, 0x11);
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_SM_LID, 1);
    assert_unknown(map, "nic0:2", GTOPO_ATTRIBUTE_LID); /* 0: none yet */
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_RATE_Bps, 312500000);
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_LANES, 1);
    assert_number(map, "nic0:2", GTOPO_ATTRIBUTE_RATE_Bps, UINT64_C(12500000000));
    assert_number(map, "nic0:2", GTOPO_ATTRIBUTE_LANES, 4);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_NETDEV, "ib0");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_MAC, "(none)"); /* 20 bytes with a GID in them are none */
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_LINK_LAYER, "InfiniBand");
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_STATE, "active");
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_PHYSICAL_STATE, "LinkUp");
    assert_unknown(map, "nic0:2", GTOPO_ATTRIBUTE_RDMA_MTU_B);
    gids = gtopo_map_gids(map, at(map, "nic0:1"), &count);
    assert_int_equal(count, 1); /* empty lines of the table are left out */
    assert_int_equal(gids[0].type, GTOPO_GID_IB);
    gtopo_map_free(map);
    fake_free(m);
}

static void a_port_that_is_not_active_is_a_warning(void **state)
{
    static const char *const states[][2] = {
        {"1: DOWN", "down"}, {"2: INIT", "init"}, {"3: ARMED", "armed"}, {"5: ACTIVE_DEFER", "active-defer"}};

    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct fake *m = with_card();
        struct gtopo_finding finding = {0};
        struct gtopo_map *map;

        fake_rdma(m, "0000:01:00.0", "mlx5_0", 1);
        fake_rdma_file(m, "mlx5_0", "ports/1/state", states[i][0]);
        fake_rdma_file(m, "mlx5_0", "ports/1/phys_state", "2: Polling");
        map = fake_discover(m);
        assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_STATE, states[i][1]);
        assert_int_equal(findings_of(map, "port-down", &finding), i < 3);
        if (i < 3) {
            assert_int_equal(finding.severity, GTOPO_WARNING);
            assert_contains(finding.text, "mlx5_0 port 1");
            assert_contains(finding.text, "Polling");
        }
        gtopo_map_free(map);
        fake_free(m);
    }
}

/* RoCE on "0000:01:00.0": mlx5_0 with so many ports. */
static struct fake *with_roce(int ports)
{
    struct fake *m = with_card();

    fake_rdma(m, "0000:01:00.0", "mlx5_0", ports);
    fake_link_to(m, "sys/bus/pci/drivers/mlx5_core", "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/driver");
    for (int port = 1; port <= ports; port++)
        fake_write(m, "Ethernet", "sys/class/infiniband/mlx5_0/ports/%d/link_layer", port);
    return m;
}

static void a_roce_port_has_gids_of_both_versions_and_the_guid_of_its_node(void **state)
{
    struct fake *m = with_roce(1);
    const struct gtopo_gid *gids;
    struct gtopo_map *map;
    size_t count = 0;

    (void)state;
    fake_gid(m, "mlx5_0", 1, 0, "fe80:0000:0000:0000:0ac0:ebff:fe00:0001", "IB/RoCE v1");
    fake_gid(m, "mlx5_0", 1, 1, "fe80:0000:0000:0000:0ac0:ebff:fe00:0001", "RoCE v2");
    fake_gid(m, "mlx5_0", 1, 10, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2");
    map = fake_discover(m);
    gids = gtopo_map_gids(map, at(map, "nic0:1"), &count);
    assert_int_equal(count, 3);
    assert_int_equal(gids[0].type, GTOPO_GID_ROCE_V1);
    assert_int_equal(gids[1].type, GTOPO_GID_ROCE_V2);
    assert_int_equal(gids[2].index, 10);
    assert_int_equal(gids[2].raw[15], 1);
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_GUID, UINT64_C(0x0002c90300031f20));
    assert_unknown(map, "nic0:1", GTOPO_ATTRIBUTE_LID);
    gtopo_map_free(map);
    fake_free(m);
}

static void a_netdev_belongs_to_the_port_whose_gids_name_it_else_to_that_of_its_place(void **state)
{
    struct fake *m = with_roce(2);
    struct gtopo_map *map;

    (void)state;
    fake_netdev(m, "0000:01:00.0", "eth0");
    fake_netdev(m, "0000:01:00.0", "eth1");
    fake_net_file(m, "eth1", "dev_port", "1");
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_NETDEV, "eth0");
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_NETDEV, "eth1");
    assert_false(is_there(map, "nic0:3"));
    gtopo_map_free(map);
    fake_rdma_file(m, "mlx5_0", "ports/1/gid_attrs/ndevs/0", "eth1");
    fake_rdma_file(m, "mlx5_0", "ports/2/gid_attrs/ndevs/0", "eth0");
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_NETDEV, "eth1");
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_NETDEV, "eth0");
    gtopo_map_free(map);
    fake_rdma_file(m, "mlx5_0", "ports/1/gid_attrs/ndevs/0", "bond0"); /* which is on no card */
    fake_rdma_file(m, "mlx5_0", "ports/2/gid_attrs/ndevs/0", "bond0");
    map = fake_discover(m);
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_NETDEV, "eth1");
    assert_false(is_there(map, "nic0:3"));
    gtopo_map_free(map);
    fake_free(m);
}

static void check_rdma_mtu(struct fake *m, const char *mtu, uint64_t expected)
{
    struct gtopo_map *map;

    fake_net_file(m, "eth0", "mtu", mtu);
    map = fake_discover(m);
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_RDMA_MTU_B, expected);
    gtopo_map_free(map);
}

static void the_rdma_mtu_leaves_room_for_what_the_driver_puts_around_it(void **state)
{
    struct fake *m = with_roce(1);

    (void)state;
    fake_netdev(m, "0000:01:00.0", "eth0");
    check_rdma_mtu(m, "1500", 1024);
    check_rdma_mtu(m, "9000", 4096);
    check_rdma_mtu(m, "4191", 2048);
    check_rdma_mtu(m, "4192", 4096);
    check_rdma_mtu(m, "300", UINT64_MAX);
    fake_free(m);
    m = with_card();
    fake_netdev(m, "0000:01:00.0", "eth0");
    fake_rdma(m, NULL, "rxe0", 1);
    fake_rdma_file(m, "rxe0", "parent", "eth0");
    fake_rdma_file(m, "rxe0", "ports/1/link_layer", "Ethernet");
    check_rdma_mtu(m, "4175", 2048);
    check_rdma_mtu(m, "4176", 4096);
    fake_free(m);
}

/* ---- virtual RDMA devices ---- */

static void fake_rxe(struct fake *m, const char *name, const char *netdev)
{
    fake_rdma(m, NULL, name, 1);
    fake_rdma_file(m, name, "parent", netdev);
    fake_rdma_file(m, name, "ports/1/link_layer", "Ethernet");
}

static void a_virtual_rdma_device_goes_to_the_port_of_its_netdev(void **state)
{
    struct fake *m = with_card();
    struct gtopo_map *map;

    (void)state;
    fake_netdev(m, "0000:01:00.0", "eth0");
    fake_rxe(m, "rxe0", "eth0");
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_DEVICE, "rxe0");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_NETDEV, "eth0");
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_VIRTUAL, 1);
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_RATE_Bps, UINT64_C(12500000000)); /* the netdev's */
    assert_unknown(map, "nic0", GTOPO_ATTRIBUTE_VIRTUAL);
    assert_false(is_there(map, "nic0:2") || is_there(map, "nic2"));
    gtopo_map_free(map);
    fake_rxe(m, "rxe1", "eth0"); /* a second one is a port of its own */
    map = fake_discover(m);
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_DEVICE, "rxe1");
    assert_text(map, "nic0:2", GTOPO_ATTRIBUTE_NETDEV, "eth0");
    gtopo_map_free(map);
    fake_free(m);
}

static void a_virtual_rdma_device_on_a_netdev_of_software_is_a_virtual_nic(void **state)
{
    struct fake *m = with_card();
    struct gtopo_map *map;

    (void)state;
    fake_netdev(m, NULL, "dummy0");
    fake_rxe(m, "rxe0", "dummy0");
    fake_rdma(m, NULL, "siw0", 1); /* names its netdev in its GID table only */
    fake_rdma_file(m, "siw0", "ports/1/gid_attrs/ndevs/0", "dummy0");
    fake_rxe(m, "rxe1", "../net/dummy0");
    fake_rxe(m, "rxe2", "gone0");
    map = fake_discover(m);
    assert_number(map, "nic2", GTOPO_ATTRIBUTE_VIRTUAL, 1);
    assert_parent(map, "nic2", "n");
    assert_text(map, "nic2:1", GTOPO_ATTRIBUTE_DEVICE, "rxe0");
    assert_text(map, "nic2:2", GTOPO_ATTRIBUTE_DEVICE, "siw0");
    assert_false(is_there(map, "nic3"));
    gtopo_map_free(map);
    fake_free(m);
}

static void a_virtual_device_on_a_port_without_link_is_one_finding(void **state)
{
    struct fake *m = with_card();
    struct gtopo_map *map;

    (void)state;
    fake_netdev(m, "0000:01:00.0", "eth0");
    fake_net_file(m, "eth0", "operstate", "down");
    fake_rxe(m, "rxe0", "eth0");
    fake_rdma_file(m, "rxe0", "ports/1/state", "1: DOWN");
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_STATE, "down");
    assert_int_equal(findings_of(map, "port-down", NULL), 1);
    gtopo_map_free(map);
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_port_has_the_facts_of_its_netdev),
        cmocka_unit_test(a_port_without_link_is_a_warning_and_one_that_is_off_a_note),
        cmocka_unit_test(a_driver_that_knows_no_state_is_asked_for_the_carrier),
        cmocka_unit_test(a_virtio_nic_has_its_netdev_one_level_down),
        cmocka_unit_test(netdevs_of_one_function_are_numbered_by_their_place_on_it),
        cmocka_unit_test(a_nic_on_no_pci_bus_is_on_the_machine_and_shares_of_a_card_are_none),
        cmocka_unit_test(an_infiniband_card_has_two_ports_with_all_their_facts),
        cmocka_unit_test(a_port_that_is_not_active_is_a_warning),
        cmocka_unit_test(a_roce_port_has_gids_of_both_versions_and_the_guid_of_its_node),
        cmocka_unit_test(a_netdev_belongs_to_the_port_whose_gids_name_it_else_to_that_of_its_place),
        cmocka_unit_test(the_rdma_mtu_leaves_room_for_what_the_driver_puts_around_it),
        cmocka_unit_test(a_virtual_rdma_device_goes_to_the_port_of_its_netdev),
        cmocka_unit_test(a_virtual_rdma_device_on_a_netdev_of_software_is_a_virtual_nic),
        cmocka_unit_test(a_virtual_device_on_a_port_without_link_is_one_finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
