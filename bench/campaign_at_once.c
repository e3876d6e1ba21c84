/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes that run at once: a thread and two agents each, held at a barrier until all are connected. They run for the
 * same time, so each is beside the others from its first sample to its last.
 */
#include "bench/barrier.h"
#include "bench/campaign_part.h"
#include "bench/pair.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct rail {
    pthread_t thread;
    int has_thread;
    struct gtopo_crew *crew;
    struct gtopo_barrier *barrier;
    int has_started;
    struct gtopo_plan_end ends[2]; /* .host is the place in the crew, which has two agents for each */
    const char *hosts[2];
    struct gtopo_probe_options options;
    struct gtopo_probe_result result;
    int status;
    struct gtopo_error error;
};

static void await_others(void *context)
{
    struct rail *rail = context;

    gtopo_barrier_wait(rail->barrier);
    rail->has_started = 1;
}

static void *run_rail(void *context)
{
    struct rail *rail = context;
    const struct gtopo_before_run before_run = {await_others, rail};

    rail->status = gtopo_pair_exchange(rail->crew, rail->ends, rail->hosts, &rail->options, &before_run, &rail->result,
                                       &rail->error);
    if (!rail->has_started)
        gtopo_barrier_leave(rail->barrier);
    return NULL;
}

static void start_rail(struct rail *rail)
{
    sigset_t all, before;
    int cause;

    sigfillset(&all); /* signals are for the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    cause = pthread_create(&rail->thread, NULL, run_rail, rail);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    rail->has_thread = !cause;
    if (rail->has_thread)
        return;
    rail->status = gtopo_fail(&rail->error, GTOPO_ESYSTEM, "look at `ulimit -u`, `ulimit -v` and the cgroup's pids.max",
                              "cannot start a thread: %s", strerror(cause));
    gtopo_barrier_leave(rail->barrier);
}

static void make_rail(const struct gtopo_campaign *c, const struct gtopo_plan_probe *probe, uint32_t place,
                      struct rail *rail)
{
    const struct gtopo_plan_end *const ends[2] = {&probe->from, &probe->to};

    for (int i = 0; i < 2; i++) {
        rail->hosts[i] = gtopo_map_host_name(c->map, ends[i]->host);
        rail->ends[i] = *ends[i];
        rail->ends[i].host = place;
    }
    gtopo_campaign_probe_options(c, probe, &rail->options);
}

/* From the first to the last message: nothing but the threads touches map or crew in the meantime. */
static void run_rails(struct rail *rails, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        start_rail(&rails[i]);
    for (uint32_t i = 0; i < count; i++)
        if (rails[i].has_thread)
            pthread_join(rails[i].thread, NULL);
}

/* Put the results on the map. A cancelled rail without a result is not done. */
static int report_rails(struct gtopo_campaign *c, struct rail *rails, uint32_t count, uint32_t concurrent,
                        struct gtopo_error *error)
{
    const struct gtopo_plan_probe *probes = &c->plan.probes[c->done];
    char name[GTOPO_PROBE_NAME_MAX];
    int status = 0, cancelled = 0;

    for (uint32_t i = 0; !status && i < count; i++) {
        struct rail *rail = &rails[i];

        cancelled |= rail->status == GTOPO_ECANCELLED;
        if (rail->status == GTOPO_ECANCELLED)
            continue;
        if (!rail->status)
            rail->status = gtopo_pair_measure(c->map, rail->ends, probes[i].name, probes[i].fallback, &rail->options,
                                              &rail->result, concurrent, &rail->error);
        gtopo_campaign_name(c, &probes[i], name);
        status = gtopo_campaign_report(c, &probes[i], name, rail->status, &rail->error, error);
    }
    if (!cancelled)
        c->done += count;
    return status;
}

int gtopo_campaign_at_once(struct gtopo_campaign *c, struct gtopo_error *error)
{
    const struct gtopo_plan_probe *probes = &c->plan.probes[c->done];
    uint32_t count = probes->at_once;
    struct rail *rails = calloc(count, sizeof *rails);
    struct gtopo_barrier barrier;
    struct gtopo_crew crew = {0};
    char name[GTOPO_PROBE_NAME_MAX];
    int status = rails ? gtopo_crew_init(&crew, c->options, count, error)
                       : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");

    gtopo_barrier_init(&barrier, count);
    crew.end_ns = c->crew.end_ns;
    for (uint32_t i = 0; !status && i < count; i++) {
        make_rail(c, &probes[i], i, &rails[i]);
        rails[i].crew = &crew;
        rails[i].barrier = &barrier;
    }
    if (!status) {
        gtopo_campaign_name(c, probes, name);
        gtopo_campaign_tell(c, GTOPO_EVENT_STARTED, name, GTOPO_NONE);
        run_rails(rails, count);
        status = report_rails(c, rails, count, barrier.arrived, error);
    }
    gtopo_crew_clear(&crew);
    gtopo_barrier_clear(&barrier);
    free(rails);
    return status;
}
