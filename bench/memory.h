/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory is where the bytes of a probe lie. One file an entry, listed in bench/memory/registry.c.
 */
#ifndef GTOPO_BENCH_MEMORY_H
#define GTOPO_BENCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

#define GTOPO_NUMA_ANY (-1)

struct gtopo_memory {
    const char *name;
    /*
     * Page-aligned, zeroed, touched. numa: the operating system's index, or GTOPO_NUMA_ANY. Errors: GTOPO_ENOMEM,
     * GTOPO_EMISSING for a node that this host has not, GTOPO_ESYSTEM when the memory cannot be had on that node.
     */
    int (*allocate)(int numa, size_t size, void **data, struct gtopo_error *error);
    void (*release)(void *data, size_t size);
};

/* The entry for "host"; others are reached by gtopo_memory_find(). */
extern const struct gtopo_memory gtopo_memory_host;

/* The result lives as long as the process. Errors: GTOPO_EUSAGE. */
int gtopo_memory_find(const char *name, const struct gtopo_memory **memory, struct gtopo_error *error);

/* How much of a node's processors a thread takes: two ends of a probe that poll on one node take one half each. */
enum gtopo_share { GTOPO_SHARE_ALL, GTOPO_SHARE_FIRST_HALF, GTOPO_SHARE_SECOND_HALF };

/*
 * Bind the calling thread to those of its present processors that belong to a NUMA node, or for a node without
 * processors to the nearest that has some, or with GTOPO_NUMA_ANY to any; and to its share of them, in whole cores.
 * Call it before memory is allocated: where the kernel refuses to bind memory, it is the first touch that places it.
 * Errors: GTOPO_EMISSING for a node that this host has not, GTOPO_ESYSTEM when none of its processors is allowed.
 */
int gtopo_memory_bind_thread(int numa, enum gtopo_share share, struct gtopo_error *error);

/*
 * The processors that the calling thread may use, to give them back after a probe: the thread is the caller's, and
 * the next probe may want another node. All zero is nothing; restoring that does nothing. Restoring empties it.
 */
struct gtopo_affinity {
    void *set; /* cpu_set_t */
    size_t size;
};
int gtopo_affinity_save(struct gtopo_affinity *affinity, struct gtopo_error *error);
void gtopo_affinity_restore(struct gtopo_affinity *affinity);

#endif
