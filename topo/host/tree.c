/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host bridges, PCIe switches and what is on them. hwloc shows every PCI bridge; here a root port belongs to its host
 * bridge, and the upstream port and the downstream ports of a switch are one object.
 */
#include "topo/host/host.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>

#define CLASS_NIC 0x02
#define CLASS_STORAGE 0x01
#define CLASS_DISPLAY 0x03
#define CLASS_ACCELERATOR 0x12
#define CLASS_INFINIBAND 0x0c06 /* of adapters older than the network class 0x0207 */
#define CLASS_OTHER_BRIDGE 0x0680
#define VENDOR_NVIDIA 0x10de

/* Display controllers that no one computes on: of management controllers and of virtual machines. */
static const unsigned plain_display_vendors[] = {
    0x1013, /* Cirrus */
    0x102b, /* Matrox */
    0x1234, /* QEMU standard VGA */
    0x1414, /* Hyper-V */
    0x15ad, /* VMware */
    0x1a03, /* ASPEED */
    0x1af4, /* virtio */
    0x1b36, /* QXL */
    0x18ca, /* XGI */
    0x126f, /* Silicon Motion */
    0x80ee, /* VirtualBox */
};

/* What the next PCI bridge below a place is. */
enum below { ROOT_PORT, UPSTREAM_PORT, DOWNSTREAM_PORT };

/* Where a subtree is attached. */
struct place {
    uint32_t id;      /* object */
    hwloc_obj_t port; /* the root or downstream port above, or NULL */
    enum below below;
};

/* ---- devices ---- */

static int is_gpu(const struct hwloc_pcidev_attr_s *pci)
{
    unsigned base = pci->class_id >> 8;

    if (base == CLASS_ACCELERATOR)
        return 1;
    if (base != CLASS_DISPLAY)
        return 0;
    for (size_t i = 0; i < sizeof plain_display_vendors / sizeof *plain_display_vendors; i++)
        if (pci->vendor_id == plain_display_vendors[i])
            return 0;
    return 1;
}

static int add_device(struct gtopo_discovery *d, enum gtopo_object_kind kind, const struct place *place,
                      hwloc_obj_t device, uint32_t *id)
{
    int status = gtopo_discovery_add(d, kind, place->id, 0, id);

    if (!status) {
        device->userdata = (void *)(uintptr_t)(*id + 1);
        status = gtopo_pci_facts(d, *id, device);
    }
    return status ? status : gtopo_pci_link(d, place->id, *id, device, place->port);
}

static int add_nic(struct gtopo_discovery *d, const struct place *place, hwloc_obj_t device)
{
    struct gtopo_found_nic nic = {.object = device};
    int status = add_device(d, GTOPO_NIC, place, device, &nic.id);

    if (status)
        return status;
    gtopo_pci_address(device, nic.address);
    if (gtopo_grow((void **)&d->nics, &d->nic_capacity, d->nic_count + 1, sizeof *d->nics))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    d->nics[d->nic_count++] = nic;
    return 0;
}

/* What a PCI device is in the map, or GTOPO_OBJECT_KINDS for what is not in it. */
static enum gtopo_object_kind kind_of(const struct gtopo_discovery *d, hwloc_obj_t device)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
    char address[GTOPO_PCI_ADDRESS_MAX];

    gtopo_pci_address(device, address);
    /* A virtual function is a share of a card that is in the map already. */
    if (gtopo_sysfs_exists(&d->sysfs, "sys/bus/pci/devices/%s/physfn", address))
        return GTOPO_OBJECT_KINDS;
    if (is_gpu(pci))
        return GTOPO_GPU;
    if (pci->class_id >> 8 == CLASS_NIC || pci->class_id == CLASS_INFINIBAND)
        return GTOPO_NIC;
    if (pci->class_id >> 8 == CLASS_STORAGE && gtopo_pci_has_storage(device))
        return GTOPO_STORAGE;
    /* hwloc asks the driver too, which knows one whose configuration space cannot be read. */
    if ((pci->class_id == CLASS_OTHER_BRIDGE && pci->vendor_id == VENDOR_NVIDIA) ||
        (device->subtype && !strcmp(device->subtype, "NVSwitch")))
        return GTOPO_NVSWITCH;
    return GTOPO_OBJECT_KINDS;
}

static int visit_device(struct gtopo_discovery *d, const struct place *place, hwloc_obj_t device)
{
    enum gtopo_object_kind kind = kind_of(d, device);
    uint32_t id;

    switch (kind) {
    case GTOPO_NIC:
        return add_nic(d, place, device);
    case GTOPO_STORAGE:
        return gtopo_discover_pci_storage(d, place->id, device, place->port);
    case GTOPO_OBJECT_KINDS:
        return 0;
    default:
        return add_device(d, kind, place, device, &id);
    }
}

/* ---- bridges ---- */

