/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnvidia-ml.so.1, for tests on machines without an NVIDIA GPU: it answers as the driver of a
 * described machine would (machine.h), and fails as the real one does. It is never installed.
 *
 * Environment:
 *
 *   GTOPO_FAKE_NVML_MACHINE=FILE   the description, read by nvmlInit_v2(); without one the driver is not loaded
 *   GTOPO_FAKE_NVML_FAIL=NAME:AFTER:CODE[:COUNT],…
 *                                  that function fails with that result after so many calls that do not, from then on,
 *                                  or so many times; calls are counted from nvmlInit_v2() on
 *   GTOPO_FAKE_NVML_LIE=WHAT       an answer that no driver should give: "bus-id" (garbage), "remote" (an NVLink's
 *                                  other end is a device that is not there), "count" (100000 GPUs), "same" (all GPUs at
 *                                  one address), "text" (without an end), "huge" (every number is 2^31)
 */
#include "tests/fakes/machine.h"
#include "topo/host/nvml_api.h"
#include <strings.h>

#define API __attribute__((visibility("default")))
#define FAILURES_MAX 16

struct gtopo_nvml_gpu { /* or a slice of one */
    int index, slice;   /* slice is -1 for the GPU itself */
};

static struct machine machine;
static struct gtopo_nvml_gpu handles[MACHINE_GPUS], slices[MACHINE_GPUS][8];
static int started;
static unsigned long failure_calls[FAILURES_MAX];

static int lies(const char *what)
{
    const char *lie = getenv("GTOPO_FAKE_NVML_LIE");

    return lie && !strcmp(lie, what);
}

/* The failure that is wanted of this call, or 0. */
static int wanted_failure(const char *name)
{
    const char *entry = getenv("GTOPO_FAKE_NVML_FAIL");

    for (int i = 0; i < FAILURES_MAX && entry && *entry; i++) {
        unsigned long after = 0, count = ~0ul;
        char wanted[64] = "";
        int code = 0;

        if (sscanf(entry, "%63[^:]:%lu:%d:%lu", wanted, &after, &code, &count) < 3)
            machine_bad("GTOPO_FAKE_NVML_FAIL", i, entry);
        if (!strcmp(wanted, name)) {
            unsigned long call = failure_calls[i]++;

            if (call >= after && call - after < count)
                return code;
        }
        entry += strcspn(entry, ",");
        entry += *entry == ',';
    }
    return 0;
}

static int begin(const char *name)
{
    int failure = wanted_failure(name);

    return failure ? failure : started ? GTOPO_NVML_SUCCESS : GTOPO_NVML_UNINITIALIZED;
}
#define BEGIN()                                                                                                        \
    do {                                                                                                               \
        int begun = begin(__func__);                                                                                   \
        if (begun)                                                                                                     \
            return begun;                                                                                              \
    } while (0)
/* What a machine whose driver only lists its GPUs does not answer. */
#define BEGIN_FACT(is_there)                                                                                           \
    BEGIN();                                                                                                           \
    if (machine.is_unsupported || !(is_there))                                                                         \
    return GTOPO_NVML_NOT_SUPPORTED

static int put_text(char *text, unsigned size, const char *value)
{
    if (lies("text")) {
        memset(text, 'x', size);
        return GTOPO_NVML_SUCCESS;
    }
    if (strlen(value) >= size)
        return GTOPO_NVML_INSUFFICIENT_SIZE;
    snprintf(text, size, "%s", value);
    return GTOPO_NVML_SUCCESS;
}

static unsigned number(int value)
{
    return lies("huge") ? 1u << 31 : (unsigned)value;
}

static const struct machine_gpu *of(const struct gtopo_nvml_gpu *gpu)
{
    return &machine.gpus[gpu->index];
}

static int put_pci(struct gtopo_nvml_pci *pci, const char *address)
{
    memset(pci, 0, sizeof *pci);
    if (lies("bus-id"))
        memset(pci->bus_id, 'f', sizeof pci->bus_id);
    else if (sscanf(address, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3)
        snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
    else /* as a guest is told of an NVSwitch that it has not */
        snprintf(pci->bus_id, sizeof pci->bus_id, "FFFFFFFF:FFFF:FF.0");
    return GTOPO_NVML_SUCCESS;
}

/* ---- the library ---- */

API int nvmlInit_v2(void)
{
    const char *path = getenv("GTOPO_FAKE_NVML_MACHINE");
    int failure;

    memset(failure_calls, 0, sizeof failure_calls);
    failure = wanted_failure(__func__);
    if (failure || !path)
        return failure ? failure : GTOPO_NVML_DRIVER_NOT_LOADED;
    machine = (struct machine){.near = -1};
    machine_read(&machine, path);
    for (int i = 0; i < machine.gpu_count; i++) {
        handles[i] = (struct gtopo_nvml_gpu){i, -1};
        for (int slice = 0; slice < 8; slice++)
            slices[i][slice] = (struct gtopo_nvml_gpu){i, slice};
    }
    started = 1;
    return GTOPO_NVML_SUCCESS;
}

API int nvmlShutdown(void)
{
    BEGIN();
    started = 0;
    return GTOPO_NVML_SUCCESS;
}

API int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    BEGIN_FACT(1);
    return put_text(text, size, machine.driver);
}

