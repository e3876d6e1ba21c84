/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks and C2C as the NVIDIA driver tells of them: both ends of a pair fold their links into one of the map's. */
#include "topo/host/nvml.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define C2C_MAX 64

/* One end's word of one NVLink. */
struct told {
    uint32_t low, high; /* objects */
    int is_high;        /* who says so */
    uint64_t rate_Bps;  /* 0 for unknown */
};

/* The NVLinks of a GPU, as bits by their number. */
struct state {
    uint64_t present, active;
    int has_switch;
};

struct links {
    struct told *items;
    size_t count, capacity;
    struct state *states;    /* by GPU */
    uint32_t hidden_switch;  /* the NVSwitches that no PCI device stands for, which are one; or GTOPO_NONE */
    unsigned to_hidden_gpus; /* links */
};

/* ---- one link ---- */

/* An own field of a link, or 0 when it is not known. */
static uint64_t field_of(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu, unsigned field, unsigned scope)
{
    struct gtopo_nvml_field value = {.field = field, .scope = scope, .result = GTOPO_NVML_UNKNOWN};

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetFieldValues, 1, &value) || gtopo_nvml_note(gpu, value.result))
        return 0;
    switch (value.type) {
    case GTOPO_NVML_TYPE_UNSIGNED:
    case GTOPO_NVML_TYPE_SIGNED_INT:
        return value.value.number <= INT32_MAX ? value.value.number : 0;
    case GTOPO_NVML_TYPE_UNSIGNED_LONG:
    case GTOPO_NVML_TYPE_UNSIGNED_LONG_LONG:
    case GTOPO_NVML_TYPE_SIGNED_LONG_LONG:
        return value.value.wide <= INT32_MAX ? value.value.wide : 0;
    default:
        return 0;
    }
}

/* NVML's numbers for the versions, and the gigabytes per second of one link in one direction; NVIDIA's data sheets. */
static const struct {
    const char *name;
    unsigned rate_GBps;
} versions[] = {{NULL, 0}, {"1.0", 20}, {"2.0", 25}, {"2.2", 25}, {"3.0", 25}, {"3.1", 25}, {"4.0", 25}, {"5.0", 50}};

/*
 * What a link carries: that of its version, since the driver's speed is that of the wire, of which the code takes a
 * part (26.562 GB/s of 25); but no more than that, as some boards run theirs slower (14 GB/s of GA102).
 */
static int read_rate(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu, unsigned link, uint64_t *rate_Bps)
{
    uint64_t wire_Bps = field_of(nvml, gpu, GTOPO_NVML_NVLINK_SPEED, link) * 1000000;
    unsigned version = 0;

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetNvLinkVersion, link, &version) ||
        version >= sizeof versions / sizeof *versions)
        version = 0;
    *rate_Bps = versions[version].rate_GBps * UINT64_C(1000000000);
    if (!*rate_Bps || (wire_Bps && wire_Bps < *rate_Bps))
        *rate_Bps = wire_Bps;
    return gtopo_discovery_text(nvml->d, gpu->id, GTOPO_ATTRIBUTE_NVLINK_VERSION, versions[version].name);
}

static uint32_t kind_of(const struct gtopo_discovery *d, uint32_t id)
{
    struct gtopo_object object = {.kind = GTOPO_OBJECT_KINDS};

    gtopo_map_object(d->map, id, &object, NULL);
    return object.kind;
}

/* The NUMA node or package that a device hangs on, or GTOPO_NONE. */
static uint32_t processor_of(const struct gtopo_discovery *d, uint32_t id)
{
    struct gtopo_object object = {.parent = id};

    do
        if (object.parent == GTOPO_NONE || gtopo_map_object(d->map, object.parent, &object, NULL))
            return GTOPO_NONE;
    while (object.kind != GTOPO_NUMA && object.kind != GTOPO_PACKAGE);
    return object.id;
}

static int find_switch(struct gtopo_nvml *nvml, struct links *links, uint32_t found, uint32_t *id)
{
    int status = 0;

    if (found != GTOPO_NONE && kind_of(nvml->d, found) == GTOPO_NVSWITCH) {
        *id = found;
        return 0;
    }
    if (links->hidden_switch == GTOPO_NONE)
        status = gtopo_discovery_add(nvml->d, GTOPO_NVSWITCH, nvml->d->machine, 0, &links->hidden_switch);
    *id = links->hidden_switch;
    return status;
}

