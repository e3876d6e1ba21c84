/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI domains of more than 16 bits: what is behind Intel's VMD. hwloc 2 has no room for such a domain and leaves its
 * devices out without a word. Here they are made from sysfs in hwloc's form, so that the rest treats them as any other:
 * the upper half of the domain is in os_index, which hwloc does not use for PCI.
 */
#include "topo/host/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_PCI_BRIDGE 0x0604

struct pci_address {
    unsigned domain, bus, slot, function;
};

struct gtopo_wide_object {
    struct hwloc_obj object;
    union hwloc_obj_attr_u attributes;
    struct pci_address address; /* of a host bridge the domain alone */
    hwloc_obj_t last_child;
};

unsigned gtopo_pci_domain(hwloc_obj_t object, unsigned low_bits)
{
    return object->os_index == HWLOC_UNKNOWN_INDEX ? low_bits : (object->os_index & 0xffff) << 16 | low_bits;
}

/* 1 for "10000:3b:00.0", with `size` characters. */
static int read_address(const char *text, size_t size, struct pci_address *a)
{
    char copy[GTOPO_PCI_ADDRESS_MAX];
    int end = 0;

    if (size >= sizeof copy)
        return 0;
    memcpy(copy, text, size);
    copy[size] = 0;
    return sscanf(copy, "%8x:%2x:%2x.%1x%n", &a->domain, &a->bus, &a->slot, &a->function, &end) == 4 && !copy[end] &&
           a->domain > 0xffff;
}

static int compare_addresses(const void *a, const void *b)
{
    const struct pci_address *x = &((const struct gtopo_wide_object *)a)->address;
    const struct pci_address *y = &((const struct gtopo_wide_object *)b)->address;

    if (x->domain != y->domain)
        return x->domain < y->domain ? -1 : 1;
    if (x->bus != y->bus)
        return x->bus < y->bus ? -1 : 1;
    return (int)(x->slot << 3 | x->function) - (int)(y->slot << 3 | y->function);
}

static struct gtopo_wide_object *find(const struct gtopo_wide_domains *wide, const struct pci_address *address)
{
    struct gtopo_wide_object key = {.address = *address};

    return bsearch(&key, wide->devices, wide->device_count, sizeof key, compare_addresses);
}

/* ---- one device ---- */

static unsigned read_id(const struct gtopo_discovery *d, const char *name, const char *file)
{
    int64_t number;

    return gtopo_sysfs_number(&d->sysfs, 0, 0xffff, &number, "sys/bus/pci/devices/%s/%s", name, file) ? (unsigned)number
                                                                                                      : 0;
}

static void fill_pci(const struct gtopo_discovery *d, const char *name, const struct pci_address *address,
                     unsigned class_id, struct hwloc_pcidev_attr_s *pci)
{
    pci->domain = (unsigned short)address->domain;
    pci->bus = (unsigned char)address->bus;
    pci->dev = (unsigned char)address->slot;
    pci->func = (unsigned char)address->function;
    pci->class_id = (unsigned short)class_id;
    pci->vendor_id = (unsigned short)read_id(d, name, "vendor");
    pci->device_id = (unsigned short)read_id(d, name, "device");
    pci->subvendor_id = (unsigned short)read_id(d, name, "subsystem_vendor");
    pci->subdevice_id = (unsigned short)read_id(d, name, "subsystem_device");
}

static void make_device(const struct gtopo_discovery *d, const char *name, struct gtopo_wide_object *device)
{
    int64_t class_id = 0;
    int is_bridge;

    gtopo_sysfs_number(&d->sysfs, 0, 0xffffff, &class_id, "sys/bus/pci/devices/%s/class", name);
    is_bridge = class_id >> 8 == CLASS_PCI_BRIDGE;
    device->object.type = is_bridge ? HWLOC_OBJ_BRIDGE : HWLOC_OBJ_PCI_DEVICE;
    device->object.os_index = device->address.domain >> 16;
    fill_pci(d, name, &device->address, (unsigned)(class_id >> 8),
             is_bridge ? &device->attributes.bridge.upstream.pci : &device->attributes.pcidev);
    device->attributes.bridge.upstream_type = HWLOC_OBJ_BRIDGE_PCI;
    device->attributes.bridge.downstream_type = HWLOC_OBJ_BRIDGE_PCI;
}

static int make_devices(struct gtopo_discovery *d, const struct gtopo_sysfs_names *names)
{
    struct gtopo_wide_domains *wide = &d->wide;

    wide->devices = calloc(names->count + 1, sizeof *wide->devices);
    wide->bridges = calloc(names->count + 1, sizeof *wide->bridges);
    if (!wide->devices || !wide->bridges)
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < names->count; i++) {
        struct gtopo_wide_object *device = &wide->devices[wide->device_count];
        struct pci_address *a = &device->address;

        if (!read_address(names->names[i], strlen(names->names[i]), a))
            continue;
        /* A later hwloc has room. */
        if (!wide->device_count && hwloc_get_pcidev_by_busid(d->topology, a->domain, a->bus, a->slot, a->function))
            return 0;
        make_device(d, names->names[i], device);
        wide->device_count++;
    }
    qsort(wide->devices, wide->device_count, sizeof *wide->devices, compare_addresses);
    return 0;
}

/* ---- the tree ---- */

