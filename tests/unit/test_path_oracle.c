/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths against an oracle: on random small maps, every way without repetition is walked and judged by the words of the
 * documentation, and the search has to find one that is as good as the best.
 */
#include "build.h"

#define MAPS 400
#define OBJECTS_MAX 48

static struct gtopo_error error;

struct way {
    uint32_t objects[OBJECTS_MAX], links[OBJECTS_MAX];
    uint32_t hops;
};

struct verdict {
    uint32_t path_class, hops;
    uint64_t bottleneck_Bps; /* UINT64_MAX when no rate is known */
};

/* ---- random maps ---- */

static unsigned seed;

static unsigned choose(unsigned count)
{
    return (unsigned)rand_r(&seed) % count;
}

static uint32_t add(struct gtopo_map *map, uint32_t kind, uint32_t parent)
{
    static const uint64_t rates[] = {0, GB, 2 * GB, 3 * GB};
    uint32_t id;

    assert_ok(gtopo_map_add_object(map, kind, parent, 1 + choose(60000), &id, &error));
    if (kind != GTOPO_PACKAGE || !choose(4))
        build_link(map, build_link_kind(kind, build_kind_of(map, parent)), id, parent, rates[choose(4)]);
    return id;
}

/* One of the objects from `first` that is of one of these kinds; `otherwise` when there is none. */
static uint32_t pick(const struct gtopo_map *map, uint32_t first, uint32_t last, unsigned kinds, uint32_t otherwise)
{
    uint32_t found[OBJECTS_MAX];
    unsigned count = 0;

    for (uint32_t id = first; id <= last && id != GTOPO_NONE; id++)
        if (1u << build_kind_of(map, id) & kinds)
            found[count++] = id;
    return count ? found[choose(count)] : otherwise;
}

#define KIND(kind) (1u << GTOPO_##kind)

static void add_cross_links(struct gtopo_map *map, uint32_t machine, uint32_t last)
{
    static const struct {
        uint32_t kind;
        unsigned ends[2];
    } cross[] = {{GTOPO_LINK_NVLINK, {KIND(GPU), KIND(GPU) | KIND(NVSWITCH)}},
                 {GTOPO_LINK_SOCKET, {KIND(PACKAGE), KIND(PACKAGE)}},
                 {GTOPO_LINK_C2C, {KIND(GPU), KIND(PACKAGE)}},
                 {GTOPO_LINK_PCIE, {KIND(PCI_SWITCH), KIND(PCI_SWITCH) | KIND(HOST_BRIDGE)}},
                 {GTOPO_LINK_PLATFORM, {KIND(NIC), KIND(PACKAGE)}},
                 {GTOPO_LINK_PCIE, {KIND(NIC), KIND(PCI_SWITCH)}}};

    for (unsigned i = choose(6); i > 0; i--) {
        unsigned c = choose(sizeof cross / sizeof *cross);
        uint32_t a = pick(map, machine, last, cross[c].ends[0], GTOPO_NONE);
        uint32_t b = pick(map, machine, last, cross[c].ends[1], GTOPO_NONE);

        if (a != GTOPO_NONE && b != GTOPO_NONE && a != b)
            build_link(map, cross[c].kind, a, b, (1 + choose(3)) * GB);
    }
}

static void add_random_host(struct gtopo_map *map, const char *name)
{
    static const uint32_t kinds[] = {GTOPO_PACKAGE,     GTOPO_PACKAGE,     GTOPO_NUMA,       GTOPO_NUMA,
                                     GTOPO_HOST_BRIDGE, GTOPO_HOST_BRIDGE, GTOPO_PCI_SWITCH, GTOPO_PCI_SWITCH,
                                     GTOPO_GPU,         GTOPO_GPU,         GTOPO_NIC,        GTOPO_NIC,
                                     GTOPO_PORT,        GTOPO_PORT,        GTOPO_STORAGE,    GTOPO_NVSWITCH};
    uint32_t machine = gtopo_map_host_machine(map, build_host(map, name, "")), last = machine;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint32_t kind = kinds[i], parent;

        if (!choose(3))
            continue;
        parent = kind == GTOPO_PACKAGE || kind == GTOPO_NVSWITCH || !choose(8) ? machine
                 : kind == GTOPO_NUMA || kind == GTOPO_HOST_BRIDGE ? pick(map, machine, last, KIND(PACKAGE), machine)
                 : kind == GTOPO_PORT                              ? pick(map, machine, last, KIND(NIC), GTOPO_NONE)
                                      : pick(map, machine, last, KIND(HOST_BRIDGE) | KIND(PCI_SWITCH), machine);
        if (kind == GTOPO_PORT && (parent == GTOPO_NONE || parent == machine))
            continue;
        last = add(map, kind, parent);
    }
    add_cross_links(map, machine, last);
}

static struct gtopo_map *random_map(void)
{
    struct gtopo_map *map = build_map();
    uint32_t ends[OBJECTS_MAX];
    unsigned count = 0;

