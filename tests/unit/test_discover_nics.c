/* SPDX-License-Identifier: Apache-2.0 */
/* NICs among themselves: cards, virtual functions, bonds, what each is for, and whether it is where it should be. */
#include "discover.h"
#include <time.h>

#define CONNECTX "15b3:1021"
#define I350 "8086:1521"

/* A root port on each of two sockets: bus 1 on node 0, bus 81 on node 1. */
static struct fake *two_sockets(void)
{
    struct fake *m = fake_machine(2, 2);

    fake_bridge(m, "0000:00:01.0", 1, 0x40);
    fake_bridge(m, "0000:80:01.0", 0x81, 0x81);
    fake_numa(m, "0000:00:01.0", 0);
    fake_numa(m, "0000:80:01.0", 1);
    return m;
}

/* An InfiniBand NIC with a system image of its own. */
static void add_nic(struct fake *m, const char *address, const char *rdma, const char *system_guid)
{
    fake_device(m, address, "020700", CONNECTX);
    fake_numa(m, address, address[5] == '8');
    fake_rdma(m, address, rdma, 1);
    fake_rdma_file(m, rdma, "sys_image_guid", system_guid);
}

static void add_gpu(struct fake *m, const char *address)
{
    fake_device(m, address, "030200", "10de:2330");
    fake_numa(m, address, address[5] == '8');
}

/* An Ethernet NIC of so many Mb/s. */
static void add_ethernet(struct fake *m, const char *address, const char *netdev, const char *speed_Mbps)
{
    fake_device(m, address, "020000", I350);
    fake_numa(m, address, address[5] == '8');
    fake_netdev(m, address, netdev);
    fake_net_file(m, netdev, "speed", speed_Mbps);
}

/* The one finding of the map, or "". */
static const char *only_rule(const struct gtopo_map *map, struct gtopo_finding *finding)
{
    assert_in_range(gtopo_map_finding_count(map), 0, 1);
    *finding = (struct gtopo_finding){.rule = ""};
    gtopo_map_finding(map, 0, finding, NULL);
    return finding->rule;
}

static void check_only(struct fake *m, const char *rule, const char *object, enum gtopo_severity severity)
{
    struct gtopo_map *map = fake_discover(m);
    struct gtopo_finding finding;

    assert_string_equal(only_rule(map, &finding), rule);
    if (*rule) {
        assert_int_equal(finding.object, at(map, object));
        assert_int_equal(finding.severity, severity);
    }
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- cards ---- */

static void functions_of_one_slot_are_one_card(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    add_nic(m, "0000:01:00.0", "mlx5_0", "0002:c903:0003:0001");
    add_nic(m, "0000:01:00.1", "mlx5_1", "0002:c903:0003:0001");
    add_nic(m, "0000:81:00.0", "mlx5_2", "0002:c903:0003:0002");
    map = fake_discover(m);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_CARD, "0000:01:00.0");
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_CARD, "0000:01:00.0");
    assert_unknown(map, "nic1", GTOPO_ATTRIBUTE_SOCKET_DIRECT);
    assert_text(map, "nic2", GTOPO_ATTRIBUTE_CARD, "(none)");
    gtopo_map_free(map);
    fake_free(m);
}

static void one_system_image_on_two_sockets_is_a_socket_direct_card(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    add_nic(m, "0000:01:00.0", "mlx5_0", "0002:c903:0003:0001");
    add_nic(m, "0000:81:00.0", "mlx5_1", "0002:c903:0003:0001");
    add_nic(m, "0000:81:00.1", "mlx5_2", "0002:c903:0003:0001");
    map = fake_discover(m);
    for (int i = 0; i < 3; i++) {
        char nic[16];

        snprintf(nic, sizeof nic, "nic%d", i);
        assert_text(map, nic, GTOPO_ATTRIBUTE_CARD, "0000:01:00.0");
        assert_number(map, nic, GTOPO_ATTRIBUTE_SOCKET_DIRECT, 1);
    }
    gtopo_map_free(map);
    fake_free(m);
}

static void two_slots_of_one_socket_are_a_card_but_not_socket_direct(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    add_nic(m, "0000:01:00.0", "mlx5_0", "0002:c903:0003:0001");
    add_nic(m, "0000:02:00.0", "mlx5_1", "0002:c903:0003:0001");
    map = fake_discover(m);
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_CARD, "0000:01:00.0");
    assert_unknown(map, "nic1", GTOPO_ATTRIBUTE_SOCKET_DIRECT);
    gtopo_map_free(map);
    fake_free(m);
}

