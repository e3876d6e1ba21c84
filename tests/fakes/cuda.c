/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcuda.so.1, for tests on machines without an NVIDIA GPU: the functions of the CUDA driver that the
 * library calls, over memory of the host, failing as the real ones do. It is never installed. It knows nothing of
 * speed: a figure that was measured with it means nothing.
 *
 * Stricter than the driver where that is the point of a test: a call that would hang the driver for ever (freeing
 * memory while a stream of the context waits, queueing more than fits behind something that waits) ends the process
 * with a sentence; streams are only taken from threads that have their context.
 *
 * Environment, read at each call:
 *
 *   GTOPO_FAKE_CUDA_GPUS=2         how many GPUs; 0: cuInit says CUDA_ERROR_NO_DEVICE
 *   GTOPO_FAKE_CUDA_PCI=A,B,…      their PCI addresses ("0000:1b:00.0" and every 0x20 buses further)
 *   GTOPO_FAKE_CUDA_UUIDS=A,B,…    their UUIDs ("GPU-00000000-0000-0000-0000-000000000001" and on, as the stand-in for
 *                                  NVML has them)
 *   GTOPO_FAKE_CUDA_MEMORY=N       bytes of memory of each (1 GiB)
 *   GTOPO_FAKE_CUDA_DEVICE_NAME=…  their name ("Fake GPU")
 *   GTOPO_FAKE_CUDA_MIG=1          their name is that of a MIG slice
 *   GTOPO_FAKE_CUDA_COHERENT=1     they share page tables with the host
 *   GTOPO_FAKE_CUDA_NO_GPUDIRECT=1 other devices cannot reach their memory (only the attribute says so)
 *   GTOPO_FAKE_CUDA_NO_DMABUF=1    no export as dma-buf
 *   GTOPO_FAKE_CUDA_NO_PCIE=1      no export with the PCIe mapping, as drivers before CUDA 12.8
 *   GTOPO_FAKE_CUDA_NO_PEER=1      no access from one to another
 *   GTOPO_FAKE_CUDA_ORDERING=100   GPU_DIRECT_RDMA_WRITES_ORDERING; below 100 a flush is needed
 *   GTOPO_FAKE_CUDA_FLUSH=1        GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS
 *   GTOPO_FAKE_CUDA_UNALIGNED=N    allocations begin N bytes into a page (a multiple of 256)
 *   GTOPO_FAKE_CUDA_ACCESS=all     device addresses can be read and written by the processor, so that rdma_rxe can
 *                                  register them as it would with nvidia-peermem; "none": not even read, so that who
 *                                  touches them crashes, and registering them fails with EFAULT
 *   GTOPO_FAKE_CUDA_QUEUE=1024     operations that a stream takes before a call blocks
 *   GTOPO_FAKE_CUDA_CORRUPT=N      one bit of the middle byte of the N-th copy from now on is wrong
 *   GTOPO_FAKE_CUDA_FAIL=NAME:AFTER:CODE[:COUNT],…
 *                                  that function fails with that result after so many calls that do not, from then on,
 *                                  or so many times. Counting begins anew when the text changes.
 *
 * An exported dma-buf is a real one where there is /dev/udmabuf; else a memfd whose file position says where in it the
 * exported range begins. With -DGTOPO_FAKE_CUDA_OLD it is the library of an old driver, without what is optional.
 *
 * For tests, not of the driver: gtopo_fake_cuda_left() counts what was made and not given back; gtopo_fake_cuda_calls()
 * how often a function was called.
 */
#include "tests/fakes/cuda_fake.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(20000000000)
#define FAILURES_MAX 16
#define NAMES_MAX 64
#define STACK_MAX 16

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_change = PTHREAD_COND_INITIALIZER;
struct context fake_contexts[DEVICES_MAX];

static pid_t started_by; /* a child of who started it cannot use it */
static __thread struct context *stack[STACK_MAX];
static __thread int depth;

/* ---- options ---- */

const char *fake_option(const char *name, const char *usual)
{
    char key[64];
    const char *value;

    snprintf(key, sizeof key, "GTOPO_FAKE_CUDA_%s", name);
    value = getenv(key);
    return value && *value ? value : usual;
}

long fake_number(const char *name, long usual)
{
    const char *value = fake_option(name, NULL);

    return value ? strtol(value, NULL, 0) : usual;
}

static int device_count(void)
{
    long count = fake_number("GPUS", 2);

    return count < 0 ? 0 : count > DEVICES_MAX ? DEVICES_MAX : (int)count;
}

void fake_die(const char *why)
{
    fprintf(stderr, "fake libcuda: %s\n", why);
    abort();
}

uint64_t fake_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int fake_await(uint64_t since_ns)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&fake_change, &fake_lock, &until);
    return fake_now_ns() - since_ns > PATIENCE_NS;
}

/* ---- what every call goes through ---- */

static struct {
    const char *name;
    unsigned long calls;
} called[NAMES_MAX];

static void count_call(const char *name)
{
    int i = 0;

    while (i < NAMES_MAX && called[i].name && strcmp(called[i].name, name))
        i++;
    if (i < NAMES_MAX) {
        called[i].name = name;
        called[i].calls++;
    }
}

