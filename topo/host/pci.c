/* SPDX-License-Identifier: Apache-2.0 */
/* PCI devices: their facts, and the links of PCI Express with their negotiated and capable rates. */
#include "topo/host/host.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the link ---- */

/* One end's view of a link; 0 for what is not known. */
struct end {
    uint32_t width, max_width, speed_MTps, max_speed_MTps;
};

uint32_t gtopo_pci_speed(const char *text)
{
    static const uint32_t known[] = {2500, 5000, 8000, 16000, 32000, 64000};
    const char *unit;
    uint64_t speed_MTps;

    if (!text)
        return 0;
    unit = gtopo_sysfs_decimal(text, &speed_MTps);
    if (!unit || strncmp(unit, " GT/s", 5))
        return 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (speed_MTps == known[i])
            return known[i];
    return 0;
}

static uint32_t read_speed(const struct gtopo_sysfs *sysfs, const char *address, const char *file)
{
    char text[GTOPO_SYSFS_TEXT];

    return gtopo_sysfs_text(sysfs, text, "sys/bus/pci/devices/%s/%s", address, file) ? gtopo_pci_speed(text) : 0;
}

/* Lanes; 0, 63 and 255 stand for "no link" and "not known". */
static uint32_t read_width(const struct gtopo_sysfs *sysfs, const char *address, const char *file)
{
    int64_t width;

    return gtopo_sysfs_number(sysfs, 1, 32, &width, "sys/bus/pci/devices/%s/%s", address, file) ? (uint32_t)width : 0;
}

static struct end read_end(const struct gtopo_sysfs *sysfs, const struct gtopo_pci *pci)
{
    struct end end = {0};

    if (!pci)
        return end;
    end.width = read_width(sysfs, pci->address, "current_link_width");
    end.max_width = read_width(sysfs, pci->address, "max_link_width");
    end.speed_MTps = read_speed(sysfs, pci->address, "current_link_speed");
    end.max_speed_MTps = read_speed(sysfs, pci->address, "max_link_speed");
    return end;
}

/*
 * Bytes per second of a link in one direction after line coding: 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s; at 64
 * GT/s 236 of the 256 bytes of a FLIT carry packets (PCI Express base specification 6.0, 4.2.3).
 */
uint64_t gtopo_pci_rate(uint32_t width, uint32_t speed_MTps)
{
    uint64_t bits = (uint64_t)width * speed_MTps * 1000000;

    if (speed_MTps <= 5000)
        return bits / 10;
    return speed_MTps < 64000 ? bits / 130 * 128 / 8 : bits / 256 * 236 / 8;
}

static uint32_t known_minimum(uint32_t a, uint32_t b)
{
    if (!a || !b)
        return a ? a : b;
    return a < b ? a : b;
}

static void names_of(const struct gtopo_pci *device, const struct gtopo_pci *port, char text[3 * GTOPO_PCI_ADDRESS_MAX])
{
    snprintf(text, 3 * GTOPO_PCI_ADDRESS_MAX, "%s%s%s", device->address, port ? " below " : "",
             port ? port->address : "");
}

/* Speeds are whole or half gigatransfers per second. Text is not the place for the program's decimal comma. */
#define GTPS "%u%s GT/s"
#define GTPS_OF(speed_MTps) (speed_MTps) / 1000, (speed_MTps) % 1000 ? ".5" : ""

static int is_suspended(const struct gtopo_discovery *d, const struct gtopo_pci *device)
{
    char text[GTOPO_SYSFS_TEXT];

    return gtopo_sysfs_text(&d->sysfs, text, "sys/bus/pci/devices/%s/power/runtime_status", device->address) &&
           !strcmp(text, "suspended");
}

static int check_link(struct gtopo_discovery *d, uint32_t child, const struct gtopo_link *link,
                      const struct gtopo_pci *device, const struct gtopo_pci *port)
{
    struct gtopo_object object;
    char names[3 * GTOPO_PCI_ADDRESS_MAX];
    int narrow = link->width && link->width < link->capable_width;
    int slow = link->speed_MTps && link->speed_MTps < link->capable_speed_MTps;
    int idle;

    /* The functions of a card and the disks of a controller share a link, which is one finding. */
    if ((!narrow && !slow) || d->degraded_link == (port ? port : device))
        return 0;
    d->degraded_link = port ? port : device;
    gtopo_map_object(d->map, child, &object, NULL);
    names_of(device, port, names);
    /* What has nothing to do lowers its speed, never its width. */
    idle = !narrow && (object.kind == GTOPO_GPU || is_suspended(d, device));
    return gtopo_discovery_find(
        d, "pcie-link-degraded", idle ? GTOPO_NOTE : GTOPO_WARNING, child,
        idle ? "look again under load"
             : "reseat the card or its riser, then look at the slot's lanes and the firmware's link settings",
        "the PCIe link of %s runs at x%u and " GTPS "; both ends can do x%u and " GTPS "%s", names, link->width,
        GTPS_OF(link->speed_MTps), link->capable_width, GTPS_OF(link->capable_speed_MTps),
        idle ? "; an idle link may report less than it does under load" : "");
}

