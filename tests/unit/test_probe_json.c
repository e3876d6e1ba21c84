/* SPDX-License-Identifier: Apache-2.0 */
/* Results of probes as JSON. What they hold is checked against doc/probe.schema.json by tests/schema. */
#include "build.h"
#include <gputopo/probe.h>
#include <jansson.h>

static struct gtopo_error error;

struct text {
    char bytes[65536];
    size_t used, room;
};

/* Takes what there is room for, and refuses the rest. */
static int take(void *context, const void *data, size_t size)
{
    struct text *text = context;

    if (size > text->room - text->used)
        return 1;
    memcpy(text->bytes + text->used, data, size);
    text->used += size;
    return 0;
}

static int write_latency(struct text *text)
{
    static struct gtopo_probe_result result = {.median = 1250, .low = 1240, .high = 1260, .samples = 300, .p99 = 1500};
    struct gtopo_probe_options options;

    gtopo_probe_options_init(&options);
    options.metric = GTOPO_LATENCY_ns;
    options.queue_pairs = 1;
    return gtopo_probe_write_json(&options, &result, take, text, &error);
}

static void a_result_is_one_object(void **state)
{
    static struct text text = {.room = sizeof text.bytes};
    json_t *object;

    (void)state;
    assert_ok(write_latency(&text));
    object = json_loadb(text.bytes, text.used, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    assert_true(json_real_value(json_object_get(json_object_get(object, "latency_ns"), "median")) == 1250);
    assert_int_equal(json_integer_value(json_object_get(object, "depth")), 1);
    assert_true(json_is_null(json_object_get(object, "p999_ns"))); /* 0 is: not known */
    assert_null(json_object_get(object, "bandwidth_Bps"));
    assert_null(json_object_get(object, "perftest"));
    json_decref(object);
}

/* What was asked for stands in options, what came of it beside each end; what does not apply is null. */
static void what_was_used_is_told(void **state)
{
    static struct gtopo_probe_result result = {
        .median = 2,
        .low = 1,
        .high = 3,
        .samples = 300,
        .from.used = {1, 128, 100, 16, 0, 1, 2048, 3, 96, 5, 4096, "RoCE v2: same subnet"},
        .to.used = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, ""}};
    static struct text text = {.room = sizeof text.bytes};
    struct gtopo_probe_options options;
    json_t *object, *from, *wanted;

    (void)state;
    gtopo_probe_options_init(&options);
    assert_ok(gtopo_probe_write_json(&options, &result, take, &text, &error));
    object = json_loadb(text.bytes, text.used, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    from = json_object_get(json_object_get(object, "from"), "used");
    wanted = json_pack("{si, si, si, si, si, sb, si, si, ss, si, si, si}", "queue_pairs", 1, "depth", 128, "moderation",
                       100, "post_list", 16, "inline_B", 0, "relaxed_ordering", 1, "mtu_B", 2048, "gid", 3,
                       "gid_reason", "RoCE v2: same subnet", "traffic_class", 96, "service_level", 5, "page_B", 4096);
    assert_true(json_equal(from, wanted));
    assert_true(json_is_null(json_object_get(json_object_get(json_object_get(object, "to"), "used"), "mtu_B")));
    assert_true(json_is_null(json_object_get(json_object_get(object, "options"), "mtu_B")));
    json_decref(wanted);
    json_decref(object);
}

static void a_stream_that_refuses_is_told_of(void **state)
{
    static struct text text;

    (void)state;
    for (text.room = 0; text.room < 256; text.room += 17) {
        text.used = 0;
        assert_fails(GTOPO_EIO, write_latency(&text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_is_one_object),
        cmocka_unit_test(what_was_used_is_told),
        cmocka_unit_test(a_stream_that_refuses_is_told_of),
    };

    return cmocka_run_group_tests_name("probe_json", tests, NULL, NULL);
}
