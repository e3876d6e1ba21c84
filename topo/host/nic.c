/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of NICs. A port is known by its netdev, by its RDMA device and port number, or by both. Netdevs and RDMA
 * devices of a PCI function stand below it in sysfs; a virtual RDMA device (rxe, siw) names its netdev instead.
 */
#include "topo/host/rdma.h"
#include "lib/text.h"
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a netdev's file "type" (net/if_arp.h). */
#define ARPHRD_ETHERNET 1
#define ARPHRD_INFINIBAND_LINK 32

/* ---- a netdev's facts ---- */

static int netdev_number(struct gtopo_discovery *d, uint32_t port, const char *netdev, const char *file,
                         enum gtopo_attribute attribute)
{
    int64_t number;

    if (!gtopo_sysfs_number(&d->sysfs, 1, INT32_MAX, &number, "sys/class/net/%s/%s", netdev, file))
        return 0;
    return gtopo_discovery_number(d, port, attribute, (uint64_t)number);
}

/* Megabits per second; -1 and 4294967295 stand for "not known". */
static int set_speed(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    int64_t speed_Mbps;

    if (!gtopo_sysfs_number(&d->sysfs, 1, 10000000, &speed_Mbps, "sys/class/net/%s/speed", netdev))
        return 0;
    return gtopo_discovery_number(d, port, GTOPO_ATTRIBUTE_RATE_Bps, (uint64_t)speed_Mbps * 125000);
}

static int netdev_flag(struct gtopo_discovery *d, const char *netdev, int64_t flag)
{
    int64_t flags;

    return gtopo_sysfs_number(&d->sysfs, 0, INT32_MAX, &flags, "sys/class/net/%s/flags", netdev) && (flags & flag);
}

/* operstate is "unknown" for drivers that do not say; then the carrier decides. */
static int has_link(struct gtopo_discovery *d, const char *netdev)
{
    char state[GTOPO_SYSFS_TEXT];
    int64_t carrier;

    if (gtopo_sysfs_text(&d->sysfs, state, "sys/class/net/%s/operstate", netdev) && strcmp(state, "unknown"))
        return !strcmp(state, "up");
    return netdev_flag(d, netdev, IFF_UP) &&
           gtopo_sysfs_number(&d->sysfs, 1, 1, &carrier, "sys/class/net/%s/carrier", netdev);
}

/* A plain Ethernet port that is not used is no fault; one that is switched on and has no cable is worth a look. */
static int report_no_link(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    if (netdev_flag(d, netdev, IFF_UP))
        return gtopo_discovery_find(d, "port-down", GTOPO_WARNING, port, "check the cable and the switch's port",
                                    "%s is switched on and has no link", netdev);
    return gtopo_discovery_find(d, "port-off", GTOPO_NOTE, port, "`ip link set DEVICE up` if it should be used",
                                "%s is switched off", netdev);
}

static int set_netdev(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    char text[GTOPO_SYSFS_TEXT];
    int64_t type = 0;
    int linked = has_link(d, netdev), status;

    gtopo_sysfs_number(&d->sysfs, 0, INT32_MAX, &type, "sys/class/net/%s/type", netdev);
    if ((status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_NETDEV, netdev)) ||
        (status = netdev_number(d, port, netdev, "mtu", GTOPO_ATTRIBUTE_MTU_B)) ||
        (status = set_speed(d, port, netdev)))
        return status;
    if (gtopo_sysfs_text(&d->sysfs, text, "sys/class/net/%s/address", netdev))
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_MAC, text);
    if (!status && gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s/type", netdev))
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_LINK_LAYER,
                                      type == ARPHRD_INFINIBAND_LINK ? "InfiniBand" : "Ethernet");
    if (!status)
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_STATE, linked ? "active" : "down");
    return status;
}

/* ---- ports ---- */

