/* SPDX-License-Identifier: Apache-2.0 */
/* What sysfs says of an RDMA device and its ports. */
#ifndef GTOPO_TOPO_HOST_RDMA_H
#define GTOPO_TOPO_HOST_RDMA_H

#include "topo/host/host.h"

/* Is the device made by software on a netdev (rxe, siw)? Then it stands on no device. */
int gtopo_rdma_is_virtual(const struct gtopo_discovery *d, const char *rdma);
/* The facts of port `number` of RDMA device `rdma`, onto a port of the map. */
int gtopo_rdma_facts(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number);
/* A finding for a port that is not active, and not virtual. */
int gtopo_rdma_check(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number);
/* The facts that all ports of a device share, onto its NIC. */
int gtopo_rdma_device_facts(struct gtopo_discovery *d, uint32_t nic, const char *rdma);

/* Ports by hwloc's word only, where there is no sysfs. */
int gtopo_ports_of_hwloc(struct gtopo_discovery *d, const struct gtopo_found_nic *nic);

#endif
