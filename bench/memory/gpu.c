/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of an NVIDIA GPU, through the CUDA driver.
 *
 * The program that embeds us may use CUDA itself. So we take the primary context, which is counted, put it on the
 * calling thread's stack of contexts and take it off again, and use streams of our own that wait for no other.
 */
#include "bench/memory/gpu.h"
#include "bench/clock.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRAIN_B ((size_t)64 << 10) /* pages of GPU memory that other devices can be given, and the largest of hosts */
#define STUCK_NS UINT64_C(30000000000) /* a copy of a few megabytes that takes this long never ends */

static struct gtopo_gpu *state_of(const struct gtopo_region *region)
{
    return region->state;
}

const struct gtopo_gpu *gtopo_gpu_of(const struct gtopo_region *region)
{
    return region->memory == &gtopo_memory_gpu ? region->state : NULL;
}

static uint64_t address_of(const struct gtopo_region *region, size_t offset)
{
    return (uint64_t)(uintptr_t)region->data + offset;
}

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* The host's pages or the GPU's, whichever are larger: what is exported consists of both. */
static size_t page_B(void)
{
    size_t host = (size_t)sysconf(_SC_PAGESIZE);

    return host > GRAIN_B ? host : GRAIN_B;
}

static int fail(const struct gtopo_gpu *gpu, int result, const char *what, struct gtopo_error *error)
{
    return gtopo_cuda_fail(gpu->cuda, result, gpu->which, what, error);
}

/* ---- context and waiting ---- */

int gtopo_gpu_enter(const struct gtopo_gpu *gpu, struct gtopo_error *error)
{
    int result = gpu->cuda->cuCtxPushCurrent_v2(gpu->context);

    return result ? fail(gpu, result, "use it", error) : 0;
}

void gtopo_gpu_leave(const struct gtopo_gpu *gpu)
{
    struct gtopo_cu_context *context;

    gpu->cuda->cuCtxPopCurrent_v2(&context);
}

int gtopo_gpu_finish(const struct gtopo_gpu *gpu, struct gtopo_cu_stream *stream, uint64_t timeout_ns,
                     struct gtopo_error *error)
{
    uint64_t start_ns = gtopo_clock_ns();
    int result;

    while ((result = gpu->cuda->cuStreamQuery(stream)) == GTOPO_CU_NOT_READY) {
        if (gtopo_clock_ns() - start_ns > timeout_ns)
            return gtopo_fail(error, GTOPO_ETIMEOUT, "look at the kernel log (dmesg, \"Xid\")",
                              "GPU %s: a copy did not end within %.3g s", gpu->which, (double)timeout_ns * 1e-9);
        sched_yield();
    }
    return result ? fail(gpu, result, "copy", error) : 0;
}

/* ---- which GPU ---- */

static int find_by_number(struct gtopo_gpu *gpu, struct gtopo_error *error)
{
    int count = 0, result = gpu->cuda->cuDeviceGetCount(&count);
    unsigned long number = strtoul(gpu->which, NULL, 10);

    if (result)
        return fail(gpu, result, "count the GPUs", error);
    if (number >= (unsigned long)count)
        return gtopo_fail(error, GTOPO_EMISSING, "look at `nvidia-smi -L` and CUDA_VISIBLE_DEVICES",
                          "there is no GPU %s: the driver shows %d, counted from 0", gpu->which, count);
    result = gpu->cuda->cuDeviceGet(&gpu->device, (int)number);
    return result ? fail(gpu, result, "find it", error) : 0;
}

static int find_device(struct gtopo_gpu *gpu, struct gtopo_error *error)
{
    int result;

    if (!strchr(gpu->which, ':'))
        return find_by_number(gpu, error);
    result = gpu->cuda->cuDeviceGetByPCIBusId(&gpu->device, gpu->which);
    if (result == GTOPO_CU_INVALID_VALUE || result == GTOPO_CU_INVALID_DEVICE)
        return gtopo_fail(error, GTOPO_EMISSING, "look at `nvidia-smi -L`, `lspci -D` and CUDA_VISIBLE_DEVICES",
                          "the driver shows no GPU at PCI address %s", gpu->which);
    return result ? fail(gpu, result, "find it", error) : 0;
}

/* A driver that does not know an attribute answers with `unknown`. */
static int attribute(const struct gtopo_gpu *gpu, int number, int unknown)
{
    int value = unknown;

    return gpu->cuda->cuDeviceGetAttribute(&value, number, gpu->device) ? unknown : value;
}

/* ---- allocation ---- */