static void attach(struct gtopo_wide_object *parent, hwloc_obj_t child)
{
    child->parent = &parent->object;
    if (parent->last_child)
        parent->last_child->next_sibling = child;
    else
        parent->object.io_first_child = child;
    parent->last_child = child;
}

/* Devices come by address: that of the last domain is the last. */
static struct gtopo_wide_object *bridge_of(struct gtopo_discovery *d, const struct pci_address *address)
{
    struct gtopo_wide_domains *wide = &d->wide;
    struct gtopo_wide_object *bridge = wide->bridge_count ? &wide->bridges[wide->bridge_count - 1] : NULL;

    if (bridge && bridge->address.domain == address->domain)
        return bridge;
    bridge = &wide->bridges[wide->bridge_count++];
    bridge->address.domain = address->domain;
    bridge->object.type = HWLOC_OBJ_BRIDGE;
    bridge->object.os_index = address->domain >> 16;
    bridge->object.parent = hwloc_get_root_obj(d->topology);
    bridge->attributes.bridge.upstream_type = HWLOC_OBJ_BRIDGE_HOST;
    bridge->attributes.bridge.downstream_type = HWLOC_OBJ_BRIDGE_PCI;
    bridge->attributes.bridge.downstream.pci.domain = (unsigned short)address->domain;
    return bridge;
}

/*
 * What a device is below stands before it in its path: ".../pci10000:00/10000:00:02.0/10000:01:00.0". A bridge has a
 * lower bus number than what is below it, so that nothing can be below itself.
 */
static struct gtopo_wide_object *parent_of(struct gtopo_discovery *d, const struct pci_address *address)
{
    char path[GTOPO_SYSFS_PATH];
    struct pci_address above;
    size_t end, begin;

    if (!gtopo_sysfs_link(&d->sysfs, path, "sys/bus/pci/devices/%04x:%02x:%02x.%x", address->domain, address->bus,
                          address->slot, address->function))
        return NULL;
    for (end = strlen(path); end && path[end - 1] == '/';)
        end--;
    for (; end && path[end - 1] != '/';)
        end--;
    if (!end)
        return NULL;
    end--; /* where the name of what is above ends */
    for (begin = end; begin && path[begin - 1] != '/';)
        begin--;
    if (!strncmp(path + begin, "pci", 3))
        return bridge_of(d, address);
    if (!read_address(path + begin, end - begin, &above) || above.domain != address->domain ||
        above.bus >= address->bus)
        return NULL;
    return find(&d->wide, &above);
}

static void make_tree(struct gtopo_discovery *d)
{
    for (size_t i = 0; i < d->wide.device_count; i++) {
        struct gtopo_wide_object *device = &d->wide.devices[i], *parent = parent_of(d, &device->address);

        device->object.attr = &device->attributes;
        if (parent)
            attach(parent, &device->object);
        else
            d->wide.unplaced++;
    }
    for (size_t i = 0; i < d->wide.bridge_count; i++)
        d->wide.bridges[i].object.attr = &d->wide.bridges[i].attributes;
}

/* ---- their disks, which hwloc has put on the machine ---- */

/* The device that a path of sysfs leads through last. */
static struct gtopo_wide_object *device_on(const struct gtopo_wide_domains *wide, const char *path)
{
    struct gtopo_wide_object *found = NULL;

    while (*path) {
        size_t size = strcspn(path, "/");
        struct pci_address address;

        if (read_address(path, size, &address) && find(wide, &address))
            found = find(wide, &address);
        path += size + (path[size] == '/');
    }
    return found;
}

static int place_disks(struct gtopo_discovery *d)
{
    hwloc_obj_t object = NULL;
    size_t count = 0;

    while ((object = hwloc_get_next_osdev(d->topology, object)))
        count++;
    d->wide.disks = calloc(count + 1, sizeof *d->wide.disks);
    if (!d->wide.disks)
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    while ((object = hwloc_get_next_osdev(d->topology, object))) {
        hwloc_obj_t copy = &d->wide.disks[d->wide.disk_count];
        struct gtopo_wide_object *device;
        char path[GTOPO_SYSFS_PATH];

        if (object->attr->osdev.type != HWLOC_OBJ_OSDEV_BLOCK || !object->name || strchr(object->name, '/') ||
            !gtopo_sysfs_link(&d->sysfs, path, "sys/class/block/%s", object->name))
            continue;
        device = device_on(&d->wide, path);
        if (!device)
            continue;
        *copy = *object;
        copy->next_sibling = NULL;
        attach(device, copy);
        object->userdata = copy; /* it is where its copy is */
        d->wide.disk_count++;
    }
    return 0;
}

int gtopo_wide_domains_find(struct gtopo_discovery *d)
{
    struct gtopo_sysfs_names names;
    int status = gtopo_sysfs_list(&d->sysfs, &names, "sys/bus/pci/devices");

    if (status)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    status = make_devices(d, &names);
    gtopo_sysfs_names_clear(&names);
    if (status || !d->wide.device_count)
        return status;
    make_tree(d);
    return place_disks(d);
}

hwloc_obj_t gtopo_wide_domains_bridge(const struct gtopo_wide_domains *wide, size_t index)
{
    return &wide->bridges[index].object;
}

void gtopo_wide_domains_clear(struct gtopo_wide_domains *wide)
{
    free(wide->devices);
    free(wide->bridges);
    free(wide->disks);
}
