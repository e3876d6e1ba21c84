/* SPDX-License-Identifier: Apache-2.0 */
/* Which pair of GIDs two RDMA ports talk over, from tables like those of real hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "bench/transport/verbs_gid.h"

#define V1 IBV_GID_TYPE_ROCE_V1
#define V2 IBV_GID_TYPE_ROCE_V2
#define IB IBV_GID_TYPE_IB

/* An entry from an address in text; prefix in bits of the address, as `ip addr` has it, 0 when it is not known. */
static struct gtopo_verbs_gid entry(uint32_t index, uint8_t type, const char *address, uint8_t prefix)
{
    struct gtopo_verbs_gid gid = {.index = index, .type = type, .prefix = prefix};

    if (inet_pton(AF_INET6, address, gid.raw) == 1)
        return gid;
    gid.raw[10] = gid.raw[11] = 0xff;
    assert_int_equal(inet_pton(AF_INET, address, gid.raw + 12), 1);
    gid.prefix = prefix ? (uint8_t)(prefix + 96) : 0;
    return gid;
}

struct table {
    size_t count;
    struct gtopo_verbs_gid gids[GTOPO_VERBS_GIDS_MAX];
};

/* The indices of the pair; why it is. */
static const char *choose(const struct table *initiator, const struct table *responder, uint32_t indices[2])
{
    struct gtopo_error error = {0};
    size_t chosen[2];
    const char *why = NULL;

    if (gtopo_verbs_gids_choose(initiator->gids, initiator->count, responder->gids, responder->count, chosen, &why,
                                &error)) {
        assert_int_equal(error.code, GTOPO_EDEVICE);
        assert_true(*error.hint);
        return NULL;
    }
    assert_true(chosen[0] < initiator->count && chosen[1] < responder->count);
    indices[0] = initiator->gids[chosen[0]].index;
    indices[1] = responder->gids[chosen[1]].index;
    return why;
}

static void assert_pair(const struct table *initiator, const struct table *responder, uint32_t from, uint32_t to,
                        const char *why)
{
    uint32_t indices[2], back[2];

    assert_string_equal(choose(initiator, responder, indices), why);
    assert_int_equal(indices[0], from);
    assert_int_equal(indices[1], to);
    assert_string_equal(choose(responder, initiator, back), why); /* the other way round it is the same pair */
    assert_int_equal(back[0], to);
    assert_int_equal(back[1], from);
}

/* A port as the kernel fills it: link-local and global addresses, each as v1 and as v2. */
static const char *const typical_a[] = {"fe80::1", "2001:db8::1", "10.0.0.1"};
static const char *const typical_b[] = {"fe80::2", "2001:db8::2", "10.0.0.2"};
static const uint8_t typical_prefixes[] = {64, 64, 24};

static struct table typical(const char *const addresses[3])
{
    struct table t = {0};

    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t v2 = 0; v2 < 2; v2++, t.count++)
            t.gids[t.count] = entry((uint32_t)t.count, v2 ? V2 : V1, addresses[i], typical_prefixes[i]);
    return t;
}

static void test_prefers_v2_of_ipv4_in_one_subnet(void **state)
{
    struct table a = typical(typical_a), b = typical(typical_b);

    (void)state;
    assert_pair(&a, &b, 5, 5, "RoCE v2: same subnet");
}

/* The hosts' tables are of different order: indices that are equal do not fit together. */
static void test_does_not_trust_indices(void **state)
{
    struct table a = {2, {entry(1, V2, "10.0.0.1", 24), entry(3, V2, "2001:db8::1", 64)}};
    struct table b = {2, {entry(1, V2, "2001:db8::2", 64), entry(3, V2, "10.0.0.2", 24)}};

    (void)state;
    assert_pair(&a, &b, 1, 3, "RoCE v2: same subnet");
}

static void test_takes_the_family_that_both_have(void **state)
{
    struct table a = {2, {entry(1, V2, "10.0.0.1", 24), entry(3, V2, "2001:db8::1", 64)}};
    struct table b = {1, {entry(7, V2, "2001:db8::2", 64)}};

    (void)state;
    assert_pair(&a, &b, 3, 7, "RoCE v2: same subnet");
}

static void test_takes_the_rail_of_the_same_subnet(void **state)
{
    struct table a = {2, {entry(3, V2, "10.1.0.1", 24), entry(4, V2, "10.2.0.1", 24)}};
    struct table b = {2, {entry(3, V2, "10.2.0.2", 24), entry(4, V2, "10.3.0.2", 24)}};

    (void)state;
    assert_pair(&a, &b, 4, 3, "RoCE v2: same subnet");
}

