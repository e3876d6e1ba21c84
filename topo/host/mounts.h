/* SPDX-License-Identifier: Apache-2.0 */
/* What is mounted on a host, and on which of its disks. */
#ifndef GTOPO_TOPO_HOST_MOUNTS_H
#define GTOPO_TOPO_HOST_MOUNTS_H

#include "lib/text.h"
#include "topo/host/host.h"

struct gtopo_mount {
    uint32_t source;    /* text: "/dev/sda1", "nfsnode01:/home" */
    uint32_t directory; /* text */
    char type[32];      /* as the kernel names the file system */
    int is_network;     /* a server, or servers, on the network hold it */
    int by_rdma;        /* and the mount's options say that it is reached by RDMA */
    int is_hidden;      /* another one was mounted at the same directory later */
};

struct gtopo_mounts {
    struct gtopo_texts texts;
    struct gtopo_mount *items; /* in the kernel's order */
    size_t count, capacity;
};

/* ---- mounts.c ---- */

/* The kernel's table. 1, or 0 where there is none, or GTOPO_ENOMEM without a message; to be cleared after all three.
 * Expected O(table). */
int gtopo_mounts_read(const struct gtopo_sysfs *sysfs, struct gtopo_mounts *mounts);
void gtopo_mounts_clear(struct gtopo_mounts *mounts);

/* ---- block.c ---- */

/* A disk of the map, by the operating system's name. */
struct gtopo_block_disk {
    char name[GTOPO_SYSFS_TEXT]; /* of an NVMe disk without the number of the namespace */
    uint32_t id;                 /* object */
    size_t asked_for;            /* the search that found it last */
};

struct gtopo_block {
    const struct gtopo_sysfs *sysfs;
    struct gtopo_block_disk *disks; /* by name */
    size_t count, capacity;
    struct gtopo_sysfs_names mapped; /* "VOLUME dm-3": what the device mapper made, by its own names */
    size_t searches;
    unsigned visits_left; /* a record may hold devices that stand on each other in any number */
    /* What the last search found: places in the list of disks, and whether that is all there is. */
    size_t *found;
    size_t found_count, found_capacity;
    int is_complete;
};

/* The disks of the host. 0 or GTOPO_ENOMEM without a message; to be cleared after both. O(disks log disks). */
int gtopo_block_init(struct gtopo_block *block, struct gtopo_discovery *d);
void gtopo_block_clear(struct gtopo_block *block);
/*
 * The disks that a device stands on, "/dev/sda1" or "/dev/mapper/VOLUME": itself, the whole of a partition, the parts
 * of a RAID or of a logical volume. 0 or GTOPO_ENOMEM without a message.
 */
int gtopo_block_search(struct gtopo_block *block, const char *source);

/* ---- scratch.c ---- */

/* A finding where a host with GPUs has its scratch on slow disks. */
int gtopo_check_scratch(struct gtopo_discovery *d, const struct gtopo_mounts *mounts, struct gtopo_block *block);

#endif