/* Small allocations may lie inside a page of another's: then take a page more, and what is aligned of it. */
static int allocate_pages(struct gtopo_gpu *gpu, struct gtopo_region *region, struct gtopo_error *error)
{
    int result = gpu->cuda->cuMemAlloc_v2(&gpu->base, gpu->mapped_B);

    if (!result && gpu->base % page_B()) {
        gpu->cuda->cuMemFree_v2(gpu->base);
        gpu->base = 0;
        result = gpu->cuda->cuMemAlloc_v2(&gpu->base, gpu->mapped_B + page_B());
    }
    if (result) {
        char what[64];

        snprintf(what, sizeof what, "allocate %zu bytes of its memory", region->size);
        gpu->base = 0;
        return fail(gpu, result, what, error);
    }
    region->data = (void *)(uintptr_t)round_up(gpu->base, page_B());
    return 0;
}

static int prepare_pages(struct gtopo_gpu *gpu, struct gtopo_region *region, struct gtopo_error *error)
{
    unsigned on = 1;
    int result, status = allocate_pages(gpu, region, error);

    if (status)
        return status;
    /* copies that the driver calls synchronous end before they return; GPUDirect RDMA's documentation asks for it */
    result = gpu->cuda->cuPointerSetAttribute(&on, GTOPO_CU_SYNC_MEMOPS, gpu->base);
    if (result && result != GTOPO_CU_NOT_SUPPORTED)
        return fail(gpu, result, "prepare its memory for other devices", error);
    result = gpu->cuda->cuStreamCreate(&gpu->stream, GTOPO_CU_NON_BLOCKING);
    if (!result)
        result = gpu->cuda->cuMemsetD8Async(address_of(region, 0), 0, gpu->mapped_B, gpu->stream);
    if (result)
        return fail(gpu, result, "zero its memory", error);
    return gtopo_gpu_finish(gpu, gpu->stream, STUCK_NS, error);
}

static void release_gpu(struct gtopo_region *region)
{
    struct gtopo_gpu *gpu = state_of(region);

    if (!gpu)
        return;
    if (gpu->context && !gtopo_gpu_enter(gpu, NULL)) {
        for (unsigned i = 0; i < GTOPO_LANES_MAX; i++) {
            struct gtopo_gpu_lane *lane = &gpu->lanes[i];

            if (lane->stream && !gtopo_gpu_finish(gpu, lane->stream, STUCK_NS, NULL))
                gpu->cuda->cuStreamDestroy_v2(lane->stream);
            if (lane->event)
                gpu->cuda->cuEventDestroy_v2(lane->event);
        }
        if (gpu->stream)
            gpu->cuda->cuStreamDestroy_v2(gpu->stream);
        if (gpu->base)
            gpu->cuda->cuMemFree_v2(gpu->base);
        gtopo_gpu_leave(gpu);
    }
    if (gpu->context)
        gpu->cuda->cuDevicePrimaryCtxRelease_v2(gpu->device);
    free(gpu);
    region->state = NULL;
    region->data = NULL;
}

static int allocate_gpu(struct gtopo_region *region, struct gtopo_error *error)
{
    struct gtopo_gpu *gpu = calloc(1, sizeof *gpu);
    int status, result;

    if (!gpu)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    region->state = gpu;
    snprintf(gpu->which, sizeof gpu->which, "%s", region->which);
    gpu->mapped_B = round_up(region->size ? region->size : 1, page_B());
    if ((status = gtopo_cuda_load(&gpu->cuda, error)) || (status = find_device(gpu, error)))
        goto out;
    gpu->can_flush = gpu->cuda->cuFlushGPUDirectRDMAWrites &&
                     (unsigned)attribute(gpu, GTOPO_CU_FLUSH_OPTIONS, 0) & GTOPO_CU_FLUSH_HOST;
    result = gpu->cuda->cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
    if (result) {
        gpu->context = NULL;
        status = fail(gpu, result, "use it", error);
        goto out;
    }
    status = gtopo_gpu_enter(gpu, error);
    if (status)
        goto out;
    status = prepare_pages(gpu, region, error);
    gtopo_gpu_leave(gpu);
out:
    if (status)
        release_gpu(region);
    return status;
}

/* ---- bytes ---- */

static int store_gpu(const struct gtopo_region *region, size_t offset, const void *from, size_t size,
                     struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = state_of(region);
    int result, status = gtopo_gpu_enter(gpu, error);

    if (status)
        return status;
    result = gpu->cuda->cuMemcpyHtoDAsync_v2(address_of(region, offset), from, size, gpu->stream);
    status =
        result ? fail(gpu, result, "write to its memory", error) : gtopo_gpu_finish(gpu, gpu->stream, STUCK_NS, error);
    gtopo_gpu_leave(gpu);
    return status;
}

