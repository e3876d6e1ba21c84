/* SPDX-License-Identifier: Apache-2.0 */
/* A tree that is laid over a machine: what reading and matching it (overlay.c) and joining the two (overlay_lay.c)
 * share. */
#ifndef GTOPO_TOPO_HOST_OVERLAY_H
#define GTOPO_TOPO_HOST_OVERLAY_H

#include "topo/host/host.h"

#define GTOPO_OVERLAY_KEY_MAX 128

/* What a device is known by: "pci_address=0000:3b:00.0", "gpu uuid=GPU-…". */
struct gtopo_overlay_key {
    char text[GTOPO_OVERLAY_KEY_MAX];
    uint32_t object;
};

/* One of the two: what the machine shows, or what the file says. Arrays count from the host's first object. */
struct gtopo_overlay_side {
    struct gtopo_map *map;
    uint32_t host, first, count;
    struct gtopo_overlay_key *keys; /* sorted */
    size_t key_count, key_capacity;
    uint32_t *match;     /* the object of the other side that is the same, or GTOPO_NONE */
    uint32_t *result;    /* what it became, or GTOPO_NONE */
    uint8_t *is_bearing; /* a device of the result hangs below; of nodes, those that only the tree has */
};

struct gtopo_overlay {
    const char *path;
    struct gtopo_overlay_side seen, tree;
    uint32_t gpu_links;          /* in the result */
    int gpu_links_given;         /* they are the tree's */
    struct gtopo_discovery into; /* of the result: map, host, machine, error */
};

static inline uint32_t gtopo_overlay_match(const struct gtopo_overlay_side *side, uint32_t id)
{
    return side->match[id - side->first];
}

/* ---- overlay.c ---- */

/* gtopo_host_discover() with an overlay. */
int gtopo_overlay_discover(struct gtopo_map *map, const struct gtopo_host_options *options, struct gtopo_error *error);
/* What the machine has at a PCI address, of which the file does not say what it is; GTOPO_OBJECT_KINDS for nothing. */
enum gtopo_object_kind gtopo_overlay_kind(const struct gtopo_overlay *o, const char *bus_id);
struct gtopo_object gtopo_overlay_object(const struct gtopo_overlay_side *side, uint32_t id);
/* "gpu0 (0001:00:00.0)". */
const char *gtopo_overlay_name(const struct gtopo_overlay_side *side, uint32_t id, char text[GTOPO_ADDRESS_MAX]);

/* ---- overlay_lay.c ---- */

/* Add the host to the result. */
int gtopo_overlay_lay(struct gtopo_overlay *o, const char *name);

#endif
