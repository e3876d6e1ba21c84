/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading maps that are not what they should be. Each case takes the text of a good map, replaces one part of it, and
 * names what the message has to say.
 */
#include "full_map.h"

static struct gtopo_error error;

static char *replace_first(const char *text, const char *from, const char *to)
{
    const char *found = strstr(text, from);
    char *changed;

    if (!found)
        fail_msg("the good map does not hold %s", from);
    if (asprintf(&changed, "%.*s%s%s", (int)(found - text), text, to, found + strlen(from)) < 0)
        fail_msg("out of memory");
    return changed;
}

static void refuse_text(const char *text, int status, const char *says)
{
    struct gtopo_map *map = NULL;

    assert_fails(status, gtopo_map_read(text, strlen(text), "bad.json", &map, &error));
    assert_null(map);
    assert_contains(error.message, "bad.json");
    assert_contains(error.message, says);
    assert_true(error.hint[0]);
}

struct change {
    const char *from, *to;
    const char *says;
};

static void refuse_each(const struct change *changes, size_t count)
{
    struct gtopo_map *map = full_map();
    char *good = build_write(map);

    for (size_t i = 0; i < count; i++) {
        char *bad = replace_first(good, changes[i].from, changes[i].to);

        refuse_text(bad, GTOPO_EFORMAT, changes[i].says);
        free(bad);
    }
    free(good);
    gtopo_map_free(map);
}
#define REFUSE_EACH(changes) refuse_each(changes, sizeof(changes) / sizeof *(changes))

static void what_is_no_json_is_refused_with_its_line(void **state)
{
    static const struct change changes[] = {
        {"\"version\":1", "\"version\":1,,", "bad.json:3:"},
        {"\"version\":1", "\"version\":", "bad.json:3:"},
        {"\"version\":1", "\"version\":NaN", "bad.json:3:"},
        {"\"version\":1", "\"version\":01", "bad.json:3:"},
        {"\"version\":1", "\"version\":99999999999999999999", "bad.json:3:"},
        {"\"version\":1", "\"version\":1e999", "bad.json:3:"},
        {"\"version\":1", "\"version\":1,\"version\":1", "bad.json:3:"},
        {"gputopo-map", "gputopo\xff-map", "bad.json:2:"},
        {"gputopo-map", "gputopo\\u0000map", "bad.json:2:"},
        {"\n}\n", "\n}\nx", "bad.json:"},
    };

    (void)state;
    REFUSE_EACH(changes);
    refuse_text("", GTOPO_EFORMAT, "bad.json:1:");
    refuse_text("{", GTOPO_EFORMAT, "bad.json:1:");
    refuse_text("1", GTOPO_EFORMAT, "bad.json:1:");
    refuse_text("\n\n}", GTOPO_EFORMAT, "bad.json:3:");
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    struct gtopo_map *map = full_map(), *read;
    char *text = build_write(map);
    size_t size = strlen(text);

    (void)state;
    for (size_t cut = 0; cut < size - 2; cut += 1 + cut % 13) {
        char expected[64];
        int line = 1;

        for (size_t i = 0; i + 1 < cut; i++)
            line += text[i] == '\n';
        assert_fails(GTOPO_EFORMAT, gtopo_map_read(text, cut, "cut.json", &read, &error));
        snprintf(expected, sizeof expected, "cut.json:%d:", line);
        if (!strstr(error.message, expected)) { /* at the end of a line, the next is as good */
            snprintf(expected, sizeof expected, "cut.json:%d:", line + 1);
            assert_contains(error.message, expected);
        }
    }
    assert_ok(gtopo_map_read(text, size - 1, "whole.json", &read, &error)); /* without the last newline */
    gtopo_map_free(read);
    free(text);
    gtopo_map_free(map);
}

static void deep_nesting_is_refused(void **state)
{
    size_t depth = 200000;
    char *text = malloc(2 * depth + 1);

    (void)state;
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = 0;
    refuse_text(text, GTOPO_EFORMAT, "depth");
    for (size_t i = 0; i < depth / 5; i++)
        memcpy(text + i * 5, "{\"a\":", 5);
    text[depth] = 0;
    refuse_text(text, GTOPO_EFORMAT, "depth");
    free(text);
}

