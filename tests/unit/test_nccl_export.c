/* SPDX-License-Identifier: Apache-2.0 */
/* Topology files for NCCL: what NCCL's parser takes, which read again are the map that they were made of. */
#include "nccl_files.h"
#include <dirent.h>
#include <gputopo/export.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_export_refused), cmocka_unit_test(test_too_many_elements),
        cmocka_unit_test(test_formats),        cmocka_unit_test(test_hidden_nvswitch),
        cmocka_unit_test(test_all_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
