/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plan.h"
#include "bench/memory.h"
#include "bench/plan_part.h"
#include "bench/transport.h"
#include "lib/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_selected(const struct gtopo_map *map, const struct gtopo_campaign_options *options, uint32_t id)
{
    struct gtopo_object object;

    if (options->only == GTOPO_NONE || options->only == id)
        return 1;
    return !gtopo_map_object(map, id, &object, NULL) && object.parent == options->only;
}

int gtopo_plan_add(struct gtopo_plan *plan, const struct gtopo_plan_probe *probe, struct gtopo_error *error)
{
    if (gtopo_grow((void **)&plan->probes, &plan->capacity, plan->count + 1, sizeof *plan->probes))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    plan->probes[plan->count++] = *probe;
    return 0;
}

int gtopo_plan_add_metrics(struct gtopo_plan *plan, struct gtopo_plan_probe probe, struct gtopo_error *error)
{
    int status = 0;

    for (unsigned metric = 0; !status && metric < GTOPO_METRICS; metric++) {
        probe.metric = metric;
        status = gtopo_plan_add(plan, &probe, error);
    }
    return status;
}

/* ---- RDMA ports ---- */

/* The NUMA node with this index of the operating system, or the first with processors for GTOPO_NUMA_ANY. */
static uint32_t find_numa(const struct gtopo_map *map, uint32_t host, int os_index)
{
    uint32_t first, count;

    gtopo_map_host_objects(map, host, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_object object;
        const char *cpus = gtopo_map_text(map, id, GTOPO_ATTRIBUTE_CPUS);
        uint64_t index;

        gtopo_map_object(map, id, &object, NULL);
        if (object.kind != GTOPO_NUMA || !gtopo_map_number(map, id, GTOPO_ATTRIBUTE_OS_INDEX, &index))
            continue;
        if (os_index == GTOPO_NUMA_ANY ? cpus && *cpus : index == (uint64_t)os_index)
            return id;
    }
    return GTOPO_NONE;
}

/* Memory near a port: on the NUMA node of its NIC, or where that is not known on the first one. */
static int end_of_port(const struct gtopo_map *map, uint32_t port, struct gtopo_plan_end *end)
{
    struct gtopo_object object;
    const char *device = gtopo_map_text(map, port, GTOPO_ATTRIBUTE_DEVICE);
    uint64_t numa;

    gtopo_map_object(map, port, &object, NULL);
    snprintf(end->device, sizeof end->device, "%s", device ? device : "");
    snprintf(end->memory, sizeof end->memory, "host");
    end->is_memory = 0;
    end->port = gtopo_map_number(map, port, GTOPO_ATTRIBUTE_VIRTUAL, &numa) && numa ? 1 : object.number;
    end->end.via = port;
    end->host = object.host;
    end->end.memory = gtopo_map_number(map, object.parent, GTOPO_ATTRIBUTE_NUMA, &numa)
                          ? find_numa(map, object.host, (int)numa)
                          : GTOPO_NONE;
    if (end->end.memory == GTOPO_NONE)
        end->end.memory = find_numa(map, object.host, GTOPO_NUMA_ANY);
    if (end->end.memory == GTOPO_NONE || !*end->device)
        return 0;
    gtopo_map_number(map, end->end.memory, GTOPO_ATTRIBUTE_OS_INDEX, &numa);
    end->numa = (int)numa;
    return 1;
}

static int is_active(const struct gtopo_map *map, uint32_t port)
{
    const char *state = gtopo_map_text(map, port, GTOPO_ATTRIBUTE_STATE);

    return state && !strcmp(state, "active");
}

int gtopo_plan_list_ports(const struct gtopo_map *map, const struct gtopo_campaign_options *options, uint32_t host,
                          struct gtopo_plan_ports *ports, struct gtopo_error *error)
{
    uint32_t first, count;

    gtopo_map_host_objects(map, host, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_plan_end end;
        struct gtopo_object object;
        int is_rdma;

        gtopo_map_object(map, id, &object, NULL);
        if (object.kind != GTOPO_PORT || !is_selected(map, options, id))
            continue;
        is_rdma = gtopo_map_text(map, id, GTOPO_ATTRIBUTE_DEVICE) != NULL;
        if (!is_active(map, id)) {
            ports->down += is_rdma || options->only != GTOPO_NONE;
            continue;
        }
        if (!is_rdma || !end_of_port(map, id, &end))
            continue;
        if (gtopo_grow((void **)&ports->ends, &ports->capacity, ports->count + 1, sizeof *ports->ends))
            return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
        ports->ends[ports->count++] = end;
    }
    return 0;
}

static int same_link_layer(const struct gtopo_map *map, uint32_t a, uint32_t b)
{
    const char *x = gtopo_map_text(map, a, GTOPO_ATTRIBUTE_LINK_LAYER);
    const char *y = gtopo_map_text(map, b, GTOPO_ATTRIBUTE_LINK_LAYER);

    return x && y && !strcmp(x, y);
}

