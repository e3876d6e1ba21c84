/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NICs and which ports they have. Netdevs and RDMA devices of a PCI function stand below it in sysfs; a virtual RDMA
 * device (rxe, siw) names its netdev instead.
 */
#include "topo/host/nic.h"
#include "topo/host/rdma.h"
#include "lib/text.h"
#include <stdlib.h>
#include <string.h>

/* ---- NICs on the PCI bus ---- */

/* The netdevs of a card, in the order of their places on it. */
struct card_netdevs {
    struct card_netdev {
        const char *name;
        int64_t place; /* from 0 */
    } * items;
    size_t count;
    struct gtopo_sysfs_names names;
};

/* Netdevs below a device; a virtio device has them one level further down. */
static int list_netdevs(const struct gtopo_discovery *d, const char *address, struct gtopo_sysfs_names *netdevs)
{
    struct gtopo_sysfs_names below;
    int status = gtopo_sysfs_list(&d->sysfs, netdevs, "sys/bus/pci/devices/%s/net", address);

    if (status || netdevs->count)
        return status;
    status = gtopo_sysfs_list(&d->sysfs, &below, "sys/bus/pci/devices/%s", address);
    for (size_t i = 0; !status && !netdevs->count && i < below.count; i++)
        if (!strncmp(below.names[i], "virtio", 6)) {
            gtopo_sysfs_names_clear(netdevs);
            status = gtopo_sysfs_list(&d->sysfs, netdevs, "sys/bus/pci/devices/%s/%s/net", address, below.names[i]);
        }
    gtopo_sysfs_names_clear(&below);
    return status;
}

static int compare_places(const void *a, const void *b)
{
    const struct card_netdev *x = a, *y = b;

    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return strverscmp(x->name, y->name);
}

static void clear_netdevs(struct card_netdevs *netdevs)
{
    free(netdevs->items);
    gtopo_sysfs_names_clear(&netdevs->names);
}

static int read_netdevs(const struct gtopo_discovery *d, const char *address, struct card_netdevs *netdevs)
{
    int status = list_netdevs(d, address, &netdevs->names);

    netdevs->count = netdevs->names.count;
    if (status || !netdevs->count)
        return status;
    netdevs->items = calloc(netdevs->count, sizeof *netdevs->items);
    if (!netdevs->items)
        return GTOPO_ENOMEM;
    for (size_t i = 0; i < netdevs->count; i++) {
        netdevs->items[i].name = netdevs->names.names[i];
        gtopo_sysfs_number(&d->sysfs, 0, 1023, &netdevs->items[i].place, "sys/class/net/%s/dev_port",
                           netdevs->items[i].name);
    }
    qsort(netdevs->items, netdevs->count, sizeof *netdevs->items, compare_places);
    return 0;
}

/* The netdev that belongs to an RDMA port: the one that its GID table names, else the one of the same place. The table
 * names what is no part of the card when ports are bonded. */
static const char *netdev_of(const struct gtopo_discovery *d, const char *rdma, uint32_t port,
                             const struct card_netdevs *netdevs)
{
    char text[GTOPO_SYSFS_TEXT];
    const char *found = NULL;

    if (!gtopo_sysfs_text(&d->sysfs, text, "sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0", rdma, port))
        *text = 0;
    for (size_t i = 0; i < netdevs->count; i++) {
        if (!strcmp(netdevs->items[i].name, text))
            return netdevs->items[i].name;
        if (!found && netdevs->items[i].place == (int64_t)port - 1)
            found = netdevs->items[i].name;
    }
    return found;
}

static int add_rdma_ports(struct gtopo_discovery *d, size_t nic, const char *rdma, const struct card_netdevs *netdevs)
{
    struct gtopo_sysfs_names ports;
    int status = gtopo_sysfs_list(&d->sysfs, &ports, "sys/class/infiniband/%s/ports", rdma);
    uint32_t number;

    if (status)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    for (size_t i = 0; !status && i < ports.count; i++)
        if (gtopo_sysfs_index(ports.names[i], 255, &number) && number)
            status = gtopo_port_add(d, nic, number, netdev_of(d, rdma, number, netdevs), rdma, number);
    gtopo_sysfs_names_clear(&ports);
    return status ? status : gtopo_rdma_device_facts(d, d->nics[nic].id, rdma);
}

static int add_pci_ports(struct gtopo_discovery *d, size_t nic)
{
    const char *address = d->nics[nic].address;
    struct gtopo_sysfs_names rdmas = {0};
    struct card_netdevs netdevs = {0};
    int status = read_netdevs(d, address, &netdevs);

    if (!status)
        status = gtopo_sysfs_list(&d->sysfs, &rdmas, "sys/bus/pci/devices/%s/infiniband", address);
    if (status)
        status = gtopo_fail(d->error, status, NULL, "out of memory");
    for (size_t i = 0; !status && i < rdmas.count; i++)
        status = add_rdma_ports(d, nic, rdmas.names[i], &netdevs);
    for (size_t i = 0; !status && i < netdevs.count; i++)
        if (!gtopo_port_of(d, netdevs.items[i].name))
            status = gtopo_port_add(d, nic, (uint32_t)netdevs.items[i].place + 1, netdevs.items[i].name, NULL, 0);
    if (!status && !rdmas.count && netdevs.count)
        status = gtopo_discovery_text(d, d->nics[nic].id, GTOPO_ATTRIBUTE_DEVICE, netdevs.items[0].name);
    clear_netdevs(&netdevs);
    gtopo_sysfs_names_clear(&rdmas);
    return status;
}

