/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops of transports have in common: a deadline that costs nothing, and samples from arrivals. */
#ifndef GTOPO_BENCH_TRANSPORT_LOOP_H
#define GTOPO_BENCH_TRANSPORT_LOOP_H

#include <sched.h>
#include <stdint.h>
#include "bench/clock.h"
#include "bench/transport.h"

/*
 * A wait that polls. Once in so many empty polls it looks at the clock, and offers the processor to others: where there
 * are fewer processors than ends, the other end cannot move while this one spins.
 */
#define GTOPO_POLLS_A_LOOK(one_processor) ((one_processor) ? 1 : 256)
/* Where a poll is but a read of memory, and what a look takes would show in the time that is measured. */
#define GTOPO_READS_A_LOOK(one_processor) ((one_processor) ? 1 : 16384)

struct gtopo_wait {
    uint64_t deadline_ns; /* longest time without progress */
    uint64_t since_ns;    /* of the first look since the last progress; 0 before */
    uint32_t polls, polls_a_look;
    const struct gtopo_run *run; /* whose look() is asked, or NULL */
    int given_up;                /* look() has said so */
};

static inline void gtopo_wait_init(struct gtopo_wait *wait, const struct gtopo_run *run, uint64_t deadline_ns,
                                   uint32_t polls_a_look)
{
    *wait = (struct gtopo_wait){.deadline_ns = deadline_ns, .polls_a_look = polls_a_look, .run = run};
}

static inline void gtopo_wait_progress(struct gtopo_wait *wait)
{
    wait->since_ns = 0;
    wait->polls = 0;
}

/* After an empty poll: 1 when the deadline has passed, or the run is given up. */
static inline int gtopo_wait_expired(struct gtopo_wait *wait)
{
    uint64_t now_ns;

    if (++wait->polls % wait->polls_a_look)
        return 0;
    sched_yield();
    if (wait->run && wait->run->look && wait->run->look(wait->run->context))
        return wait->given_up = 1;
    now_ns = gtopo_clock_ns();
    if (!wait->since_ns)
        wait->since_ns = now_ns;
    return now_ns - wait->since_ns > wait->deadline_ns;
}

/* What a transport says of a run that was given up; who gave it up knows why. */
static inline int gtopo_wait_fail_given_up(struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_ECANCELLED, NULL, "the run was given up");
}

/* Turns arrivals into samples of a batch each (see struct gtopo_run). */
struct gtopo_meter {
    const struct gtopo_run *run;
    uint64_t since_ns; /* when the messages that make the next sample began to arrive; 0 before the first arrival */
    uint64_t messages; /* of them, arrived */
};

/* So many messages arrived since the last call. Non-zero ends the run. */
static inline int gtopo_meter_add(struct gtopo_meter *meter, uint64_t messages, uint64_t now_ns)
{
    double message_ns;

    if (!meter->since_ns) { /* how long the first took is not known: the pipe was filling */
        meter->since_ns = now_ns;
        return 0;
    }
    meter->messages += messages;
    if (meter->messages < meter->run->batch || now_ns == meter->since_ns)
        return 0;
    message_ns = (double)(now_ns - meter->since_ns) / (double)meter->messages;
    for (; meter->messages >= meter->run->batch; meter->messages -= meter->run->batch)
        if (meter->run->sample(meter->run->context, message_ns * (double)meter->run->batch))
            return 1;
    meter->since_ns = now_ns - (uint64_t)(message_ns * (double)meter->messages);
    return 0;
}

#endif
