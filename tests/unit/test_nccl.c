/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology files of NCCL and RCCL: what is in the map of one, what NCCL calls the ways in it, and what is wrong with
 * broken ones. Those of real machines are in $GTOPO_SAMPLES, or beside the source tree.
 */
#include "discover.h"
#include <dirent.h>
#include <gputopo/export.h>

static int try_file(const char *path, struct gtopo_map *map, struct gtopo_error *error)
{
    struct gtopo_host_options options;

    gtopo_host_options_init(&options);
    options.nccl_xml = path;
    return gtopo_host_discover(map, &options, error);
}

static int try_text(const char *text, struct gtopo_map *map, struct gtopo_error *error)
{
    char path[] = "/tmp/gputopo-nccl-XXXXXX";
    int fd = mkstemp(path), status;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    status = try_file(path, map, error);
    unlink(path);
    return status;
}

static struct gtopo_map *map_of(const char *text)
{
    struct gtopo_map *map = build_map();
    struct gtopo_error error;

    assert_ok(try_text(text, map, &error));
    build_seal(map);
    return map;
}

/* ---- classes ---- */

#define DEVICES_MAX 256

struct table {
    uint32_t devices[DEVICES_MAX];
    uint8_t classes[DEVICES_MAX * DEVICES_MAX];
    size_t count, gpus, nics;
};

static struct table table;

/* NCCL's classes between GPUs, then NICs, of the one host of a map. */
static void make_table(const struct gtopo_map *map)
{
    static const uint32_t kinds[] = {GTOPO_GPU, GTOPO_NIC};
    uint32_t first, count;
    struct gtopo_error error;

    memset(&table, 0, sizeof table);
    assert_int_equal(gtopo_map_host_objects(map, 0, &first, &count, NULL), 0);
    for (int k = 0; k < 2; k++)
        for (uint32_t id = first; id < first + count; id++) {
            struct gtopo_object object;

            assert_int_equal(gtopo_map_object(map, id, &object, NULL), 0);
            if (object.kind != kinds[k])
                continue;
            assert_true(table.count < DEVICES_MAX);
            table.devices[table.count++] = id;
            table.gpus += k == 0;
            table.nics += k == 1;
        }
    assert_ok(gtopo_nccl_classes(map, table.devices, table.count, table.classes, &error));
}

static const char *gpu_gpu(size_t a, size_t b)
{
    return gtopo_nccl_class_name(table.classes[a * table.count + b]);
}

static const char *gpu_nic(size_t gpu, size_t nic)
{
    return gtopo_nccl_class_name(table.classes[gpu * table.count + table.gpus + nic]);
}

/* ---- small files ---- */

#define CPU(numa, inside) "<cpu numaid=\"" numa "\" arch=\"x86_64\" affinity=\"0000ffff,ffff0000\">" inside "</cpu>"
#define PCI(bus, class, inside)                                                                                        \
    "<pci busid=\"" bus "\" class=\"" class "\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">" inside "</pci>"
#define GPU(bus, inside) PCI(bus, "0x030200", "<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">" inside "</gpu>")
#define NIC(bus, net) PCI(bus, "0x020700", "<nic>" net "</nic>")
#define NET(name, port) "<net name=\"" name "\" dev=\"0\" speed=\"400000\" port=\"" port "\" guid=\"0x12ab\"/>"
#define SWITCH(bus, inside) PCI(bus, "0x060400", inside)
#define SYSTEM(inside) "<system version=\"1\">\n" inside "\n</system>\n"
#define NVLINK(bus, count) "<nvlink target=\"" bus "\" count=\"" count "\" tclass=\"0x030200\"/>"
#define NVSWITCH(bus, count) "<nvlink target=\"" bus "\" count=\"" count "\" tclass=\"0x068000\"/>"

