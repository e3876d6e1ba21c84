/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the host, on a NUMA node where one is asked for.
 *
 * Straight system calls and sysfs: hwloc would bind too, but reads the whole machine first. Containers often forbid
 * mbind() (Docker's default seccomp profile does). Then the thread, bound by gtopo_memory_bind_thread(), places the
 * pages by touching them first, and /proc/self/numa_maps says where they came to lie.
 */
#include "bench/memory.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES "/sys/devices/system/node"
#define NODES_MAX 1024     /* the kernel's MAX_NUMNODES is never more */
#define MPOL_BIND_MODE 2   /* MPOL_BIND of linux/mempolicy.h, whose macros clash with numaif.h's */
#define CPUS_MAX (1 << 20) /* where the search for the size of the kernel's set of processors ends */

/* ---- nodes ---- */

/* The first line of a file of a node, without its end. 0 or -1. */
static int read_node_file(int numa, const char *name, char *text, size_t size)
{
    char path[96];
    FILE *file;
    int status = -1;

    snprintf(path, sizeof path, NODES "/node%d/%s", numa, name);
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

/* A kernel without NUMA has no list of nodes and one node, number 0. */
static int kernel_without_numa(void)
{
    return access(NODES, F_OK) != 0;
}

static int check_node(int numa, struct gtopo_error *error)
{
    char path[64];

    snprintf(path, sizeof path, NODES "/node%d", numa);
    if ((numa >= 0 && numa < NODES_MAX && !access(path, F_OK)) || (numa == 0 && kernel_without_numa()))
        return 0;
    return gtopo_fail(error, GTOPO_EMISSING, "ls " NODES " shows the nodes", "this host has no NUMA node %d", numa);
}

static int is_only_node(int numa)
{
    char path[64];
    int node;

    for (node = 0; node < NODES_MAX; node++) {
        snprintf(path, sizeof path, NODES "/node%d", node);
        if (node != numa && !access(path, F_OK))
            return 0;
    }
    return 1;
}

/* ---- memory ---- */

static int bind_memory(int numa, void *data, size_t size)
{
    unsigned long mask[NODES_MAX / (8 * sizeof(unsigned long))] = {0};

    mask[(size_t)numa / (8 * sizeof *mask)] = 1ul << ((size_t)numa % (8 * sizeof *mask));
    /* the kernel reads one bit less than it is told */
    return (int)syscall(SYS_mbind, data, size, MPOL_BIND_MODE, mask, (unsigned long)NODES_MAX + 1, 0);
}

/* Do all touched pages of the mapping at this address lie on the node? 1, 0, or -1 when that cannot be known. */
static int pages_lie_on(int numa, const void *data)
{
    char *line = NULL, want[32], key[32];
    size_t room = 0;
    int answer = -1;
    FILE *maps = fopen("/proc/self/numa_maps", "re");

    if (!maps)
        return -1;
    snprintf(key, sizeof key, "%lx ", (unsigned long)data);
    snprintf(want, sizeof want, "N%d=", numa);
    while (answer < 0 && getline(&line, &room, maps) > 0) {
        char *word, *rest = NULL;

        if (strncmp(line, key, strlen(key)))
            continue;
        for (word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
            if (word[0] == 'N' && word[1] >= '0' && word[1] <= '9')
                answer = answer != 0 && !strncmp(word, want, strlen(want));
    }
    free(line);
    fclose(maps);
    return answer;
}

static int place_refused(int numa, int cause, const void *data, struct gtopo_error *error)
{
    int there = is_only_node(numa) ? 1 : pages_lie_on(numa, data);

    if (there == 1)
        return 0;
    return gtopo_fail(error, GTOPO_ESYSTEM,
                      "in a container allow mbind (Docker: --cap-add SYS_NICE) and the node (--cpuset-mems), or do "
                      "not ask for a NUMA node",
                      "memory cannot be placed on NUMA node %d: the kernel refused to bind it (%s) and it %s", numa,
                      strerror(cause), there ? "cannot be known where it lies" : "lies elsewhere");
}

static int allocate_host(int numa, size_t size, void **data, struct gtopo_error *error)
{
    void *memory;
    int refused = 0, status = 0;

    if (numa != GTOPO_NUMA_ANY && (status = check_node(numa, error)))
        return status;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return gtopo_fail(error, GTOPO_ENOMEM, "use a smaller message or depth", "cannot get %zu bytes of memory: %s",
                          size, strerror(errno));
    /* a mapping of its own, not merged with a neighbour, so that numa_maps has a line for it */
    madvise(memory, size, MADV_DONTFORK);
    if (numa != GTOPO_NUMA_ANY && bind_memory(numa, memory, size))
        refused = errno;
    memset(memory, 0, size);
    if (refused)
        status = place_refused(numa, refused, memory, error);
    if (status) {
        munmap(memory, size);
        return status;
    }
    *data = memory;
    return 0;
}

static void release_host(void *data, size_t size)
{
    if (data)
        munmap(data, size);
}

const struct gtopo_memory gtopo_memory_host = {"host", allocate_host, release_host};

/* ---- processors ---- */

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

        while (node < NODES_MAX && read_node_file(node, "cpulist", candidate, sizeof candidate))
            node++;
        if (*candidate && node < NODES_MAX && (nearest < 0 || distance < nearest)) {
            nearest = distance;
            snprintf(list, size, "%s", candidate);
        }
    }
    return nearest < 0 ? -1 : 0;
}

int gtopo_memory_bind_thread(int numa, struct gtopo_error *error)
{
    struct gtopo_affinity allowed = {0};
    char list[4096];
    int status;

    if (numa == GTOPO_NUMA_ANY)
        return 0;
    status = check_node(numa, error);
    if (status || kernel_without_numa())
        return status;
    if (nearest_processors(numa, list, sizeof list))
        return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "cannot read the processors of NUMA node %d from %s", numa,
                          NODES);
    status = gtopo_affinity_save(&allowed, error);
    if (status)
        return status;
    keep_listed(list, allowed.set, allowed.size);
    if (!CPU_COUNT_S(allowed.size, allowed.set))
        status = gtopo_fail(error, GTOPO_ESYSTEM,
                            "start it with processors of that node (taskset, cpuset, --cpu-bind), or on all",
                            "this process may use none of the processors of NUMA node %d (%.100s)", numa, list);
    else if (sched_setaffinity(0, allowed.size, allowed.set))
        status = gtopo_fail(error, GTOPO_ESYSTEM, NULL, "cannot bind the thread to the processors of NUMA node %d: %s",
                            numa, strerror(errno));
    CPU_FREE(allowed.set);
    return status;
}