/* The object at the other end, or GTOPO_NONE for what is not in the map. */
static int find_remote(struct gtopo_nvml *nvml, struct links *links, struct gtopo_driver_gpu *gpu, unsigned link,
                       uint32_t *id)
{
    struct gtopo_nvml_pci pci = {.domain = 0};
    char address[GTOPO_PCI_ADDRESS_MAX];
    uint32_t found = GTOPO_NONE;
    int kind = -1;

    if (!GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetNvLinkRemotePciInfo_v2, link, &pci) &&
        gtopo_nvml_address(&pci, address))
        found = gtopo_nvml_object(nvml->d, address);
    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetNvLinkRemoteDeviceType, link, &kind))
        kind = kind_of(nvml->d, found) == GTOPO_NVSWITCH ? GTOPO_NVML_REMOTE_SWITCH : GTOPO_NVML_REMOTE_GPU;
    *id = GTOPO_NONE;
    if (kind == GTOPO_NVML_REMOTE_SWITCH)
        return find_switch(nvml, links, found, id);
    if (kind == GTOPO_NVML_REMOTE_CPU)
        *id = processor_of(nvml->d, gpu->id);
    else if (kind == GTOPO_NVML_REMOTE_GPU && found != gpu->id && kind_of(nvml->d, found) == GTOPO_GPU)
        *id = found;
    links->to_hidden_gpus += kind == GTOPO_NVML_REMOTE_GPU && *id == GTOPO_NONE;
    return 0;
}

static int read_link(struct gtopo_nvml *nvml, struct links *links, struct gtopo_driver_gpu *gpu, unsigned number)
{
    struct state *state = &links->states[gpu - nvml->gpus];
    unsigned is_active = 0;
    uint32_t remote;
    struct told *told;
    int status;

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetNvLinkState, number, &is_active))
        return 0;
    state->present |= UINT64_C(1) << number;
    if (!is_active)
        return 0;
    state->active |= UINT64_C(1) << number;
    status = find_remote(nvml, links, gpu, number, &remote);
    if (status || remote == GTOPO_NONE)
        return status;
    state->has_switch |= kind_of(nvml->d, remote) == GTOPO_NVSWITCH;
    if (gtopo_grow((void **)&links->items, &links->capacity, links->count + 1, sizeof *links->items))
        return gtopo_fail(nvml->d->error, GTOPO_ENOMEM, NULL, "out of memory");
    told = &links->items[links->count++];
    *told = (struct told){.low = gpu->id < remote ? gpu->id : remote,
                          .high = gpu->id < remote ? remote : gpu->id,
                          .is_high = gpu->id > remote};
    return read_rate(nvml, gpu, number, &told->rate_Bps);
}

/* ---- C2C ---- */

/* NVLink-C2C of a GPU to its processor (Grace Hopper): the links that are active, and what they carry together. */
static int read_c2c(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    struct gtopo_link link = {.kind = GTOPO_LINK_C2C, .ends = {processor_of(nvml->d, gpu->id), gpu->id}};
    uint64_t count = field_of(nvml, gpu, GTOPO_NVML_C2C_COUNT, 0);
    int is_known = 1;
    uint32_t id;

    for (unsigned i = 0; i < count && i < C2C_MAX; i++) {
        uint64_t rate_MBps;

        if (field_of(nvml, gpu, GTOPO_NVML_C2C_STATUS, i) != 1)
            continue;
        rate_MBps = field_of(nvml, gpu, GTOPO_NVML_C2C_SPEED, i);
        is_known &= rate_MBps > 0;
        link.nominal_Bps += rate_MBps * 1000000;
        link.count++;
    }
    if (!is_known)
        link.nominal_Bps = 0;
    return !link.count || link.ends[0] == GTOPO_NONE ? 0 : gtopo_map_add_link(nvml->d->map, &link, &id, nvml->d->error);
}

/* ---- all of them ---- */

static int compare_told(const void *a, const void *b)
{
    const struct told *x = a, *y = b;

    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->high < y->high ? -1 : x->high > y->high;
}

/* Both ends tell of a link, and where they differ the fewer count: a link is up when it is so at both. */
static int join_links(struct gtopo_nvml *nvml, struct links *links)
{
    int status = 0;

    if (links->count)
        qsort(links->items, links->count, sizeof *links->items, compare_told);
    for (size_t i = 0, next; !status && i < links->count; i = next) {
        struct gtopo_link link = {.kind = GTOPO_LINK_NVLINK, .ends = {links->items[i].low, links->items[i].high}};
        uint32_t count[2] = {0}, id;
        uint64_t rate_Bps[2] = {0};
        int is_known[2] = {1, 1}, end;

        for (next = i; next < links->count && !compare_told(&links->items[i], &links->items[next]); next++) {
            const struct told *told = &links->items[next];

            count[told->is_high]++;
            rate_Bps[told->is_high] += told->rate_Bps;
            is_known[told->is_high] &= told->rate_Bps > 0;
        }
        end = !count[0] || (count[1] && count[1] < count[0]);
        link.count = count[end];
        link.nominal_Bps = is_known[end] ? rate_Bps[end] : 0;
        status = gtopo_map_add_link(nvml->d->map, &link, &id, nvml->d->error);
    }
    nvml->d->driver_has_nvlinks = links->count > 0;
    return status;
}

