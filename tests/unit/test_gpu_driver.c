/* SPDX-License-Identifier: Apache-2.0 */
/* Memories by their names, host memory, and what keeps the NVIDIA driver from being used; with the stand-in driver. */
#include "fake_cuda.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include "bench/memory/gpu.h"

#define SIZE ((size_t)300000)

/* ---- names ---- */

static void names_are_read(void **state)
{
    static const struct {
        const char *name, *which;
    } good[] = {{"host", ""},
                {"gpu:0", "0"},
                {"gpu:15", "15"},
                {"gpu:0000:1b:00.0", "0000:1b:00.0"},
                {"gpu:0000:1B:0A.7", "0000:1b:0a.7"},
                {"gpu:00010000:e1:00.0", "00010000:e1:00.0"}};
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(gtopo_memory_find(good[i].name, &region, &error));
        assert_string_equal(region.which, good[i].which);
        assert_string_equal(region.memory->name, i ? "gpu" : "host");
        assert_null(region.data);
    }
}

static void names_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "hos",
                                      "hostx",
                                      "host:",
                                      "host:0",
                                      "gp",
                                      "gpu",
                                      "gpu:",
                                      "gpu:x",
                                      "gpu:-1",
                                      "gpu:0x1",
                                      "gpu: 0",
                                      "gpu:12345",
                                      "gpu:0 ",
                                      "gpu:1b:00.0",
                                      "gpu:0000:1b",
                                      "gpu:0000:1b:00",
                                      "gpu:0000:1b:00.8",
                                      "gpu:0000:1b:00.00",
                                      "gpu:000000000:1b:00.0",
                                      "gpu:0000:1bb:00.0",
                                      "gpu:0000:1b:00.0:",
                                      "gpu:00000000000000000000000000000000000000000000000000000000:1b:00.0"};
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(GTOPO_EUSAGE, gtopo_memory_find(bad[i], &region, &error));
        assert_contains(error.hint, "gpu:0000:1b:00.0");
    }
}

/* ---- host memory ---- */

static void host_memory_of_any_size_is_zeroed(void **state)
{
    static const size_t sizes[] = {1, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5 << 20};
    char bytes[3] = "ab", back[3] = "";
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int numa = -1; numa < 1; numa++) {
            assert_ok(gtopo_memory_find("host", &region, &error));
            region.size = sizes[i];
            region.numa = numa;
            assert_ok(region.memory->allocate(&region, &error));
            assert_int_equal((uintptr_t)region.data % 4096, 0);
            for (size_t n = 0; n < sizes[i]; n++)
                assert_int_equal(((uint8_t *)region.data)[n], 0);
            assert_ok(region.memory->store(&region, sizes[i] - 1, bytes, 1, &error));
            assert_ok(region.memory->load(&region, sizes[i] - 1, back, 1, &error));
            assert_int_equal(back[0], 'a');
            region.memory->release(&region);
            assert_null(region.data);
            region.memory->release(&region);
        }
}

/* ---- the driver ---- */

static int without_driver(void)
{
    const struct gtopo_cuda *cuda = NULL;
    struct gtopo_region region = {0};
    struct gtopo_error error;
    void *real = dlopen("libcuda.so.1", RTLD_LAZY);

    if (real) /* one of this machine's own: nothing is missing */
        return 0;
    for (int i = 0; i < 2; i++) { /* the second time as the first */
        MUST(gtopo_cuda_load(&cuda, &error) == GTOPO_EMISSING);
        MUST(strstr(error.message, "the NVIDIA driver's library libcuda.so.1 is not there"));
        MUST(strstr(error.hint, "install the NVIDIA driver"));
    }
    MUST(allocate("gpu:0", 4096, &region, &error) == GTOPO_EMISSING);
    MUST(!region.data && !region.state && !cuda);
    region.memory->release(&region);
    return 0;
}

static void a_driver_that_is_not_there_is_missing(void **state)
{
    (void)state;
    assert_int_equal(in_child(without_driver), 0);
}

static int with_old_driver(void)
{
    struct gtopo_memory_facts facts;
    struct gtopo_region region = {0};
    struct gtopo_error error;
    uint64_t offset;
    int fd = -1;

    MUST(!fake_load("old/"));
    MUST(!allocate("gpu:0", SIZE, &region, &error));
    region.memory->facts(&region, &facts);
    MUST(facts.no_dmabuf);
    MUST(region.memory->export_dmabuf(&region, 0, &fd, &offset, &error) == GTOPO_EMISSING);
    MUST(strstr(error.message, "too old") && fd == -1);
    MUST(region.memory->begin_flush(&region, &error) == GTOPO_EMISSING);
    region.memory->release(&region);
    MUST(fake_left() == 0);
    return 0;
}

static void an_old_driver_can_less(void **state)
{
    (void)state;
    assert_int_equal(in_child(with_old_driver), 0);
}

static int with_failing_driver(void)
{
    static const struct {
        int code, status;
        const char *says, *hint;
    } failures[] = {
        {2, GTOPO_ENOMEM, "memory", "nvidia-smi"},
        {3, GTOPO_ESYSTEM, "parent", "fork"},
        {34, GTOPO_EMISSING, "stub", "LD_LIBRARY_PATH"},
        {46, GTOPO_ESYSTEM, "busy", "nvidia-smi"},
        {100, GTOPO_EMISSING, "no GPU", "CUDA_VISIBLE_DEVICES"},
        {101, GTOPO_EMISSING, "no such GPU", "nvidia-smi -L"},
        {304, GTOPO_ESYSTEM, "operating system", "/dev/nvidia"},
        {802, GTOPO_ESYSTEM, "not ready", "fabricmanager"},
        {803, GTOPO_ESYSTEM, "different versions", "reboot"},
        {804, GTOPO_ESYSTEM, "compatibility", "compat"},
        {999, GTOPO_ESYSTEM, "CUDA_ERROR_UNKNOWN", "dmesg"},
        {4711, GTOPO_EDEVICE, "4711", "kernel log"},
    };
    const struct gtopo_cuda *cuda = NULL;
    struct gtopo_error error;
    char text[32];

    MUST(!fake_load(""));
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        snprintf(text, sizeof text, "cuInit:0:%d", failures[i].code);
        fake_set("FAIL", text);
        MUST(gtopo_cuda_load(&cuda, &error) == failures[i].status && !cuda);
        MUST(strstr(error.message, "cannot start: ") && strstr(error.message, failures[i].says));
        MUST(strstr(error.hint, failures[i].hint));
    }
    fake_set("FAIL", NULL);
    fake_set("GPUS", "0");
    MUST(gtopo_cuda_load(&cuda, &error) == GTOPO_EMISSING);
    fake_set("GPUS", NULL);
    MUST(!gtopo_cuda_load(&cuda, &error) && cuda); /* one that has come up since is used */
    return 0;
}

static void what_keeps_the_driver_from_starting_is_said(void **state)
{
    (void)state;
    assert_int_equal(in_child(with_failing_driver), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        unit(names_are_read),
        unit(names_that_are_none_are_refused),
        unit(host_memory_of_any_size_is_zeroed),
        unit(a_driver_that_is_not_there_is_missing),
        unit(an_old_driver_can_less),
        unit(what_keeps_the_driver_from_starting_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