/* Add a port to a NIC, with the facts of its netdev (NULL for none) and of its RDMA device's port (NULL for none). */
static int add_port(struct gtopo_discovery *d, uint32_t nic, uint32_t number, const char *netdev, const char *rdma,
                    uint32_t rdma_port)
{
    struct gtopo_found_port found = {.nic = nic, .number = number};
    uint64_t rate_Bps = 0;
    int status = gtopo_discovery_add(d, GTOPO_PORT, nic, number, &found.id);

    if (!status && netdev)
        status = set_netdev(d, found.id, netdev);
    if (!status && rdma)
        status = gtopo_rdma_facts(d, found.id, rdma, rdma_port);
    if (!status && netdev && !rdma && !has_link(d, netdev))
        status = report_no_link(d, found.id, netdev);
    if (status)
        return status;
    gtopo_map_number(d->map, found.id, GTOPO_ATTRIBUTE_RATE_Bps, &rate_Bps);
    status = gtopo_discovery_link(d, GTOPO_LINK_PORT, nic, found.id, rate_Bps);
    if (status)
        return status;
    snprintf(found.netdev, sizeof found.netdev, "%s", netdev ? netdev : "");
    if (gtopo_grow((void **)&d->ports, &d->port_capacity, d->port_count + 1, sizeof *d->ports))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    d->ports[d->port_count++] = found;
    return 0;
}

/* The lowest number that no port of the NIC has yet, from `wanted` on. */
static uint32_t free_number(const struct gtopo_discovery *d, uint32_t nic, uint32_t wanted)
{
    for (size_t i = 0; i < d->port_count;)
        if (d->ports[i].nic == nic && d->ports[i].number == wanted) {
            wanted++;
            i = 0;
        } else
            i++;
    return wanted;
}

static struct gtopo_found_port *find_port(const struct gtopo_discovery *d, const char *netdev)
{
    for (size_t i = 0; i < d->port_count; i++)
        if (!strcmp(d->ports[i].netdev, netdev))
            return &d->ports[i];
    return NULL;
}

/* A netdev's place on its card, from 0. */
static int64_t dev_port(const struct gtopo_discovery *d, const char *netdev)
{
    int64_t number = 0;

    gtopo_sysfs_number(&d->sysfs, 0, 1023, &number, "sys/class/net/%s/dev_port", netdev);
    return number;
}

/* ---- NICs on the PCI bus ---- */

/* The netdev that belongs to an RDMA port: the one that its GID table names, else the one of the same place. */
static const char *netdev_of(const struct gtopo_discovery *d, const char *rdma, uint32_t port,
                             const struct gtopo_sysfs_names *netdevs)
{
    char text[GTOPO_SYSFS_TEXT];
    int named = gtopo_sysfs_text(&d->sysfs, text, "sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0", rdma, port);

    for (size_t i = 0; i < netdevs->count; i++)
        if (named ? !strcmp(netdevs->names[i], text) : dev_port(d, netdevs->names[i]) == (int64_t)port - 1)
            return netdevs->names[i];
    return NULL;
}

static int add_rdma_ports(struct gtopo_discovery *d, uint32_t nic, const char *rdma,
                          const struct gtopo_sysfs_names *netdevs)
{
    struct gtopo_sysfs_names ports;
    int status = gtopo_sysfs_list(&d->sysfs, &ports, "sys/class/infiniband/%s/ports", rdma);

    if (status)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    for (size_t i = 0; !status && i < ports.count; i++) {
        unsigned long number = strtoul(ports.names[i], NULL, 10);

        if (number < 1 || number > 255)
            continue;
        status = add_port(d, nic, free_number(d, nic, (uint32_t)number), netdev_of(d, rdma, (uint32_t)number, netdevs),
                          rdma, (uint32_t)number);
    }
    gtopo_sysfs_names_clear(&ports);
    return status ? status : gtopo_rdma_device_facts(d, nic, rdma);
}

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

static int add_pci_ports(struct gtopo_discovery *d, const struct gtopo_found_nic *nic)
{
    struct gtopo_sysfs_names netdevs = {0}, rdmas = {0};
    int status = list_netdevs(d, nic->address, &netdevs);

    if (!status)
        status = gtopo_sysfs_list(&d->sysfs, &rdmas, "sys/bus/pci/devices/%s/infiniband", nic->address);
    if (status)
        status = gtopo_fail(d->error, status, NULL, "out of memory");
    for (size_t i = 0; !status && i < rdmas.count; i++)
        status = add_rdma_ports(d, nic->id, rdmas.names[i], &netdevs);
    for (size_t i = 0; !status && i < netdevs.count; i++)
        if (!find_port(d, netdevs.names[i]))
            status = add_port(d, nic->id, free_number(d, nic->id, (uint32_t)dev_port(d, netdevs.names[i]) + 1),
                              netdevs.names[i], NULL, 0);
    if (!status && !rdmas.count && netdevs.count)
        status = gtopo_discovery_text(d, nic->id, GTOPO_ATTRIBUTE_DEVICE, netdevs.names[0]);
    gtopo_sysfs_names_clear(&netdevs);
    gtopo_sysfs_names_clear(&rdmas);
    return status;
}

