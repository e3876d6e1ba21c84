/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/host/pci.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- addresses ---- */

/* "0000:3b:00.0", as the kernel writes it; *order puts functions in the order of their addresses. */
static int read_address(const char *text, uint64_t *order)
{
    char again[GTOPO_PCI_ADDRESS_MAX];
    unsigned domain, bus, device, function;

    if (sscanf(text, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
        return 0;
    snprintf(again, sizeof again, "%04x:%02x:%02x.%x", domain, bus, device, function);
    *order = (uint64_t)domain << 24 | bus << 16 | device << 8 | function;
    return !strcmp(again, text);
}

/* "pci0000:3a" */
static int is_host_bridge(const char *text, unsigned *domain, unsigned *bus)
{
    char again[GTOPO_PCI_ADDRESS_MAX];

    if (sscanf(text, "pci%8x:%2x", domain, bus) != 2)
        return 0;
    snprintf(again, sizeof again, "pci%04x:%02x", *domain, *bus);
    return !strcmp(again, text);
}

/* The first name of a path, cut where it is too long for an address, and the rest of the path; NULL at its end. */
static const char *next_name(const char *path, char name[GTOPO_PCI_ADDRESS_MAX])
{
    size_t length;

    path += strspn(path, "/");
    length = strcspn(path, "/");
    snprintf(name, GTOPO_PCI_ADDRESS_MAX, "%.*s", (int)length, path);
    return length ? path + length : NULL;
}

int gtopo_pci_of_path(const char *path, char address[GTOPO_PCI_ADDRESS_MAX])
{
    char name[GTOPO_PCI_ADDRESS_MAX];
    uint64_t order;
    int found = 0;

    while ((path = next_name(path, name)))
        if (read_address(name, &order)) {
            memcpy(address, name, sizeof name);
            found = 1;
        }
    return found;
}

/* ---- the index ---- */

/* The slot of an address, or the free one where it would be; there is always one. */
static uint32_t *slot_of(const struct gtopo_pci_tree *tree, const char *address)
{
    size_t mask = tree->slot_count - 1;
    size_t slot = gtopo_hash_bytes(GTOPO_HASH_START, address, strlen(address)) & mask;

    while (tree->slots[slot] && strcmp(tree->items[tree->slots[slot] - 1].address, address))
        slot = (slot + 1) & mask;
    return &tree->slots[slot];
}

struct gtopo_pci *gtopo_pci_tree_find(const struct gtopo_pci_tree *tree, const char *address)
{
    uint32_t slot = tree->slot_count ? *slot_of(tree, address) : 0;

    return slot ? &tree->items[slot - 1] : NULL;
}

static int allocate(struct gtopo_pci_tree *tree, size_t capacity)
{
    tree->slot_count = 64;
    while (tree->slot_count < 2 * capacity)
        tree->slot_count *= 2;
    tree->capacity = capacity;
    tree->items = calloc(capacity + 1, sizeof *tree->items);
    tree->slots = calloc(tree->slot_count, sizeof *tree->slots);
    return tree->items && tree->slots ? 0 : GTOPO_ENOMEM;
}

/* A copy of what is given, in the index unless there is one of its address, on its parent if it has one. */
static struct gtopo_pci *add(struct gtopo_pci_tree *tree, const struct gtopo_pci *given)
{
    struct gtopo_pci *pci = &tree->items[tree->count++];
    uint32_t *slot;

    *pci = *given;
    pci->object = GTOPO_NONE;
    slot = slot_of(tree, pci->address);
    if (!*slot)
        *slot = (uint32_t)tree->count;
    return pci;
}

static void put_below(struct gtopo_pci *parent, struct gtopo_pci *pci)
{
    pci->parent = parent;
    parent->is_bridge = 1;
    if (parent->last_child)
        parent->last_child->next = pci;
    else
        parent->first_child = pci;
    parent->last_child = pci;
}

/* ---- hwloc's tree ---- */

static size_t count_of_hwloc(hwloc_topology_t topology)
{
    hwloc_obj_t object = NULL;
    size_t count = 0;

    while ((object = hwloc_get_next_bridge(topology, object)))
        count++;
    while ((object = hwloc_get_next_pcidev(topology, object)))
        count++;
    return count;
}

void gtopo_pci_of_hwloc(hwloc_obj_t object, struct gtopo_pci *pci)
{
    const struct hwloc_pcidev_attr_s *attr =
        object->type == HWLOC_OBJ_BRIDGE ? &object->attr->bridge.upstream.pci : &object->attr->pcidev;

    *pci = (struct gtopo_pci){
        .domain = attr->domain,
        .bus = attr->bus,
        .vendor_id = attr->vendor_id,
        .device_id = attr->device_id,
        .subvendor_id = attr->subvendor_id,
        .subdevice_id = attr->subdevice_id,
        .class_id = attr->class_id,
        .is_bridge = object->type == HWLOC_OBJ_BRIDGE,
        .hwloc = object,
    };

    snprintf(pci->address, sizeof pci->address, "%04x:%02x:%02x.%x", pci->domain, pci->bus, attr->dev, attr->func);
}

static struct gtopo_pci *add_host_bridge(struct gtopo_pci_tree *tree, unsigned domain, unsigned bus, hwloc_obj_t object)
{
    struct gtopo_pci pci = {.domain = domain, .bus = bus, .is_host_bridge = 1, .is_bridge = 1, .hwloc = object};

    snprintf(pci.address, sizeof pci.address, "pci%04x:%02x", domain, bus);
    return add(tree, &pci);
}

static void add_children_of_hwloc(struct gtopo_pci_tree *tree, struct gtopo_pci *parent)
{
    for (hwloc_obj_t child = parent->hwloc->io_first_child; child; child = child->next_sibling) {
        int is_bridge = child->type == HWLOC_OBJ_BRIDGE;
        struct gtopo_pci given, *pci;

        if (is_bridge ? child->attr->bridge.upstream_type != HWLOC_OBJ_BRIDGE_PCI : child->type != HWLOC_OBJ_PCI_DEVICE)
            continue;
        gtopo_pci_of_hwloc(child, &given);
        pci = add(tree, &given);
        put_below(parent, pci);
        if (is_bridge)
            add_children_of_hwloc(tree, pci);
    }
}

static void read_hwloc(struct gtopo_pci_tree *tree, hwloc_topology_t topology)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_bridge(topology, object)))
        if (object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
            add_children_of_hwloc(tree, add_host_bridge(tree, object->attr->bridge.downstream.pci.domain,
                                                        object->attr->bridge.downstream.pci.secondary_bus, object));
}

