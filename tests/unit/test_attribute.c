/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an object: values, unknown values, identity. */
#include "build.h"
#include "lib/map.h"

static struct gtopo_error error;

static struct gtopo_map *one_port(void)
{
    struct gtopo_map *map = build_map();

    build_host(map, "a", "nic0 nic0:1<nic0 gpu0");
    return map;
}

static void every_attribute_has_a_key_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GTOPO_ATTRIBUTES; i++) {
        assert_non_null(gtopo_attribute_key(i));
        assert_int_equal(gtopo_attribute_of_key(gtopo_attribute_key(i)), i);
    }
    assert_null(gtopo_attribute_key(GTOPO_ATTRIBUTES));
    assert_int_equal(gtopo_attribute_of_key("colour"), GTOPO_ATTRIBUTES);
    assert_int_equal(gtopo_attribute_type(GTOPO_ATTRIBUTES), GTOPO_VALUE_NUMBER);
}

/* Every GID table is of one host; sharing shapes relies on it. */
static void gid_tables_are_identity(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GTOPO_ATTRIBUTES; i++)
        if (gtopo_attribute_type(i) == GTOPO_VALUE_GIDS || gtopo_attribute_type(i) == GTOPO_VALUE_ID)
            assert_true(gtopo_attribute_is_identity(i));
}

static void every_enumerated_value_has_a_word(void **state)
{
    (void)state;
    for (unsigned i = 0; i < GTOPO_OBJECT_KINDS; i++)
        assert_string_not_equal(gtopo_object_kind_name(i), "?");
    for (unsigned i = 0; i < GTOPO_LINK_KINDS; i++)
        assert_string_not_equal(gtopo_link_kind_name(i), "?");
    for (unsigned i = 0; i < GTOPO_PROVENANCES; i++)
        assert_string_not_equal(gtopo_provenance_name(i), "?");
    for (unsigned i = 0; i < GTOPO_SEVERITIES; i++)
        assert_string_not_equal(gtopo_severity_name(i), "?");
    assert_string_equal(gtopo_object_kind_name(GTOPO_OBJECT_KINDS), "?");
    assert_string_equal(gtopo_link_kind_name(-1), "?");
    assert_string_equal(gtopo_gid_type_name(GTOPO_GID_ROCE_V2), "RoCE v2");
    assert_string_equal(gtopo_gid_type_name(3), "?");
    assert_string_equal(gtopo_metric_key(GTOPO_METRICS), "?");
    assert_string_equal(gtopo_path_class_name(GTOPO_PATH_UNKNOWN), "?");
    assert_string_equal(gtopo_path_class_name(GTOPO_PATH_NONE), "-");
}

static void a_value_is_read_back_and_replaced(void **state)
{
    struct gtopo_map *map = one_port();
    uint32_t gpu = at(map, "a/gpu0");
    uint64_t number = 0;

    (void)state;
    assert_ok(gtopo_map_set_text(map, gpu, GTOPO_ATTRIBUTE_MODEL, "old", &error));
    assert_ok(gtopo_map_set_text(map, gpu, GTOPO_ATTRIBUTE_MODEL, "H200", &error));
    assert_ok(gtopo_map_set_number(map, gpu, GTOPO_ATTRIBUTE_NUMA, 0, &error));
    assert_ok(gtopo_map_set_number(map, gpu, GTOPO_ATTRIBUTE_MEMORY_B, INT64_MAX, &error));
    assert_string_equal(gtopo_map_text(map, gpu, GTOPO_ATTRIBUTE_MODEL), "H200");
    assert_int_equal(gtopo_map_number(map, gpu, GTOPO_ATTRIBUTE_NUMA, &number), 1);
    assert_int_equal(number, 0);
    assert_int_equal(gtopo_map_number(map, gpu, GTOPO_ATTRIBUTE_MEMORY_B, &number), 1);
    assert_int_equal(number, INT64_MAX);
    gtopo_map_free(map);
}

static void identifiers_use_all_64_bits(void **state)
{
    struct gtopo_map *map = one_port();
    uint64_t number = 0;

    (void)state;
    assert_ok(gtopo_map_set_number(map, at(map, "a/nic0:1"), GTOPO_ATTRIBUTE_GUID, UINT64_MAX, &error));
    assert_int_equal(gtopo_map_number(map, at(map, "a/nic0:1"), GTOPO_ATTRIBUTE_GUID, &number), 1);
    assert_int_equal(number, UINT64_MAX);
    gtopo_map_free(map);
}

