/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the NVIDIA driver: its library, the GPUs that it has, and which of the map's they are. */
#include "topo/host/nvml.h"
#include "lib/text.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"

/* No machine of today comes near; a driver that says more is not believed. */
#define GPUS_MAX 1024

/* ---- failures ---- */

/* What a failure to start means to people, and what to do. From NVML's reference. */
static const struct advice {
    int result;
    const char *cause, *next_step;
} advices[] = {
    {GTOPO_NVML_NO_PERMISSION, "it is not permitted", "look at the permissions of /dev/nvidia* and /dev/nvidiactl"},
    {GTOPO_NVML_INSUFFICIENT_POWER, "a GPU's power cable is not connected", "connect the power cables of the GPUs"},
    {GTOPO_NVML_DRIVER_NOT_LOADED, "its kernel module is not loaded",
     "load it (`modprobe nvidia`); after an update of the kernel, build it for that"},
    {GTOPO_NVML_TIMEOUT, "it does not answer", "look at the kernel log (dmesg, \"NVRM\")"},
    {GTOPO_NVML_LIBRARY_NOT_FOUND, "a library of its own is missing", "install the NVIDIA driver again"},
    {GTOPO_NVML_OPERATING_SYSTEM, "the operating system or its sandbox refused something to it",
     "in a container, pass the GPUs on (--gpus all)"},
    {GTOPO_NVML_LIB_RM_VERSION_MISMATCH, "its library and its kernel module are of different versions",
     "load the kernel's part anew (reboot after an update); in a container, use the host's library"},
};

static int is_nvidia_gpu(const struct gtopo_discovery *d, uint32_t id)
{
    struct gtopo_object object = {0};
    const char *ids = gtopo_map_text(d->map, id, GTOPO_ATTRIBUTE_PCI_ID);

    return !gtopo_map_object(d->map, id, &object, NULL) && object.kind == GTOPO_GPU && ids && !strncmp(ids, "10de:", 5);
}

/* That the driver tells nothing matters where there is something to tell of. */
static int report_driver(struct gtopo_discovery *d, enum gtopo_severity severity, const char *next_step,
                         const char *cause)
{
    uint32_t first, count, gpus = 0;

    gtopo_map_host_objects(d->map, d->host, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++)
        gpus += is_nvidia_gpu(d, id) != 0;
    if (!gpus)
        return 0;
    return gtopo_discovery_find(d, "gpu-driver", severity, d->machine, next_step,
                                "the NVIDIA driver tells nothing of %u GPUs that are there: %s", gpus, cause);
}

static int report_result(struct gtopo_discovery *d, const char *function, int result)
{
    static const struct advice other = {0, "it does not say why", "look at the kernel log (dmesg, \"NVRM\")"};
    const struct advice *advice = &other;
    char cause[256];

    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].result == result)
            advice = &advices[i];
    snprintf(cause, sizeof cause, "%s (%s: %d)", advice->cause, function, result);
    return report_driver(d, GTOPO_WARNING, advice->next_step, cause);
}

int gtopo_nvml_note(struct gtopo_driver_gpu *gpu, int result)
{
    if (result == GTOPO_NVML_GPU_IS_LOST)
        gpu->is_lost = 1;
    return result;
}

static int report_lost(struct gtopo_discovery *d, uint32_t object, unsigned index)
{
    return gtopo_discovery_find(d, "gpu-lost", GTOPO_FAULT, object,
                                "look at the kernel log (dmesg, \"Xid\"), then power the machine off and on; if it "
                                "comes back, replace the GPU",
                                "the NVIDIA driver has lost GPU %u: it does not answer on its bus", index);
}

/* ---- which GPU is which ---- */

