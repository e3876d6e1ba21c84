/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree laid over a machine that hides its own: what the map then has of both, and how files of other machines and
 * broken ones are refused.
 */
#include "discover.h"

static struct gtopo_error error;

#define LINK " link_speed=\"32.0 GT/s PCIe\" link_width=\"16\""
#define GPU(bus, inside) "<pci busid=\"" bus "\" class=\"0x030200\"" LINK ">" inside "</pci>"
#define NIC(bus) "<pci busid=\"" bus "\" class=\"0x020700\"" LINK "/>"
#define SWITCH(bus, inside) "<pci busid=\"" bus "\" class=\"0x060400\"" LINK ">" inside "</pci>"
#define CPU(numa, inside) "<cpu numaid=\"" numa "\" arch=\"x86_64\">" inside "</cpu>"
#define SYSTEM(inside) "<system version=\"1\">" inside "</system>\n"

/* What the provider of the guest below says of it. */
#define PROVIDERS                                                                                                      \
    SYSTEM(CPU("0", SWITCH("ffff:ff:01.0", GPU("0001:00:00.0", "") NIC("0101:00:00.0")))                               \
               CPU("1", SWITCH("ffff:ff:02.0", GPU("0002:00:00.0", "") NIC("0102:00:00.0"))))

/* A guest of two nodes in which every device is on a host bridge of its own, and nobody says where that is. */
static struct fake *flat_guest(void)
{
    static const char *const devices[][3] = {{"0001:00:00.0", "030200", "10de:2330"},
                                             {"0002:00:00.0", "030200", "10de:2330"},
                                             {"0101:00:00.0", "020700", "15b3:101e"},
                                             {"0102:00:00.0", "020700", "15b3:101e"}};
    struct fake *m = fake_machine(2, 2);

    fake_write(m, "flags\t\t: hypervisor", "proc/cpuinfo");
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        fake_device(m, devices[i][0], devices[i][1], devices[i][2]);
        fake_numa(m, devices[i][0], -1);
    }
    fake_rdma(m, "0101:00:00.0", "mlx5_0", 1);
    fake_rdma(m, "0102:00:00.0", "mlx5_1", 1);
    return m;
}

/* A file of the machine's folder with this text. */
static const char *file_of(const struct fake *m, const char *text)
{
    static char path[FAKE_PATH];

    fake_write_bytes(m, "tree", text, strlen(text));
    fake_path(m, path, "tree");
    return path;
}

static int try_overlay(const struct fake *m, const char *text, struct gtopo_map *map)
{
    struct gtopo_host_options options;

    gtopo_host_options_init(&options);
    options.fsroot = m->root;
    options.name = "n";
    options.overlay = file_of(m, text);
    return gtopo_host_discover(map, &options, &error);
}

static struct gtopo_map *lay(const struct fake *m, const char *text)
{
    struct gtopo_map *map = build_map();

    assert_ok(try_overlay(m, text, map));
    build_seal(map);
    build_round_trip(map);
    return map;
}

static const char *class_of(const struct gtopo_map *map, const char *from, const char *to)
{
    struct gtopo_path path = {0};
    const char *name;

    assert_ok(gtopo_path_find(map, at(map, from), at(map, to), &path, &error));
    name = gtopo_path_class_name(path.path_class);
    gtopo_path_clear(&path);
    return name;
}

/* The one link of a kind between two objects. */
static struct gtopo_link link_of(const struct gtopo_map *map, const char *from, const char *to)
{
    struct gtopo_link link;

    for (size_t i = 0; gtopo_map_link_of(map, at(map, from), i, &link) != GTOPO_NONE; i++)
        if (link.ends[0] == at(map, to) || link.ends[1] == at(map, to))
            return link;
    fail_msg("%s and %s are not linked", from, to);
    return (struct gtopo_link){0};
}

/* ---- what the map has of both ---- */

