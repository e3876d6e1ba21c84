/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers that CUDA gives the GPUs in this process. They are not NVML's: CUDA_VISIBLE_DEVICES hides and reorders,
 * and the fastest comes first unless CUDA_DEVICE_ORDER says otherwise. CUDA itself is asked, and GPUs joined by UUID.
 */
#include "topo/host/nvml.h"
#include "lib/text.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 1024
#define NO_DEVICE 100 /* all are hidden, or there is none */

struct cuda {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*device)(int *device, int ordinal);
    int (*uuid)(unsigned char uuid[16], int device);
};

static void look_up(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof address);
}

static int set_ordinal(struct gtopo_nvml *nvml, const unsigned char u[16], int ordinal)
{
    char text[64];

    snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    for (size_t i = 0; i < nvml->count; i++) {
        const char *uuid = gtopo_map_text(nvml->d->map, nvml->gpus[i].id, GTOPO_ATTRIBUTE_UUID);

        if (uuid && !strcmp(uuid, text))
            return gtopo_discovery_number(nvml->d, nvml->gpus[i].id, GTOPO_ATTRIBUTE_CUDA_ORDINAL, (uint64_t)ordinal);
    }
    return 0;
}

/* The driver's library stays open: it has threads and handlers at the end of the process. Returns how many GPUs it
 * shows, or -1 when it cannot be asked. */
static int open_cuda(struct cuda *cuda)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int result, count = 0;

    if (!library)
        return -1;
    look_up(library, "cuInit", &cuda->init);
    look_up(library, "cuDeviceGetCount", &cuda->count);
    look_up(library, "cuDeviceGet", &cuda->device);
    look_up(library, "cuDeviceGetUuid", &cuda->uuid);
    if (!cuda->init || !cuda->count || !cuda->device || !cuda->uuid)
        return -1;
    result = cuda->init(0);
    if (result == NO_DEVICE)
        return 0;
    return result || cuda->count(&count) || count < 0 || count > DEVICES_MAX ? -1 : count;
}

int gtopo_read_cuda_order(struct gtopo_nvml *nvml)
{
    struct gtopo_discovery *d = nvml->d;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    struct cuda cuda;
    char text[1024];
    int count, status = 0;

    if (visible) {
        snprintf(text, sizeof text, "%s", visible);
        gtopo_text_clean(text);
        status = gtopo_map_set_text(d->map, d->machine, GTOPO_ATTRIBUTE_CUDA_VISIBLE_DEVICES, text, d->error);
    }
    count = open_cuda(&cuda);
    for (size_t i = 0; !status && count < 0 && i < nvml->count; i++)
        status = gtopo_map_set_unknown(d->map, nvml->gpus[i].id, GTOPO_ATTRIBUTE_CUDA_ORDINAL, d->error);
    for (int ordinal = 0; !status && ordinal < count; ordinal++) {
        unsigned char uuid[16] = {0};
        int device;

        if (!cuda.device(&device, ordinal) && !cuda.uuid(uuid, device))
            status = set_ordinal(nvml, uuid, ordinal);
    }
    return status;
}
