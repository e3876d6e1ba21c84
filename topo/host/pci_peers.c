/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What turns the traffic between two devices (peer-to-peer) from its shortest way: a PCIe port whose access controls
 * (ACS) send requests up to the root complex, and an IOMMU there that has to translate their addresses.
 */
#include "topo/host/host.h"
#include <stdio.h>
#include <string.h>

/* Of a list of ports, so many are named. */
#define NAMED 3

struct ports {
    unsigned count;
    char names[NAMED * (GTOPO_PCI_ADDRESS_MAX + 2) + 8];
    int concerns_gpu;
};

static enum gtopo_object_kind kind_of(const struct gtopo_discovery *d, const struct gtopo_pci *pci)
{
    struct gtopo_object object;

    return pci->object == GTOPO_NONE || gtopo_map_object(d->map, pci->object, &object, NULL) ? GTOPO_OBJECT_KINDS
                                                                                             : object.kind;
}

/* Peers at and below a function; what a recursion costs was paid when the tree was visited. */
static void count_peers(const struct gtopo_discovery *d, struct gtopo_pci *pci)
{
    enum gtopo_object_kind kind = kind_of(d, pci);

    pci->gpu_count = kind == GTOPO_GPU;
    pci->peer_count = kind == GTOPO_GPU || kind == GTOPO_NIC || kind == GTOPO_STORAGE;
    for (struct gtopo_pci *child = pci->first_child; child; child = child->next) {
        count_peers(d, child);
        pci->gpu_count += child->gpu_count;
        pci->peer_count += child->peer_count;
    }
}

/* ---- ACS ---- */

static void add_port(struct ports *ports, const struct gtopo_pci *port, int concerns_gpu)
{
    size_t length = strlen(ports->names);

    if (ports->count <= NAMED)
        snprintf(ports->names + length, sizeof ports->names - length, "%s%s", length ? ", " : "",
                 ports->count < NAMED ? port->address : "…");
    ports->count++;
    ports->concerns_gpu |= concerns_gpu;
}

static int redirects(const struct gtopo_discovery *d, struct gtopo_pci *port)
{
    int acs = gtopo_pci_config_of(d, port)->acs;

    return acs > 0 && acs & GTOPO_ACS_REDIRECTS;
}

/*
 * The ports in the way of peers below one root port (`inside`), whose way would not touch the root complex, and of
 * peers below different ones (`at_root`), whose way does.
 */
static void find_redirects(const struct gtopo_discovery *d, const struct gtopo_pci *bridge,
                           const struct gtopo_pci *root_port, unsigned total, struct ports *inside,
                           struct ports *at_root)
{
    for (struct gtopo_pci *port = bridge->first_child; port; port = port->next) {
        const struct gtopo_pci *root = root_port ? root_port : port;

        if (!port->is_bridge || !port->peer_count)
            continue;
        if (total > port->peer_count && redirects(d, port)) {
            if (root->peer_count > port->peer_count)
                add_port(inside, port, root->gpu_count > 0);
            else
                add_port(at_root, port, 0);
        }
        find_redirects(d, port, root, total, inside, at_root);
    }
}

static int report_acs(struct gtopo_discovery *d, unsigned total)
{
    struct ports inside = {0}, at_root = {0};

    for (size_t i = 0; i < d->pci.count; i++)
        if (d->pci.items[i].is_host_bridge)
            find_redirects(d, &d->pci.items[i], NULL, total, &inside, &at_root);
    if (inside.count)
        return gtopo_discovery_find(
            d, "pcie-acs-redirect", inside.concerns_gpu ? GTOPO_WARNING : GTOPO_NOTE, d->machine,
            "switch ACS off at these ports, unless virtual machines need it: `setpci -s PORT ECAP_ACS+6.w=0`",
            "ACS at %u PCIe port%s (%s) sends what devices below one root port exchange through the root complex",
            inside.count, inside.count > 1 ? "s" : "", inside.names);
    if (at_root.count)
        return gtopo_discovery_find(
            d, "pcie-acs-redirect", GTOPO_NOTE, d->machine,
            "switch ACS off at these ports, unless virtual machines need it: `setpci -s PORT ECAP_ACS+6.w=0`",
            "ACS at %u PCIe port%s (%s) sends what devices below different root ports exchange to the IOMMU",
            at_root.count, at_root.count > 1 ? "s" : "", at_root.names);
    return 0;
}

/* ---- IOMMU ---- */

/* Are its addresses translated on their way? With ATS a device asks for the translation before. */
static int is_translated(const struct gtopo_discovery *d, const struct gtopo_pci *pci)
{
    const char *iommu = gtopo_map_text(d->map, pci->object, GTOPO_ATTRIBUTE_IOMMU);

    return iommu && (!strcmp(iommu, "DMA") || !strcmp(iommu, "DMA-FQ")) && pci->config.ats != 1;
}

static int report_iommu(struct gtopo_discovery *d)
{
    const struct gtopo_pci *first = NULL;
    unsigned count = 0, translated = 0;
    int concerns_gpu = 0;

    for (size_t i = 0; i < d->pci.count; i++) {
        const struct gtopo_pci *pci = &d->pci.items[i];
        enum gtopo_object_kind kind = kind_of(d, pci);

        if (kind != GTOPO_GPU && kind != GTOPO_NIC)
            continue;
        count++;
        if (!is_translated(d, pci))
            continue;
        translated++;
        first = first ? first : pci;
        /* A GPU that is part of the processor has no peers to reach over PCIe. */
        concerns_gpu |= kind == GTOPO_GPU && !pci->parent->is_host_bridge;
    }
    if (!translated)
        return 0;
    return gtopo_discovery_find(
        d, "iommu-translates", concerns_gpu && count > 1 ? GTOPO_WARNING : GTOPO_NOTE, d->machine,
        "boot the kernel with iommu=pt, unless devices that are not trusted need the protection",
        "the IOMMU translates the addresses of %u of %u GPUs and NICs (the first is %s: %s): what they send each other "
        "goes through the root complex, and each mapping costs processor time",
        translated, count, first->address, gtopo_map_text(d->map, first->object, GTOPO_ATTRIBUTE_IOMMU));
}

int gtopo_report_peers(struct gtopo_discovery *d)
{
    unsigned total = 0;
    int status;

    if (d->sysfs.fd < 0)
        return 0;
    for (size_t i = 0; i < d->pci.count; i++)
        if (d->pci.items[i].is_host_bridge) {
            count_peers(d, &d->pci.items[i]);
            total += d->pci.items[i].peer_count;
        }
    status = report_acs(d, total);
    return status ? status : report_iommu(d);
}