static int has_express_link(const struct gtopo_discovery *d, hwloc_obj_t bridge)
{
    char address[GTOPO_PCI_ADDRESS_MAX];

    gtopo_pci_address(bridge, address);
    return gtopo_sysfs_exists(&d->sysfs, "sys/bus/pci/devices/%s/max_link_width", address);
}

/* Is it the upstream port of a switch? A bridge to conventional PCI may have bridges below too, but those have no link.
 */
static int is_upstream_port(const struct gtopo_discovery *d, hwloc_obj_t bridge)
{
    int is_express = has_express_link(d, bridge);

    for (hwloc_obj_t child = bridge->io_first_child; child; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_BRIDGE && (!is_express || has_express_link(d, child)))
            return 1;
    return 0;
}

static int visit_children(struct gtopo_discovery *d, const struct place *place, hwloc_obj_t bridge);

static int visit_bridge(struct gtopo_discovery *d, const struct place *place, hwloc_obj_t bridge)
{
    struct place below = {place->id, bridge, UPSTREAM_PORT};
    int status;

    /* A root or a downstream port; or a bridge to conventional PCI, which is no switch and has no link of its own. */
    if (place->below != UPSTREAM_PORT || !is_upstream_port(d, bridge))
        return visit_children(d, &below, bridge);
    status = add_device(d, GTOPO_PCI_SWITCH, place, bridge, &below.id);
    if (status)
        return status;
    below.port = NULL;
    below.below = DOWNSTREAM_PORT;
    return visit_children(d, &below, bridge);
}

static int visit_children(struct gtopo_discovery *d, const struct place *place, hwloc_obj_t bridge)
{
    int status = 0;

    for (hwloc_obj_t child = bridge->io_first_child; child && !status; child = child->next_sibling)
        if (child->type == HWLOC_OBJ_BRIDGE)
            status = visit_bridge(d, place, child);
        else if (child->type == HWLOC_OBJ_PCI_DEVICE)
            status = visit_device(d, place, child);
    return status;
}

/* ---- host bridges ---- */

/* What the kernel may say of a device's NUMA node, but for its number. */
enum { SAYS_UNKNOWN = -1, SAYS_NOTHING = -2 };

/* The NUMA node that the kernel gives for the first device or bridge below that has one. */
static int64_t numa_below(const struct gtopo_discovery *d, hwloc_obj_t object)
{
    int64_t found = SAYS_NOTHING;

    for (hwloc_obj_t child = object->io_first_child; child; child = child->next_sibling) {
        char address[GTOPO_PCI_ADDRESS_MAX];
        int64_t numa;

        if (child->type != HWLOC_OBJ_BRIDGE && child->type != HWLOC_OBJ_PCI_DEVICE)
            continue;
        gtopo_pci_address(child, address);
        if (gtopo_sysfs_number(&d->sysfs, SAYS_UNKNOWN, INT32_MAX, &numa, "sys/bus/pci/devices/%s/numa_node", address))
            found = numa;
        if (found < 0 && (numa = numa_below(d, child)) > found)
            found = numa;
        if (found >= 0)
            return found;
    }
    return found;
}

/* Where a host bridge is attached: at its NUMA node, else its package, else the machine. */
static uint32_t locate(const struct gtopo_discovery *d, hwloc_obj_t bridge, int64_t numa)
{
    hwloc_obj_t place = gtopo_place_of(d, bridge);
    uint32_t id = numa >= 0 ? gtopo_numa_object(d, numa) : GTOPO_NONE;

    if (id != GTOPO_NONE)
        return id;
    while (place && place->type != HWLOC_OBJ_PACKAGE)
        place = place->parent;
    return place ? (uint32_t)(uintptr_t)place->userdata - 1 : d->machine;
}

static int add_host_bridge(struct gtopo_discovery *d, hwloc_obj_t bridge)
{
    int64_t kernels = numa_below(d, bridge), numa = kernels == SAYS_NOTHING ? gtopo_numa_of_place(d, bridge) : kernels;
    uint32_t parent = locate(d, bridge, numa);
    struct place place = {0, NULL, ROOT_PORT};
    int status = gtopo_discovery_add(d, GTOPO_HOST_BRIDGE, parent, 0, &place.id);

    if (status)
        return status;
    if (numa < 0) {
        d->locality_hidden = 1;
        status = gtopo_map_set_unknown(d->map, place.id, GTOPO_ATTRIBUTE_NUMA, d->error);
        if (!status && d->is_virtual)
            status = gtopo_discovery_number(d, place.id, GTOPO_ATTRIBUTE_VIRTUAL, 1);
    } else
        status = gtopo_discovery_number(d, place.id, GTOPO_ATTRIBUTE_NUMA, (uint64_t)numa);
    if (!status)
        status = gtopo_discovery_link(d, parent == d->machine ? GTOPO_LINK_PLATFORM : GTOPO_LINK_MEMORY, place.id,
                                      parent, 0);
    return status ? status : visit_children(d, &place, bridge);
}

