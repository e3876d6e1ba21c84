/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access from one GPU to another's memory. It is a property of the two primary contexts, which this process has once
 * and which the program may have switched on itself. So who switched it on, and how many use it, is counted here: the
 * program finds it as it left it, and a probe that ends takes it from no other.
 */
#include "bench/transport/copy.h"

#define DEVICES_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users[DEVICES_MAX][DEVICES_MAX]; /* of what we switched on */

/* Under the lock, within the context: 1 when it is on, 0 when it is the program's. */
static int switch_on(const struct gtopo_gpu *gpu, const struct gtopo_gpu *peer, int *ours, struct gtopo_error *error)
{
    unsigned *count = &users[gpu->device][peer->device];
    int result = *count ? 0 : gpu->cuda->cuCtxEnablePeerAccess(peer->context, 0);

    *ours = 0;
    if (result == GTOPO_CU_PEER_ACCESS_ALREADY_ENABLED)
        return 0;
    if (result)
        return gtopo_cuda_fail(gpu->cuda, result, gpu->which, "switch on access to the other GPU", error);
    ++*count;
    *ours = 1;
    return 0;
}

int gtopo_copy_peer_on(struct gtopo_copy *c, int from, int *on, struct gtopo_error *error)
{
    const struct gtopo_gpu *gpu = c->gpus[from], *peer = c->gpus[!from];
    int can = 0, status, result = gpu->cuda->cuDeviceCanAccessPeer(&can, gpu->device, peer->device);

    *on = 0;
    if (result)
        return gtopo_cuda_fail(gpu->cuda, result, gpu->which, "ask for access to the other GPU", error);
    if (!can || gpu->device >= DEVICES_MAX || peer->device >= DEVICES_MAX)
        return 0;
    if ((status = gtopo_gpu_enter(gpu, error)))
        return status;
    pthread_mutex_lock(&lock);
    status = switch_on(gpu, peer, &c->peer[from], error);
    pthread_mutex_unlock(&lock);
    gtopo_gpu_leave(gpu);
    *on = !status;
    return status;
}

void gtopo_copy_peer_off(struct gtopo_copy *c, int from)
{
    const struct gtopo_gpu *gpu = c->gpus[from], *peer = c->gpus[!from];

    if (!c->peer[from])
        return;
    c->peer[from] = 0;
    if (gtopo_gpu_enter(gpu, NULL))
        return;
    pthread_mutex_lock(&lock);
    if (!--users[gpu->device][peer->device])
        gpu->cuda->cuCtxDisablePeerAccess(peer->context);
    pthread_mutex_unlock(&lock);
    gtopo_gpu_leave(gpu);
}
