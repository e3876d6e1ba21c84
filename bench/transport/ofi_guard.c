/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops have deadlines, but libfabric can be stuck where no loop of ours turns: the shm provider spins on a lock in
 * the other end's memory, and a process that is killed while it holds it never opens it (seen in 1.17). So a loop runs
 * on a thread of its own, and the caller's thread watches whether it still turns. One that does not is cancelled in the
 * midst of that call, which is safe for us as nothing of ours is half done there; what it leaves in libfabric is not,
 * so that endpoint is never closed.
 */
#include "bench/transport/ofi.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#define CHECK_NS UINT64_C(100000000)

struct guarded {
    struct gtopo_ofi *o;
    const struct gtopo_run *run; /* the caller's, or NULL */
    struct gtopo_error *error;
    int status;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int ended;
};

/* The caller's functions are never cancelled. */
static int sample(void *context, double sample_ns)
{
    const struct gtopo_run *run = ((const struct guarded *)context)->run;
    int state, stop;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    stop = run->sample(run->context, sample_ns);
    pthread_setcancelstate(state, NULL);
    return stop;
}

static int look(void *context)
{
    const struct gtopo_run *run = ((const struct guarded *)context)->run;
    int state, stop;

    if (!run->look)
        return 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    stop = run->look(run->context);
    pthread_setcancelstate(state, NULL);
    return stop;
}

static void *thread_main(void *context)
{
    struct guarded *g = context;
    struct gtopo_run run = {0};
    int before;

    if (g->run) {
        run = *g->run;
        run.sample = run.sample ? sample : NULL;
        run.look = look;
        run.context = g;
    }
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    g->status = gtopo_ofi_loop(g->o, g->run ? &run : NULL, g->error);
    pthread_setcanceltype(before, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_mutex_lock(&g->mutex);
    g->ended = 1;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->mutex);
    return NULL;
}

/* Wait for the end of the thread, for one check. */
static int ended(struct guarded *g)
{
    uint64_t until_ns = gtopo_clock_ns() + CHECK_NS;
    struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    int timed_out = 0, is;

    pthread_mutex_lock(&g->mutex);
    while (!g->ended && !timed_out)
        timed_out = pthread_cond_timedwait(&g->changed, &g->mutex, &until);
    is = g->ended;
    pthread_mutex_unlock(&g->mutex);
    return is;
}

/*
 * Watch until the thread has ended, or has not turned for the deadline. That is counted in checks, not by the clock:
 * when the whole process was stopped for a while, the thread has had no chance to turn.
 */
static int watch(struct guarded *g)
{
    uint64_t still = 0, most = g->o->deadline_ns / CHECK_NS + 2;
    unsigned before = atomic_load(&g->o->beats), now;

    while (!ended(g)) {
        now = atomic_load(&g->o->beats);
        still = now == before ? still + 1 : 0;
        before = now;
        if (still > most)
            return 0;
    }
    return 1;
}

static void cancel_in_the_midst(pthread_t thread)
{
#ifdef __SANITIZE_ADDRESS__
    /* The sanitizer marks the stack around variables, and only a function that returns takes its marks away. */
    pthread_attr_t attributes;
    void *stack;
    size_t size;

    if (!pthread_getattr_np(thread, &attributes)) {
        if (!pthread_attr_getstack(&attributes, &stack, &size))
            ASAN_UNPOISON_MEMORY_REGION(stack, size);
        pthread_attr_destroy(&attributes);
    }
#endif
    pthread_cancel(thread);
}

static int run_guarded(struct gtopo_ofi *o, const struct gtopo_run *run, struct gtopo_error *error)
{
    struct guarded g = {.o = o, .run = run, .error = error, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int cause;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&g.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all); /* signals are for the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    cause = pthread_create(&thread, NULL, thread_main, &g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (cause)
        g.status = gtopo_fail(error, GTOPO_ESYSTEM, "look at `ulimit -u`, `ulimit -v` and the cgroup's pids.max",
                              "cannot start a thread: %s", strerror(cause));
    else {
        if (!watch(&g)) {
            cancel_in_the_midst(thread);
            o->abandoned = 1;
            g.status = gtopo_fail(error, GTOPO_ETIMEOUT, "is the other end alive? Look at its error",
                                  "provider %s: a call did not return for %.3g s, most likely because the other end "
                                  "died in the midst of one",
                                  o->provider, (double)o->deadline_ns * 1e-9);
        }
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&g.changed);
    pthread_mutex_destroy(&g.mutex);
    return g.status;
}

int gtopo_ofi_run(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error)
{
    return run_guarded(endpoint, run, error);
}

int gtopo_ofi_serve(void *endpoint, const struct gtopo_run *run, struct gtopo_error *error)
{
    return run_guarded(endpoint, run, error);
}
