/* SPDX-License-Identifier: Apache-2.0 */
/* Links between GPUs that hwloc tells of: in XML written where it had the vendor's library, or with such a plugin here.
 */
#include "topo/host/host.h"

/* Megabytes per second of one NVLink in one direction, as hwloc counts them: 20000 of the first version, else 25000. */
#define NVLINK_MBps 25000
#define NVLINK_1_MBps 20000

/* No link of today comes near; what claims to be faster is none. */
#define RATE_MAX_MBps 100000000

/*
 * hwloc's matrices of bandwidths, in MB/s in one direction, 0 for no link. In that of NVLink there are NVSwitches and,
 * on POWER, packages too; where AMD's GPUs reach each other through others, a second matrix says by how many links.
 */
static const struct {
    const char *bandwidths, *hops;
    enum gtopo_link_kind kind;
} tables[] = {
    {"NVLinkBandwidth", NULL, GTOPO_LINK_NVLINK},
    {"XGMIBandwidth", "XGMIHops", GTOPO_LINK_XGMI},
};

/* What the map has for a row of a matrix: hwloc names a GPU by the vendor's device on it. */
static uint32_t object_of(hwloc_obj_t row)
{
    while (row && row->type == HWLOC_OBJ_OS_DEVICE)
        row = row->parent;
    return row && row->userdata ? (uint32_t)(uintptr_t)row->userdata - 1 : GTOPO_NONE;
}

/* How many links a bandwidth is of. */
static uint32_t count_links(enum gtopo_link_kind kind, uint64_t rate_MBps)
{
    if (kind != GTOPO_LINK_NVLINK)
        return 1;
    if (!(rate_MBps % NVLINK_MBps))
        return (uint32_t)(rate_MBps / NVLINK_MBps);
    return rate_MBps % NVLINK_1_MBps ? 1 : (uint32_t)(rate_MBps / NVLINK_1_MBps);
}

static int add_link(struct gtopo_discovery *d, enum gtopo_link_kind kind, uint32_t a, uint32_t b, uint64_t rate_MBps)
{
    struct gtopo_link link = {.kind = kind, .ends = {a, b}};
    uint32_t id;

    link.count = count_links(kind, rate_MBps);
    link.nominal_Bps = rate_MBps * 1000000;
    return gtopo_map_add_link(d->map, &link, &id, d->error);
}

static int is_adjacent(const struct hwloc_distances_s *hops, unsigned i, unsigned j, unsigned count)
{
    return !hops || hops->nbobjs != count || hops->values[i * count + j] <= 1;
}

/* Each pair once: both ends tell of the same link. */
static int add_links(struct gtopo_discovery *d, enum gtopo_link_kind kind, const struct hwloc_distances_s *rates,
                     const struct hwloc_distances_s *hops)
{
    unsigned count = rates->nbobjs;
    int status = 0;

    for (unsigned i = 0; i < count; i++)
        for (unsigned j = i + 1; !status && j < count; j++) {
            uint64_t there = rates->values[i * count + j], back = rates->values[j * count + i];
            uint64_t rate_MBps = there > back ? there : back;
            uint32_t a = object_of(rates->objs[i]), b = object_of(rates->objs[j]);

            if (rate_MBps && rate_MBps <= RATE_MAX_MBps && a != b && a != GTOPO_NONE && b != GTOPO_NONE &&
                is_adjacent(hops, i, j, count))
                status = add_link(d, kind, a, b, rate_MBps);
        }
    return status;
}

/* A matrix by its name, or NULL. */
static struct hwloc_distances_s *find(hwloc_topology_t topology, const char *name)
{
    struct hwloc_distances_s *found = NULL;
    unsigned count = 1;

    return name && !hwloc_distances_get_by_name(topology, name, &count, &found, 0) && count ? found : NULL;
}

int gtopo_discover_gpu_links(struct gtopo_discovery *d)
{
    int status = 0;

    for (size_t i = 0; !status && i < sizeof tables / sizeof *tables; i++) {
        /* What the driver has told of now goes before what a record tells of then. */
        int is_told = tables[i].kind == GTOPO_LINK_NVLINK && d->driver_has_nvlinks;
        struct hwloc_distances_s *rates = is_told ? NULL : find(d->topology, tables[i].bandwidths);
        struct hwloc_distances_s *hops = find(d->topology, tables[i].hops);

        if (rates)
            status = add_links(d, tables[i].kind, rates, hops);
        if (rates)
            hwloc_distances_release(d->topology, rates);
        if (hops)
            hwloc_distances_release(d->topology, hops);
    }
    return status;
}
