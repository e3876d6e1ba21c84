/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NICs in the wrong place, missing, or not working. A machine is judged by itself only: what one half of it has, the
 * other should have. What nobody says (roles, packages) is no reason for a finding.
 */
#include "topo/host/nic_view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With fewer of a kind, nobody can tell the odd one from the others. */
#define GROUPS_MIN 3

/* What is on a package, or directly on a PCIe switch. */
struct group {
    uint32_t id;      /* object; GTOPO_NONE for an object that is neither */
    uint32_t package; /* the package itself, or the one the switch is in */
    uint32_t gpus, nics, unknown, switches;
    uint32_t last_nic, first_gpu; /* objects */
};

static struct group *group_of(const struct gtopo_host_view *view, struct group *groups, uint32_t id)
{
    return id != GTOPO_NONE && groups[id - view->first].id != GTOPO_NONE ? &groups[id - view->first] : NULL;
}

/* On a package every slot counts, on a switch every function: a card has what it has. */
static void count_nic(const struct gtopo_nic_view *nic, struct group *group, int is_counted)
{
    if (!group)
        return;
    group->unknown += nic->role == GTOPO_NIC_UNKNOWN;
    if (nic->role != GTOPO_NIC_FABRIC || !is_counted)
        return;
    group->nics++;
    group->last_nic = nic->id;
}

static void count_gpu(const struct gtopo_gpu_view *gpu, struct group *group)
{
    if (group && !group->gpus++)
        group->first_gpu = gpu->id;
}

static void count_groups(const struct gtopo_discovery *d, const struct gtopo_host_view *view, struct group *groups)
{
    for (uint32_t i = 0; i < view->count; i++) {
        struct gtopo_object object = {0};
        uint32_t package = GTOPO_NONE;

        gtopo_map_object(d->map, view->first + i, &object, NULL);
        /* Parents stand before their children. */
        if (object.kind == GTOPO_PACKAGE)
            package = object.id;
        else if (object.parent != GTOPO_NONE)
            package = groups[object.parent - view->first].package;
        groups[i] = (struct group){.id = GTOPO_NONE, .package = package};
        if (object.kind == GTOPO_PACKAGE || object.kind == GTOPO_PCI_SWITCH)
            groups[i].id = object.id;
        if (object.kind == GTOPO_PCI_SWITCH && package != GTOPO_NONE)
            groups[package - view->first].switches++;
    }
    for (size_t i = 0; i < view->gpu_count; i++) {
        count_gpu(&view->gpus[i], group_of(view, groups, view->gpus[i].package));
        count_gpu(&view->gpus[i], group_of(view, groups, view->gpus[i].parent));
    }
    for (size_t i = 0; i < view->nic_count; i++) {
        count_nic(&view->nics[i], group_of(view, groups, view->nics[i].package), view->nics[i].is_first_of_slot);
        count_nic(&view->nics[i], group_of(view, groups, view->nics[i].parent), 1);
    }
}

/* The address without the host: findings name the host by their object. */
static const char *name_of(const struct gtopo_map *map, uint32_t object, char text[GTOPO_ADDRESS_MAX])
{
    const char *slash = strchr(gtopo_address_format(map, object, text), '/');

    return slash ? slash + 1 : text;
}

/* ---- packages ---- */

static int is_package(const struct group *group)
{
    return group->id != GTOPO_NONE && group->id == group->package;
}

/* GPUs on a package without a NIC, and a NIC on another that is one more than this one needs. */
static int report_wrong_socket(struct gtopo_discovery *d, const struct group *without, const struct group *with)
{
    char texts[4][GTOPO_ADDRESS_MAX];

    return gtopo_discovery_find(d, "nic-wrong-socket", GTOPO_WARNING, with->last_nic,
                                "move the card to a slot of the package that has none, or one of the GPUs to this one",
                                "%s is on %s, and %s, where %s is, has no NIC of the fabric: what its %u GPUs send "
                                "crosses the link between the sockets",
                                name_of(d->map, with->last_nic, texts[0]), name_of(d->map, with->id, texts[1]),
                                name_of(d->map, without->id, texts[2]), name_of(d->map, without->first_gpu, texts[3]),
                                without->gpus);
}