static void test_tree(void **state)
{
    struct gtopo_map *map = map_of("<?xml version=\"1.0\"?><!-- a prolog, which NCCL itself refuses -->\n" SYSTEM(
        CPU("0", SWITCH("0000:01:00.0", GPU("0000:0F:00.0", "") NIC("00000000:10:00.0", NET("mlx5_0", "1"))))
            CPU("1", NIC("0000:81:00.0", NET("mlx5_1", "1") NET("mlx5_2", "1")) "<nic>" NET("eth9", "1") "</nic>")));
    struct gtopo_link link;
    uint32_t links[4];

    (void)state;
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:0f:00.0");
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_PCI_CLASS, "0x030200");
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_ARCHITECTURE, "sm_90");
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_NUMA, 0);
    assert_parent(map, "gpu0", "pci-switch0");
    assert_int_equal(gtopo_map_links_of(map, at(map, "gpu0"), links, 4), 1);
    assert_int_equal(gtopo_map_link(map, links[0], &link, NULL), 0);
    assert_int_equal(link.width, 16);
    assert_int_equal(link.speed_MTps, 32000);
    assert_true(link.nominal_Bps > UINT64_C(62000000000) && link.nominal_Bps < UINT64_C(64000000000));
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:10:00.0");
    assert_text(map, "nic0:1", GTOPO_ATTRIBUTE_DEVICE, "mlx5_0");
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_RATE_Bps, UINT64_C(50000000000));
    assert_number(map, "nic0:1", GTOPO_ATTRIBUTE_GUID, 0x12ab);
    assert_text(map, "nic1:2", GTOPO_ATTRIBUTE_DEVICE, "mlx5_2"); /* both are numbered 1 in the file */
    assert_text(map, "nic2:1", GTOPO_ATTRIBUTE_DEVICE, "eth9");
    assert_text(map, "numa0", GTOPO_ATTRIBUTE_CPUS, "16-47");
    make_table(map);
    assert_string_equal(gpu_nic(0, 0), "PIX");
    assert_string_equal(gpu_nic(0, 1), "SYS");
    assert_int_equal(gtopo_map_finding_count(map), 0);
    gtopo_map_free(map);
}

static void test_nvlinks(void **state)
{
    struct gtopo_map *map = map_of(SYSTEM(CPU(
        "0", GPU("0000:01:00.0", NVLINK("0000:02:00.0", "2") NVSWITCH("0000:0a:00.0", "4"))
                 GPU("0000:02:00.0", NVLINK("0000:01:00.0", "2") NVLINK("0000:03:00.0", "1")
                                         NVLINK("0000:77:00.0", "1")) GPU("0000:03:00.0", NVLINK("0000:02:00.0", "1"))
                     GPU("0000:04:00.0", NVSWITCH("0000:0a:00.0", "4")) NIC("0000:05:00.0", ""))));
    struct gtopo_link link = {0};
    uint32_t links[8];
    size_t count = gtopo_map_links_of(map, at(map, "gpu0"), links, 8);

    (void)state;
    assert_int_equal(count, 3); /* PCIe, to gpu1, to the NVSwitch: what both ends tell of is one */
    for (size_t i = 0; i < count && link.ends[1] != at(map, "gpu1"); i++)
        assert_int_equal(gtopo_map_link(map, links[i], &link, NULL), 0);
    assert_int_equal(link.kind, GTOPO_LINK_NVLINK);
    assert_int_equal(link.count, 2);
    assert_int_equal(link.nominal_Bps, UINT64_C(50000000000));
    make_table(map);
    assert_string_equal(gpu_gpu(0, 1), "NVL");
    assert_string_equal(gpu_gpu(0, 3), "NVL"); /* through the NVSwitch */
    assert_string_equal(gpu_gpu(0, 2), "NVB");
    assert_string_equal(gpu_gpu(2, 3), "PHB");
    assert_string_equal(gpu_gpu(0, 0), "LOC");
    assert_string_equal(gpu_nic(0, 0), "PHB");
    gtopo_map_free(map);
}

