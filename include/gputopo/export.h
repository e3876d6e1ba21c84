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

struct gtopo_export_options {
    size_t size;
    /** How much is written, of a format that has several profiles; NULL for its default. */
    const char *profile;
    /** Which host, of a format that is of one; GTOPO_NONE for the only one. */
    uint32_t host;
};
GTOPO_API void gtopo_export_options_init(struct gtopo_export_options *options);

/**
 * The name of the @p index-th format, or NULL when there are no more. @p summary, unless it is NULL, is what it is in
 * one line. Both live as long as the library.
 */
GTOPO_API const char *gtopo_export_format(size_t index, const char **summary);

/**
 * Write a sealed map, or a host of it, in another tool's format. Nothing is written when an error is found before.
 *
 * "nccl" is a topology file that NCCL (NCCL_TOPO_FILE) takes, RCCL where GPUs are AMD's, of one host. Its
 * profiles are "dump", with GPUs and their links and NICs and their ports, as NCCL_TOPO_DUMP_FILE has them; and
 * "inject", with processors and PCI devices only: what NCCL cannot see itself where a machine hides its tree. Errors:
 * GTOPO_EMISSING when the NUMA node of a device is not known and there are several, GTOPO_EUSAGE when the host has more
 * than NCCL's parser takes (250 elements, 255 bytes in a value). O(objects * links of one).
 *
 * Errors of all: GTOPO_EUSAGE for a format or profile that is not there, for a map of several hosts where one has to be
 * named, and for an unsealed map; GTOPO_ENOTFOUND for a host that is not there, GTOPO_EIO when @p write refuses,
 * GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_export(const struct gtopo_map *map, const char *format, const struct gtopo_export_options *options,
                           gtopo_write_function write, void *context, struct gtopo_error *error);

#ifdef __cplusplus
}
#endif
#endif
