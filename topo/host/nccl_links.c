/* SPDX-License-Identifier: Apache-2.0 */
/* Links between GPUs in a topology file of NCCL's: NVLink, AMD's XGMI, and C2C to the processor. */
#include "topo/host/nccl.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_NVSWITCH 0x068000
#define CLASS_PROCESSOR 0x068001 /* of POWER, which has NVLinks */

/* One end's word of how a GPU is linked to something. */
struct gpu_link {
    uint32_t kind, low, high; /* objects */
    uint32_t count[2];        /* as the lower says, and the higher */
    uint32_t gpu;             /* <gpu>, for messages */
};

struct gpu_links {
    struct gpu_link *items;
    size_t count, capacity;
    size_t c2c_count;
};

static int compare_targets(const void *a, const void *b)
{
    const struct gtopo_nccl_target *x = a, *y = b;
    int order = strcmp(x->bus_id, y->bus_id);

    return order ? order : x->object < y->object ? -1 : x->object > y->object;
}

static const struct gtopo_nccl_target *find_target(const struct gtopo_nccl *r, const char *bus_id)
{
    struct gtopo_nccl_target key = {.object = 0};
    size_t low = 0, high = r->target_count;

    snprintf(key.bus_id, sizeof key.bus_id, "%s", bus_id);
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_targets(&r->targets[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->target_count && !strcmp(r->targets[low].bus_id, bus_id) ? &r->targets[low] : NULL;
}

static int is_gpu_link(const struct gtopo_nccl *r, uint32_t element)
{
    return gtopo_nccl_is(r, element, "nvlink") || gtopo_nccl_is(r, element, "xgmi");
}

/* What NCCL writes for an NVSwitch that a virtual machine does not show. */
#define HIDDEN_TARGET "fffffff:ffff:ff"

/* The address that a link leads to; all hidden NVSwitches are one. */
static int read_target(const struct gtopo_nccl *r, uint32_t element, char bus_id[GTOPO_PCI_ADDRESS_MAX],
                       unsigned *class_id)
{
    const char *text = gtopo_nccl_get(r, element, "target");
    int status = gtopo_nccl_class(r, element, "tclass", class_id);

    if (status)
        return status;
    if (text && !strcmp(text, HIDDEN_TARGET)) {
        *class_id = *class_id ? *class_id : CLASS_NVSWITCH;
        snprintf(bus_id, GTOPO_PCI_ADDRESS_MAX, "%s", HIDDEN_TARGET);
        return 0;
    }
    *bus_id = 0;
    return *class_id == CLASS_PROCESSOR ? 0 : gtopo_nccl_bus_id(r, element, "target", bus_id);
}

/* NVSwitches are named by those who link to them; few files have them in their tree. */
static int add_nvswitch_targets(struct gtopo_nccl *r)
{
    int status = 0;

    for (uint32_t e = 0; e < r->xml.element_count && !status; e++) {
        char bus_id[GTOPO_PCI_ADDRESS_MAX];
        unsigned class_id = 0;

        if (is_gpu_link(r, e) && !(status = read_target(r, e, bus_id, &class_id)) && class_id == CLASS_NVSWITCH)
            status = gtopo_nccl_add_target(r, e, bus_id, GTOPO_NONE);
    }
    return status;
}

/* Sort, make the NVSwitches that are only named, and refuse what is there twice. */
static int settle_targets(struct gtopo_nccl *r)
{
    int status = add_nvswitch_targets(r);

    if (status)
        return status;
    if (r->target_count)
        qsort(r->targets, r->target_count, sizeof *r->targets, compare_targets);
    for (size_t i = 0; i < r->target_count && !status; i++) {
        struct gtopo_nccl_target *target = &r->targets[i];
        int again = i && !strcmp(target->bus_id, target[-1].bus_id);

        if (again && target->object != GTOPO_NONE)
            return gtopo_nccl_bad(r, target->element, "busid=\"%s\" is there already, in line %u", target->bus_id,
                                  r->xml.elements[target[-1].element].line);
        if (again)
            target->object = target[-1].object;
        else if (target->object == GTOPO_NONE &&
                 !(status = gtopo_discovery_add(r->d, GTOPO_NVSWITCH, r->d->machine, 0, &target->object)) &&
                 strcmp(target->bus_id, HIDDEN_TARGET))
            status = gtopo_discovery_text(r->d, target->object, GTOPO_ATTRIBUTE_PCI_ADDRESS, target->bus_id);
    }
    return status;
}

/* The NUMA node that an object hangs on. */
static uint32_t cpu_of(const struct gtopo_nccl *r, uint32_t id)
{
    struct gtopo_object object = {.parent = id};

    do
        if (gtopo_map_object(r->d->map, object.parent, &object, NULL))
            return GTOPO_NONE;
    while (object.kind != GTOPO_NUMA && object.parent != GTOPO_NONE);
    return object.id;
}

/* Bytes per second of one NVLink in one direction, by the GPU's compute capability; 0 for unknown. NVIDIA's data
 * sheets; GA102 (8.6) has links of 14 GB/s. */
static uint64_t nvlink_rate(int64_t sm)
{
    if (sm < 60)
        return 0;
    if (sm < 70)
        return UINT64_C(20000000000);
    if (sm == 86)
        return UINT64_C(14062500000);
    return sm < 100 ? UINT64_C(25000000000) : UINT64_C(50000000000);
}

static int add_gpu_link(struct gtopo_nccl *r, struct gpu_links *links, uint32_t gpu, uint32_t element, uint32_t object)
{
    struct gpu_link *link;
    char bus_id[GTOPO_PCI_ADDRESS_MAX];
    const struct gtopo_nccl_target *target;
    unsigned class_id;
    uint32_t other;
    int64_t count;
    int status;

    if ((status = gtopo_nccl_number(r, element, "count", 1, 1024, 1, &count)) ||
        (status = read_target(r, element, bus_id, &class_id)))
        return status;
    if (class_id == CLASS_PROCESSOR)
        other = cpu_of(r, object);
    else {
        target = find_target(r, bus_id);
        if (!target)
            return 0; /* a GPU that this file does not show, as in a container with some of them */
        other = target->object;
    }
    if (other == object)
        return gtopo_nccl_bad(r, element, "it leads to the GPU itself");
    if (gtopo_grow((void **)&links->items, &links->capacity, links->count + 1, sizeof *links->items))
        return gtopo_fail(r->d->error, GTOPO_ENOMEM, NULL, "out of memory");
    link = &links->items[links->count++];
    *link = (struct gpu_link){.kind = gtopo_nccl_is(r, element, "xgmi") ? GTOPO_LINK_XGMI : GTOPO_LINK_NVLINK,
                              .low = object < other ? object : other,
                              .high = object < other ? other : object,
                              .gpu = gpu};
    link->count[object > other] = (uint32_t)count;
    return 0;
}

/* NVLink-C2C, of a GPU to its processor: megabytes a second of one link, and how many. */
static int add_c2c(struct gtopo_nccl *r, struct gpu_links *links, uint32_t element, uint32_t object)
{
    struct gtopo_link link = {.kind = GTOPO_LINK_C2C, .ends = {cpu_of(r, object), object}};
    int64_t count, rate_MBps;
    int status;

    if ((status = gtopo_nccl_number(r, element, "count", 1, 1024, 1, &count)) ||
        (status = gtopo_nccl_number(r, element, "bw", 0, INT32_MAX, 0, &rate_MBps)))
        return status;
    link.count = (uint32_t)count;
    link.nominal_Bps = (uint64_t)(rate_MBps * count) * 1000000;
    links->c2c_count++;
    return gtopo_nccl_add_link(r, &link);
}

static int read_gpu(struct gtopo_nccl *r, struct gpu_links *links, uint32_t gpu)
{
    char bus_id[GTOPO_PCI_ADDRESS_MAX];
    const struct gtopo_nccl_target *target;
    struct gtopo_object o;
    uint32_t object;
    int status;

    if (!gtopo_nccl_is(r, r->xml.elements[gpu].parent, "pci"))
        return gtopo_nccl_bad(r, gpu, "it is in no <pci>");
    if ((status = gtopo_nccl_bus_id(r, r->xml.elements[gpu].parent, "busid", bus_id)))
        return status;
    target = find_target(r, bus_id);
    if (!target)
        return gtopo_nccl_bad(r, gpu, "its <pci> is in no <cpu>");
    object = target->object;
    if (gtopo_map_object(r->d->map, object, &o, NULL) || o.kind != GTOPO_GPU)
        return gtopo_nccl_bad(r, gpu, "the <pci> that it is in has another class than a GPU's");
    for (uint32_t child = r->xml.elements[gpu].first_child; child != GTOPO_XML_NONE && !status;
         child = r->xml.elements[child].next)
        if (is_gpu_link(r, child))
            status = add_gpu_link(r, links, gpu, child, object);
        else if (gtopo_nccl_is(r, child, "c2c"))
            status = add_c2c(r, links, child, object);
    return status;
}

static int compare_gpu_links(const void *a, const void *b)
{
    const struct gpu_link *x = a, *y = b;

    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

/* Both ends tell of a link: it is one. */
static int join_gpus(struct gtopo_nccl *r, struct gpu_links *links)
{
    int status = 0;

    if (links->count)
        qsort(links->items, links->count, sizeof *links->items, compare_gpu_links);
    for (size_t i = 0, next; i < links->count && !status; i = next) {
        struct gpu_link *first = &links->items[i];
        struct gtopo_link link = {.kind = first->kind, .ends = {first->low, first->high}};
        int64_t sm;

        for (next = i + 1; next < links->count && !compare_gpu_links(first, &links->items[next]); next++)
            for (int end = 0; end < 2; end++)
                first->count[end] += links->items[next].count[end];
        link.count = first->count[0] > first->count[1] ? first->count[0] : first->count[1];
        status = gtopo_nccl_number(r, first->gpu, "sm", 0, 100000, 0, &sm);
        if (link.kind == GTOPO_LINK_NVLINK)
            link.nominal_Bps = link.count * nvlink_rate(sm);
        if (!status)
            status = gtopo_nccl_add_link(r, &link);
    }
    return status;
}

int gtopo_nccl_read_links(struct gtopo_nccl *r, size_t *count)
{
    struct gpu_links links = {0};
    int status = settle_targets(r);

    for (uint32_t e = 0; e < r->xml.element_count && !status; e++)
        if (gtopo_nccl_is(r, e, "gpu"))
            status = read_gpu(r, &links, e);
    if (!status)
        status = join_gpus(r, &links);
    *count = links.count + links.c2c_count;
    free(links.items);
    return status;
}