static void a_guid_that_two_models_have_joins_nothing(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    add_nic(m, "0000:01:00.0", "mlx5_0", "0002:c903:0003:0001");
    fake_device(m, "0000:81:00.0", "020700", "15b3:1017");
    fake_rdma(m, "0000:81:00.0", "mlx5_1", 1);
    fake_rdma_file(m, "mlx5_1", "sys_image_guid", "0002:c903:0003:0001");
    map = fake_discover(m);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_CARD, "(none)");
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_CARD, "(none)");
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- virtual functions ---- */

static void virtual_functions_name_their_parent_and_are_no_rails(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_rail rail;
    struct gtopo_map *map;
    struct gtopo_error error;
    size_t count;

    (void)state;
    add_nic(m, "0000:01:00.0", "mlx5_0", "0002:c903:0003:0001");
    fake_virtual_function(m, "0000:01:00.1", "0000:01:00.0");
    fake_netdev(m, "0000:01:00.1", "eth1");
    fake_net_file(m, "eth1", "operstate", "down"); /* nobody uses it: that is no finding */
    add_gpu(m, "0000:02:00.0");
    map = fake_discover(m);
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_ROLE, "virtual-function");
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION, "0000:01:00.0");
    assert_text(map, "nic1:1", GTOPO_ATTRIBUTE_NETDEV, "eth1");
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_CARD, "(none)");
    assert_int_equal(gtopo_map_finding_count(map), 0);
    assert_ok(gtopo_rails(map, 0, &rail, 1, &count, &error));
    assert_int_equal(count, 1);
    assert_int_equal(rail.nic, at(map, "nic0"));
    gtopo_map_free(map);
    fake_free(m);
}

static void a_virtual_function_without_its_parent_is_a_nic(void **state)
{
    static const char *const targets[] = {"../0000:09:00.0", "../0000:01:00.1/..", "physfn", "../ffffffff:ffff:00.0"};

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct fake *m = two_sockets();
        struct gtopo_map *map;

        add_nic(m, "0000:01:00.1", "mlx5_0", "0002:c903:0003:0001");
        fake_replace_by_link(m, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1/physfn", targets[i]);
        map = fake_discover(m);
        assert_text(map, "nic0", GTOPO_ATTRIBUTE_ROLE, "fabric");
        assert_text(map, "nic0", GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION, "(none)");
        gtopo_map_free(map);
        fake_free(m);
    }
}

static void ten_thousand_virtual_functions_take_no_unbounded_time(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;
    clock_t begin;

    (void)state;
    add_nic(m, "0000:01:00.0", "mlx5_0", "0002:c903:0003:0001");
    for (int i = 1; i <= 10000; i++) {
        char address[GTOPO_ADDRESS_MAX];

        snprintf(address, sizeof address, "0000:%02x:%02x.%x", 1 + i / 256, i / 8 % 32, i % 8);
        fake_virtual_function(m, address, "0000:01:00.0");
    }
    begin = clock();
    map = fake_discover(m);
    assert_in_range((clock() - begin) / CLOCKS_PER_SEC, 0, 60); /* a square would be 10^8 paths */
    assert_text(map, "nic10000", GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION, "0000:01:00.0");
    assert_int_equal(gtopo_map_finding_count(map), 0);
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- bonds ---- */

/* Two ports in bond0, whose second says this of itself. */
static struct fake *with_bond(const char *second)
{
    struct fake *m = two_sockets();

    add_ethernet(m, "0000:01:00.0", "eth0", "100000");
    add_ethernet(m, "0000:01:00.1", "eth1", "100000");
    fake_bond(m, "bond0", "802.3ad 4");
    fake_member(m, "eth0", "bond0", "up");
    fake_member(m, "eth1", "bond0", second);
    return m;
}

static void members_of_a_bond_name_it_and_its_mode(void **state)
{
    struct fake *m = with_bond("up");
    struct gtopo_map *map = fake_discover(m);

    (void)state;
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_BOND, "bond0");
    assert_text(map, "nic1:1", GTOPO_ATTRIBUTE_BOND, "bond0");
    assert_text(map, "nic1:1", GTOPO_ATTRIBUTE_BOND_MODE, "802.3ad");
    assert_false(is_there(map, "nic2")); /* the bond is no NIC */
    assert_int_equal(gtopo_map_finding_count(map), 0);
    gtopo_map_free(map);
    fake_free(m);
}

