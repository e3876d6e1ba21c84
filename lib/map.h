/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map inside. Objects and links of a host are stored once for all hosts of a shape, with host-local numbers; a
 * host holds only what is its own. Global numbers: those of a host are [first, first + count), those of the fabric
 * begin at GTOPO_FABRIC_BASE.
 */
#ifndef GTOPO_LIB_MAP_H
#define GTOPO_LIB_MAP_H

#include <gputopo/map.h>
#include "lib/text.h"

/* A value of an object; the values of one object form a list in the order of their attributes. */
struct gtopo_value {
    uint16_t attribute;
    uint16_t unknown; /* 1: applies but is not known */
    uint32_t next;    /* GTOPO_NONE at the end */
    union {
        uint64_t number;
        uint32_t text;
        struct {
            uint32_t first, count; /* in map->gids */
        } gids;
    };
};

struct gtopo_values {
    struct gtopo_value *items;
    size_t count, capacity;
    uint32_t *first; /* of each object; GTOPO_NONE for none */
    size_t object_count, object_capacity;
};

struct gtopo_node {
    uint32_t kind, parent, number;
};

/* Which links an object has: links[row[object]] … links[row[object + 1] - 1]. */
struct gtopo_adjacency {
    uint32_t *row;
    uint32_t *links;
};

struct gtopo_shape {
    struct gtopo_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *node_slots; /* nodes + 1 hashed by kind, number and (ports) NIC, with open addressing; 0 is free */
    size_t slot_count;
    uint32_t kind_count[GTOPO_OBJECT_KINDS];
    struct gtopo_link *links; /* ends are host-local */
    size_t link_count, link_capacity;
    struct gtopo_values values; /* those not marked identity */
    struct gtopo_adjacency adjacency;
    uint64_t fingerprint;
    int frozen; /* shared or sealed: nothing can be added */
};

struct gtopo_host {
    uint32_t name; /* text */
    uint32_t shape;
    uint32_t first_object, first_link;
    struct gtopo_values values; /* those marked identity */
};

struct gtopo_fabric_switch {
    uint32_t name; /* text */
};

/* Which object a name belongs to: a machine or a switch. Text 0 is a free slot. */
struct gtopo_name {
    uint32_t text, object;
};

/* A network cable's end, sorted by object: which link is at a port or a switch. */
struct gtopo_cable_end {
    uint32_t object, link;
};

/* A measurement crossed a link; sorted by link. */
struct gtopo_crossing {
    uint32_t link, measurement;
};

struct gtopo_stored_measurement {
    struct gtopo_measurement value; /* its texts are unset; see below */
    uint32_t operation, transport, method, fallback, stopped_by, tool, from_way, to_way;
};

/* How the memory of a NUMA node is reached, where nothing else is said. */
#define GTOPO_WAY_HOST "host"

struct gtopo_stored_finding {
    uint32_t rule, severity, object, text, next_step;
};

struct gtopo_map {
    struct gtopo_texts texts;
    struct gtopo_gid *gids;
    size_t gid_count, gid_capacity;
    struct gtopo_shape *shapes;
    size_t shape_count, shape_capacity;
    struct gtopo_host *hosts;
    size_t host_count, host_capacity;
    struct gtopo_fabric_switch *switches;
    size_t switch_count, switch_capacity;
    struct gtopo_values switch_values;
    struct gtopo_link *network; /* ends are global */
    size_t network_count, network_capacity;
    struct gtopo_name *names; /* of hosts and switches, hashed by text with open addressing */
    size_t name_slots, name_count;
    struct gtopo_stored_measurement *measurements;
    size_t measurement_count, measurement_capacity;
    struct gtopo_stored_finding *findings;
    size_t finding_count, finding_capacity;
    /* made by sealing */
    struct gtopo_cable_end *cable_ends;
    size_t cable_end_count;
    struct gtopo_crossing *crossings;
    size_t crossing_count, crossing_capacity;
    int sealed;
};

/* Where an object or a link lies. host is GTOPO_NONE for the fabric; 0 when there is no such number. */
struct gtopo_place {
    uint32_t host, local;
};
int gtopo_map_place(const struct gtopo_map *map, uint32_t object, struct gtopo_place *place);
int gtopo_map_link_place(const struct gtopo_map *map, uint32_t link, struct gtopo_place *place);

/* The host or switch of a name: its machine object or its switch object, or GTOPO_NONE. */
uint32_t gtopo_map_find_name(const struct gtopo_map *map, const char *name);

int gtopo_attribute_is_identity(enum gtopo_attribute attribute);
/* GTOPO_ATTRIBUTES when no attribute has this key. */
enum gtopo_attribute gtopo_attribute_of_key(const char *key);
/* The list of values of an object in one of its two stores; walk with next. */
const struct gtopo_values *gtopo_map_identity_values(const struct gtopo_map *map, struct gtopo_place place);
/* Set all that an object of another map has on one of this map. Errors: those of gtopo_map_set_text(). */
int gtopo_map_copy_values(struct gtopo_map *map, uint32_t id, const struct gtopo_map *other, uint32_t other_id,
                          struct gtopo_error *error);
int gtopo_values_add_object(struct gtopo_values *values);
void gtopo_values_clear(struct gtopo_values *values);

/* The name of an object in its host: "gpu0", "nic1:2", "machine". Returns text. */
#define GTOPO_LOCAL_NAME_MAX 64
const char *gtopo_local_name(const struct gtopo_shape *shape, uint32_t local, char text[GTOPO_LOCAL_NAME_MAX]);
/* The node of a kind and number, for a port on its NIC, or GTOPO_NONE. Expected O(1), here and below. */
uint32_t gtopo_shape_find(const struct gtopo_shape *shape, uint32_t kind, uint32_t parent, uint32_t number);
/* The object of a name in a shape, or GTOPO_NONE. */
uint32_t gtopo_local_find(const struct gtopo_shape *shape, const char *name, size_t length);

/* Hash of everything that two hosts of one look share, whatever the order of their objects. 0 or GTOPO_ENOMEM. */
int gtopo_shape_fingerprint(const struct gtopo_map *map, struct gtopo_shape *shape);
void gtopo_shape_clear(struct gtopo_shape *shape);

/* rails.c: is the NIC a part of another that is in the map: a virtual function, a Data Direct function? */
int gtopo_nic_is_part(const struct gtopo_map *map, uint32_t nic);

/* As gtopo_path_find(), over network links only. */
int gtopo_path_find_outside(const struct gtopo_map *map, uint32_t from, uint32_t to, struct gtopo_path *path,
                            struct gtopo_error *error);

/* The range of cable ends at a port or switch. */
size_t gtopo_map_cables_of(const struct gtopo_map *map, uint32_t object, const struct gtopo_cable_end **first);

#endif
