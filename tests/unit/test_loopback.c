/* SPDX-License-Identifier: Apache-2.0 */
/* The affinity of a host: which probes are planned, who waits for whom, and what is made of the figures. */
#include "bench/affinity.h"
#include "bench/barrier.h"
#include "bench/plan.h"
#include "build.h"

static struct gtopo_error error;

/* Two GPUs on the first socket's switch with two NICs, a NIC without a near GPU on the second. */
#define THREE_RAILS                                                                                                    \
    "package0 package1 package0=package1@60 numa0<package0@100 numa1<package1@100 host-bridge0<package0 "              \
    "pci-switch0<host-bridge0@64 gpu0<pci-switch0@64 gpu1<pci-switch0@64 nic0<pci-switch0@32 nic0:1<nic0 "             \
    "nic1<pci-switch0@32 nic1:1<nic1 host-bridge1<package1 nic2<host-bridge1@32 nic2:1<nic2"

static void set_number(struct gtopo_map *map, const char *address, enum gtopo_attribute attribute, uint64_t value)
{
    assert_ok(gtopo_map_set_number(map, at(map, address), attribute, value, &error));
}

static void set_text(struct gtopo_map *map, const char *address, enum gtopo_attribute attribute, const char *text)
{
    assert_ok(gtopo_map_set_text(map, at(map, address), attribute, text, &error));
}

static void set_port(struct gtopo_map *map, const char *address, const char *device, const char *state)
{
    set_text(map, address, GTOPO_ATTRIBUTE_DEVICE, device);
    set_text(map, address, GTOPO_ATTRIBUTE_STATE, state);
    set_text(map, address, GTOPO_ATTRIBUTE_LINK_LAYER, "InfiniBand");
}

static void set_nodes(struct gtopo_map *map)
{
    set_number(map, "numa0", GTOPO_ATTRIBUTE_OS_INDEX, 0);
    set_number(map, "numa1", GTOPO_ATTRIBUTE_OS_INDEX, 1);
    set_text(map, "numa0", GTOPO_ATTRIBUTE_CPUS, "0-7");
    set_text(map, "numa1", GTOPO_ATTRIBUTE_CPUS, "8-15");
}

/* With GPUs that a process can ask for. */
static struct gtopo_map *three_rails(void)
{
    struct gtopo_map *map = build_map();

    build_host(map, "a", THREE_RAILS);
    set_nodes(map);
    set_port(map, "nic0:1", "mlx5_0", "active");
    set_port(map, "nic1:1", "mlx5_1", "active");
    set_port(map, "nic2:1", "mlx5_2", "active");
    set_text(map, "gpu0", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:1b:00.0");
    set_text(map, "gpu1", GTOPO_ATTRIBUTE_PCI_ADDRESS, "0000:1c:00.0");
    build_seal(map);
    return map;
}

/* A host without GPUs, two ports in these states; not sealed. */
static struct gtopo_map *two_ports(const char *state0, const char *state1)
{
    struct gtopo_map *map = build_map();

    build_host(map, "a",
               "package0 package1 package0=package1@60 numa0<package0@100 numa1<package1@100 host-bridge0<package0 "
               "nic0<host-bridge0@32 nic0:1<nic0 host-bridge1<package1 nic1<host-bridge1@32 nic1:1<nic1");
    set_nodes(map);
    set_port(map, "nic0:1", "mlx5_0", state0);
    set_port(map, "nic1:1", "mlx5_1", state1);
    return map;
}

static struct gtopo_map *two_rails(void)
{
    struct gtopo_map *map = two_ports("active", "active");

    build_seal(map);
    return map;
}

static struct gtopo_campaign_options loopback_options(void)
{
    struct gtopo_campaign_options options;