API unsigned long gtopo_fake_cuda_calls(const char *name)
{
    unsigned long calls = 0;

    pthread_mutex_lock(&fake_lock);
    for (int i = 0; i < NAMES_MAX && called[i].name; i++)
        if (!strcmp(called[i].name, name))
            calls = called[i].calls;
    pthread_mutex_unlock(&fake_lock);
    return calls;
}

/* The failure that was asked for, or 0. */
static int wanted_failure(const char *name)
{
    static char text[512]; /* that the counts belong to */
    static unsigned long calls[FAILURES_MAX];
    const char *now = fake_option("FAIL", ""), *entry = now;

    if (strncmp(text, now, sizeof text - 1)) {
        snprintf(text, sizeof text, "%s", now);
        memset(calls, 0, sizeof calls);
    }
    for (int i = 0; i < FAILURES_MAX && *entry; i++) {
        unsigned long after = 0, count = ~0ul;
        char wanted[64] = "";
        int code = 0;

        if (sscanf(entry, "%63[^:]:%lu:%d:%lu", wanted, &after, &code, &count) < 3)
            fake_die("GTOPO_FAKE_CUDA_FAIL is not NAME:AFTER:CODE[:COUNT],…");
        if (!strcmp(wanted, name)) {
            unsigned long call = calls[i]++;

            if (call >= after && call - after < count)
                return code;
        }
        entry += strcspn(entry, ",");
        entry += *entry == ',';
    }
    return 0;
}

struct context *fake_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

int fake_begin(const char *name, enum needs needs)
{
    int result;

    pthread_mutex_lock(&fake_lock);
    count_call(name);
    result = wanted_failure(name);
    pthread_mutex_unlock(&fake_lock);
    if (result || needs == NEEDS_NOTHING)
        return result;
    if (started_by != getpid())
        return NOT_INITIALIZED;
    if (needs == NEEDS_INIT)
        return OK;
    if (!fake_current())
        return INVALID_CONTEXT;
    return fake_current()->retained ? OK : CONTEXT_IS_DESTROYED;
}

#define BEGIN(needs)                                                                                                   \
    do {                                                                                                               \
        int begun = fake_begin(__func__, needs);                                                                       \
        if (begun)                                                                                                     \
            return begun;                                                                                              \
    } while (0)

API int cuInit(unsigned flags)
{
    BEGIN(NEEDS_NOTHING);
    if (flags)
        return INVALID_VALUE;
    if (!device_count())
        return NO_DEVICE;
    if (started_by && started_by != getpid())
        return NOT_INITIALIZED;
    started_by = getpid();
    return OK;
}

API int cuGetErrorName(int result, const char **name)
{
    static const struct {
        int result;
        const char *name;
    } names[] = {{1, "CUDA_ERROR_INVALID_VALUE"},    {2, "CUDA_ERROR_OUT_OF_MEMORY"},   {100, "CUDA_ERROR_NO_DEVICE"},
                 {101, "CUDA_ERROR_INVALID_DEVICE"}, {801, "CUDA_ERROR_NOT_SUPPORTED"}, {999, "CUDA_ERROR_UNKNOWN"}};

    *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].result == result)
            *name = names[i].name;
    return *name ? OK : INVALID_VALUE;
}

/* ---- devices ---- */

static int is_device(int device)
{
    return device >= 0 && device < device_count();
}

static void pci_address(int device, char *text, size_t size)
{
    const char *list = fake_option("PCI", "");

    for (int i = 0; i < device && *list; i++) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    if (*list)
        snprintf(text, size, "%.*s", (int)strcspn(list, ","), list);
    else
        snprintf(text, size, "0000:%02X:00.0", (0x1b + 0x20 * device) & 0xff);
}

API int cuDeviceGetCount(int *count)
{
    BEGIN(NEEDS_INIT);
    *count = device_count();
    return OK;
}

API int cuDeviceGet(int *device, int ordinal)
{
    BEGIN(NEEDS_INIT);
    if (!is_device(ordinal))
        return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}

/* In the order of the list; hidden GPUs are not in it. */
API int cuDeviceGetUuid(unsigned char uuid[16], int device)
{
    const char *list = fake_option("UUIDS", "");

    BEGIN(NEEDS_INIT);
    if (!is_device(device))
        return INVALID_DEVICE;
    memset(uuid, 0, 16);
    uuid[15] = (unsigned char)(device + 1);
    for (int i = 0; i < device; i++) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    list += strncmp(list, "GPU-", 4) ? 0 : 4;
    for (int byte = 0; byte < 16 && *list && *list != ','; byte++, list += 2) {
        unsigned value = 0;

        list += *list == '-';
        if (sscanf(list, "%2x", &value) != 1)
            fake_die("GTOPO_FAKE_CUDA_UUIDS is not a list of UUIDs");
        uuid[byte] = (unsigned char)value;
    }
    return OK;
}