/* ---- GPUs ---- */

API int nvmlDeviceGetCount_v2(unsigned *count)
{
    BEGIN();
    *count = lies("count") ? 100000 : number(machine.gpu_count);
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gtopo_nvml_gpu **gpu)
{
    BEGIN();
    if (index >= (unsigned)machine.gpu_count)
        return GTOPO_NVML_INVALID_ARGUMENT;
    *gpu = &handles[index];
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetPciInfo_v3(struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_pci *pci)
{
    BEGIN();
    return put_pci(pci, lies("same") ? machine.gpus[0].address : of(gpu)->address);
}

API int nvmlDeviceGetUUID(struct gtopo_nvml_gpu *gpu, char *text, unsigned size)
{
    char uuid[48];

    BEGIN_FACT(1);
    snprintf(uuid, sizeof uuid, "%s-00000000-0000-0000-%04x-%012x", gpu->slice < 0 ? "GPU" : "MIG", gpu->slice + 1,
             gpu->index + 1);
    return put_text(text, size, uuid);
}

API int nvmlDeviceGetName(struct gtopo_nvml_gpu *gpu, char *text, unsigned size)
{
    BEGIN_FACT(gpu);
    return put_text(text, size, machine.model);
}

API int nvmlDeviceGetCudaComputeCapability(struct gtopo_nvml_gpu *gpu, int *major, int *minor)
{
    BEGIN_FACT(gpu);
    *major = (int)number(machine.major);
    *minor = (int)number(machine.minor);
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetMemoryInfo(struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_memory *memory)
{
    BEGIN_FACT(gpu);
    memory->total = lies("huge") ? ~0ull : (unsigned long long)machine.memory_MiB << 20;
    memory->free = memory->total;
    memory->used = 0;
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetMemoryAffinity(struct gtopo_nvml_gpu *gpu, unsigned words, unsigned long *nodes, int scope)
{
    BEGIN_FACT(of(gpu)->near >= 0);
    if (!words || scope != GTOPO_NVML_SCOPE_NODE)
        return GTOPO_NVML_INVALID_ARGUMENT;
    memset(nodes, lies("huge") ? 0xff : 0, words * sizeof *nodes);
    nodes[0] |= 1ul << of(gpu)->near;
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetNumaNodeId(struct gtopo_nvml_gpu *gpu, unsigned *node)
{
    BEGIN_FACT(of(gpu)->memory_node >= 0);
    *node = number(of(gpu)->memory_node);
    return GTOPO_NVML_SUCCESS;
}

/* ---- MIG ---- */

API int nvmlDeviceGetMigMode(struct gtopo_nvml_gpu *gpu, unsigned *now, unsigned *pending)
{
    BEGIN_FACT(machine.major >= 8);
    *now = *pending = number(of(gpu)->slices >= 0);
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetMaxMigDeviceCount(struct gtopo_nvml_gpu *gpu, unsigned *count)
{
    BEGIN_FACT(gpu);
    *count = number(7);
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(struct gtopo_nvml_gpu *gpu, unsigned index, struct gtopo_nvml_gpu **slice)
{
    BEGIN_FACT(gpu);
    if (index >= 7)
        return GTOPO_NVML_INVALID_ARGUMENT;
    if ((int)index >= of(gpu)->slices)
        return GTOPO_NVML_NOT_FOUND;
    *slice = &slices[gpu->index][index];
    return GTOPO_NVML_SUCCESS;
}

/* ---- links ---- */

/* The link, or NULL and the result of who asks for it. */
static const struct machine_link *find_link(const struct gtopo_nvml_gpu *gpu, unsigned link, int *result)
{
    *result = machine.is_unsupported || !machine.version                     ? GTOPO_NVML_NOT_SUPPORTED
              : link >= MACHINE_LINKS || of(gpu)->links[link].end == NO_LINK ? GTOPO_NVML_INVALID_ARGUMENT
                                                                             : GTOPO_NVML_SUCCESS;
    return *result ? NULL : &of(gpu)->links[link];
}

API int nvmlDeviceGetNvLinkState(struct gtopo_nvml_gpu *gpu, unsigned link, unsigned *is_active)
{
    const struct machine_link *found;
    int result;

    BEGIN();
    found = find_link(gpu, link, &result);
    if (found)
        *is_active = found->end != IS_DOWN;
    return result;
}

API int nvmlDeviceGetNvLinkVersion(struct gtopo_nvml_gpu *gpu, unsigned link, unsigned *version)
{
    int result;

    BEGIN();
    if (find_link(gpu, link, &result))
        *version = number(machine.version);
    return result;
}

API int nvmlDeviceGetNvLinkRemoteDeviceType(struct gtopo_nvml_gpu *gpu, unsigned link, int *kind)
{
    const struct machine_link *found;
    int result;

    BEGIN();
    found = find_link(gpu, link, &result);
    if (found && found->end == IS_DOWN)
        return GTOPO_NVML_NOT_SUPPORTED;
    if (found)
        *kind = found->end == TO_GPU   ? GTOPO_NVML_REMOTE_GPU
                : found->end == TO_CPU ? GTOPO_NVML_REMOTE_CPU
                                       : GTOPO_NVML_REMOTE_SWITCH;
    return result;
}

API int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gtopo_nvml_gpu *gpu, unsigned link, struct gtopo_nvml_pci *pci)
{
    const struct machine_link *found;
    int result;

    BEGIN();
    found = find_link(gpu, link, &result);
    if (found && found->end == IS_DOWN)
        return GTOPO_NVML_NOT_SUPPORTED;
    return found ? put_pci(pci, lies("remote") ? "00ab:cd:1f.0" : found->address) : result;
}

API int nvmlDeviceGetFieldValues(struct gtopo_nvml_gpu *gpu, int count, struct gtopo_nvml_field *fields)
{
    BEGIN();
    for (int i = 0; i < count; i++) {
        struct gtopo_nvml_field *field = &fields[i];
        unsigned c2c = (unsigned)machine.c2c_count;

        field->result = GTOPO_NVML_SUCCESS;
        field->type = GTOPO_NVML_TYPE_UNSIGNED;
        if (machine.is_unsupported)
            field->result = GTOPO_NVML_NOT_SUPPORTED;
        else if (field->field == GTOPO_NVML_NVLINK_SPEED && find_link(gpu, field->scope, &field->result))
            field->value.number = number(machine.speed_MBps);
        else if (field->field == GTOPO_NVML_C2C_COUNT && c2c)
            field->value.number = number(machine.c2c_count);
        else if (field->field == GTOPO_NVML_C2C_STATUS && field->scope < c2c)
            field->value.number = 1;
        else if (field->field == GTOPO_NVML_C2C_SPEED && field->scope < c2c)
            field->value.number = number(machine.c2c_MBps);
        else
            field->result = GTOPO_NVML_NOT_SUPPORTED;
    }
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetP2PStatus(struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_gpu *peer, int which, int *p2p)
{
    int is_linked = 0;

    BEGIN_FACT(which == GTOPO_NVML_P2P_READ);
    for (int i = 0; i < MACHINE_LINKS; i++) {
        const struct machine_link *link = &of(gpu)->links[i];

        is_linked |= link->end == TO_SWITCH || (link->end == TO_GPU && !strcasecmp(link->address, of(peer)->address));
    }
    *p2p = is_linked ? GTOPO_NVML_P2P_OK : (int)number(machine.p2p);
    return GTOPO_NVML_SUCCESS;
}

API int nvmlDeviceGetGpuFabricInfoV(struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_fabric *fabric)
{
    BEGIN_FACT(gpu && machine.fabric_state);
    if (fabric->version != GTOPO_NVML_FABRIC_VERSION)
        return GTOPO_NVML_ARGUMENT_VERSION_MISMATCH;
    for (int i = 0; i < 16; i++) {
        unsigned byte = 0;

        sscanf(machine.cluster + (machine.cluster[0] ? 2 * i : 0), "%2x", &byte);
        fabric->cluster[i] = (unsigned char)byte;
    }
    fabric->clique = machine.clique;
    fabric->state = (unsigned char)machine.fabric_state;
    fabric->result = machine.fabric_result;
    return GTOPO_NVML_SUCCESS;
}
