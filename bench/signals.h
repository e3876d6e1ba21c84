/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some libraries install signal handlers when they are loaded or opened (libinfinipath, libpsm2 and the shm provider
 * of libfabric do). The handlers are the program's: what we make a library do leaves them as they were.
 */
#ifndef GTOPO_BENCH_SIGNALS_H
#define GTOPO_BENCH_SIGNALS_H

#include <signal.h>

struct gtopo_signals {
    struct sigaction actions[NSIG];
};

static inline void gtopo_signals_save(struct gtopo_signals *signals)
{
    int number;

    for (number = 1; number < NSIG; number++)
        if (sigaction(number, NULL, &signals->actions[number]))
            signals->actions[number].sa_handler = SIG_ERR; /* one of the threads library's own */
}

static inline void gtopo_signals_restore(const struct gtopo_signals *signals)
{
    struct sigaction now;
    int number;

    for (number = 1; number < NSIG; number++)
        if (signals->actions[number].sa_handler != SIG_ERR && !sigaction(number, NULL, &now) &&
            now.sa_handler != signals->actions[number].sa_handler)
            sigaction(number, &signals->actions[number], NULL);
}

#endif
