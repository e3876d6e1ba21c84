/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVLinks in bundles. What a GPU sends to another through NVSwitches goes over all its links to them at once, whichever
 * NVSwitch each leads to: to a GPU the NVSwitches of a host are one (NCCL makes one node of them; `nvidia-smi topo -m`
 * counts the links so).
 */
#include "lib/map.h"

static int is_kind(const struct gtopo_map *map, uint32_t id, uint32_t kind)
{
    struct gtopo_object object;

    return !gtopo_map_object(map, id, &object, NULL) && object.kind == kind;
}

/* All NVLinks of an object: to another, or, with GTOPO_NONE, to NVSwitches. */
static struct gtopo_link bundle(const struct gtopo_map *map, uint32_t id, uint32_t other)
{
    struct gtopo_link all = {0}, link;

    for (size_t i = 0; gtopo_map_link_of(map, id, i, &link) != GTOPO_NONE; i++) {
        uint32_t end = link.ends[link.ends[0] == id];

        if (link.kind != GTOPO_LINK_NVLINK || (other == GTOPO_NONE ? !is_kind(map, end, GTOPO_NVSWITCH) : end != other))
            continue;
        all.count += link.count;
        all.nominal_Bps += link.nominal_Bps;
    }
    return all;
}

uint32_t gtopo_nvlink_count(const struct gtopo_map *map, uint32_t a, uint32_t b)
{
    uint32_t direct = bundle(map, a, b).count, from, to;

    if (direct)
        return direct;
    from = bundle(map, a, GTOPO_NONE).count;
    to = bundle(map, b, GTOPO_NONE).count;
    return from < to ? from : to;
}

uint64_t gtopo_link_carries_Bps(const struct gtopo_map *map, const struct gtopo_link *link)
{
    for (int end = 0; end < 2; end++)
        if (link->kind == GTOPO_LINK_NVLINK && is_kind(map, link->ends[end], GTOPO_GPU) &&
            is_kind(map, link->ends[!end], GTOPO_NVSWITCH))
            return bundle(map, link->ends[end], GTOPO_NONE).nominal_Bps;
    return link->nominal_Bps;
}
