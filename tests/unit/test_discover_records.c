/* SPDX-License-Identifier: Apache-2.0 */
/* Records that cannot be read, and what is said of them; hwloc's XML; names of hosts. */
#include "discover.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct gtopo_error error;

static int discover_from(struct gtopo_map *map, const char *fsroot, const char *xml)
{
    struct gtopo_host_options options;

    gtopo_host_options_init(&options);
    options.fsroot = fsroot;
    options.hwloc_xml = xml;
    return gtopo_host_discover(map, &options, &error);
}

/* Standard error goes to a file meanwhile; how much went there. */
static int quiet_begin(int *saved)
{
    int fd = memfd_create("stderr", MFD_CLOEXEC);

    *saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    return fd;
}
static off_t quiet_end(int fd, int saved)
{
    off_t written = lseek(fd, 0, SEEK_END);

    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
    return written;
}

static void refuse(int status, const char *fsroot, const char *xml, const char *says)
{
    struct gtopo_map *map = build_map();
    int saved, fd = quiet_begin(&saved), got;
    off_t printed;

    error = (struct gtopo_error){0};
    got = discover_from(map, fsroot, xml);
    printed = quiet_end(fd, saved);
    assert_string_equal(gtopo_status_name(got), gtopo_status_name(status));
    assert_int_equal(error.code, status);
    assert_contains(error.message, says);
    assert_contains(error.message, xml ? xml : fsroot);
    assert_true(error.hint[0]);
    assert_int_equal(printed, 0);
    gtopo_map_free(map);
}

/* ---- a folder ---- */

static void a_root_that_cannot_be_read_is_named(void **state)
{
    struct fake *m = fake_machine(1, 2);
    char path[FAKE_PATH];

    (void)state;
    refuse(GTOPO_EIO, "/nonexistent", NULL, "No such file");
    fake_write(m, "x", "a-file");
    fake_path(m, path, "a-file");
    refuse(GTOPO_EIO, path, NULL, "Not a directory");
    fake_path(m, path, "proc");
    refuse(GTOPO_EIO, path, NULL, "no readable folder sys");
    fake_free(m);
}

static void what_may_not_be_read_is_an_error_for_who_is_not_root(void **state)
{
    struct fake *m = fake_machine(1, 2);
    char path[FAKE_PATH];

    (void)state;
    if (!geteuid())
        assert_int_equal(seteuid(65534), 0);
    else
        assert_int_equal(chmod(m->root, 0), 0);
    fake_path(m, path, "some.xml");
    refuse(GTOPO_EIO, m->root, NULL, "cannot be read");
    refuse(GTOPO_EIO, NULL, path, "Permission denied");
    if (!getuid())
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(m->root, 0755), 0);
    fake_free(m);
}

static void a_record_without_processors_is_no_machine_or_a_poor_one(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_map *map = build_map();

    (void)state;
    if (discover_from(map, m->root, NULL))
        assert_true(error.message[0] && error.hint[0]);
    gtopo_map_free(map);
    fake_free(m);
}

/* Let the kernel refuse openat2, as those before 5.6 do. */
static void forget_openat2(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the call's number */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(77);
}

/* In a child of an old kernel: this machine, a record, and one whose links lead out. 0, or the number of what failed.
 */
static int discover_on_old_kernel(const struct fake *m, const struct fake *bad)
{
    int knows_sysfs = access("/sys/bus/pci/devices", R_OK) != 0; /* or has none */
    struct gtopo_map *map = gtopo_map_new();

    forget_openat2();
    if (discover_from(map, NULL, NULL))
        return 1;
    for (uint32_t i = 0; i < 100; i++) /* something that only sysfs tells */
        knows_sysfs |= gtopo_map_text(map, i, GTOPO_ATTRIBUTE_DRIVER) != NULL;
    gtopo_map_free(map);
    map = gtopo_map_new();
    if (!knows_sysfs || fake_try(m, map, "m", &error) || fake_try(bad, map, "bad", &error))
        return 2;
    if (number_of(map, "m/nic0:1", GTOPO_ATTRIBUTE_MTU_B) != 1500)
        return 3;
    if (gtopo_map_text(map, at(map, "bad/machine"), GTOPO_ATTRIBUTE_MODEL) || is_there(map, "bad/nic0:1"))
        return 4;
    gtopo_map_free(map);
    return 0;
}

