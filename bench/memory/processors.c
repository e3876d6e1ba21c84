/* SPDX-License-Identifier: Apache-2.0 */
/* The processors of a NUMA node, and binding a thread to them. */
#include "bench/memory.h"
#include "bench/memory/node.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX (1 << 20) /* where the search for the size of the kernel's set of processors ends */

/* The first line of a file of a node, without its end. 0 or -1. */
static int read_node_file(int numa, const char *name, char *text, size_t size)
{
    char path[96];
    FILE *file;
    int status = -1;

    snprintf(path, sizeof path, GTOPO_NODES "/node%d/%s", numa, name);
    file = fopen(path, "re");
    if (!file)
        return -1;
    if (fgets(text, (int)size, file)) {
        text[strcspn(text, "\n")] = 0;
        status = 0;
    }
    fclose(file);
    return status;
}

int gtopo_kernel_without_numa(void)
{
    return access(GTOPO_NODES, F_OK) != 0;
}

int gtopo_node_check(int numa, struct gtopo_error *error)
{
    char path[64];

    snprintf(path, sizeof path, GTOPO_NODES "/node%d", numa);
    if ((numa >= 0 && numa < GTOPO_NODES_MAX && !access(path, F_OK)) || (numa == 0 && gtopo_kernel_without_numa()))
        return 0;
    return gtopo_fail(error, GTOPO_EMISSING, "ls " GTOPO_NODES " shows the nodes", "this host has no NUMA node %d",
                      numa);
}

int gtopo_affinity_save(struct gtopo_affinity *affinity, struct gtopo_error *error)
{
    int cpus;

    /* the kernel refuses a set smaller than its own */
    for (cpus = 1024; cpus <= CPUS_MAX; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);

        if (!set)
            return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
        if (!sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set)) {
            affinity->set = set;
            affinity->size = CPU_ALLOC_SIZE(cpus);
            return 0;
        }
        CPU_FREE(set);
        if (errno != EINVAL)
            break;
    }
    return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "cannot read which processors this thread may use: %s",
                      strerror(errno));
}

void gtopo_affinity_restore(struct gtopo_affinity *affinity)
{
    if (!affinity->set)
        return;
    /* a failure means that the processors were taken from us in the meantime; the thread is where it may be */
    sched_setaffinity(0, affinity->size, affinity->set);
    CPU_FREE(affinity->set);
    *affinity = (struct gtopo_affinity){0};
}

/* Take the processors that are not in the list ("0-3,8") out of the set. */
static void keep_listed(const char *list, cpu_set_t *set, size_t size)
{
    unsigned long next = 0, first, last, cpus = 8 * size;
    char *end;

    for (;; list = end + 1) {
        first = last = strtoul(list, &end, 10);
        if (end == list)
            break;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (; next < first && next < cpus; next++)
            CPU_CLR_S(next, size, set);
        if (next <= last)
            next = last + 1;
        if (*end != ',')
            break;
    }
    for (; next < cpus; next++)
        CPU_CLR_S(next, size, set);
}

/* The processors of the nearest node that has some, which is the node itself but for memory-only nodes. */
static int nearest_processors(int numa, char *list, size_t size)
{
    char distances[8192], *word, *rest = NULL, candidate[4096];
    long nearest = -1;
    int node = 0;

    if (!read_node_file(numa, "cpulist", list, size) && *list)
        return 0;
    if (read_node_file(numa, "distance", distances, sizeof distances))
        return -1;
    /* the n-th distance is to the n-th node that is there, which need not be node n */
    for (word = strtok_r(distances, " ", &rest); word; word = strtok_r(NULL, " ", &rest), node++) {
        long distance = strtol(word, NULL, 10);

        while (node < GTOPO_NODES_MAX && read_node_file(node, "cpulist", candidate, sizeof candidate))
            node++;
        if (*candidate && node < GTOPO_NODES_MAX && (nearest < 0 || distance < nearest)) {
            nearest = distance;
            snprintf(list, size, "%s", candidate);
        }
    }
    return nearest < 0 ? -1 : 0;
}

