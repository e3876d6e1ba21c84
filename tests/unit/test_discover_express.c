/* SPDX-License-Identifier: Apache-2.0 */
/* PCI Express: what configuration spaces say, what turns traffic between devices from its way, and odd siblings. */
#include "discover.h"

#define CONFIG_B 4096
#define EXPRESS 0x40 /* where the capability is put */
#define REQ_REDIR 0x04
#define CMPLT_REDIR 0x08
#define EGRESS_CTRL 0x20
#define SRC_VALID 0x01
#define ABSENT (-1)

/* Codes of sizes: 128 B << code. */
struct express {
    int payload, payload_capable, read_request, relaxed_ordering;
    int acs, ats; /* control registers; ABSENT: the capability is not there */
};

#define PLAIN ((struct express){.payload = 1, .payload_capable = 2, .read_request = 2, .acs = ABSENT, .ats = ABSENT})
#define PORT(controls) ((struct express){.payload = 1, .payload_capable = 2, .acs = (controls), .ats = ABSENT})

static void put_16(uint8_t *config, size_t at, unsigned value)
{
    config[at] = (uint8_t)value;
    config[at + 1] = (uint8_t)(value >> 8);
}

static void put_32(uint8_t *config, size_t at, unsigned value)
{
    put_16(config, at, value & 0xffff);
    put_16(config, at + 2, value >> 16);
}

static void config_path(const struct fake *m, const char *address, char path[FAKE_PATH])
{
    char folder[FAKE_PATH];

    fake_pci_folder(m, address, folder);
    strcat(folder, "/config");
    fake_path(m, path, folder);
}

static void write_config(const struct fake *m, const char *address, const uint8_t *config, size_t size)
{
    char folder[FAKE_PATH];

    fake_pci_folder(m, address, folder);
    strcat(folder, "/config");
    fake_write_bytes(m, folder, config, size);
}

/* A whole configuration space behind the header that the device has. */
static void make_config(const struct fake *m, const char *address, struct express e, uint8_t config[CONFIG_B])
{
    char path[FAKE_PATH];
    FILE *file;
    size_t at = 0x100;

    memset(config, 0, CONFIG_B);
    config_path(m, address, path);
    assert_non_null(file = fopen(path, "r"));
    assert_int_equal(fread(config, 1, 64, file), 64);
    fclose(file);
    config[0x06] |= 0x10;
    config[0x34] = EXPRESS;
    put_16(config, EXPRESS, 0x0010);
    put_32(config, EXPRESS + 4, (unsigned)e.payload_capable);
    put_16(config, EXPRESS + 8, (unsigned)(e.payload << 5 | e.read_request << 12 | (e.relaxed_ordering ? 0x10 : 0)));
    put_32(config, at, 0x0001 | 1 << 16 | (at + 0x40) << 20); /* error reporting, first as on most devices */
    at += 0x40;
    if (e.acs != ABSENT) {
        put_32(config, at, 0x000d | 1 << 16 | (at + 0x40) << 20);
        put_16(config, at + 6, (unsigned)e.acs);
        at += 0x40;
    }
    if (e.ats != ABSENT) {
        put_32(config, at, 0x000f | 1 << 16 | (at + 0x40) << 20);
        put_16(config, at + 6, (unsigned)e.ats);
        at += 0x40;
    }
    put_32(config, at, 0x0003 | 1 << 16); /* the serial number, last */
}

static void set_express(const struct fake *m, const char *address, struct express e)
{
    uint8_t config[CONFIG_B];

    make_config(m, address, e, config);
    write_config(m, address, config, CONFIG_B);
}

static void set_iommu(const struct fake *m, const char *address, int group, const char *type)
{
    char folder[FAKE_PATH], file[FAKE_PATH + 16], target[64];

    snprintf(target, sizeof target, "sys/kernel/iommu_groups/%d", group);
    fake_write(m, type, "%s/type", target);
    fake_pci_folder(m, address, folder);
    snprintf(file, sizeof file, "%s/iommu_group", folder);
    fake_link_to(m, target, file);
}

