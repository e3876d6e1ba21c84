/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The affinity of a host, measured: from each memory through each port and back into the same memory, so that only the
 * way between the two counts; then all ports at once.
 */
#include "bench/plan_part.h"
#include <stdlib.h>
#include <string.h>

struct loopback {
    const struct gtopo_map *map;
    const struct gtopo_campaign_options *options;
    const struct gtopo_transport_facts *rdma;
    struct gtopo_plan *plan;
    struct gtopo_plan_ports ports; /* of the host at hand */
    uint32_t *memories;            /* NUMA nodes and GPUs of the host at hand */
    uint32_t *taken;               /* by how many ports each memory was taken */
    size_t memory_count;
    size_t down; /* ports, of all hosts */
};

static uint32_t kind_of(const struct gtopo_map *map, uint32_t id)
{
    struct gtopo_object object = {.kind = GTOPO_MACHINE};

    gtopo_map_object(map, id, &object, NULL);
    return object.kind;
}

/* What a process can ask memory of: it is named by the operating system's index or by its PCI address. */
static int is_memory(const struct gtopo_map *map, uint32_t id)
{
    uint64_t index;

    switch (kind_of(map, id)) {
    case GTOPO_NUMA:
        return gtopo_map_number(map, id, GTOPO_ATTRIBUTE_OS_INDEX, &index);
    case GTOPO_GPU:
        return gtopo_map_text(map, id, GTOPO_ATTRIBUTE_PCI_ADDRESS) != NULL;
    default:
        return 0;
    }
}

static int list_memories(struct loopback *l, uint32_t host, uint32_t only, struct gtopo_error *error)
{
    uint32_t first, count;

    gtopo_map_host_objects(l->map, host, &first, &count, NULL);
    free(l->memories);
    free(l->taken);
    l->memory_count = 0;
    l->memories = calloc(count, sizeof *l->memories);
    l->taken = calloc(count, sizeof *l->taken);
    if (!l->memories || !l->taken)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (uint32_t id = first; id < first + count; id++)
        if (is_memory(l->map, id) && (only == GTOPO_NONE || only == id))
            l->memories[l->memory_count++] = id;
    return 0;
}

/* A memory through a port and back, as a probe. */
static int make_probe(const struct loopback *l, uint32_t memory, uint32_t port, struct gtopo_plan_probe *probe,
                      struct gtopo_error *error)
{
    *probe = (struct gtopo_plan_probe){
        .transport = l->rdma->name,
        .name = l->rdma->name,
        .operation = l->rdma->usual,
        .metric = GTOPO_BANDWIDTH_Bps,
    };
    int status = gtopo_plan_end(l->map, (struct gtopo_end){memory, port}, &probe->from, error);

    probe->to = probe->from;
    return status;
}

static int plan_pairs(const struct loopback *l, struct gtopo_error *error)
{
    struct gtopo_plan_probe probe;
    int status = 0;

    for (size_t p = 0; !status && p < l->ports.count; p++)
        for (size_t m = 0; !status && m < l->memory_count; m++) {
            status = make_probe(l, l->memories[m], l->ports.ends[p].end.via, &probe, error);
            if (!status)
                status = gtopo_plan_add_metrics(l->plan, probe, error);
        }
    return status;
}

/* ---- all at once ---- */

/* How far a memory is from a port, the most important first. */
struct distance {
    uint32_t path_class;
    int elsewhere;  /* the NUMA node is not the NIC's, as far as both are known */
    uint32_t taken; /* of several that are as near, ports share none before all are taken */
};

static int is_nearer(const struct distance *a, const struct distance *b)
{
    if (a->path_class != b->path_class)
        return a->path_class < b->path_class;
    return a->elsewhere != b->elsewhere ? a->elsewhere < b->elsewhere : a->taken < b->taken;
}

static int is_elsewhere(const struct gtopo_map *map, uint32_t memory, uint32_t port)
{
    enum gtopo_attribute node = kind_of(map, memory) == GTOPO_NUMA ? GTOPO_ATTRIBUTE_OS_INDEX : GTOPO_ATTRIBUTE_NUMA;
    struct gtopo_object object;
    uint64_t of_memory, of_nic;

    gtopo_map_object(map, port, &object, NULL);
    return gtopo_map_number(map, memory, node, &of_memory) &&
           gtopo_map_number(map, object.parent, GTOPO_ATTRIBUTE_NUMA, &of_nic) && of_memory != of_nic;
}