static void a_newer_version_names_both_versions(void **state)
{
    struct gtopo_map *map = full_map();
    char *good = build_write(map), *newer = replace_first(good, "\"version\":1", "\"version\":2,\"new\":{}");

    (void)state;
    refuse_text(newer, GTOPO_EVERSION, "version 2");
    assert_contains(error.message, "reads version 1");
    free(newer);
    free(good);
    gtopo_map_free(map);
}

static void what_is_no_map_is_refused(void **state)
{
    static const struct change changes[] = {
        {"gputopo-map", "other", "\"format\""},
        {"\"format\":\"gputopo-map\"", "\"format\":1", "\"format\""},
        {"\"version\":1", "\"version\":0", "\"version\""},
        {"\"version\":1", "\"version\":-1", "\"version\""},
        {"\"version\":1", "\"version\":1.0", "\"version\""},
        {"\"version\":1", "\"version\":\"1\"", "\"version\""},
        {"\"producer\":\"gputopo ", "\"author\":\"gputopo ", "\"author\" is not known"},
        {"\"producer\":\"gputopo 0.1.0\",", "", "\"producer\" has to be a text"},
        {"\"version\":1", "\"version\":1,\"colour\":1", "\"colour\" is not known"},
        {"\"findings\":[", "\"findings\":{}, \"cables2\":[", "\"cables2\" is not known"},
        {"\"switches\":[", "\"switches\":null, \"switches2\":[", "\"switches2\" is not known"},
    };

    (void)state;
    REFUSE_EACH(changes);
    refuse_text("{}", GTOPO_EFORMAT, "\"format\"");
    refuse_text("[]", GTOPO_EFORMAT, "\"format\"");
    refuse_text("{\"format\":\"gputopo-map\",\"version\":1,\"producer\":\"x\",\"shapes\":{}}", GTOPO_EFORMAT,
                "\"shapes\" has to be an array");
    refuse_text("{\"format\":\"gputopo-map\",\"version\":1,\"producer\":\"x\",\"shapes\":[]}", GTOPO_EFORMAT,
                "\"hosts\" has to be an array");
}

static void bad_shapes_are_refused(void **state)
{
    static const struct change changes[] = {
        {"\"fingerprint\":\"0x", "\"fingerprint\":\"1x", "shapes[0]: \"fingerprint\""},
        {"\"fingerprint\":\"0x", "\"fingerprint\":\"0x0", "shapes[0]: \"fingerprint\""},
        {"\"fingerprint\":\"0x", "\"mark\":1,\"fingerprint\":\"0x", "shapes[0]: \"mark\" is not known"},
        {"{\"name\":\"machine\",\"kind\":\"machine\",\"parent\":null},\n", "", "shapes[0].objects[0]"},
        {"{\"name\":\"machine\",\"kind\":\"machine\"", "{\"name\":\"machine0\",\"kind\":\"machine\"",
         "\"name\" has to be \"machine\""},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":\"nic\",\"parent\":null", "shapes[0].objects[1]"},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":\"nic\",\"parent\":1", "\"parent\" has to be a text"},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":\"nic\",\"parent\":\"gpu0\"",
         "\"gpu0\", which does not come before"},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":\"nic\",\"parent\":\"nic0\"", "does not come before"},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":\"toaster\",\"parent\":\"machine\"",
         "\"kind\" cannot be \"toaster\""},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":\"switch\",\"parent\":\"machine\"",
         "\"switch\" cannot be added"},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":\"machine\",\"parent\":\"machine\"",
         "the machine, and nothing else"},
        {"\"kind\":\"nic\",\"parent\":\"machine\"", "\"kind\":7,\"parent\":\"machine\"", "\"kind\" has to be a text"},
        {"\"name\":\"nic0\",\"kind\"", "\"name\":\"nic1\",\"kind\"", "has to be \"nic0\""},
        {"\"name\":\"nic0\",\"kind\"", "\"kind\"", "\"name\" has to be a text"},
        {"\"name\":\"nic0:2\",\"kind\"", "\"name\":\"nic0:1\",\"kind\"", "has a port 1 already"},
        {"\"name\":\"nic0:2\",\"kind\"", "\"name\":\"nic0:0\",\"kind\"", "1 to 65535"},
        {"\"name\":\"nic0:2\",\"kind\"", "\"name\":\"nic0:65536\",\"kind\"", "1 to 65535"},
        {"\"name\":\"nic0:2\",\"kind\"", "\"name\":\"nic0:4294967298\",\"kind\"", "\"name\" has to be"},
        {"\"name\":\"nic0:2\",\"kind\"", "\"name\":\"nic0:02\",\"kind\"", "\"name\" has to be \"nic0:2\""},
        {"\"name\":\"nic0:2\",\"kind\":\"port\",\"parent\":\"nic0\"",
         "\"name\":\"nic0:2\",\"kind\":\"port\",\"parent\":\"machine\"", "a port is on a NIC"},
    };

    (void)state;
    REFUSE_EACH(changes);
}

