/* SPDX-License-Identifier: Apache-2.0 */
/* What the NVIDIA driver knows of one GPU. Each fact is asked for by itself: what is refused is not known. */
#include "topo/host/nvml.h"
#include "lib/text.h"
#include <stdio.h>
#include <string.h>

#define MIG_MAX 64
#define NODE_WORDS 16 /* NUMA nodes below 1024 */

/* A text of the driver's, which may lack its end. */
static int set_text(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute,
                    char text[GTOPO_NVML_TEXT_B])
{
    text[GTOPO_NVML_TEXT_B - 1] = 0;
    gtopo_text_clean(text);
    return gtopo_discovery_text(d, id, attribute, text);
}

static int set_names(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    char text[GTOPO_NVML_TEXT_B] = "";
    int status = 0;

    if (!GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetUUID, text, sizeof text))
        status = set_text(nvml->d, gpu->id, GTOPO_ATTRIBUTE_UUID, text);
    if (!status && !GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetName, text, sizeof text))
        status = set_text(nvml->d, gpu->id, GTOPO_ATTRIBUTE_MODEL, text);
    return status;
}

static int set_architecture(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    char text[GTOPO_NVML_TEXT_B];
    int major = 0, minor = 0;

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetCudaComputeCapability, &major, &minor) || major < 1 || major > 999 ||
        minor < 0 || minor > 9)
        return 0;
    snprintf(text, sizeof text, "sm_%d%d", major, minor);
    return gtopo_discovery_text(nvml->d, gpu->id, GTOPO_ATTRIBUTE_ARCHITECTURE, text);
}

static int set_memory(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    struct gtopo_nvml_memory memory = {0};

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetMemoryInfo, &memory) || !memory.total || memory.total > INT64_MAX)
        return 0;
    return gtopo_discovery_number(nvml->d, gpu->id, GTOPO_ATTRIBUTE_MEMORY_B, memory.total);
}

/* ---- NUMA ---- */

/* The one NUMA node with processors that the driver puts the GPU on, or -1. */
static int64_t near_node(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    unsigned long nodes[NODE_WORDS] = {0};
    const unsigned bits = 8 * sizeof *nodes;
    int64_t found = -1;

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetMemoryAffinity, NODE_WORDS, nodes, GTOPO_NVML_SCOPE_NODE))
        return -1;
    for (unsigned node = 0; node < NODE_WORDS * bits; node++)
        if ((nodes[node / bits] >> node % bits & 1) && gtopo_numa_object(nvml->d, node) != GTOPO_NONE) {
            if (found >= 0)
                return -1;
            found = node;
        }
    return found;
}

/* The node that the GPU is near, where firmware does not say it but the driver does; and that of its own memory, where
 * the processor shares it (Grace Hopper). */
static int set_nodes(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    uint64_t known;
    unsigned own = 0;
    int64_t near = gtopo_map_number(nvml->d->map, gpu->id, GTOPO_ATTRIBUTE_NUMA, &known) ? -1 : near_node(nvml, gpu);
    int status = near < 0 ? 0 : gtopo_discovery_number(nvml->d, gpu->id, GTOPO_ATTRIBUTE_NUMA, (uint64_t)near);

    if (!status && !GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetNumaNodeId, &own) && own <= INT32_MAX)
        status = gtopo_discovery_number(nvml->d, gpu->id, GTOPO_ATTRIBUTE_MEMORY_NUMA, own);
    return status;
}

/* ---- MIG ---- */

/* The slices that a GPU is cut into, by their UUIDs. */
static int set_slices(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    char uuids[MIG_MAX * (GTOPO_NVML_TEXT_B + 1)] = "";
    unsigned most = 0;
    size_t length = 0;
    uint64_t count = 0;
    int status;

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetMaxMigDeviceCount, &most))
        return gtopo_map_set_unknown(nvml->d->map, gpu->id, GTOPO_ATTRIBUTE_MIG_INSTANCES, nvml->d->error);
    for (unsigned i = 0; i < most && i < MIG_MAX; i++) {
        struct gtopo_driver_gpu slice = {.id = gpu->id};
        char uuid[GTOPO_NVML_TEXT_B] = "";

        if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetMigDeviceHandleByIndex, i, &slice.handle))
            continue; /* there are as many places as slices could be made */
        count++;
        if (GTOPO_NVML_ASK(nvml, &slice, nvmlDeviceGetUUID, uuid, sizeof uuid))
            continue;
        uuid[sizeof uuid - 1] = 0;
        gtopo_text_clean(uuid);
        length += (size_t)snprintf(uuids + length, sizeof uuids - length, "%s%s", length ? "," : "", uuid);
    }
    status = gtopo_discovery_number(nvml->d, gpu->id, GTOPO_ATTRIBUTE_MIG_INSTANCES, count);
    return status ? status : gtopo_discovery_text(nvml->d, gpu->id, GTOPO_ATTRIBUTE_MIG_UUIDS, uuids);
}

static int set_mig(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    unsigned now = 0, pending = 0;
    int status;

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetMigMode, &now, &pending) || now > 1)
        return 0;
    status = gtopo_discovery_number(nvml->d, gpu->id, GTOPO_ATTRIBUTE_MIG, now);
    return status || !now ? status : set_slices(nvml, gpu);
}

/* ---- the NVLink fabric ---- */

/* A rack's NVLinks make one fabric; HGX machines alone report the state, but no cluster. */
static int set_fabric(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    struct gtopo_nvml_fabric fabric = {.version = GTOPO_NVML_FABRIC_VERSION};
    static const unsigned char none[sizeof fabric.cluster];
    const unsigned char *c = fabric.cluster;
    char uuid[37];
    int status;

    if (GTOPO_NVML_ASK(nvml, gpu, nvmlDeviceGetGpuFabricInfoV, &fabric))
        return 0;
    if (fabric.state == GTOPO_NVML_FABRIC_NOT_STARTED || fabric.state == GTOPO_NVML_FABRIC_IN_PROGRESS ||
        (fabric.state == GTOPO_NVML_FABRIC_COMPLETED && fabric.result))
        return gtopo_discovery_find(
            nvml->d, "nvlink-fabric", GTOPO_WARNING, gpu->id,
            "start the fabric manager (`systemctl start nvidia-fabricmanager`), of the driver's version; in a rack, "
            "look at its logs and at nvidia-imex",
            "the GPU is not registered with the NVLink fabric (state %u, result %d): CUDA cannot use its NVLinks",
            fabric.state, fabric.result);
    if (fabric.state != GTOPO_NVML_FABRIC_COMPLETED || !memcmp(c, none, sizeof none))
        return 0;
    snprintf(uuid, sizeof uuid, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", c[0], c[1],
             c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15]);
    status = gtopo_discovery_text(nvml->d, gpu->id, GTOPO_ATTRIBUTE_FABRIC_UUID, uuid);
    return status ? status : gtopo_discovery_number(nvml->d, gpu->id, GTOPO_ATTRIBUTE_FABRIC_CLIQUE, fabric.clique);
}

int gtopo_nvml_facts(struct gtopo_nvml *nvml, struct gtopo_driver_gpu *gpu)
{
    int status = set_names(nvml, gpu);

    if (!status)
        status = set_architecture(nvml, gpu);
    if (!status)
        status = set_memory(nvml, gpu);
    if (!status)
        status = set_nodes(nvml, gpu);
    if (!status)
        status = set_mig(nvml, gpu);
    return status ? status : set_fabric(nvml, gpu);
}