/* The first processor of the core that a processor is on; itself where the kernel does not say. */
static unsigned core_of(unsigned cpu)
{
    char path[96];
    unsigned first = cpu;
    FILE *file;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    file = fopen(path, "re");
    if (!file)
        return cpu;
    if (fscanf(file, "%u", &first) != 1)
        first = cpu;
    fclose(file);
    return first;
}

/* The rank of a processor's core among those of the list so far, which grows by a new one. */
static size_t rank_of(unsigned core, unsigned *cores, size_t *count)
{
    size_t rank = 0;

    while (rank < *count && cores[rank] != core)
        rank++;
    if (rank == *count)
        cores[(*count)++] = core;
    return rank;
}

/*
 * Keep one half of the cores, so that two threads that poll for each other never wait for the same processor; with one
 * core, one half of its threads; with one processor, that. O(processors²).
 */
static int keep_half(enum gtopo_share share, cpu_set_t *set, size_t size)
{
    size_t count = (size_t)CPU_COUNT_S(size, set), core_count = 0, seen = 0, units;
    unsigned *cores;
    size_t *ranks;

    if (share == GTOPO_SHARE_ALL || count < 2)
        return 0;
    cores = calloc(count, sizeof *cores);
    ranks = calloc(count, sizeof *ranks);
    if (!cores || !ranks) {
        free(cores);
        free(ranks);
        return GTOPO_ENOMEM;
    }
    for (unsigned cpu = 0; cpu < 8 * size; cpu++)
        if (CPU_ISSET_S(cpu, size, set))
            ranks[seen++] = rank_of(core_of(cpu), cores, &core_count);
    units = core_count > 1 ? core_count : count;
    seen = 0;
    for (unsigned cpu = 0; cpu < 8 * size; cpu++)
        if (CPU_ISSET_S(cpu, size, set)) {
            size_t rank = core_count > 1 ? ranks[seen] : seen;

            seen++;
            if ((rank < units / 2) != (share == GTOPO_SHARE_FIRST_HALF))
                CPU_CLR_S(cpu, size, set);
        }
    free(cores);
    free(ranks);
    return 0;
}

/* Take away what is not the node's. */
static int keep_node(int numa, cpu_set_t *set, size_t size, struct gtopo_error *error)
{
    char list[4096];

    if (nearest_processors(numa, list, sizeof list))
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "cannot read the processors of NUMA node %d from %s", numa,
                          GTOPO_NODES);
    keep_listed(list, set, size);
    if (!CPU_COUNT_S(size, set))
        return gtopo_fail(error, GTOPO_ESYSTEM,
                          "start it with processors of that node (taskset, cpuset, --cpu-bind), or on all",
                          "this process may use none of the processors of NUMA node %d (%.100s)", numa, list);
    return 0;
}

int gtopo_memory_bind_thread(int numa, enum gtopo_share share, int *one_processor, struct gtopo_error *error)
{
    struct gtopo_affinity allowed = {0};
    int status = numa == GTOPO_NUMA_ANY ? 0 : gtopo_node_check(numa, error);

    if (!status)
        status = gtopo_affinity_save(&allowed, error);
    if (status)
        return status;
    if (numa != GTOPO_NUMA_ANY && !gtopo_kernel_without_numa())
        status = keep_node(numa, allowed.set, allowed.size, error);
    if (!status && one_processor)
        *one_processor = CPU_COUNT_S(allowed.size, allowed.set) == 1;
    if (!status && keep_half(share, allowed.set, allowed.size))
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (!status && sched_setaffinity(0, allowed.size, allowed.set))
        status =
            gtopo_fail(error, GTOPO_ESYSTEM, NULL, "cannot bind the thread to its processors: %s", strerror(errno));
    CPU_FREE(allowed.set);
    return status;
}