    add_random_host(map, "a");
    if (choose(2))
        add_random_host(map, "b");
    for (unsigned i = choose(3); i > 0; i--)
        ends[count++] = build_switch(map, i == 1 ? "s1" : "s2");
    for (uint32_t host = 0; host < gtopo_map_host_count(map); host++) {
        uint32_t first, objects;

        assert_ok(gtopo_map_host_objects(map, host, &first, &objects, &error));
        for (uint32_t id = first; id < first + objects; id++)
            if (build_kind_of(map, id) == GTOPO_PORT)
                ends[count++] = id;
    }
    for (unsigned i = count ? choose(7) : 0; i > 0; i--) {
        uint32_t a = ends[choose(count)], b = ends[choose(count)];

        if (a != b)
            build_link(map, GTOPO_LINK_NETWORK, a, b, choose(3) * GB);
    }
    build_seal(map);
    return map;
}

/* ---- the oracle ---- */

static void count_facts(const struct gtopo_map *map, const struct way *way, unsigned links[GTOPO_LINK_KINDS],
                        unsigned objects[GTOPO_OBJECT_KINDS], unsigned *between_switches)
{
    for (uint32_t i = 0; i <= way->hops; i++)
        objects[build_kind_of(map, way->objects[i])]++;
    for (uint32_t i = 0; i < way->hops; i++) {
        struct gtopo_link link;

        assert_ok(gtopo_map_link(map, way->links[i], &link, &error));
        links[link.kind]++;
        *between_switches += link.kind == GTOPO_LINK_PCIE && build_kind_of(map, link.ends[0]) == GTOPO_PCI_SWITCH &&
                             build_kind_of(map, link.ends[1]) == GTOPO_PCI_SWITCH;
    }
}

/* What the documentation of enum gtopo_path_class says, from the worst to the best. */
static uint32_t class_of(const struct gtopo_map *map, const struct way *way)
{
    unsigned links[GTOPO_LINK_KINDS] = {0}, objects[GTOPO_OBJECT_KINDS] = {0}, between_switches = 0;

    if (!way->hops)
        return GTOPO_PATH_SELF;
    count_facts(map, way, links, objects, &between_switches);
    if (links[GTOPO_LINK_NETWORK])
        return GTOPO_PATH_NET;
    if (objects[GTOPO_MACHINE])
        return GTOPO_PATH_UNKNOWN;
    if (links[GTOPO_LINK_SOCKET] || objects[GTOPO_NUMA] > 1)
        return GTOPO_PATH_SYS;
    if (links[GTOPO_LINK_PLATFORM] || objects[GTOPO_HOST_BRIDGE] > 1)
        return GTOPO_PATH_NODE;
    if (objects[GTOPO_HOST_BRIDGE])
        return GTOPO_PATH_PHB;
    if (links[GTOPO_LINK_PCIE])
        return between_switches ? GTOPO_PATH_PXB : GTOPO_PATH_PIX;
    if (links[GTOPO_LINK_C2C])
        return GTOPO_PATH_C2C;
    return links[GTOPO_LINK_NVLINK] ? GTOPO_PATH_NVLINK : GTOPO_PATH_SELF;
}

static uint32_t host_of(const struct gtopo_map *map, uint32_t id)
{
    struct gtopo_object object;

    assert_ok(gtopo_map_object(map, id, &object, &error));
    return object.host;
}

/* Between a GPU and an NVSwitch counts what the GPU has to all of them. */
static uint64_t rate_of_link(const struct gtopo_map *map, const struct gtopo_link *link)
{
    int gpu = build_kind_of(map, link->ends[1]) == GTOPO_GPU;
    uint32_t first, count;
    uint64_t sum = 0;

    if (link->kind != GTOPO_LINK_NVLINK || build_kind_of(map, link->ends[gpu]) != GTOPO_GPU ||
        build_kind_of(map, link->ends[!gpu]) != GTOPO_NVSWITCH)
        return link->nominal_Bps;
    assert_ok(gtopo_map_host_links(map, host_of(map, link->ends[gpu]), &first, &count, &error));
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_link each;

        assert_ok(gtopo_map_link(map, id, &each, &error));
        for (int end = 0; end < 2; end++)
            if (each.kind == GTOPO_LINK_NVLINK && each.ends[end] == link->ends[gpu] &&
                build_kind_of(map, each.ends[!end]) == GTOPO_NVSWITCH)
                sum += each.nominal_Bps;
    }
    return sum;
}

static uint64_t rate_of(const struct gtopo_map *map, const struct way *way)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < way->hops; i++) {
        struct gtopo_link link;

        assert_ok(gtopo_map_link(map, way->links[i], &link, &error));
        if (rate_of_link(map, &link) && rate_of_link(map, &link) < lowest)
            lowest = rate_of_link(map, &link);
    }
    return lowest;
}

