/* SPDX-License-Identifier: Apache-2.0 */
/* Disks: one object for the namespaces of an NVMe controller, one for each disk of any other. */
#include "topo/host/host.h"
#include "lib/text.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_NVME 0x0108
#define SECTOR_B 512

static int is_disk(hwloc_obj_t object)
{
    /* Persistent memory is memory, and what can be taken out is no storage of the host. */
    return object->type == HWLOC_OBJ_OS_DEVICE && object->name && object->attr->osdev.type == HWLOC_OBJ_OSDEV_BLOCK &&
           strncmp(object->name, "pmem", 4) && strncmp(object->name, "dax", 3) && strncmp(object->name, "sr", 2) &&
           !(object->subtype && !strncmp(object->subtype, "Removable", 9));
}

static int disk_text(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, const char *disk,
                     const char *file)
{
    char text[GTOPO_SYSFS_TEXT];

    if (!gtopo_sysfs_text(&d->sysfs, text, "sys/class/block/%s/%s", disk, file))
        return 0;
    return gtopo_discovery_text(d, id, attribute, text);
}

static int text_of_hwloc(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, hwloc_obj_t disk,
                         const char *info)
{
    char text[GTOPO_SYSFS_TEXT];

    /* hwloc takes udev's word, in which the label of a volume group may stand for the disk's model. */
    if (!gtopo_discovery_info(disk, info, text) || !strncmp(text, "LVM PV ", 7))
        return 0;
    return gtopo_discovery_text(d, id, attribute, text);
}

/* hwloc's object may be NULL. */
static int disk_facts(struct gtopo_discovery *d, uint32_t id, const char *name, hwloc_obj_t disk)
{
    int64_t number;
    int status;

    if ((status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_DEVICE, name)) ||
        (status = text_of_hwloc(d, id, GTOPO_ATTRIBUTE_MODEL, disk, "Model")) ||
        (status = text_of_hwloc(d, id, GTOPO_ATTRIBUTE_SERIAL, disk, "SerialNumber")) ||
        (status = disk_text(d, id, GTOPO_ATTRIBUTE_MODEL, name, "device/model")) ||
        (status = disk_text(d, id, GTOPO_ATTRIBUTE_SERIAL, name, "device/serial")) ||
        (status = disk_text(d, id, GTOPO_ATTRIBUTE_FIRMWARE, name, "device/firmware_rev")))
        return status;
    if (gtopo_sysfs_number(&d->sysfs, 1, INT64_MAX / SECTOR_B, &number, "sys/class/block/%s/size", name))
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_CAPACITY_B, (uint64_t)number * SECTOR_B);
    if (!status && gtopo_sysfs_number(&d->sysfs, 0, 1, &number, "sys/class/block/%s/queue/rotational", name))
        status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_ROTATIONAL, (uint64_t)number);
    return status;
}

/* ---- NVMe with several paths ---- */

/*
 * A controller that may have partners has its namespace under a name that nobody opens: nvme0c1n1 is the path through
 * the second controller to nvme0n1, which stands on no device. 1 and the name for use, when `path` is such a one.
 */
static int name_behind(const char *path, char name[GTOPO_SYSFS_TEXT])
{
    unsigned subsystem, controller, space;
    int end = 0;

    if (sscanf(path, "nvme%9uc%9un%9u%n", &subsystem, &controller, &space, &end) != 3 || path[end])
        return 0;
    snprintf(name, GTOPO_SYSFS_TEXT, "nvme%un%u", subsystem, space);
    return 1;
}

/* The first namespace of an NVMe controller by sysfs, for where hwloc shows none. 1 when there is one; or a status. */
static int find_namespace(struct gtopo_discovery *d, hwloc_obj_t device, char name[GTOPO_SYSFS_TEXT])
{
    struct gtopo_sysfs_names controllers, entries = {0};
    char address[GTOPO_PCI_ADDRESS_MAX];
    int found = 0, status;

    gtopo_pci_address(device, address);
    status = gtopo_sysfs_list(&d->sysfs, &controllers, "sys/bus/pci/devices/%s/nvme", address);
    if (!status && controllers.count)
        status = gtopo_sysfs_list(&d->sysfs, &entries, "sys/bus/pci/devices/%s/nvme/%s", address, controllers.names[0]);
    for (size_t i = 0; !status && !found && i < entries.count; i++)
        found = name_behind(entries.names[i], name) && gtopo_sysfs_exists(&d->sysfs, "sys/class/block/%s", name);
    gtopo_sysfs_names_clear(&entries);
    gtopo_sysfs_names_clear(&controllers);
    return status ? gtopo_fail(d->error, status, NULL, "out of memory") : found;
}