/* Where nothing on a host bridge is of interest, the bridge is not either. */
static int is_of_interest(const struct gtopo_discovery *d, hwloc_obj_t bridge)
{
    for (hwloc_obj_t child = bridge->io_first_child; child; child = child->next_sibling)
        if ((child->type == HWLOC_OBJ_BRIDGE && is_of_interest(d, child)) ||
            (child->type == HWLOC_OBJ_PCI_DEVICE && kind_of(d, child) != GTOPO_OBJECT_KINDS))
            return 1;
    return 0;
}

static int compare_bridges(const void *a, const void *b)
{
    const hwloc_obj_t first = *(const hwloc_obj_t *)a, second = *(const hwloc_obj_t *)b;
    const struct hwloc_bridge_attr_s *x = &first->attr->bridge, *y = &second->attr->bridge;
    unsigned domain = gtopo_pci_domain(first, x->downstream.pci.domain);
    unsigned other = gtopo_pci_domain(second, y->downstream.pci.domain);

    if (domain != other)
        return domain < other ? -1 : 1;
    return (int)x->downstream.pci.secondary_bus - (int)y->downstream.pci.secondary_bus;
}

/* hwloc's host bridges, then those that it has no room for. */
static hwloc_obj_t next_host_bridge(const struct gtopo_discovery *d, hwloc_obj_t last, size_t *wide)
{
    if (!*wide)
        while ((last = hwloc_get_next_bridge(d->topology, last)))
            if (last->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
                return last;
    return *wide < d->wide.bridge_count ? gtopo_wide_domains_bridge(&d->wide, (*wide)++) : NULL;
}

int gtopo_discover_pci(struct gtopo_discovery *d)
{
    hwloc_obj_t *bridges = NULL, object = NULL;
    size_t count = 0, capacity = 0, wide = 0;
    int status = gtopo_wide_domains_find(d);

    while (!status && (object = next_host_bridge(d, object, &wide))) {
        if (!is_of_interest(d, object))
            continue;
        if (gtopo_grow((void **)&bridges, &capacity, count + 1, sizeof *bridges))
            status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
        else
            bridges[count++] = object;
    }
    if (count)
        qsort(bridges, count, sizeof *bridges, compare_bridges);
    for (size_t i = 0; !status && i < count; i++)
        status = add_host_bridge(d, bridges[i]);
    free(bridges);
    return status;
}

/* ---- what is hidden ---- */

static int report_locality(struct gtopo_discovery *d)
{
    if (!d->locality_hidden)
        return 0;
    if (d->is_virtual)
        return gtopo_discovery_find(d, GTOPO_RULE_LOCALITY_HIDDEN, GTOPO_NOTE, d->machine,
                                    "lay its provider's topology over it: `gtopo-bench map --overlay FILE`",
                                    "the virtual machine does not say where its devices are: neither their NUMA node "
                                    "nor what is between those on different switches is known");
    return gtopo_discovery_find(d, GTOPO_RULE_LOCALITY_HIDDEN, GTOPO_NOTE, d->machine,
                                "look for a NUMA setting in the firmware, or lay the maker's topology over the "
                                "machine: `gtopo-bench map --overlay FILE`",
                                "the machine does not say which NUMA node its devices are on");
}

static int report_no_pci(struct gtopo_discovery *d)
{
    if (hwloc_get_next_pcidev(d->topology, NULL) || hwloc_get_next_bridge(d->topology, NULL))
        return 0;
    return gtopo_discovery_find(d, "pci-hidden", GTOPO_NOTE, d->machine,
                                "look from the bare machine, not from a container; make a record with its I/O devices",
                                "no PCI device is visible: what is on the bus is not in the map");
}

/* XML may be written without bridges; devices then have no place. */
static int report_no_bridges(struct gtopo_discovery *d)
{
    hwloc_obj_t device = NULL;
    unsigned count = 0;

    while ((device = hwloc_get_next_pcidev(d->topology, device)))
        if (device->parent->type != HWLOC_OBJ_BRIDGE && kind_of(d, device) != GTOPO_OBJECT_KINDS)
            count++;
    if (!count)
        return 0;
    return gtopo_discovery_find(d, "pci-bridges-hidden", GTOPO_NOTE, d->machine,
                                "write the XML again, with all that hwloc sees: `lstopo --of xml --filter io:all FILE`",
                                "%u PCI devices are on no host bridge and are not in the map", count);
}

static int report_wide_domains(struct gtopo_discovery *d)
{
    if (!d->wide.unplaced)
        return 0;
    return gtopo_discovery_find(d, "pci-domain-hidden", GTOPO_NOTE, d->machine,
                                "switch VMD off in the firmware, or use a gputopo built with hwloc 3",
                                "hwloc %s does not read PCI domains above ffff, and sysfs does not say where %u PCI "
                                "devices of such domains are: they are not in the map",
                                HWLOC_VERSION, d->wide.unplaced);
}

int gtopo_report_hidden(struct gtopo_discovery *d)
{
    int status = report_locality(d);

    if (!status)
        status = report_no_pci(d);
    if (!status)
        status = report_no_bridges(d);
    return status ? status : report_wide_domains(d);
}