/* ---- NICs elsewhere ---- */

/* A NIC on no PCI bus, for a netdev: on a system on chip, paravirtual, or (is_virtual) made by software. */
static int add_other_nic(struct gtopo_discovery *d, const char *netdev, int is_virtual)
{
    struct gtopo_found_nic nic = {0};
    int status = gtopo_discovery_add(d, GTOPO_NIC, d->machine, 0, &nic.id);

    if (!status)
        status = gtopo_discovery_text(d, nic.id, GTOPO_ATTRIBUTE_DEVICE, netdev);
    if (!status)
        status = gtopo_map_set_unknown(d->map, nic.id, GTOPO_ATTRIBUTE_NUMA, d->error);
    if (!status && is_virtual)
        status = gtopo_discovery_number(d, nic.id, GTOPO_ATTRIBUTE_VIRTUAL, 1);
    if (!status)
        status = gtopo_discovery_link(d, GTOPO_LINK_PLATFORM, nic.id, d->machine, 0);
    if (status)
        return status;
    if (gtopo_grow((void **)&d->nics, &d->nic_capacity, d->nic_count + 1, sizeof *d->nics))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    d->nics[d->nic_count++] = nic;
    return gtopo_port_add(d, d->nic_count - 1, 1, netdev, NULL, 0);
}

/* Shares of a card that is in the map by itself: virtual functions, and the subfunctions of an auxiliary bus. */
static int is_share(const struct gtopo_discovery *d, const char *netdev)
{
    char target[GTOPO_SYSFS_PATH];
    const char *slash =
        gtopo_sysfs_link(&d->sysfs, target, "sys/class/net/%s/device/subsystem", netdev) ? strrchr(target, '/') : NULL;

    return (slash && !strcmp(slash, "/auxiliary")) ||
           gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s/device/physfn", netdev);
}

static int add_other_nics(struct gtopo_discovery *d)
{
    struct gtopo_sysfs_names netdevs;
    char text[GTOPO_SYSFS_TEXT];
    int status = gtopo_sysfs_list(&d->sysfs, &netdevs, "sys/class/net");

    if (status)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    for (size_t i = 0; !status && i < netdevs.count; i++) {
        const char *netdev = netdevs.names[i];
        int64_t type;

        /* Only software makes netdevs without a device. What has a class is on the PCI bus. */
        if (gtopo_port_of(d, netdev) || !gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s/device", netdev) ||
            is_share(d, netdev) || gtopo_sysfs_text(&d->sysfs, text, "sys/class/net/%s/device/class", netdev) ||
            !gtopo_sysfs_number(&d->sysfs, 0, INT32_MAX, &type, "sys/class/net/%s/type", netdev) ||
            (type != GTOPO_ARPHRD_ETHERNET && type != GTOPO_ARPHRD_INFINIBAND))
            continue;
        status = add_other_nic(d, netdev, 0);
    }
    gtopo_sysfs_names_clear(&netdevs);
    return status;
}

/* A virtual RDMA device goes to the port of its netdev; a second one on the same netdev is a port of its own. */
static int add_virtual_rdma(struct gtopo_discovery *d, const char *rdma, const char *netdev)
{
    struct gtopo_found_port *port = gtopo_port_of(d, netdev);
    int status = 0;

    if (!port) {
        status = add_other_nic(d, netdev, 1);
        port = gtopo_port_of(d, netdev);
    }
    if (status || !port)
        return status;
    if (gtopo_map_text(d->map, port->id, GTOPO_ATTRIBUTE_DEVICE))
        return gtopo_port_add(d, port->nic, 1, netdev, rdma, 1);
    return gtopo_rdma_facts(d, port->id, rdma, 1);
}

/* rxe names its netdev in a file of its own; siw, which has none, in its GID table. Both are on no device. */
static int netdev_of_virtual(const struct gtopo_discovery *d, const char *rdma, char netdev[GTOPO_SYSFS_TEXT])
{
    return gtopo_rdma_is_virtual(d, rdma) &&
           (gtopo_sysfs_text(&d->sysfs, netdev, "sys/class/infiniband/%s/parent", rdma) ||
            gtopo_sysfs_text(&d->sysfs, netdev, "sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", rdma)) &&
           !strchr(netdev, '/') && gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s/type", netdev);
}

static int add_virtual_rdmas(struct gtopo_discovery *d)
{
    struct gtopo_sysfs_names rdmas;
    char netdev[GTOPO_SYSFS_TEXT];
    int status = gtopo_sysfs_list(&d->sysfs, &rdmas, "sys/class/infiniband");

    if (status)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    for (size_t i = 0; !status && i < rdmas.count; i++)
        if (netdev_of_virtual(d, rdmas.names[i], netdev))
            status = add_virtual_rdma(d, rdmas.names[i], netdev);
    gtopo_sysfs_names_clear(&rdmas);
    return status;
}

int gtopo_discover_ports(struct gtopo_discovery *d)
{
    size_t on_pci = d->nic_count;
    int status = 0;

    for (size_t i = 0; !status && i < on_pci; i++)
        status = d->sysfs.fd >= 0 ? add_pci_ports(d, i) : gtopo_ports_of_hwloc(d, &d->nics[i]);
    if (!status)
        status = add_other_nics(d);
    return status ? status : add_virtual_rdmas(d);
}
