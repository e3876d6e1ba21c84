/* SPDX-License-Identifier: Apache-2.0 */
/* The machine, its packages and its NUMA nodes, and the links between them. */
#include "topo/host/host.h"
#include "lib/text.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest machines have a few hundred; each gets a link to each. */
#define PACKAGES_MAX 1024

/*
 * A virtual machine, whose buses its hypervisor made up: by the flag that x86 has for it, else by what the firmware is
 * called (as systemd-detect-virt(1) tells them). An administrator who gives the guest a tree gives its buses nodes.
 */
static int find_virtual(struct gtopo_discovery *d)
{
    static const char *const names[] = {"QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Bochs", "BHYVE", "OpenStack"};
    char text[GTOPO_SYSFS_TEXT];

    d->is_virtual = gtopo_sysfs_has_word(&d->sysfs, "hypervisor", "proc/cpuinfo");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int of_product = 0; of_product < 2; of_product++)
            if (gtopo_sysfs_text(&d->sysfs, text, "sys/class/dmi/id/%s", of_product ? "product_name" : "sys_vendor") &&
                strstr(text, names[i]))
                d->is_virtual = 1;
    return d->is_virtual ? gtopo_discovery_number(d, d->machine, GTOPO_ATTRIBUTE_VIRTUAL, 1) : 0;
}

static int describe_machine(struct gtopo_discovery *d)
{
    hwloc_obj_t root = hwloc_get_root_obj(d->topology);
    char text[GTOPO_SYSFS_TEXT], os[2 * GTOPO_SYSFS_TEXT], release[GTOPO_SYSFS_TEXT];
    int status =
        gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_VENDOR, gtopo_discovery_info(root, "DMISysVendor", text));

    if (!status)
        status = gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_MODEL,
                                      gtopo_discovery_info(root, "DMIProductName", text));
    if (!status && gtopo_sysfs_text(&d->sysfs, text, "sys/class/dmi/id/product_serial"))
        status = gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_SERIAL, text);
    if (!status && gtopo_discovery_info(root, "OSName", text)) {
        snprintf(os, sizeof os, "%s %s", text, gtopo_discovery_info(root, "OSRelease", release) ? release : "");
        status = gtopo_discovery_text(d, d->machine, GTOPO_ATTRIBUTE_OS, os);
    }
    return status ? status : find_virtual(d);
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

/* Words of a mask, none of them empty: hwloc 2.9 ends the process at a comma that no word comes before. */
static int is_words(const char *mask)
{
    char before = ',';

    for (; *mask; before = *mask++)
        if (!strchr("0123456789abcdefABCDEFx,", *mask) || (before == ',' && !isxdigit((unsigned char)*mask)))
            return 0;
    return before != ',';
}

int gtopo_discovery_cpu_mask(struct gtopo_discovery *d, uint32_t id, const char *mask, int *is_mask)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int status = 0;

    if (!set)
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    *is_mask = is_words(mask) && !hwloc_bitmap_sscanf(set, mask);
    if (*is_mask)
        status = set_cpus(d, id, set);
    hwloc_bitmap_free(set);
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
    if (!status)
        status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_ARCHITECTURE,
                                      gtopo_discovery_info(hwloc_get_root_obj(d->topology), "Architecture", text));
    if (!status && gtopo_discovery_info(object, "CPUFamilyNumber", text))
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_CPU_FAMILY, strtoul(text, NULL, 10));
    if (!status && gtopo_discovery_info(object, "CPUModelNumber", text))
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_CPU_MODEL, strtoul(text, NULL, 10));
    cores = hwloc_get_nbobjs_inside_cpuset_by_type(d->topology, object->cpuset, HWLOC_OBJ_CORE);
    if (!status && cores > 0)
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_CORES, (uint64_t)cores);
    return status ? status : set_cpus(d, id, object->cpuset);
}

static int join_packages(struct gtopo_discovery *d)
{
    hwloc_obj_t a = NULL, b;
    int status = 0;

    if (hwloc_get_nbobjs_by_type(d->topology, HWLOC_OBJ_PACKAGE) > PACKAGES_MAX)
        return gtopo_fail(d->error, GTOPO_EFORMAT, NULL, "a machine of more than %d packages is not one", PACKAGES_MAX);
    while (!status && (a = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, a)))
        for (b = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, a); b && !status;
             b = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, b))
            status = gtopo_discovery_link(d, GTOPO_LINK_SOCKET, (uint32_t)(uintptr_t)a->userdata - 1,
                                          (uint32_t)(uintptr_t)b->userdata - 1, 0);
    return status;
}

