/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ports of NICs. A port is known by its netdev, by its RDMA device and port number, or by both; ports are found
 * again by their netdev.
 */
#include "topo/host/nic.h"
#include "topo/host/rdma.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The slot of a netdev's port, or the free one where it would be; there is always one. */
static uint32_t *slot_of(const struct gtopo_discovery *d, const char *netdev)
{
    size_t mask = d->port_slot_count - 1;
    size_t slot = gtopo_hash_bytes(GTOPO_HASH_START, netdev, strlen(netdev)) & mask;

    while (d->port_slots[slot] && strcmp(d->ports[d->port_slots[slot] - 1].netdev, netdev))
        slot = (slot + 1) & mask;
    return &d->port_slots[slot];
}

static int grow_slots(struct gtopo_discovery *d)
{
    size_t count = d->port_slot_count ? 2 * d->port_slot_count : 64;
    uint32_t *slots;

    if (2 * d->port_count < d->port_slot_count)
        return 0;
    slots = calloc(count, sizeof *slots);
    if (!slots)
        return GTOPO_ENOMEM;
    free(d->port_slots);
    d->port_slots = slots;
    d->port_slot_count = count;
    for (size_t i = 0; i < d->port_count; i++) {
        uint32_t *slot = slot_of(d, d->ports[i].netdev);

        if (*d->ports[i].netdev && !*slot)
            *slot = (uint32_t)i + 1;
    }
    return 0;
}

/* The first port of a netdev. */
struct gtopo_found_port *gtopo_port_of(const struct gtopo_discovery *d, const char *netdev)
{
    uint32_t slot = d->port_slot_count ? *slot_of(d, netdev) : 0;

    return slot ? &d->ports[slot - 1] : NULL;
}

static int remember_port(struct gtopo_discovery *d, const struct gtopo_found_port *port)
{
    uint32_t *slot;

    if (gtopo_grow((void **)&d->ports, &d->port_capacity, d->port_count + 1, sizeof *d->ports) || grow_slots(d))
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    slot = slot_of(d, port->netdev);
    d->ports[d->port_count++] = *port;
    if (*port->netdev && !*slot)
        *slot = (uint32_t)d->port_count;
    return 0;
}

/* What is wrong with a port is told once. That of a virtual function is its card's, which tells it. */
static int check_port(struct gtopo_discovery *d, uint32_t port, const char *netdev, const char *rdma,
                      uint32_t rdma_port)
{
    int status = netdev ? gtopo_netdev_check_bond(d, port, netdev) : 0;

    if (status)
        return status < 0 ? status : 0;
    return rdma ? gtopo_rdma_check(d, port, rdma, rdma_port) : gtopo_netdev_check(d, port, netdev);
}

int gtopo_port_add(struct gtopo_discovery *d, size_t nic, uint32_t wanted, const char *netdev, const char *rdma,
                   uint32_t rdma_port)
{
    struct gtopo_found_nic *card = &d->nics[nic];
    struct gtopo_found_port found = {.nic = nic};
    uint32_t number = wanted > card->last_port ? wanted : card->last_port + 1;
    uint64_t rate_Bps = 0;
    int status = gtopo_discovery_add(d, GTOPO_PORT, card->id, number, &found.id);

    card->last_port = number;
    if (!status && netdev)
        status = gtopo_netdev_facts(d, found.id, netdev);
    if (!status && rdma)
        status = gtopo_rdma_facts(d, found.id, rdma, rdma_port);
    if (!status && !gtopo_map_text(d->map, card->id, GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION))
        status = check_port(d, found.id, netdev, rdma, rdma_port);
    if (status)
        return status;
    gtopo_map_number(d->map, found.id, GTOPO_ATTRIBUTE_RATE_Bps, &rate_Bps);
    status = gtopo_discovery_link(d, GTOPO_LINK_PORT, card->id, found.id, rate_Bps);
    snprintf(found.netdev, sizeof found.netdev, "%s", netdev ? netdev : "");
    return status ? status : remember_port(d, &found);
}
