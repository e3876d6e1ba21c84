/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory: with the stand-in driver, and with GTOPO_TEST_GPU=real on the machine's own GPU. */
#include "fake_cuda.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include "bench/clock.h"
#include "bench/memory/gpu.h"

#define SIZE ((size_t)300000)

static void a_gpu_that_is_not_there_is_missing(void **state)
{
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    assert_fails(GTOPO_EMISSING, allocate("gpu:999", SIZE, &region, &error));
    assert_contains(error.message, "no GPU 999");
    assert_fails(GTOPO_EMISSING, allocate("gpu:ffff:ff:1f.7", SIZE, &region, &error));
    assert_contains(error.message, "ffff:ff:1f.7");
    assert_null(region.state);
}

/* ---- memory ---- */

static void memory_is_aligned_zeroed_and_keeps_bytes(void **state)
{
    static uint8_t bytes[SIZE], back[SIZE];
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    assert_int_equal((uintptr_t)region.data % 65536, 0);
    memset(back, 1, SIZE);
    memset(bytes, 0, SIZE);
    assert_ok(region.memory->load(&region, 0, back, SIZE, &error));
    assert_memory_equal(back, bytes, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    assert_ok(region.memory->store(&region, 0, bytes, SIZE, &error));
    assert_ok(region.memory->store(&region, SIZE - 5, "fünf", 5, &error));
    memcpy(bytes + SIZE - 5, "fünf", 5);
    assert_ok(region.memory->load(&region, 0, back, SIZE, &error));
    assert_memory_equal(back, bytes, SIZE);
    assert_ok(region.memory->load(&region, 1001, back, 77, &error));
    assert_memory_equal(back, bytes + 1001, 77);
    region.memory->release(&region);
    assert_null(region.data);
    region.memory->release(&region);
}

static void a_gpu_is_found_by_its_pci_address(void **state)
{
    struct gtopo_memory_facts facts, same;
    struct gtopo_region region, other;
    struct gtopo_error error;
    char name[32];

    (void)state;
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    region.memory->facts(&region, &facts);
    assert_true(facts.name[0] && strlen(facts.pci_address) >= 12);
    snprintf(name, sizeof name, "gpu:%s", facts.pci_address);
    assert_ok(allocate(name, SIZE, &other, &error));
    other.memory->facts(&other, &same);
    assert_memory_equal(&facts, &same, sizeof facts);
    other.memory->release(&other);
    region.memory->release(&region);
}

static void facts_of_no_memory_are_nothing(void **state)
{
    struct gtopo_memory_facts facts = {.mig = 7}, none = {0};
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    assert_ok(gtopo_memory_find("gpu:0", &region, &error));
    region.memory->facts(&region, &facts);
    assert_memory_equal(&facts, &none, sizeof facts);
}

static void facts_are_the_drivers(void **state)
{
    struct gtopo_memory_facts facts;
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    assert_ok(allocate("gpu:1", SIZE, &region, &error));
    region.memory->facts(&region, &facts);
    assert_string_equal(facts.name, "Fake GPU");
    assert_string_equal(facts.pci_address, "0000:3b:00.0");
    assert_false(facts.mig || facts.no_gpudirect || facts.no_dmabuf || facts.coherent || facts.flush_is_needed);
    fake_set("MIG", "1");
    fake_set("NO_GPUDIRECT", "1");
    fake_set("NO_DMABUF", "1");
    fake_set("COHERENT", "1");
    fake_set("ORDERING", "0");
    fake_set("PCI", "0001:01:00.0,00010000:0A:00.0");
    region.memory->facts(&region, &facts);
    assert_true(facts.mig && facts.no_gpudirect && facts.no_dmabuf && facts.coherent && facts.flush_is_needed);
    assert_string_equal(facts.pci_address, "10000:0a:00.0");
    fake_set("FAIL", "cuDeviceGetAttribute:0:1,cuDeviceGetName:0:1,cuDeviceGetPCIBusId:0:1");
    region.memory->facts(&region, &facts);
    assert_false(facts.no_gpudirect || facts.coherent); /* what is not said is not held against it */
    assert_true(facts.no_dmabuf && !facts.name[0] && !facts.pci_address[0]);
    region.memory->release(&region);
}

static void memory_that_is_not_enough_is_said(void **state)
{
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    fake_set("MEMORY", "1000000");
    assert_fails(GTOPO_ENOMEM, allocate("gpu:0", 2000000, &region, &error));
    assert_contains(error.message, "GPU 0: cannot allocate 2000000 bytes");
    assert_contains(error.message, "CUDA_ERROR_OUT_OF_MEMORY, 2");
}

static void the_programs_context_stays(void **state)
{
    struct gtopo_cu_context *own, *now = NULL;
    int (*current)(struct gtopo_cu_context **);
    const struct gtopo_cuda *cuda;
    struct gtopo_region region;
    struct gtopo_error error;
    char byte;

    (void)state;
    fake_symbol(RTLD_DEFAULT, "cuCtxGetCurrent", &current);
    if (!current) /* not in the global scope */
        fake_symbol(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuCtxGetCurrent", &current);
    assert_ok(gtopo_cuda_load(&cuda, &error));
    assert_int_equal(cuda->cuDevicePrimaryCtxRetain(&own, 0), 0);
    assert_int_equal(cuda->cuCtxPushCurrent_v2(own), 0);
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    assert_ok(region.memory->load(&region, 0, &byte, 1, &error));
    region.memory->release(&region);
    assert_int_equal(current(&now), 0);
    assert_ptr_equal(now, own);
    assert_int_equal(cuda->cuCtxPopCurrent_v2(&now), 0);
    assert_ok(allocate("gpu:0", SIZE, &region, &error)); /* and none stays none */
    assert_int_equal(current(&now), 0);
    assert_null(now);
    region.memory->release(&region);
    assert_int_equal(cuda->cuDevicePrimaryCtxRelease_v2(0), 0);
}

/* ---- dma-buf ---- */

/* The byte at a place of an exported range, read through the descriptor. */
static int exported_byte(int fd, uint64_t place, size_t size)
{
    off_t start = lseek(fd, 0, SEEK_CUR);
    uint8_t *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, start > 0 ? start : 0);
    int byte;

    assert_true(data != MAP_FAILED);
    byte = data[place];
    munmap(data, size);
    return byte;
}

static void an_exported_region_begins_where_it_says(void **state)
{
    static const char *const unaligned[] = {NULL, "256", "65280"};
    struct gtopo_region region;
    struct gtopo_error error;
    uint64_t offset;
    int fd;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fake_set("UNALIGNED", unaligned[i]);
        assert_ok(allocate("gpu:0", SIZE, &region, &error));
        assert_int_equal((uintptr_t)region.data % 65536, 0);
        assert_ok(region.memory->store(&region, 0, "first", 5, &error));
        assert_ok(region.memory->store(&region, SIZE - 1, "z", 1, &error));
        fd = -1;
        offset = ~UINT64_C(0);
        assert_ok(region.memory->export_dmabuf(&region, 0, &fd, &offset, &error));
        assert_int_equal(exported_byte(fd, offset, 5 * 65536), 'f');
        assert_int_equal(exported_byte(fd, offset + SIZE - 1, 5 * 65536), 'z');
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
        region.memory->release(&region);
    }
}