static void test_ways_by_others(void **state)
{
    struct gtopo_map *map = map_of(SYSTEM(
        CPU("0", SWITCH("0000:01:00.0", GPU("0000:02:00.0", NVLINK("0000:12:00.0", "1")) NIC("0000:03:00.0", "")))
            CPU("1", SWITCH("0000:11:00.0", GPU("0000:12:00.0", "")) NIC("0000:13:00.0", ""))));

    (void)state;
    make_table(map);
    assert_string_equal(gpu_nic(0, 0), "PIX");
    assert_string_equal(gpu_nic(1, 0), "PXN"); /* by way of GPU 0, though only that one tells of the NVLink */
    assert_string_equal(gpu_nic(0, 1), "SYS"); /* GPU 1 itself would go through its processor */
    gtopo_map_free(map);
    map = map_of(SYSTEM(CPU("0", GPU("0000:02:00.0", "<c2c bw=\"44000\" count=\"10\"/>") NIC("0000:03:00.0", ""))
                            CPU("1", NIC("0000:13:00.0", ""))));
    make_table(map);
    assert_string_equal(gpu_nic(0, 0), "P2C");
    assert_string_equal(gpu_nic(0, 1), "SYS");
    gtopo_map_free(map);
}

/* A Broadcom switch of two levels is one, unless its maker has given it numbers of his own (NCCL's getBcmGen()). */
static void test_broadcom(void **state)
{
#define CHIP(bus, subsystem, inside)                                                                                   \
    "<pci busid=\"" bus "\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" " subsystem ">" inside "</pci>"
    static const struct {
        const char *text, *class;
    } files[] = {
        {SYSTEM(CPU("0", CHIP("0000:01:00.0", "subsystem_vendor=\"0x1000\" subsystem_device=\"0x0072\"",
                              CHIP("0000:02:00.0", "subsystem_vendor=\"0x1000\" subsystem_device=\"0x1003\"",
                                   GPU("0000:03:00.0", "")) NIC("0000:04:00.0", "")))),
         "PIX"},
        {SYSTEM(CPU("0", CHIP("0000:01:00.0", "subsystem_vendor=\"0x15d9\" subsystem_device=\"0x0072\"",
                              CHIP("0000:02:00.0", "subsystem_vendor=\"0x15d9\" subsystem_device=\"0x1003\"",
                                   GPU("0000:03:00.0", "")) NIC("0000:04:00.0", "")))),
         "PXB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct gtopo_map *map = map_of(files[i].text);

        make_table(map);
        assert_string_equal(gpu_nic(0, 0), files[i].class);
        gtopo_map_free(map);
    }
}

static void test_findings(void **state)
{
    struct gtopo_finding finding = {0};
    struct gtopo_map *map = map_of(SYSTEM(
        CPU("0", "<pci busid=\"0000:01:00.0\" class=\"0x060400\" link_speed=\"5.0 GT/s PCIe\" link_width=\"16\">" GPU(
                     "0000:02:00.0", "") "</pci>" GPU("0000:03:00.0", ""))));

    (void)state;
    assert_int_equal(findings_of(map, "gpu-links-not-in-file", &finding), 1);
    assert_int_equal(finding.severity, GTOPO_NOTE);
    assert_int_equal(findings_of(map, "pcie-uplink-slow", &finding), 1);
    assert_int_equal(finding.severity, GTOPO_WARNING);
    assert_int_equal(finding.object, at(map, "pci-switch0"));
    assert_non_null(strstr(finding.text, "reported at x16 and 5.0 GT/s"));
    gtopo_map_free(map);
}

/* ---- what is wrong ---- */

static void test_refused(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } files[] = {
        {"", "no element found", GTOPO_EFORMAT},
        {"<system version=\"1\">\n<cpu numaid=\"0\">", ":2: no element found", GTOPO_EFORMAT},
        {"<systems/>", ":1: <systems>: the first element is no <system>", GTOPO_EFORMAT},
        {"<system version=\"3\"/>", "version 3", GTOPO_EVERSION},
        {"<!DOCTYPE system [<!ENTITY a \"b\">]><system/>", "document type", GTOPO_EFORMAT},
        {SYSTEM(CPU("zero", "")), ":2: <cpu>: numaid=\"zero\" is no whole number", GTOPO_EFORMAT},
        {SYSTEM(CPU("99999999999", "")), "numaid", GTOPO_EFORMAT},
        {SYSTEM("<cpu numaid=\"0\" affinity=\"all\"/>"), "affinity=\"all\" is no mask", GTOPO_EFORMAT},
        {SYSTEM("<cpu numaid=\"0\" affinity=\",ffff\"/>"), "affinity=\",ffff\" is no mask", GTOPO_EFORMAT},
        {SYSTEM("<cpu numaid=\"0\" affinity=\"ffff,,ffff\"/>"), "affinity=\"ffff,,ffff\" is no mask", GTOPO_EFORMAT},
        {SYSTEM("<cpu numaid=\"0\" affinity=\"ffff,\"/>"), "affinity=\"ffff,\" is no mask", GTOPO_EFORMAT},
        {SYSTEM("<cpu numaid=\"0\" affinity=\"xff\"/>"), "affinity=\"xff\" is no mask", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", GPU("somewhere", ""))), "busid=\"somewhere\" is no PCI address", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", GPU("0000:01:20.0", ""))), "is no PCI address", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", GPU("-001:01:00.0", ""))), "is no PCI address", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", "<pci class=\"0x030200\"/>")), "busid is missing", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", PCI("0000:01:00.0", "gpu", ""))), "class=\"gpu\"", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", GPU("0000:01:00.0", "") "\n" GPU("0000:01:00.0", ""))),
         ":3: <pci>: busid=\"0000:01:00.0\" is there already, in line 2", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", GPU("0000:01:00.0", NVLINK("0000:01:00.0", "1")))), "to the GPU itself", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", GPU("0000:01:00.0", NVLINK("0000:02:00.0", "-4")))), "count=\"-4\"", GTOPO_EFORMAT},
        {SYSTEM(GPU("0000:01:00.0", "")), "its <pci> is in no <cpu>", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", "<gpu dev=\"0\"/>")), "it is in no <pci>", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", PCI("0000:01:00.0", "0x020000", "<gpu dev=\"0\"/>"))), "another class", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", PCI("0000:01:00.0", "0x030200", GPU("0000:02:00.0", "")))), "no bridge", GTOPO_EFORMAT},
        {SYSTEM(CPU("0", NIC("0000:01:00.0", "<net name=\"a\" dev=\"0\" guid=\"none\"/>"))), "guid=\"none\"",
         GTOPO_EFORMAT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct gtopo_map *map = build_map();
        struct gtopo_error error = {0};

        assert_int_equal(try_text(files[i].text, map, &error), files[i].code);
        if (!strstr(error.message, files[i].says))
            fail_msg("\"%s\" lacks \"%s\"", error.message, files[i].says);
        gtopo_map_free(map);
    }
}

