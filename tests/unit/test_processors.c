/* SPDX-License-Identifier: Apache-2.0 */
/* Binding threads to the processors of a node, whole or by halves. */
#include "bench/memory.h"
#include <setjmp.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static cpu_set_t bound(enum gtopo_share share)
{
    struct gtopo_affinity before = {0};
    struct gtopo_error error;
    int one_processor = -1, processors;
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    processors = CPU_COUNT(&set);
    assert_int_equal(gtopo_affinity_save(&before, &error), 0);
    assert_int_equal(gtopo_memory_bind_thread(GTOPO_NUMA_ANY, share, &one_processor, &error), 0);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    gtopo_affinity_restore(&before);
    assert_int_equal(one_processor, processors == 1);
    return set;
}

static void halves_are_apart_and_make_the_whole(void **state)
{
    cpu_set_t all = bound(GTOPO_SHARE_ALL), first = bound(GTOPO_SHARE_FIRST_HALF);
    cpu_set_t second = bound(GTOPO_SHARE_SECOND_HALF), common, joined;

    (void)state;
    if (CPU_COUNT(&all) < 2) {
        assert_true(CPU_EQUAL(&first, &all) && CPU_EQUAL(&second, &all));
        return;
    }
    CPU_AND(&common, &first, &second);
    CPU_OR(&joined, &first, &second);
    assert_int_equal(CPU_COUNT(&common), 0);
    assert_true(CPU_EQUAL(&joined, &all));
    assert_true(CPU_COUNT(&first) > 0 && CPU_COUNT(&second) > 0);
}

static void a_thread_gets_its_processors_back(void **state)
{
    cpu_set_t before, after;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    bound(GTOPO_SHARE_SECOND_HALF);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void a_node_that_is_not_there_is_missing(void **state)
{
    struct gtopo_error error;

    (void)state;
    assert_int_equal(gtopo_memory_bind_thread(1000, GTOPO_SHARE_ALL, NULL, &error), GTOPO_EMISSING);
    assert_non_null(error.hint[0] ? error.hint : NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_apart_and_make_the_whole),
        cmocka_unit_test(a_thread_gets_its_processors_back),
        cmocka_unit_test(a_node_that_is_not_there_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
