/* SPDX-License-Identifier: Apache-2.0 */
/* What the NVIDIA driver adds to a map, and what of it is left when the driver fails or lies; with the stand-in. */
#include "described_machine.h"
#include "discover.h"
#include <dlfcn.h>

/* ---- maps of described machines ---- */

static const char *description(const char *name)
{
    static char path[FAKE_PATH];
    const char *source = getenv("GTOPO_SOURCE");

    snprintf(path, sizeof path, "%s/tests/fakes/machines/%s", source ? source : ".", name);
    return path;
}

static struct gtopo_map *map_with(const char *name, uint32_t driver)
{
    struct fake *m = described_machine(description(name));
    struct gtopo_host_options options;
    struct gtopo_map *map = build_map();
    struct gtopo_error error;

    setenv("GTOPO_FAKE_NVML_MACHINE", description(name), 1);
    gtopo_host_options_init(&options);
    options.fsroot = m->root;
    options.name = "n";
    options.driver = driver;
    assert_ok(gtopo_host_discover(map, &options, &error));
    build_seal(map);
    fake_free(m);
    return map;
}

static struct gtopo_map *map_of(const char *name)
{
    return map_with(name, GTOPO_DRIVER_ALWAYS);
}

static struct gtopo_map *failing_map_of(const char *name, const char *failures)
{
    struct gtopo_map *map;

    setenv("GTOPO_FAKE_NVML_FAIL", failures, 1);
    map = map_of(name);
    unsetenv("GTOPO_FAKE_NVML_FAIL");
    return map;
}

static struct gtopo_map *lying_map_of(const char *name, const char *lie)
{
    struct gtopo_map *map;

    setenv("GTOPO_FAKE_NVML_LIE", lie, 1);
    map = map_of(name);
    unsetenv("GTOPO_FAKE_NVML_LIE");
    return map;
}

static unsigned objects_of(const struct gtopo_map *map, unsigned kind)
{
    uint32_t first, all;
    unsigned count = 0;

    gtopo_map_host_objects(map, 0, &first, &all, NULL);
    for (uint32_t id = first; id < first + all; id++)
        count += build_kind_of(map, id) == kind;
    return count;
}

/* The link between two objects, or none. */
static struct gtopo_link link_between(const struct gtopo_map *map, unsigned kind, const char *a, const char *b)
{
    struct gtopo_link link;

    for (size_t i = 0; gtopo_map_link_of(map, at(map, a), i, &link) != GTOPO_NONE; i++)
        if (link.kind == kind && (link.ends[0] == at(map, b) || link.ends[1] == at(map, b)))
            return link;
    return (struct gtopo_link){0};
}

static unsigned path_class(const struct gtopo_map *map, const char *a, const char *b)
{
    struct gtopo_path path;
    struct gtopo_error error;
    unsigned found;

    assert_ok(gtopo_path_find(map, at(map, a), at(map, b), &path, &error));
    found = path.path_class;
    gtopo_path_clear(&path);
    return found;
}

static uint64_t bottleneck(const struct gtopo_map *map, const char *a, const char *b)
{
    struct gtopo_path path;
    struct gtopo_error error;
    uint64_t rate;

    assert_ok(gtopo_path_find(map, at(map, a), at(map, b), &path, &error));
    rate = path.bottleneck_Bps;
    gtopo_path_clear(&path);
    return rate;
}

#define assert_findings(map, expected) assert_int_equal(gtopo_map_finding_count(map), expected)

/* All pairs of GPUs are NV# with this many links, and carry this much. */
static void all_are_linked(const struct gtopo_map *map, unsigned gpus, unsigned links, uint64_t rate_Bps)
{
    assert_int_equal(objects_of(map, GTOPO_GPU), gpus);
    for (unsigned i = 0; i < gpus; i++)
        for (unsigned j = 0; j < gpus; j++) {
            char a[16], b[16];

            snprintf(a, sizeof a, "gpu%u", i);
            snprintf(b, sizeof b, "gpu%u", j);
            if (i == j)
                continue;
            assert_int_equal(gtopo_nvlink_count(map, at(map, a), at(map, b)), links);
            assert_int_equal(path_class(map, a, b), GTOPO_PATH_NVLINK);
            assert_int_equal(bottleneck(map, a, b), rate_Bps);
        }
}

