/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions are of one card: those of one slot, and those of one model that have one system image GUID, which a
 * card has in all slots that it is in (Socket Direct). Virtual functions name what they are a share of.
 */
#include "topo/host/nic_view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A NIC, with what it has in common with others of its card. */
struct function {
    size_t nic; /* in the list */
    char slot[GTOPO_PCI_ADDRESS_MAX];
    char model[16];
    uint64_t system_guid;
};

static int compare_guids(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    int models = strcmp(x->model, y->model);

    if (x->system_guid != y->system_guid)
        return x->system_guid < y->system_guid ? -1 : 1;
    return models ? models : (x->nic > y->nic) - (x->nic < y->nic);
}

static int compare_slots(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    int slots = strcmp(x->slot, y->slot);

    return slots ? slots : (x->nic > y->nic) - (x->nic < y->nic);
}

/* "0000:3b:00" of "0000:3b:00.1". */
static size_t list_functions(const struct gtopo_discovery *d, const struct gtopo_host_view *view,
                             struct function *functions)
{
    size_t count = 0;

    for (size_t i = 0; i < view->nic_count; i++) {
        uint32_t id = view->nics[i].id;
        const char *address = gtopo_map_text(d->map, id, GTOPO_ATTRIBUTE_PCI_ADDRESS);
        const char *model = gtopo_map_text(d->map, id, GTOPO_ATTRIBUTE_PCI_ID);
        struct function *function = &functions[count];

        if (!address || gtopo_map_text(d->map, id, GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION))
            continue;
        function->nic = i;
        snprintf(function->slot, sizeof function->slot, "%.*s", (int)strcspn(address, "."), address);
        snprintf(function->model, sizeof function->model, "%s", model ? model : "");
        gtopo_map_number(d->map, id, GTOPO_ATTRIBUTE_SYSTEM_GUID, &function->system_guid);
        count++;
    }
    return count;
}

/* The first function of a card, by what is known so far; each function leads to one before it, or is the first. */
static uint32_t first_of(struct gtopo_nic_view *nics, size_t nic)
{
    while (nics[nic].card != nic)
        nic = nics[nic].card = nics[nics[nic].card].card;
    return (uint32_t)nic;
}

static void join(struct gtopo_nic_view *nics, size_t a, size_t b)
{
    uint32_t x = first_of(nics, a), y = first_of(nics, b);

    nics[x > y ? x : y].card = x < y ? x : y;
}

static void join_functions(struct gtopo_nic_view *nics, struct function *functions, size_t count)
{
    qsort(functions, count, sizeof *functions, compare_guids);
    for (size_t i = 1; i < count; i++)
        if (functions[i].system_guid && functions[i].system_guid == functions[i - 1].system_guid &&
            *functions[i].model && !strcmp(functions[i].model, functions[i - 1].model))
            join(nics, functions[i].nic, functions[i - 1].nic);
    qsort(functions, count, sizeof *functions, compare_slots);
    for (size_t i = 0; i < count; i++) {
        nics[functions[i].nic].is_first_of_slot = !i || strcmp(functions[i].slot, functions[i - 1].slot);
        if (!nics[functions[i].nic].is_first_of_slot)
            join(nics, functions[i].nic, functions[i - 1].nic);
    }
}

/* Is the card in slots of two packages? It is seen from every function, since its first one is of one of them. */
static void mark_socket_direct(struct gtopo_nic_view *nics, size_t count, char *is_direct)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t first = nics[i].card;

        if (nics[i].package != GTOPO_NONE && nics[first].package != GTOPO_NONE &&
            nics[i].package != nics[first].package)
            is_direct[first] = 1;
    }
}

static int set_card(struct gtopo_discovery *d, const struct gtopo_nic_view *nics, size_t nic, int is_direct)
{
    char address[GTOPO_PCI_ADDRESS_MAX];
    const char *first = gtopo_map_text(d->map, nics[nics[nic].card].id, GTOPO_ATTRIBUTE_PCI_ADDRESS);
    int status;

    snprintf(address, sizeof address, "%s", first ? first : ""); /* the map's own may move */
    status = gtopo_discovery_text(d, nics[nic].id, GTOPO_ATTRIBUTE_CARD, address);
    if (!status && is_direct)
        status = gtopo_discovery_number(d, nics[nic].id, GTOPO_ATTRIBUTE_SOCKET_DIRECT, 1);
    return status;
}

int gtopo_join_cards(struct gtopo_discovery *d, struct gtopo_host_view *view)
{
    struct function *functions = calloc(view->nic_count + 1, sizeof *functions);
    uint32_t *size = calloc(view->nic_count + 1, sizeof *size); /* functions of a card, at its first */
    char *is_direct = calloc(view->nic_count + 1, 1);
    int status = functions && size && is_direct ? 0 : gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");

    for (size_t i = 0; i < view->nic_count; i++)
        view->nics[i].card = (uint32_t)i;
    if (!status) {
        join_functions(view->nics, functions, list_functions(d, view, functions));
        for (size_t i = 0; i < view->nic_count; i++)
            size[view->nics[i].card = first_of(view->nics, i)]++;
        mark_socket_direct(view->nics, view->nic_count, is_direct);
    }
    for (size_t i = 0; !status && i < view->nic_count; i++)
        if (size[view->nics[i].card] > 1)
            status = set_card(d, view->nics, i, is_direct[view->nics[i].card]);
    free(functions);
    free(size);
    free(is_direct);
    return status;
}