    gtopo_campaign_options_init(&options);
    options.loopback = 1;
    return options;
}

/* ---- the plan ---- */

/* "gpu0@nic0:1 bandwidth", as it is planned. */
static const char *planned(const struct gtopo_map *map, const struct gtopo_plan *plan, size_t i)
{
    static char text[GTOPO_ADDRESS_MAX + 32];
    const struct gtopo_plan_probe *probe = &plan->probes[i];
    char end[GTOPO_ADDRESS_MAX];

    assert_true(i < plan->count);
    assert_memory_equal(&probe->from.end, &probe->to.end, sizeof probe->from.end);
    assert_string_equal(probe->from.device, probe->to.device);
    snprintf(text, sizeof text, "%s %s", strchr(gtopo_end_format(map, probe->from.end, end), '/') + 1,
             probe->metric == GTOPO_LATENCY_ns ? "latency" : "bandwidth");
    return text;
}

static void every_memory_goes_through_every_port(void **state)
{
    static const char *const pairs[] = {"numa0@nic0:1", "numa1@nic0:1", "gpu0@nic0:1", "gpu1@nic0:1"};
    struct gtopo_campaign_options options = loopback_options();
    struct gtopo_map *map = three_rails();
    struct gtopo_plan plan = {0};
    char expected[64];

    (void)state;
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, 3 * 4 * 2 + 3);
    for (size_t i = 0; i < 8; i++) {
        snprintf(expected, sizeof expected, "%s %s", pairs[i / 2], i % 2 ? "latency" : "bandwidth");
        assert_string_equal(planned(map, &plan, i), expected);
        assert_int_equal(plan.probes[i].at_once, 0);
        assert_string_equal(plan.probes[i].transport, "verbs");
        assert_int_equal(plan.probes[i].operation, GTOPO_WRITE);
    }
    assert_string_equal(plan.probes[2].from.memory, "host"); /* of the far node, whose processors drive it */
    assert_int_equal(plan.probes[2].from.numa, 1);
    assert_string_equal(plan.probes[4].from.memory, "gpu:0000:1b:00.0");
    gtopo_plan_clear(&plan);
    gtopo_map_free(map);
}

static void at_once_each_port_has_its_nearest_gpu(void **state)
{
    static const char *const rails[] = {"gpu0@nic0:1 bandwidth", "gpu1@nic1:1 bandwidth"};
    struct gtopo_campaign_options options = loopback_options();
    struct gtopo_map *map = three_rails();
    struct gtopo_plan plan = {0};

    (void)state;
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(plan.probes[24 + i].at_once, 3);
        assert_string_equal(plan.probes[24 + i].from.device, i == 0 ? "mlx5_0" : i == 1 ? "mlx5_1" : "mlx5_2");
        if (i < 2) /* as near as each other, and shared by none */
            assert_string_equal(planned(map, &plan, 24 + i), rails[i]);
    }
    gtopo_plan_clear(&plan);
    gtopo_map_free(map);
}

static void without_gpus_it_has_its_nearest_node(void **state)
{
    struct gtopo_campaign_options options = loopback_options();
    struct gtopo_map *map = two_rails();
    struct gtopo_plan plan = {0};

    (void)state;
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, 2 * 2 * 2 + 2);
    assert_string_equal(planned(map, &plan, 8), "numa0@nic0:1 bandwidth");
    assert_string_equal(planned(map, &plan, 9), "numa1@nic1:1 bandwidth");
    gtopo_plan_clear(&plan);
    gtopo_map_free(map);
}

static void only_is_one_row_or_one_column(void **state)
{
    struct gtopo_campaign_options options = loopback_options();
    struct gtopo_map *map = three_rails();
    struct gtopo_plan plan = {0};

    (void)state;
    options.only = at(map, "gpu1");
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, 3 * 2);
    assert_string_equal(planned(map, &plan, 4), "gpu1@nic2:1 bandwidth");
    gtopo_plan_clear(&plan);
    options.only = at(map, "nic2");
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, 4 * 2);
    assert_string_equal(planned(map, &plan, 7), "gpu1@nic2:1 latency");
    gtopo_plan_clear(&plan);
    options.only = at(map, "host-bridge0");
    assert_fails(GTOPO_EMISSING, gtopo_plan_make(map, &options, &plan, &error));
    gtopo_map_free(map);
}

static void a_port_that_is_down_is_left_out(void **state)
{
    struct gtopo_campaign_options options = loopback_options();
    struct gtopo_map *map = two_ports("active", "down");
    struct gtopo_plan plan = {0};

    (void)state;
    build_seal(map);
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, 2 * 2); /* one port alone is not measured at once with itself */
    gtopo_plan_clear(&plan);
    gtopo_map_free(map);
    map = two_ports("down", "init");
    build_seal(map);
    assert_fails(GTOPO_ELINKDOWN, gtopo_plan_make(map, &options, &plan, &error));
    assert_null(plan.probes);
    gtopo_map_free(map);
}

