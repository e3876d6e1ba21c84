/* SPDX-License-Identifier: Apache-2.0 */
/* What is near a device: processors and NICs. */
#include <gputopo/affinity.h>
#include "lib/map.h"
#include <stdlib.h>
#include <string.h>

/* ---- processors ---- */

static int has_processors(const struct gtopo_map *map, uint32_t id)
{
    return gtopo_map_text(map, id, GTOPO_ATTRIBUTE_CPUS) != NULL;
}

/* The one NUMA node with processors among a host's that match, or GTOPO_NONE for none and for several. `parent` is a
 * package, or GTOPO_NONE for any place; `os_index` is a number of the operating system, or NULL for any. */
static uint32_t find_numa(const struct gtopo_map *map, uint32_t host, uint32_t parent, const uint64_t *os_index)
{
    uint32_t first = 0, count = 0, found = GTOPO_NONE;

    gtopo_map_host_objects(map, host, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_object object = {0};
        uint64_t own;

        gtopo_map_object(map, id, &object, NULL);
        if (object.kind != GTOPO_NUMA || !has_processors(map, id) ||
            (parent != GTOPO_NONE && object.parent != parent) ||
            (os_index && (!gtopo_map_number(map, id, GTOPO_ATTRIBUTE_OS_INDEX, &own) || own != *os_index)))
            continue;
        if (found != GTOPO_NONE)
            return GTOPO_NONE;
        found = id;
    }
    return found;
}

/* What has processors at a NUMA node or a package: itself, or for memory alone what it hangs on. */
static uint32_t settle(const struct gtopo_map *map, const struct gtopo_object *place)
{
    struct gtopo_object package = *place;
    uint32_t only;

    if (place->kind == GTOPO_NUMA && has_processors(map, place->id))
        return place->id;
    if (place->kind == GTOPO_NUMA)
        gtopo_map_object(map, place->parent, &package, NULL);
    if (package.kind != GTOPO_PACKAGE)
        return GTOPO_NONE;
    only = find_numa(map, package.host, package.id, NULL);
    if (only != GTOPO_NONE)
        return only;
    return has_processors(map, package.id) ? package.id : GTOPO_NONE;
}

/* Where an object itself is, by its number of a node, by being one, or by a link to one that is no bus. */
static uint32_t own_place(const struct gtopo_map *map, const struct gtopo_object *object)
{
    struct gtopo_link link;
    uint32_t place = GTOPO_NONE;
    uint64_t numa;

    if (gtopo_map_number(map, object->id, GTOPO_ATTRIBUTE_NUMA, &numa))
        place = find_numa(map, object->host, GTOPO_NONE, &numa);
    if (place == GTOPO_NONE && (object->kind == GTOPO_NUMA || object->kind == GTOPO_PACKAGE))
        place = settle(map, object);
    for (size_t i = 0; place == GTOPO_NONE && gtopo_map_link_of(map, object->id, i, &link) != GTOPO_NONE; i++) {
        struct gtopo_object other = {0};

        gtopo_map_object(map, link.ends[link.ends[0] == object->id], &other, NULL);
        if ((link.kind == GTOPO_LINK_C2C || link.kind == GTOPO_LINK_PLATFORM) &&
            (other.kind == GTOPO_NUMA || other.kind == GTOPO_PACKAGE))
            place = settle(map, &other);
    }
    return place;
}

/* Does it say where it is, if only by a node of which no processors are known? */
static int says_place(const struct gtopo_map *map, const struct gtopo_object *object)
{
    uint64_t numa;

    return object->kind == GTOPO_NUMA || object->kind == GTOPO_PACKAGE ||
           gtopo_map_number(map, object->id, GTOPO_ATTRIBUTE_NUMA, &numa);
}

int gtopo_processors_near(const struct gtopo_map *map, uint32_t device, uint32_t *place, struct gtopo_error *error)
{
    struct gtopo_object object = {0};
    char address[GTOPO_ADDRESS_MAX];
    uint32_t found = GTOPO_NONE, id = device;
    int status, is_placed = 0;

    if (!map->sealed)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_map_seal() first", "the map is not sealed");
    status = gtopo_map_object(map, device, &object, error);
    if (status)
        return status;
    while (found == GTOPO_NONE && id != GTOPO_NONE) {
        gtopo_map_object(map, id, &object, NULL);
        is_placed |= says_place(map, &object);
        if (object.kind != GTOPO_MACHINE && object.kind != GTOPO_SWITCH)
            found = own_place(map, &object);
        else if (!is_placed) /* where one node has all the processors, they are near */
            found = find_numa(map, object.host, GTOPO_NONE, NULL);
        id = object.parent;
    }
    if (found == GTOPO_NONE)
        return gtopo_fail(error, GTOPO_EMISSING, "look from the bare machine, or give the map its provider's tree",
                          "the map does not say which processors are near %s",
                          gtopo_address_format(map, device, address));
    *place = found;
    return 0;
}