/* On any machine: an export works, or the driver's reason is given. */
static void memory_is_exported_or_it_is_said_why(void **state)
{
    struct gtopo_memory_facts facts;
    struct gtopo_region region;
    struct gtopo_error error;
    uint64_t offset = 1;
    int fd = -1, status;

    (void)state;
    for (int pcie = 0; pcie < 2; pcie++) {
        assert_ok(allocate("gpu:0", SIZE, &region, &error));
        region.memory->facts(&region, &facts);
        status = region.memory->export_dmabuf(&region, pcie, &fd, &offset, &error);
        print_message("dma-buf%s: %s\n", pcie ? " through PCIe" : "", status ? error.message : "exported");
        if (status) {
            assert_int_equal(status, GTOPO_EMISSING);
            assert_true(error.message[0] && error.hint[0]);
            assert_true(pcie || facts.no_dmabuf);
        } else {
            assert_true(fd >= 0 && offset % 4096 == 0);
            close(fd);
        }
        region.memory->release(&region);
    }
}

static void an_export_that_cannot_be_says_why(void **state)
{
    struct gtopo_region region;
    struct gtopo_error error;
    uint64_t offset = 42;
    int fd = -1;

    (void)state;
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    fake_set("NO_PCIE", "1");
    assert_fails(GTOPO_EMISSING, region.memory->export_dmabuf(&region, 1, &fd, &offset, &error));
    assert_contains(error.message, "PCIe");
    assert_contains(error.hint, "12.8");
    fake_set("NO_DMABUF", "1");
    assert_fails(GTOPO_EMISSING, region.memory->export_dmabuf(&region, 0, &fd, &offset, &error));
    assert_contains(error.hint, "open kernel modules");
    fake_set("FAIL", "cuMemGetHandleForAddressRange:0:999");
    assert_fails(GTOPO_ESYSTEM, region.memory->export_dmabuf(&region, 0, &fd, &offset, &error));
    assert_true(fd == -1 && offset == 42);
    region.memory->release(&region);
}

