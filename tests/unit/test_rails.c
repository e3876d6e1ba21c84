/* SPDX-License-Identifier: Apache-2.0 */
/* Which NIC each GPU is to use: against all assignments there are, and on machines where the answer is known. */
#include "discover.h"

#define MOST 6

static size_t rails_of(const struct gtopo_map *map, struct gtopo_rail rails[128])
{
    struct gtopo_error error;
    size_t count;

    assert_ok(gtopo_rails(map, 0, rails, 128, &count, &error));
    return count;
}

static const char *nic_of(const struct gtopo_map *map, const struct gtopo_rail *rail)
{
    static char text[GTOPO_ADDRESS_MAX];

    gtopo_address_format(map, rail->nic, text);
    return strchr(text, '/') + 1;
}

/* ---- against all assignments ---- */

struct best {
    const struct gtopo_map *map;
    uint32_t gpus[MOST], nics[MOST];
    size_t gpu_count, nic_count, load[MOST];
    uint32_t worst;
    uint64_t sum;
};

static void try_all(struct best *b, size_t gpu, uint32_t worst, uint64_t sum)
{
    size_t even = b->gpu_count / b->nic_count;

    if (gpu == b->gpu_count) {
        for (size_t n = 0; n < b->nic_count; n++)
            if (b->load[n] < even || b->load[n] > even + (b->gpu_count % b->nic_count != 0))
                return;
        if (worst < b->worst || (worst == b->worst && sum > b->sum)) {
            b->worst = worst;
            b->sum = sum;
        }
        return;
    }
    for (size_t n = 0; n < b->nic_count; n++) {
        struct gtopo_path path;

        assert_int_equal(gtopo_path_find(b->map, b->gpus[gpu], b->nics[n], &path, NULL), 0);
        b->load[n]++;
        try_all(b, gpu + 1, path.path_class > worst ? path.path_class : worst, sum + path.bottleneck_Bps / 1000000);
        b->load[n]--;
        gtopo_path_clear(&path);
    }
}

/* A machine by chance: two NUMA nodes, switches on their bridges, GPUs and NICs anywhere, links of several rates. */
static struct gtopo_map *random_machine(unsigned *seed, struct best *b)
{
    static const uint64_t rates_GBps[] = {4, 8, 16, 32, 64};
    struct gtopo_map *map = build_map();
    uint32_t host, numas[2], places[6], id;
    struct gtopo_error error;
    size_t place_count = 0;

    *b = (struct best){.map = map, .worst = GTOPO_PATH_NONE + 1};
    b->gpu_count = 1 + (size_t)rand_r(seed) % MOST;
    b->nic_count = 1 + (size_t)rand_r(seed) % (MOST - 2);
    assert_ok(gtopo_map_add_host(map, "n", &host, &error));
    for (int i = 0; i < 2; i++) {
        uint32_t machine = gtopo_map_host_machine(map, host);

        assert_ok(gtopo_map_add_object(map, GTOPO_NUMA, machine, 0, &numas[i], &error));
        assert_ok(gtopo_map_add_object(map, GTOPO_HOST_BRIDGE, numas[i], 0, &places[place_count++], &error));
        build_link(map, GTOPO_LINK_MEMORY, numas[i], places[place_count - 1], 0);
        for (int s = 0; s < 2; s++) {
            uint32_t bridge = places[3 * i];

            assert_ok(gtopo_map_add_object(map, GTOPO_PCI_SWITCH, bridge, 0, &places[place_count++], &error));
            build_link(map, GTOPO_LINK_PCIE, bridge, places[place_count - 1],
                       rates_GBps[rand_r(seed) % 5] * UINT64_C(1000000000));
        }
    }
    build_link(map, GTOPO_LINK_SOCKET, numas[0], numas[1], 0);
    for (size_t i = 0; i < b->gpu_count + b->nic_count; i++) {
        int is_gpu = i < b->gpu_count;
        uint32_t place = places[(size_t)rand_r(seed) % place_count];

        assert_ok(gtopo_map_add_object(map, is_gpu ? GTOPO_GPU : GTOPO_NIC, place, 0, &id, &error));
        build_link(map, GTOPO_LINK_PCIE, place, id, rates_GBps[rand_r(seed) % 5] * UINT64_C(1000000000));
        if (is_gpu)
            b->gpus[i] = id;
        else
            b->nics[i - b->gpu_count] = id;
    }
    build_seal(map);
    return map;
}