/* A device on the one node. */
static void add(struct fake *m, const char *address, const char *class_id, const char *ids)
{
    fake_device(m, address, class_id, ids);
    fake_numa(m, address, 0);
}

/* A GPU and a NIC of Ethernet on ports of one switch below root port 0, another NIC on root port 1. */
static struct fake *switched(void)
{
    struct fake *m = fake_machine(1, 2);

    fake_bridge(m, "0000:00:01.0", 1, 8);
    fake_bridge(m, "0000:01:00.0", 2, 8);
    fake_bridge(m, "0000:02:00.0", 3, 3);
    fake_bridge(m, "0000:02:01.0", 4, 4);
    fake_bridge(m, "0000:00:02.0", 9, 9);
    add(m, "0000:03:00.0", "030200", "10de:2330");
    add(m, "0000:04:00.0", "020000", "15b3:1021");
    add(m, "0000:09:00.0", "020000", "15b3:1021");
    fake_netdev(m, "0000:04:00.0", "eth0");
    fake_netdev(m, "0000:09:00.0", "eth1");
    fake_write(m, "0", "sys/kernel/iommu_groups/none");
    return m;
}

static void assert_no_findings(const struct gtopo_map *map)
{
    struct gtopo_finding finding = {.rule = "", .text = ""};

    gtopo_map_finding(map, 0, &finding, NULL);
    assert_string_equal(finding.text, "");
    assert_int_equal(gtopo_map_finding_count(map), 0);
}

/* ---- facts ---- */

static void what_the_spaces_say_is_in_the_map(void **state)
{
    struct fake *m = switched();
    struct gtopo_map *map;

    (void)state;
    set_express(m, "0000:04:00.0", (struct express){1, 2, 5, 1, ABSENT, 0x8000});
    set_express(m, "0000:03:00.0", (struct express){0, 3, 2, 0, ABSENT, 0x0010});
    set_express(m, "0000:02:00.0", PORT(SRC_VALID | 0x10));
    set_express(m, "0000:02:01.0", PORT(0));
    set_express(m, "0000:01:00.0", PORT(ABSENT));
    set_express(m, "0000:00:01.0", PORT(ABSENT));
    fake_pci_file(m, "0000:03:00.0", "resource",
                  "0x0000000092000000 0x0000000092ffffff 0x0000000000040200\n"
                  "0x0000024000000000 0x0000025fffffffff 0x000000000014220c\n"
                  "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                  "0x0000026000000000 0x0000026001ffffff 0x000000000014220c");
    set_iommu(m, "0000:04:00.0", 17, "identity");
    map = fake_discover(m);
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_MAX_PAYLOAD_B, 256);
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_MAX_PAYLOAD_CAPABLE_B, 512);
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_MAX_READ_REQUEST_B, 4096);
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_RELAXED_ORDERING, 1);
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_ATS, 1);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_ACS, "off");
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_IOMMU, "identity");
    assert_number(map, "nic0", GTOPO_ATTRIBUTE_IOMMU_GROUP, 17);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_MAX_PAYLOAD_B, 128);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_MAX_PAYLOAD_CAPABLE_B, 1024);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_RELAXED_ORDERING, 0);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_ATS, 0);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_ACS, "SrcValid UpstreamFwd");
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_BAR1_B, UINT64_C(128) << 30);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_IOMMU, "off");
    assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_IOMMU_GROUP);
    assert_number(map, "pci-switch0", GTOPO_ATTRIBUTE_MAX_PAYLOAD_B, 256);
    assert_text(map, "pci-switch0", GTOPO_ATTRIBUTE_ACS, "absent");
    assert_no_findings(map);
    build_round_trip(map);
    gtopo_map_free(map);
    fake_free(m);
}