static void bad_attributes_are_refused(void **state)
{
    static const struct change changes[] = {
        {"\"kind\":\"nic\"", "\"colour\":\"red\",\"kind\":\"nic\"", "\"colour\" is not known"},
        {"\"kind\":\"nic\"", "\"serial\":\"1\",\"kind\":\"nic\"", "\"serial\" belongs to the host"},
        {"\"kind\":\"nic\"", "\"model\":1,\"kind\":\"nic\"", "\"model\" has to be a text"},
        {"\"kind\":\"nic\"", "\"model\":\"a\\u001b\",\"kind\":\"nic\"", "control character"},
        {"\"kind\":\"nic\"", "\"lanes\":\"1\",\"kind\":\"nic\"", "\"lanes\" has to be a whole number"},
        {"\"kind\":\"nic\"", "\"lanes\":-1,\"kind\":\"nic\"", "\"lanes\" has to be a whole number"},
        {"\"kind\":\"nic\"", "\"lanes\":1.5,\"kind\":\"nic\"", "\"lanes\" has to be a whole number"},
        {"\"guid\":\"0x", "\"guid\":\"0X", "\"guid\" has to be a text of \"0x\""},
        {"\"guid\":\"0xfe", "\"guid\":\"0xFE", "\"guid\" has to be a text of \"0x\""},
        {"\"guid\":\"0xfe", "\"guid\":\"0x e", "\"guid\" has to be a text of \"0x\""},
        {"\"guid\":\"0xfe", "\"guid\":1,\"node_guid2\":\"", "\"guid\" has to be a text"},
        {"\"gids\":[", "\"gids\":1,\"gids2\":[", "\"gids\" has to be an array"},
        {"{\"index\":0,", "{\"index\":-1,", "\"index\" has to be a whole number"},
        {"{\"index\":0,", "{\"index\":4294967296,", "from 0 to 4294967295"},
        {"{\"index\":0,", "{\"index\":0,\"x\":1,", "\"x\" is not known"},
        {"\"gid\":\"fe80::1\"", "\"gid\":\"fe80::g\"", "\"fe80::g\" is not a GID"},
        {"\"gid\":\"fe80::1\"", "\"gid\":\"10.0.0.1\"", "is not a GID"},
        {"\"type\":\"IB\"", "\"type\":\"iWARP\"", "\"type\" cannot be \"iWARP\""},
        {"{\"index\":0,\"gid\":\"fe80::1\",\"type\":\"IB\"}", "7", "has to be an object"},
    };

    (void)state;
    REFUSE_EACH(changes);
}

static void bad_links_are_refused(void **state)
{
    static const struct change changes[] = {
        {"\"kind\":\"platform\"", "\"kind\":\"rope\"", "shapes[0].links[0]: \"kind\" cannot be \"rope\""},
        {"\"kind\":\"platform\"", "\"kind\":\"network\"", "network links stand under \"cables\""},
        {"\"kind\":\"platform\"", "\"length\":1,\"kind\":\"platform\"", "\"length\" is not known"},
        {"\"ends\":[\"nic0\",\"machine\"]", "\"ends\":[\"nic0\",\"gpu0\"]", "\"gpu0\", which the shape does not have"},
        {"\"ends\":[\"nic0\",\"machine\"]", "\"ends\":[\"nic0\",\"nic0\"]", "two different objects"},
        {"\"ends\":[\"nic0\",\"machine\"]", "\"ends\":[\"nic0\"]", "array of two texts"},
        {"\"ends\":[\"nic0\",\"machine\"]", "\"ends\":[\"nic0\",\"machine\",\"nic0\"]", "array of two texts"},
        {"\"ends\":[\"nic0\",\"machine\"]", "\"ends\":[\"nic0\",1]", "array of two texts"},
        {"\"ends\":[\"nic0\",\"machine\"]", "\"ends\":\"nic0\"", "array of two texts"},
        {"\"ends\":[\"nic0\",\"machine\"],\"count\":1", "\"ends\":[\"nic0\",\"machine\"],\"count\":0",
         "count of at least 1"},
        {"\"ends\":[\"nic0\",\"machine\"],\"count\":1", "\"ends\":[\"nic0\",\"machine\"],\"count\":null",
         "\"count\" has to be a whole number"},
        {"\"ends\":[\"nic0\",\"machine\"],\"count\":1", "\"ends\":[\"nic0\",\"machine\"]",
         "\"count\" has to be a whole number"},
        {"\"width\":null", "\"width\":-4", "\"width\" has to be a whole number"},
        {"\"width\":null", "\"width\":4294967296", "\"width\" has to be a whole number from 0 to 4294967295"},
        {"\"nominal_Bps\":null", "\"nominal_Bps\":1.5", "\"nominal_Bps\" has to be a whole number"},
        {"\"capable_Bps\":null", "\"capable_Bps\":true", "\"capable_Bps\" has to be a whole number"},
    };

    (void)state;
    REFUSE_EACH(changes);
}

