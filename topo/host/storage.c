/* SPDX-License-Identifier: Apache-2.0 */
/* Disks: one object for the namespaces of an NVMe controller, one for each disk of any other. */
#include "topo/host/host.h"
#include "lib/text.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_NVME 0x0108
#define CLASS_SATA "0x0106"
#define SECTOR_B 512

/* Persistent memory is memory, and a drive for discs is no storage of the host. */
static int is_disk_name(const char *name)
{
    return strncmp(name, "pmem", 4) && strncmp(name, "dax", 3) && strncmp(name, "sr", 2);
}

/* Nor is what can be taken out. */
static int is_disk(hwloc_obj_t object)
{
    return object->type == HWLOC_OBJ_OS_DEVICE && object->name && object->attr->osdev.type == HWLOC_OBJ_OSDEV_BLOCK &&
           is_disk_name(object->name) && !(object->subtype && !strncmp(object->subtype, "Removable", 9));
}

static int append(struct gtopo_disk **disks, size_t *count, size_t *capacity, const struct gtopo_disk *disk)
{
    if (gtopo_grow((void **)disks, capacity, *count + 1, sizeof **disks))
        return GTOPO_ENOMEM;
    (*disks)[(*count)++] = *disk;
    return 0;
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

/* What the disk speaks, by its way in sysfs and by the class of its controller; words as those of `lsblk -o TRAN`. */
static const char *interface_of(struct gtopo_discovery *d, uint32_t id, const char *name)
{
    static const struct {
        const char *on_the_way, *interface;
    } ways[] = {{"/virtio", "virtio"}, {"/usb", "usb"}, {"/session", "iscsi"}, {"/rport-", "fc"}, {"/ata", "sata"}};
    const char *pci_class = gtopo_map_text(d->map, id, GTOPO_ATTRIBUTE_PCI_CLASS);
    char path[GTOPO_SYSFS_PATH] = "", vendor[GTOPO_SYSFS_TEXT];

    if (!strncmp(name, "nvme", 4))
        return "nvme";
    if (!strncmp(name, "mmcblk", 6))
        return "mmc";
    gtopo_sysfs_link(&d->sysfs, path, "sys/class/block/%s", name);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strstr(path, ways[i].on_the_way))
            return ways[i].interface;
    /* Linux gives every ATA disk this vendor, behind SAS adapters and RAID controllers too. */
    if (gtopo_sysfs_text(&d->sysfs, vendor, "sys/class/block/%s/device/vendor", name) && !strcmp(vendor, "ATA"))
        return "sata";
    if (strstr(path, "/end_device-"))
        return "sas";
    return pci_class && !strncmp(pci_class, CLASS_SATA, strlen(CLASS_SATA)) ? "sata" : NULL;
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
        (status = disk_text(d, id, GTOPO_ATTRIBUTE_FIRMWARE, name, "device/firmware_rev")) ||
        (status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_INTERFACE, interface_of(d, id, name))))
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
static int find_namespace(struct gtopo_discovery *d, const char *address, char name[GTOPO_SYSFS_TEXT])
{
    struct gtopo_sysfs_names controllers, entries = {0};
    int found = 0, status;

    status = gtopo_sysfs_list(&d->sysfs, &controllers, "sys/bus/pci/devices/%s/nvme", address);
    if (!status && controllers.count)
        status = gtopo_sysfs_list(&d->sysfs, &entries, "sys/bus/pci/devices/%s/nvme/%s", address, controllers.names[0]);
    for (size_t i = 0; !status && !found && i < entries.count; i++)
        found = name_behind(entries.names[i], name) && gtopo_sysfs_exists(&d->sysfs, "sys/class/block/%s", name);
    gtopo_sysfs_names_clear(&entries);
    gtopo_sysfs_names_clear(&controllers);
    return status ? gtopo_fail(d->error, status, NULL, "out of memory") : found;
}

/* ---- disks on PCI functions that hwloc leaves out ---- */

/* The function that a disk is on by its path, if that is one that hwloc left out, or NULL. */
static struct gtopo_pci *left_out_function(const struct gtopo_discovery *d, const char *name)
{
    char path[GTOPO_SYSFS_PATH], address[GTOPO_PCI_ADDRESS_MAX];
    struct gtopo_pci *pci;

    if (!d->pci.left_out_count || !gtopo_sysfs_link(&d->sysfs, path, "sys/class/block/%s", name) ||
        !gtopo_pci_of_path(path, address))
        return NULL;
    pci = gtopo_pci_tree_find(&d->pci, address);
    return pci && !pci->hwloc ? pci : NULL;
}

/* hwloc puts a disk that is on a function which it leaves out on what is above: VMD, or the machine. */
static int is_disk_of_hwloc(const struct gtopo_discovery *d, hwloc_obj_t object)
{
    return is_disk(object) && !left_out_function(d, object->name);
}