static int add_ports(const struct gtopo_map *map, const struct gtopo_transport_facts *rdma, struct gtopo_plan *plan,
                     const struct gtopo_plan_end *from, const struct gtopo_plan_end *to, struct gtopo_error *error)
{
    if (!same_link_layer(map, from->end.via, to->end.via))
        return 0;
    return gtopo_plan_add_metrics(
        plan, (struct gtopo_plan_probe){*from, *to, rdma->name, rdma->name, NULL, rdma->usual, 0, 0}, error);
}

/* Ports of two hosts meet when they are on the same place: the same NIC and port numbers. */
static int same_place(const struct gtopo_map *map, uint32_t a, uint32_t b)
{
    struct gtopo_object ports[2], nics[2];

    gtopo_map_object(map, a, &ports[0], NULL);
    gtopo_map_object(map, b, &ports[1], NULL);
    gtopo_map_object(map, ports[0].parent, &nics[0], NULL);
    gtopo_map_object(map, ports[1].parent, &nics[1], NULL);
    return ports[0].number == ports[1].number && nics[0].number == nics[1].number;
}

/* Within hosts every pair, between hosts those of the same place; what is within hosts comes first. */
static int plan_ports(const struct gtopo_map *map, const struct gtopo_transport_facts *rdma,
                      const struct gtopo_plan_ports *ports, struct gtopo_plan *plan, struct gtopo_error *error)
{
    const struct gtopo_plan_end *ends = ports->ends;
    int status = 0;

    for (size_t i = 0; !status && i < ports->count; i++)
        for (size_t j = i; !status && j < ports->count && ends[i].host == ends[j].host; j++)
            status = add_ports(map, rdma, plan, &ends[i], &ends[j], error);
    for (size_t i = 0; !status && i < ports->count; i++)
        for (size_t j = i + 1; !status && j < ports->count; j++)
            if (ends[i].host != ends[j].host && same_place(map, ends[i].end.via, ends[j].end.via))
                status = add_ports(map, rdma, plan, &ends[i], &ends[j], error);
    return status;
}

/* ---- memory through libfabric ---- */

struct gtopo_end gtopo_plan_by_processors(const struct gtopo_map *map, struct gtopo_end end)
{
    struct gtopo_object memory, parent;

    if (end.via == GTOPO_NONE && !gtopo_map_object(map, end.memory, &memory, NULL) && memory.kind == GTOPO_NUMA &&
        !gtopo_map_object(map, memory.parent, &parent, NULL) && parent.kind == GTOPO_PACKAGE)
        end.via = parent.id;
    return end;
}

static int end_of_numa(const struct gtopo_map *map, uint32_t numa, const char *provider, struct gtopo_plan_end *end)
{
    struct gtopo_object object;
    const char *cpus = gtopo_map_text(map, numa, GTOPO_ATTRIBUTE_CPUS);
    uint64_t index;

    gtopo_map_object(map, numa, &object, NULL);
    if (object.kind != GTOPO_NUMA || !cpus || !*cpus || !gtopo_map_number(map, numa, GTOPO_ATTRIBUTE_OS_INDEX, &index))
        return 0;
    *end = (struct gtopo_plan_end){
        .end = gtopo_plan_by_processors(map, (struct gtopo_end){numa, GTOPO_NONE}),
        .port = 1,
        .memory = "host",
        .numa = (int)index,
        .host = object.host,
        .is_memory = 1,
    };
    snprintf(end->device, sizeof end->device, "%s", provider);
    return 1;
}

/* Is a transport of this name, or with this provider, among what was asked for? */
static int is_wanted(const struct gtopo_campaign_options *options, const char *name, const char *full_name)
{
    return !options->transport || !strcmp(options->transport, name) ||
           (full_name && !strcmp(options->transport, full_name));
}

static int add_numa_pair(const struct gtopo_map *map, uint32_t a, uint32_t b, const struct gtopo_transport_facts *facts,
                         const struct gtopo_transport_provider *provider, const char *fallback, struct gtopo_plan *plan,
                         struct gtopo_error *error)
{
    struct gtopo_plan_end from, to;

    if (!end_of_numa(map, a, provider->name, &from) || !end_of_numa(map, b, provider->name, &to))
        return 0;
    return gtopo_plan_add_metrics(
        plan, (struct gtopo_plan_probe){from, to, facts->name, provider->full_name, fallback, facts->usual, 0, 0},
        error);
}

