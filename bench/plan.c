/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plan.h"
#include "bench/memory.h"
#include "lib/text.h"
#include <stdlib.h>
#include <string.h>

static int is_selected(const struct gtopo_map *map, const struct gtopo_campaign_options *options, uint32_t id)
{
    struct gtopo_object object;

    if (options->only == GTOPO_NONE || options->only == id)
        return 1;
    return !gtopo_map_object(map, id, &object, NULL) && object.parent == options->only;
}

static int add(struct gtopo_plan *plan, struct gtopo_plan_probe probe, struct gtopo_error *error)
{
    for (unsigned metric = 0; metric < GTOPO_METRICS; metric++) {
        probe.metric = metric;
        if (gtopo_grow((void **)&plan->probes, &plan->capacity, plan->count + 1, sizeof *plan->probes))
            return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
        plan->probes[plan->count++] = probe;
    }
    return 0;
}

/* ---- RDMA ports ---- */

/* The NUMA node with this index of the operating system, or the first with processors for GTOPO_NUMA_ANY. */
static uint32_t find_numa(const struct gtopo_map *map, int os_index)
{
    uint32_t first, count;

    gtopo_map_host_objects(map, 0, &first, &count, NULL);
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
    uint64_t numa;

    gtopo_map_object(map, port, &object, NULL);
    end->device = gtopo_map_text(map, port, GTOPO_ATTRIBUTE_DEVICE);
    end->port = gtopo_map_number(map, port, GTOPO_ATTRIBUTE_VIRTUAL, &numa) && numa ? 1 : object.number;
    end->end.via = port;
    end->end.memory = gtopo_map_number(map, object.parent, GTOPO_ATTRIBUTE_NUMA, &numa)
                          ? find_numa(map, (int)numa)
                          : find_numa(map, GTOPO_NUMA_ANY);
    if (end->end.memory == GTOPO_NONE)
        end->end.memory = find_numa(map, GTOPO_NUMA_ANY);
    if (end->end.memory == GTOPO_NONE || !end->device)
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

/* Every RDMA port that can be used. *down counts those that were asked for and have no link. */
static int list_ports(const struct gtopo_map *map, const struct gtopo_campaign_options *options,
                      struct gtopo_plan_end **ends, size_t *end_count, size_t *down, struct gtopo_error *error)
{
    uint32_t first, count;
    size_t capacity = 0;

    *down = 0;
    gtopo_map_host_objects(map, 0, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_plan_end end;
        struct gtopo_object object;
        int is_rdma;

        gtopo_map_object(map, id, &object, NULL);
        if (object.kind != GTOPO_PORT || !is_selected(map, options, id))
            continue;
        is_rdma = gtopo_map_text(map, id, GTOPO_ATTRIBUTE_DEVICE) != NULL;
        if (!is_active(map, id)) {
            *down += is_rdma || options->only != GTOPO_NONE;
            continue;
        }
        if (!is_rdma || !end_of_port(map, id, &end))
            continue;
        if (gtopo_grow((void **)ends, &capacity, *end_count + 1, sizeof **ends))
            return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
        (*ends)[(*end_count)++] = end;
    }
    return 0;
}

static int same_link_layer(const struct gtopo_map *map, uint32_t a, uint32_t b)
{
    const char *x = gtopo_map_text(map, a, GTOPO_ATTRIBUTE_LINK_LAYER);
    const char *y = gtopo_map_text(map, b, GTOPO_ATTRIBUTE_LINK_LAYER);

    return x && y && !strcmp(x, y);
}

static int plan_ports(const struct gtopo_map *map, const struct gtopo_campaign_options *options,
                      struct gtopo_plan *plan, size_t *down, struct gtopo_error *error)
{
    struct gtopo_plan_end *ends = NULL;
    size_t count = 0;
    int status = list_ports(map, options, &ends, &count, down, error);

    for (size_t i = 0; !status && i < count; i++)
        for (size_t j = i; !status && j < count; j++)
            if (same_link_layer(map, ends[i].end.via, ends[j].end.via))
                status = add(plan, (struct gtopo_plan_probe){ends[i], ends[j], "verbs", "verbs", NULL, 0}, error);
    free(ends);
    return status;
}

/* ---- memory through libfabric ---- */

/* The package that a NUMA node is on does the copying. */
static int end_of_numa(const struct gtopo_map *map, uint32_t numa, const char *provider, struct gtopo_plan_end *end)
{
    struct gtopo_object object, parent;
    const char *cpus = gtopo_map_text(map, numa, GTOPO_ATTRIBUTE_CPUS);
    uint64_t index;

    gtopo_map_object(map, numa, &object, NULL);
    if (object.kind != GTOPO_NUMA || !cpus || !*cpus ||
        !gtopo_map_number(map, numa, GTOPO_ATTRIBUTE_OS_INDEX, &index))
        return 0;
    gtopo_map_object(map, object.parent, &parent, NULL);
    *end = (struct gtopo_plan_end){
        {numa, parent.kind == GTOPO_PACKAGE ? parent.id : GTOPO_NONE}, provider, 1, (int)index};
    return 1;
}

static int wants_provider(const struct gtopo_campaign_options *options, const char *name)
{
    return !options->transport || !strcmp(options->transport, "ofi") || !strcmp(options->transport, name);
}

/* Shared memory between every two NUMA nodes; the kernel's TCP once, within the first. */
static int plan_numa_pair(const struct gtopo_map *map, const struct gtopo_campaign_options *options, uint32_t a,
                          uint32_t b, const char *fallback, struct gtopo_plan *plan, struct gtopo_error *error)
{
    struct gtopo_plan_end from, to;
    int has_tcp = 0, status = 0;

    for (size_t i = 0; i < plan->count; i++)
        has_tcp |= !strcmp(plan->probes[i].name, "ofi:tcp");
    if (wants_provider(options, "ofi:shm") && end_of_numa(map, a, "shm", &from) && end_of_numa(map, b, "shm", &to))
        status = add(plan, (struct gtopo_plan_probe){from, to, "ofi", "ofi:shm", fallback, 0}, error);
    if (!status && !has_tcp && wants_provider(options, "ofi:tcp") && end_of_numa(map, a, "tcp", &from) &&
        end_of_numa(map, b, "tcp", &to))
        status = add(plan, (struct gtopo_plan_probe){from, to, "ofi", "ofi:tcp", fallback, 0}, error);
    return status;
}

int gtopo_plan_memory(const struct gtopo_map *map, const struct gtopo_campaign_options *options, const char *fallback,
                      struct gtopo_plan *plan, struct gtopo_error *error)
{
    uint32_t first, count;
    int status = 0;

    gtopo_map_host_objects(map, 0, &first, &count, NULL);
    for (uint32_t a = first; !status && a < first + count; a++)
        for (uint32_t b = a; !status && b < first + count; b++)
            if (is_selected(map, options, a) && is_selected(map, options, b))
                status = plan_numa_pair(map, options, a, b, fallback, plan, error);
    return status;
}

/* ---- all ---- */

static int check_transport(const struct gtopo_campaign_options *options, struct gtopo_error *error)
{
    static const char *const known[] = {"verbs", "ofi", "ofi:shm", "ofi:tcp"};

    for (size_t i = 0; options->transport && i < sizeof known / sizeof *known; i++)
        if (!strcmp(options->transport, known[i]))
            return 0;
    return options->transport ? gtopo_fail(error, GTOPO_EUSAGE, "verbs, ofi, ofi:shm and ofi:tcp are known",
                                           "there is no transport \"%s\"", options->transport)
                              : 0;
}

static int nothing_to_measure(const struct gtopo_map *map, const struct gtopo_campaign_options *options, size_t down,
                              struct gtopo_error *error)
{
    char address[GTOPO_ADDRESS_MAX];

    if (options->only == GTOPO_NONE)
        return gtopo_fail(error, down ? GTOPO_ELINKDOWN : GTOPO_EMISSING,
                          down ? "bring one up, or measure the host itself with --transport ofi"
                               : "load the RDMA driver, or measure the host itself with --transport ofi",
                          down ? "none of this host's RDMA ports has a link" : "this host has no RDMA port to measure");
    gtopo_address_format(map, options->only, address);
    if (down)
        return gtopo_fail(error, GTOPO_ELINKDOWN, "check the cable and `ip link set DEVICE up`, then try again",
                          "%.300s has no link: it cannot be measured", address);
    return gtopo_fail(error, GTOPO_EMISSING, "name an RDMA port, its NIC, or a numa object",
                      "there is nothing to measure on %.300s", address);
}

int gtopo_plan_local(const struct gtopo_map *map, const struct gtopo_campaign_options *options,
                     struct gtopo_plan *plan, struct gtopo_error *error)
{
    int only_verbs = options->transport && !strcmp(options->transport, "verbs");
    size_t down = 0;
    int status = check_transport(options, error);

    if (!status && (!options->transport || only_verbs))
        status = plan_ports(map, options, plan, &down, error);
    if (!status && !plan->count && !only_verbs)
        status = gtopo_plan_memory(map, options,
                                   options->transport || options->only != GTOPO_NONE ? NULL
                                   : down ? "RDMA was wanted; no RDMA port has a link"
                                                      : "RDMA was wanted; this host has no RDMA port",
                                   plan, error);
    if (!status && !plan->count)
        status = nothing_to_measure(map, options, down, error);
    if (status)
        gtopo_plan_clear(plan);
    return status;
}

void gtopo_plan_clear(struct gtopo_plan *plan)
{
    free(plan->probes);
    memset(plan, 0, sizeof *plan);
}