static void a_member_that_is_down_is_one_finding(void **state)
{
    struct fake *m = with_bond("down");

    (void)state;
    fake_net_file(m, "eth1", "operstate", "down");
    check_only(m, "bond-member-down", "nic1:1", GTOPO_WARNING);
}

static void roce_lag_has_its_rdma_device_on_one_member_which_is_the_rail(void **state)
{
    struct fake *m = with_bond("up");
    struct gtopo_rail rail;
    struct gtopo_map *map;
    struct gtopo_error error;
    size_t count;

    (void)state;
    fake_rdma(m, "0000:01:00.0", "mlx5_bond_0", 1);
    fake_write(m, "bond0", "sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0");
    add_gpu(m, "0000:02:00.0");
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_DEVICE, "mlx5_bond_0");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_BOND, "bond0");
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_ROLE, "fabric"); /* the other port of the card */
    assert_ok(gtopo_rails(map, 0, &rail, 1, &count, &error));
    assert_int_equal(rail.nic, at(map, "nic0"));
    gtopo_map_free(map);
    fake_free(m);
}

static void bonds_in_a_circle_and_other_masters_are_taken_as_they_are(void **state)
{
    struct fake *m = with_bond("up");
    struct gtopo_map *map;

    (void)state;
    fake_bond(m, "bond1", "balance-rr 0");
    fake_member(m, "bond0", "bond1", "up"); /* each is master of the other */
    fake_member(m, "bond1", "bond0", "up");
    add_ethernet(m, "0000:02:00.0", "eth2", "100000");
    fake_netdev(m, NULL, "br0");
    fake_member(m, "eth2", "br0", "up");
    add_ethernet(m, "0000:03:00.0", "eth3", "100000");
    fake_replace_by_link(m, "sys/class/net/eth3/master", "eth3");
    fake_net_file(m, "bond0", "bonding/mode", "");
    map = fake_discover(m);
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_BOND, "bond0");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_BOND_MODE, "(none)");
    assert_text(map, "nic2:1", GTOPO_ATTRIBUTE_BOND, "(none)");
    assert_text(map, "nic3:1", GTOPO_ATTRIBUTE_BOND, "(none)");
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- roles ---- */

static void beside_rdma_what_has_none_is_for_management(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    add_nic(m, "0000:01:00.0", "mlx5_0", "0002:c903:0003:0001");
    add_ethernet(m, "0000:02:00.0", "eth0", "1000");
    add_ethernet(m, "0000:03:00.0", "eth1", "10000");
    fake_device(m, "0000:04:00.0", "080100", "15b3:2100");
    fake_device(m, "0000:05:00.0", "020000", "17db:0501"); /* Slingshot has no GUID */
    map = fake_discover(m);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_ROLE, "fabric");
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_ROLE, "management");
    assert_text(map, "nic2", GTOPO_ATTRIBUTE_ROLE, "management");
    assert_text(map, "nic3", GTOPO_ATTRIBUTE_ROLE, "data-direct");
    assert_text(map, "nic4", GTOPO_ATTRIBUTE_ROLE, "fabric");
    gtopo_map_free(map);
    fake_free(m);
}

static void without_rdma_the_rate_decides_and_without_a_rate_nobody(void **state)
{
    struct fake *m = two_sockets();
    struct gtopo_map *map;

    (void)state;
    add_ethernet(m, "0000:01:00.0", "eth0", "1000");
    add_ethernet(m, "0000:02:00.0", "eth1", "10000");
    add_ethernet(m, "0000:03:00.0", "eth2", "-1");
    fake_rdma(m, NULL, "rxe0", 1);
    fake_rdma_file(m, "rxe0", "parent", "eth2"); /* software makes no fabric of it */
    map = fake_discover(m);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_ROLE, "management");
    assert_text(map, "nic1", GTOPO_ATTRIBUTE_ROLE, "fabric");
    assert_text(map, "nic2", GTOPO_ATTRIBUTE_ROLE, "(none)");
    gtopo_map_free(map);
    fake_free(m);
}