/* ---- disks on the PCI bus ---- */

/* disk may be NULL: an NVMe controller without a namespace that hwloc shows. */
static int add_pci_disk(struct gtopo_discovery *d, uint32_t parent, hwloc_obj_t device, hwloc_obj_t port,
                        hwloc_obj_t disk)
{
    char behind[GTOPO_SYSFS_TEXT];
    const char *name = disk ? disk->name : NULL;
    uint32_t id;
    int status = gtopo_discovery_add(d, GTOPO_STORAGE, parent, 0, &id);

    if (!status)
        status = gtopo_pci_facts(d, id, device);
    if (status)
        return status;
    if (disk ? name_behind(disk->name, behind) : (status = find_namespace(d, device, behind)) > 0)
        name = behind;
    if (status >= 0 && name)
        status = disk_facts(d, id, name, disk);
    return status < 0 ? status : gtopo_pci_link(d, parent, id, device, port);
}

int gtopo_pci_has_storage(hwloc_obj_t device)
{
    if (device->attr->pcidev.class_id == CLASS_NVME)
        return 1;
    for (hwloc_obj_t child = device->io_first_child; child; child = child->next_sibling)
        if (is_disk(child))
            return 1;
    return 0;
}

static int compare_disks(const void *a, const void *b)
{
    return strverscmp((*(const hwloc_obj_t *)a)->name, (*(const hwloc_obj_t *)b)->name);
}

int gtopo_discover_pci_storage(struct gtopo_discovery *d, uint32_t parent, hwloc_obj_t device, hwloc_obj_t port)
{
    int is_nvme = device->attr->pcidev.class_id == CLASS_NVME, status = 0;
    hwloc_obj_t *disks = NULL;
    size_t count = 0, capacity = 0;

    for (hwloc_obj_t child = device->io_first_child; child && !status; child = child->next_sibling)
        if (is_disk(child)) {
            if (gtopo_grow((void **)&disks, &capacity, count + 1, sizeof *disks))
                status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
            else
                disks[count++] = child;
        }
    if (count) /* hwloc has them in the order of a folder, which is none */
        qsort(disks, count, sizeof *disks, compare_disks);
    if (is_nvme && !status)
        status = add_pci_disk(d, parent, device, port, count ? disks[0] : NULL);
    for (size_t i = 0; i < count && !is_nvme && !status; i++)
        status = add_pci_disk(d, parent, device, port, disks[i]);
    free(disks);
    return status;
}

/* ---- other disks ---- */

static int is_other_disk(const struct gtopo_discovery *d, hwloc_obj_t object)
{
    static const char *const made_by_software[] = {"loop", "zram", "dm-", "md"};

    if (!is_disk(object) || object->userdata || object->parent->type == HWLOC_OBJ_PCI_DEVICE)
        return 0;
    for (size_t i = 0; i < sizeof made_by_software / sizeof *made_by_software; i++)
        if (!strncmp(object->name, made_by_software[i], strlen(made_by_software[i])))
            return 0;
    return d->sysfs.fd < 0 || gtopo_sysfs_exists(&d->sysfs, "sys/class/block/%s/device", object->name);
}

static int add_other_disk(struct gtopo_discovery *d, hwloc_obj_t object)
{
    uint32_t id;
    int status = gtopo_discovery_add(d, GTOPO_STORAGE, d->machine, 0, &id);

    if (!status)
        status = disk_facts(d, id, object->name, object);
    if (!status)
        status = gtopo_map_set_unknown(d->map, id, GTOPO_ATTRIBUTE_NUMA, d->error);
    return status ? status : gtopo_discovery_link(d, GTOPO_LINK_PLATFORM, id, d->machine, 0);
}

int gtopo_discover_other_storage(struct gtopo_discovery *d)
{
    hwloc_obj_t object = NULL, *disks = NULL;
    size_t count = 0, capacity = 0;
    int status = 0;

    while (!status && (object = hwloc_get_next_osdev(d->topology, object)))
        if (is_other_disk(d, object)) {
            if (gtopo_grow((void **)&disks, &capacity, count + 1, sizeof *disks))
                status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
            else
                disks[count++] = object;
        }
    if (count)
        qsort(disks, count, sizeof *disks, compare_disks);
    for (size_t i = 0; i < count && !status; i++)
        status = add_other_disk(d, disks[i]);
    free(disks);
    return status;
}
