/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * A map, or a host of it, in the formats of other tools.
 */
#ifndef GPUTOPO_EXPORT_H
#define GPUTOPO_EXPORT_H

#include <gputopo/map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How much a topology file for NCCL says. */
enum gtopo_nccl_profile {
    GTOPO_NCCL_INJECT, /**< processors and PCI devices: what NCCL cannot see itself where a machine hides its tree */
    GTOPO_NCCL_DUMP    /**< GPUs with their links and NICs with their ports too, as NCCL_TOPO_DUMP_FILE has them */
};

/**
 * Write one host as a topology file that NCCL (NCCL_TOPO_FILE) takes; RCCL where GPUs are joined by XGMI. Nothing is
 * written when an error is found before.
 *
 * The map must be sealed. Errors: GTOPO_EMISSING when the NUMA node of a host bridge is not known, GTOPO_EUSAGE when
 * the host has more than NCCL's parser takes (250 elements, 255 bytes in a value) or for an unsealed map,
 * GTOPO_ENOTFOUND for a host that is not there, GTOPO_EIO when @p write refuses, GTOPO_ENOMEM. O(objects * links of
 * one).
 */
GTOPO_API int gtopo_export_nccl(const struct gtopo_map *map, uint32_t host, enum gtopo_nccl_profile profile,
                                gtopo_write_function write, void *context, struct gtopo_error *error);

#ifdef __cplusplus
}
#endif
#endif
