/* SPDX-License-Identifier: Apache-2.0 */
/* The machine, its packages and its NUMA nodes, and the links between them. */
#include "topo/host/host.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int describe_machine(struct gtopo_discovery *d)
{
    hwloc_obj_t root = hwloc_get_root_obj(d->topology);
    char text[GTOPO_SYSFS_TEXT], os[2 * GTOPO_SYSFS_TEXT], release[GTOPO_SYSFS_TEXT];
    int status = gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_VENDOR,
                                      gtopo_discovery_info(root, "DMISysVendor", text));

    if (!status)
        status = gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_MODEL,
                                      gtopo_discovery_info(root, "DMIProductName", text));
    if (!status && gtopo_sysfs_text(&d->sysfs, text, "sys/class/dmi/id/product_serial"))
        status = gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_SERIAL, text);
    if (!status && gtopo_discovery_info(root, "OSName", text)) {
        snprintf(os, sizeof os, "%s %s", text,
                 gtopo_discovery_info(root, "OSRelease", release) ? release : "");
        status = gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_OS, os);
    }
    return status;
}

/* A set of processors as "0-15,32-47". */
static int set_cpus(struct gtopo_discovery *d, uint32_t id, hwloc_const_cpuset_t set)
{
    char *text = NULL;
    int status;

    if (!set || hwloc_bitmap_iszero(set) || hwloc_bitmap_weight(set) < 0)
        return 0;
    if (hwloc_bitmap_list_asprintf(&text, set) < 0)
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_CPUS, text);
    free(text);
    return status;
}

static int add_package(struct gtopo_discovery *d, hwloc_obj_t object)
{
    char text[GTOPO_SYSFS_TEXT];
    uint32_t id;
    int cores, status = gtopo_discovery_add(d, GTOPO_PACKAGE, d->machine, 0, &id);

    if (status)
        return status;
    object->userdata = (void *)(uintptr_t)(id + 1);
    status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_MODEL, gtopo_discovery_info(object, "CPUModel", text));
    if (!status)
        status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_VENDOR, gtopo_discovery_info(object, "CPUVendor", text));
    cores = hwloc_get_nbobjs_inside_cpuset_by_type(d->topology, object->cpuset, HWLOC_OBJ_CORE);
    if (!status && cores > 0)
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_CORES, (uint64_t)cores);
    return status ? status : set_cpus(d, id, object->cpuset);
}

static int join_packages(struct gtopo_discovery *d)
{
    hwloc_obj_t a = NULL, b;
    int status = 0;

    while (!status && (a = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, a)))
        for (b = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, a); b && !status;
             b = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, b))
            status = gtopo_discovery_link(d, GTOPO_LINK_SOCKET, (uint32_t)(uintptr_t)a->userdata - 1,
                                          (uint32_t)(uintptr_t)b->userdata - 1, 0);
    return status;
}

/* Its own processors: those of the kernel's list, since hwloc gives memory-only nodes those nearby. */
static int set_numa_cpus(struct gtopo_discovery *d, uint32_t id, hwloc_obj_t object)
{
    char text[GTOPO_SYSFS_TEXT];

    if (object->subtype && !strcmp(object->subtype, "GPUMemory"))
        return 0;
    if (gtopo_sysfs_exists(&d->sysfs, "sys/devices/system/node/node%u", object->os_index))
        return gtopo_sysfs_text(&d->sysfs, text, "sys/devices/system/node/node%u/cpulist", object->os_index)
                   ? gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_CPUS, text)
                   : 0;
    return set_cpus(d, id, object->cpuset);
}

static int add_numa(struct gtopo_discovery *d, hwloc_obj_t object)
{
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, object);
    uint32_t parent = package ? (uint32_t)(uintptr_t)package->userdata - 1 : d->machine;
    unsigned os_index = object->os_index == HWLOC_UNKNOWN_INDEX ? 0 : object->os_index;
    uint32_t id;
    int status = gtopo_discovery_add(d, GTOPO_NUMA, parent, 0, &id);

    if (status)
        return status;
    if (gtopo_grow((void **)&d->numas, &d->numa_capacity, d->numa_count + 1, sizeof *d->numas))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    d->numas[d->numa_count++] = (struct gtopo_numa_place){id, os_index};
    object->userdata = (void *)(uintptr_t)(id + 1);
    status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_OS_INDEX, os_index);
    if (!status && object->attr->numanode.local_memory)
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_MEMORY_B, object->attr->numanode.local_memory);
    if (!status)
        status = set_numa_cpus(d, id, object);
    return status ? status : gtopo_discovery_link(d, package ? GTOPO_LINK_MEMORY : GTOPO_LINK_PLATFORM, id, parent, 0);
}

int gtopo_discover_processors(struct gtopo_discovery *d)
{
    hwloc_obj_t object = NULL;
    int status = describe_machine(d);

    while (!status && (object = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, object)))
        status = add_package(d, object);
    while (!status && (object = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_NUMANODE, object)))
        status = add_numa(d, object);
    return status ? status : join_packages(d);
}
