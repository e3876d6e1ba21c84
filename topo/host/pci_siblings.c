/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of one model should be alike: one that is not, among several that are, has been set or put differently. */
#include "topo/host/host.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of two that differ, nobody knows which is right. */
#define SIBLINGS_MIN 3

#define VALUE_TEXT 32

struct sibling {
    const struct gtopo_pci *pci;
    enum gtopo_object_kind kind;
};

/*
 * What is compared, 0 for unknown. Of a link what both its ends can do: that it does less is a finding by itself, and
 * what an idle one reports says nothing.
 */
static uint64_t width_of(const struct gtopo_pci *pci)
{
    return pci->capable_width;
}

static uint64_t speed_of(const struct gtopo_pci *pci)
{
    return pci->capable_speed_MTps;
}

static uint64_t payload_of(const struct gtopo_pci *pci)
{
    return pci->config.payload_B;
}

static uint64_t read_request_of(const struct gtopo_pci *pci)
{
    return pci->config.read_request_B;
}

static uint64_t bar1_of(const struct gtopo_pci *pci)
{
    return pci->bar1_B;
}

static void print_lanes(uint64_t value, char text[VALUE_TEXT])
{
    snprintf(text, VALUE_TEXT, "x%" PRIu64, value);
}

static void print_speed(uint64_t value, char text[VALUE_TEXT])
{
    snprintf(text, VALUE_TEXT, "%" PRIu64 "%s GT/s", value / 1000, value % 1000 ? ".5" : "");
}

static void print_bytes(uint64_t value, char text[VALUE_TEXT])
{
    if (value % (1 << 20))
        snprintf(text, VALUE_TEXT, "%" PRIu64 " B", value);
    else
        snprintf(text, VALUE_TEXT, "%" PRIu64 " MiB", value >> 20);
}

static const struct {
    const char *name, *next_step;
    uint64_t (*value_of)(const struct gtopo_pci *pci);
    void (*print)(uint64_t value, char text[VALUE_TEXT]);
} facts[] = {
    {"the width that both ends of its PCIe link can do", "put it into a slot with as many lanes as the others have",
     width_of, print_lanes},
    {"the speed that both ends of its PCIe link can do", "put it into a slot of the same generation as the others'",
     speed_of, print_speed},
    {"its PCIe max payload size", "look at the firmware's setting, and at what shares its root port", payload_of,
     print_bytes},
    {"its PCIe max read request size", "look at the firmware's and the driver's setting", read_request_of, print_bytes},
    {"its BAR1", "look at the firmware's setting of resizable BARs and of memory above 4 GiB", bar1_of, print_bytes},
};

/* ---- groups of siblings ---- */

static int compare_numbers(unsigned a, unsigned b)
{
    return a < b ? -1 : a > b;
}

static int compare_models(const struct sibling *a, const struct sibling *b)
{
    int order = compare_numbers(a->kind, b->kind);

    if (!order)
        order = compare_numbers(a->pci->vendor_id, b->pci->vendor_id);
    if (!order)
        order = compare_numbers(a->pci->device_id, b->pci->device_id);
    if (!order)
        order = compare_numbers(a->pci->subvendor_id, b->pci->subvendor_id);
    return order ? order : compare_numbers(a->pci->subdevice_id, b->pci->subdevice_id);
}

static int compare_siblings(const void *a, const void *b)
{
    const struct sibling *x = a, *y = b;
    int order = compare_models(x, y);

    return order ? order : compare_numbers(x->pci->object, y->pci->object);
}

/* The value that more than half of those that are known have, or 0: the vote of Boyer and Moore, and a count. */
static uint64_t majority(const struct sibling *siblings, size_t count, uint64_t (*value_of)(const struct gtopo_pci *),
                         size_t *known, size_t *agree)
{
    uint64_t candidate = 0;
    size_t lead = 0;

    *known = *agree = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = value_of(siblings[i].pci);

        if (!value)
            continue;
        if (!lead)
            candidate = value;
        lead = value == candidate ? lead + 1 : lead - 1;
        ++*known;
    }
    for (size_t i = 0; i < count; i++)
        *agree += candidate && value_of(siblings[i].pci) == candidate;
    return *agree * 2 > *known ? candidate : 0;
}

static int compare_fact(struct gtopo_discovery *d, const struct sibling *siblings, size_t count, size_t fact)
{
    char own[VALUE_TEXT], others[VALUE_TEXT], more[64] = "";
    const struct gtopo_pci *odd = NULL;
    size_t known, agree;
    uint64_t usual = majority(siblings, count, facts[fact].value_of, &known, &agree);

    if (!usual || known < SIBLINGS_MIN || agree == known)
        return 0;
    for (size_t i = 0; i < count && !odd; i++) {
        uint64_t value = facts[fact].value_of(siblings[i].pci);

        odd = value && value != usual ? siblings[i].pci : NULL;
    }
    facts[fact].print(facts[fact].value_of(odd), own);
    facts[fact].print(usual, others);
    if (known - agree > 1)
        snprintf(more, sizeof more, "; %zu more differ too", known - agree - 1);
    return gtopo_discovery_find(d, "siblings-differ", GTOPO_WARNING, odd->object, facts[fact].next_step,
                                "%s is not as the others of its model: %s is %s, that of %zu others %s%s", odd->address,
                                facts[fact].name, own, agree, others, more);
}

int gtopo_report_siblings(struct gtopo_discovery *d)
{
    struct sibling *siblings = calloc(d->pci.count + 1, sizeof *siblings);
    size_t count = 0, end;
    int status = 0;

    if (!siblings)
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < d->pci.count; i++) {
        const struct gtopo_pci *pci = &d->pci.items[i];
        struct gtopo_object object;

        if (pci->object == GTOPO_NONE || gtopo_map_object(d->map, pci->object, &object, NULL) ||
            object.kind == GTOPO_PCI_SWITCH)
            continue;
        siblings[count++] = (struct sibling){pci, object.kind};
    }
    qsort(siblings, count, sizeof *siblings, compare_siblings);
    for (size_t i = 0; i < count && !status; i = end) {
        for (end = i + 1; end < count && !compare_models(&siblings[i], &siblings[end]);)
            end++;
        for (size_t fact = 0; fact < sizeof facts / sizeof *facts && !status; fact++)
            status = compare_fact(d, &siblings[i], end - i, fact);
    }
    free(siblings);
    return status;
}