static int report_missing(struct gtopo_discovery *d, const struct group *without, const struct group *with)
{
    char texts[2][GTOPO_ADDRESS_MAX];

    return gtopo_discovery_find(d, "nic-missing", without->nics || !is_package(without) ? GTOPO_WARNING : GTOPO_NOTE,
                                without->id, "look whether the card is in its slot and its link trained (`lspci`)",
                                "%s has %u NICs of the fabric, and %s, which has as many GPUs, has %u",
                                name_of(d->map, without->id, texts[0]), without->nics,
                                name_of(d->map, with->id, texts[1]), with->nics);
}

/* The package that has a NIC to spare, and the one that looks like this one and has a NIC; NULL for none. */
static void find_others(const struct gtopo_host_view *view, const struct group *groups, const struct group *without,
                        const struct group **spare, const struct group **twin)
{
    *spare = *twin = NULL;
    for (uint32_t i = 0; i < view->count; i++) {
        const struct group *other = &groups[i];

        if (!is_package(other) || !other->nics)
            continue;
        if (!*spare && other->nics > (other->gpus > 0))
            *spare = other;
        if (!*twin && other->gpus == without->gpus && other->switches == without->switches)
            *twin = other;
    }
}

/* A device that nobody says the place of may be on any package. */
static int are_places_known(const struct gtopo_host_view *view)
{
    for (size_t i = 0; i < view->nic_count; i++)
        if (view->nics[i].role == GTOPO_NIC_FABRIC && view->nics[i].package == GTOPO_NONE)
            return 0;
    for (size_t i = 0; i < view->gpu_count; i++)
        if (view->gpus[i].package == GTOPO_NONE)
            return 0;
    return 1;
}

/* *has_bare is set when a package with GPUs has no NIC: what is missing on its switches is then said. */
static int check_packages(struct gtopo_discovery *d, const struct gtopo_host_view *view, const struct group *groups,
                          int *has_bare)
{
    const struct group *spare, *twin;
    int status = 0;

    if (!are_places_known(view))
        return 0;
    for (uint32_t i = 0; !status && i < view->count; i++) {
        if (!is_package(&groups[i]) || !groups[i].gpus || groups[i].nics || groups[i].unknown)
            continue;
        find_others(view, groups, &groups[i], &spare, &twin);
        *has_bare |= spare || twin;
        if (spare)
            status = report_wrong_socket(d, &groups[i], spare);
        else if (twin)
            status = report_missing(d, &groups[i], twin);
    }
    return status;
}

/* ---- switches ---- */

static int has_gpus(const struct group *group)
{
    return group->id != GTOPO_NONE && !is_package(group) && group->gpus;
}

/* Of the switches with GPUs, all are alike but for one, which has fewer NICs. */
static int check_switches(struct gtopo_discovery *d, const struct gtopo_host_view *view, const struct group *groups)
{
    const struct group *usual = NULL, *odd = NULL;
    uint32_t most = 0;
    size_t count = 0, usual_count = 0;

    for (uint32_t i = 0; i < view->count; i++)
        if (has_gpus(&groups[i]) && groups[i].nics > most)
            most = groups[i].nics;
    for (uint32_t i = 0; i < view->count; i++) {
        if (!has_gpus(&groups[i]))
            continue;
        count++;
        if (groups[i].nics == most) {
            usual_count++;
            usual = usual ? usual : &groups[i];
        } else
            odd = &groups[i];
        if (groups[i].unknown || (usual && groups[i].gpus != usual->gpus))
            return 0;
    }
    if (count < GROUPS_MIN || usual_count + 1 != count || odd->gpus != usual->gpus)
        return 0;
    return report_missing(d, odd, usual);
}