static void gpus_that_have_gigabit_only_are_a_finding(void **state)
{
    struct fake *m = two_sockets();

    (void)state;
    add_ethernet(m, "0000:01:00.0", "eth0", "1000");
    add_gpu(m, "0000:02:00.0");
    check_only(m, "gpu-traffic-on-gigabit", "nic0", GTOPO_WARNING);
    m = two_sockets(); /* no GPU */
    add_ethernet(m, "0000:01:00.0", "eth0", "1000");
    check_only(m, "", NULL, 0);
    m = two_sockets(); /* nobody says how fast */
    add_ethernet(m, "0000:01:00.0", "eth0", "-1");
    add_gpu(m, "0000:02:00.0");
    check_only(m, "", NULL, 0);
    m = two_sockets(); /* there is a fabric */
    add_ethernet(m, "0000:01:00.0", "eth0", "1000");
    add_nic(m, "0000:03:00.0", "mlx5_0", "0002:c903:0003:0001");
    add_gpu(m, "0000:02:00.0");
    check_only(m, "", NULL, 0);
}

/* ---- places ---- */

/* NICs of so many cards on each socket, and a GPU on each where wanted. */
static struct fake *with_nics(int first, int second, int gpu_first, int gpu_second)
{
    struct fake *m = two_sockets();
    char address[32], rdma[32], guid[32];

    for (int i = 0; i < first + second; i++) {
        snprintf(address, sizeof address, i < first ? "0000:%02x:00.0" : "0000:81:%02x.0", i + 1);
        snprintf(rdma, sizeof rdma, "mlx5_%d", i);
        snprintf(guid, sizeof guid, "0002:c903:0003:%04x", i + 1);
        add_nic(m, address, rdma, guid);
    }
    if (gpu_first)
        add_gpu(m, "0000:20:00.0");
    if (gpu_second)
        add_gpu(m, "0000:81:1f.0");
    return m;
}

static void a_nic_that_the_other_socket_lacks_is_on_the_wrong_one(void **state)
{
    (void)state;
    check_only(with_nics(2, 0, 1, 1), "nic-wrong-socket", "nic1", GTOPO_WARNING);
    check_only(with_nics(0, 1, 1, 0), "nic-wrong-socket", "nic0", GTOPO_WARNING);
    check_only(with_nics(1, 1, 1, 1), "", NULL, 0);
    check_only(with_nics(2, 1, 1, 1), "", NULL, 0);
    check_only(with_nics(2, 0, 1, 0), "", NULL, 0);
    check_only(with_nics(2, 0, 0, 0), "", NULL, 0);
}

static void two_functions_of_one_card_are_none_to_spare(void **state)
{
    struct fake *m = with_nics(1, 0, 1, 1);

    (void)state;
    add_nic(m, "0000:01:00.1", "mlx5_9", "0002:c903:0003:0001");
    check_only(m, "nic-missing", "package1", GTOPO_NOTE);
}

static void one_nic_for_two_equal_sockets_is_worth_knowing(void **state)
{
    (void)state;
    check_only(with_nics(1, 0, 1, 1), "nic-missing", "package1", GTOPO_NOTE);
}

static void sockets_that_are_not_alike_owe_each_other_nothing(void **state)
{
    struct fake *m = with_nics(1, 0, 1, 1);

    (void)state;
    add_gpu(m, "0000:21:00.0");
    check_only(m, "", NULL, 0);
}

static void a_nic_whose_place_nobody_knows_may_be_on_any_socket(void **state)
{
    struct fake *m = with_nics(2, 0, 1, 1);
    struct gtopo_map *map;

    (void)state;
    fake_device(m, "0001:01:00.0", "020700", CONNECTX);
    fake_numa(m, "0001:01:00.0", -1);
    fake_rdma(m, "0001:01:00.0", "mlx5_7", 1);
    map = fake_discover(m);
    assert_int_equal(findings_of(map, "nic-wrong-socket", NULL), 0);
    gtopo_map_free(map);
    fake_free(m);
}

/* Switches with a GPU each, and NICs on the first so many of them. */
static struct fake *with_switches(int switches, int with_nic)
{
    struct fake *m = fake_machine(1, 2);
    char text[32], rdma[32], guid[32];

