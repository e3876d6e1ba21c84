/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory is where the bytes of a probe lie. One file an entry, listed in bench/memory/registry.c.
 *
 * Processors never touch a region but through its memory's functions: GPU memory has addresses that only devices know.
 */
#ifndef GTOPO_BENCH_MEMORY_H
#define GTOPO_BENCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

#define GTOPO_NUMA_ANY (-1)
#define GTOPO_LANES_MAX 8

/* What a GPU's memory may be able to do for other devices, for causes in words. All zero for host memory. */
struct gtopo_memory_facts {
    char name[64];        /* "NVIDIA H100 80GB HBM3" */
    char pci_address[16]; /* "0000:1b:00.0" */
    int mig;              /* a MIG slice */
    int no_gpudirect;     /* the driver says that no other device can reach it (vGPU, some GeForce) */
    int no_dmabuf;        /* the driver cannot export it as dma-buf */
    int coherent;         /* the GPU shares page tables with the processor (GH200, GB200) */
    int flush_is_needed;  /* what a device wrote is seen by the GPU only after flush() */
    int can_flush;        /* the driver has what flush() needs */
};

struct gtopo_region {
    const struct gtopo_memory *memory;
    char which[32]; /* what stands behind "gpu:": a number as the driver counts, or a PCI address; "" for host */
    int numa;       /* host: the operating system's index, or GTOPO_NUMA_ANY */
    void *data;     /* page-aligned; of a GPU: a device address. NULL: not allocated */
    size_t size;    /* bytes */
    void *state;    /* the memory's own */
};

struct gtopo_memory {
    const char *name; /* "host", "gpu" */
    int is_host;      /* the processor may load and store at data */
    /*
     * Fills data and state of a region whose memory, which, numa and size are set: zeroed, and touched. Errors:
     * GTOPO_ENOMEM, GTOPO_EMISSING (no such node, GPU or driver), GTOPO_EDEVICE, GTOPO_ESYSTEM.
     */
    int (*allocate)(struct gtopo_region *region, struct gtopo_error *error);
    void (*release)(struct gtopo_region *region); /* one that was never allocated (data NULL) is accepted */
    /* Copy `size` bytes into, or out of, a region; done, and visible, on return. Errors: GTOPO_EDEVICE. */
    int (*store)(const struct gtopo_region *region, size_t offset, const void *from, size_t size,
                 struct gtopo_error *error);
    int (*load)(const struct gtopo_region *region, size_t offset, void *to, size_t size, struct gtopo_error *error);

    /* The rest is NULL for host memory. */
    void (*facts)(const struct gtopo_region *region, struct gtopo_memory_facts *facts);
    /*
     * A dma-buf descriptor of the whole region, to be closed by the caller, and where in the dma-buf the region begins.
     * pcie asks for the mapping through PCIe on a coherent GPU. Errors: GTOPO_EMISSING when this driver, kernel or GPU
     * cannot (the text says which), GTOPO_EDEVICE.
     */
    int (*export_dmabuf)(const struct gtopo_region *region, int pcie, int *fd, uint64_t *offset,
                         struct gtopo_error *error);
    /*
     * Make what other devices have written visible to the GPU. It is timed, so all that belongs to it is done by
     * begin_flush() before, on the same thread, whose context is the GPU's until end_flush(). Errors: GTOPO_EMISSING
     * when this driver or GPU cannot, GTOPO_EDEVICE.
     */
    int (*begin_flush)(const struct gtopo_region *region, struct gtopo_error *error);
    void (*end_flush)(const struct gtopo_region *region);
    int (*flush)(const struct gtopo_region *region, struct gtopo_error *error);
    /* Lock host memory so that the GPU's copy engines reach it; unpin before that memory is released. */
    int (*pin)(const struct gtopo_region *region, void *host, size_t size, struct gtopo_error *error);
    void (*unpin)(const struct gtopo_region *region, void *host);
    /*
     * Copies that run while we do other things, for staging. A lane (0 to GTOPO_LANES_MAX - 1) does its copies in
     * order. lane_done: 1 when all that was started on it is done, 0, or a status.
     */
    int (*lane_load)(const struct gtopo_region *region, unsigned lane, size_t offset, void *pinned, size_t size,
                     struct gtopo_error *error);
    int (*lane_store)(const struct gtopo_region *region, unsigned lane, size_t offset, const void *pinned, size_t size,
                      struct gtopo_error *error);
    int (*lane_done)(const struct gtopo_region *region, unsigned lane, struct gtopo_error *error);
};

extern const struct gtopo_memory gtopo_memory_host, gtopo_memory_gpu;

/*
 * "host", "gpu:0", "gpu:0000:1b:00.0": sets memory and which of a region. Errors: GTOPO_EUSAGE.
 */
int gtopo_memory_find(const char *name, struct gtopo_region *region, struct gtopo_error *error);

/* Of the mapping that begins at this address of host memory: the size of the pages that all of it lies in, large ones
 * of either kind counted; -1 when the kernel does not say. */
int32_t gtopo_memory_page_B(const void *data);

/* How much of a node's processors a thread takes: two ends of a probe that poll on one node take one half each. */
enum gtopo_share { GTOPO_SHARE_ALL, GTOPO_SHARE_FIRST_HALF, GTOPO_SHARE_SECOND_HALF };

/*
 * Bind the calling thread to those of its present processors that belong to a NUMA node, or for a node without
 * processors to the nearest that has some, or with GTOPO_NUMA_ANY to any; and to its share of them, in whole cores.
 * *one_processor (or NULL) tells whether there is but one, so that both shares are the same. Call it before memory is
 * allocated: where the kernel refuses to bind memory, it is the first touch that places it. Errors: GTOPO_EMISSING for
 * a node that this host has not, GTOPO_ESYSTEM when none of its processors is allowed.
 */
int gtopo_memory_bind_thread(int numa, enum gtopo_share share, int *one_processor, struct gtopo_error *error);

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