/* ---- machines ---- */

static void a_dgx_h100_has_18_links_between_any_two_gpus(void **state)
{
    struct gtopo_map *map = map_of("dgx-h100");
    uint64_t index;

    (void)state;
    all_are_linked(map, 8, 18, 450 * GB);
    assert_int_equal(objects_of(map, GTOPO_NVSWITCH), 4);
    assert_int_equal(link_between(map, GTOPO_LINK_NVLINK, "gpu0", "nvswitch0").count, 5);
    assert_int_equal(link_between(map, GTOPO_LINK_NVLINK, "gpu0", "nvswitch1").count, 4);
    assert_text(map, "machine", GTOPO_ATTRIBUTE_NVIDIA_DRIVER, "535.129.03");
    assert_text(map, "gpu3", GTOPO_ATTRIBUTE_UUID, "GPU-00000000-0000-0000-0000-000000000004");
    assert_text(map, "gpu3", GTOPO_ATTRIBUTE_MODEL, "NVIDIA H100 80GB HBM3");
    assert_text(map, "gpu3", GTOPO_ATTRIBUTE_ARCHITECTURE, "sm_90");
    assert_text(map, "gpu3", GTOPO_ATTRIBUTE_NVLINK_VERSION, "4.0");
    assert_text(map, "gpu3", GTOPO_ATTRIBUTE_FABRIC_UUID, "(none)");
    assert_number(map, "gpu3", GTOPO_ATTRIBUTE_MEMORY_B, UINT64_C(81559) << 20);
    assert_number(map, "gpu3", GTOPO_ATTRIBUTE_NVML_INDEX, 3);
    assert_number(map, "gpu3", GTOPO_ATTRIBUTE_MIG, 0);
    assert_false(gtopo_map_number(map, at(map, "gpu3"), GTOPO_ATTRIBUTE_MIG_INSTANCES, &index));
    assert_findings(map, 0);
    gtopo_map_free(map);
}

static void other_hgx_machines_count_alike(void **state)
{
    static const struct {
        const char *name;
        unsigned gpus, links, switches;
        uint64_t rate_Bps;
    } machines[] = {{"hgx-h200", 8, 18, 4, 450 * GB}, {"dgx-a100", 8, 12, 6, 300 * GB}, {"dgx-2", 16, 6, 12, 150 * GB}};

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        struct gtopo_map *map = map_of(machines[i].name);

        all_are_linked(map, machines[i].gpus, machines[i].links, machines[i].rate_Bps);
        assert_int_equal(objects_of(map, GTOPO_NVSWITCH), machines[i].switches);
        assert_findings(map, 0);
        gtopo_map_free(map);
    }
}

/* `nvidia-smi topo -m` of a DGX-1 with V100. */
static void a_dgx_1_is_a_cube_mesh(void **state)
{
    static const unsigned links[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                                         {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                         {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
    struct gtopo_map *map = map_of("dgx-1v");
    struct gtopo_finding finding = {0};

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < 8; j++) {
            char a[16], b[16];

            snprintf(a, sizeof a, "gpu%u", i);
            snprintf(b, sizeof b, "gpu%u", j);
            if (i == j)
                continue;
            assert_int_equal(gtopo_nvlink_count(map, at(map, a), at(map, b)), links[i][j]);
            assert_int_equal(link_between(map, GTOPO_LINK_NVLINK, a, b).nominal_Bps, links[i][j] * 25 * GB);
        }
    assert_findings(map, 1);
    assert_int_equal(findings_of(map, "gpu-p2p", &finding), 1);
    assert_int_equal(finding.severity, GTOPO_NOTE);
    assert_non_null(strstr(finding.text, "12 of 28 pairs"));
    gtopo_map_free(map);
}

static void grace_hopper_has_c2c_and_memory_of_its_own(void **state)
{
    struct gtopo_map *map = map_of("gh200");
    struct gtopo_link c2c = link_between(map, GTOPO_LINK_C2C, "gpu0", "numa0");

    (void)state;
    assert_int_equal(c2c.count, 10);
    assert_int_equal(c2c.nominal_Bps, UINT64_C(447120000000));
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_MEMORY_NUMA, 1);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0009:01:00.0");
    assert_findings(map, 0);
    gtopo_map_free(map);
}

static void a_tray_of_a_rack_knows_its_fabric(void **state)
{
    struct gtopo_map *map = map_of("gb200-tray");

    (void)state;
    all_are_linked(map, 4, 18, 900 * GB);
    assert_int_equal(objects_of(map, GTOPO_NVSWITCH), 1);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_FABRIC_UUID, "4f0b2d5c-8a6e-4e1b-9d3c-7a5f1e2d3c4b");
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_FABRIC_CLIQUE, 32766);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_ARCHITECTURE, "sm_100");
    assert_number(map, "gpu3", GTOPO_ATTRIBUTE_MEMORY_NUMA, 26);
    assert_int_equal(link_between(map, GTOPO_LINK_C2C, "gpu3", "numa1").count, 5);
    assert_findings(map, 0);
    gtopo_map_free(map);
}