static void test_deep(void **state)
{
    enum { DEPTH = 100000 };
    struct gtopo_map *map = build_map();
    struct gtopo_error error;
    char *text = malloc(3 * DEPTH + 1);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(text + 3 * i, "<a>", 4);
    assert_int_equal(try_text(text, map, &error), GTOPO_EFORMAT);
    assert_non_null(strstr(error.message, "nested too deeply"));
    free(text);
    gtopo_map_free(map);
}

static void test_one_source(void **state)
{
    struct gtopo_host_options options;
    struct gtopo_map *map = build_map();
    struct gtopo_error error;

    (void)state;
    gtopo_host_options_init(&options);
    options.nccl_xml = "a";
    options.hwloc_xml = "b";
    assert_int_equal(gtopo_host_discover(map, &options, &error), GTOPO_EUSAGE);
    options.hwloc_xml = NULL;
    options.nccl_xml = "/no/such/file";
    assert_int_equal(gtopo_host_discover(map, &options, &error), GTOPO_EIO);
    gtopo_map_free(map);
}

/* ---- real machines ---- */

struct text {
    char *bytes;
    size_t size;
};

static int take(void *context, const void *data, size_t size)
{
    struct text *text = context;

    text->bytes = realloc(text->bytes, text->size + size + 1);
    assert_non_null(text->bytes);
    memcpy(text->bytes + text->size, data, size);
    text->size += size;
    text->bytes[text->size] = 0;
    return 0;
}

