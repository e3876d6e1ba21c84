/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map of 65,536 hosts that share one shape: filling, sealing, writing and reading it. Time and memory are printed,
 * not judged; anything quadratic in the hosts runs into the watchdog.
 */
#include "build.h"
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HOSTS 65536
#define WATCHDOG_S 120

static struct gtopo_error error;

/* Eight GPUs and eight NICs behind four switches on two sockets, as such machines are. */
static void build_first(struct gtopo_map *map)
{
    build_host(map, "host0", "package0 package1 package0=package1@60 numa0<package0@200 numa1<package1@200");
    for (int half = 0; half < 4; half++) {
        char words[512];

        snprintf(words, sizeof words,
                 "host-bridge%d<package%d pci-switch%d<host-bridge%d@64 gpu%d<pci-switch%d@64 gpu%d<pci-switch%d@64 "
                 "nic%d<pci-switch%d@64 nic%d:1<nic%d@50 nic%d<pci-switch%d@64 nic%d:1<nic%d@50",
                 half, half / 2, half, half, 2 * half, half, 2 * half + 1, half, 2 * half, half, 2 * half, 2 * half,
                 2 * half + 1, half, 2 * half + 1, 2 * half + 1);
        build_more(map, words);
    }
}

static void name_ports(struct gtopo_map *map, uint32_t host)
{
    uint32_t first, count;

    assert_ok(gtopo_map_host_objects(map, host, &first, &count, &error));
    for (uint32_t id = first; id < first + count; id++)
        if (build_kind_of(map, id) == GTOPO_PORT)
            assert_ok(gtopo_map_set_number(map, id, GTOPO_ATTRIBUTE_GUID, UINT64_C(0x0c42a10300000000) + id, &error));
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double report(const char *what, double begun)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    print_message("%d hosts, %s: %.2f s, at most %ld MiB so far\n", HOSTS, what, now_s() - begun,
                  usage.ru_maxrss / 1024);
    return now_s();
}

static void a_cluster_of_65536_hosts_is_filled_written_and_read(void **state)
{
    struct gtopo_map *map = build_map(), *read;
    char *text;
    double begun = now_s();
    char name[32];

    (void)state;
    alarm(WATCHDOG_S);
    build_first(map);
    name_ports(map, 0);
    for (uint32_t host = 1; host < HOSTS; host++) {
        snprintf(name, sizeof name, "host%u", host);
        name_ports(map, build_host_like(map, name, 0));
    }
    begun = report("filled", begun);
    build_seal(map);
    begun = report("sealed", begun);
    assert_int_equal(gtopo_map_shape_count(map), 1);
    assert_ok(gtopo_map_save(map, "/dev/null", &error));
    begun = report("written", begun);
    text = build_write(map);
    gtopo_map_free(map);
    begun = now_s();
    read = build_read(text);
    free(text);
    report("read", begun);
    assert_int_equal(gtopo_map_host_count(read), HOSTS);
    assert_int_equal(gtopo_map_shape_count(read), 1);
    assert_int_equal(build_kind_of(read, at(read, "host65535/nic7:1")), GTOPO_PORT);
    gtopo_map_free(read);
    alarm(0);
}

/* The same hosts, each filled for itself: sharing has to find that they are one shape. */
static void hosts_filled_one_by_one_come_to_share_a_shape(void **state)
{
    struct gtopo_map *map = build_map();
    double begun = now_s();
    char name[32];

    (void)state;
    alarm(WATCHDOG_S);
    for (uint32_t host = 0; host < HOSTS / 16; host++) {
        snprintf(name, sizeof name, "host%u", host);
        build_host(map, name,
                   "package0 numa0<package0 host-bridge0<package0 gpu0<host-bridge0 nic0<host-bridge0 nic0:1<nic0");
    }
    build_seal(map);
    report("a sixteenth of them filled one by one and sealed", begun);
    assert_int_equal(gtopo_map_shape_count(map), 1);
    gtopo_map_free(map);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_of_65536_hosts_is_filled_written_and_read),
        cmocka_unit_test(hosts_filled_one_by_one_come_to_share_a_shape),
    };

    return cmocka_run_group_tests_name("scale", tests, NULL, NULL);
}