static void test_against_all(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct best best;
        struct gtopo_map *map = random_machine(&seed, &best);
        struct gtopo_rail rails[128];
        size_t loads[MOST] = {0}, even = best.gpu_count / best.nic_count;
        uint32_t worst = 0;
        uint64_t sum = 0;

        try_all(&best, 0, 0, 0);
        assert_int_equal(rails_of(map, rails), best.gpu_count);
        for (size_t g = 0; g < best.gpu_count; g++) {
            assert_int_equal(rails[g].gpu, best.gpus[g]);
            worst = rails[g].path_class > worst ? rails[g].path_class : worst;
            sum += rails[g].bottleneck_Bps / 1000000;
            for (size_t n = 0; n < best.nic_count; n++)
                loads[n] += rails[g].nic == best.nics[n];
        }
        for (size_t n = 0; n < best.nic_count; n++)
            assert_in_range(loads[n], even, even + (best.gpu_count % best.nic_count != 0));
        assert_int_equal(worst, best.worst);
        assert_int_equal(sum, best.sum);
        gtopo_map_free(map);
    }
}

/* ---- who takes part ---- */

struct port {
    const char *state;
    uint64_t rate_Bps, is_software;
};

/* A GPU and some NICs on one host bridge. */
static struct gtopo_map *machine_of(const struct port *ports, size_t count)
{
    struct gtopo_map *map = build_map();
    struct gtopo_error error;
    uint32_t host, numa, bridge, gpu, nic, port;

    assert_ok(gtopo_map_add_host(map, "n", &host, &error));
    assert_ok(gtopo_map_add_object(map, GTOPO_NUMA, gtopo_map_host_machine(map, host), 0, &numa, &error));
    assert_ok(gtopo_map_add_object(map, GTOPO_HOST_BRIDGE, numa, 0, &bridge, &error));
    build_link(map, GTOPO_LINK_MEMORY, numa, bridge, 0);
    assert_ok(gtopo_map_add_object(map, GTOPO_GPU, bridge, 0, &gpu, &error));
    build_link(map, GTOPO_LINK_PCIE, bridge, gpu, 1);
    for (size_t i = 0; i < count; i++) {
        assert_ok(gtopo_map_add_object(map, GTOPO_NIC, bridge, 0, &nic, &error));
        build_link(map, GTOPO_LINK_PCIE, bridge, nic, 1);
        assert_ok(gtopo_map_add_object(map, GTOPO_PORT, nic, 1, &port, &error));
        build_link(map, GTOPO_LINK_PORT, nic, port, 0);
        assert_ok(gtopo_map_set_text(map, port, GTOPO_ATTRIBUTE_STATE, ports[i].state, &error));
        assert_ok(gtopo_map_set_number(map, port, GTOPO_ATTRIBUTE_RATE_Bps, ports[i].rate_Bps, &error));
        assert_ok(gtopo_map_set_number(map, nic, GTOPO_ATTRIBUTE_VIRTUAL, ports[i].is_software, &error));
    }
    build_seal(map);
    return map;
}

static void test_management_and_dead_ports(void **state)
{
    static const struct port ports[] = {{"active", 125000000, 0},           /* gigabit */
                                        {"down", UINT64_C(50000000000), 0}, /* no cable */
                                        {"active", UINT64_C(50000000000), 1},
                                        {"active", UINT64_C(50000000000), 0}};
    struct gtopo_rail rails[128];

    (void)state;
    for (size_t count = 0; count <= sizeof ports / sizeof *ports; count++) {
        struct gtopo_map *map = machine_of(ports, count);

        assert_int_equal(rails_of(map, rails), count > 0);
        if (count) /* gigabit serves where there is nothing else */
            assert_string_equal(nic_of(map, &rails[0]), count < 4 ? "nic0" : "nic3");
        gtopo_map_free(map);
    }
}