/* Between every two NUMA nodes; once, within the first, where the nodes make no difference. */
static int plan_provider(const struct gtopo_map *map, const struct gtopo_campaign_options *options, uint32_t host,
                         const struct gtopo_transport_facts *facts, const struct gtopo_transport_provider *provider,
                         const char *fallback, struct gtopo_plan *plan, struct gtopo_error *error)
{
    uint32_t first, count;
    size_t before = plan->count;
    int status = 0;

    gtopo_map_host_objects(map, host, &first, &count, NULL);
    for (uint32_t a = first; !status && a < first + count; a++)
        for (uint32_t b = a; !status && b < first + count; b++)
            if ((provider->between_nodes || plan->count == before) && is_selected(map, options, a) &&
                is_selected(map, options, b))
                status = add_numa_pair(map, a, b, facts, provider, fallback, plan, error);
    return status;
}

static int plan_host_memory(const struct gtopo_map *map, const struct gtopo_campaign_options *options, uint32_t host,
                            const char *fallback, struct gtopo_plan *plan, struct gtopo_error *error)
{
    const struct gtopo_transport_facts *facts;
    int status = 0;

    for (size_t i = 0; (facts = gtopo_transport_facts_at(i)); i++)
        for (const struct gtopo_transport_provider *p = facts->providers; !status && p && p->name; p++)
            if (is_wanted(options, facts->name, p->full_name))
                status = plan_provider(map, options, host, facts, p, fallback, plan, error);
    return status;
}

int gtopo_plan_memory(const struct gtopo_map *map, const struct gtopo_campaign_options *options, const char *fallback,
                      struct gtopo_plan *plan, struct gtopo_error *error)
{
    int status = 0;

    for (uint32_t host = 0; !status && host < gtopo_map_host_count(map); host++)
        status = plan_host_memory(map, options, host, fallback, plan, error);
    return status;
}

/* ---- one end ---- */

/* The memory of a GPU, by its PCI address: the driver numbers GPUs in an order of its own. */
static int end_of_gpu(const struct gtopo_map *map, uint32_t gpu, struct gtopo_plan_end *end, struct gtopo_error *error)
{
    const char *address = gtopo_map_text(map, gpu, GTOPO_ATTRIBUTE_PCI_ADDRESS);
    struct gtopo_object object;
    uint64_t numa;

    gtopo_map_object(map, gpu, &object, NULL);
    if (!address)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a GPU without a PCI address cannot be an end of a probe");
    snprintf(end->memory, sizeof end->memory, "gpu:%.58s", address);
    end->end.memory = gpu;
    if (end->is_memory) {
        end->host = object.host;
        end->numa = gtopo_map_number(map, gpu, GTOPO_ATTRIBUTE_NUMA, &numa) ? (int)numa : GTOPO_NUMA_ANY;
    }
    return 0;
}

int gtopo_plan_end(const struct gtopo_map *map, struct gtopo_end end, struct gtopo_plan_end *planned,
                   struct gtopo_error *error)
{
    char address[GTOPO_ADDRESS_MAX];
    struct gtopo_object memory = {.kind = GTOPO_NUMA}, via = {.kind = GTOPO_PACKAGE};
    uint64_t numa;

    *planned = (struct gtopo_plan_end){.end = end, .port = 1, .memory = "host", .numa = GTOPO_NUMA_ANY, .is_memory = 1};
    if ((end.memory != GTOPO_NONE && gtopo_map_object(map, end.memory, &memory, error)) ||
        (end.via != GTOPO_NONE && gtopo_map_object(map, end.via, &via, error)))
        return GTOPO_ENOTFOUND;
    if ((memory.kind != GTOPO_NUMA && memory.kind != GTOPO_GPU) ||
        (via.kind != GTOPO_PACKAGE && via.kind != GTOPO_PORT) || (end.memory == GTOPO_NONE && via.kind != GTOPO_PORT))
        return gtopo_fail(error, GTOPO_EUSAGE, "name a memory (numa0, gpu0), a port (nic0:1), or both (gpu0@nic0:1)",
                          "%.300s cannot be an end of a probe", gtopo_end_format(map, end, address));
    if (via.kind == GTOPO_PORT) {
        if (!is_active(map, end.via))
            return gtopo_fail(error, GTOPO_ELINKDOWN, "check the cable and `ip link set DEVICE up`, then try again",
                              "%.300s has no link: it cannot be measured", gtopo_end_format(map, end, address));
        if (!end_of_port(map, end.via, planned))
            return gtopo_fail(error, GTOPO_EMISSING,
                              "load its RDMA driver, or name another port, or a memory (numa0) for transport ofi",
                              "%.300s is no RDMA port", gtopo_end_format(map, end, address));
    }
    if (memory.kind == GTOPO_GPU)
        return end_of_gpu(map, end.memory, planned, error);
    if (end.memory == GTOPO_NONE)
        return 0;
    planned->end.memory = end.memory;
    planned->host = memory.host;
    if (gtopo_map_number(map, end.memory, GTOPO_ATTRIBUTE_OS_INDEX, &numa))
        planned->numa = (int)numa;
    return 0;
}