static void a_flat_guest_gets_its_providers_tree(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *map = fake_discover(m);

    (void)state;
    assert_string_equal(class_of(map, "gpu0", "nic0"), "?");
    assert_int_equal(findings_of(map, "locality-hidden", NULL), 1);
    gtopo_map_free(map);
    map = lay(m, PROVIDERS);
    assert_string_equal(class_of(map, "gpu0", "nic0"), "PIX");
    assert_string_equal(class_of(map, "gpu1", "nic1"), "PIX");
    assert_string_equal(class_of(map, "gpu0", "nic1"), "SYS");
    assert_number(map, "gpu1", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_text(map, "pci-switch0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "ffff:ff:01.0");
    assert_true(link_of(map, "gpu0", "pci-switch0").nominal_Bps > 60 * GB);
    assert_text(map, "nic1:1", GTOPO_ATTRIBUTE_DEVICE, "mlx5_1"); /* the machine's word, which the file does not have */
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_PCI_ID, "10de:2330");
    assert_parent(map, "host-bridge1", "numa1");
    assert_false(is_there(map, "host-bridge2"));
    assert_int_equal(findings_of(map, "locality-hidden", NULL), 0);
    assert_int_equal(findings_of(map, "tree-given", NULL), 1);
    assert_int_equal(findings_of(map, "gpu-links-not-in-file", NULL), 1); /* nor does the machine tell of them */
    assert_int_equal(gtopo_map_finding_count(map), 2);
    gtopo_map_free(map);
    fake_free(m);
}

/* The map that was made so is a tree by itself, and makes the same. */
static void a_map_with_a_given_tree_can_be_laid_again(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *map = lay(m, PROVIDERS), *again;
    char *text = build_write(map);

    (void)state;
    again = lay(m, text);
    assert_int_equal(gtopo_map_shape_fingerprint(map, 0), gtopo_map_shape_fingerprint(again, 0));
    assert_int_equal(gtopo_map_finding_count(map), gtopo_map_finding_count(again));
    gtopo_map_free(map);
    gtopo_map_free(again);
    free(text);
    fake_free(m);
}

/* As in aws-ofi-nccl's files: PCI addresses and NUMA nodes only. What they are the machine says. */
static void a_file_of_addresses_alone_places_what_the_machine_has(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *map =
        lay(m, SYSTEM("<cpu numaid=\"0\"><pci busid=\"0001:00:00.0\"/><pci busid=\"0101:00:00.0\"/></cpu>"
                      "<cpu numaid=\"1\"><pci busid=\"0002:00:00.0\"/><pci busid=\"0102:00:00.0\"/></cpu>"));

    (void)state;
    assert_string_equal(class_of(map, "gpu0", "nic0"), "PHB");
    assert_string_equal(class_of(map, "gpu0", "nic1"), "SYS");
    assert_number(map, "nic1", GTOPO_ATTRIBUTE_NUMA, 1);
    gtopo_map_free(map);
    fake_free(m);
}

/* The guest's addresses are not its host's: a MAC tells the NICs apart, crosswise to the addresses. */
static void an_identity_goes_before_an_address(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *bare = build_map(), *map;
    char *text;

    (void)state;
    fake_netdev(m, "0101:00:00.0", "eth0");
    fake_netdev(m, "0102:00:00.0", "eth1");
    fake_net_file(m, "eth1", "address", "52:54:00:00:00:02");
    build_host(bare, "bare",
               "numa0<machine numa1<machine host-bridge0<numa0 host-bridge1<numa1 nic0<host-bridge0@50 nic0:1<nic0 "
               "nic1<host-bridge1@50 nic1:1<nic1");
    for (int i = 0; i < 2; i++) {
        char name[16];

        snprintf(name, sizeof name, "numa%d", i);
        assert_ok(gtopo_map_set_number(bare, at(bare, name), GTOPO_ATTRIBUTE_OS_INDEX, (uint64_t)i, &error));
        snprintf(name, sizeof name, "nic%d", i);
        assert_ok(gtopo_map_set_text(bare, at(bare, name), GTOPO_ATTRIBUTE_PCI_ADDRESS,
                                     i ? "0102:00:00.0" : "0101:00:00.0", &error));
        snprintf(name, sizeof name, "nic%d:1", i);
        assert_ok(gtopo_map_set_text(bare, at(bare, name), GTOPO_ATTRIBUTE_MAC,
                                     i ? "52:54:00:00:00:01" : "52:54:00:00:00:02", &error));
    }
    build_seal(bare);
    text = build_write(bare);
    map = lay(m, text);
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_number(map, "nic1", GTOPO_ATTRIBUTE_NUMA, 0);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0101:00:00.0");
    assert_int_equal(findings_of(map, "overlay-device-unplaced", NULL), 1); /* the GPUs */
    assert_string_equal(class_of(map, "gpu0", "nic0"), "?");
    gtopo_map_free(map);
    gtopo_map_free(bare);
    free(text);
    fake_free(m);
}

static void what_the_machine_knows_of_a_link_goes_before_the_file(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *map;

    (void)state;
    fake_trained(m, "0101:00:00.0", "8 16.0", "16 32.0");
    map = lay(m, PROVIDERS);
    assert_int_equal(link_of(map, "nic0", "pci-switch0").width, 8);
    assert_int_equal(link_of(map, "nic0", "pci-switch0").capable_width, 16);
    assert_int_equal(link_of(map, "nic1", "pci-switch1").width, 16);
    assert_int_equal(findings_of(map, "pcie-link-degraded", NULL), 1);
    gtopo_map_free(map);
    fake_free(m);
}

static void links_of_gpus_are_the_files_where_the_machine_shows_none(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *map =
        lay(m, SYSTEM(CPU("0", GPU("0001:00:00.0", "<gpu sm=\"90\"><nvlink target=\"0000:0a:00.0\" count=\"18\" "
                                                   "tclass=\"0x068000\"/><c2c bw=\"40000\" count=\"10\"/></gpu>"))
                          CPU("1", GPU("0002:00:00.0", "<gpu sm=\"90\"><nvlink target=\"0000:0a:00.0\" count=\"18\" "
                                                       "tclass=\"0x068000\"/></gpu>"))));
    struct gtopo_finding finding = {0};

    (void)state;
    assert_string_equal(class_of(map, "gpu0", "gpu1"), "NV");
    assert_int_equal(link_of(map, "gpu1", "nvswitch0").count, 18);
    assert_int_equal(link_of(map, "gpu0", "numa0").kind, GTOPO_LINK_C2C);
    assert_int_equal(findings_of(map, "gpu-links-not-in-file", NULL), 0);
    assert_int_equal(findings_of(map, "tree-given", &finding), 1);
    assert_contains(finding.text, "links between GPUs");
    gtopo_map_free(map);
    fake_free(m);
}

/* A bare machine with a tree of its own, and its own map over it, is what it was. */
static void a_machines_own_map_changes_nothing(void **state)
{
    struct gtopo_host_options options;
    struct gtopo_map *map = build_map(), *again = build_map();
    char path[] = "/tmp/gputopo-overlay-XXXXXX";
    int fd;

    (void)state;
    gtopo_host_options_init(&options);
    options.hwloc_xml = sample_path("hwloc/nvidiaDGX2.xml");
    options.name = "n";
    assert_ok(gtopo_host_discover(map, &options, &error));
    build_seal(map);
    fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(gtopo_map_save(map, path, &error));
    options.overlay = path;
    assert_ok(gtopo_host_discover(again, &options, &error));
    unlink(path);
    build_seal(again);
    assert_int_equal(gtopo_map_shape_fingerprint(map, 0), gtopo_map_shape_fingerprint(again, 0));
    assert_int_equal(gtopo_map_finding_count(again), gtopo_map_finding_count(map) + 1);
    assert_int_equal(findings_of(again, "tree-given", NULL), 1);
    gtopo_map_free(map);
    gtopo_map_free(again);
}

/* ---- what only one of the two has ---- */

static void what_only_one_of_the_two_has_is_found(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *map =
        lay(m, SYSTEM(CPU("0", SWITCH("ffff:ff:01.0", GPU("0001:00:00.0", "") NIC("0101:00:00.0")
                                                          GPU("0003:00:00.0", "") GPU("0004:00:00.0", "")))));
    struct gtopo_finding finding = {0};

    (void)state;
    assert_int_equal(findings_of(map, "overlay-device-missing", &finding), 1);
    assert_int_equal(finding.severity, GTOPO_WARNING);
    assert_contains(finding.text, "2 of the devices");
    assert_contains(finding.text, "gpu1 (0003:00:00.0)");
    assert_int_equal(findings_of(map, "overlay-device-unplaced", &finding), 2); /* GPUs, then NICs */
    assert_int_equal(finding.severity, GTOPO_NOTE);
    assert_int_equal(finding.object, at(map, "nic1"));
    assert_int_equal(findings_of(map, "locality-hidden", NULL), 1); /* of those */
    assert_string_equal(class_of(map, "gpu0", "nic0"), "PIX");
    assert_string_equal(class_of(map, "gpu1", "nic1"), "?");
    assert_string_equal(class_of(map, "gpu0", "gpu1"), "?");
    assert_false(is_there(map, "gpu2"));
    gtopo_map_free(map);
    fake_free(m);
}

/* A guest of one node with the tree of a host of two: the second is there as a place, and the same again. */
static void a_node_that_the_guest_does_not_have_is_a_place_and_found(void **state)
{
    struct fake *m = fake_processors(2, 2, 1);
    struct gtopo_finding finding = {0};
    struct gtopo_map *map, *again;
    char *text;

    (void)state;
    fake_device(m, "0001:00:00.0", "030200", "10de:2330");
    fake_device(m, "0002:00:00.0", "030200", "10de:2330");
    fake_device(m, "0102:00:00.0", "020700", "15b3:101e");
    map = lay(m, PROVIDERS);
    assert_string_equal(class_of(map, "gpu0", "gpu1"), "SYS");
    assert_string_equal(class_of(map, "gpu1", "nic0"), "PIX");
    assert_string_equal(class_of(map, "gpu1", "numa0"), "SYS");
    assert_unknown(map, "gpu1", GTOPO_ATTRIBUTE_NUMA);
    assert_text(map, "numa1", GTOPO_ATTRIBUTE_CPUS, "(none)");
    assert_int_equal(findings_of(map, "overlay-node-missing", &finding), 1);
    assert_contains(finding.text, "NUMA node 1");
    text = build_write(map);
    again = lay(m, text);
    assert_int_equal(gtopo_map_shape_fingerprint(map, 0), gtopo_map_shape_fingerprint(again, 0));
    free(text);
    gtopo_map_free(map);
    gtopo_map_free(again);
    fake_free(m);
}

static void another_node_than_the_machine_says_is_found(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    (void)state;
    fake_numa(m, "0002:00:00.0", 0);
    map = lay(m, PROVIDERS);
    assert_int_equal(findings_of(map, "overlay-numa-differs", &finding), 1);
    assert_int_equal(finding.object, at(map, "gpu1"));
    assert_number(map, "gpu1", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_string_equal(class_of(map, "gpu1", "nic1"), "PIX");
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- files that are refused ---- */

#define TWO_HOSTS                                                                                                      \
    "{\"format\":\"gputopo-map\",\"version\":1,\"producer\":\"t\",\"shapes\":[{\"fingerprint\":"                       \
    "\"0x0000000000000000\",\"objects\":[{\"name\":\"machine\",\"kind\":\"machine\",\"parent\":null}],\"links\":[]}]," \
    "\"hosts\":[{\"name\":\"a\",\"shape\":0,\"objects\":{}},{\"name\":\"b\",\"shape\":0,\"objects\":{}}],"             \
    "\"switches\":[],\"cables\":[],\"measurements\":[],\"findings\":[]}"
#define LOOP                                                                                                           \
    "{\"format\":\"gputopo-map\",\"version\":1,\"producer\":\"t\",\"shapes\":[{\"fingerprint\":"                       \
    "\"0x0000000000000000\",\"objects\":[{\"name\":\"machine\",\"kind\":\"machine\",\"parent\":null},{\"name\":"       \
    "\"pci-switch0\",\"kind\":\"pci-switch\",\"parent\":\"pci-switch1\"},{\"name\":\"pci-switch1\",\"kind\":"          \
    "\"pci-switch\",\"parent\":\"pci-switch0\"}],\"links\":[]}],\"hosts\":[{\"name\":\"n\",\"shape\":0,"               \
    "\"objects\":{}}],\"switches\":[],\"cables\":[],\"measurements\":[],\"findings\":[]}"

static void files_of_other_machines_and_broken_ones_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } files[] = {
        {"", "tree:"},
        {"nothing", "tree:1"},
        {"{\"format\":\"gputopo-map\"", "tree:1"},
        {"<system version=\"1\"><cpu numaid=\"0\">", "tree:1: no element found"},
        {"<topology version=\"2.0\"/>", "no <system>"},
        {"<?xml version=\"1.0\"?><!DOCTYPE a><system/>", "document type"},
        {SYSTEM(""), "has no GPU, NIC or storage"},
        {SYSTEM(CPU("0", GPU("0001:00:00.0", "") GPU("0001:00:00.0", ""))), "is there already"},
        {SYSTEM(CPU("0", GPU("0009:00:00.0", "") NIC("0109:00:00.0"))), "none of the 2 devices"},
        {SYSTEM(CPU("0", GPU("0009:00:00.0", ""))), "gpu0 (0009:00:00.0)"},
        {SYSTEM(CPU("0", NIC("0001:00:00.0"))), "nic0 (0001:00:00.0) is a gpu on this machine"},
        {SYSTEM(CPU("0", "<pci busid=\"0001:00:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b2\"/>")),
         "gpu0 (0001:00:00.0) has the PCI id 10de:20b2, but 10de:2330 on this machine"},
        {TWO_HOSTS, "has 2 hosts, and none is called \"n\""},
        {LOOP, "objects[1]"},
    };
    struct fake *m = flat_guest();

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct gtopo_map *map = build_map();

        assert_fails(GTOPO_EFORMAT, try_overlay(m, files[i].text, map));
        assert_contains(error.message, files[i].says);
        assert_contains(error.message, m->root); /* the file's name */
        gtopo_map_free(map);
    }
    fake_free(m);
}

