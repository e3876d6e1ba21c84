/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the stand-in for libcuda.so.1; cuda.c says what it is. */
#include "tests/fakes/cuda_fake.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#if __has_include(<linux/udmabuf.h>)
#include <linux/udmabuf.h>
#endif

#define PAGE ((size_t)65536)

/* A memfd that is mapped twice: at the address that the program is given, and where the fake itself reads and writes.
 */
struct allocation {
    struct allocation *next;
    const struct context *owner;
    int fd;
    uint8_t *mapping, *shadow;
    size_t mapped;
    uint64_t address; /* that was handed out */
    size_t size;
};
struct registration {
    struct registration *next;
    uint8_t *data;
    size_t size;
};
static struct allocation *allocations;
static struct registration *registrations;

#define BEGIN(needs)                                                                                                   \
    do {                                                                                                               \
        int begun = fake_begin(__func__, needs);                                                                       \
        if (begun)                                                                                                     \
            return begun;                                                                                              \
    } while (0)

/* ---- allocations ---- */

static void discard(struct allocation *a)
{
    if (a->mapping)
        munmap(a->mapping, a->mapped);
    if (a->shadow)
        munmap(a->shadow, a->mapped);
    if (a->fd >= 0)
        close(a->fd);
    free(a);
}

/* Addresses of the GPU's are aligned to its pages. */
static uint8_t *map_aligned(int fd, size_t size, int access)
{
    uint8_t *room = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *start;
    size_t before;

    if (room == MAP_FAILED)
        return NULL;
    start = (uint8_t *)(((uintptr_t)room + PAGE - 1) / PAGE * PAGE);
    before = (size_t)(start - room);
    if (mmap(start, size, access, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(room, size + PAGE);
        return NULL;
    }
    if (before)
        munmap(room, before);
    if (PAGE > before)
        munmap(start + size, PAGE - before);
    return start;
}

static struct allocation *make(size_t size)
{
    struct allocation *a = calloc(1, sizeof *a);
    size_t unaligned = (size_t)fake_number("UNALIGNED", 0);
    int touched = strcmp(fake_option("ACCESS", "all"), "none");

    if (!a)
        return NULL;
    a->size = size;
    a->mapped = (size + unaligned + PAGE - 1) / PAGE * PAGE;
    a->fd = memfd_create("fake GPU memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (a->fd < 0 || ftruncate(a->fd, (off_t)a->mapped) || fcntl(a->fd, F_ADD_SEALS, F_SEAL_SHRINK))
        goto failed;
    a->shadow = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
    if (a->shadow == MAP_FAILED) {
        a->shadow = NULL;
        goto failed;
    }
    a->mapping = map_aligned(a->fd, a->mapped, touched ? PROT_READ | PROT_WRITE : PROT_NONE);
    if (!a->mapping)
        goto failed;
    a->address = (uint64_t)(uintptr_t)a->mapping + unaligned;
    memset(a->shadow, 0xa5, a->mapped); /* fresh memory is not zero */
    return a;
failed:
    discard(a);
    return NULL;
}

API int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    struct allocation *a;
    size_t used = 0;
    int result = OK;

    BEGIN(NEEDS_CONTEXT);
    if (!size || !address)
        return INVALID_VALUE;
    pthread_mutex_lock(&fake_lock);
    for (a = allocations; a; a = a->next)
        used += a->owner == fake_current() ? a->size : 0;
    if (used + size > (size_t)fake_number("MEMORY", 1l << 30) || !(a = make(size)))
        result = OUT_OF_MEMORY;
    else {
        a->owner = fake_current();
        a->next = allocations;
        allocations = a;
        *address = a->address;
    }
    pthread_mutex_unlock(&fake_lock);
    return result;
}

API int cuMemFree_v2(uint64_t address)
{
    struct allocation **place, *found;

    BEGIN(NEEDS_CONTEXT);
    pthread_mutex_lock(&fake_lock);
    fake_idle(fake_current(), "memory is freed while a stream of its context waits");
    for (place = &allocations; *place && (*place)->address != address; place = &(*place)->next)
        ;
    found = *place;
    if (found) {
        *place = found->next;
        discard(found);
    }
    pthread_mutex_unlock(&fake_lock);
    return found ? OK : INVALID_VALUE;
}

/* The allocation whose pages hold a range. */
static struct allocation *holder(uint64_t address, size_t size)
{
    for (struct allocation *a = allocations; a; a = a->next) {
        uint64_t start = (uint64_t)(uintptr_t)a->mapping;

        if (address >= start && size <= a->mapped && address - start <= a->mapped - size)
            return a;
    }
    return NULL;
}

uint8_t *fake_bytes(uint64_t address, size_t size, const struct context *owner)
{
    struct allocation *a;
    uint8_t *bytes = NULL;

    pthread_mutex_lock(&fake_lock);
    a = holder(address, size);
    if (a && address >= a->address && size <= a->size && address - a->address <= a->size - size &&
        (!owner || owner == a->owner))
        bytes = a->shadow + (address - (uint64_t)(uintptr_t)a->mapping);
    pthread_mutex_unlock(&fake_lock);
    return bytes;
}

API int cuPointerSetAttribute(const void *value, int attribute, uint64_t address)
{
    BEGIN(NEEDS_CONTEXT);
    return value && attribute == 6 && fake_bytes(address, 1, NULL) ? OK : INVALID_VALUE;
}

/* ---- dma-buf ---- */

#ifndef GTOPO_FAKE_CUDA_OLD
static int make_dmabuf(const struct allocation *a, uint64_t offset, size_t size)
{
    char path[64];
    int fd = -1;
#ifdef UDMABUF_CREATE
    struct udmabuf_create wanted = {
        .memfd = (uint32_t)a->fd, .flags = UDMABUF_FLAGS_CLOEXEC, .offset = offset, .size = size};
    int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

    if (maker >= 0) {
        fd = ioctl(maker, UDMABUF_CREATE, &wanted);
        close(maker);
    }
#else
    (void)size;
#endif
    if (fd >= 0)
        return fd;
    /* opened, not duplicated: with a file position of its own */
    snprintf(path, sizeof path, "/proc/self/fd/%d", a->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        lseek(fd, (off_t)offset, SEEK_SET);
    return fd;
}

API int cuMemGetHandleForAddressRange(void *handle, uint64_t address, size_t size, int kind, unsigned long long flags)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct allocation *a;
    int fd = -1;

    BEGIN(NEEDS_CONTEXT);
    if (kind != 1 || flags > 1 || !size || address % page || size % page)
        return INVALID_VALUE;
    if (flags && fake_number("NO_PCIE", 0))
        return INVALID_VALUE;
    if (fake_number("NO_DMABUF", 0))
        return NOT_SUPPORTED;
    pthread_mutex_lock(&fake_lock);
    a = holder(address, size);
    if (a)
        fd = make_dmabuf(a, address - (uint64_t)(uintptr_t)a->mapping, size);
    pthread_mutex_unlock(&fake_lock);
    if (!a)
        return INVALID_VALUE;
    if (fd < 0)
        return OUT_OF_MEMORY;
    memcpy(handle, &fd, sizeof fd);
    return OK;
}
#endif

/* ---- host memory ---- */

API int cuMemHostRegister_v2(void *data, size_t size, unsigned flags)
{
    struct registration *r;
    int result = OK;

    BEGIN(NEEDS_CONTEXT);
    if (!data || !size || flags > 15)
        return INVALID_VALUE;
    pthread_mutex_lock(&fake_lock);
    for (r = registrations; r; r = r->next)
        if ((uint8_t *)data < r->data + r->size && r->data < (uint8_t *)data + size)
            result = HOST_MEMORY_ALREADY_REGISTERED;
    r = result ? NULL : malloc(sizeof *r);
    if (!result && !r)
        result = OUT_OF_MEMORY;
    if (!result) {
        *r = (struct registration){registrations, data, size};
        registrations = r;
    }
    pthread_mutex_unlock(&fake_lock);
    return result;
}

API int cuMemHostUnregister(void *data)
{
    struct registration **place, *found;

    BEGIN(NEEDS_CONTEXT);
    pthread_mutex_lock(&fake_lock);
    fake_idle(fake_current(), "host memory is unlocked while a stream of the context waits");
    for (place = &registrations; *place && (*place)->data != data; place = &(*place)->next)
        ;
    found = *place;
    if (found)
        *place = found->next;
    pthread_mutex_unlock(&fake_lock);
    free(found);
    return found ? OK : HOST_MEMORY_NOT_REGISTERED;
}

int fake_is_pinned(const void *data, size_t size)
{
    const uint8_t *start = data;
    int is_pinned = 0;

    pthread_mutex_lock(&fake_lock);
    for (const struct registration *r = registrations; r; r = r->next)
        is_pinned |= start >= r->data && start + size <= r->data + r->size;
    pthread_mutex_unlock(&fake_lock);
    return is_pinned;
}

API int cuMemHostGetDevicePointer_v2(uint64_t *address, void *data, unsigned flags)
{
    BEGIN(NEEDS_CONTEXT);
    if (flags || !fake_is_pinned(data, 1))
        return INVALID_VALUE;
    *address = (uint64_t)(uintptr_t)data + HOST_ALIAS;
    return OK;
}

/* ---- copies ---- */

void fake_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    static char text[32]; /* that the count belongs to */
    static long copies;
    const char *now = fake_option("CORRUPT", "");
    int is_bad;

    pthread_mutex_lock(&fake_lock);
    if (strncmp(text, now, sizeof text - 1)) {
        strncpy(text, now, sizeof text - 1);
        copies = 0;
    }
    is_bad = ++copies == atol(text);
    pthread_mutex_unlock(&fake_lock);
    memmove(to, from, size);
    if (is_bad && size)
        to[size / 2] ^= 0x40;
}

/* ---- what is left ---- */

API unsigned gtopo_fake_cuda_left(void)
{
    unsigned left = fake_stream_leftovers();

    pthread_mutex_lock(&fake_lock);
    for (const struct allocation *a = allocations; a; a = a->next)
        left++;
    for (const struct registration *r = registrations; r; r = r->next)
        left++;
    for (int i = 0; i < DEVICES_MAX; i++)
        left += fake_contexts[i].retained + (unsigned)__builtin_popcount(fake_contexts[i].peers);
    pthread_mutex_unlock(&fake_lock);
    return left;
}