/* ---- all ---- */

/* Append a name to a list for people. */
static void list_name(const char *name, char *list, size_t size)
{
    size_t length = strlen(list);

    snprintf(list + length, size - length, "%s%s", length ? ", " : "known here: ", name);
}

/* Is what was asked for something that a campaign measures: through ports, or memory through a provider? */
static int check_transport(const struct gtopo_campaign_options *options, struct gtopo_error *error)
{
    const struct gtopo_transport_facts *facts;
    char known[128] = "";
    int found = !options->transport;

    for (size_t i = 0; (facts = gtopo_transport_facts_at(i)); i++) {
        if (!facts->is_rdma && !facts->providers)
            continue;
        list_name(facts->name, known, sizeof known);
        found |= is_wanted(options, facts->name, NULL);
        for (const struct gtopo_transport_provider *p = facts->providers; p && p->name; p++) {
            list_name(p->full_name, known, sizeof known);
            found |= is_wanted(options, p->full_name, NULL);
        }
    }
    return found ? 0
                 : gtopo_fail(error, GTOPO_EUSAGE, known, "there is no transport \"%.40s\" to measure a host with",
                              options->transport);
}

/* The transport for ports, or NULL when none was asked for. */
static const struct gtopo_transport_facts *rdma_transport(const struct gtopo_campaign_options *options)
{
    const struct gtopo_transport_facts *facts;
    size_t i = 0;

    while ((facts = gtopo_transport_facts_at(i)) && !(facts->is_rdma && is_wanted(options, facts->name, NULL)))
        i++;
    return facts;
}

int gtopo_plan_nothing(const struct gtopo_map *map, const struct gtopo_campaign_options *options, size_t down,
                       struct gtopo_error *error)
{
    const char *instead =
        options->loopback ? "measure the host without loopback" : "measure the host itself with --transport ofi";
    char address[GTOPO_ADDRESS_MAX], hint[128];

    snprintf(hint, sizeof hint, "%s, or %s", down ? "bring one up" : "load the RDMA driver", instead);
    if (options->only == GTOPO_NONE)
        return gtopo_fail(error, down ? GTOPO_ELINKDOWN : GTOPO_EMISSING, hint,
                          down ? "no RDMA port has a link" : "there is no RDMA port to measure");
    gtopo_address_format(map, options->only, address);
    if (down)
        return gtopo_fail(error, GTOPO_ELINKDOWN, "check the cable and `ip link set DEVICE up`, then try again",
                          "%.300s has no link: it cannot be measured", address);
    return gtopo_fail(error, GTOPO_EMISSING, "name an RDMA port, its NIC, or a numa object",
                      "%.300s is no RDMA port and no memory: there is nothing to measure on it", address);
}

/* The hosts without a usable RDMA port, through libfabric. */
static int plan_rest(const struct gtopo_map *map, const struct gtopo_campaign_options *options,
                     const struct gtopo_plan_ports *ports, struct gtopo_plan *plan, struct gtopo_error *error)
{
    const char *fallback = options->transport || options->only != GTOPO_NONE ? NULL
                           : ports->down ? "RDMA was wanted; no RDMA port of this host has a link"
                                         : "RDMA was wanted; this host has no RDMA port";
    int status = 0;

    for (uint32_t host = 0; !status && host < gtopo_map_host_count(map); host++) {
        size_t i = 0;

        while (i < ports->count && ports->ends[i].host != host)
            i++;
        if (i == ports->count)
            status = plan_host_memory(map, options, host, fallback, plan, error);
    }
    return status;
}

int gtopo_plan_make(const struct gtopo_map *map, const struct gtopo_campaign_options *options, struct gtopo_plan *plan,
                    struct gtopo_error *error)
{
    const struct gtopo_transport_facts *rdma = rdma_transport(options);
    struct gtopo_plan_ports ports = {0};
    int status = check_transport(options, error);

    if (!status && options->loopback)
        return gtopo_plan_loopback(map, options, rdma, plan, error);
    for (uint32_t host = 0; !status && rdma && host < gtopo_map_host_count(map); host++)
        status = gtopo_plan_list_ports(map, options, host, &ports, error);
    if (!status && rdma)
        status = plan_ports(map, rdma, &ports, plan, error);
    if (!status && !(rdma && options->transport))
        status = plan_rest(map, options, &ports, plan, error);
    if (!status && !plan->count)
        status = gtopo_plan_nothing(map, options, ports.down, error);
    if (status)
        gtopo_plan_clear(plan);
    free(ports.ends);
    return status;
}

void gtopo_plan_clear(struct gtopo_plan *plan)
{
    free(plan->probes);
    memset(plan, 0, sizeof *plan);
}