/* Memory of a GPU, or that a driver turned into a node: CXL, persistent. */
static int is_memory_only(hwloc_obj_t object)
{
    return (object->subtype && (!strcmp(object->subtype, "GPUMemory") || !strncmp(object->subtype, "CXL", 3) ||
                                !strcmp(object->subtype, "NVM"))) ||
           hwloc_obj_get_info_by_name(object, "DAXDevice");
}

/* Its own processors: those of the kernel's list, since hwloc gives memory-only nodes those nearby. */
static int set_numa_cpus(struct gtopo_discovery *d, struct gtopo_numa_place *numa, hwloc_obj_t object)
{
    char text[GTOPO_SYSFS_TEXT];

    /* The kernel's list may be longer than a text of ours: it says whether there are any, hwloc says which. */
    numa->has_cpus = !is_memory_only(object) && object->cpuset && !hwloc_bitmap_iszero(object->cpuset);
    if (gtopo_sysfs_exists(&d->sysfs, "sys/devices/system/node/node%u/cpulist", object->os_index))
        numa->has_cpus = gtopo_sysfs_text(&d->sysfs, text, "sys/devices/system/node/node%u/cpulist", object->os_index);
    return numa->has_cpus ? set_cpus(d, numa->id, object->cpuset) : 0;
}

static int add_numa(struct gtopo_discovery *d, hwloc_obj_t object)
{
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, object);
    uint32_t parent = package ? (uint32_t)(uintptr_t)package->userdata - 1 : d->machine;
    struct gtopo_numa_place numa = {.os_index = object->os_index};
    int status = gtopo_discovery_add(d, GTOPO_NUMA, parent, 0, &numa.id);
    uint32_t id = numa.id;

    if (!status && object->os_index != HWLOC_UNKNOWN_INDEX)
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_OS_INDEX, object->os_index);
    if (!status && object->attr->numanode.local_memory)
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_MEMORY_B, object->attr->numanode.local_memory);
    if (!status)
        status = set_numa_cpus(d, &numa, object);
    if (status)
        return status;
    if (gtopo_grow((void **)&d->numas, &d->numa_capacity, d->numa_count + 1, sizeof *d->numas))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    d->numas[d->numa_count++] = numa;
    return gtopo_discovery_link(d, package ? GTOPO_LINK_MEMORY : GTOPO_LINK_PLATFORM, id, parent, 0);
}

uint32_t gtopo_numa_object(const struct gtopo_discovery *d, int64_t os_index)
{
    for (size_t i = 0; i < d->numa_count; i++)
        if (d->numas[i].os_index == (uint64_t)os_index && d->numas[i].has_cpus)
            return d->numas[i].id;
    return GTOPO_NONE;
}

hwloc_obj_t gtopo_place_of(const struct gtopo_discovery *d, hwloc_obj_t device)
{
    hwloc_obj_t place = device ? hwloc_get_non_io_ancestor_obj(d->topology, device) : NULL;
    hwloc_obj_t root = hwloc_get_root_obj(d->topology);

    /* A package or a group that has all processors says no more than the root does. */
    return !place || !place->cpuset || hwloc_bitmap_isincluded(root->cpuset, place->cpuset) ? NULL : place;
}

int64_t gtopo_numa_of_place(const struct gtopo_discovery *d, hwloc_obj_t device)
{
    hwloc_obj_t place = gtopo_place_of(d, device);
    int64_t found = -1;

    for (size_t i = 0; place && place->nodeset && i < d->numa_count; i++)
        if (d->numas[i].has_cpus && hwloc_bitmap_isset(place->nodeset, d->numas[i].os_index)) {
            if (found >= 0)
                return -1;
            found = d->numas[i].os_index;
        }
    return found;
}

int gtopo_join_machine(struct gtopo_discovery *d)
{
    hwloc_obj_t package = NULL;
    int status = 0;

    if (!d->machine_used)
        return 0;
    while (!status && (package = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_PACKAGE, package)))
        status =
            gtopo_discovery_link(d, GTOPO_LINK_PLATFORM, (uint32_t)(uintptr_t)package->userdata - 1, d->machine, 0);
    return status;
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