/* Who is not root sees the first 64 bytes. */
static void what_only_root_may_read_is_unknown(void **state)
{
    struct fake *m = switched();
    uint8_t config[CONFIG_B];
    struct gtopo_map *map;

    (void)state;
    make_config(m, "0000:04:00.0", PLAIN, config);
    write_config(m, "0000:04:00.0", config, 64);
    make_config(m, "0000:02:01.0", PORT(REQ_REDIR), config);
    write_config(m, "0000:02:01.0", config, 64);
    map = fake_discover(m);
    assert_unknown(map, "nic0", GTOPO_ATTRIBUTE_MAX_PAYLOAD_B);
    assert_unknown(map, "nic0", GTOPO_ATTRIBUTE_RELAXED_ORDERING);
    assert_unknown(map, "nic0", GTOPO_ATTRIBUTE_ATS);
    assert_text(map, "nic0", GTOPO_ATTRIBUTE_ACS, "(none)");
    assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_BAR1_B);
    assert_no_findings(map);
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- what turns traffic from its way ---- */

static void access_controls_that_redirect_are_one_finding(void **state)
{
    static const struct {
        const char *ports[3];
        int controls, findings;
        enum gtopo_severity severity;
        const char *says;
    } cases[] = {
        {{"0000:02:00.0"}, REQ_REDIR, 1, GTOPO_WARNING, "at 1 PCIe port (0000:02:00.0)"},
        {{"0000:02:00.0", "0000:02:01.0"},
         CMPLT_REDIR,
         1,
         GTOPO_WARNING,
         "at 2 PCIe ports (0000:02:00.0, 0000:02:01.0)"},
        {{"0000:02:01.0"}, EGRESS_CTRL, 1, GTOPO_WARNING, "below one root port"},
        {{"0000:02:00.0", "0000:02:01.0"}, SRC_VALID, 0, GTOPO_NOTE, ""},
        {{"0000:00:01.0"}, REQ_REDIR, 1, GTOPO_NOTE, "below different root ports"},
        {{"0000:00:02.0"}, REQ_REDIR | CMPLT_REDIR | SRC_VALID, 1, GTOPO_NOTE, "(0000:00:02.0)"},
        {{"0000:00:01.0", "0000:02:01.0"}, REQ_REDIR, 1, GTOPO_WARNING, "(0000:02:01.0)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake *m = switched();
        struct gtopo_finding finding = {0};
        struct gtopo_map *map;

        for (int port = 0; cases[i].ports[port]; port++)
            set_express(m, cases[i].ports[port], PORT(cases[i].controls));
        map = fake_discover(m);
        assert_int_equal(findings_of(map, "pcie-acs-redirect", &finding), cases[i].findings);
        assert_int_equal(gtopo_map_finding_count(map), cases[i].findings);
        if (cases[i].findings) {
            assert_int_equal(finding.severity, cases[i].severity);
            assert_contains(finding.text, cases[i].says);
        }
        gtopo_map_free(map);
        fake_free(m);
    }
}

/* A port with one device that has no peer turns nothing away. */
static void access_controls_without_peers_are_none(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map;

    (void)state;
    fake_bridge(m, "0000:00:01.0", 1, 1);
    add(m, "0000:01:00.0", "030200", "10de:2330");
    set_express(m, "0000:01:00.0", PLAIN);
    set_express(m, "0000:00:01.0", PORT(REQ_REDIR));
    map = fake_discover(m);
    assert_text(map, "gpu0", GTOPO_ATTRIBUTE_ACS, "ReqRedir");
    assert_int_equal(findings_of(map, "pcie-acs-redirect", NULL), 0);
    gtopo_map_free(map);
    fake_free(m);
}

static void many_ports_are_counted(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    (void)state;
    for (int i = 0; i < 12; i++) {
        char port[16], nic[16];

        snprintf(port, sizeof port, "0000:00:%02x.0", i + 1);
        snprintf(nic, sizeof nic, "0000:%02x:00.0", i + 1);
        fake_bridge(m, port, i + 1, i + 1);
        add(m, nic, "020000", "15b3:1021");
        set_express(m, port, PORT(REQ_REDIR));
    }
    map = fake_discover(m);
    assert_int_equal(findings_of(map, "pcie-acs-redirect", &finding), 1);
    assert_contains(finding.text, "at 12 PCIe ports (0000:00:01.0, 0000:00:02.0, 0000:00:03.0, …)");
    gtopo_map_free(map);
    fake_free(m);
}

static void an_iommu_that_translates_is_one_finding(void **state)
{
    static const struct {
        const char *type;
        int ats; /* of the GPU */
        unsigned findings;
        enum gtopo_severity severity;
        const char *says;
    } cases[] = {
        {"DMA-FQ", ABSENT, 1, GTOPO_WARNING, "3 of 3 GPUs and NICs (the first is 0000:03:00.0: DMA-FQ)"},
        {"DMA", 0x8000, 1, GTOPO_NOTE, "2 of 3 GPUs and NICs (the first is 0000:04:00.0: DMA)"},
        {"identity", ABSENT, 0, GTOPO_NOTE, ""},
        {"blocked", ABSENT, 0, GTOPO_NOTE, ""},
        {"\x01\xff", ABSENT, 0, GTOPO_NOTE, ""},
    };
    static const char *const devices[] = {"0000:03:00.0", "0000:04:00.0", "0000:09:00.0"};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake *m = switched();
        struct gtopo_finding finding = {0};
        struct express gpu = PLAIN;
        struct gtopo_map *map;

        for (int j = 0; j < 3; j++)
            set_iommu(m, devices[j], j, cases[i].type);
        gpu.ats = cases[i].ats;
        set_express(m, "0000:03:00.0", gpu);
        map = fake_discover(m);
        assert_int_equal(findings_of(map, "iommu-translates", &finding), cases[i].findings);
        assert_int_equal(gtopo_map_finding_count(map), cases[i].findings);
        if (cases[i].findings) {
            assert_int_equal(finding.severity, cases[i].severity);
            assert_contains(finding.text, cases[i].says);
        }
        gtopo_map_free(map);
        fake_free(m);
    }
}

