/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology files of NCCL and RCCL: what is in the map of one, what NCCL calls the ways in it, and what is wrong with
 * broken ones. Those of real machines are in $GTOPO_SAMPLES, or beside the source tree.
 */
#include "nccl_files.h"

/* ---- small files ---- */

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
        cmocka_unit_test(test_tree),     cmocka_unit_test(test_nvlinks),    cmocka_unit_test(test_ways_by_others),
        cmocka_unit_test(test_broadcom), cmocka_unit_test(test_findings),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_deep),     cmocka_unit_test(test_one_source), cmocka_unit_test(test_azure_h100),
        cmocka_unit_test(test_aws_p4d),  cmocka_unit_test(test_amd),        cmocka_unit_test(test_oci),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
