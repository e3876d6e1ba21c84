/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of GPU memory: the stand-in driver of tests/fakes, which the library then finds loaded under its name; or
 * with GTOPO_TEST_GPU=real the machine's own driver, and only the tests that need no stand-in.
 */
#ifndef GTOPO_TESTS_UNIT_FAKE_CUDA_H
#define GTOPO_TESTS_UNIT_FAKE_CUDA_H

#include "build.h"
#include <dirent.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/memory.h"

static unsigned (*fake_left)(void);
static unsigned long (*fake_calls)(const char *name);

static inline int is_real(void)
{
    const char *which = getenv("GTOPO_TEST_GPU");

    return which && !strcmp(which, "real");
}

/* C has no cast from an object's address to a function's. */
static inline void fake_symbol(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof address);
}

/* 0, or not 0 when it is not built. kind: "" or "old/". */
static inline int fake_load(const char *kind)
{
    const char *folder = getenv("GTOPO_FAKES");
    char path[4096];
    void *library;

    snprintf(path, sizeof path, "%s/%s.libs/libcuda.so.1", folder ? folder : "tests/fakes", kind);
    library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s; GTOPO_FAKES says where it is\n", dlerror());
        return 1;
    }
    fake_symbol(library, "gtopo_fake_cuda_left", &fake_left);
    fake_symbol(library, "gtopo_fake_cuda_calls", &fake_calls);
    return !fake_left || !fake_calls;
}

/* In a child, since a driver stays loaded: 0 when the body returns 0. */
__attribute__((unused)) static int in_child(int (*body)(void))
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid)
        _exit(body());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* For the body of a child. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);                                        \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* An option of the stand-in; NULL takes it back. */
__attribute__((unused)) static void fake_set(const char *name, const char *value)
{
    char key[64];

    snprintf(key, sizeof key, "GTOPO_FAKE_CUDA_%s", name);
    if (value)
        setenv(key, value, 1);
    else
        unsetenv(key);
}

static inline unsigned open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Nothing stays behind, of what the driver gave or the kernel. */
static unsigned files_before;

__attribute__((unused)) static int set_up(void **state)
{
    (void)state;
    files_before = open_files();
    return 0;
}

__attribute__((unused)) static int tear_down(void **state)
{
    extern char **environ;
    char name[64];

    (void)state;
    for (char **entry = environ; *entry;) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
        if (strncmp(name, "GTOPO_FAKE_CUDA_", 16))
            entry++;
        else
            unsetenv(name); /* moves the others down */
    }
    if (fake_left && fake_left()) {
        print_error("%u objects of the driver are left\n", fake_left());
        return -1;
    }
    if (!is_real() && open_files() != files_before) {
        print_error("%u files are open, and were %u\n", open_files(), files_before);
        return -1;
    }
    return 0;
}

/* A region of that memory, allocated. */
__attribute__((unused)) static int allocate(const char *name, size_t size, struct gtopo_region *region,
                                            struct gtopo_error *error)
{
    int status = gtopo_memory_find(name, region, error);

    region->size = size;
    return status ? status : region->memory->allocate(region, error);
}

#define unit(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
