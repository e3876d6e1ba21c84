/* SPDX-License-Identifier: Apache-2.0 */
/* What each NIC of a host is for: the fabric that GPUs talk over, or the management of the host. */
#include "topo/host/nic_view.h"
#include <string.h>

#define GIGABIT_Bps UINT64_C(125000000)
#define DATA_DIRECT_CLASS "0x0801" /* DMA controller */
#define NVIDIA_NETWORKING "15b3:"

static const char *const names[] = {
    [GTOPO_NIC_FABRIC] = "fabric",
    [GTOPO_NIC_MANAGEMENT] = "management",
    [GTOPO_NIC_VIRTUAL_FUNCTION] = "virtual-function",
    [GTOPO_NIC_DATA_DIRECT] = "data-direct",
    [GTOPO_NIC_SOFTWARE] = NULL,
};

/* A NIC's second way to memory, a DMA engine by itself (ConnectX-8 Data Direct). */
static int is_data_direct(const struct gtopo_map *map, uint32_t nic)
{
    const char *id = gtopo_map_text(map, nic, GTOPO_ATTRIBUTE_PCI_ID);
    const char *pci_class = gtopo_map_text(map, nic, GTOPO_ATTRIBUTE_PCI_CLASS);

    return id && pci_class && !strncmp(id, NVIDIA_NETWORKING, strlen(NVIDIA_NETWORKING)) &&
           !strncmp(pci_class, DATA_DIRECT_CLASS, strlen(DATA_DIRECT_CLASS));
}

/* By what the NIC itself is. */
static enum gtopo_nic_role own_role(const struct gtopo_map *map, const struct gtopo_nic_view *nic)
{
    uint64_t is_virtual = 0;

    if (gtopo_map_text(map, nic->id, GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION))
        return GTOPO_NIC_VIRTUAL_FUNCTION;
    if (is_data_direct(map, nic->id))
        return GTOPO_NIC_DATA_DIRECT;
    if (gtopo_map_number(map, nic->id, GTOPO_ATTRIBUTE_VIRTUAL, &is_virtual) && is_virtual)
        return GTOPO_NIC_SOFTWARE;
    if (nic->rate_Bps && nic->rate_Bps <= GIGABIT_Bps)
        return GTOPO_NIC_MANAGEMENT;
    return nic->is_rdma ? GTOPO_NIC_FABRIC : GTOPO_NIC_UNKNOWN;
}

/* By what its card and the other NICs are: beside NICs with RDMA, one without is for management. */
static enum gtopo_nic_role role_among(const struct gtopo_nic_view *nics, const struct gtopo_nic_view *nic, int has_rdma)
{
    if (nics[nic->card].role == GTOPO_NIC_FABRIC)
        return GTOPO_NIC_FABRIC;
    if (has_rdma)
        return GTOPO_NIC_MANAGEMENT;
    return nic->rate_Bps ? GTOPO_NIC_FABRIC : GTOPO_NIC_UNKNOWN;
}

/* GPUs, and nothing but Gigabit Ethernet that could carry what they send to other hosts. */
static int check_gigabit(struct gtopo_discovery *d, const struct gtopo_host_view *view)
{
    const struct gtopo_nic_view *serving = NULL;

    for (size_t i = 0; i < view->nic_count; i++) {
        const struct gtopo_nic_view *nic = &view->nics[i];

        if (nic->role == GTOPO_NIC_FABRIC || nic->role == GTOPO_NIC_UNKNOWN)
            return 0;
        if (!serving && nic->role == GTOPO_NIC_MANAGEMENT && nic->port_count > nic->down_count)
            serving = nic;
    }
    if (!view->gpu_count || !serving)
        return 0;
    return gtopo_discovery_find(d, "gpu-traffic-on-gigabit", GTOPO_WARNING, serving->id,
                                "look whether the fabric's NIC is in its slot and has its driver (`lspci -k`)",
                                "the host has GPUs and no NIC faster than 1 Gb/s: what they send to other hosts goes "
                                "over Gigabit Ethernet");
}

int gtopo_set_nic_roles(struct gtopo_discovery *d, struct gtopo_host_view *view)
{
    int has_rdma = 0, status = 0;

    for (size_t i = 0; i < view->nic_count; i++) {
        view->nics[i].role = own_role(d->map, &view->nics[i]);
        has_rdma |= view->nics[i].role == GTOPO_NIC_FABRIC;
    }
    for (size_t i = 0; !status && i < view->nic_count; i++) {
        struct gtopo_nic_view *nic = &view->nics[i];

        if (nic->role == GTOPO_NIC_UNKNOWN)
            nic->role = role_among(view->nics, nic, has_rdma);
        status = gtopo_discovery_text(d, nic->id, GTOPO_ATTRIBUTE_ROLE, names[nic->role]);
    }
    return status ? status : check_gigabit(d, view);
}