/* ---- NICs elsewhere ---- */

/* A NIC on no PCI bus, for a netdev: on a system on chip, paravirtual, or (is_virtual) made by software. */
static int add_other_nic(struct gtopo_discovery *d, const char *netdev, int is_virtual)
{
    uint32_t nic;
    int status = gtopo_discovery_add(d, GTOPO_NIC, d->machine, 0, &nic);

    if (!status)
        status = gtopo_discovery_text(d, nic, GTOPO_ATTRIBUTE_DEVICE, netdev);
    if (!status)
        status = gtopo_map_set_unknown(d->map, nic, GTOPO_ATTRIBUTE_NUMA, d->error);
    if (!status && is_virtual)
        status = gtopo_discovery_number(d, nic, GTOPO_ATTRIBUTE_VIRTUAL, 1);
    if (!status)
        status = gtopo_discovery_link(d, GTOPO_LINK_PLATFORM, nic, d->machine, 0);
    return status ? status : add_port(d, nic, 1, netdev, NULL, 0);
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

        /* Only software makes netdevs without a device. Virtual functions are shares of a card. */
        if (find_port(d, netdev) || !gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s/device", netdev) ||
            gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s/device/physfn", netdev) ||
            gtopo_sysfs_text(&d->sysfs, text, "sys/class/net/%s/device/class", netdev) ||
            !gtopo_sysfs_number(&d->sysfs, 0, INT32_MAX, &type, "sys/class/net/%s/type", netdev) ||
            (type != ARPHRD_ETHERNET && type != ARPHRD_INFINIBAND_LINK))
            continue;
        status = add_other_nic(d, netdev, 0);
    }
    gtopo_sysfs_names_clear(&netdevs);
    return status;
}

/* A virtual RDMA device goes to the port of its netdev; a second one on the same netdev is a port of its own. */
static int add_virtual_rdma(struct gtopo_discovery *d, const char *rdma, const char *netdev)
{
    struct gtopo_found_port *port = find_port(d, netdev);
    int status = 0;

    if (!port) {
        status = add_other_nic(d, netdev, 1);
        port = find_port(d, netdev);
    }
    if (status)
        return status;
    if (gtopo_map_text(d->map, port->id, GTOPO_ATTRIBUTE_DEVICE))
        return add_port(d, port->nic, free_number(d, port->nic, port->number), netdev, rdma, 1);
    return gtopo_rdma_facts(d, port->id, rdma, 1);
}

static int add_virtual_rdmas(struct gtopo_discovery *d)
{
    struct gtopo_sysfs_names rdmas;
    char netdev[GTOPO_SYSFS_TEXT];
    int status = gtopo_sysfs_list(&d->sysfs, &rdmas, "sys/class/infiniband");

    if (status)
        return gtopo_fail(d->error, status, NULL, "out of memory");
    for (size_t i = 0; !status && i < rdmas.count; i++)
        if (gtopo_sysfs_text(&d->sysfs, netdev, "sys/class/infiniband/%s/parent", rdmas.names[i]) &&
            gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s", netdev))
            status = add_virtual_rdma(d, rdmas.names[i], netdev);
    gtopo_sysfs_names_clear(&rdmas);
    return status;
}

int gtopo_discover_ports(struct gtopo_discovery *d)
{
    int status = 0;

    for (size_t i = 0; !status && i < d->nic_count; i++)
        status = d->sysfs.fd >= 0 ? add_pci_ports(d, &d->nics[i]) : gtopo_ports_of_hwloc(d, &d->nics[i]);
    if (!status)
        status = add_other_nics(d);
    return status ? status : add_virtual_rdmas(d);
}
