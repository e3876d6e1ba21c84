/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a topology file of NCCL's: what its tree (nccl.c) and the links between GPUs (nccl_links.c) share. */
#ifndef GTOPO_TOPO_HOST_NCCL_H
#define GTOPO_TOPO_HOST_NCCL_H

#include "topo/host/xml.h"
#include "topo/host/host.h"

/* A device that links may lead to. */
struct gtopo_nccl_target {
    char bus_id[GTOPO_PCI_ADDRESS_MAX];
    uint32_t object, element;
};

struct gtopo_nccl {
    struct gtopo_discovery *d;
    const char *path;
    struct gtopo_xml xml;
    uint32_t *cpus; /* NUMA nodes */
    size_t cpu_count, cpu_capacity;
    struct gtopo_nccl_target *targets; /* sorted by bus id when all are known */
    size_t target_count, target_capacity;
    uint32_t gpu_count, unknown_count; /* GPUs; devices without a class */
};

/* ---- nccl.c ---- */

/* GTOPO_EFORMAT with file and line. */
GTOPO_PRINTF(3, 4)
int gtopo_nccl_bad(const struct gtopo_nccl *r, uint32_t element, const char *format, ...);
/* The value of an attribute, or NULL for an empty one and for none. */
const char *gtopo_nccl_get(const struct gtopo_nccl *r, uint32_t element, const char *key);
int gtopo_nccl_is(const struct gtopo_nccl *r, uint32_t element, const char *name);
/* A whole number from `least` to `most`; absent is `otherwise`. */
int gtopo_nccl_number(const struct gtopo_nccl *r, uint32_t element, const char *key, int64_t least, int64_t most,
                      int64_t otherwise, int64_t *number);
/* "0000:3b:00.0"; the domain may have eight digits. */
int gtopo_nccl_bus_id(const struct gtopo_nccl *r, uint32_t element, const char *key,
                      char bus_id[GTOPO_PCI_ADDRESS_MAX]);
/* The 24 bits of a PCI class; 0 for none. */
int gtopo_nccl_class(const struct gtopo_nccl *r, uint32_t element, const char *key, unsigned *class_id);
int gtopo_nccl_add_link(struct gtopo_nccl *r, const struct gtopo_link *link);
int gtopo_nccl_add_target(struct gtopo_nccl *r, uint32_t element, const char *bus_id, uint32_t object);

/* ---- nccl_links.c ---- */

/* Links of GPUs but for PCIe, once all devices are known; *count says how many. O(elements log elements). */
int gtopo_nccl_read_links(struct gtopo_nccl *r, size_t *count);

#endif