/* Put a disk on its function, if hwloc left that out; `disk` is a free place for it. 1 when it is used. */
static int place_left_out(const struct gtopo_discovery *d, const char *name, struct gtopo_disk *disk)
{
    struct gtopo_pci *pci = is_disk_name(name) ? left_out_function(d, name) : NULL;
    int64_t is_removable = 0;

    if (!pci || gtopo_sysfs_exists(&d->sysfs, "sys/class/block/%s/partition", name))
        return 0;
    gtopo_sysfs_number(&d->sysfs, 0, 1, &is_removable, "sys/class/block/%s/removable", name);
    if (is_removable)
        return 0;
    *disk = (struct gtopo_disk){.name = name, .next = pci->disks};
    pci->disks = disk;
    return 1;
}

int gtopo_find_left_out_disks(struct gtopo_discovery *d)
{
    size_t count = 0;

    if (!d->pci.left_out_count)
        return 0;
    if (gtopo_sysfs_list(&d->sysfs, &d->block_names, "sys/class/block") ||
        !(d->left_out_disks = calloc(d->block_names.count + 1, sizeof *d->left_out_disks)))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < d->block_names.count; i++)
        count += place_left_out(d, d->block_names.names[i], &d->left_out_disks[count]);
    return 0;
}

/* ---- disks on the PCI bus ---- */

/* disk is NULL for an NVMe controller without a namespace that is shown. */
static int add_pci_disk(struct gtopo_discovery *d, uint32_t parent, struct gtopo_pci *device,
                        const struct gtopo_pci *port, const struct gtopo_disk *disk)
{
    char behind[GTOPO_SYSFS_TEXT];
    const char *name = disk ? disk->name : NULL;
    uint32_t id;
    int status = gtopo_discovery_add(d, GTOPO_STORAGE, parent, 0, &id);

    if (!status)
        status = gtopo_pci_facts(d, id, device);
    if (status)
        return status;
    if (disk ? name_behind(disk->name, behind) : (status = find_namespace(d, device->address, behind)) > 0)
        name = behind;
    if (status >= 0 && name)
        status = disk_facts(d, id, name, disk ? disk->hwloc : NULL);
    return status < 0 ? status : gtopo_pci_link(d, parent, id, device, port);
}

int gtopo_pci_has_storage(const struct gtopo_discovery *d, const struct gtopo_pci *device)
{
    if (device->class_id == CLASS_NVME || device->disks)
        return 1;
    for (hwloc_obj_t child = device->hwloc ? device->hwloc->io_first_child : NULL; child; child = child->next_sibling)
        if (is_disk_of_hwloc(d, child))
            return 1;
    return 0;
}

static int compare_disks(const void *a, const void *b)
{
    return strverscmp(((const struct gtopo_disk *)a)->name, ((const struct gtopo_disk *)b)->name);
}

/* The disks of a device, in the order of their names; the list is the caller's. */
static int list_disks(struct gtopo_discovery *d, const struct gtopo_pci *device, struct gtopo_disk **disks,
                      size_t *count)
{
    hwloc_obj_t child = device->hwloc ? device->hwloc->io_first_child : NULL;
    size_t capacity = 0;
    int status = 0;

    for (; child && !status; child = child->next_sibling)
        if (is_disk_of_hwloc(d, child))
            status = append(disks, count, &capacity, &(struct gtopo_disk){.name = child->name, .hwloc = child});
    for (const struct gtopo_disk *disk = device->disks; disk && !status; disk = disk->next)
        status = append(disks, count, &capacity, disk);
    if (status)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    if (*count) /* hwloc has them in the order of a folder, which is none */
        qsort(*disks, *count, sizeof **disks, compare_disks);
    return 0;
}

int gtopo_discover_pci_storage(struct gtopo_discovery *d, uint32_t parent, struct gtopo_pci *device,
                               const struct gtopo_pci *port)
{
    int is_nvme = device->class_id == CLASS_NVME, status;
    struct gtopo_disk *disks = NULL;
    size_t count = 0;

    status = list_disks(d, device, &disks, &count);
    if (is_nvme && !status)
        status = add_pci_disk(d, parent, device, port, count ? &disks[0] : NULL);
    for (size_t i = 0; i < count && !is_nvme && !status; i++)
        status = add_pci_disk(d, parent, device, port, &disks[i]);
    free(disks);
    return status;
}

/* ---- other disks ---- */

static int is_other_disk(const struct gtopo_discovery *d, hwloc_obj_t object)
{
    static const char *const made_by_software[] = {"loop", "zram", "dm-", "md"};

    if (!is_disk_of_hwloc(d, object) || object->parent->type == HWLOC_OBJ_PCI_DEVICE)
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
    hwloc_obj_t object = NULL;
    struct gtopo_disk *disks = NULL;
    size_t count = 0, capacity = 0;
    int status = 0;

    while (!status && (object = hwloc_get_next_osdev(d->topology, object)))
        if (is_other_disk(d, object))
            status = append(&disks, &count, &capacity, &(struct gtopo_disk){.name = object->name, .hwloc = object});
    if (status)
        status = gtopo_fail(d->error, status, NULL, "out of memory");
    if (count)
        qsort(disks, count, sizeof *disks, compare_disks);
    for (size_t i = 0; i < count && !status; i++)
        status = add_other_disk(d, disks[i].hwloc);
    free(disks);
    return status;
}