/* What is timed as a flush is one call of the driver's, and nothing else. */
static void a_flush_is_the_flush_alone(void **state)
{
    static const char *const others[] = {"cuDeviceGetAttribute", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"};
    unsigned long before, others_before[3];
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    assert_ok(region.memory->begin_flush(&region, &error));
    before = fake_calls("cuFlushGPUDirectRDMAWrites");
    for (size_t i = 0; i < 3; i++)
        others_before[i] = fake_calls(others[i]);
    for (int i = 0; i < 1000; i++)
        assert_ok(region.memory->flush(&region, &error));
    assert_int_equal(fake_calls("cuFlushGPUDirectRDMAWrites"), before + 1000);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fake_calls(others[i]), others_before[i]);
    region.memory->end_flush(&region);
    region.memory->release(&region);
}

static void a_driver_that_cannot_flush_says_so(void **state)
{
    struct gtopo_memory_facts facts;
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    fake_set("FLUSH", "2"); /* by a stream only */
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    region.memory->facts(&region, &facts);
    assert_false(facts.can_flush);
    assert_fails(GTOPO_EMISSING, region.memory->begin_flush(&region, &error));
    assert_contains(error.message, "cannot make what other devices wrote visible");
    region.memory->release(&region);
}

/* ---- pinned memory and lanes ---- */

static void await_lane(const struct gtopo_region *region, unsigned lane)
{
    uint64_t end_ns = gtopo_clock_ns() + UINT64_C(10000000000);
    struct gtopo_error error = {0};
    int done;

    while (!(done = region->memory->lane_done(region, lane, &error)))
        assert_true(gtopo_clock_ns() < end_ns);
    assert_string_equal(error.message, "");
    assert_int_equal(done, 1);
}

static void lanes_copy_in_order(void **state)
{
    struct gtopo_region region, host;
    struct gtopo_error error;
    uint8_t *data;

    (void)state;
    assert_ok(allocate("host", SIZE, &host, &error));
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    data = host.data;
    assert_ok(region.memory->pin(&region, data, SIZE, &error));
    for (unsigned lane = 0; lane < GTOPO_LANES_MAX; lane++) {
        assert_int_equal(region.memory->lane_done(&region, lane, &error), 1); /* nothing was started on it */
        memset(data, (int)lane + 1, 1000);
        memset(data + 1000, 0xff, 1000);
        assert_ok(region.memory->lane_store(&region, lane, 500, data, 1000, &error));
        assert_ok(region.memory->lane_load(&region, lane, 500, data + 1000, 1000, &error));
        await_lane(&region, lane);
        assert_memory_equal(data, data + 1000, 1000);
    }
    assert_fails(GTOPO_EINTERNAL, region.memory->lane_load(&region, GTOPO_LANES_MAX, 0, data, 1, &error));
    region.memory->unpin(&region, data);
    region.memory->release(&region);
    host.memory->release(&host);
}

static void memory_is_not_pinned_twice(void **state)
{
    struct gtopo_region region, host;
    struct gtopo_error error;

    (void)state;
    assert_ok(allocate("host", SIZE, &host, &error));
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    assert_ok(region.memory->pin(&region, host.data, SIZE, &error));
    assert_fails(GTOPO_EDEVICE, region.memory->pin(&region, host.data, SIZE, &error));
    assert_contains(error.message, "registered already");
    region.memory->unpin(&region, host.data);
    region.memory->release(&region);
    host.memory->release(&host);
}

/* ---- failures ---- */

static int flush_once(const struct gtopo_region *region, struct gtopo_error *error)
{
    int status = region->memory->begin_flush(region, error);

    if (status)
        return status;
    status = region->memory->flush(region, error);
    region->memory->end_flush(region);
    return status;
}

/* All that a region can do, once. Stops at what fails. */
static int use_all(const struct gtopo_region *region, const struct gtopo_region *host, struct gtopo_error *error)
{
    const struct gtopo_memory *memory = region->memory;
    struct gtopo_memory_facts facts;
    int status, done = 0, fd = -1;
    uint64_t offset;
    char bytes[64];

    memory->facts(region, &facts);
    if ((status = memory->store(region, 8, "bytes", 5, error)) || (status = memory->load(region, 8, bytes, 5, error)) ||
        (status = flush_once(region, error)) || (status = memory->export_dmabuf(region, 0, &fd, &offset, error)))
        return status;
    close(fd);
    status = memory->pin(region, host->data, host->size, error);
    if (status)
        return status;
    if (!(status = memory->lane_store(region, 1, 0, host->data, 4096, error)) &&
        !(status = memory->lane_load(region, 1, 0, host->data, 4096, error)))
        while (!(done = memory->lane_done(region, 1, error)))
            ;
    fake_set("FAIL", NULL); /* what cannot be given back is not our test */
    memory->unpin(region, host->data);
    return status ? status : done < 0 ? done : 0;
}