/* hwloc's word, where sysfs has none: in XML, and before Linux 4.13. 0 when it has none either. */
static uint64_t rate_of_hwloc(const struct gtopo_discovery *d, const struct gtopo_pci *device)
{
    float rate_GBps;

    if (!device->hwloc || gtopo_sysfs_exists(&d->sysfs, "sys/bus/pci/devices/%s/current_link_width", device->address))
        return 0;
    rate_GBps = device->hwloc->type == HWLOC_OBJ_BRIDGE ? device->hwloc->attr->bridge.upstream.pci.linkspeed
                                                        : device->hwloc->attr->pcidev.linkspeed;
    return rate_GBps > 0 && rate_GBps < 1000 ? (uint64_t)((double)rate_GBps * 1e9) : 0;
}

int gtopo_pci_link(struct gtopo_discovery *d, uint32_t parent, uint32_t child, struct gtopo_pci *device,
                   const struct gtopo_pci *port)
{
    struct end below = read_end(&d->sysfs, device), above = read_end(&d->sysfs, port);
    struct gtopo_link link = {.kind = GTOPO_LINK_PCIE, .ends = {parent, child}, .count = 1};
    uint32_t id;
    int status;

    link.width = below.width ? below.width : above.width;
    link.speed_MTps = below.speed_MTps ? below.speed_MTps : above.speed_MTps;
    link.capable_width = known_minimum(below.max_width, above.max_width);
    link.capable_speed_MTps = known_minimum(below.max_speed_MTps, above.max_speed_MTps);
    device->capable_width = link.capable_width;
    device->capable_speed_MTps = link.capable_speed_MTps;
    if (link.width && link.speed_MTps)
        link.nominal_Bps = gtopo_pci_rate(link.width, link.speed_MTps);
    else
        link.nominal_Bps = rate_of_hwloc(d, device);
    if (link.capable_width && link.capable_speed_MTps)
        link.capable_Bps = gtopo_pci_rate(link.capable_width, link.capable_speed_MTps);
    status = gtopo_map_add_link(d->map, &link, &id, d->error);
    return status ? status : check_link(d, child, &link, device, port);
}

/* ---- the device ---- */

static int set_driver(struct gtopo_discovery *d, uint32_t id, const char *address)
{
    char target[GTOPO_SYSFS_PATH];
    const char *slash;

    if (!gtopo_sysfs_link(&d->sysfs, target, "sys/bus/pci/devices/%s/driver", address))
        return 0;
    slash = strrchr(target, '/');
    return gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_DRIVER, slash ? slash + 1 : target);
}

/* The node that the kernel names. It says -1 when firmware does not, which stays unknown. */
static int set_numa(struct gtopo_discovery *d, uint32_t id, const struct gtopo_pci *device)
{
    const char *address = device->address;
    int64_t numa;

    if (gtopo_sysfs_number(&d->sysfs, 0, INT32_MAX, &numa, "sys/bus/pci/devices/%s/numa_node", address))
        return gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_NUMA, (uint64_t)numa);
    if (!gtopo_sysfs_exists(&d->sysfs, "sys/bus/pci/devices/%s/numa_node", address) &&
        (numa = gtopo_numa_of_place(d, device->hwloc)) >= 0)
        return gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_NUMA, (uint64_t)numa);
    return gtopo_map_set_unknown(d->map, id, GTOPO_ATTRIBUTE_NUMA, d->error);
}

/* Vendor and device, and the class: of its three bytes hwloc tells two. */
static int set_ids(struct gtopo_discovery *d, uint32_t id, const struct gtopo_pci *pci)
{
    char text[16];
    int64_t class_id;
    int status = 0;

    if (pci->vendor_id) { /* 0 where the configuration space could not be read */
        snprintf(text, sizeof text, "%04x:%04x", pci->vendor_id, pci->device_id);
        status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_PCI_ID, text);
    }
    snprintf(text, sizeof text, "%04x:%04x", pci->subvendor_id, pci->subdevice_id);
    if (!status && pci->subvendor_id)
        status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_PCI_SUBSYSTEM, text);
    if (status)
        return status;
    if (gtopo_sysfs_number(&d->sysfs, 0, 0xffffff, &class_id, "sys/bus/pci/devices/%s/class", pci->address))
        snprintf(text, sizeof text, "0x%06x", (unsigned)class_id);
    else if (pci->class_id)
        snprintf(text, sizeof text, "0x%04x", pci->class_id);
    else
        return 0;
    return gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_PCI_CLASS, text);
}

int gtopo_pci_facts(struct gtopo_discovery *d, uint32_t id, struct gtopo_pci *device)
{
    int status;

    if (device->object == GTOPO_NONE)
        device->object = id;

    if ((status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_PCI_ADDRESS, device->address)) ||
        (status = gtopo_pci_names(d, id, device->hwloc, device->vendor_id, device->device_id)) ||
        (status = set_driver(d, id, device->address)) || (status = set_ids(d, id, device)) ||
        (status = set_numa(d, id, device)))
        return status;
    return gtopo_pci_express_facts(d, id, device);
}