/* ---- siblings ---- */

/* Four NICs of a model on root ports, alike. */
static struct fake *four_nics(void)
{
    struct fake *m = fake_machine(1, 2);

    for (int i = 1; i <= 4; i++) {
        char port[16], nic[16], netdev[16];

        snprintf(port, sizeof port, "0000:00:%02x.0", i);
        snprintf(nic, sizeof nic, "0000:%02x:00.0", i);
        snprintf(netdev, sizeof netdev, "eth%d", i);
        fake_bridge(m, port, i, i);
        add(m, nic, "020000", "15b3:1021");
        fake_netdev(m, nic, netdev);
        fake_trained(m, nic, "16 32.0", "16 32.0");
        fake_trained(m, port, "16 32.0", "16 32.0");
        set_express(m, nic, PLAIN);
    }
    return m;
}

static void assert_one_differs(struct fake *m, const char *object, const char *says)
{
    struct gtopo_map *map = fake_discover(m);
    struct gtopo_finding finding = {0};

    assert_int_equal(findings_of(map, "siblings-differ", &finding), says != NULL);
    assert_int_equal(gtopo_map_finding_count(map), says != NULL);
    if (says) {
        assert_int_equal(finding.object, at(map, object));
        assert_contains(finding.text, says);
    }
    gtopo_map_free(map);
    fake_free(m);
}

static void one_that_is_not_as_its_siblings_is_found(void **state)
{
    struct express small = PLAIN, slow = PLAIN;
    struct fake *m = four_nics();

    (void)state;
    assert_one_differs(m, NULL, NULL);
    m = four_nics();
    small.payload = 0;
    set_express(m, "0000:03:00.0", small);
    assert_one_differs(m, "nic2", "max payload size is 128 B, that of 3 others 256 B");
    m = four_nics();
    slow.read_request = 0;
    set_express(m, "0000:01:00.0", slow);
    assert_one_differs(m, "nic0", "max read request size is 128 B, that of 3 others 512 B");
    m = four_nics();
    fake_trained(m, "0000:00:02.0", "8 32.0", "8 32.0"); /* a slot of fewer lanes */
    fake_trained(m, "0000:02:00.0", "8 32.0", "16 32.0");
    assert_one_differs(m, "nic1", "is x8, that of 3 others x16");
    m = four_nics();
    fake_trained(m, "0000:00:04.0", "16 16.0", "16 16.0");
    fake_trained(m, "0000:04:00.0", "16 16.0", "16 32.0");
    assert_one_differs(m, "nic3", "is 16 GT/s, that of 3 others 32 GT/s");
}

