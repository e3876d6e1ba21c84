/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Discovering a host: what fills a map from the machine that the program runs on, or from the record of another.
 */
#ifndef GPUTOPO_HOST_H
#define GPUTOPO_HOST_H

#include <gputopo/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Whether the machine's GPU driver is asked for what only it knows. */
enum gtopo_driver {
    GTOPO_DRIVER_AUTO, /**< when the machine itself is discovered, and not a record of another */
    GTOPO_DRIVER_ALWAYS,
    GTOPO_DRIVER_NEVER,
};

struct gtopo_host_options {
    size_t size;
    /** The host's name in the map; NULL takes the machine's, or the file's when another machine is replayed. */
    const char *name;
    /** Replay a machine from a directory that holds its /sys and /proc, as hwloc-gather-topology leaves them. */
    const char *fsroot;
    /**
     * Replay a machine's tree from hwloc's XML (version 2). Facts that only sysfs has are then unknown, unless
     * fsroot is given too.
     */
    const char *hwloc_xml;
    /**
     * Take a machine from a topology file of NCCL's or RCCL's (what NCCL_TOPO_FILE names and NCCL_TOPO_DUMP_FILE
     * writes). It tells of NUMA nodes, PCIe switches, GPUs with the links between them, and NICs; nothing else is used.
     */
    const char *nccl_xml;
    /**
     * enum gtopo_driver. NVML (libnvidia-ml.so.1) is loaded, asked and closed again. CUDA (libcuda.so.1), where it is
     * there, is asked for its numbers of the GPUs; it stays loaded and initialised, so that a child of this process
     * that is forked later, and starts no other program, cannot use CUDA. A topology file of NCCL's is never completed.
     */
    uint32_t driver;
    /**
     * A tree to lay over the machine, which hides its own or a part of it: NCCL's topology file of a provider, or a map
     * (of several hosts, the one of this name). Host bridges, PCIe switches and what hangs below them are the file's,
     * as are links between GPUs where the machine shows none; everything else, and what each device is, is the
     * machine's. Devices are the same by UUID, serial number, node GUID or MAC, else by PCI address. The map says that
     * its tree was given, and finds what only one of the two has.
     */
    const char *overlay;
};
GTOPO_API void gtopo_host_options_init(struct gtopo_host_options *options);

/**
 * Add one host to a map: packages, NUMA nodes, host bridges, PCIe switches, GPUs, NICs with their ports, storage, and
 * the links between them with their negotiated and capable rates. Needs no privilege; what privilege hides is
 * unknown. The NVIDIA driver is asked for GPUs, NVLinks and C2C (see `driver`). Adds findings for what is visibly wrong
 * (a port down, a tree that the machine hides). The map is left unsealed. On failure the map may hold part of the host:
 * free it.
 *
 * Errors: GTOPO_EIO and GTOPO_EFORMAT for a bad fsroot, XML or overlay, and for the overlay of another machine (no
 * device of it is here, another device is at its PCI address, a NUMA node that it names is not here), GTOPO_EVERSION
 * for XML of a version that is not read, GTOPO_EMISSING when hwloc cannot read the machine or gputopo-replay, which
 * reads records, is not installed, GTOPO_ESYSTEM when it cannot be started, GTOPO_EUSAGE for a name that is taken,
 * GTOPO_ENOMEM. Time: hwloc's, plus O(devices log devices).
 */
GTOPO_API int gtopo_host_discover(struct gtopo_map *map, const struct gtopo_host_options *options,
                                  struct gtopo_error *error);

#ifdef __cplusplus
}
#endif
#endif