static void cards_without_nvlink_have_none(void **state)
{
    struct gtopo_map *map = map_of("l4-pcie");
    struct gtopo_finding finding = {0};

    (void)state;
    assert_int_equal(objects_of(map, GTOPO_GPU), 8);
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu0"), at(map, "gpu1")), 0);
    assert_text(map, "gpu7", GTOPO_ATTRIBUTE_ARCHITECTURE, "sm_89");
    assert_findings(map, 1);
    assert_int_equal(findings_of(map, "gpu-p2p", &finding), 1);
    assert_non_null(strstr(finding.text, "28 of 28 pairs"));
    gtopo_map_free(map);
}

static void mig_slices_are_counted_and_named(void **state)
{
    struct gtopo_map *map = map_of("mig");

    (void)state;
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_MIG, 1);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_MIG_INSTANCES, 3);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_MIG_UUIDS,
                "MIG-00000000-0000-0000-0001-000000000001,MIG-00000000-0000-0000-0002-000000000001,"
                "MIG-00000000-0000-0000-0003-000000000001");
    assert_number(map, "gpu1", GTOPO_ATTRIBUTE_MIG, 0);
    assert_number(map, "gpu5", GTOPO_ATTRIBUTE_MIG, 1);
    assert_number(map, "gpu5", GTOPO_ATTRIBUTE_MIG_INSTANCES, 0);
    assert_findings(map, 0);
    gtopo_map_free(map);
}

static void a_dead_nvlink_is_found(void **state)
{
    struct gtopo_map *map = map_of("dead-nvlink");
    struct gtopo_finding finding = {0};

    (void)state;
    assert_findings(map, 1);
    assert_int_equal(findings_of(map, "nvlink-down", &finding), 1);
    assert_int_equal(finding.severity, GTOPO_FAULT);
    assert_int_equal(finding.object, at(map, "gpu3"));
    assert_non_null(strstr(finding.text, "1 of 18"));
    assert_non_null(strstr(finding.text, ": 7"));
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu3"), at(map, "gpu0")), 17);
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu1"), at(map, "gpu0")), 18);
    gtopo_map_free(map);
}

static void hidden_nvswitches_still_count(void **state)
{
    struct gtopo_map *map = map_of("hidden-nvswitches");

    (void)state;
    all_are_linked(map, 8, 18, 450 * GB);
    assert_int_equal(objects_of(map, GTOPO_NVSWITCH), 1);
    assert_text(map, "nvswitch0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "(none)");
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_NUMA, 0); /* NVML knows where /sys says -1 */
    assert_int_equal(findings_of(map, "nvswitch-hidden", NULL), 1);
    assert_int_equal(findings_of(map, "locality-hidden", NULL), 1);
    assert_findings(map, 2);
    gtopo_map_free(map);
}

static void a_driver_that_supports_nothing_leaves_all_unknown(void **state)
{
    struct gtopo_map *map = map_of("silent");

    (void)state;
    assert_int_equal(objects_of(map, GTOPO_GPU), 8);
    assert_number(map, "gpu7", GTOPO_ATTRIBUTE_NVML_INDEX, 7);
    assert_text(map, "gpu7", GTOPO_ATTRIBUTE_UUID, "(none)");
    assert_text(map, "gpu7", GTOPO_ATTRIBUTE_ARCHITECTURE, "(none)");
    assert_unknown(map, "gpu7", GTOPO_ATTRIBUTE_MEMORY_B);
    assert_unknown(map, "gpu7", GTOPO_ATTRIBUTE_MIG);
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu0"), at(map, "gpu1")), 0);
    assert_findings(map, 0);
    gtopo_map_free(map);
}