static void bad_hosts_are_refused(void **state)
{
    static const struct change changes[] = {
        {"{\"name\":\"odd\",\"shape\":0", "{\"name\":\"odd\",\"shape\":2",
         "hosts[0]: \"shape\" is 2, but there are 2 shapes"},
        {"{\"name\":\"odd\",\"shape\":0", "{\"name\":\"odd\",\"shape\":-1", "\"shape\" has to be a whole number"},
        {"{\"name\":\"odd\",\"shape\":0", "{\"name\":\"odd\"", "\"shape\" has to be a whole number"},
        {"{\"name\":\"odd\",\"shape\":0", "{\"name\":\"\",\"shape\":0", "cannot be the name of a host"},
        {"{\"name\":\"odd\",\"shape\":0", "{\"name\":\"a/b\",\"shape\":0", "\"a/b\" cannot be the name of a host"},
        {"{\"name\":\"odd\",\"shape\":0", "{\"name\":null,\"shape\":0", "\"name\" has to be a text"},
        {"{\"name\":\"odd\",\"shape\":0", "{\"rack\":1,\"name\":\"odd\",\"shape\":0",
         "hosts[0]: \"rack\" is not known"},
        {"{\"name\":\"b\",\"shape\":1", "{\"name\":\"a\",\"shape\":1",
         "hosts[2]: there are two hosts or switches named \"a\""},
        {"{\"name\":\"a\",\"shape\":1,\"objects\":{", "{\"name\":\"a\",\"shape\":1,\"objects\":{\"gpu9\":{},",
         "\"gpu9\", which is no object"},
        {"{\"name\":\"a\",\"shape\":1,\"objects\":{", "{\"name\":\"a\",\"shape\":1,\"objects\":{\"gpu1\":1,",
         "\"gpu1\", which is no object"},
        {"{\"name\":\"a\",\"shape\":1,\"objects\":{",
         "{\"name\":\"a\",\"shape\":1,\"objects\":{\"gpu1\":{\"model\":\"x\"},", "\"model\" belongs to the shape"},
        {"{\"name\":\"a\",\"shape\":1,\"objects\":{",
         "{\"name\":\"a\",\"shape\":1,\"objects\":{\"gpu1\":{\"colour\":1},", "\"colour\" is not known"},
    };

    (void)state;
    REFUSE_EACH(changes);
    refuse_text(
        "{\"format\":\"gputopo-map\",\"version\":1,\"producer\":\"x\",\"shapes\":[{}],\"hosts\":[],\"switches\":[],"
        "\"cables\":[],\"measurements\":[],\"findings\":[]}",
        GTOPO_EFORMAT, "shapes[0]: no host has this shape");
}

