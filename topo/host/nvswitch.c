/* SPDX-License-Identifier: Apache-2.0 */
/* NVSwitches of a host are one fabric. */
#include "topo/host/host.h"
#include <stdlib.h>

static uint32_t root_of(uint32_t *above, uint32_t i)
{
    while (above[i] != i)
        i = above[i] = above[above[i]];
    return i;
}

static int is_nvswitch(const struct gtopo_discovery *d, uint32_t id)
{
    struct gtopo_object object;

    return !gtopo_map_object(d->map, id, &object, NULL) && object.kind == GTOPO_NVSWITCH;
}

/* Put together what NVLinks to NVSwitches join, and mark these. */
static void join_linked(const struct gtopo_discovery *d, uint32_t base, uint32_t *above, uint8_t *is_linked)
{
    uint32_t first, count;

    gtopo_map_host_links(d->map, d->host, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_link link;

        gtopo_map_link(d->map, id, &link, NULL);
        for (int end = 0; end < 2; end++)
            if (link.kind == GTOPO_LINK_NVLINK && is_nvswitch(d, link.ends[end])) {
                is_linked[link.ends[end] - base] = 1;
                above[root_of(above, link.ends[0] - base)] = root_of(above, link.ends[1] - base);
            }
    }
}

/* One link of unknown rate from the first NVSwitch to each group of them that no GPU joins to it. */
static int join_groups(struct gtopo_discovery *d, uint32_t base, uint32_t count, uint32_t *above,
                       const uint8_t *is_linked)
{
    uint32_t first = GTOPO_NONE;
    int status = 0;

    for (uint32_t i = 0; !status && i < count; i++) {
        if (!is_linked[i])
            continue;
        if (first == GTOPO_NONE)
            first = i;
        if (root_of(above, first) == root_of(above, i))
            continue;
        above[root_of(above, i)] = root_of(above, first);
        status = gtopo_discovery_link(d, GTOPO_LINK_NVLINK, base + first, base + i, 0);
    }
    return status;
}

int gtopo_join_nvswitches(struct gtopo_discovery *d)
{
    uint32_t base, count, *above;
    uint8_t *is_linked;
    int status;

    gtopo_map_host_objects(d->map, d->host, &base, &count, NULL);
    above = calloc(count, sizeof *above);
    is_linked = calloc(count, sizeof *is_linked);
    if (above && is_linked) {
        for (uint32_t i = 0; i < count; i++)
            above[i] = i;
        join_linked(d, base, above, is_linked);
        status = join_groups(d, base, count, above, is_linked);
    } else
        status = gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    free(above);
    free(is_linked);
    return status;
}