static void an_old_kernel_does_the_same(void **state)
{
    struct fake *both[2], *outside = fake_empty();
    int result = 0;
    pid_t child;

    (void)state;
    for (int i = 0; i < 2; i++) {
        both[i] = fake_machine(1, 2);
        fake_bridge(both[i], "0000:00:01.0", 1, 1);
        fake_device(both[i], "0000:01:00.0", "020000", "15b3:1021");
        fake_netdev(both[i], "0000:01:00.0", "eth0");
    }
    fake_write(outside, "from outside", "product_name");
    fake_write(outside, "1", "net/eth0/type");
    fake_link_to(both[1], outside->root, "sys/devices/virtual/dmi/id"); /* through more ".." than there is above */
    fake_replace_by_link(both[1], "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/net", outside->root);
    child = fork();
    if (!child)
        _exit(discover_on_old_kernel(both[0], both[1]));
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    if (WEXITSTATUS(result) == 77)
        print_message("no seccomp here\n");
    else
        assert_int_equal(WEXITSTATUS(result), 0);
    fake_free(both[0]);
    fake_free(both[1]);
    fake_free(outside);
}

/* ---- XML ---- */

#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
#define MACHINE_SETS                                                                                                   \
    "cpuset=\"0x1\" complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "          \
    "allowed_nodeset=\"0x1\""
#define SETS "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
#define XML_BEGIN                                                                                                      \
    DECLARATION "<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" " MACHINE_SETS " gp_index=\"1\">"
#define XML_END                                                                                                        \
    "<object type=\"Package\" os_index=\"0\" " SETS " gp_index=\"2\"><object type=\"NUMANode\" os_index=\"0\" " SETS   \
    " gp_index=\"3\" local_memory=\"1024\"/><object type=\"PU\" os_index=\"0\" " SETS                                  \
    " gp_index=\"4\"/></object></object></topology>\n"

/* Write a file in the folder of a machine; its path. */
static const char *file_with(struct fake *m, const char *text)
{
    static char path[FAKE_PATH];

    fake_write(m, text, "test.xml");
    fake_path(m, path, "test.xml");
    return path;
}

static void xml_that_is_none_says_what_to_do(void **state)
{
    struct fake *m = fake_empty();

    (void)state;
    refuse(GTOPO_EFORMAT, NULL, file_with(m, ""), "is not hwloc's XML");
    refuse(GTOPO_EFORMAT, NULL, file_with(m, "{\"format\": \"gputopo-map\"}"), "is not hwloc's XML");
    refuse(GTOPO_EFORMAT, NULL, file_with(m, "<system version=\"1\"></system>"), "is not hwloc's XML");
    refuse(GTOPO_EFORMAT, NULL, file_with(m, "<topology"), "is cut");
    refuse(GTOPO_EFORMAT, NULL, file_with(m, "<topology version=\"2.0\"></topology>"), "hwloc cannot");
    refuse(GTOPO_EFORMAT, NULL, file_with(m, DECLARATION "<topology version=\"2.0\">&x;</wrong></topology>"),
           "hwloc cannot");
    refuse(GTOPO_EIO, NULL, "/nonexistent.xml", "No such file");
    refuse(GTOPO_EIO, NULL, m->root, "directory");
    fake_free(m);
}

static void xml_of_a_newer_version_names_both_and_the_way_out(void **state)
{
    struct fake *m = fake_empty();

    (void)state;
    refuse(GTOPO_EVERSION, NULL, file_with(m, DECLARATION "<topology version=\"3.0\">"), "version 3.0");
    assert_contains(error.message, "version 2");
    assert_contains(error.hint, "--export-xml-flags v2");
    refuse(GTOPO_EVERSION, NULL, file_with(m, DECLARATION "<topology version=\"10.0\">"), "version 10");
    fake_free(m);
}

static void xml_cut_anywhere_is_refused_without_a_word_on_standard_error(void **state)
{
    struct fake *m = fake_empty();
    char text[] = XML_BEGIN XML_END;
    struct gtopo_map *map = build_map();

    (void)state;
    assert_ok(discover_from(map, NULL, file_with(m, text)));
    gtopo_map_free(map);
    for (size_t cut = sizeof text - 4; cut > 120; cut -= 37) {
        text[cut] = 0;
        refuse(GTOPO_EFORMAT, NULL, file_with(m, text), "test.xml");
    }
    fake_free(m);
}

