/* SPDX-License-Identifier: Apache-2.0 */
/* A copy as the tests of transport "copy" make it. */
#ifndef GTOPO_TESTS_UNIT_COPYING_H
#define GTOPO_TESTS_UNIT_COPYING_H

#include "fake_cuda.h"
#include "bench/transport/copy.h"

#define MESSAGE_B 100000 /* a multiple of no page */
#define PATIENCE_NS UINT64_C(10000000000)

/* What a test asks for; zero is the usual. */
struct wish {
    const char *from, *to;
    uint32_t metric, streams;
    size_t message_B;
    int two_way, verify_every;
    uint64_t messages, batch, deadline_ns, samples; /* run until so many messages, or samples */
};

struct copying {
    struct gtopo_probe_options probe;
    struct gtopo_region from, to;
    void *endpoint;
    uint64_t samples_wanted, samples;
    double sampled_ns, shortest_ns;
};

static int take_sample(void *context, double ns)
{
    struct copying *c = context;

    if (!c->samples++ || ns < c->shortest_ns)
        c->shortest_ns = ns;
    c->sampled_ns += ns;
    return c->samples == c->samples_wanted;
}

static void close_copy(struct copying *c)
{
    gtopo_transport_copy.close(c->endpoint);
    c->from.memory->release(&c->from);
    c->to.memory->release(&c->to);
}

static int open_copy(const struct wish *wish, struct copying *c, struct gtopo_error *error)
{
    struct gtopo_endpoint_options options = {
        .probe = &c->probe,
        .own = &c->probe.from,
        .initiator = 1,
        .seed = 0x123456789abcdef,
        .region = &c->from,
        .other = &c->to,
        .deadline_ns = wish->deadline_ns ? wish->deadline_ns : PATIENCE_NS,
    };
    size_t size;
    int status;

    memset(c, 0, sizeof *c);
    c->probe.operation = GTOPO_COPY;
    c->probe.metric = wish->metric;
    c->probe.message_B = wish->message_B ? wish->message_B : MESSAGE_B;
    c->probe.queue_pairs = wish->streams ? wish->streams : 1;
    c->probe.two_way = wish->two_way;
    c->probe.verify_every = wish->verify_every;
    size = gtopo_transport_copy.buffer_B(&c->probe, 1);
    status = allocate(wish->from, size, &c->from, error);
    if (status)
        return status;
    status = allocate(wish->to, size, &c->to, error);
    if (!status)
        status = gtopo_transport_copy.open(&options, &c->endpoint, error);
    if (status) {
        c->from.memory->release(&c->from);
        c->to.memory->release(&c->to);
    }
    return status;
}

static int run_copy(const struct wish *wish, struct copying *c, struct gtopo_error *error)
{
    struct gtopo_run run = {
        .batch = wish->batch ? wish->batch : 1, .messages = wish->messages, .sample = take_sample, .context = c};

    c->samples_wanted = wish->samples;
    return gtopo_transport_copy.run(c->endpoint, &run, error);
}

/* All of it, and what was said about it. */
static void must_copy(const struct wish *wish, const char *says)
{
    struct copying c;
    struct gtopo_error error;
    char text[256];

    assert_ok(open_copy(wish, &c, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_transport_copy.verify(c.endpoint, &error)); /* nothing was copied yet */
    assert_ok(run_copy(wish, &c, &error));
    assert_ok(gtopo_transport_copy.verify(c.endpoint, &error));
    assert_true(c.samples > 0 && c.shortest_ns > 0);
    gtopo_transport_copy.describe(c.endpoint, text, sizeof text);
    assert_contains(text, says);
    close_copy(&c);
}

#endif