int gtopo_processors_of_pair(const struct gtopo_map *map, uint32_t gpu, uint32_t nic, uint32_t *place,
                             struct gtopo_error *error)
{
    struct gtopo_object near_nic = {0};
    uint32_t of_gpu, of_nic;
    int status = gtopo_processors_near(map, gpu, &of_gpu, error), other;

    if (status && status != GTOPO_EMISSING)
        return status;
    other = gtopo_processors_near(map, nic, &of_nic, status ? error : NULL);
    if (other && (status || other != GTOPO_EMISSING))
        return other;
    if (!other)
        gtopo_map_object(map, of_nic, &near_nic, NULL);
    *place = status || (!other && near_nic.parent == of_gpu) ? of_nic : of_gpu;
    return 0;
}

/* ---- NICs ---- */

static int compare_nics(const void *a, const void *b)
{
    const struct gtopo_near_nic *x = a, *y = b;

    if (x->is_down != y->is_down)
        return x->is_down - y->is_down;
    if (x->path_class != y->path_class)
        return x->path_class < y->path_class ? -1 : 1;
    if (x->bottleneck_Bps != y->bottleneck_Bps)
        return x->bottleneck_Bps > y->bottleneck_Bps ? -1 : 1;
    return x->nic < y->nic ? -1 : x->nic > y->nic;
}

static int is_down(const struct gtopo_map *map, uint32_t port)
{
    const char *state = gtopo_map_text(map, port, GTOPO_ATTRIBUTE_STATE);

    return state && !strcmp(state, "down");
}

/* Take the way to a NIC or to one of its ports, if it is better than what there is. */
static int try_way(const struct gtopo_map *map, uint32_t gpu, uint32_t port, struct gtopo_near_nic *near,
                   struct gtopo_error *error)
{
    struct gtopo_path path;
    int status = gtopo_path_find(map, gpu, port == GTOPO_NONE ? near->nic : port, &path, error);
    int down = port != GTOPO_NONE && is_down(map, port);

    if (status)
        return status;
    if (near->path_class == GTOPO_PATH_CLASSES || down < near->is_down ||
        (down == near->is_down && path.bottleneck_Bps > near->bottleneck_Bps))
        *near = (struct gtopo_near_nic){.nic = near->nic,
                                        .port = port,
                                        .path_class = path.path_class,
                                        .bottleneck_Bps = path.bottleneck_Bps,
                                        .bottleneck_link = path.bottleneck_link,
                                        .is_down = down};
    gtopo_path_clear(&path);
    return 0;
}

static int see_nic(const struct gtopo_map *map, uint32_t gpu, struct gtopo_near_nic *near, struct gtopo_error *error)
{
    struct gtopo_link link;
    int status = 0;

    near->path_class = GTOPO_PATH_CLASSES; /* nothing was tried yet */
    for (size_t i = 0; !status && gtopo_map_link_of(map, near->nic, i, &link) != GTOPO_NONE; i++)
        if (link.kind == GTOPO_LINK_PORT)
            status = try_way(map, gpu, link.ends[link.ends[0] == near->nic], near, error);
    return status || near->path_class != GTOPO_PATH_CLASSES ? status : try_way(map, gpu, GTOPO_NONE, near, error);
}

int gtopo_nearest_nics(const struct gtopo_map *map, uint32_t gpu, struct gtopo_near_nic *nics, size_t capacity,
                       size_t *count, struct gtopo_error *error)
{
    struct gtopo_object object;
    struct gtopo_near_nic *all;
    uint32_t first = 0, objects = 0;
    size_t found = 0;
    int status = gtopo_map_object(map, gpu, &object, error);

    if (status)
        return status;
    if (object.kind != GTOPO_GPU)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the nearest NICs are asked of a %s: name a GPU",
                          gtopo_object_kind_name(object.kind));
    status = gtopo_map_host_objects(map, object.host, &first, &objects, error);
    all = status ? NULL : calloc(objects, sizeof *all);
    if (!all)
        return status ? status : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (uint32_t id = first; !status && id < first + objects; id++) {
        gtopo_map_object(map, id, &object, NULL);
        if (object.kind != GTOPO_NIC || gtopo_nic_is_part(map, id))
            continue;
        all[found].nic = id;
        status = see_nic(map, gpu, &all[found++], error);
    }
    if (!status) {
        if (found)
            qsort(all, found, sizeof *all, compare_nics);
        *count = found;
        for (size_t i = 0; i < found && i < capacity; i++)
            nics[i] = all[i];
    }
    free(all);
    return status;
}