static void a_host_without_ports_says_so(void **state)
{
    struct gtopo_campaign_options options = loopback_options();
    struct gtopo_map *map = build_map();
    struct gtopo_plan plan = {0};

    (void)state;
    build_host(map, "a", TWO_SOCKETS);
    set_nodes(map);
    build_seal(map);
    assert_fails(GTOPO_EMISSING, gtopo_plan_make(map, &options, &plan, &error));
    assert_contains(error.hint, "without loopback");
    options.transport = "ofi:tcp";
    assert_fails(GTOPO_EUSAGE, gtopo_plan_make(map, &options, &plan, &error));
    assert_contains(error.message, "ofi:tcp");
    gtopo_map_free(map);
}

/* Which transports a campaign knows, and what it plans with each, comes from the table of transports. */
static void transports_are_those_of_the_table(void **state)
{
    struct gtopo_campaign_options options;
    struct gtopo_map *map = two_rails();
    struct gtopo_plan plan = {0};

    (void)state;
    gtopo_campaign_options_init(&options);
    options.transport = "ofi";
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, (3 + 1) * 2); /* shm between every two nodes, tcp once */
    assert_string_equal(plan.probes[0].name, "ofi:shm");
    assert_string_equal(plan.probes[6].name, "ofi:tcp");
    assert_string_equal(plan.probes[6].from.device, "tcp");
    assert_int_equal(plan.probes[6].operation, GTOPO_SEND);
    gtopo_plan_clear(&plan);
    options.transport = "ofi:tcp";
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, 2);
    gtopo_plan_clear(&plan);
    options.transport = "verbs";
    assert_ok(gtopo_plan_make(map, &options, &plan, &error));
    assert_int_equal(plan.count, 3 * 2);
    gtopo_plan_clear(&plan);
    options.transport = "carrier-pigeon";
    assert_fails(GTOPO_EUSAGE, gtopo_plan_make(map, &options, &plan, &error));
    assert_string_equal(error.hint, "known here: verbs, ofi, ofi:shm, ofi:tcp");
    gtopo_map_free(map);
}

/* ---- the barrier ---- */

struct runner {
    pthread_t thread;
    struct gtopo_barrier *barrier;
    int fails;
    uint32_t saw; /* how many there were when it started */
};

static void *run(void *context)
{
    struct runner *runner = context;

    if (runner->fails) {
        gtopo_barrier_leave(runner->barrier);
        return NULL;
    }
    gtopo_barrier_wait(runner->barrier);
    runner->saw = runner->barrier->arrived;
    return NULL;
}