static void bad_switches_and_cables_are_refused(void **state)
{
    static const struct change changes[] = {
        {"{\"name\":\"spine\"", "{\"name\":\"leaf\"", "switches[1]: there are two"},
        {"{\"name\":\"spine\"", "{\"name\":7", "switches[1]: \"name\""},
        {"{\"name\":\"spine\"}", "\"spine\"", "switches[1]: has to be an object"},
        {"{\"name\":\"spine\"", "{\"colour\":7,\"name\":\"spine\"", "\"colour\" is not known"},
        {"\"ends\":[\"a/nic0:1\",\"leaf:1\"]", "\"ends\":[\"a/nic0\",\"leaf:1\"]",
         "cables[0]: a network link ends at a port or a switch"},
        {"\"ends\":[\"a/nic0:1\",\"leaf:1\"]", "\"ends\":[\"z/nic0:1\",\"leaf:1\"]", "cables[0]: no host or switch"},
        {"\"ends\":[\"a/nic0:1\",\"leaf:1\"]", "\"ends\":[\"a/nic0:9\",\"leaf:1\"]", "has no \"nic0:9\""},
        {"\"ends\":[\"a/nic0:1\",\"leaf:1\"]", "\"ends\":[\"a/nic0:1\",\"leaf:65536\"]",
         "not the address of a switch's port"},
        {"\"ends\":[\"a/nic0:1\",\"leaf:1\"]", "\"ends\":[\"a/nic0:1@nic1:1\",\"leaf:1\"]", "cables[0]"},
        {"\"kind\":\"network\"", "\"kind\":\"pcie\"", "a cable is of kind \"network\""},
    };

    (void)state;
    REFUSE_EACH(changes);
}

static void bad_measurements_are_refused(void **state)
{
    static const struct change changes[] = {
        {"\"from\":\"a/numa0@nic0:1\"", "\"from\":\"a/numa9@nic0:1\"", "measurements[0]: \"a/numa9@nic0:1\""},
        {"\"from\":\"a/numa0@nic0:1\"", "\"from\":\"a/nic0@nic0:1\"", "a nic has no memory"},
        {"\"from\":\"a/numa0@nic0:1\"", "\"from\":\"a/numa0@nic0\"", "a port or a package"},
        {"\"from\":\"a/numa0@nic0:1\"", "\"from\":7", "\"from\" has to be a text"},
        {"\"provenance\":\"measured\"", "\"provenance\":\"guessed\"", "\"provenance\" cannot be \"guessed\""},
        {"\"bandwidth_Bps\":{", "\"bandwidth\":{", "\"bandwidth\" is not known"},
        {"\"bandwidth_Bps\":{",
         "\"latency_ns\":{\"median\":1,\"low\":1,\"high\":1,\"confidence\":0.95},\"bandwidth_Bps\":{", "both"},
        {"\"median\":1000000000", "\"median\":10000000000", "low <= median <= high"},
        {"\"median\":1000000000", "\"median\":-1", "low <= median <= high"},
        {"\"median\":1000000000", "\"median\":null", "\"median\" has to be a number"},
        {"\"median\":1000000000", "\"median\":\"1\"", "\"median\" has to be a number"},
        {"\"confidence\":0.95", "\"confidence\":0.9", "\"confidence\" has to be 0.95"},
        {"\"confidence\":0.95", "\"confidence\":0.95,\"mean\":1", "\"mean\" is not known"},
        {"\"operation\":\"write\"", "\"operation\":\"\"", "needs an operation"},
        {"\"transport\":\"verbs\"", "\"transport\":null", "\"transport\" has to be a text"},
        {"\"method\":\"64 messages in flight\"", "\"method\":64", "\"method\" has to be a text"},
        {"\"message_B\":65536", "\"message_B\":-1", "\"message_B\" has to be a whole number"},
        {"\"depth\":64", "\"depth\":4294967296", "\"depth\" has to be a whole number"},
        {"\"samples\":100", "\"samples\":0", "samples"},
        {"\"verified\":true", "\"verified\":1", "\"verified\" has to be true or false"},
        {"\"time_unix_s\":1700000000", "\"time_unix_s\":-1", "\"time_unix_s\" has to be a whole number"},
        {"\"time_unix_s\":1700000000", "\"time_unix_s\":1,\"weather\":1", "\"weather\" is not known"},
    };

    (void)state;
    REFUSE_EACH(changes);
}

