/* SPDX-License-Identifier: Apache-2.0 */
/* The NUMA nodes of this host, as the kernel lists them. */
#ifndef GTOPO_BENCH_MEMORY_NODE_H
#define GTOPO_BENCH_MEMORY_NODE_H

#include <gputopo/error.h>

#define GTOPO_NODES "/sys/devices/system/node"
#define GTOPO_NODES_MAX 1024 /* the kernel's MAX_NUMNODES is never more */

/* A kernel without NUMA has no list of nodes and one node, number 0. */
int gtopo_kernel_without_numa(void);
/* Errors: GTOPO_EMISSING for a node that this host has not. */
int gtopo_node_check(int numa, struct gtopo_error *error);

#endif