/* ---- what hwloc leaves out ---- */

/* A function of sysfs that is not in hwloc's tree. */
struct left_out {
    const char *address;
    uint64_t order;
    size_t depth;                      /* bytes of its path */
    char above[GTOPO_PCI_ADDRESS_MAX]; /* "" when its path does not tell */
    unsigned domain, bus;              /* of the host bridge that it is on */
};

/*
 * "../../../devices/pci0000:97/0000:97:00.5/pci10001:80/10001:80:01.0/10001:81:00.0": a function is below the one that
 * stands before it. VMD, a function itself, has root buses below it: what is on them is on VMD's own host bridge,
 * whose name comes first.
 */
static void read_path(struct left_out *left_out, const char *path)
{
    char name[GTOPO_PCI_ADDRESS_MAX] = "", above[GTOPO_PCI_ADDRESS_MAX] = "", next[GTOPO_PCI_ADDRESS_MAX];
    unsigned domain, bus;
    uint64_t order;
    int is_on_bridge = 0;

    left_out->depth = strlen(path);
    while ((path = next_name(path, next))) {
        memcpy(above, name, sizeof above);
        memcpy(name, next, sizeof name);
        is_on_bridge = is_on_bridge || is_host_bridge(name, &left_out->domain, &left_out->bus);
    }
    if (!is_on_bridge || strcmp(name, left_out->address))
        return;
    if (is_host_bridge(above, &domain, &bus))
        snprintf(left_out->above, sizeof left_out->above, "pci%04x:%02x", left_out->domain, left_out->bus);
    else if (read_address(above, &order))
        memcpy(left_out->above, above, sizeof above);
}

