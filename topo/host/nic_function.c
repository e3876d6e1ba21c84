/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual functions of NICs, and what they are a share of. */
#include "topo/host/nic.h"
#include <stdio.h>
#include <string.h>

/* usNIC, which is for virtual functions only (drivers/infiniband/hw/usnic of Linux). */
#define USNIC_VENDOR 0x1137
#define USNIC_DEVICE 0x00cf
/* Functions that a bus has room for: made-up XML may have more, which are not worth the time. */
#define BUS_FUNCTIONS 256

/* The kernel's link, "../0000:3b:00.0", to a device that is there. */
static int by_sysfs(const struct gtopo_discovery *d, const struct gtopo_pci *device, char parent[GTOPO_PCI_ADDRESS_MAX])
{
    char target[GTOPO_SYSFS_PATH];
    const char *slash;
    unsigned domain, bus, slot, function;
    int end = 0;

    if (!gtopo_sysfs_link(&d->sysfs, target, "sys/bus/pci/devices/%s/physfn", device->address))
        return 0;
    slash = strrchr(target, '/');
    slash = slash ? slash + 1 : target;
    if (sscanf(slash, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &end) != 4 || slash[end] ||
        domain > INT32_MAX)
        return 0;
    snprintf(parent, GTOPO_PCI_ADDRESS_MAX, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    return gtopo_sysfs_exists(&d->sysfs, "sys/bus/pci/devices/%s", parent);
}

/* Names of the PCI database say it: "ConnectX-5 Virtual Function". */
static int is_named_virtual(const struct gtopo_pci *device)
{
    const char *name = device->hwloc ? hwloc_obj_get_info_by_name(device->hwloc, "PCIDevice") : NULL;

    return (name && strstr(name, "Virtual Function")) ||
           (device->vendor_id == USNIC_VENDOR && device->device_id == USNIC_DEVICE);
}

/*
 * Without sysfs, a device that is a virtual function by its name is a share of the one NIC of its vendor on its bus
 * that is none. In a virtual machine there is no such NIC, and it is a NIC like any other.
 */
static int by_name(const struct gtopo_pci *device, char parent[GTOPO_PCI_ADDRESS_MAX])
{
    const struct gtopo_pci *found = NULL, *other = device->parent ? device->parent->first_child : NULL;

    if (!is_named_virtual(device))
        return 0;
    for (int i = 0; other && i < BUS_FUNCTIONS; i++, other = other->next) {
        if (other->is_bridge || other->bus != device->bus || other->vendor_id != device->vendor_id ||
            other->class_id != device->class_id || is_named_virtual(other))
            continue;
        if (found)
            return 0;
        found = other;
    }
    if (found)
        snprintf(parent, GTOPO_PCI_ADDRESS_MAX, "%s", found->address);
    return found != NULL;
}

int gtopo_nic_physical_function(const struct gtopo_discovery *d, const struct gtopo_pci *device,
                                char parent[GTOPO_PCI_ADDRESS_MAX])
{
    return d->sysfs.fd >= 0 ? by_sysfs(d, device, parent) : by_name(device, parent);
}