/* ---- when it is asked ---- */

static void a_record_is_not_completed_unless_wanted(void **state)
{
    static const uint32_t drivers[] = {GTOPO_DRIVER_AUTO, GTOPO_DRIVER_NEVER};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct gtopo_map *map = map_with("dgx-h100", drivers[i]);

        assert_text(map, "gpu0", GTOPO_ATTRIBUTE_UUID, "(none)");
        assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_NVML_INDEX);
        assert_findings(map, 0);
        gtopo_map_free(map);
    }
}

/* hwloc's XML has NVLinks and all twelve NVSwitches too: they are not counted twice. */
static void a_record_and_the_driver_tell_of_the_same_links(void **state)
{
    struct gtopo_host_options options;
    struct gtopo_map *map;
    struct gtopo_error error;

    (void)state;
    gtopo_host_options_init(&options);
    options.hwloc_xml = sample_path("hwloc/nvidiaDGX2.xml");
    options.name = "n";
    options.driver = GTOPO_DRIVER_ALWAYS;
    map = build_map();
    setenv("GTOPO_FAKE_NVML_MACHINE", description("dgx-2"), 1);
    assert_ok(gtopo_host_discover(map, &options, &error));
    build_seal(map);
    all_are_linked(map, 16, 6, 150 * GB);
    assert_int_equal(findings_of(map, "nvswitch-hidden", NULL), 0);
    gtopo_map_free(map);
}

static void cuda_has_its_own_order(void **state)
{
    struct gtopo_map *map;

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    setenv("GTOPO_FAKE_CUDA_GPUS", "2", 1);
    setenv("GTOPO_FAKE_CUDA_UUIDS", "GPU-00000000-0000-0000-0000-000000000003,GPU-00000000-0000-0000-0000-000000000001",
           1);
    map = map_of("dgx-a100");
    assert_text(map, "machine", GTOPO_ATTRIBUTE_CUDA_VISIBLE_DEVICES, "2,0");
    assert_number(map, "gpu2", GTOPO_ATTRIBUTE_CUDA_ORDINAL, 0);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_CUDA_ORDINAL, 1);
    assert_unknown(map, "gpu1", GTOPO_ATTRIBUTE_CUDA_ORDINAL);
    gtopo_map_free(map);
    setenv("GTOPO_FAKE_CUDA_FAIL", "cuInit:0:999", 1);
    map = map_of("dgx-a100");
    assert_unknown(map, "gpu2", GTOPO_ATTRIBUTE_CUDA_ORDINAL);
    gtopo_map_free(map);
    unsetenv("GTOPO_FAKE_CUDA_FAIL");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- failures ---- */

