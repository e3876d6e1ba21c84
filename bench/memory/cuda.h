/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA driver API that we use, from libcuda.so.1 of the machine's NVIDIA driver.
 *
 * The library is opened at first use, so that one build runs with and without a driver; nothing is taken from the CUDA
 * Toolkit. Types and numbers are those of the driver's binary interface, which keeps an old function's meaning under
 * its name and gives a new one a "_v2".
 */
#ifndef GTOPO_BENCH_MEMORY_CUDA_H
#define GTOPO_BENCH_MEMORY_CUDA_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

struct gtopo_cu_context; /* CUcontext, CUstream, CUevent */
struct gtopo_cu_stream;
struct gtopo_cu_event;

/* Results that the code looks at. */
#define GTOPO_CU_INVALID_VALUE 1
#define GTOPO_CU_INVALID_DEVICE 101
#define GTOPO_CU_NOT_READY 600
#define GTOPO_CU_PEER_ACCESS_ALREADY_ENABLED 704
#define GTOPO_CU_NOT_SUPPORTED 801

/* cuDeviceGetAttribute */
#define GTOPO_CU_USES_HOST_PAGE_TABLES 100
#define GTOPO_CU_GPUDIRECT_SUPPORTED 116
#define GTOPO_CU_FLUSH_OPTIONS 117 /* bit 0: cuFlushGPUDirectRDMAWrites() works */
#define GTOPO_CU_WRITES_ORDERING 118
#define GTOPO_CU_DMABUF_SUPPORTED 124

#define GTOPO_CU_ORDERED_FOR_OWNER 100 /* of WRITES_ORDERING, and the scope of a flush */
#define GTOPO_CU_FLUSH_HOST 1u         /* of FLUSH_OPTIONS */
#define GTOPO_CU_FLUSH_CURRENT_CONTEXT 0
#define GTOPO_CU_SYNC_MEMOPS 6   /* cuPointerSetAttribute */
#define GTOPO_CU_DMABUF_FD 1     /* cuMemGetHandleForAddressRange: kind of handle … */
#define GTOPO_CU_DMABUF_PCIE 1   /* … and flag: mapped through PCIe */
#define GTOPO_CU_PORTABLE 1u     /* cuMemHostRegister: for all contexts … */
#define GTOPO_CU_DEVICEMAP 2u    /* … and with an address of the device's */
#define GTOPO_CU_NON_BLOCKING 1u /* cuStreamCreate: the default stream is not waited for */
#define GTOPO_CU_NO_TIMING 2u    /* cuEventCreate */
#define GTOPO_CU_WAIT_GEQ 0u     /* cuStreamWaitValue32 */

/* It takes these lists for multiplications. */
/* clang-format off */
/* F(name, parameters): without one of these the driver is too old. */
#define GTOPO_CUDA_NEEDED(F)                                                                                           \
    F(cuInit, (unsigned flags))                                                                                        \
    F(cuGetErrorName, (int result, const char **name))                                                                 \
    F(cuDeviceGet, (int *device, int ordinal))                                                                         \
    F(cuDeviceGetCount, (int *count))                                                                                  \
    F(cuDeviceGetName, (char *name, int size, int device))                                                             \
    F(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                   \
    F(cuDeviceGetByPCIBusId, (int *device, const char *address))                                                       \
    F(cuDeviceGetPCIBusId, (char *address, int size, int device))                                                      \
    F(cuDeviceCanAccessPeer, (int *can, int device, int peer))                                                         \
    F(cuDevicePrimaryCtxRetain, (struct gtopo_cu_context **context, int device))                                       \
    F(cuDevicePrimaryCtxRelease_v2, (int device))                                                                      \
    F(cuCtxPushCurrent_v2, (struct gtopo_cu_context *context))                                                         \
    F(cuCtxPopCurrent_v2, (struct gtopo_cu_context **context))                                                         \
    F(cuCtxEnablePeerAccess, (struct gtopo_cu_context *peer, unsigned flags))                                          \
    F(cuCtxDisablePeerAccess, (struct gtopo_cu_context *peer))                                                         \
    F(cuMemAlloc_v2, (uint64_t *address, size_t size))                                                                 \
    F(cuMemFree_v2, (uint64_t address))                                                                                \
    F(cuMemHostRegister_v2, (void *data, size_t size, unsigned flags))                                                 \
    F(cuMemHostUnregister, (void *data))                                                                               \
    F(cuMemHostGetDevicePointer_v2, (uint64_t *address, void *data, unsigned flags))                                   \
    F(cuMemsetD8Async, (uint64_t address, unsigned char value, size_t size, struct gtopo_cu_stream *stream))           \
    F(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t size, struct gtopo_cu_stream *stream))              \
    F(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t size, struct gtopo_cu_stream *stream))                    \
    F(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t size, struct gtopo_cu_stream *stream))                 \
    F(cuMemcpyPeerAsync, (uint64_t to, struct gtopo_cu_context *to_context, uint64_t from,                             \
                          struct gtopo_cu_context *from_context, size_t size, struct gtopo_cu_stream *stream))         \
    F(cuPointerSetAttribute, (const void *value, int attribute, uint64_t address))                                     \
    F(cuStreamCreate, (struct gtopo_cu_stream **stream, unsigned flags))                                               \
    F(cuStreamDestroy_v2, (struct gtopo_cu_stream *stream))                                                            \
    F(cuStreamQuery, (struct gtopo_cu_stream *stream))                                                                 \
    F(cuStreamWaitEvent, (struct gtopo_cu_stream *stream, struct gtopo_cu_event *event, unsigned flags))               \
    F(cuEventCreate, (struct gtopo_cu_event **event, unsigned flags))                                                  \
    F(cuEventDestroy_v2, (struct gtopo_cu_event *event))                                                               \
    F(cuEventRecord, (struct gtopo_cu_event *event, struct gtopo_cu_stream *stream))                                   \
    F(cuEventQuery, (struct gtopo_cu_event *event))                                                                    \
    F(cuEventElapsedTime, (float *ms, struct gtopo_cu_event *start, struct gtopo_cu_event *end))

/* NULL where the driver has them not. */
#define GTOPO_CUDA_OPTIONAL(F)                                                                                         \
    F(cuMemGetHandleForAddressRange,                                                                                   \
      (void *handle, uint64_t address, size_t size, int kind, unsigned long long flags))                               \
    F(cuFlushGPUDirectRDMAWrites, (int target, int scope))                                                             \
    F(cuStreamWaitValue32_v2, (struct gtopo_cu_stream *stream, uint64_t address, uint32_t value, unsigned flags))
/* clang-format on */

struct gtopo_cuda {
#define GTOPO_CUDA_MEMBER(name, parameters) int(*name) parameters;
    GTOPO_CUDA_NEEDED(GTOPO_CUDA_MEMBER)
    GTOPO_CUDA_OPTIONAL(GTOPO_CUDA_MEMBER)
#undef GTOPO_CUDA_MEMBER
};

/*
 * The driver's functions, ready for use; they stay as long as the process. Thread-safe. A driver that fails to start is
 * tried again at the next call. Errors: GTOPO_EMISSING, GTOPO_ESYSTEM, GTOPO_EDEVICE, GTOPO_ENOMEM.
 */
int gtopo_cuda_load(const struct gtopo_cuda **cuda, struct gtopo_error *error);

/*
 * What a function of the driver answered, in words: "GPU 0: cannot WHAT: …". `which` may be NULL. Returns the status
 * that fits.
 */
int gtopo_cuda_fail(const struct gtopo_cuda *cuda, int result, const char *which, const char *what,
                    struct gtopo_error *error);

#endif