/* Two against two, another model, and what is not known: nobody can say which is right. */
static void without_a_majority_nothing_differs(void **state)
{
    struct express small = PLAIN;
    struct fake *m = four_nics();
    uint8_t config[CONFIG_B];

    (void)state;
    small.payload = 0;
    set_express(m, "0000:03:00.0", small);
    set_express(m, "0000:04:00.0", small);
    assert_one_differs(m, NULL, NULL);
    m = four_nics();
    fake_pci_file(m, "0000:03:00.0", "device", "0x1019");
    make_config(m, "0000:03:00.0", small, config);
    put_16(config, 2, 0x1019);
    write_config(m, "0000:03:00.0", config, CONFIG_B);
    assert_one_differs(m, NULL, NULL);
    m = four_nics();
    make_config(m, "0000:03:00.0", PLAIN, config);
    write_config(m, "0000:03:00.0", config, 64);
    assert_one_differs(m, NULL, NULL);
    m = four_nics(); /* of two that are known one is not the odd one */
    set_express(m, "0000:03:00.0", small);
    write_config(m, "0000:01:00.0", config, 64);
    write_config(m, "0000:02:00.0", config, 64);
    assert_one_differs(m, NULL, NULL);
}

static void a_gpu_with_a_small_window_is_found(void **state)
{
    struct fake *m = fake_machine(1, 2);

    (void)state;
    for (int i = 1; i <= 3; i++) {
        char port[16], gpu[16];

        snprintf(port, sizeof port, "0000:00:%02x.0", i);
        snprintf(gpu, sizeof gpu, "0000:%02x:00.0", i);
        fake_bridge(m, port, i, i);
        add(m, gpu, "030200", "10de:20b2");
        fake_pci_file(m, gpu, "resource",
                      i == 2 ? "0x0000000010000000 0x000000001fffffff 0x000000000014220c"
                             : "0x0000024000000000 0x0000025fffffffff 0x000000000014220c");
    }
    assert_one_differs(m, "gpu1", "its BAR1 is 256 MiB, that of 2 others 131072 MiB");
}

/* ---- idle and hostile ---- */

static void a_suspended_link_is_a_note(void **state)
{
    struct fake *m = four_nics();
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    (void)state;
    fake_trained(m, "0000:02:00.0", "16 2.5", "16 32.0");
    fake_pci_file(m, "0000:02:00.0", "power/runtime_status", "suspended");
    fake_trained(m, "0000:03:00.0", "8 2.5", "16 32.0");
    fake_pci_file(m, "0000:03:00.0", "power/runtime_status", "suspended");
    map = fake_discover(m);
    assert_int_equal(findings_of(map, "pcie-link-degraded", &finding), 2);
    assert_int_equal(finding.object, at(map, "nic2"));
    assert_int_equal(finding.severity, GTOPO_WARNING); /* fewer lanes do not come back by themselves */
    assert_int_equal(gtopo_map_finding(map, 0, &finding, NULL), 0);
    assert_int_equal(finding.object, at(map, "nic1"));
    assert_int_equal(finding.severity, GTOPO_NOTE);
    gtopo_map_free(map);
    fake_free(m);
}

/* A map, whatever is there in place of the configuration space. */
static void try_config(const uint8_t *config, size_t size)
{
    struct fake *m = switched();
    struct gtopo_map *map;

    write_config(m, "0000:04:00.0", config, size);
    map = fake_discover(m);
    assert_true(is_there(map, "gpu0"));
    build_round_trip(map);
    gtopo_map_free(map);
    fake_free(m);
}