static void start_together(const int fails[4], uint32_t expected)
{
    struct gtopo_barrier barrier;
    struct runner runners[4];

    gtopo_barrier_init(&barrier, 4);
    for (int i = 0; i < 4; i++) {
        runners[i] = (struct runner){.barrier = &barrier, .fails = fails[i]};
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run, &runners[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(runners[i].thread, NULL);
        assert_int_equal(runners[i].saw, fails[i] ? 0 : expected);
    }
    assert_int_equal(barrier.arrived, expected);
    gtopo_barrier_clear(&barrier);
}

static void nobody_waits_for_those_who_left(void **state)
{
    (void)state;
    start_together((const int[4]){0, 0, 0, 0}, 4);
    start_together((const int[4]){1, 0, 0, 0}, 3);
    start_together((const int[4]){0, 1, 1, 0}, 2);
    start_together((const int[4]){0, 0, 0, 1}, 3);
    start_together((const int[4]){1, 1, 1, 1}, 0);
}

/* ---- what is made of it ---- */

static void measured(struct gtopo_map *map, const char *end, double GBps, double spread, uint32_t concurrent)
{
    struct gtopo_measurement m = build_measurement(map, end, end);

    m.median = GBps * 1e9;
    m.low = m.median * (1 - spread);
    m.high = m.median * (1 + spread);
    m.concurrent = concurrent;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
}

/* The finding that there is, or NULL when there is none; there must not be two. */
static const char *judged(struct gtopo_map *map, struct gtopo_finding *finding)
{
    uint32_t before = gtopo_map_finding_count(map);

    build_seal(map);
    assert_ok(gtopo_affinity_judge(map, 0, &error));
    if (gtopo_map_finding_count(map) == before)
        return NULL;
    assert_int_equal(gtopo_map_finding_count(map), before + 1);
    assert_ok(gtopo_map_finding(map, before, finding, &error));
    return finding->rule;
}

static void a_slow_nearest_memory_is_found(void **state)
{
    struct gtopo_map *map = two_rails();
    struct gtopo_finding finding;

    (void)state;
    measured(map, "numa0@nic0:1", 9, 0.01, 1);
    measured(map, "numa1@nic0:1", 10, 0.01, 1); /* less, but not clearly */
    assert_null(judged(map, &finding));
    measured(map, "numa1@nic1:1", 7, 0.2, 1);
    measured(map, "numa0@nic1:1", 10, 0.2, 1); /* intervals meet */
    assert_null(judged(map, &finding));
    measured(map, "numa0@nic0:1", 6, 0.01, 1);
    assert_string_equal(judged(map, &finding), "affinity-mismatch");
    assert_int_equal(finding.object, at(map, "nic0:1"));
    assert_int_equal(finding.severity, GTOPO_WARNING);
    assert_contains(finding.text, "a/numa0 is near (PHB) and does 6 GB/s");
    assert_contains(finding.text, "a/numa1 is farther (SYS) and does 10 GB/s");
    measured(map, "numa0@nic0:1", 12, 0.01, 1); /* the latest counts */
    measured(map, "numa1@nic0:1", 1, 0.01, 1);  /* far and slow is as it should be */
    assert_null(judged(map, &finding));
    gtopo_map_free(map);
}

static void the_slowest_of_the_nearest_counts(void **state)
{
    struct gtopo_map *map = three_rails();
    struct gtopo_finding finding;

    (void)state;
    measured(map, "gpu0@nic0:1", 24, 0.01, 1);
    measured(map, "gpu1@nic0:1", 3, 0.01, 1);
    measured(map, "numa0@nic0:1", 20, 0.01, 1);
    measured(map, "numa1@nic0:1", 18, 0.01, 1);
    assert_string_equal(judged(map, &finding), "affinity-mismatch");
    assert_contains(finding.text, "a/gpu1 is near (PIX)");
    assert_contains(finding.text, "a/numa0 is farther (PHB)");
    gtopo_map_free(map);
}

static void rails_that_share_are_found(void **state)
{
    struct gtopo_map *map = two_rails();
    struct gtopo_finding finding;

    (void)state;
    measured(map, "numa0@nic0:1", 10, 0.01, 1);
    measured(map, "numa1@nic1:1", 10, 0.01, 1);
    measured(map, "numa0@nic0:1", 9.5, 0.01, 2);
    assert_null(judged(map, &finding));
    measured(map, "numa1@nic1:1", 4, 0.01, 2);
    assert_string_equal(judged(map, &finding), "rails-share");
    assert_int_equal(finding.object, at(map, "nic1:1"));
    assert_contains(finding.text, "a/numa1@nic1:1 gets 4 GB/s when 2 ports run at once, 40 % of the 10 GB/s");
    gtopo_map_free(map);
    map = two_ports("active", "active");
    set_number(map, "nic1:1", GTOPO_ATTRIBUTE_VIRTUAL, 1);
    measured(map, "numa1@nic1:1", 10, 0.01, 1);
    measured(map, "numa1@nic1:1", 4, 0.01, 2);
    assert_string_equal(judged(map, &finding), "rails-share");
    assert_int_equal(finding.severity, GTOPO_NOTE); /* software: the processors are what is shared */
    gtopo_map_free(map);
}

static void what_was_measured_before_is_not_judged_again(void **state)
{
    struct gtopo_map *map = two_rails();

    (void)state;
    measured(map, "numa0@nic0:1", 1, 0.01, 1);
    measured(map, "numa1@nic0:1", 10, 0.01, 1);
    build_seal(map);
    assert_ok(gtopo_affinity_judge(map, 2, &error));
    assert_int_equal(gtopo_map_finding_count(map), 0);
    gtopo_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_memory_goes_through_every_port),
        cmocka_unit_test(at_once_each_port_has_its_nearest_gpu),
        cmocka_unit_test(without_gpus_it_has_its_nearest_node),
        cmocka_unit_test(only_is_one_row_or_one_column),
        cmocka_unit_test(a_port_that_is_down_is_left_out),
        cmocka_unit_test(a_host_without_ports_says_so),
        cmocka_unit_test(transports_are_those_of_the_table),
        cmocka_unit_test(nobody_waits_for_those_who_left),
        cmocka_unit_test(a_slow_nearest_memory_is_found),
        cmocka_unit_test(the_slowest_of_the_nearest_counts),
        cmocka_unit_test(rails_that_share_are_found),
        cmocka_unit_test(what_was_measured_before_is_not_judged_again),
    };

    return cmocka_run_group_tests_name("loopback", tests, NULL, NULL);
}