/* ---- NICs that do nothing ---- */

/* A NIC, what it is, and whether it works. */
struct twin {
    uint32_t id;
    char model[32], driver[32];
    uint32_t port_count;
};

static int compare_twins(const void *a, const void *b)
{
    const struct twin *x = a, *y = b;
    int models = strcmp(x->model, y->model);

    if (models)
        return models;
    if (x->port_count != y->port_count)
        return x->port_count > y->port_count ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static size_t list_twins(const struct gtopo_discovery *d, const struct gtopo_host_view *view, struct twin *twins)
{
    size_t count = 0;

    for (size_t i = 0; i < view->nic_count; i++) {
        const struct gtopo_nic_view *nic = &view->nics[i];
        const char *model = gtopo_map_text(d->map, nic->id, GTOPO_ATTRIBUTE_PCI_ID);
        const char *card = gtopo_map_text(d->map, nic->id, GTOPO_ATTRIBUTE_PCI_SUBSYSTEM);
        const char *driver = gtopo_map_text(d->map, nic->id, GTOPO_ATTRIBUTE_DRIVER);
        struct twin *twin = &twins[count];

        if (!model || nic->role == GTOPO_NIC_VIRTUAL_FUNCTION || nic->role == GTOPO_NIC_DATA_DIRECT)
            continue;
        twin->id = nic->id;
        twin->port_count = nic->port_count;
        snprintf(twin->model, sizeof twin->model, "%s %s", model, card ? card : "");
        snprintf(twin->driver, sizeof twin->driver, "%s", driver ? driver : "");
        count++;
    }
    return count;
}

/*
 * A NIC with neither netdev nor RDMA device, of a model of which another has one. With a driver of another kind (vfio,
 * of DPDK) it was meant to be so.
 */
static int check_twins(struct gtopo_discovery *d, const struct twin *twins, size_t count)
{
    const struct twin *working = NULL;
    char texts[2][GTOPO_ADDRESS_MAX];
    int status = 0;

    for (size_t i = 0; !status && i < count; i++) {
        if (!working || strcmp(twins[i].model, working->model))
            working = &twins[i];
        if (twins[i].port_count || !working->port_count ||
            (*twins[i].driver && strcmp(twins[i].driver, working->driver)))
            continue;
        status = gtopo_discovery_find(
            d, "nic-without-port", GTOPO_WARNING, twins[i].id,
            "look at what the kernel says of it (`dmesg`), and whether a container holds it",
            "%s has %s and neither a network interface nor an RDMA device; %s, of the same model, has",
            name_of(d->map, twins[i].id, texts[0]), *twins[i].driver ? twins[i].driver : "no driver",
            name_of(d->map, working->id, texts[1]));
    }
    return status;
}

/* Where there is no sysfs, nobody says what a NIC has. */
static int check_ports(struct gtopo_discovery *d, const struct gtopo_host_view *view)
{
    struct twin *twins;
    size_t count;
    int status;

    if (d->sysfs.fd < 0)
        return 0;
    twins = calloc(view->nic_count + 1, sizeof *twins);
    if (!twins)
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    count = list_twins(d, view, twins);
    qsort(twins, count, sizeof *twins, compare_twins);
    status = check_twins(d, twins, count);
    free(twins);
    return status;
}

int gtopo_check_nic_places(struct gtopo_discovery *d, const struct gtopo_host_view *view)
{
    struct group *groups = calloc(view->count + 1, sizeof *groups);
    int has_bare = 0, status = groups ? 0 : gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");

    if (!status) {
        count_groups(d, view, groups);
        status = check_packages(d, view, groups, &has_bare);
    }
    if (!status && !has_bare)
        status = check_switches(d, view, groups);
    free(groups);
    return status ? status : check_ports(d, view);
}
