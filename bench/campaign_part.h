/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign at work, for the files that it is made of. */
#ifndef GTOPO_BENCH_CAMPAIGN_PART_H
#define GTOPO_BENCH_CAMPAIGN_PART_H

#include <gputopo/campaign.h>
#include "bench/crew.h"
#include "bench/plan.h"

struct gtopo_campaign {
    struct gtopo_map *map;
    const struct gtopo_campaign_options *options;
    struct gtopo_plan plan;
    struct gtopo_crew crew;
    char fallback[600];
    size_t done, measured;
    struct gtopo_probe_result *result; /* of the probe at hand */
    struct gtopo_error missing;        /* why a probe could not even be tried, or code 0 */
};

/* Call the embedder; text may be NULL, measurement GTOPO_NONE. */
void gtopo_campaign_tell(const struct gtopo_campaign *c, enum gtopo_event_kind kind, const char *text,
                         uint32_t measurement);
/* A probe's name for people. */
#define GTOPO_PROBE_NAME_MAX (GTOPO_ADDRESS_MAX * 2 + 96)
void gtopo_campaign_name(const struct gtopo_campaign *c, const struct gtopo_plan_probe *probe,
                         char name[GTOPO_PROBE_NAME_MAX]);
void gtopo_campaign_probe_options(const struct gtopo_campaign *c, const struct gtopo_plan_probe *probe,
                                  struct gtopo_probe_options *options);
/* What became of a probe: tell of the measurement that was added last, or of the failure, which is found unless it was
 * that nothing is there and that was found before. Errors: GTOPO_ENOMEM, ours, which ends the campaign. */
int gtopo_campaign_report(struct gtopo_campaign *c, const struct gtopo_plan_probe *probe, const char *name, int status,
                          const struct gtopo_error *cause, struct gtopo_error *error);

/*
 * Run the probes from the one at hand on that are to run at once; they are done then, unless the campaign was cancelled
 * before there were results. One that fails is found, the others go on. Errors: GTOPO_ENOMEM.
 */
int gtopo_campaign_at_once(struct gtopo_campaign *c, struct gtopo_error *error);

#endif
