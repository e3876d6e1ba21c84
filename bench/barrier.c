/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/barrier.h"

void gtopo_barrier_init(struct gtopo_barrier *barrier, uint32_t expected)
{
    pthread_mutex_init(&barrier->mutex, NULL); /* neither fails without attributes */
    pthread_cond_init(&barrier->changed, NULL);
    barrier->expected = expected;
    barrier->arrived = 0;
}

void gtopo_barrier_wait(struct gtopo_barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    barrier->arrived++;
    pthread_cond_broadcast(&barrier->changed);
    while (barrier->arrived < barrier->expected)
        pthread_cond_wait(&barrier->changed, &barrier->mutex);
    pthread_mutex_unlock(&barrier->mutex);
}

void gtopo_barrier_leave(struct gtopo_barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    barrier->expected--;
    pthread_cond_broadcast(&barrier->changed);
    pthread_mutex_unlock(&barrier->mutex);
}

void gtopo_barrier_clear(struct gtopo_barrier *barrier)
{
    pthread_cond_destroy(&barrier->changed);
    pthread_mutex_destroy(&barrier->mutex);
}