static int live_once(struct gtopo_error *error)
{
    struct gtopo_region region, host;
    int status;

    if ((status = allocate("host", SIZE, &host, error)))
        return status;
    status = allocate("gpu:0", SIZE, &region, error);
    if (!status) {
        status = use_all(&region, &host, error);
        fake_set("FAIL", NULL);
        region.memory->release(&region);
    }
    host.memory->release(&host);
    return status;
}

static void each_failure_of_the_driver_is_said_and_nothing_stays(void **state)
{
    static const char *const names[] = {"cuDeviceGetCount",
                                        "cuDeviceGet",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuCtxPushCurrent_v2",
                                        "cuMemAlloc_v2",
                                        "cuPointerSetAttribute",
                                        "cuStreamCreate",
                                        "cuMemsetD8Async",
                                        "cuStreamQuery",
                                        "cuMemcpyHtoDAsync_v2",
                                        "cuMemcpyDtoHAsync_v2",
                                        "cuMemGetHandleForAddressRange",
                                        "cuFlushGPUDirectRDMAWrites",
                                        "cuMemHostRegister_v2",
                                        "cuEventCreate",
                                        "cuEventRecord",
                                        "cuEventQuery"};
    struct gtopo_error error;
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int n = 0; n < 12; n++) {
            error = (struct gtopo_error){0};
            snprintf(text, sizeof text, "%s:%d:719:1", names[i], n); /* once, so that the way back is open */
            fake_set("FAIL", text);
            if (!live_once(&error)) { /* it is not called that often */
                assert_true(n > 0);
                break;
            }
            assert_int_equal(error.code, GTOPO_EDEVICE);
            assert_contains(error.message, "GPU 0: cannot ");
            assert_contains(error.message, "719");
            assert_int_equal(fake_left(), 0);
        }
}

static void a_copy_that_never_ends_is_given_up(void **state)
{
    struct gtopo_region region;
    const struct gtopo_gpu *gpu;
    struct gtopo_error error;

    (void)state;
    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    gpu = gtopo_gpu_of(&region);
    fake_set("FAIL", "cuStreamQuery:0:600");
    assert_ok(gtopo_gpu_enter(gpu, &error));
    assert_fails(GTOPO_ETIMEOUT, gtopo_gpu_finish(gpu, gpu->stream, 10000000, &error));
    gtopo_gpu_leave(gpu);
    fake_set("FAIL", NULL);
    region.memory->release(&region);
}

/* Any access by the processor would end the test with a signal. */
static void the_processor_never_touches_gpu_memory(void **state)
{
    struct gtopo_error error;

    (void)state;
    fake_set("ACCESS", "none");
    assert_ok(live_once(&error));
    fake_set("ACCESS", "none");
    memory_is_aligned_zeroed_and_keeps_bytes(state);
    lanes_copy_in_order(state);
}

static void *live_often(void *context)
{
    struct gtopo_region region;
    struct gtopo_error error;
    char name[16], bytes[8];
    int *failures = context;

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "gpu:%d", i % 2);
        if (allocate(name, SIZE, &region, &error) || region.memory->store(&region, 3, "thread", 7, &error) ||
            region.memory->load(&region, 3, bytes, 7, &error) || strcmp(bytes, "thread"))
            ++*failures;
        region.memory->release(&region);
    }
    return NULL;
}

static void threads_do_not_meet(void **state)
{
    pthread_t threads[4];
    int failures[4] = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, live_often, &failures[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(failures[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest anywhere[] = {
        unit(a_gpu_that_is_not_there_is_missing),   unit(memory_is_aligned_zeroed_and_keeps_bytes),
        unit(a_gpu_is_found_by_its_pci_address),    unit(facts_of_no_memory_are_nothing),
        unit(memory_is_exported_or_it_is_said_why), unit(lanes_copy_in_order),
        unit(the_programs_context_stays),
    };
    const struct CMUnitTest with_stand_in[] = {
        unit(facts_are_the_drivers),
        unit(memory_that_is_not_enough_is_said),
        unit(an_exported_region_begins_where_it_says),
        unit(an_export_that_cannot_be_says_why),
        unit(a_flush_is_the_flush_alone),
        unit(a_driver_that_cannot_flush_says_so),
        unit(memory_is_not_pinned_twice),
        unit(each_failure_of_the_driver_is_said_and_nothing_stays),
        unit(a_copy_that_never_ends_is_given_up),
        unit(the_processor_never_touches_gpu_memory),
        unit(threads_do_not_meet),
    };
    int failed = 0;

    if (is_real())
        return cmocka_run_group_tests_name("any driver", anywhere, NULL, NULL);
    if (fake_load(""))
        return 1;
    failed += cmocka_run_group_tests_name("any driver", anywhere, NULL, NULL);
    failed += cmocka_run_group_tests_name("the stand-in", with_stand_in, NULL, NULL);
    return failed;
}