static unsigned read_id(const struct gtopo_sysfs *sysfs, const char *address, const char *file, int64_t highest)
{
    int64_t id = 0;

    gtopo_sysfs_number(sysfs, 0, highest, &id, "sys/bus/pci/devices/%s/%s", address, file);
    return (unsigned)id;
}

static struct gtopo_pci *add_of_sysfs(struct gtopo_pci_tree *tree, const struct gtopo_sysfs *sysfs, const char *address)
{
    struct gtopo_pci pci = {
        .vendor_id = read_id(sysfs, address, "vendor", 0xffff),
        .device_id = read_id(sysfs, address, "device", 0xffff),
        .subvendor_id = read_id(sysfs, address, "subsystem_vendor", 0xffff),
        .subdevice_id = read_id(sysfs, address, "subsystem_device", 0xffff),
        .class_id = read_id(sysfs, address, "class", 0xffffff) >> 8,
    };

    sscanf(address, "%x:%x", &pci.domain, &pci.bus);
    pci.is_bridge = pci.class_id == 0x0604;
    snprintf(pci.address, sizeof pci.address, "%s", address);
    return add(tree, &pci);
}

/* What is above must be in its place before what is below; what a path calls its own parent never is. */
static int compare_depths(const void *a, const void *b)
{
    const struct left_out *x = a, *y = b;

    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void place(struct gtopo_pci_tree *tree, const struct gtopo_sysfs *sysfs, const struct left_out *left_out)
{
    struct gtopo_pci *above = gtopo_pci_tree_find(tree, left_out->above);

    if (!above && !strncmp(left_out->above, "pci", 3))
        above = add_host_bridge(tree, left_out->domain, left_out->bus, NULL);
    if (above) {
        put_below(above, add_of_sysfs(tree, sysfs, left_out->address));
        tree->left_out_count++;
    } else if (!tree->hidden_count++)
        snprintf(tree->first_hidden, sizeof tree->first_hidden, "%s", left_out->address);
}

static int read_sysfs(struct gtopo_pci_tree *tree, const struct gtopo_sysfs *sysfs,
                      const struct gtopo_sysfs_names *names)
{
    struct left_out *all = calloc(names->count + 1, sizeof *all);
    size_t count = 0;

    if (!all)
        return GTOPO_ENOMEM;
    for (size_t i = 0; i < names->count; i++) {
        char path[GTOPO_SYSFS_PATH];

        if (!read_address(names->names[i], &all[count].order) || gtopo_pci_tree_find(tree, names->names[i]))
            continue;
        all[count].address = names->names[i];
        if (gtopo_sysfs_link(sysfs, path, "sys/bus/pci/devices/%s", names->names[i]))
            read_path(&all[count], path);
        count++;
    }
    qsort(all, count, sizeof *all, compare_depths);
    for (size_t i = 0; i < count; i++)
        place(tree, sysfs, &all[i]);
    free(all);
    return 0;
}

int gtopo_pci_tree_read(struct gtopo_pci_tree *tree, const struct gtopo_sysfs *sysfs, hwloc_topology_t topology)
{
    struct gtopo_sysfs_names names;
    int status = gtopo_sysfs_list(sysfs, &names, "sys/bus/pci/devices");

    /* Of sysfs a function may need a host bridge, too. */
    if (!status)
        status = allocate(tree, count_of_hwloc(topology) + 2 * names.count);
    if (!status) {
        read_hwloc(tree, topology);
        status = read_sysfs(tree, sysfs, &names);
    }
    gtopo_sysfs_names_clear(&names);
    return status;
}

void gtopo_pci_tree_clear(struct gtopo_pci_tree *tree)
{
    free(tree->items);
    free(tree->slots);
    memset(tree, 0, sizeof *tree);
}