/* What NCCL's own parser refuses. */
static void assert_nccl_takes(const char *text)
{
    unsigned elements = 0;

    assert_int_equal(strncmp(text, "<system version=\"", 17), 0);
    assert_null(strchr(text, '\t'));
    for (const char *c = text; (c = strchr(c, '<')); c++)
        elements += c[1] != '/';
    assert_in_range(elements, 1, 250);
    for (const char *c = text; (c = strstr(c, "link_speed=\"")); c += 12) {
        static const char *const words[] = {"2.5 GT/s PCIe",  "5.0 GT/s PCIe",  "8.0 GT/s PCIe",
                                            "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
        unsigned known = 0;

        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            known += !strncmp(c + 12, words[i], strlen(words[i])) && c[12 + strlen(words[i])] == '"';
        assert_int_equal(known, 1);
    }
}

static int try_export(const struct gtopo_map *map, const char *profile, uint32_t host, struct text *text,
                      struct gtopo_error *error)
{
    struct gtopo_export_options options;

    gtopo_export_options_init(&options);
    options.profile = profile;
    options.host = host;
    return gtopo_export(map, "nccl", &options, take, text, error);
}

static char *export(const struct gtopo_map *map, const char *profile)
{
    struct text text = {NULL, 0};
    struct gtopo_error error;

    assert_ok(try_export(map, profile, GTOPO_NONE, &text, &error));
    assert_nccl_takes(text.bytes);
    return text.bytes;
}

/* Exported and read again it is the same map, and exported again the same bytes. */
static void assert_same_after_export(const struct gtopo_map *map)
{
    char *first = export(map, NULL), *second, *before = build_write(map), *after;
    struct gtopo_map *again = map_of(first);

    second = export(again, "dump");
    after = build_write(again);
    assert_string_equal(first, second);
    assert_string_equal(before, after);
    free(first);
    free(second);
    free(before);
    free(after);
    gtopo_map_free(again);
}

/* Of a profile without GPUs' own elements the same tree is left. */
static void assert_injects(const struct gtopo_map *map)
{
    char *text = export(map, "inject"), *second;
    struct gtopo_map *again = map_of(text);
    size_t gpus = table.gpus, count = table.count;

    assert_null(strstr(text, "<gpu"));
    assert_null(strstr(text, "<net"));
    make_table(again);
    assert_int_equal(table.gpus, gpus);
    assert_true(table.count <= count);
    second = export(again, "inject");
    assert_string_equal(text, second);
    free(second);
    free(text);
    gtopo_map_free(again);
}

static void test_export_refused(void **state)
{
    struct gtopo_map *map = map_of(SYSTEM(CPU("0", NIC("0000:01:00.0", NET("mlx5&amp;0", "1") NET("b&quot;", "2")))));
    struct text text = {NULL, 0};
    struct gtopo_error error;

    (void)state;
    assert_int_equal(try_export(map, "dump", 0, &text, &error), GTOPO_EUSAGE);
    assert_non_null(strstr(error.message, "name=\"mlx5&0\""));
    assert_int_equal(text.size, 0);
    assert_ok(try_export(map, "inject", 0, &text, &error));
    free(text.bytes);
    assert_int_equal(try_export(map, NULL, 7, &text, &error), GTOPO_ENOTFOUND);
    gtopo_map_free(map);
}

/* A host of so many NICs with two ports each, and a GPU, without or with a chain of switches above it. */
static struct gtopo_map *wide_host(int nics, int switches)
{
    struct gtopo_map *map = build_map();
    struct gtopo_error error;
    char word[128], above[32] = "host-bridge0", address[64];

    build_host(map, "h", "numa0<machine host-bridge0<numa0");
    for (int i = 0; i < switches; i++) {
        snprintf(word, sizeof word, "pci-switch%d<%s", i, above);
        build_more(map, word);
        snprintf(above, sizeof above, "pci-switch%d", i);
        snprintf(address, sizeof address, "%04x:01:00.0", i + 1);
        assert_ok(gtopo_map_set_text(map, at(map, above), GTOPO_ATTRIBUTE_PCI_ADDRESS, address, &error));
    }
    snprintf(word, sizeof word, "gpu0<%s", above);
    build_more(map, word);
    assert_ok(gtopo_map_set_text(map, at(map, "gpu0"), GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:ff:00.0", &error));
    for (int i = 0; i < nics; i++) {
        snprintf(word, sizeof word, "nic%d<host-bridge0 nic%d:1<nic%d nic%d:2<nic%d", i, i, i, i, i);
        build_more(map, word);
        snprintf(word, sizeof word, "nic%d", i);
        snprintf(address, sizeof address, "0000:%02x:00.%d", i / 8, i % 8);
        assert_ok(gtopo_map_set_text(map, at(map, word), GTOPO_ATTRIBUTE_PCI_ADDRESS, address, &error));
    }
    build_seal(map);
    return map;
}

/* The system, the processor, the GPU, and of each NIC the device, <nic> and two ports; without GPU's and NICs' own. */
static void test_too_many_elements(void **state)
{
    static const struct {
        int nics, switches;
        const char *profile, *says, *hint;
    } hosts[] = {
        {62, 0, "dump", "at most 250 elements; that of this host would have 252",
         "\"inject\", which has PCI devices only: 65"},
        {248, 0, "inject", "would have 251", "of which there are 248, PCI devices alone are 3"},
        {248, 0, "dump", "would have 996", "of which there are 248, PCI devices alone are 3"},
        {0, 1000, "inject", "nested deeper", ""},
    };
    struct gtopo_map *map;
    struct text text = {NULL, 0};
    struct gtopo_error error;

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        map = wide_host(hosts[i].nics, hosts[i].switches);
        assert_fails(GTOPO_EUSAGE, try_export(map, hosts[i].profile, 0, &text, &error));
        assert_contains(error.message, hosts[i].says);
        assert_contains(error.hint, hosts[i].hint);
        assert_int_equal(text.size, 0);
        gtopo_map_free(map);
    }
    map = wide_host(247, 0);
    free(export(map, "inject"));
    gtopo_map_free(map);
}

static void test_formats(void **state)
{
    struct gtopo_export_options options;
    struct gtopo_map *map = build_map();
    struct text text = {NULL, 0};
    struct gtopo_error error;
    const char *summary = NULL;

    (void)state;
    assert_string_equal(gtopo_export_format(0, &summary), "nccl");
    assert_contains(summary, "NCCL");
    assert_null(gtopo_export_format(1000, &summary));
    build_host(map, "a", "");
    gtopo_export_options_init(&options);
    assert_fails(GTOPO_EUSAGE, gtopo_export(map, "nccl", &options, take, &text, &error)); /* unsealed */
    build_host(map, "b", "");
    build_seal(map);
    assert_fails(GTOPO_EUSAGE, gtopo_export(map, "nccl", &options, take, &text, &error));
    assert_contains(error.message, "2 hosts");
    assert_fails(GTOPO_EUSAGE, gtopo_export(map, "yaml", &options, take, &text, &error));
    assert_contains(error.message, "nccl");
    options.host = 1;
    options.profile = "all";
    assert_fails(GTOPO_EUSAGE, gtopo_export(map, "nccl", &options, take, &text, &error));
    assert_contains(error.message, "dump, inject");
    options.size = 0;
    assert_fails(GTOPO_EUSAGE, gtopo_export(map, "nccl", &options, take, &text, &error));
    assert_int_equal(text.size, 0);
    gtopo_map_free(map);
}

/* What NCCL writes in a virtual machine that shows no NVSwitch: it stays one, is counted, and is written so again. */
static void test_hidden_nvswitch(void **state)
{
    static const char hidden[] = "fffffff:ffff:ff";
    struct gtopo_map *map =
        map_of(SYSTEM(CPU("0", GPU("0000:01:00.0", NVSWITCH("fffffff:ffff:ff", "18"))
                                   GPU("0000:02:00.0", "<nvlink target=\"fffffff:ffff:ff\" count=\"18\"/>"))));
    char *text = export(map, NULL);

    (void)state;
    assert_int_equal(gtopo_nvlink_count(map, at(map, "host/gpu0"), at(map, "host/gpu1")), 18);
    assert_null(gtopo_map_text(map, at(map, "host/nvswitch0"), GTOPO_ATTRIBUTE_PCI_ADDRESS));
    assert_non_null(strstr(text, hidden));
    assert_non_null(strstr(strstr(text, hidden) + 1, hidden));
    assert_same_after_export(map);
    free(text);
    gtopo_map_free(map);
}

static void test_all_samples(void **state)
{
    DIR *files = opendir(sample_path("nccl-xml"));
    struct dirent *entry;
    unsigned count = 0;

    (void)state;
    assert_non_null(files);
    while ((entry = readdir(files))) {
        struct gtopo_map *map;

        if (!strstr(entry->d_name, ".xml"))
            continue;
        map = nccl_sample(entry->d_name);
        make_table(map);
        if ((!table.gpus || !table.nics) && !findings_of(map, "pci-class-not-in-file", NULL))
            fail_msg("%s: %zu GPUs, %zu NICs", entry->d_name, table.gpus, table.nics);
        build_round_trip(map);
        if (!findings_of(map, "pci-class-not-in-file", NULL)) { /* what is not in the map cannot be written */
            assert_same_after_export(map);
            assert_injects(map);
        }
        gtopo_map_free(map);
        count++;
    }
    closedir(files);
    assert_true(count >= 10);
}

static void test_azure_h100(void **state)
{
    struct gtopo_map *map = nccl_sample("azure-ndv5.xml");

    (void)state;
    make_table(map);
    assert_int_equal(table.gpus, 8);
    assert_int_equal(table.nics, 8);
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < 8; j++)
            assert_string_equal(gpu_nic(i, j), i == j ? "PIX" : i / 4 == j / 4 ? "PHB" : "SYS");
    assert_int_equal(findings_of(map, "gpu-links-not-in-file", NULL), 1);
    gtopo_map_free(map);
}

/* Four NICs, each of two GPUs. */
static void test_aws_p4d(void **state)
{
    struct gtopo_map *map = nccl_sample("aws-p4d.xml");

    (void)state;
    make_table(map);
    assert_int_equal(table.gpus, 8);
    assert_int_equal(table.nics, 4);
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < 4; j++)
            assert_string_equal(gpu_nic(i, j), i / 2 == j ? "PIX" : i / 4 == j / 2 ? "PHB" : "SYS");
    gtopo_map_free(map);
}

