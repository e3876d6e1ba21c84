/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that ask the NVIDIA driver share. */
#ifndef GTOPO_TOPO_HOST_NVML_H
#define GTOPO_TOPO_HOST_NVML_H

#include "topo/host/host.h"
#include "topo/host/nvml_api.h"

/* A GPU that the driver has and the map too. */
struct gtopo_driver_gpu {
    struct gtopo_nvml_gpu *handle;
    uint32_t id; /* object */
    int is_lost; /* it has fallen off the bus: it is not asked any more */
};

struct gtopo_nvml {
    struct gtopo_discovery *d;
    struct gtopo_nvml_api api;
    struct gtopo_driver_gpu *gpus; /* by NVML's index, without those that do not answer */
    size_t count;
};

/*
 * The result of an optional function of the driver for a GPU; a function that the driver does not have is not
 * supported, and a lost GPU is not asked. What failed is not known, which is no failure of the discovery.
 */
#define GTOPO_NVML_ASK(nvml, gpu, function, ...)                                                                       \
    gtopo_nvml_note(gpu, (gpu)->is_lost         ? GTOPO_NVML_GPU_IS_LOST                                               \
                         : (nvml)->api.function ? (nvml)->api.function((gpu)->handle, __VA_ARGS__)                     \
                                                : GTOPO_NVML_FUNCTION_NOT_FOUND)
int gtopo_nvml_note(struct gtopo_driver_gpu *gpu, int result);

/* "0000:3b:00.0" of what NVML writes as "00000000:3B:00.0". 0 for what is no address. */
int gtopo_nvml_address(const struct gtopo_nvml_pci *pci, char address[GTOPO_PCI_ADDRESS_MAX]);
/* The object of this host with a PCI address, or GTOPO_NONE. */
uint32_t gtopo_nvml_object(const struct gtopo_discovery *d, const char *address);

/* nvml_gpu.c: what the driver knows of a GPU. */
int gtopo_nvml_facts(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu);
/* nvml_links.c: NVLinks and C2C of all GPUs, and a finding for links that are down. */
int gtopo_nvml_read_links(struct gtopo_nvml *nvml);
/* nvml_peers.c: a finding for pairs of GPUs that cannot reach each other's memory. */
int gtopo_nvml_check_peers(struct gtopo_nvml *nvml);
/* cuda_order.c: the numbers by which CUDA knows the GPUs in this process, joined by UUID. */
int gtopo_read_cuda_order(struct gtopo_nvml *nvml);

#endif