static void a_cut_file_is_refused_wherever_it_is_cut(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *whole = lay(m, PROVIDERS);
    char *texts[2] = {strdup(PROVIDERS), build_write(whole)};

    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t size = strlen(texts[i]);

        for (size_t cut = size - 3; cut > 7; cut -= cut / 7) {
            struct gtopo_map *map = build_map();

            texts[i][cut] = 0;
            assert_fails(GTOPO_EFORMAT, try_overlay(m, texts[i], map));
            gtopo_map_free(map);
        }
        free(texts[i]);
    }
    gtopo_map_free(whole);
    fake_free(m);
}

/* Other digits make other addresses, counts, parents and numbers: a map that seals, or an error with its words. */
static void files_with_other_digits_are_taken_or_refused(void **state)
{
    struct fake *m = flat_guest();
    struct gtopo_map *whole = lay(m, PROVIDERS);
    char *texts[2] = {strdup(PROVIDERS), build_write(whole)};
    unsigned seed = 1, taken = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        char *text = strdup(texts[i % 2]);
        struct gtopo_map *map = build_map();

        for (int changes = 1 + i % 5; changes;) {
            char *c = text + (seed = seed * 1103515245 + 12345) / 8 % strlen(text);

            if (*c < '0' || *c > '9')
                continue;
            *c = (char)('0' + (seed = seed * 1103515245 + 12345) / 8 % 10);
            changes--;
        }
        if (try_overlay(m, text, map))
            assert_true(error.code && error.message[0]);
        else {
            build_seal(map);
            build_round_trip(map);
            taken++;
        }
        gtopo_map_free(map);
        free(text);
    }
    assert_in_range(taken, 1, 199);
    free(texts[0]);
    free(texts[1]);
    gtopo_map_free(whole);
    fake_free(m);
}