static void what_was_never_set_leaves_the_caller_alone(void **state)
{
    struct gtopo_map *map = one_port();
    uint64_t number = 42;
    size_t count = 42;

    (void)state;
    assert_int_equal(gtopo_map_number(map, at(map, "a/gpu0"), GTOPO_ATTRIBUTE_NUMA, &number), 0);
    assert_int_equal(gtopo_map_number(map, 999, GTOPO_ATTRIBUTE_NUMA, &number), 0);
    assert_int_equal(gtopo_map_number(map, 0, GTOPO_ATTRIBUTES, &number), 0);
    assert_int_equal(number, 42);
    assert_null(gtopo_map_text(map, at(map, "a/gpu0"), GTOPO_ATTRIBUTE_MODEL));
    assert_null(gtopo_map_gids(map, at(map, "a/nic0:1"), &count));
    assert_int_equal(count, 0);
    gtopo_map_free(map);
}

static void unknown_reads_as_not_known(void **state)
{
    struct gtopo_map *map = one_port();
    uint32_t gpu = at(map, "a/gpu0");
    uint64_t number;

    (void)state;
    assert_ok(gtopo_map_set_number(map, gpu, GTOPO_ATTRIBUTE_NUMA, 1, &error));
    assert_ok(gtopo_map_set_unknown(map, gpu, GTOPO_ATTRIBUTE_NUMA, &error));
    assert_ok(gtopo_map_set_unknown(map, gpu, GTOPO_ATTRIBUTE_MODEL, &error));
    assert_int_equal(gtopo_map_number(map, gpu, GTOPO_ATTRIBUTE_NUMA, &number), 0);
    assert_null(gtopo_map_text(map, gpu, GTOPO_ATTRIBUTE_MODEL));
    assert_ok(gtopo_map_set_number(map, gpu, GTOPO_ATTRIBUTE_NUMA, 1, &error));
    assert_int_equal(gtopo_map_number(map, gpu, GTOPO_ATTRIBUTE_NUMA, &number), 1);
    gtopo_map_free(map);
}