/* GPUs, and NICs of these roles, or members of these bonds; NULL for neither. */
struct part {
    const char *role, *bond, *rdma;
};

static struct gtopo_map *machine_of_parts(const struct part *parts, size_t count, const char *gpus)
{
    struct gtopo_map *map = build_map();
    struct gtopo_error error;
    char word[96];

    build_host(map, "n", "package0 host-bridge0<package0");
    build_more(map, gpus);
    for (size_t i = 0; i < count; i++) {
        uint32_t nic, port;

        snprintf(word, sizeof word, "nic%zu<host-bridge0@16 nic%zu:1<nic%zu", i, i, i);
        build_more(map, word);
        snprintf(word, sizeof word, "nic%zu", i);
        nic = build_find(map, word);
        strcat(word, ":1");
        port = build_find(map, word);
        if (parts[i].role)
            assert_ok(gtopo_map_set_text(map, nic, GTOPO_ATTRIBUTE_ROLE, parts[i].role, &error));
        if (parts[i].bond)
            assert_ok(gtopo_map_set_text(map, port, GTOPO_ATTRIBUTE_BOND, parts[i].bond, &error));
        if (parts[i].rdma)
            assert_ok(gtopo_map_set_text(map, port, GTOPO_ATTRIBUTE_DEVICE, parts[i].rdma, &error));
    }
    build_seal(map);
    return map;
}

static void check_parts(const struct part *parts, size_t count, const char *expected)
{
    struct gtopo_map *map = machine_of_parts(parts, count, "gpu0<host-bridge0@32");
    struct gtopo_rail rails[128];

    assert_int_equal(rails_of(map, rails), *expected != 0);
    if (*expected)
        assert_string_equal(nic_of(map, &rails[0]), expected);
    gtopo_map_free(map);
}

static void test_roles(void **state)
{
    static const struct part parts[] = {{"virtual-function", NULL, NULL},
                                        {"data-direct", NULL, NULL},
                                        {"management", NULL, NULL},
                                        {"fabric", NULL, NULL}};

    (void)state;
    check_parts(parts, 2, "");
    check_parts(parts, 3, "nic2"); /* management serves where there is nothing else */
    check_parts(parts, 4, "nic3");
}

static void test_bonds(void **state)
{
    static const struct part plain[] = {{"fabric", "bond0", NULL}, {"fabric", "bond0", NULL}};
    static const struct part lag[] = {{"fabric", "bond0", NULL}, {"fabric", "bond0", "mlx5_bond_0"}};
    struct gtopo_map *map = machine_of_parts(plain, 2, "gpu0<host-bridge0@32 gpu1<host-bridge0@32");
    struct gtopo_rail rails[128];

    (void)state;
    check_parts(plain, 2, "nic0");
    check_parts(lag, 2, "nic1"); /* whose RDMA device stands for both */
    assert_int_equal(rails_of(map, rails), 2);
    assert_int_equal(rails[0].nic, rails[1].nic);
    gtopo_map_free(map);
}

/* ---- real machines ---- */

static void check_sample(const char *name, size_t gpus, size_t gpus_a_nic, uint32_t path_class)
{
    struct gtopo_map *map = nccl_sample(name);
    struct gtopo_rail rails[128];
    char expected[32];

    assert_int_equal(rails_of(map, rails), gpus);
    for (size_t g = 0; g < gpus; g++) {
        snprintf(expected, sizeof expected, "nic%zu", g / gpus_a_nic);
        assert_string_equal(nic_of(map, &rails[g]), expected);
        assert_int_equal(rails[g].path_class, path_class);
    }
    gtopo_map_free(map);
}

static void test_samples(void **state)
{
    (void)state;
    check_sample("azure-ndv5.xml", 8, 1, GTOPO_PATH_PIX);
    check_sample("aws-p4d.xml", 8, 2, GTOPO_PATH_PIX);
    check_sample("rccl-8p_940.xml", 8, 1, GTOPO_PATH_PXB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_all), cmocka_unit_test(test_management_and_dead_ports),
        cmocka_unit_test(test_roles),       cmocka_unit_test(test_bonds),
        cmocka_unit_test(test_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