    for (int i = 0; i < switches; i++) {
        int bus = 1 + 0x10 * i;

        snprintf(text, sizeof text, "0000:00:%02x.0", i + 1);
        fake_bridge(m, text, bus, bus + 5); /* root port */
        snprintf(text, sizeof text, "0000:%02x:00.0", bus);
        fake_bridge(m, text, bus + 1, bus + 5); /* upstream port */
        for (int port = 0; port < 2; port++) {
            snprintf(text, sizeof text, "0000:%02x:%02x.0", bus + 1, port);
            fake_bridge(m, text, bus + 2 + port, bus + 2 + port);
            snprintf(text, sizeof text, "0000:%02x:00.0", bus + 2 + port);
            snprintf(rdma, sizeof rdma, "mlx5_%d", i);
            snprintf(guid, sizeof guid, "0002:c903:0003:%04x", i + 1);
            if (!port)
                fake_device(m, text, "030200", "10de:2330");
            else if (i < with_nic)
                add_nic(m, text, rdma, guid);
        }
    }
    return m;
}

/* The only findings of a rule. */
static void check_missing(struct fake *m, unsigned count, const char *object)
{
    struct gtopo_map *map = fake_discover(m);
    struct gtopo_finding finding = {0};

    assert_int_equal(findings_of(map, "nic-missing", &finding), count);
    if (count) {
        assert_int_equal(finding.object, at(map, object));
        assert_int_equal(finding.severity, GTOPO_WARNING);
    }
    gtopo_map_free(map);
    fake_free(m);
}

static void the_one_switch_that_has_no_nic_misses_it(void **state)
{
    (void)state;
    check_missing(with_switches(4, 3), 1, "pci-switch3");
    check_missing(with_switches(4, 4), 0, NULL);
    check_missing(with_switches(4, 2), 0, NULL); /* two and two: nobody knows which is right */
    check_missing(with_switches(2, 1), 0, NULL);
}

static void a_nic_that_does_nothing_beside_one_of_its_model_is_a_finding(void **state)
{
    struct fake *m = with_nics(1, 0, 0, 0);

    (void)state;
    fake_device(m, "0000:81:00.0", "020700", CONNECTX);
    check_only(m, "nic-without-port", "nic1", GTOPO_WARNING);
    m = with_nics(1, 0, 0, 0);
    fake_device(m, "0000:81:00.0", "020700", CONNECTX);
    fake_link_to(m, "sys/bus/pci/drivers/vfio-pci", "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/driver");
    check_only(m, "", NULL, 0); /* given to a virtual machine */
    m = with_nics(1, 0, 0, 0);
    fake_device(m, "0000:81:00.0", "020000", I350);
    check_only(m, "", NULL, 0); /* no other of its model says what it should have */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_one_slot_are_one_card),
        cmocka_unit_test(one_system_image_on_two_sockets_is_a_socket_direct_card),
        cmocka_unit_test(two_slots_of_one_socket_are_a_card_but_not_socket_direct),
        cmocka_unit_test(a_guid_that_two_models_have_joins_nothing),
        cmocka_unit_test(virtual_functions_name_their_parent_and_are_no_rails),
        cmocka_unit_test(a_virtual_function_without_its_parent_is_a_nic),
        cmocka_unit_test(ten_thousand_virtual_functions_take_no_unbounded_time),
        cmocka_unit_test(members_of_a_bond_name_it_and_its_mode),
        cmocka_unit_test(a_member_that_is_down_is_one_finding),
        cmocka_unit_test(roce_lag_has_its_rdma_device_on_one_member_which_is_the_rail),
        cmocka_unit_test(bonds_in_a_circle_and_other_masters_are_taken_as_they_are),
        cmocka_unit_test(beside_rdma_what_has_none_is_for_management),
        cmocka_unit_test(without_rdma_the_rate_decides_and_without_a_rate_nobody),
        cmocka_unit_test(gpus_that_have_gigabit_only_are_a_finding),
        cmocka_unit_test(a_nic_that_the_other_socket_lacks_is_on_the_wrong_one),
        cmocka_unit_test(two_functions_of_one_card_are_none_to_spare),
        cmocka_unit_test(one_nic_for_two_equal_sockets_is_worth_knowing),
        cmocka_unit_test(sockets_that_are_not_alike_owe_each_other_nothing),
        cmocka_unit_test(a_nic_whose_place_nobody_knows_may_be_on_any_socket),
        cmocka_unit_test(the_one_switch_that_has_no_nic_misses_it),
        cmocka_unit_test(a_nic_that_does_nothing_beside_one_of_its_model_is_a_finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
