/* SPDX-License-Identifier: Apache-2.0 */
/* Routes between InfiniBand ports, and what staging does not honour: two endpoints made by hand, without a device. */
#include "build.h"
#include "bench/transport/verbs.h"

struct made {
    struct gtopo_verbs verbs;
    struct gtopo_probe_options probe;
    struct gtopo_region region;
    struct gtopo_verbs_control control;
    struct ibv_mr mr, control_mr;
};

static struct gtopo_error error;

GTOPO_MODULE_TRANSPORT(verbs);

static void make(struct made *m, int initiator)
{
    struct gtopo_verbs *v = &m->verbs;

    memset(m, 0, sizeof *m);
    gtopo_probe_options_init(&m->probe);
    m->probe.queue_pairs = 0; /* none that a device would have to connect */
    m->probe.depth = 16;
    v->probe = &m->probe;
    v->own = initiator ? &m->probe.from : &m->probe.to;
    v->initiator = initiator;
    v->region = &m->region;
    v->control = &m->control;
    v->mr = &m->mr;
    v->control_mr = &m->control_mr;
    v->message_B = (size_t)m->probe.message_B;
    v->port = (struct ibv_port_attr){
        .link_layer = IBV_LINK_LAYER_INFINIBAND, .lid = initiator ? 7 : 9, .active_mtu = IBV_MTU_2048};
    v->gids[0] =
        (struct gtopo_verbs_gid){.raw = {0xfe, 0x80, [15] = initiator ? 7 : 9}, .index = 2, .type = IBV_GID_TYPE_IB};
    v->gid_count = 1;
}

static int join(struct made *initiator, struct made *responder)
{
    uint8_t blob[GTOPO_BLOB_MAX];
    size_t size = sizeof blob;

    assert_ok(gtopo_verbs_address(&responder->verbs, blob, &size, &error));
    return gtopo_verbs_connect(&initiator->verbs, blob, size, &error);
}

static void one_subnet_is_routed_by_lid(void **state)
{
    struct gtopo_probe_used used = {0};
    struct made a, b;

    (void)state;
    make(&a, 1);
    make(&b, 0);
    assert_ok(join(&a, &b));
    assert_int_equal(a.verbs.route.dlid, 9);
    assert_false(a.verbs.route.is_global);
    used.gid = used.traffic_class = GTOPO_AUTO; /* as the caller does */
    gtopo_module_transport_verbs()->used(&a.verbs, &used);
    assert_int_equal(used.gid, GTOPO_AUTO);
    assert_int_equal(used.traffic_class, GTOPO_AUTO);
    assert_int_equal(used.mtu_B, 2048);
    assert_int_equal(used.moderation, 1); /* of 64 KiB */
    assert_int_equal(used.relaxed_ordering, 1);
}

/* Without a GRH it would be dropped, and still be told as set. */
static void a_traffic_class_brings_a_grh(void **state)
{
    struct gtopo_probe_used used = {0};
    struct made a, b;

    (void)state;
    make(&a, 1);
    make(&b, 0);
    a.probe.traffic_class = 96;
    assert_ok(join(&a, &b));
    assert_true(a.verbs.route.is_global);
    assert_int_equal(a.verbs.route.grh.traffic_class, 96);
    assert_int_equal(a.verbs.route.grh.sgid_index, 2);
    gtopo_module_transport_verbs()->used(&a.verbs, &used);
    assert_int_equal(used.traffic_class, 96);
    assert_int_equal(used.gid, 2);
    b.verbs.gid_count = 0;
    assert_fails(GTOPO_EDEVICE, join(&a, &b));
}

static void staging_refuses_what_it_does_not_honour(void **state)
{
    static const struct {
        const char *name;
        uint32_t depth, moderation, post_list;
        int32_t flush;
    } asked[] = {
        {"depth", 8, 0, 0, 0},
        {"moderation", 0, 4, 0, 0},
        {"post_list", 0, 0, 4, 0},
        {"flush", 0, 0, 0, 1},
    };
    struct made a;

    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        make(&a, 1);
        a.probe.queue_pairs = 1;
        a.probe.depth = asked[i].depth;
        a.probe.moderation = asked[i].moderation;
        a.probe.post_list = asked[i].post_list;
        a.probe.flush = asked[i].flush;
        assert_fails(GTOPO_EUSAGE, gtopo_verbs_check_staged(&a.verbs, &error));
        assert_contains(error.message, asked[i].name);
    }
    a.verbs.peer_staged = 1; /* the copy into that GPU is the flush */
    assert_ok(gtopo_verbs_check_staged(&a.verbs, &error));
    a.probe.queue_pairs = 2;
    assert_fails(GTOPO_EUSAGE, gtopo_verbs_check_staged(&a.verbs, &error));
    assert_contains(error.hint, "leave queue_pairs out");
}

static void staging_says_what_it_does(void **state)
{
    const struct gtopo_transport *transport = gtopo_module_transport_verbs();
    struct gtopo_probe_used used = {.depth = GTOPO_AUTO, .moderation = GTOPO_AUTO};
    char text[256];
    struct made a;

    (void)state;
    make(&a, 1);
    a.verbs.mtu = IBV_MTU_2048;
    assert_contains(transport->method(&a.verbs), "while the queue is kept full");
    a.verbs.peer_staged = 1;
    a.verbs.inline_B = 8; /* which chunks never are */
    assert_contains(transport->method(&a.verbs), "in chunks that are copied through host memory");
    transport->describe(&a.verbs, text, sizeof text);
    assert_contains(text, "relaxed ordering, one queue pair, up to 8 chunks of 65536 bytes");
    transport->used(&a.verbs, &used);
    assert_int_equal(used.queue_pairs, 1);
    assert_int_equal(used.depth, GTOPO_AUTO);
    assert_int_equal(used.moderation, GTOPO_AUTO);
    assert_int_equal(used.inline_B, 0);
    a.probe.relaxed_ordering = 0;
    transport->describe(&a.verbs, text, sizeof text);
    assert_contains(text, "strict ordering");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_subnet_is_routed_by_lid),
        cmocka_unit_test(a_traffic_class_brings_a_grh),
        cmocka_unit_test(staging_refuses_what_it_does_not_honour),
        cmocka_unit_test(staging_says_what_it_does),
    };

    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
