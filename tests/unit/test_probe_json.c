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
        cmocka_unit_test(a_stream_that_refuses_is_told_of),
    };

    return cmocka_run_group_tests_name("probe_json", tests, NULL, NULL);
}