static void a_driver_that_does_not_start_is_found(void **state)
{
    static const struct {
        const char *failures, *says;
    } cases[] = {{"nvmlInit_v2:0:9", "kernel module is not loaded"},
                 {"nvmlInit_v2:0:18", "different versions"},
                 {"nvmlInit_v2:0:4", "not permitted"},
                 {"nvmlInit_v2:0:999", "nvmlInit_v2: 999"},
                 {"nvmlDeviceGetCount_v2:0:1", "nvmlDeviceGetCount_v2: 1"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gtopo_map *map = failing_map_of("dgx-h100", cases[i].failures);
        struct gtopo_finding finding = {0};

        assert_findings(map, 1);
        assert_int_equal(findings_of(map, "gpu-driver", &finding), 1);
        assert_int_equal(finding.severity, GTOPO_WARNING);
        assert_non_null(strstr(finding.text, cases[i].says));
        assert_non_null(strstr(finding.text, "8 GPUs"));
        gtopo_map_free(map);
    }
}

static void a_machine_without_gpus_needs_no_driver(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_host_options options;
    struct gtopo_map *map = build_map();
    struct gtopo_error error;

    (void)state;
    fake_bridge(m, "0000:00:01.0", 1, 1);
    fake_device(m, "0000:01:00.0", "030000", "1002:74a1"); /* a GPU, but of AMD */
    fake_numa(m, "0000:01:00.0", 0);
    setenv("GTOPO_FAKE_NVML_FAIL", "nvmlInit_v2:0:9", 1);
    gtopo_host_options_init(&options);
    options.fsroot = m->root;
    options.driver = GTOPO_DRIVER_ALWAYS;
    assert_ok(gtopo_host_discover(map, &options, &error));
    unsetenv("GTOPO_FAKE_NVML_FAIL");
    build_seal(map);
    assert_int_equal(objects_of(map, GTOPO_GPU), 1);
    assert_findings(map, 0);
    gtopo_map_free(map);
    fake_free(m);
}

/* Function by function and result by result: the fact is unknown, and nothing else is found than what the missing fact
 * leaves open. */
static void each_function_may_fail(void **state)
{
    static const char *const functions[] = {"nvmlSystemGetDriverVersion",
                                            "nvmlDeviceGetUUID",
                                            "nvmlDeviceGetName",
                                            "nvmlDeviceGetCudaComputeCapability",
                                            "nvmlDeviceGetMemoryInfo",
                                            "nvmlDeviceGetMemoryAffinity",
                                            "nvmlDeviceGetNumaNodeId",
                                            "nvmlDeviceGetMigMode",
                                            "nvmlDeviceGetMaxMigDeviceCount",
                                            "nvmlDeviceGetMigDeviceHandleByIndex",
                                            "nvmlDeviceGetNvLinkState",
                                            "nvmlDeviceGetNvLinkVersion",
                                            "nvmlDeviceGetNvLinkRemoteDeviceType",
                                            "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                            "nvmlDeviceGetFieldValues",
                                            "nvmlDeviceGetP2PStatus",
                                            "nvmlDeviceGetGpuFabricInfoV"};
    static const int results[] = {1, 2, 3, 4, 6, 7, 10, 13, 25, 999};

    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (size_t k = 0; k < sizeof results / sizeof *results; k++) {
            char failures[80];
            struct gtopo_map *map;

            snprintf(failures, sizeof failures, "%s:0:%d", functions[i], results[k]);
            map = failing_map_of("mig", failures);
            assert_int_equal(objects_of(map, GTOPO_GPU), 8);
            assert_number(map, "gpu7", GTOPO_ATTRIBUTE_NVML_INDEX, 7);
            assert_int_equal(strcmp(text_of(map, "gpu7", GTOPO_ATTRIBUTE_UUID), "(none)") == 0,
                             !strcmp(functions[i], "nvmlDeviceGetUUID"));
            assert_int_equal(number_of(map, "gpu7", GTOPO_ATTRIBUTE_MEMORY_B) == UINT64_MAX,
                             !strcmp(functions[i], "nvmlDeviceGetMemoryInfo"));
            assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu0"), at(map, "gpu1")),
                             strcmp(functions[i], "nvmlDeviceGetNvLinkState") ? 12 : 0);
            /* only where an NVSwitch is cannot be known then */
            assert_findings(map, !strcmp(functions[i], "nvmlDeviceGetNvLinkRemotePciInfo_v2"));
            gtopo_map_free(map);
        }
}

static void a_lost_gpu_is_found_and_the_others_are_asked(void **state)
{
    static const char *const failures[] = {"nvmlDeviceGetHandleByIndex_v2:4:15:1", "nvmlDeviceGetPciInfo_v3:4:15:1",
                                           "nvmlDeviceGetUUID:4:15:1", "nvmlDeviceGetNvLinkState:144:15:1",
                                           "nvmlDeviceGetFieldValues:76:15:1"};

    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct gtopo_map *map = failing_map_of("dgx-h100", failures[i]);
        struct gtopo_finding finding = {0};

        assert_int_equal(findings_of(map, "gpu-lost", &finding), 1);
        assert_int_equal(finding.severity, GTOPO_FAULT);
        assert_non_null(strstr(finding.text, "GPU 4"));
        assert_int_equal(finding.object, at(map, i < 2 ? "machine" : "gpu4"));
        assert_findings(map, 1);
        assert_text(map, "gpu5", GTOPO_ATTRIBUTE_UUID, "GPU-00000000-0000-0000-0000-000000000006");
        assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu5"), at(map, "gpu6")), 18);
        gtopo_map_free(map);
    }
}

/* ---- lies ---- */