static void a_value_of_another_type_is_refused(void **state)
{
    struct gtopo_map *map = one_port();
    uint32_t port = at(map, "a/nic0:1");
    uint64_t number;
    struct gtopo_gid gid = {.type = 3};

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_number(map, port, GTOPO_ATTRIBUTE_MODEL, 1, &error));
    assert_contains(error.message, "model");
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_text(map, port, GTOPO_ATTRIBUTE_LID, "1", &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_text(map, port, GTOPO_ATTRIBUTE_GIDS, "1", &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_number(map, port, GTOPO_ATTRIBUTES, 1, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_unknown(map, port, GTOPO_ATTRIBUTES, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_gids(map, port, &gid, 1, &error));
    assert_ok(gtopo_map_set_number(map, port, GTOPO_ATTRIBUTE_LID, 1, &error));
    assert_null(gtopo_map_text(map, port, GTOPO_ATTRIBUTE_LID));
    assert_ok(gtopo_map_set_text(map, port, GTOPO_ATTRIBUTE_MAC, "x", &error));
    assert_int_equal(gtopo_map_number(map, port, GTOPO_ATTRIBUTE_MAC, &number), 0);
    gtopo_map_free(map);
}

static void a_value_that_no_file_can_hold_is_refused(void **state)
{
    struct gtopo_map *map = one_port();
    struct gtopo_gid *many = calloc(65536, sizeof *many);

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_number(map, 0, GTOPO_ATTRIBUTE_MEMORY_B, UINT64_C(1) << 63, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_text(map, 0, GTOPO_ATTRIBUTE_OS, "a\tb", &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_text(map, 0, GTOPO_ATTRIBUTE_OS, "\xc3", &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_text(map, 999, GTOPO_ATTRIBUTE_OS, "x", &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_set_gids(map, at(map, "a/nic0:1"), many, 65536, &error));
    free(many);
    gtopo_map_free(map);
}

static void a_gid_table_is_kept_line_by_line(void **state)
{
    struct gtopo_map *map = one_port();
    struct gtopo_gid gids[2] = {{0, GTOPO_GID_IB, {0xfe, 0x80}},
                                {3, GTOPO_GID_ROCE_V2, {[10] = 0xff, 0xff, 10, 0, 0, 1}}};
    const struct gtopo_gid *read;
    size_t count;

    (void)state;
    assert_ok(gtopo_map_set_gids(map, at(map, "a/nic0:1"), gids, 2, &error));
    read = gtopo_map_gids(map, at(map, "a/nic0:1"), &count);
    assert_int_equal(count, 2);
    assert_memory_equal(read, gids, sizeof gids);
    assert_ok(gtopo_map_set_gids(map, at(map, "a/nic0:1"), NULL, 0, &error));
    assert_null(gtopo_map_gids(map, at(map, "a/nic0:1"), &count));
    gtopo_map_free(map);
}

/* What was read from a map may be given to it again, though the map moves it while it grows. */
static void a_gid_table_of_the_map_itself_can_be_set(void **state)
{
    struct gtopo_map *map = one_port();
    struct gtopo_gid gids[5] = {
        {0, GTOPO_GID_IB, {0xfe, 0x80}}, {.index = 1}, {.index = 2}, {.index = 3}, {.index = 4}};
    const struct gtopo_gid *read;
    size_t count;

    (void)state;
    assert_ok(gtopo_map_set_gids(map, at(map, "a/nic0:1"), gids, 5, &error));
    for (int i = 0; i < 20; i++) {
        read = gtopo_map_gids(map, at(map, "a/nic0:1"), &count);
        assert_ok(gtopo_map_set_gids(map, at(map, "a/nic0:1"), read, count, &error));
    }
    read = gtopo_map_gids(map, at(map, "a/nic0:1"), &count);
    assert_memory_equal(read, gids, sizeof gids);
    gtopo_map_free(map);
}

static void a_switch_has_values_of_its_own(void **state)
{
    struct gtopo_map *map = one_port();
    uint32_t leaf = build_switch(map, "leaf"), spine = build_switch(map, "spine");

    (void)state;
    assert_ok(gtopo_map_set_text(map, leaf, GTOPO_ATTRIBUTE_MODEL, "QM9700", &error));
    assert_ok(gtopo_map_set_number(map, leaf, GTOPO_ATTRIBUTE_GUID, 1, &error));
    build_seal(map);
    assert_ok(gtopo_map_set_text(map, leaf, GTOPO_ATTRIBUTE_FIRMWARE, "31.2012", &error));
    assert_string_equal(gtopo_map_text(map, leaf, GTOPO_ATTRIBUTE_MODEL), "QM9700");
    assert_null(gtopo_map_text(map, spine, GTOPO_ATTRIBUTE_MODEL));
    gtopo_map_free(map);
}

static void values_that_differ_make_another_shape_and_identity_does_not(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    for (int i = 0; i < 4; i++) {
        build_host(map, (const char *[]){"a", "b", "c", "d"}[i], "gpu0");
        assert_ok(
            gtopo_map_set_text(map, build_find(map, "gpu0"), GTOPO_ATTRIBUTE_MODEL, i == 2 ? "H100" : "H200", &error));
        assert_ok(gtopo_map_set_text(map, build_find(map, "gpu0"), GTOPO_ATTRIBUTE_SERIAL,
                                     (const char *[]){"1", "2", "3", "4"}[i], &error));
    }
    assert_ok(gtopo_map_set_unknown(map, at(map, "d/gpu0"), GTOPO_ATTRIBUTE_NUMA, &error));
    build_seal(map);
    assert_int_equal(gtopo_map_shape_count(map), 3);
    assert_int_equal(gtopo_map_host_shape(map, 0), gtopo_map_host_shape(map, 1));
    assert_string_equal(gtopo_map_text(map, at(map, "b/gpu0"), GTOPO_ATTRIBUTE_SERIAL), "2");
    assert_string_equal(gtopo_map_text(map, at(map, "c/gpu0"), GTOPO_ATTRIBUTE_MODEL), "H100");
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attribute_has_a_key_of_its_own),
        cmocka_unit_test(gid_tables_are_identity),
        cmocka_unit_test(every_enumerated_value_has_a_word),
        cmocka_unit_test(a_value_is_read_back_and_replaced),
        cmocka_unit_test(identifiers_use_all_64_bits),
        cmocka_unit_test(what_was_never_set_leaves_the_caller_alone),
        cmocka_unit_test(unknown_reads_as_not_known),
        cmocka_unit_test(a_value_of_another_type_is_refused),
        cmocka_unit_test(a_value_that_no_file_can_hold_is_refused),
        cmocka_unit_test(a_gid_table_is_kept_line_by_line),
        cmocka_unit_test(a_gid_table_of_the_map_itself_can_be_set),
        cmocka_unit_test(a_switch_has_values_of_its_own),
        cmocka_unit_test(values_that_differ_make_another_shape_and_identity_does_not),
    };

    return cmocka_run_group_tests_name("attribute", tests, NULL, NULL);
}
