/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs cannot reach each other's memory, in the NVIDIA driver's opinion. */
#include "topo/host/nvml.h"

/* nvmlGpuP2PStatus_t from 1 on, as `nvidia-smi topo -p2p` has them: CNS, GNS, TNS, DR, NS. */
static const struct {
    const char *cause, *next_step;
} causes[] = {
    {"the chipset cannot do it", "in a virtual machine, ask its provider; GPUs then talk through host memory"},
    {"the GPUs cannot do it", "GPUs then talk through host memory"},
    {"the way between them cannot do it", "put them below one PCIe switch or host bridge"},
    {"it is switched off", "look for a setting of the driver in /etc/modprobe.d (NVreg_RegistryDwords)"},
    {"it is not supported", "GPUs then talk through host memory"},
};
#define CAUSES (sizeof causes / sizeof *causes)

int gtopo_nvml_check_peers(struct gtopo_nvml *nvml)
{
    struct {
        unsigned pairs;
        size_t first, second; /* of the first pair */
    } seen[CAUSES] = {{0}};
    unsigned pairs = 0;
    int status = 0;

    for (size_t i = 0; i < nvml->count; i++)
        for (size_t j = i + 1; j < nvml->count; j++) {
            int p2p = GTOPO_NVML_P2P_OK;

            if (nvml->gpus[j].is_lost || GTOPO_NVML_ASK(nvml, &nvml->gpus[i], nvmlDeviceGetP2PStatus,
                                                        nvml->gpus[j].handle, GTOPO_NVML_P2P_READ, &p2p))
                continue;
            pairs++;
            if (p2p <= GTOPO_NVML_P2P_OK || p2p > (int)CAUSES)
                continue;
            if (!seen[p2p - 1].pairs++)
                seen[p2p - 1].first = i, seen[p2p - 1].second = j;
        }
    for (size_t c = 0; !status && c < CAUSES; c++) {
        char first[GTOPO_ADDRESS_MAX], second[GTOPO_ADDRESS_MAX];

        if (!seen[c].pairs)
            continue;
        gtopo_address_format(nvml->d->map, nvml->gpus[seen[c].first].id, first);
        gtopo_address_format(nvml->d->map, nvml->gpus[seen[c].second].id, second);
        status = gtopo_discovery_find(nvml->d, "gpu-p2p", GTOPO_NOTE, nvml->d->machine, causes[c].next_step,
                                      "%u of %u pairs of GPUs cannot reach each other's memory, the first is %s and "
                                      "%s: %s",
                                      seen[c].pairs, pairs, first, second, causes[c].cause);
    }
    return status;
}