static int load_gpu(const struct gtopo_region *region, size_t offset, void *to, size_t size, struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = state_of(region);
    int result, status = gtopo_gpu_enter(gpu, error);

    if (status)
        return status;
    result = gpu->cuda->cuMemcpyDtoHAsync_v2(to, address_of(region, offset), size, gpu->stream);
    status = result ? fail(gpu, result, "read its memory", error) : gtopo_gpu_finish(gpu, gpu->stream, STUCK_NS, error);
    gtopo_gpu_leave(gpu);
    return status;
}

/* ---- what other devices may do ---- */

/* The driver's upper case, and its eight digits of domain, become the kernel's. */
static void read_pci_address(const struct gtopo_gpu *gpu, char *text, size_t size)
{
    unsigned domain, bus, device, function;
    char found[32] = "";

    if (!gpu->cuda->cuDeviceGetPCIBusId(found, sizeof found, gpu->device) &&
        sscanf(found, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4)
        snprintf(text, size, "%04x:%02x:%02x.%x", domain, bus & 0xff, device & 0x1f, function & 7);
}

static void facts_gpu(const struct gtopo_region *region, struct gtopo_memory_facts *facts)
{
    const struct gtopo_gpu *gpu = state_of(region);

    memset(facts, 0, sizeof *facts);
    if (!gpu)
        return;
    if (gpu->cuda->cuDeviceGetName(facts->name, sizeof facts->name, gpu->device))
        facts->name[0] = 0;
    read_pci_address(gpu, facts->pci_address, sizeof facts->pci_address);
    facts->mig = strstr(facts->name, "MIG") != NULL;
    /* drivers before 11.3 do not say; those before 11.7 cannot export */
    facts->no_gpudirect = !attribute(gpu, GTOPO_CU_GPUDIRECT_SUPPORTED, 1);
    facts->no_dmabuf = !gpu->cuda->cuMemGetHandleForAddressRange || !attribute(gpu, GTOPO_CU_DMABUF_SUPPORTED, 0);
    facts->coherent = attribute(gpu, GTOPO_CU_USES_HOST_PAGE_TABLES, 0) != 0;
    facts->flush_is_needed = attribute(gpu, GTOPO_CU_WRITES_ORDERING, 0) < GTOPO_CU_ORDERED_FOR_OWNER;
    facts->can_flush = gpu->can_flush;
}

static int fail_export(const struct gtopo_gpu *gpu, int pcie, int result, struct gtopo_error *error)
{
    int refused = result == GTOPO_CU_INVALID_VALUE || result == GTOPO_CU_NOT_SUPPORTED;

    if (refused && pcie)
        return gtopo_fail(error, GTOPO_EMISSING, "it needs a driver of CUDA 12.8 or newer, and a GPU that has it",
                          "GPU %s: the driver does not export a dma-buf that is mapped through PCIe (%d)", gpu->which,
                          result);
    if (refused)
        return gtopo_fail(error, GTOPO_EMISSING,
                          "it needs the open kernel modules of the driver (nvidia-open) and Linux 5.12 or newer",
                          "GPU %s: the driver does not export this memory as dma-buf (%d)", gpu->which, result);
    return fail(gpu, result, "export its memory as dma-buf", error);
}

static int export_gpu(const struct gtopo_region *region, int pcie, int *fd, uint64_t *offset, struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = state_of(region);
    uint64_t start = address_of(region, 0) / page_B() * page_B();
    size_t size = round_up((size_t)(address_of(region, 0) - start) + region->size, page_B());
    int handle = -1, result, status;

    if (!gpu->cuda->cuMemGetHandleForAddressRange)
        return gtopo_fail(error, GTOPO_EMISSING, "it needs a driver of CUDA 11.7 or newer",
                          "GPU %s: the driver is too old to export memory as dma-buf", gpu->which);
    if ((status = gtopo_gpu_enter(gpu, error)))
        return status;
    result = gpu->cuda->cuMemGetHandleForAddressRange(&handle, start, size, GTOPO_CU_DMABUF_FD,
                                                      pcie ? GTOPO_CU_DMABUF_PCIE : 0);
    gtopo_gpu_leave(gpu);
    if (result)
        return fail_export(gpu, pcie, result, error);
    fcntl(handle, F_SETFD, FD_CLOEXEC); /* what the program starts has no business with it */
    *fd = handle;
    *offset = address_of(region, 0) - start;
    return 0;
}

static int begin_flush_gpu(const struct gtopo_region *region, struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = state_of(region);

    if (!gpu->can_flush)
        return gtopo_fail(error, GTOPO_EMISSING, "it needs a driver of CUDA 11.3 or newer, and a GPU that has it",
                          "GPU %s: the driver cannot make what other devices wrote visible", gpu->which);
    return gtopo_gpu_enter(gpu, error);
}

static void end_flush_gpu(const struct gtopo_region *region)
{
    gtopo_gpu_leave(state_of(region));
}

static int flush_gpu(const struct gtopo_region *region, struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = state_of(region);
    int result = gpu->cuda->cuFlushGPUDirectRDMAWrites(GTOPO_CU_FLUSH_CURRENT_CONTEXT, GTOPO_CU_ORDERED_FOR_OWNER);

    return result ? fail(gpu, result, "make what other devices wrote visible", error) : 0;
}

/* ---- host memory for the copy engines ---- */

static int pin_gpu(const struct gtopo_region *region, void *host, size_t size, struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = state_of(region);
    int result, status = gtopo_gpu_enter(gpu, error);
    char what[64];

    if (status)
        return status;
    result = gpu->cuda->cuMemHostRegister_v2(host, size, GTOPO_CU_PORTABLE | GTOPO_CU_DEVICEMAP);
    gtopo_gpu_leave(gpu);
    snprintf(what, sizeof what, "lock %zu bytes of host memory for it", size);
    return result ? fail(gpu, result, what, error) : 0;
}

static void unpin_gpu(const struct gtopo_region *region, void *host)
{
    const struct gtopo_gpu *gpu = state_of(region);

    if (gtopo_gpu_enter(gpu, NULL))
        return;
    gpu->cuda->cuMemHostUnregister(host);
    gtopo_gpu_leave(gpu);
}

/* ---- lanes ---- */

/* Within the context. */
static int open_lane(struct gtopo_gpu *gpu, unsigned number, struct gtopo_gpu_lane **lane, struct gtopo_error *error)
{
    int result = 0;

    *lane = &gpu->lanes[number];
    if (!(*lane)->stream)
        result = gpu->cuda->cuStreamCreate(&(*lane)->stream, GTOPO_CU_NON_BLOCKING);
    if (!result && !(*lane)->event)
        result = gpu->cuda->cuEventCreate(&(*lane)->event, GTOPO_CU_NO_TIMING);
    return result ? fail(gpu, result, "make a stream for copies", error) : 0;
}

/* Start a copy, to the GPU when `from` is given, else from it. */
static int start_lane(const struct gtopo_region *region, unsigned number, size_t offset, const void *from, void *to,
                      size_t size, struct gtopo_error *error)
{
    struct gtopo_gpu *gpu = state_of(region);
    struct gtopo_gpu_lane *lane;
    int result, status;

    if (number >= GTOPO_LANES_MAX)
        return gtopo_fail(error, GTOPO_EINTERNAL, NULL, "there is no lane %u", number);
    if ((status = gtopo_gpu_enter(gpu, error)))
        return status;
    status = open_lane(gpu, number, &lane, error);
    if (!status) {
        result = from ? gpu->cuda->cuMemcpyHtoDAsync_v2(address_of(region, offset), from, size, lane->stream)
                      : gpu->cuda->cuMemcpyDtoHAsync_v2(to, address_of(region, offset), size, lane->stream);
        if (!result)
            result = gpu->cuda->cuEventRecord(lane->event, lane->stream);
        status = result ? fail(gpu, result, "start a copy", error) : 0;
    }
    gtopo_gpu_leave(gpu);
    return status;
}

static int lane_load_gpu(const struct gtopo_region *region, unsigned lane, size_t offset, void *pinned, size_t size,
                         struct gtopo_error *error)
{
    return start_lane(region, lane, offset, NULL, pinned, size, error);
}

static int lane_store_gpu(const struct gtopo_region *region, unsigned lane, size_t offset, const void *pinned,
                          size_t size, struct gtopo_error *error)
{
    return start_lane(region, lane, offset, pinned, NULL, size, error);
}

static int lane_done_gpu(const struct gtopo_region *region, unsigned number, struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = state_of(region);
    int result, status;

    if (number >= GTOPO_LANES_MAX || !gpu->lanes[number].event)
        return 1;
    if ((status = gtopo_gpu_enter(gpu, error)))
        return status;
    result = gpu->cuda->cuEventQuery(gpu->lanes[number].event);
    gtopo_gpu_leave(gpu);
    if (result == GTOPO_CU_NOT_READY)
        return 0;
    return result ? fail(gpu, result, "copy", error) : 1;
}

const struct gtopo_memory gtopo_memory_gpu = {
    .name = "gpu",
    .allocate = allocate_gpu,
    .release = release_gpu,
    .store = store_gpu,
    .load = load_gpu,
    .facts = facts_gpu,
    .export_dmabuf = export_gpu,
    .begin_flush = begin_flush_gpu,
    .end_flush = end_flush_gpu,
    .flush = flush_gpu,
    .pin = pin_gpu,
    .unpin = unpin_gpu,
    .lane_load = lane_load_gpu,
    .lane_store = lane_store_gpu,
    .lane_done = lane_done_gpu,
};