/* Of what a measurement says only where it is not the usual; the good map has each once. */
static void bad_exceptions_are_refused(void **state)
{
    static const struct change changes[] = {
        {"\"two_way\":{", "\"two_way\":1,\"x\":{", "measurements[3]: \"x\" is not known"},
        {"\"two_way\":{", "\"two_way\":{\"third\":1,", "\"third\" is not known"},
        {"\"two_way\":{\"forward\":625000000,\"reverse\":375000000}", "\"two_way\":true", "has to be an object"},
        {"\"two_way\":{\"forward\":625000000,\"reverse\":375000000}", "\"two_way\":null", "has to be an object"},
        {"\"forward\":625000000,", "", "\"forward\" has to be a number above 0"},
        {"\"forward\":625000000", "\"forward\":1000000001", "each direction of a two-way measurement"},
        {"\"reverse\":375000000", "\"reverse\":0", "\"reverse\" has to be a number above 0"},
        {"\"reverse\":375000000", "\"reverse\":\"1\"", "\"reverse\" has to be a number above 0"},
        {"\"time_unix_s\":null", "\"time_unix_s\":null,\"two_way\":{\"forward\":1,\"reverse\":1}",
         "only a bandwidth is measured two-way"},
        {"\"p99_ns\":1500.125", "\"p99_ns\":1200.25", "median <= 99 % <= 99.9 %"},
        {"\"p99_ns\":1500.125", "\"p99_ns\":0", "\"p99_ns\" has to be a number above 0"},
        {"\"p99_ns\":1500.125,", "", "median <= 99 % <= 99.9 %"},
        {"\"p999_ns\":90000.0", "\"p999_ns\":1500", "median <= 99 % <= 99.9 %"},
        {"\"p999_ns\":90000.0", "\"p999_ns\":null", "\"p999_ns\" has to be a number above 0"},
        {"\"time_unix_s\":1700000000", "\"time_unix_s\":1700000000,\"p99_ns\":1e9", "only a latency has percentiles"},
        {"\"from_way\":\"dma-buf\"", "\"from_way\":\"\"", "\"from_way\" has to say something"},
        {"\"from_way\":\"dma-buf\"", "\"from_way\":null", "\"from_way\" has to be a text"},
        {"\"to_way\":\"staged\"", "\"to_way\":\"\\u0007\"", "control character"},
        {"\"concurrent\":8", "\"concurrent\":1", "\"concurrent\" has to be 2 or more"},
        {"\"concurrent\":8", "\"concurrent\":4294967296", "\"concurrent\" has to be a whole number"},
        {"\"concurrent\":8", "\"concurrent\":null", "\"concurrent\" has to be a whole number"},
    };

    (void)state;
    REFUSE_EACH(changes);
}

static void bad_findings_are_refused(void **state)
{
    static const struct change changes[] = {
        {"\"rule\":\"port-down\"", "\"rule\":\"\"", "findings[0]: a finding needs a rule"},
        {"\"rule\":\"port-down\"", "\"rule\":null", "\"rule\" has to be a text"},
        {"\"severity\":\"fault\"", "\"severity\":\"fatal\"", "\"severity\" cannot be \"fatal\""},
        {"\"object\":\"b/nic1:1\"", "\"object\":\"b/nic7:1\"", "findings[0]: \"b/nic7:1\""},
        {"\"object\":\"b/nic1:1\"", "\"object\":\"b/gpu0@nic1:1\"", "findings[0]"},
        {"\"object\":\"leaf\"", "\"object\":\"leaf:3\"", "findings[1]"},
        {"\"object\":\"b/nic1:1\"", "\"object\":1", "\"object\" has to be a text"},
        {"\"severity\":\"fault\"", "\"cost\":1,\"severity\":\"fault\"", "\"cost\" is not known"},
        {"\"text\":\"b/nic1:1 has no link\"", "\"text\":\"\\u001b[2J\"", "control character"},
    };

    (void)state;
    REFUSE_EACH(changes);
}

/* A key from the file goes into the message, and the message to a terminal. */
static void a_message_about_a_bad_key_is_clean(void **state)
{
    (void)state;
    refuse_text("{\"format\":\"gputopo-map\",\"version\":1,\"\\u001b[2J\":1}", GTOPO_EFORMAT, "\"?[2J\" is not known");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_json_is_refused_with_its_line),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(a_newer_version_names_both_versions),
        cmocka_unit_test(what_is_no_map_is_refused),
        cmocka_unit_test(bad_shapes_are_refused),
        cmocka_unit_test(bad_attributes_are_refused),
        cmocka_unit_test(bad_links_are_refused),
        cmocka_unit_test(bad_hosts_are_refused),
        cmocka_unit_test(bad_switches_and_cables_are_refused),
        cmocka_unit_test(bad_measurements_are_refused),
        cmocka_unit_test(bad_exceptions_are_refused),
        cmocka_unit_test(bad_findings_are_refused),
        cmocka_unit_test(a_message_about_a_bad_key_is_clean),
    };

    return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
