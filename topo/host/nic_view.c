/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/host/nic_view.h"
#include <stdlib.h>
#include <string.h>

#define COMPANY_SHIFT 40 /* the upper 24 bits of an EUI-64 say who gave it */

/* The package that an object is in. */
static uint32_t package_of(const struct gtopo_map *map, uint32_t id)
{
    struct gtopo_object object = {0};

    while (id != GTOPO_NONE && !gtopo_map_object(map, id, &object, NULL) && object.kind != GTOPO_PACKAGE)
        id = object.parent;
    return id;
}

static int is_set(const struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute)
{
    uint64_t number;

    return gtopo_map_number(map, id, attribute, &number) && number;
}

/* Vendors' adapters that do RDMA without what the RDMA class calls a GUID. */
static int is_known_fabric(const char *pci_id)
{
    static const char *const prefixes[] = {
        "17db:",    /* HPE Slingshot (cxi) */
        "1d0f:efa", /* AWS Elastic Fabric Adapter */
    };

    for (size_t i = 0; pci_id && i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(pci_id, prefixes[i], strlen(prefixes[i])))
            return 1;
    return 0;
}

/* PCI classes: network controller InfiniBand and host fabric, and serial bus controller InfiniBand. */
static int is_fabric_class(const char *pci_class)
{
    return pci_class &&
           (!strncmp(pci_class, "0x0207", 6) || !strncmp(pci_class, "0x0208", 6) || !strncmp(pci_class, "0x0c06", 6));
}

static void view_nic(const struct gtopo_map *map, const struct gtopo_object *object, struct gtopo_nic_view *nic)
{
    *nic = (struct gtopo_nic_view){
        .id = object->id,
        .parent = object->parent,
        .package = package_of(map, object->id),
        .is_rdma = is_set(map, object->id, GTOPO_ATTRIBUTE_NODE_GUID) ||
                   is_fabric_class(gtopo_map_text(map, object->id, GTOPO_ATTRIBUTE_PCI_CLASS)) ||
                   is_known_fabric(gtopo_map_text(map, object->id, GTOPO_ATTRIBUTE_PCI_ID)),
    };
}

static void view_port(const struct gtopo_map *map, uint32_t port, struct gtopo_nic_view *nic)
{
    const char *state = gtopo_map_text(map, port, GTOPO_ATTRIBUTE_STATE);
    uint64_t rate_Bps, guid = 0;

    nic->port_count++;
    nic->down_count += state && strncmp(state, "active", 6);
    if (gtopo_map_number(map, port, GTOPO_ATTRIBUTE_RATE_Bps, &rate_Bps) && rate_Bps > nic->rate_Bps)
        nic->rate_Bps = rate_Bps;
    /* A device that software makes on the port is not the NIC's. Where there is none, NCCL writes a small number. */
    if (gtopo_map_number(map, port, GTOPO_ATTRIBUTE_GUID, &guid) && guid >> COMPANY_SHIFT &&
        !is_set(map, port, GTOPO_ATTRIBUTE_VIRTUAL))
        nic->is_rdma = 1;
}

static int view_host(struct gtopo_discovery *d, struct gtopo_host_view *view)
{
    size_t *place_of; /* of a NIC's object in the list */
    int status = gtopo_map_host_objects(d->map, d->host, &view->first, &view->count, d->error);

    if (status)
        return status;
    view->nics = calloc(view->count + 1, sizeof *view->nics);
    view->gpus = calloc(view->count + 1, sizeof *view->gpus);
    place_of = calloc(view->count + 1, sizeof *place_of);
    if (!view->nics || !view->gpus || !place_of)
        status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (uint32_t i = 0; !status && i < view->count; i++) {
        struct gtopo_object object = {0};

        gtopo_map_object(d->map, view->first + i, &object, NULL);
        if (object.kind == GTOPO_NIC) {
            place_of[i] = view->nic_count;
            view_nic(d->map, &object, &view->nics[view->nic_count++]);
        } else if (object.kind == GTOPO_GPU) {
            view->gpus[view->gpu_count++] =
                (struct gtopo_gpu_view){object.id, object.parent, package_of(d->map, object.id)};
        } else if (object.kind == GTOPO_PORT) {
            view_port(d->map, object.id, &view->nics[place_of[object.parent - view->first]]);
        }
    }
    free(place_of);
    return status;
}

int gtopo_judge_nics(struct gtopo_discovery *d)
{
    struct gtopo_host_view view = {0};
    int status = view_host(d, &view);

    if (!status)
        status = gtopo_join_cards(d, &view);
    if (!status)
        status = gtopo_set_nic_roles(d, &view);
    if (!status)
        status = gtopo_check_nic_places(d, &view);
    free(view.nics);
    free(view.gpus);
    return status;
}