API int cuDeviceGetName(char *name, int size, int device)
{
    BEGIN(NEEDS_INIT);
    if (!is_device(device))
        return INVALID_DEVICE;
    snprintf(name, (size_t)size, "%s%s", fake_option("DEVICE_NAME", "Fake GPU"),
             fake_number("MIG", 0) ? " MIG 1g.10gb" : "");
    return OK;
}

API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    BEGIN(NEEDS_INIT);
    if (!is_device(device))
        return INVALID_DEVICE;
    switch (attribute) {
    case 100:
        *value = fake_number("COHERENT", 0) != 0;
        return OK;
    case 116:
        *value = !fake_number("NO_GPUDIRECT", 0);
        return OK;
    case 117:
        *value = (int)fake_number("FLUSH", 1);
        return OK;
    case 118:
        *value = (int)fake_number("ORDERING", 100);
        return OK;
    case 124:
        *value = !fake_number("NO_DMABUF", 0);
        return OK;
    }
    return INVALID_VALUE;
}

API int cuDeviceGetByPCIBusId(int *device, const char *address)
{
    char own[32];

    BEGIN(NEEDS_INIT);
    for (int i = 0; i < device_count(); i++) {
        pci_address(i, own, sizeof own);
        if (!strcasecmp(own, address)) {
            *device = i;
            return OK;
        }
    }
    return INVALID_DEVICE;
}

API int cuDeviceGetPCIBusId(char *address, int size, int device)
{
    BEGIN(NEEDS_INIT);
    if (!is_device(device))
        return INVALID_DEVICE;
    pci_address(device, address, (size_t)size);
    return OK;
}

API int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    BEGIN(NEEDS_INIT);
    if (!is_device(device) || !is_device(peer))
        return INVALID_DEVICE;
    *can = device != peer && !fake_number("NO_PEER", 0);
    return OK;
}

/* ---- contexts ---- */

static int is_context(const struct context *context)
{
    return context >= fake_contexts && context < fake_contexts + DEVICES_MAX;
}

API int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
    BEGIN(NEEDS_INIT);
    if (!is_device(device))
        return INVALID_DEVICE;
    pthread_mutex_lock(&fake_lock);
    fake_contexts[device].retained++;
    pthread_mutex_unlock(&fake_lock);
    *context = &fake_contexts[device];
    return OK;
}

API int cuDevicePrimaryCtxRelease_v2(int device)
{
    struct context *context;
    int result = OK;

    BEGIN(NEEDS_INIT);
    if (!is_device(device))
        return INVALID_DEVICE;
    context = &fake_contexts[device];
    pthread_mutex_lock(&fake_lock);
    if (!context->retained)
        result = INVALID_CONTEXT;
    else if (context->retained == 1) {
        fake_idle(context, "a context is destroyed while a stream of it waits");
        context->peers = 0;
    }
    context->retained -= !result;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

API int cuCtxPushCurrent_v2(struct context *context)
{
    BEGIN(NEEDS_INIT);
    if (!is_context(context))
        return INVALID_CONTEXT;
    if (!context->retained)
        return CONTEXT_IS_DESTROYED;
    if (depth == STACK_MAX)
        fake_die("contexts are pushed and never popped");
    stack[depth++] = context;
    return OK;
}

API int cuCtxPopCurrent_v2(struct context **context)
{
    BEGIN(NEEDS_INIT);
    if (!depth)
        return INVALID_CONTEXT;
    *context = stack[--depth];
    return OK;
}

API int cuCtxGetCurrent(struct context **context)
{
    BEGIN(NEEDS_INIT);
    *context = fake_current();
    return OK;
}

API int cuCtxEnablePeerAccess(struct context *peer, unsigned flags)
{
    unsigned bit;
    int result = OK;

    BEGIN(NEEDS_CONTEXT);
    if (flags)
        return INVALID_VALUE;
    if (!is_context(peer) || !peer->retained)
        return INVALID_CONTEXT;
    if (peer == fake_current())
        return INVALID_DEVICE;
    if (fake_number("NO_PEER", 0))
        return PEER_ACCESS_UNSUPPORTED;
    bit = 1u << (peer - fake_contexts);
    pthread_mutex_lock(&fake_lock);
    if (fake_current()->peers & bit)
        result = PEER_ACCESS_ALREADY_ENABLED;
    fake_current()->peers |= bit;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

API int cuCtxDisablePeerAccess(struct context *peer)
{
    unsigned bit;
    int result = OK;

    BEGIN(NEEDS_CONTEXT);
    if (!is_context(peer))
        return INVALID_CONTEXT;
    bit = 1u << (peer - fake_contexts);
    pthread_mutex_lock(&fake_lock);
    if (!(fake_current()->peers & bit))
        result = PEER_ACCESS_NOT_ENABLED;
    fake_current()->peers &= ~bit;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

#ifndef GTOPO_FAKE_CUDA_OLD
API int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    BEGIN(NEEDS_CONTEXT);
    if (target || (scope != 100 && scope != 200))
        return INVALID_VALUE;
    return fake_number("FLUSH", 1) & 1 ? OK : NOT_SUPPORTED;
}
#endif
