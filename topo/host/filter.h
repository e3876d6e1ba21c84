/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of hwloc, of this machine and of a recorded one alike. */
#ifndef GTOPO_TOPO_HOST_FILTER_H
#define GTOPO_TOPO_HOST_FILTER_H

#include <hwloc.h>

/* Leave out what the map does not hold, which saves time; keep every PCI device: hwloc's own choice of important ones
 * drops some that matter (ConnectX data-direct functions, bridges of switches). 0, or -1 as hwloc returns it. */
static inline int gtopo_topology_filter(hwloc_topology_t topology)
{
    static const hwloc_obj_type_t unused[] = {
        HWLOC_OBJ_L1CACHE,  HWLOC_OBJ_L2CACHE,  HWLOC_OBJ_L3CACHE,  HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE,
        HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2ICACHE, HWLOC_OBJ_L3ICACHE, HWLOC_OBJ_MISC,    HWLOC_OBJ_DIE,
    };

    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (hwloc_topology_set_type_filter(topology, unused[i], HWLOC_TYPE_FILTER_KEEP_NONE))
            return -1;
    return hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
}

#endif
