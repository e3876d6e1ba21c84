/* SPDX-License-Identifier: Apache-2.0 */
/* What decides how a device moves data over PCI Express, beside the rate of its link. */
#include "topo/host/host.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RESOURCE_FILE_B 4096
#define BARS 6
#define RESOURCE_MEMORY 0x200 /* include/linux/ioport.h */

const struct gtopo_pci_config *gtopo_pci_config_of(const struct gtopo_discovery *d, struct gtopo_pci *pci)
{
    if (!pci->config.is_read)
        gtopo_pci_config_read(&d->sysfs, pci->address, &pci->config);
    return &pci->config;
}

static int set_number(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, int is_known,
                      uint64_t number)
{
    return is_known ? gtopo_discovery_number(d, id, attribute, number)
                    : gtopo_map_set_unknown(d->map, id, attribute, d->error);
}

/* ---- configuration space ---- */

/* Of an endpoint, which begins packets; a switch only passes them on. */
static int set_endpoint(struct gtopo_discovery *d, uint32_t id, const struct gtopo_pci_config *config)
{
    int status =
        set_number(d, id, GTOPO_ATTRIBUTE_MAX_READ_REQUEST_B, config->read_request_B != 0, config->read_request_B);

    if (!status)
        status = set_number(d, id, GTOPO_ATTRIBUTE_RELAXED_ORDERING, config->relaxed_ordering >= 0,
                            (uint64_t)config->relaxed_ordering);
    return status ? status : set_number(d, id, GTOPO_ATTRIBUTE_ATS, config->ats >= 0, (uint64_t)config->ats);
}

/* Access controls are the port's, and count for what is below it. */
static int set_acs(struct gtopo_discovery *d, uint32_t id, struct gtopo_pci *port)
{
    const struct gtopo_pci_config *config = gtopo_pci_config_of(d, port);
    char text[GTOPO_ACS_TEXT];

    if (!config->is_express)
        return 0;
    if (config->acs == GTOPO_CONFIG_UNKNOWN)
        return gtopo_map_set_unknown(d->map, id, GTOPO_ATTRIBUTE_ACS, d->error);
    gtopo_acs_text(config->acs, text);
    return gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_ACS, text);
}

static int set_config(struct gtopo_discovery *d, uint32_t id, struct gtopo_pci *device, int is_switch)
{
    const struct gtopo_pci_config *config = gtopo_pci_config_of(d, device);
    int status;

    if (!config->is_express)
        return 0;
    status = set_number(d, id, GTOPO_ATTRIBUTE_MAX_PAYLOAD_B, config->payload_B != 0, config->payload_B);
    if (!status)
        status = set_number(d, id, GTOPO_ATTRIBUTE_MAX_PAYLOAD_CAPABLE_B, config->payload_capable_B != 0,
                            config->payload_capable_B);
    if (!status && !is_switch)
        status = set_endpoint(d, id, config);
    return status || device->parent->is_host_bridge ? status : set_acs(d, id, device->parent);
}

/* ---- IOMMU ---- */

/* Devices of a group cannot be told apart by the IOMMU. Without a group there is none, where the kernel has groups. */
static int set_iommu(struct gtopo_discovery *d, uint32_t id, const char *address)
{
    char target[GTOPO_SYSFS_PATH], type[GTOPO_SYSFS_TEXT];
    const char *name;
    uint32_t group;
    int status;

    if (!gtopo_sysfs_link(&d->sysfs, target, "sys/bus/pci/devices/%s/iommu_group", address))
        return gtopo_sysfs_exists(&d->sysfs, "sys/kernel/iommu_groups")
                   ? gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_IOMMU, "off")
                   : gtopo_map_set_unknown(d->map, id, GTOPO_ATTRIBUTE_IOMMU, d->error);
    name = strrchr(target, '/');
    if (!gtopo_sysfs_index(name ? name + 1 : target, INT32_MAX, &group))
        return gtopo_map_set_unknown(d->map, id, GTOPO_ATTRIBUTE_IOMMU, d->error);
    status = gtopo_discovery_number(d, id, GTOPO_ATTRIBUTE_IOMMU_GROUP, group);
    if (status)
        return status;
    return gtopo_sysfs_text(&d->sysfs, type, "sys/kernel/iommu_groups/%u/type", group)
               ? gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_IOMMU, type)
               : gtopo_map_set_unknown(d->map, id, GTOPO_ATTRIBUTE_IOMMU, d->error);
}

/* ---- BAR1 ---- */

/*
 * The largest memory window, 0 for unknown: a line a window, "0x… 0x… 0x…", its first and last address and its flags.
 * NVIDIA calls it BAR1, AMD's is the first, Intel's the third.
 */
static uint64_t read_bar1(const struct gtopo_discovery *d, const char *address)
{
    int fd = gtopo_sysfs_file(&d->sysfs, "sys/bus/pci/devices/%s/resource", address);
    char text[RESOURCE_FILE_B], *line = text;
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    uint64_t largest_B = 0;

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    for (int bar = 0; bar < BARS && *line; bar++) {
        uint64_t first, last, flags;

        if (sscanf(line, "0x%16" SCNx64 " 0x%16" SCNx64 " 0x%16" SCNx64, &first, &last, &flags) != 3)
            return 0;
        if (flags & RESOURCE_MEMORY && last > first && last - first < INT64_MAX && last - first + 1 > largest_B)
            largest_B = last - first + 1;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return largest_B;
}

static int set_bar1(struct gtopo_discovery *d, uint32_t id, struct gtopo_pci *device)
{
    device->bar1_B = read_bar1(d, device->address);
    return set_number(d, id, GTOPO_ATTRIBUTE_BAR1_B, device->bar1_B != 0, device->bar1_B);
}

int gtopo_pci_express_facts(struct gtopo_discovery *d, uint32_t id, struct gtopo_pci *device)
{
    struct gtopo_object object;
    int status;

    if (d->sysfs.fd < 0)
        return 0;
    status = gtopo_map_object(d->map, id, &object, d->error);
    if (!status)
        status = set_config(d, id, device, object.kind == GTOPO_PCI_SWITCH);
    if (!status && object.kind != GTOPO_PCI_SWITCH)
        status = set_iommu(d, id, device->address);
    return status || object.kind != GTOPO_GPU ? status : set_bar1(d, id, device);
}
