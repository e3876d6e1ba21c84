/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a probe: memory, an endpoint of a transport, the loop that samples until the interval is tight enough,
 * and the check of the data.
 */
#ifndef GTOPO_BENCH_ENGINE_H
#define GTOPO_BENCH_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include "bench/result.h"
#include "bench/spec.h"

struct gtopo_engine;

/* Bind the thread, allocate, open. Release with gtopo_engine_close(), on the same thread. */
int gtopo_engine_open(const struct gtopo_spec *spec, struct gtopo_engine **engine, struct gtopo_error *error);
void gtopo_engine_close(struct gtopo_engine *engine); /* NULL is accepted */
/* This end's address for the other; of no bytes when there is no other end. *size holds the room. */
int gtopo_engine_address(struct gtopo_engine *engine, void *blob, size_t *size, struct gtopo_error *error);
int gtopo_engine_connect(struct gtopo_engine *engine, const void *blob, size_t size, struct gtopo_error *error);

/*
 * The initiator's part. interrupted() is asked about every 10 ms; non-zero ends the run with what there is. Fills what
 * the initiator knows of a result. Errors: the transport's, GTOPO_ECANCELLED and GTOPO_ETIMEOUT when there are too few
 * samples to say anything.
 */
int gtopo_engine_run(struct gtopo_engine *engine, int (*interrupted)(void *context), void *context,
                     struct gtopo_probe_result *result, struct gtopo_error *error);
/* The responder's part, until the initiator is done, or interrupted() says that nobody waits for it any more. */
int gtopo_engine_serve(struct gtopo_engine *engine, int (*interrupted)(void *context), void *context,
                       struct gtopo_error *error);
/* Is the data what was sent? After run and serve. */
int gtopo_engine_verify(struct gtopo_engine *engine, struct gtopo_error *error);
/* What this end has to say after it all. */
void gtopo_engine_report(struct gtopo_engine *engine, struct gtopo_report *report);

#endif
