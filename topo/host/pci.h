/* SPDX-License-Identifier: Apache-2.0 */
/* The PCI functions of a host as a tree: by hwloc's word, and by that of sysfs for those that hwloc leaves out. */
#ifndef GTOPO_TOPO_HOST_PCI_H
#define GTOPO_TOPO_HOST_PCI_H

#include <hwloc.h>
#include <stddef.h>
#include <stdint.h>
#include <gputopo/map.h>
#include "topo/host/pci_config.h"
#include "topo/host/sysfs.h"

#define GTOPO_PCI_ADDRESS_MAX 24

struct gtopo_disk;

/* A PCI function, or a host bridge, which is the place of the functions on its root bus. */
struct gtopo_pci {
    char address[GTOPO_PCI_ADDRESS_MAX]; /* "0000:3b:00.0"; of a host bridge what the kernel calls it: "pci0000:3a" */
    unsigned domain, bus;                /* of a host bridge its root bus */
    unsigned vendor_id, device_id, subvendor_id, subdevice_id;
    unsigned class_id; /* base class and subclass */
    int is_host_bridge, is_bridge;
    hwloc_obj_t hwloc; /* NULL when hwloc left it out */
    struct gtopo_pci *parent, *first_child, *last_child, *next;
    const struct gtopo_disk *disks; /* of a function that hwloc left out */
    /* What is known once it is in the map. */
    uint32_t object; /* the first that it is, or GTOPO_NONE */
    struct gtopo_pci_config config;
    uint32_t capable_width, capable_speed_MTps; /* of the link above, 0 for unknown */
    uint64_t bar1_B;                            /* of a GPU, likewise */
    unsigned peer_count, gpu_count;             /* GPUs, NICs and disks at and below it; of these GPUs */
};

struct gtopo_pci_tree {
    struct gtopo_pci *items; /* in no order; they stay where they are */
    size_t count, capacity;
    uint32_t *slots; /* of the first item of every address, hashed; item + 1, 0 is free */
    size_t slot_count;
    unsigned left_out_count; /* functions that hwloc left out and sysfs told of */
    unsigned hidden_count;   /* functions in sysfs that have no place in the tree */
    char first_hidden[GTOPO_PCI_ADDRESS_MAX];
};

/*
 * hwloc 2 leaves out functions in PCI domains of more than 16 bits (those behind Intel's VMD) without a word. Where
 * they are is in their path in sysfs. 0 or GTOPO_ENOMEM. O(functions log functions).
 */
int gtopo_pci_tree_read(struct gtopo_pci_tree *tree, const struct gtopo_sysfs *sysfs, hwloc_topology_t topology);
void gtopo_pci_tree_clear(struct gtopo_pci_tree *tree);
/* The function, or the host bridge, that has an address; or NULL. */
struct gtopo_pci *gtopo_pci_tree_find(const struct gtopo_pci_tree *tree, const char *address);
/* A function by hwloc's word, in no tree yet. */
void gtopo_pci_of_hwloc(hwloc_obj_t object, struct gtopo_pci *pci);
/* The last PCI function on a path of sysfs into `address`: 1, or 0 when there is none. */
int gtopo_pci_of_path(const char *path, char address[GTOPO_PCI_ADDRESS_MAX]);

#endif
