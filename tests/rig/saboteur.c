/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program that uses libibverbs, it breaks what the program made when a signal comes:
 *
 *   SIGUSR1  every queue pair goes to the error state
 *   SIGUSR2  every memory region is taken back, so that its keys are wrong from then on
 *
 * The program notices as it would with real hardware; what it destroys itself later is only destroyed once.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define THINGS_MAX 1024

#undef ibv_reg_mr

/* What the program holds of a memory region: a copy, since libibverbs frees its own when the region is taken back. */
struct region {
    struct ibv_mr shown;
    struct ibv_mr *real; /* NULL once it was taken back */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_qp *queues[THINGS_MAX];
static struct region *regions[THINGS_MAX];

/* C has no cast from an object's address to a function's. */
static void find(const char *name, void *place)
{
    void *address = dlsym(RTLD_NEXT, name);

    if (!address) {
        fprintf(stderr, "saboteur: %s\n", dlerror());
        abort();
    }
    memcpy(place, &address, sizeof address);
}

/* Replace one thing of a list by another: NULL by a new one, an old one by NULL. 0 when it was not there. */
static int replace(void *list, const void *was, void *is)
{
    void **things = list;

    for (int i = 0; i < THINGS_MAX; i++)
        if (things[i] == was) {
            things[i] = is;
            return 1;
        }
    return 0;
}

static void note(void *list, void *thing)
{
    pthread_mutex_lock(&lock);
    if (!replace(list, NULL, thing))
        abort();
    pthread_mutex_unlock(&lock);
}

/* ---- what stands before the functions of libibverbs ---- */

API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *);
    struct ibv_qp *queue;

    find("ibv_create_qp", &real);
    queue = real(pd, attributes);
    if (queue)
        note(queues, queue);
    return queue;
}

API int ibv_destroy_qp(struct ibv_qp *queue)
{
    int (*real)(struct ibv_qp *);
    int status;

    find("ibv_destroy_qp", &real);
    pthread_mutex_lock(&lock);
    replace(queues, queue, NULL);
    status = real(queue);
    pthread_mutex_unlock(&lock);
    return status;
}

/* One function of libibverbs may call another, and what that has made is shown already. */
static int is_shown(struct ibv_mr *region)
{
    int is;

    pthread_mutex_lock(&lock);
    is = replace(regions, region, region);
    pthread_mutex_unlock(&lock);
    return is;
}

static struct ibv_mr *show(struct ibv_mr *real)
{
    struct region *region;

    if (!real || is_shown(real))
        return real;
    region = malloc(sizeof *region);
    if (!region)
        abort();
    *region = (struct region){.shown = *real, .real = real};
    note(regions, region);
    return &region->shown;
}

API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, int);

    find("ibv_reg_mr", &real);
    return show(real(pd, address, length, access));
}

API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
    struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, uint64_t, unsigned);

    find("ibv_reg_mr_iova2", &real);
    return show(real(pd, address, length, iova, access));
}

API int ibv_dereg_mr(struct ibv_mr *shown)
{
    struct region *region = (struct region *)shown; /* its first member */
    int (*real)(struct ibv_mr *);
    int status = 0;

    find("ibv_dereg_mr", &real);
    pthread_mutex_lock(&lock);
    if (!replace(regions, region, NULL)) {
        status = real(shown); /* one that was registered in another way */
    } else {
        status = region->real ? real(region->real) : 0;
        free(region);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- sabotage ---- */

static void break_queues(void)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};

    for (int i = 0; i < THINGS_MAX; i++)
        if (queues[i])
            ibv_modify_qp(queues[i], &attributes, IBV_QP_STATE);
}

static void take_regions(void)
{
    int (*real)(struct ibv_mr *);

    find("ibv_dereg_mr", &real);
    for (int i = 0; i < THINGS_MAX; i++)
        if (regions[i] && regions[i]->real && !real(regions[i]->real))
            regions[i]->real = NULL;
}

static void *sabotage(void *signals)
{
    int number;

    while (!sigwait(signals, &number)) {
        pthread_mutex_lock(&lock);
        if (number == SIGUSR1)
            break_queues();
        else
            take_regions();
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Before main(), so that every thread of the program leaves the signals to this one. */
__attribute__((constructor)) static void begin(void)
{
    static sigset_t signals;
    pthread_t thread;

    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&thread, NULL, sabotage, &signals))
        abort();
    pthread_detach(thread);
}
