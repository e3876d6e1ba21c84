/* SPDX-License-Identifier: Apache-2.0 */
/* The gate in front of a batch of copies, and who watches it. */
#include "bench/transport/copy.h"
#include "bench/clock.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOOK_EVERY_NS 50000000

static void open_word(struct gtopo_copy_gate *gate)
{
    __atomic_store_n(gate->word, 1, __ATOMIC_RELEASE);
}

static void *watch(void *context)
{
    struct gtopo_copy_gate *gate = context;
    struct timespec until;

    pthread_mutex_lock(&gate->lock);
    while (!gate->ending) {
        uint_fast64_t closed_ns = atomic_load(&gate->closed_ns);

        /* exchanged, so that either this thread opens it or the other, and both know who */
        if (closed_ns && gtopo_clock_ns() - closed_ns > gate->patience_ns &&
            atomic_compare_exchange_strong(&gate->closed_ns, &closed_ns, 0))
            open_word(gate);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_EVERY_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&gate->ended, &gate->lock, &until);
    }
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

static int start_watcher(struct gtopo_copy_gate *gate)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;
    int cause;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all); /* signals are for the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    cause = pthread_create(&gate->watcher, NULL, watch, gate);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (cause) {
        pthread_mutex_destroy(&gate->lock);
        pthread_cond_destroy(&gate->ended);
    }
    return cause;
}

static size_t page_B(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* A word that the GPU can read; its address there. */
static int map_word(struct gtopo_copy_gate *gate, const struct gtopo_region *gpu, struct gtopo_error *error)
{
    const struct gtopo_gpu *state = gtopo_gpu_of(gpu);
    void *page = mmap(NULL, page_B(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int result, status;

    if (page == MAP_FAILED)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    madvise(page, page_B(), MADV_DONTFORK);
    status = gpu->memory->pin(gpu, page, page_B(), error);
    if (status)
        goto unmap;
    status = gtopo_gpu_enter(state, error);
    if (status)
        goto unpin;
    result = state->cuda->cuMemHostGetDevicePointer_v2(&gate->address, page, 0);
    gtopo_gpu_leave(state);
    if (!result) {
        gate->word = page;
        return 0;
    }
    status = gtopo_cuda_fail(state->cuda, result, state->which, "read host memory", error);
unpin:
    gpu->memory->unpin(gpu, page);
unmap:
    munmap(page, page_B());
    return status;
}

static void unmap_word(struct gtopo_copy_gate *gate, const struct gtopo_region *gpu)
{
    gpu->memory->unpin(gpu, gate->word);
    munmap(gate->word, page_B());
    gate->word = NULL;
}

void gtopo_copy_gate_open(struct gtopo_copy_gate *gate, const struct gtopo_region *gpu, uint64_t patience_ns,
                          char *reason, size_t size)
{
    struct gtopo_error error;

    if (!gtopo_gpu_of(gpu)->cuda->cuStreamWaitValue32_v2) {
        snprintf(reason, size, "the driver is too old for one");
        return;
    }
    if (map_word(gate, gpu, &error)) {
        snprintf(reason, size, "%.*s", (int)size - 1, error.message);
        return;
    }
    gate->patience_ns = patience_ns;
    gate->ending = 0;
    atomic_init(&gate->closed_ns, 0);
    if (start_watcher(gate)) {
        unmap_word(gate, gpu);
        snprintf(reason, size, "cannot start a thread");
    }
}

int gtopo_copy_gate_shut(struct gtopo_copy_gate *gate, const struct gtopo_cuda *cuda, struct gtopo_cu_stream *stream)
{
    __atomic_store_n(gate->word, 0, __ATOMIC_RELEASE);
    atomic_store(&gate->closed_ns, gtopo_clock_ns());
    return cuda->cuStreamWaitValue32_v2(stream, gate->address, 1, GTOPO_CU_WAIT_GEQ);
}

int gtopo_copy_gate_release(struct gtopo_copy_gate *gate)
{
    int ours = atomic_exchange(&gate->closed_ns, 0) != 0;

    open_word(gate);
    return ours;
}

void gtopo_copy_gate_close(struct gtopo_copy_gate *gate, const struct gtopo_region *gpu)
{
    if (!gate->word)
        return;
    pthread_mutex_lock(&gate->lock);
    gate->ending = 1;
    pthread_cond_signal(&gate->ended);
    pthread_mutex_unlock(&gate->lock);
    pthread_join(gate->watcher, NULL);
    pthread_cond_destroy(&gate->ended);
    pthread_mutex_destroy(&gate->lock);
    unmap_word(gate, gpu);
}