/* 10.0.0.1/16 takes 10.0.1.2 for a neighbour, which 10.0.1.2/24 does not: replies would go by a router. */
static void test_subnet_is_the_narrower_one(void **state)
{
    struct table a = {1, {entry(3, V2, "10.0.0.1", 16)}};
    struct table b = {1, {entry(3, V2, "10.0.1.2", 24)}};

    (void)state;
    assert_pair(&a, &b, 3, 3, "RoCE v2: routed");
    b.gids[0].prefix = 96 + 16;
    assert_pair(&a, &b, 3, 3, "RoCE v2: same subnet");
    a.gids[0].prefix = 0; /* as in another network namespace: nothing is claimed */
    assert_pair(&a, &b, 3, 3, "RoCE v2: routed");
}

static void test_prefixes_that_end_within_a_byte(void **state)
{
    struct table a = {1, {entry(3, V2, "10.0.0.126", 25)}}, b = {1, {entry(3, V2, "10.0.0.129", 25)}};

    (void)state;
    assert_pair(&a, &b, 3, 3, "RoCE v2: routed");
    a.gids[0].prefix = b.gids[0].prefix = 96 + 24;
    assert_pair(&a, &b, 3, 3, "RoCE v2: same subnet");
}

/* Two racks with link-local addresses alike: those work only within one link, the routed ones do anywhere. */
static void test_routed_before_link_local(void **state)
{
    struct table a = {2, {entry(1, V2, "fe80::1", 64), entry(3, V2, "10.1.0.1", 24)}};
    struct table b = {2, {entry(1, V2, "fe80::2", 64), entry(3, V2, "10.2.0.2", 24)}};

    (void)state;
    assert_pair(&a, &b, 3, 3, "RoCE v2: routed");
    a.count = 1;
    assert_pair(&a, &b, 1, 1, "RoCE v2: link-local");
}

static void test_v1_when_nothing_else_is_common(void **state)
{
    struct table a = {2, {entry(0, V1, "10.0.0.1", 24), entry(1, V2, "10.0.0.1", 24)}};
    struct table b = {1, {entry(0, V1, "10.0.0.2", 24)}};

    (void)state;
    assert_pair(&a, &b, 0, 0, "RoCE v1: same subnet");
}

static void test_infiniband_by_subnet_prefix(void **state)
{
    struct table a = {1, {entry(0, IB, "fec0::1", 64)}}, b = {1, {entry(0, IB, "fec0::2", 64)}};
    struct table other = {1, {entry(0, IB, "fec0:0:0:1::2", 64)}};

    (void)state;
    assert_pair(&a, &b, 0, 0, "same subnet");
    assert_pair(&a, &other, 0, 0, "another subnet");
}

static void test_nothing_in_common(void **state)
{
    struct table a = {1, {entry(3, V2, "10.0.0.1", 24)}}, b = {1, {entry(3, V2, "2001:db8::2", 64)}};
    struct table v1 = {1, {entry(2, V1, "10.0.0.2", 24)}}, none = {0};
    uint32_t indices[2];

    (void)state;
    assert_null(choose(&a, &b, indices));
    assert_null(choose(&a, &v1, indices));
    assert_null(choose(&a, &none, indices));
    assert_null(choose(&none, &none, indices));
}

static void test_one_port_with_itself(void **state)
{
    struct table a = typical(typical_a);

    (void)state;
    assert_pair(&a, &a, 5, 5, "RoCE v2: same subnet");
}

static void test_what_is_no_entry(void **state)
{
    struct gtopo_verbs_gid good = entry(3, V2, "10.0.0.1", 24), bad;

    (void)state;
    assert_true(gtopo_verbs_gid_is_valid(&good));
    bad = entry(3, V2, "::", 64);
    assert_false(gtopo_verbs_gid_is_valid(&bad));
    bad = entry(3, V2, "ff02::1", 64);
    assert_false(gtopo_verbs_gid_is_valid(&bad));
    bad = good, bad.type = V2 + 1;
    assert_false(gtopo_verbs_gid_is_valid(&bad));
    bad = good, bad.prefix = 129;
    assert_false(gtopo_verbs_gid_is_valid(&bad));
    bad = good, bad.index = 65536;
    assert_false(gtopo_verbs_gid_is_valid(&bad));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefers_v2_of_ipv4_in_one_subnet),
        cmocka_unit_test(test_does_not_trust_indices),
        cmocka_unit_test(test_takes_the_family_that_both_have),
        cmocka_unit_test(test_takes_the_rail_of_the_same_subnet),
        cmocka_unit_test(test_subnet_is_the_narrower_one),
        cmocka_unit_test(test_prefixes_that_end_within_a_byte),
        cmocka_unit_test(test_routed_before_link_local),
        cmocka_unit_test(test_v1_when_nothing_else_is_common),
        cmocka_unit_test(test_infiniband_by_subnet_prefix),
        cmocka_unit_test(test_nothing_in_common),
        cmocka_unit_test(test_one_port_with_itself),
        cmocka_unit_test(test_what_is_no_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