/* ---- findings ---- */

static int are_alike(const struct gtopo_nvml *nvml, size_t a, size_t b)
{
    const char *x = gtopo_map_text(nvml->d->map, nvml->gpus[a].id, GTOPO_ATTRIBUTE_MODEL);
    const char *y = gtopo_map_text(nvml->d->map, nvml->gpus[b].id, GTOPO_ATTRIBUTE_MODEL);

    return x && y && !strcmp(x, y);
}

/*
 * The links of a GPU that should be up and are not. NVSwitches use all that there are. Otherwise a board may leave some
 * unused, and only a GPU that has fewer up than one of its model misses those that this one has.
 */
static uint64_t links_down(const struct gtopo_nvml *nvml, const struct links *links, size_t gpu)
{
    const struct state *own = &links->states[gpu];
    uint64_t wanted = own->has_switch ? own->present : 0;

    for (size_t i = 0; i < nvml->count; i++) {
        uint64_t theirs = links->states[i].active;

        if (__builtin_popcountll(theirs) > __builtin_popcountll(own->active) && are_alike(nvml, gpu, i))
            wanted |= theirs;
    }
    return wanted & own->present & ~own->active;
}

static int report_down(struct gtopo_nvml *nvml, const struct links *links, size_t gpu)
{
    uint64_t down = nvml->gpus[gpu].is_lost ? 0 : links_down(nvml, links, gpu);
    char numbers[4 * GTOPO_NVML_LINKS_MAX] = "";
    size_t length = 0;

    if (!down)
        return 0;
    for (unsigned i = 0; i < GTOPO_NVML_LINKS_MAX; i++)
        if (down >> i & 1)
            length += (size_t)snprintf(numbers + length, sizeof numbers - length, "%s%u", length ? ", " : "", i);
    return gtopo_discovery_find(nvml->d, "nvlink-down", GTOPO_FAULT, nvml->gpus[gpu].id,
                                "look at `nvidia-smi nvlink -e` and the kernel log (dmesg, \"Xid\"); reset the GPU, "
                                "then have the board looked at",
                                "%d of %d NVLinks of the GPU are down, which are up on others like it: %s",
                                __builtin_popcountll(down), __builtin_popcountll(links->states[gpu].present), numbers);
}

/* Racks have their NVSwitches in trays of their own, where the GPUs know of a cluster. */
static int report_hidden(struct gtopo_nvml *nvml, const struct links *links)
{
    int in_rack = 0, status = 0;

    for (size_t i = 0; i < nvml->count; i++)
        in_rack |= gtopo_map_text(nvml->d->map, nvml->gpus[i].id, GTOPO_ATTRIBUTE_FABRIC_UUID) != NULL;
    if (links->hidden_switch != GTOPO_NONE && !in_rack)
        status = gtopo_discovery_find(nvml->d, "nvswitch-hidden", GTOPO_NOTE, links->hidden_switch,
                                      "look from the bare machine to see them",
                                      "the NVSwitches that the GPUs are linked to are not among the PCI devices: they "
                                      "are one in the map");
    if (!status && links->to_hidden_gpus)
        status = gtopo_discovery_find(nvml->d, "nvlink-peer-hidden", GTOPO_NOTE, nvml->d->machine,
                                      "look from the bare machine, or pass all its GPUs on to the container",
                                      "%u NVLinks lead to GPUs that are not in the map", links->to_hidden_gpus);
    return status;
}

int gtopo_nvml_read_links(struct gtopo_nvml *nvml)
{
    struct links links = {.hidden_switch = GTOPO_NONE};
    int status = 0;

    links.states = calloc(nvml->count + 1, sizeof *links.states);
    if (!links.states)
        return gtopo_fail(nvml->d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < nvml->count; i++) {
        for (unsigned number = 0; !status && number < GTOPO_NVML_LINKS_MAX; number++)
            status = read_link(nvml, &links, &nvml->gpus[i], number);
        if (!status)
            status = read_c2c(nvml, &nvml->gpus[i]);
    }
    if (!status)
        status = join_links(nvml, &links);
    for (size_t i = 0; !status && i < nvml->count; i++)
        status = report_down(nvml, &links, i);
    if (!status)
        status = report_hidden(nvml, &links);
    free(links.items);
    free(links.states);
    return status;
}
