/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the host, on a NUMA node where one is asked for.
 *
 * Straight system calls and sysfs: hwloc would bind too, but reads the whole machine first. Containers often forbid
 * mbind() (Docker's default seccomp profile does). Then the thread, bound by gtopo_memory_bind_thread(), places the
 * pages by touching them first, and /proc/self/numa_maps says where they came to lie.
 */
#include "bench/memory.h"
#include "bench/memory/node.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HUGE_PAGE_B ((size_t)2 << 20)
#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE, of Linux 5.14: older kernels refuse it, older headers lack it */
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#define MPOL_BIND_MODE 2 /* MPOL_BIND of linux/mempolicy.h, whose macros clash with numaif.h's */

/* ---- nodes ---- */

static int is_only_node(int numa)
{
    char path[64];
    int node;

    for (node = 0; node < GTOPO_NODES_MAX; node++) {
        snprintf(path, sizeof path, GTOPO_NODES "/node%d", node);
        if (node != numa && !access(path, F_OK))
            return 0;
    }
    return 1;
}

/* ---- memory ---- */

static int bind_memory(int numa, void *data, size_t size)
{
    unsigned long mask[GTOPO_NODES_MAX / (8 * sizeof(unsigned long))] = {0};

    mask[(size_t)numa / (8 * sizeof *mask)] = 1ul << ((size_t)numa % (8 * sizeof *mask));
    /* the kernel reads one bit less than it is told */
    return (int)syscall(SYS_mbind, data, size, MPOL_BIND_MODE, mask, (unsigned long)GTOPO_NODES_MAX + 1, 0);
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

/*
 * Large pages spare the device, and the processor, most of the work of finding where memory lies. From the pool that
 * the administrator set aside when all of the region fits in it on its node, which the kernel only says when the pages
 * are there: a page that is missing at the first touch would end the process.
 */
static void *map_huge(int numa, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    if ((numa == GTOPO_NUMA_ANY || !bind_memory(numa, memory, size)) && !madvise(memory, size, POPULATE_WRITE))
        return memory;
    munmap(memory, size);
    return NULL;
}

static int map_normal(int numa, size_t size, void **mapped, struct gtopo_error *error)
{
    int refused = 0, status = 0;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return gtopo_fail(error, GTOPO_ENOMEM, "use a smaller message or depth", "cannot get %zu bytes of memory: %s",
                          size, strerror(errno));
    /* a mapping of its own, not merged with a neighbour, so that numa_maps has a line for it */
    madvise(memory, size, MADV_DONTFORK);
    if (size >= HUGE_PAGE_B)
        madvise(memory, size, MADV_HUGEPAGE);
    if (numa != GTOPO_NUMA_ANY && bind_memory(numa, memory, size))
        refused = errno;
    memset(memory, 0, size);
    if (refused)
        status = place_refused(numa, refused, memory, error);
    if (status)
        munmap(memory, size);
    else
        *mapped = memory;
    return status;
}

/* What is mapped for a region: large pages are mapped and unmapped as a whole. */
static size_t mapped_B(size_t size)
{
    return size < HUGE_PAGE_B ? size : (size + HUGE_PAGE_B - 1) / HUGE_PAGE_B * HUGE_PAGE_B;
}

static int allocate_host(struct gtopo_region *region, struct gtopo_error *error)
{
    size_t size = mapped_B(region->size);
    int status;

    if (region->numa != GTOPO_NUMA_ANY && (status = gtopo_node_check(region->numa, error)))
        return status;
    if (size >= HUGE_PAGE_B)
        region->data = map_huge(region->numa, size);
    if (!region->data)
        return map_normal(region->numa, size, &region->data, error);
    madvise(region->data, size, MADV_DONTFORK);
    return 0;
}

static void release_host(struct gtopo_region *region)
{
    if (region->data)
        munmap(region->data, mapped_B(region->size));
    region->data = NULL;
}

static int store_host(const struct gtopo_region *region, size_t offset, const void *from, size_t size,
                      struct gtopo_error *error)
{
    (void)error;
    memcpy((uint8_t *)region->data + offset, from, size);
    return 0;
}

static int load_host(const struct gtopo_region *region, size_t offset, void *to, size_t size, struct gtopo_error *error)
{
    (void)error;
    memcpy(to, (const uint8_t *)region->data + offset, size);
    return 0;
}

const struct gtopo_memory gtopo_memory_host = {
    .name = "host",
    .is_host = 1,
    .allocate = allocate_host,
    .release = release_host,
    .store = store_host,
    .load = load_host,
};