#define BRIDGE                                                                                                         \
    "<object type=\"Bridge\" gp_index=\"%d\" bridge_type=\"%s\" depth=\"0\" bridge_pci=\"0000:[00-ff]\""               \
    " pci_busid=\"0000:00:00.0\" pci_type=\"0604 [8086:1234] [0000:0000] 00\" pci_link_speed=\"0.000000\">"

static void nesting_that_no_machine_has_is_refused(void **state)
{
    struct fake *m = fake_empty();
    size_t size = 0;
    char *text;
    FILE *stream = open_memstream(&text, &size);

    (void)state;
    fputs(XML_BEGIN, stream);
    for (int i = 0; i < 20000; i++)
        fprintf(stream, BRIDGE, i + 10, i ? "1-1" : "0-1");
    for (int i = 0; i < 20000; i++)
        fputs("</object>", stream);
    fputs(XML_END, stream);
    fclose(stream);
    refuse(GTOPO_EFORMAT, NULL, file_with(m, text), "test.xml");
    free(text);
    fake_free(m);
}

static void devices_of_xml_without_bridges_are_counted(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_finding finding = {0};
    struct gtopo_map *map = build_map();

    (void)state;
    assert_ok(discover_from(
        map, NULL,
        file_with(m,
                  XML_BEGIN "<object type=\"PCIDev\" gp_index=\"9\" pci_busid=\"0000:01:00.0\""
                            " pci_type=\"0302 [10de:2330] [0000:0000] 00\" pci_link_speed=\"15.753846\"/>" XML_END)));
    assert_int_equal(findings_of(map, "pci-bridges-hidden", &finding), 1);
    assert_contains(finding.text, "1 PCI device");
    gtopo_map_free(map);
    fake_free(m);
}

#define SET(bit) "cpuset=\"" bit "\" complete_cpuset=\"" bit "\""
#define NODES(bits) " nodeset=\"" bits "\" complete_nodeset=\"" bits "\""
#define NODE(number, bit, rest)                                                                                        \
    "<object type=\"NUMANode\" os_index=\"" number "\" " SET("0x2") NODES(bit) " gp_index=\"2" number "\"" rest

/* Two packages; the second has processors' memory, a GPU, and the GPU's memory or CXL's: `more` tells that. */
static void check_memory_node(struct fake *m, const char *more)
{
    struct gtopo_map *map = build_map();
    char *text;

    assert_true(asprintf(&text,
                         "%s%s<object type=\"Package\" os_index=\"1\" " SET("0x2") NODES("0x6") " gp_index=\"3\">" NODE(
                             "1", "0x2", "/>") NODE("2", "0x4", "%s") "<object type=\"PU\" os_index=\"1\" " SET("0x2")
                             NODES("0x6") " gp_index=\"4\"/>"
                                          "<object type=\"Bridge\" gp_index=\"5\" bridge_type=\"0-1\" depth=\"0\""
                                          " bridge_pci=\"0000:[00-01]\"><object type=\"PCIDev\" gp_index=\"6\""
                                          " pci_busid=\"0000:01:00.0\" pci_type=\"0302 [10de:2330] [0000:0000] 00\""
                                          " pci_link_speed=\"15.753846\"/></object></object></object></topology>",
                         DECLARATION "<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" " SET("0x3")
                             NODES("0x7") " allowed_cpuset=\"0x3\" allowed_nodeset=\"0x7\" gp_index=\"1\">",
                         "<object type=\"Package\" os_index=\"0\" " SET("0x1")
                             NODES("0x1") " gp_index=\"7\"><object type=\"NUMANode\" os_index=\"0\" " SET("0x1")
                                 NODES("0x1") " gp_index=\"8\"/><object type=\"PU\" os_index=\"0\" " SET("0x1")
                                     NODES("0x1") " gp_index=\"9\"/></object>",
                         more) > 0);
    assert_ok(discover_from(map, NULL, file_with(m, text)));
    build_seal(map);
    assert_number(map, "gpu0", GTOPO_ATTRIBUTE_NUMA, 1);
    assert_parent(map, "host-bridge0", "numa1");
    assert_parent(map, "numa2", "package1");
    gtopo_map_free(map);
    free(text);
}

