/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host bridges, PCIe switches and what is on them. hwloc shows every PCI bridge; here a root port belongs to its host
 * bridge, and the upstream port and the downstream ports of a switch are one object.
 */
#include "topo/host/host.h"
#include "topo/host/nic.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>

#define CLASS_NIC 0x02
#define CLASS_STORAGE 0x01
#define CLASS_DISPLAY 0x03
#define CLASS_ACCELERATOR 0x12
#define CLASS_INFINIBAND 0x0c06 /* of adapters older than the network class 0x0207 */
#define CLASS_OTHER_BRIDGE 0x0680
#define CLASS_DMA 0x0801 /* of a ConnectX-8's Data Direct function */
#define VENDOR_NVIDIA 0x10de
#define VENDOR_MELLANOX 0x15b3

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
    uint32_t id;                  /* object */
    const struct gtopo_pci *port; /* the root or downstream port above, or NULL */
    enum below below;
};

/* ---- devices ---- */

static int is_gpu(const struct gtopo_pci *pci)
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
                      struct gtopo_pci *device, uint32_t *id)
{
    int status = gtopo_discovery_add(d, kind, place->id, 0, id);

    if (!status) {
        if (device->hwloc)
            device->hwloc->userdata = (void *)(uintptr_t)(*id + 1);
        status = gtopo_pci_facts(d, *id, device);
    }
    return status ? status : gtopo_pci_link(d, place->id, *id, device, place->port);
}

static int add_nic(struct gtopo_discovery *d, const struct place *place, struct gtopo_pci *device)
{
    struct gtopo_found_nic nic = {.object = device->hwloc};
    char parent[GTOPO_PCI_ADDRESS_MAX];
    int status = add_device(d, GTOPO_NIC, place, device, &nic.id);

    if (!status && gtopo_nic_physical_function(d, device, parent))
        status = gtopo_discovery_text(d, nic.id, GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION, parent);
    if (status)
        return status;
    snprintf(nic.address, sizeof nic.address, "%s", device->address);
    if (gtopo_grow((void **)&d->nics, &d->nic_capacity, d->nic_count + 1, sizeof *d->nics))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    d->nics[d->nic_count++] = nic;
    return 0;
}

/* What a PCI device is in the map, or GTOPO_OBJECT_KINDS for what is not in it. */
static enum gtopo_object_kind kind_of(const struct gtopo_discovery *d, const struct gtopo_pci *pci)
{
    if (pci->class_id >> 8 == CLASS_NIC || pci->class_id == CLASS_INFINIBAND ||
        (pci->class_id == CLASS_DMA && pci->vendor_id == VENDOR_MELLANOX))
        return GTOPO_NIC;
    /* Any other virtual function is a share of a card that is in the map already. */
    if (gtopo_sysfs_exists(&d->sysfs, "sys/bus/pci/devices/%s/physfn", pci->address))
        return GTOPO_OBJECT_KINDS;
    if (is_gpu(pci))
        return GTOPO_GPU;
    if (pci->class_id >> 8 == CLASS_STORAGE && gtopo_pci_has_storage(d, pci))
        return GTOPO_STORAGE;
    /* hwloc asks the driver too, which knows one whose configuration space cannot be read. */
    if ((pci->class_id == CLASS_OTHER_BRIDGE && pci->vendor_id == VENDOR_NVIDIA) ||
        (pci->hwloc && pci->hwloc->subtype && !strcmp(pci->hwloc->subtype, "NVSwitch")))
        return GTOPO_NVSWITCH;
    return GTOPO_OBJECT_KINDS;
}

static int visit_device(struct gtopo_discovery *d, const struct place *place, struct gtopo_pci *device)
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

static int has_express_link(const struct gtopo_discovery *d, const struct gtopo_pci *bridge)
{
    return gtopo_sysfs_exists(&d->sysfs, "sys/bus/pci/devices/%s/max_link_width", bridge->address);
}

/* Is it the upstream port of a switch? A bridge to conventional PCI may have bridges below too, but those have no link.
 */
static int is_upstream_port(const struct gtopo_discovery *d, const struct gtopo_pci *bridge)
{
    int is_express = has_express_link(d, bridge);

    for (const struct gtopo_pci *child = bridge->first_child; child; child = child->next)
        if (child->is_bridge && (!is_express || has_express_link(d, child)))
            return 1;
    return 0;
}

static int visit_children(struct gtopo_discovery *d, const struct place *place, struct gtopo_pci *bridge);

static int visit_bridge(struct gtopo_discovery *d, const struct place *place, struct gtopo_pci *bridge)
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

static int visit_children(struct gtopo_discovery *d, const struct place *place, struct gtopo_pci *bridge)
{
    int status = 0;

    for (struct gtopo_pci *child = bridge->first_child; child && !status; child = child->next)
        status = child->is_bridge ? visit_bridge(d, place, child) : visit_device(d, place, child);
    return status;
}

/* ---- host bridges ---- */

