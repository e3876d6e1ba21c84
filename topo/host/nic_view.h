/* SPDX-License-Identifier: Apache-2.0 */
/* The NICs and GPUs of a host, as what joins and judges them sees them, whatever the map was filled from. */
#ifndef GTOPO_TOPO_HOST_NIC_VIEW_H
#define GTOPO_TOPO_HOST_NIC_VIEW_H

#include "topo/host/host.h"

enum gtopo_nic_role {
    GTOPO_NIC_UNKNOWN,
    GTOPO_NIC_FABRIC,
    GTOPO_NIC_MANAGEMENT,
    GTOPO_NIC_VIRTUAL_FUNCTION,
    GTOPO_NIC_DATA_DIRECT,
    GTOPO_NIC_SOFTWARE /* rxe on a netdev that is on no device: it is no NIC */
};

struct gtopo_nic_view {
    uint32_t id, parent; /* objects */
    uint32_t package;    /* object, or GTOPO_NONE where nobody says */
    enum gtopo_nic_role role;
    uint32_t card;        /* the first function of its card, in the list */
    int is_first_of_slot; /* the first function that is in its slot */
    uint32_t port_count, down_count;
    uint64_t rate_Bps; /* of its fastest port, 0 for unknown */
    int is_rdma;       /* by hardware */
};

struct gtopo_gpu_view {
    uint32_t id, parent, package;
};

struct gtopo_host_view {
    uint32_t first, count; /* objects of the host */
    struct gtopo_nic_view *nics;
    size_t nic_count;
    struct gtopo_gpu_view *gpus;
    size_t gpu_count;
};

/* nic_card.c: which functions are of one card. */
int gtopo_join_cards(struct gtopo_discovery *d, struct gtopo_host_view *view);
/* nic_role.c: what each NIC is for; a finding where nothing but Gigabit Ethernet serves GPUs. */
int gtopo_set_nic_roles(struct gtopo_discovery *d, struct gtopo_host_view *view);
/* nic_place.c: findings for NICs that are in the wrong place, missing, or not working. */
int gtopo_check_nic_places(struct gtopo_discovery *d, const struct gtopo_host_view *view);

#endif