static void a_gpus_memory_and_cxls_are_no_place_in_xml_either(void **state)
{
    struct fake *m = fake_empty();

    (void)state;
    check_memory_node(m, " subtype=\"GPUMemory\"/>");
    check_memory_node(m, "><info name=\"DAXDevice\" value=\"dax0.0\"/></object>");
    fake_free(m);
}

static void what_others_tell_hwloc_does_not_change_a_record(void **state)
{
    struct fake *m = fake_machine(2, 2);
    struct gtopo_map *map;

    (void)state;
    setenv("HWLOC_SYNTHETIC", "node:7 core:1 pu:1", 1);
    setenv("HWLOC_XMLFILE", "/nonexistent", 1);
    setenv("HWLOC_COMPONENTS", "synthetic,stop", 1);
    map = fake_discover(m);
    unsetenv("HWLOC_COMPONENTS");
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
    assert_true(is_there(map, "numa1") && !is_there(map, "numa2"));
    gtopo_map_free(map);
    fake_free(m);
}

/* ---- names ---- */

static void a_host_has_the_name_that_is_given_else_that_of_its_record(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_map *map = build_map();

    (void)state;
    assert_ok(fake_try(m, map, NULL, &error));
    assert_string_equal(gtopo_map_host_name(map, 0), "host");
    fake_write(m, "HostName: rack1/node:7@site", "proc/hwloc-nofile-info");
    assert_ok(fake_try(m, map, NULL, &error));
    assert_string_equal(gtopo_map_host_name(map, 1), "rack1-node-7-site");
    assert_ok(fake_try(m, map, "given", &error));
    assert_string_equal(gtopo_map_host_name(map, 2), "given");
    assert_fails(GTOPO_EUSAGE, fake_try(m, map, "given", &error));
    assert_fails(GTOPO_EUSAGE, fake_try(m, map, "a/b", &error));
    assert_fails(GTOPO_EUSAGE, fake_try(m, map, "", &error));
    gtopo_map_free(map);
    fake_free(m);
}

static void this_machine_has_its_own_name(void **state)
{
    struct gtopo_map *map = build_map();
    char name[256] = "";

    (void)state;
    assert_ok(discover_from(map, NULL, NULL));
    build_seal(map);
    gethostname(name, sizeof name - 1);
    assert_string_equal(gtopo_map_host_name(map, 0), name);
    assert_true(is_there(map, "numa0"));
    gtopo_map_free(map);
}

static void options_that_nobody_initialised_are_refused(void **state)
{
    struct gtopo_host_options options = {0};
    struct gtopo_map *map = build_map();

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_host_discover(map, &options, &error));
    gtopo_map_free(map);
}

static void the_programs_decimal_comma_changes_nothing(void **state)
{
    struct fake *m = fake_machine(1, 2);
    struct gtopo_finding finding = {0};
    struct gtopo_map *map;

    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma here\n");
        fake_free(m);
        skip();
    }
    fake_bridge(m, "0000:00:01.0", 1, 1);
    fake_device(m, "0000:01:00.0", "030200", "10de:2330");
    fake_trained(m, "0000:01:00.0", "16 2.5", "16 8.0");
    map = fake_discover(m);
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(findings_of(map, "pcie-link-degraded", &finding), 1);
    assert_contains(finding.text, "2.5 GT/s");
    gtopo_map_free(map);
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_that_cannot_be_read_is_named),
        cmocka_unit_test(what_may_not_be_read_is_an_error_for_who_is_not_root),
        cmocka_unit_test(a_record_without_processors_is_no_machine_or_a_poor_one),
        cmocka_unit_test(an_old_kernel_does_the_same),
        cmocka_unit_test(xml_that_is_none_says_what_to_do),
        cmocka_unit_test(xml_of_a_newer_version_names_both_and_the_way_out),
        cmocka_unit_test(xml_cut_anywhere_is_refused_without_a_word_on_standard_error),
        cmocka_unit_test(nesting_that_no_machine_has_is_refused),
        cmocka_unit_test(devices_of_xml_without_bridges_are_counted),
        cmocka_unit_test(a_gpus_memory_and_cxls_are_no_place_in_xml_either),
        cmocka_unit_test(what_others_tell_hwloc_does_not_change_a_record),
        cmocka_unit_test(a_host_has_the_name_that_is_given_else_that_of_its_record),
        cmocka_unit_test(this_machine_has_its_own_name),
        cmocka_unit_test(options_that_nobody_initialised_are_refused),
        cmocka_unit_test(the_programs_decimal_comma_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