/* What the kernel may say of a device's NUMA node, but for its number. */
enum { SAYS_UNKNOWN = -1, SAYS_NOTHING = -2 };

/* The NUMA node that the kernel gives for the first device or bridge below that has one. */
static int64_t numa_below(const struct gtopo_discovery *d, const struct gtopo_pci *pci)
{
    int64_t found = SAYS_NOTHING;

    for (const struct gtopo_pci *child = pci->first_child; child; child = child->next) {
        int64_t numa;

        if (gtopo_sysfs_number(&d->sysfs, SAYS_UNKNOWN, INT32_MAX, &numa, "sys/bus/pci/devices/%s/numa_node",
                               child->address))
            found = numa;
        if (found < 0 && (numa = numa_below(d, child)) > found)
            found = numa;
        if (found >= 0)
            return found;
    }
    return found;
}

/* Where a host bridge is attached: at its NUMA node, else its package, else the machine. */
static uint32_t locate(const struct gtopo_discovery *d, const struct gtopo_pci *bridge, int64_t numa)
{
    hwloc_obj_t place = gtopo_place_of(d, bridge->hwloc);
    uint32_t id = numa >= 0 ? gtopo_numa_object(d, numa) : GTOPO_NONE;

    if (id != GTOPO_NONE)
        return id;
    while (place && place->type != HWLOC_OBJ_PACKAGE)
        place = place->parent;
    return place ? (uint32_t)(uintptr_t)place->userdata - 1 : d->machine;
}

static int add_host_bridge(struct gtopo_discovery *d, struct gtopo_pci *bridge)
{
    int64_t kernels = numa_below(d, bridge);
    int64_t numa = kernels == SAYS_NOTHING ? gtopo_numa_of_place(d, bridge->hwloc) : kernels;
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
static int is_of_interest(const struct gtopo_discovery *d, const struct gtopo_pci *bridge)
{
    for (const struct gtopo_pci *child = bridge->first_child; child; child = child->next)
        if (child->is_bridge ? is_of_interest(d, child) : kind_of(d, child) != GTOPO_OBJECT_KINDS)
            return 1;
    return 0;
}

static int compare_bridges(const void *a, const void *b)
{
    const struct gtopo_pci *x = *(const struct gtopo_pci *const *)a, *y = *(const struct gtopo_pci *const *)b;

    if (x->domain != y->domain)
        return x->domain < y->domain ? -1 : 1;
    return (int)x->bus - (int)y->bus;
}

int gtopo_discover_pci(struct gtopo_discovery *d)
{
    struct gtopo_pci **bridges;
    size_t count = 0;
    int status;

    if (gtopo_pci_tree_read(&d->pci, &d->sysfs, d->topology) || !(bridges = calloc(d->pci.count + 1, sizeof *bridges)))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    status = gtopo_find_left_out_disks(d);
    for (size_t i = 0; i < d->pci.count; i++)
        if (d->pci.items[i].is_host_bridge && is_of_interest(d, &d->pci.items[i]))
            bridges[count++] = &d->pci.items[i];
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
    if (d->pci.count || hwloc_get_next_pcidev(d->topology, NULL))
        return 0;
    return gtopo_discovery_find(d, "pci-hidden", GTOPO_NOTE, d->machine,
                                "look from the bare machine, not from a container; make a record with its I/O devices",
                                "no PCI device is visible: what is on the bus is not in the map");
}

/* XML may be written without bridges; where there is no sysfs either, devices then have no place. */
static int report_no_bridges(struct gtopo_discovery *d)
{
    hwloc_obj_t device = NULL;
    unsigned count = 0;

    while ((device = hwloc_get_next_pcidev(d->topology, device))) {
        struct gtopo_pci pci;

        gtopo_pci_of_hwloc(device, &pci);
        count += !gtopo_pci_tree_find(&d->pci, pci.address) && kind_of(d, &pci) != GTOPO_OBJECT_KINDS;
    }
    if (!count)
        return 0;
    return gtopo_discovery_find(d, "pci-bridges-hidden", GTOPO_NOTE, d->machine,
                                "write the XML again, with all that hwloc sees: `lstopo --of xml --filter io:all FILE`",
                                "%u PCI devices are on no host bridge and are not in the map", count);
}

/* What hwloc leaves out, and sysfs does not place either. */
static int report_no_place(struct gtopo_discovery *d)
{
    if (!d->pci.hidden_count)
        return 0;
    return gtopo_discovery_find(d, "pci-domain-hidden", GTOPO_NOTE, d->machine,
                                "make the record again, with the links of /sys/bus/pci/devices as they are",
                                "hwloc %s leaves out %u PCI devices, whose links in sysfs do not say where they are: "
                                "they are not in the map, the first is %s",
                                HWLOC_VERSION, d->pci.hidden_count, d->pci.first_hidden);
}

int gtopo_report_hidden(struct gtopo_discovery *d)
{
    int status = report_locality(d);

    if (!status)
        status = report_no_pci(d);
    if (!status)
        status = report_no_bridges(d);
    return status ? status : report_no_place(d);
}