static void hostile_spaces_end(void **state)
{
    uint8_t config[CONFIG_B], broken[CONFIG_B];
    struct fake *m = switched();
    unsigned seed = 1;

    (void)state;
    make_config(m, "0000:04:00.0", (struct express){1, 2, 5, 1, 0, 0x8000}, config);
    fake_free(m);
    for (size_t size = 0; size <= 0x200; size += size < 0x60 ? 1 : 0x1f)
        try_config(config, size);
    memcpy(broken, config, CONFIG_B);
    put_16(broken, EXPRESS, EXPRESS << 8 | 0x05); /* lists that lead into themselves */
    try_config(broken, CONFIG_B);
    memcpy(broken, config, CONFIG_B);
    put_32(broken, 0x140, 0x0001 | 0x100u << 20);
    try_config(broken, CONFIG_B);
    put_32(broken, 0x140, 0x000d | 0xffcu << 20); /* and to the last four bytes */
    try_config(broken, CONFIG_B);
    memset(broken, 0xff, CONFIG_B); /* a function that does not answer */
    try_config(broken, CONFIG_B);
    for (int i = 0; i < 60; i++) {
        memcpy(broken, config, CONFIG_B);
        for (int change = 0; change < 8; change++) {
            static const size_t places[] = {0x06,  0x34,  EXPRESS, EXPRESS + 1, EXPRESS + 4, EXPRESS + 8, 0x100, 0x102,
                                            0x103, 0x140, 0x142,   0x143,       0x146,       0x180,       0x183, 0x186};

            seed = seed * 1103515245 + 12345;
            broken[places[seed / 65536 % (sizeof places / sizeof *places)]] = (uint8_t)(seed / 256);
        }
        try_config(broken, CONFIG_B);
    }
}

static void hostile_files_end(void **state)
{
    static const char *const resources[] = {"",
                                            "0x",
                                            "0x0 0x0",
                                            "zzz",
                                            "0x10 0x0 0x200",
                                            "0x0 0xffffffffffffffff 0x200",
                                            "-0x1 0x1 0x200",
                                            "0x000000000000000000000000 0x1 0x200\n0x0 0xfff 0x200"};
    static const char *const groups[] = {"../../x", "sys", "sys/kernel/iommu_groups/99999999999", "/"};

    (void)state;
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        struct fake *m = switched();
        struct gtopo_map *map;
        char folder[FAKE_PATH], path[FAKE_PATH];

        fake_pci_file(m, "0000:03:00.0", "resource", resources[i]);
        fake_pci_folder(m, "0000:03:00.0", folder);
        strcat(folder, "/iommu_group");
        fake_path(m, path, folder);
        assert_int_equal(symlink(groups[i % 4], path), 0);
        config_path(m, "0000:04:00.0", path);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(i % 2 ? mkfifo(path, 0600) : mkdir(path, 0700), 0);
        map = fake_discover(m);
        assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_BAR1_B);
        assert_unknown(map, "gpu0", GTOPO_ATTRIBUTE_IOMMU_GROUP);
        gtopo_map_free(map);
        fake_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_spaces_say_is_in_the_map),
        cmocka_unit_test(what_only_root_may_read_is_unknown),
        cmocka_unit_test(access_controls_that_redirect_are_one_finding),
        cmocka_unit_test(access_controls_without_peers_are_none),
        cmocka_unit_test(many_ports_are_counted),
        cmocka_unit_test(an_iommu_that_translates_is_one_finding),
        cmocka_unit_test(one_that_is_not_as_its_siblings_is_found),
        cmocka_unit_test(without_a_majority_nothing_differs),
        cmocka_unit_test(a_gpu_with_a_small_window_is_found),
        cmocka_unit_test(a_suspended_link_is_a_note),
        cmocka_unit_test(hostile_spaces_end),
        cmocka_unit_test(hostile_files_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