static void garbage_for_addresses_joins_nothing(void **state)
{
    struct gtopo_map *map = lying_map_of("dgx-h100", "bus-id");

    (void)state;
    assert_int_equal(objects_of(map, GTOPO_GPU), 8);
    assert_int_equal(findings_of(map, "gpu-unknown", NULL), 8);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_UUID, "(none)");
    gtopo_map_free(map);
}

static void one_address_for_all_is_one_gpu(void **state)
{
    struct gtopo_map *map = lying_map_of("dgx-h100", "same");

    (void)state;
    assert_int_equal(objects_of(map, GTOPO_GPU), 8);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_NVML_INDEX, 0);
    assert_unknown(map, "gpu1", GTOPO_ATTRIBUTE_NVML_INDEX);
    gtopo_map_free(map);
}

static void links_to_what_is_not_there_make_no_gpu(void **state)
{
    struct gtopo_map *map = lying_map_of("dgx-1v", "remote");
    struct gtopo_finding finding = {0};

    (void)state;
    assert_int_equal(objects_of(map, GTOPO_GPU), 8);
    assert_int_equal(gtopo_nvlink_count(map, at(map, "gpu0"), at(map, "gpu1")), 0);
    assert_int_equal(findings_of(map, "nvlink-peer-hidden", &finding), 1);
    assert_non_null(strstr(finding.text, "48 NVLinks"));
    gtopo_map_free(map);
}

static void huge_numbers_are_not_believed(void **state)
{
    static const char *const lies[] = {"huge", "count"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct gtopo_map *map = lying_map_of("gh200", lies[i]);

        assert_int_equal(findings_of(map, "gpu-driver", NULL), 1);
        assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_MEMORY_B);
        gtopo_map_free(map);
    }
}

static void texts_without_an_end_are_cut(void **state)
{
    struct gtopo_map *map = lying_map_of("dgx-a100", "text");

    (void)state;
    assert_int_equal(strlen(text_of(map, "gpu0", GTOPO_ATTRIBUTE_UUID)), 95);
    assert_int_equal(strlen(text_of(map, "gpu0", GTOPO_ATTRIBUTE_MODEL)), 95);
    assert_int_equal(strlen(text_of(map, "machine", GTOPO_ATTRIBUTE_NVIDIA_DRIVER)), 95);
    gtopo_map_free(map);
}

/* The library then finds the stand-ins loaded under its names for them. */
static int load_stand_in(const char *name)
{
    const char *folder = getenv("GTOPO_FAKES");
    char path[FAKE_PATH];

    snprintf(path, sizeof path, "%s/.libs/%s", folder ? folder : "tests/fakes", name);
    if (dlopen(path, RTLD_NOW))
        return 0;
    fprintf(stderr, "%s; GTOPO_FAKES says where it is\n", dlerror());
    return 1;
}

#define unit(function) cmocka_unit_test(function)

int main(void)
{
    const struct CMUnitTest tests[] = {
        unit(a_dgx_h100_has_18_links_between_any_two_gpus),
        unit(other_hgx_machines_count_alike),
        unit(a_dgx_1_is_a_cube_mesh),
        unit(grace_hopper_has_c2c_and_memory_of_its_own),
        unit(a_tray_of_a_rack_knows_its_fabric),
        unit(cards_without_nvlink_have_none),
        unit(mig_slices_are_counted_and_named),
        unit(a_dead_nvlink_is_found),
        unit(hidden_nvswitches_still_count),
        unit(a_driver_that_supports_nothing_leaves_all_unknown),
        unit(a_record_is_not_completed_unless_wanted),
        unit(a_record_and_the_driver_tell_of_the_same_links),
        unit(cuda_has_its_own_order),
        unit(a_driver_that_does_not_start_is_found),
        unit(a_machine_without_gpus_needs_no_driver),
        unit(each_function_may_fail),
        unit(a_lost_gpu_is_found_and_the_others_are_asked),
        unit(garbage_for_addresses_joins_nothing),
        unit(one_address_for_all_is_one_gpu),
        unit(links_to_what_is_not_there_make_no_gpu),
        unit(huge_numbers_are_not_believed),
        unit(texts_without_an_end_are_cut),
    };

    if (load_stand_in("libnvidia-ml.so.1") || load_stand_in("libcuda.so.1"))
        return 1;
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
