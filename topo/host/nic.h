/* SPDX-License-Identifier: Apache-2.0 */
/* NICs, their ports, and the netdevs of these. */
#ifndef GTOPO_TOPO_HOST_NIC_H
#define GTOPO_TOPO_HOST_NIC_H

#include "topo/host/host.h"

/* Of a netdev's file "type" (net/if_arp.h). */
#define GTOPO_ARPHRD_ETHERNET 1
#define GTOPO_ARPHRD_INFINIBAND 32

/* ---- nic_function.c ---- */

/* The PCI address of what a virtual function is a share of. 0 for a device that is none, or whose card is not here. */
int gtopo_nic_physical_function(const struct gtopo_discovery *d, const struct gtopo_pci *device,
                                char parent[GTOPO_PCI_ADDRESS_MAX]);

/* ---- netdev.c ---- */

/* The facts of a netdev, onto a port of the map. */
int gtopo_netdev_facts(struct gtopo_discovery *d, uint32_t port, const char *netdev);
/* A finding for a member of a bond that the bond has to do without. 1 when there was one, 0, or a status. */
int gtopo_netdev_check_bond(struct gtopo_discovery *d, uint32_t port, const char *netdev);
/* A finding for a netdev without a link. */
int gtopo_netdev_check(struct gtopo_discovery *d, uint32_t port, const char *netdev);

/* ---- port.c ---- */

/*
 * Add a port to a NIC, with the facts of its netdev (NULL for none) and of its RDMA device's port (NULL for none). It
 * gets the number that is wanted, unless the NIC has that or a higher one already; then the next.
 */
int gtopo_port_add(struct gtopo_discovery *d, size_t nic, uint32_t wanted, const char *netdev, const char *rdma,
                   uint32_t rdma_port);
/* The first port of a netdev, or NULL. */
struct gtopo_found_port *gtopo_port_of(const struct gtopo_discovery *d, const char *netdev);

#endif