static int measure_distance(const struct loopback *l, size_t m, uint32_t port, struct distance *distance,
                            struct gtopo_error *error)
{
    struct gtopo_path path;
    int status = gtopo_path_find(l->map, l->memories[m], port, &path, error);

    if (status)
        return status;
    *distance = (struct distance){path.path_class, is_elsewhere(l->map, l->memories[m], port), l->taken[m]};
    gtopo_path_clear(&path);
    return 0;
}

/* Of the GPUs, on a host that has some, else of the NUMA nodes. */
static int find_nearest(const struct loopback *l, uint32_t kind, uint32_t port, size_t *nearest,
                        struct gtopo_error *error)
{
    struct distance best = {.path_class = GTOPO_PATH_CLASSES}, distance;
    int status = 0;

    for (size_t m = 0; !status && m < l->memory_count; m++) {
        if (kind_of(l->map, l->memories[m]) != kind)
            continue;
        status = measure_distance(l, m, port, &distance, error);
        if (!status && is_nearer(&distance, &best)) {
            best = distance;
            *nearest = m;
        }
    }
    return status;
}

/* Only bandwidth: that is what ports share. */
static int plan_at_once(const struct loopback *l, struct gtopo_error *error)
{
    uint32_t kind = GTOPO_NUMA;
    int status = 0;

    for (size_t m = 0; m < l->memory_count; m++)
        if (kind_of(l->map, l->memories[m]) == GTOPO_GPU)
            kind = GTOPO_GPU;
    for (size_t p = 0; !status && p < l->ports.count; p++) {
        uint32_t port = l->ports.ends[p].end.via;
        struct gtopo_plan_probe probe;
        size_t nearest = 0;

        status = find_nearest(l, kind, port, &nearest, error);
        if (!status)
            status = make_probe(l, l->memories[nearest], port, &probe, error);
        if (status)
            break;
        l->taken[nearest]++;
        probe.at_once = (uint32_t)l->ports.count;
        status = gtopo_plan_add(l->plan, &probe, error);
    }
    return status;
}

/* ---- all ---- */

static int plan_host(struct loopback *l, uint32_t host, struct gtopo_error *error)
{
    struct gtopo_campaign_options of_ports = *l->options;
    uint32_t only = l->options->only;
    int status;

    if (only != GTOPO_NONE && is_memory(l->map, only))
        of_ports.only = GTOPO_NONE; /* that memory, through every port */
    else
        only = GTOPO_NONE;
    l->ports.count = l->ports.down = 0;
    status = gtopo_plan_list_ports(l->map, &of_ports, host, &l->ports, error);
    l->down += l->ports.down;
    if (!status)
        status = list_memories(l, host, only, error);
    if (!status)
        status = plan_pairs(l, error);
    if (status || l->options->only != GTOPO_NONE || l->ports.count < 2 || !l->memory_count)
        return status;
    return plan_at_once(l, error);
}

int gtopo_plan_loopback(const struct gtopo_map *map, const struct gtopo_campaign_options *options,
                        const struct gtopo_transport_facts *rdma, struct gtopo_plan *plan, struct gtopo_error *error)
{
    struct loopback l = {.map = map, .options = options, .rdma = rdma, .plan = plan};
    int status =
        rdma ? 0
             : gtopo_fail(error, GTOPO_EUSAGE, "leave the transport out",
                          "a loopback goes through RDMA ports, and transport \"%.40s\" does not", options->transport);

    for (uint32_t host = 0; !status && host < gtopo_map_host_count(map); host++)
        status = plan_host(&l, host, error);
    if (!status && !plan->count)
        status = gtopo_plan_nothing(map, options, l.down, error);
    if (status)
        gtopo_plan_clear(plan);
    free(l.ports.ends);
    free(l.memories);
    free(l.taken);
    return status;
}