int gtopo_nvml_address(const struct gtopo_nvml_pci *pci, char address[GTOPO_PCI_ADDRESS_MAX])
{
    unsigned domain, bus, device, function;
    int end = 0;

    if (!memchr(pci->bus_id, 0, sizeof pci->bus_id) ||
        sscanf(pci->bus_id, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 || pci->bus_id[end] ||
        device > 31 || function > 7)
        return 0;
    snprintf(address, GTOPO_PCI_ADDRESS_MAX, "%04x:%02x:%02x.%x", domain, bus, device, function);
    return 1;
}

uint32_t gtopo_nvml_object(const struct gtopo_discovery *d, const char *address)
{
    uint32_t first, count;

    gtopo_map_host_objects(d->map, d->host, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++) {
        const char *found = gtopo_map_text(d->map, id, GTOPO_ATTRIBUTE_PCI_ADDRESS);

        if (found && !strcmp(found, address))
            return id;
    }
    return GTOPO_NONE;
}

/* The GPU's object; one that the machine's PCI tree does not show is added, with no more place than the machine. */
static int find_gpu(struct gtopo_discovery *d, const char *address, uint32_t *id)
{
    struct gtopo_object object;
    int status;

    *id = gtopo_nvml_object(d, address);
    if (*id != GTOPO_NONE) {
        if (gtopo_map_object(d->map, *id, &object, NULL) || object.kind != GTOPO_GPU)
            *id = GTOPO_NONE;
        return 0;
    }
    status = gtopo_discovery_add(d, GTOPO_GPU, d->machine, 0, id);
    if (!status)
        status = gtopo_discovery_text(d, *id, GTOPO_ATTRIBUTE_PCI_ADDRESS, address);
    if (!status)
        status = gtopo_map_set_unknown(d->map, *id, GTOPO_ATTRIBUTE_NUMA, d->error);
    return status ? status : gtopo_discovery_link(d, GTOPO_LINK_PLATFORM, *id, d->machine, 0);
}

static int is_taken(const struct gtopo_nvml *nvml, uint32_t id)
{
    for (size_t i = 0; i < nvml->count; i++)
        if (nvml->gpus[i].id == id)
            return 1;
    return 0;
}

static int join_gpu(struct gtopo_nvml *nvml, unsigned index)
{
    struct gtopo_driver_gpu gpu = {.id = GTOPO_NONE};
    struct gtopo_nvml_pci pci = {.domain = 0};
    char address[GTOPO_PCI_ADDRESS_MAX];
    int result = nvml->api.nvmlDeviceGetHandleByIndex_v2(index, &gpu.handle), status;

    if (!result)
        result = nvml->api.nvmlDeviceGetPciInfo_v3(gpu.handle, &pci);
    if (result == GTOPO_NVML_GPU_IS_LOST)
        return report_lost(nvml->d, nvml->d->machine, index);
    if (result || !gtopo_nvml_address(&pci, address))
        return gtopo_discovery_find(nvml->d, "gpu-unknown", GTOPO_WARNING, nvml->d->machine,
                                    "look at `nvidia-smi -q` and the kernel log (dmesg, \"NVRM\")",
                                    "the NVIDIA driver does not say where its GPU %u is", index);
    status = find_gpu(nvml->d, address, &gpu.id);
    if (status || gpu.id == GTOPO_NONE || is_taken(nvml, gpu.id))
        return status;
    nvml->gpus[nvml->count++] = gpu;
    status = gtopo_discovery_number(nvml->d, gpu.id, GTOPO_ATTRIBUTE_NVML_INDEX, index);
    return status ? status : gtopo_nvml_facts(nvml, &nvml->gpus[nvml->count - 1]);
}

static int join_gpus(struct gtopo_nvml *nvml)
{
    unsigned count = 0;
    int result = nvml->api.nvmlDeviceGetCount_v2(&count), status = 0;

    if (result)
        return report_result(nvml->d, "nvmlDeviceGetCount_v2", result);
    if (count > GPUS_MAX)
        return report_driver(nvml->d, GTOPO_WARNING, "look at `nvidia-smi -L`", "it claims to have too many");
    nvml->gpus = calloc(count + 1, sizeof *nvml->gpus);
    if (!nvml->gpus)
        return gtopo_fail(nvml->d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (unsigned i = 0; !status && i < count; i++)
        status = join_gpu(nvml, i);
    return status;
}

/* ---- all that the driver is asked ---- */

static int report_lost_ones(struct gtopo_nvml *nvml)
{
    int status = 0;

    for (size_t i = 0; !status && i < nvml->count; i++) {
        uint64_t index = 0;

        gtopo_map_number(nvml->d->map, nvml->gpus[i].id, GTOPO_ATTRIBUTE_NVML_INDEX, &index);
        if (nvml->gpus[i].is_lost)
            status = report_lost(nvml->d, nvml->gpus[i].id, (unsigned)index);
    }
    return status;
}

static int ask(struct gtopo_nvml *nvml)
{
    char version[GTOPO_NVML_TEXT_B] = "";
    int status = join_gpus(nvml);

    if (!status && nvml->count && nvml->api.nvmlSystemGetDriverVersion &&
        !nvml->api.nvmlSystemGetDriverVersion(version, sizeof version)) {
        version[sizeof version - 1] = 0;
        gtopo_text_clean(version);
        status = gtopo_discovery_text(nvml->d, nvml->d->machine, GTOPO_ATTRIBUTE_NVIDIA_DRIVER, version);
    }
    if (!status)
        status = gtopo_nvml_read_links(nvml);
    if (!status)
        status = gtopo_nvml_check_peers(nvml);
    if (!status)
        status = report_lost_ones(nvml);
    return status || !nvml->count ? status : gtopo_read_cuda_order(nvml);
}

/* Look up a function; a table's place for it is given as bytes, since C has no cast to a function's address. */
static int look_up(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof address);
    return address != NULL;
}

/* The name of a needed function that the library has not, or NULL. */
static const char *resolve(void *library, struct gtopo_nvml_api *api)
{
    const char *missing = NULL;

#define LOOK_UP(name, parameters) look_up(library, #name, &api->name);
#define NEED(name, parameters)                                                                                         \
    if (!look_up(library, #name, &api->name))                                                                          \
        missing = #name;
    GTOPO_NVML_NEEDED(NEED)
    GTOPO_NVML_OPTIONAL(LOOK_UP)
#undef NEED
#undef LOOK_UP
    return missing;
}

static int start(struct gtopo_nvml *nvml, void *library)
{
    const char *missing = resolve(library, &nvml->api);
    char cause[128];
    int result, status;

    if (missing) {
        snprintf(cause, sizeof cause, "it is too old, its " LIBRARY " has no %s", missing);
        return report_driver(nvml->d, GTOPO_WARNING, "install a newer driver", cause);
    }
    result = nvml->api.nvmlInit_v2();
    if (result)
        return report_result(nvml->d, "nvmlInit_v2", result);
    status = ask(nvml);
    nvml->api.nvmlShutdown();
    return status;
}

int gtopo_ask_nvidia_driver(struct gtopo_discovery *d)
{
    struct gtopo_nvml nvml = {.d = d};
    const char *cause;
    void *library;
    int status;

    if (!d->asks_driver)
        return 0;
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        cause = dlerror();
        if (cause && strstr(cause, "No such file"))
            return report_driver(d, GTOPO_NOTE,
                                 "install the driver; in a container, pass the GPUs on (--gpus all), which brings it",
                                 "there is no " LIBRARY);
        return report_driver(d, GTOPO_WARNING, "install the driver again, for this processor",
                             "its " LIBRARY " cannot be loaded");
    }
    status = start(&nvml, library);
    dlclose(library);
    free(nvml.gpus);
    return status;
}