/* Eight GPUs of AMD, all joined by XGMI, each two switch levels from its own NIC. */
static void test_amd(void **state)
{
    struct gtopo_map *map = nccl_sample("rccl-8p_940.xml");

    (void)state;
    make_table(map);
    assert_int_equal(table.gpus, 8);
    for (size_t i = 0; i < 8; i++) {
        size_t near = 0;

        for (size_t j = 0; j < 8; j++)
            assert_string_equal(gpu_gpu(i, j), i == j ? "LOC" : "NVL");
        for (size_t j = 0; j < table.nics; j++)
            near += !strcmp(gpu_nic(i, j), "PXB");
        assert_int_equal(near, 1);
    }
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_ARCHITECTURE, "gfx942");
    gtopo_map_free(map);
}

/* Two levels of Broadcom switches, whose uplinks were dumped at 5 GT/s. */
static void test_oci(void **state)
{
    struct gtopo_map *map = nccl_sample("oci-bm-gpu-h100.xml");
    struct gtopo_finding finding = {0};

    (void)state;
    make_table(map);
    assert_int_equal(table.gpus, 8);
    assert_string_equal(gpu_gpu(0, 7), "NVL");
    assert_string_equal(gpu_nic(0, 0), "PIX");
    assert_true(findings_of(map, "pcie-uplink-slow", &finding) > 0);
    assert_non_null(strstr(finding.text, "reported"));
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_nvlinks),
        cmocka_unit_test(test_ways_by_others),
        cmocka_unit_test(test_broadcom),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_one_source),
        cmocka_unit_test(test_hidden_nvswitch),
        cmocka_unit_test(test_all_samples),
        cmocka_unit_test(test_azure_h100),
        cmocka_unit_test(test_aws_p4d),
        cmocka_unit_test(test_amd),
        cmocka_unit_test(test_oci),
        cmocka_unit_test(test_export_refused),
        cmocka_unit_test(test_too_many_elements),
        cmocka_unit_test(test_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
