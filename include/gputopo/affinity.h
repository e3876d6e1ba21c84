/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What is near a device: its NICs, and the processors that are to drive it. Functions over a sealed map; see map.h.
 */
#ifndef GPUTOPO_AFFINITY_H
#define GPUTOPO_AFFINITY_H

#include <gputopo/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The NUMA node or the package that a device (GPU, NIC, port, storage) is at, as an object that has processors:
 * gtopo_map_text() of GTOPO_ATTRIBUTE_CPUS gives their list. Where the
 * machine does not say where a device is, but only one of its NUMA nodes has processors, it is that one. Never a node
 * that is memory only: of a GPU, or behind CXL.
 *
 * Errors: GTOPO_EMISSING when the map does not say where the device is, or has no processors there; GTOPO_ENOTFOUND;
 * GTOPO_EUSAGE for an unsealed map. O(objects of the host).
 */
GTOPO_API int gtopo_processors_near(const struct gtopo_map *map, uint32_t device, uint32_t *place,
                                    struct gtopo_error *error);

/**
 * The same for a pair: the processors of what drives a NIC for a GPU. Where the two are at different NUMA nodes they
 * are those of the GPU, as NCCL binds its threads (graph/topo.cc, ncclTopoGetCpuAffinity()); where one of the two is
 * known more exactly, or alone, it decides. Errors: as above, GTOPO_EMISSING only when neither is known.
 */
GTOPO_API int gtopo_processors_of_pair(const struct gtopo_map *map, uint32_t gpu, uint32_t nic, uint32_t *place,
                                       struct gtopo_error *error);

/** A NIC, as a GPU sees it. */
struct gtopo_near_nic {
    uint32_t nic;
    uint32_t port;            /**< the port with the best way, or GTOPO_NONE for a NIC whose ports are not known */
    uint32_t path_class;      /**< enum gtopo_path_class */
    uint64_t bottleneck_Bps;  /**< of the way to the port, its own rate included; 0 for unknown */
    uint32_t bottleneck_link; /**< the link that has it, or GTOPO_NONE */
    int32_t is_down;          /**< 1: none of its ports has a link */
};

/**
 * The NICs of a GPU's host, nearest first: those with a link before those without, then the best class, then the
 * highest bottleneck, then the lowest number. Of them @p capacity are written; *count is how many there are. Errors:
 * GTOPO_EUSAGE for what is no GPU and for an unsealed map, GTOPO_ENOTFOUND, GTOPO_ENOMEM. A path for each port.
 */
GTOPO_API int gtopo_nearest_nics(const struct gtopo_map *map, uint32_t gpu, struct gtopo_near_nic *nics,
                                 size_t capacity, size_t *count, struct gtopo_error *error);

#ifdef __cplusplus
}
#endif
#endif