static void wrong_uses_are_refused(void **state)
{
    struct gtopo_host_options options;
    struct gtopo_map *map = build_map();
    struct fake *m = flat_guest();

    (void)state;
    gtopo_host_options_init(&options);
    options.overlay = "/no/such/file";
    options.fsroot = m->root;
    assert_fails(GTOPO_EIO, gtopo_host_discover(map, &options, &error));
    options.fsroot = NULL;
    options.nccl_xml = "a";
    assert_fails(GTOPO_EUSAGE, gtopo_host_discover(map, &options, &error));
    gtopo_map_free(map);
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flat_guest_gets_its_providers_tree),
        cmocka_unit_test(a_map_with_a_given_tree_can_be_laid_again),
        cmocka_unit_test(a_file_of_addresses_alone_places_what_the_machine_has),
        cmocka_unit_test(an_identity_goes_before_an_address),
        cmocka_unit_test(what_the_machine_knows_of_a_link_goes_before_the_file),
        cmocka_unit_test(links_of_gpus_are_the_files_where_the_machine_shows_none),
        cmocka_unit_test(a_machines_own_map_changes_nothing),
        cmocka_unit_test(what_only_one_of_the_two_has_is_found),
        cmocka_unit_test(a_node_that_the_guest_does_not_have_is_a_place_and_found),
        cmocka_unit_test(another_node_than_the_machine_says_is_found),
        cmocka_unit_test(files_of_other_machines_and_broken_ones_are_refused),
        cmocka_unit_test(a_cut_file_is_refused_wherever_it_is_cut),
        cmocka_unit_test(files_with_other_digits_are_taken_or_refused),
        cmocka_unit_test(wrong_uses_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
