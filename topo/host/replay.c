/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gputopo-replay DIR: read a recorded machine (DIR/sys, DIR/proc) with hwloc and write its tree as XML, version 2, to
 * standard output. hwloc takes the root from the environment only, which a library must not change.
 */
#include "topo/host/filter.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    hwloc_topology_t topology;
    char *xml;
    int length;

    if (argc != 2) {
        fprintf(stderr, "usage: gputopo-replay DIR\n");
        return 2;
    }
    if (setenv("HWLOC_FSROOT", argv[1], 1) || setenv("HWLOC_COMPONENTS", "linux,stop", 1) ||
        setenv("HWLOC_HIDE_ERRORS", "2", 1) || setenv("HWLOC_THISSYSTEM", "0", 1))
        return 5;
    if (hwloc_topology_init(&topology) || gtopo_topology_filter(topology) || hwloc_topology_load(topology)) {
        fprintf(stderr, "hwloc cannot read %s\n", argv[1]);
        return 3;
    }
    if (hwloc_topology_export_xmlbuffer(topology, &xml, &length, 0) ||
        fwrite(xml, 1, (size_t)length, stdout) != (size_t)length || fflush(stdout))
        return 4;
    hwloc_free_xmlbuffer(topology, xml);
    hwloc_topology_destroy(topology);
    return 0;
}