/* Does no object between the ends carry what it must not? */
static int is_allowed(const struct gtopo_map *map, const struct way *way)
{
    uint32_t hosts[2] = {host_of(map, way->objects[0]), host_of(map, way->objects[way->hops])};
    int came_in = 0, network = 0;

    for (uint32_t i = 0; i < way->hops; i++) {
        uint32_t kind = build_kind_of(map, way->objects[i]), host = host_of(map, way->objects[i]);
        struct gtopo_link link;

        assert_ok(gtopo_map_link(map, way->links[i], &link, &error));
        if (host != GTOPO_NONE && host != hosts[0] && host != hosts[1])
            return 0;
        if (i && (kind == GTOPO_GPU || kind == GTOPO_STORAGE))
            return 0;
        network |= link.kind == GTOPO_LINK_NETWORK;
        if (link.kind != GTOPO_LINK_PORT)
            continue;
        /* Out by a port after in by one: only inside the host that the way began in, to its end. */
        if (kind == GTOPO_NIC && came_in && (network || i + 1 < way->hops))
            return 0;
        came_in |= kind == GTOPO_PORT;
    }
    return 1;
}

static int is_better(const struct verdict *a, const struct verdict *b)
{
    if (a->path_class != b->path_class)
        return a->path_class < b->path_class;
    if (a->bottleneck_Bps != b->bottleneck_Bps)
        return a->bottleneck_Bps > b->bottleneck_Bps;
    return a->hops < b->hops;
}

/* The switches' places are at the end. */
static size_t index_of(uint32_t id)
{
    return id < GTOPO_FABRIC_BASE ? id : OBJECTS_MAX - 1 - (id - GTOPO_FABRIC_BASE);
}

/* Walk on from the end of the way; keep the best verdict for every object that is reached. */
static void walk(const struct gtopo_map *map, struct way *way, struct verdict *best)
{
    uint32_t here = way->objects[way->hops], links[OBJECTS_MAX];
    struct verdict verdict = {class_of(map, way), way->hops, rate_of(map, way)};
    size_t count = gtopo_map_links_of(map, here, links, OBJECTS_MAX);

    if (is_allowed(map, way) && is_better(&verdict, &best[index_of(here)]))
        best[index_of(here)] = verdict;
    if (way->hops && (build_kind_of(map, here) == GTOPO_GPU || build_kind_of(map, here) == GTOPO_STORAGE))
        return;
    for (size_t i = 0; i < count; i++) {
        struct gtopo_link link;
        uint32_t other, seen = 0;

        assert_ok(gtopo_map_link(map, links[i], &link, &error));
        other = link.ends[link.ends[0] == here];
        while (seen <= way->hops && way->objects[seen] != other)
            seen++;
        if (seen <= way->hops)
            continue;
        way->links[way->hops] = links[i];
        way->objects[++way->hops] = other;
        walk(map, way, best);
        way->hops--;
    }
}

static void compare(const struct gtopo_map *map, uint32_t from, uint32_t to, const struct verdict *best,
                    unsigned number)
{
    uint64_t expected = best->bottleneck_Bps == UINT64_MAX ? 0 : best->bottleneck_Bps;
    char a[GTOPO_ADDRESS_MAX], b[GTOPO_ADDRESS_MAX];
    struct gtopo_path path;

    assert_ok(gtopo_path_find(map, from, to, &path, &error));
    if (path.path_class != best->path_class || path.bottleneck_Bps != expected ||
        (path.path_class != GTOPO_PATH_NONE && path.hops != best->hops))
        fail_msg("map %u, %s to %s: class %s, %llu B/s, %u hops, but there is %s, %llu B/s, %u hops", number,
                 gtopo_address_format(map, from, a), gtopo_address_format(map, to, b),
                 gtopo_path_class_name(path.path_class), (unsigned long long)path.bottleneck_Bps, path.hops,
                 gtopo_path_class_name(best->path_class), (unsigned long long)expected, best->hops);
    gtopo_path_clear(&path);
}

static void compare_all_ends(const struct gtopo_map *map, uint32_t from, uint32_t objects, unsigned number)
{
    struct verdict best[OBJECTS_MAX];
    struct way way = {.objects = {from}};

    for (size_t i = 0; i < OBJECTS_MAX; i++)
        best[i] = (struct verdict){GTOPO_PATH_NONE, UINT32_MAX, 0};
    walk(map, &way, best);
    for (uint32_t to = 0; to < objects; to++)
        compare(map, from, to, &best[to], number);
    for (uint32_t i = 0; i < gtopo_map_switch_count(map); i++)
        compare(map, from, GTOPO_FABRIC_BASE + i, &best[index_of(GTOPO_FABRIC_BASE + i)], number);
}

static void the_search_finds_what_trying_everything_finds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MAPS; i++) {
        uint32_t first, count, objects = 0;
        struct gtopo_map *map;

        seed = i;
        map = random_map();
        for (uint32_t host = 0; host < gtopo_map_host_count(map); host++) {
            assert_ok(gtopo_map_host_objects(map, host, &first, &count, &error));
            objects = first + count;
        }
        assert_true(objects < OBJECTS_MAX - 8);
        for (uint32_t from = 0; from < objects; from++)
            compare_all_ends(map, from, objects, i);
        for (uint32_t sw = 0; sw < gtopo_map_switch_count(map); sw++)
            compare_all_ends(map, GTOPO_FABRIC_BASE + sw, objects, i);
        gtopo_map_free(map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_search_finds_what_trying_everything_finds)};

    return cmocka_run_group_tests_name("path_oracle", tests, NULL, NULL);
}
