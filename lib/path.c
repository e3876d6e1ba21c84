/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths. The class of a path depends on how it was walked (the second PCIe switch makes a PXB of a PIX), so the search
 * runs over states: an object, the class so far, and whether the walk has come into a host by a port. A step never
 * lowers either, and more is never allowed after a higher one, so the best walk visits no object twice. Two exact
 * passes:
 *   1. the widest way to every state (Dijkstra with the bottleneck as length); the lowest class at the target wins,
 *   2. the fewest hops among the ways as wide as that (breadth-first).
 * O(S + T log T) for S states and T steps between them; states and steps are those of the graph times a constant.
 */
#include "lib/map.h"
#include <stdlib.h>
#include <string.h>

/* A state's number: (object · CLASSES + class) · 2 + came in by a port. */
#define STATES_PER_NODE ((size_t)GTOPO_PATH_NONE * 2)

/* The objects that a search may touch: those of one or two hosts, then all switches. */
struct field {
    const struct gtopo_map *map;
    uint32_t hosts[2];
    size_t host_count;
    size_t first[3]; /* node number of each host's first object, then of the first switch */
    size_t node_count;
};

struct step {
    uint32_t link;
    size_t state;
};

struct search {
    struct field field;
    uint32_t from_kind, to; /* kind of the first object, and the last object */
    int outside;            /* only over the network */
    size_t state_count;
    uint64_t *width;   /* widest way found to each state; 0 for none */
    uint32_t *came_by; /* link of the last step */
    size_t *came_from;
    uint64_t narrowest; /* pass 2 takes no step below this */
    struct step *queue; /* heap or first-in-first-out, by pass */
    size_t queue_count, queue_capacity;
};

static size_t node_of(const struct field *field, uint32_t object)
{
    struct gtopo_place place;

    if (!gtopo_map_place(field->map, object, &place))
        return SIZE_MAX;
    if (place.host == GTOPO_NONE)
        return field->first[field->host_count] + place.local;
    for (size_t i = 0; i < field->host_count; i++)
        if (field->hosts[i] == place.host)
            return field->first[i] + place.local;
    return SIZE_MAX;
}

static uint32_t object_of(const struct field *field, size_t node)
{
    size_t i = field->host_count;

    while (i > 0 && node < field->first[i])
        i--;
    if (i == field->host_count)
        return GTOPO_FABRIC_BASE + (uint32_t)(node - field->first[i]);
    return field->map->hosts[field->hosts[i]].first_object + (uint32_t)(node - field->first[i]);
}

static void field_init(struct field *field, const struct gtopo_map *map, uint32_t from_host, uint32_t to_host)
{
    memset(field, 0, sizeof *field);
    field->map = map;
    if (from_host != GTOPO_NONE)
        field->hosts[field->host_count++] = from_host;
    if (to_host != GTOPO_NONE && to_host != from_host)
        field->hosts[field->host_count++] = to_host;
    for (size_t i = 0; i < field->host_count; i++) {
        field->first[i] = field->node_count;
        field->node_count += map->shapes[map->hosts[field->hosts[i]].shape].node_count;
    }
    field->first[field->host_count] = field->node_count;
    field->node_count += map->switch_count;
}

/* ---- rules ---- */

/* What an object is for a way. A host bridge that a hypervisor made up stands for the machine, which hides what is
 * behind it: that two devices are on it says nothing. */
static unsigned kind_of(const struct gtopo_map *map, uint32_t object)
{
    struct gtopo_object o = {0};
    uint64_t is_virtual = 0;

    gtopo_map_object(map, object, &o, NULL);
    if (o.kind == GTOPO_HOST_BRIDGE && gtopo_map_number(map, object, GTOPO_ATTRIBUTE_VIRTUAL, &is_virtual) &&
        is_virtual)
        return GTOPO_MACHINE;
    return o.kind;
}

/*
 * May the walk in this state go on, from an object of this kind over a link of this kind? A GPU and storage are ends
 * only. No host forwards from port to port: what came in by one leaves by none, but that the ports of a host have a way
 * between each other inside.
 */
static int may_leave(const struct search *search, size_t state, unsigned kind, unsigned link, uint32_t other)
{
    if (kind == GTOPO_GPU || kind == GTOPO_STORAGE)
        return 0;
    if (kind == GTOPO_NIC && link == GTOPO_LINK_PORT && (state & 1))
        return other == search->to && state % STATES_PER_NODE / 2 < GTOPO_PATH_NET;
    return 1;
}

static unsigned at_least(unsigned path_class, unsigned floor)
{
    return path_class < floor ? floor : path_class;
}

/* The class before the first step. */
static unsigned first_class(unsigned kind)
{
    if (kind == GTOPO_HOST_BRIDGE)
        return GTOPO_PATH_PHB;
    return kind == GTOPO_MACHINE ? GTOPO_PATH_UNKNOWN : GTOPO_PATH_SELF;
}

static unsigned class_of_link(unsigned link, unsigned from, unsigned to)
{
    switch (link) {
    case GTOPO_LINK_NVLINK:
    case GTOPO_LINK_XGMI:
        return GTOPO_PATH_NVLINK;
    case GTOPO_LINK_C2C:
        return GTOPO_PATH_C2C;
    case GTOPO_LINK_PCIE:
        return from == GTOPO_PCI_SWITCH && to == GTOPO_PCI_SWITCH ? GTOPO_PATH_PXB : GTOPO_PATH_PIX;
    case GTOPO_LINK_PLATFORM: /* which processor is known, but no bus */
        return GTOPO_PATH_NODE;
    case GTOPO_LINK_SOCKET:
        return GTOPO_PATH_SYS;
    case GTOPO_LINK_NETWORK:
        return GTOPO_PATH_NET;
    default:
        return GTOPO_PATH_SELF;
    }
}

/* The class after a step over a link of this kind from one object to another (nvidia-smi's legend). */
static unsigned next_class(const struct search *search, unsigned before, unsigned link, unsigned from, unsigned to)
{
    unsigned now = at_least(before, class_of_link(link, from, to));

    switch (to) {
    case GTOPO_HOST_BRIDGE:
        return at_least(now, before >= GTOPO_PATH_PHB ? GTOPO_PATH_NODE : GTOPO_PATH_PHB);
    case GTOPO_NUMA:
        return search->from_kind == GTOPO_NUMA ? at_least(now, GTOPO_PATH_SYS) : now;
    case GTOPO_MACHINE:
        return at_least(now, GTOPO_PATH_UNKNOWN);
    default:
        return now;
    }
}

/* ---- steps ---- */

typedef int step_function(struct search *search, size_t from, struct step step, uint64_t rate);

/* Call `visit` for every step out of a state. */
static int each_step(struct search *search, size_t state, step_function *visit)
{
    const struct field *field = &search->field;
    size_t node = state / STATES_PER_NODE;
    unsigned path_class = (unsigned)(state % STATES_PER_NODE / 2);
    uint32_t object = object_of(field, node);
    unsigned kind = kind_of(field->map, object);
    uint32_t small[64], *links = small;
    size_t count = gtopo_map_links_of(field->map, object, small, 64);
    int status = 0, start = search->came_from[state] == state;

    if (count > 64) {
        links = calloc(count, sizeof *links);
        if (!links)
            return GTOPO_ENOMEM;
        gtopo_map_links_of(field->map, object, links, count);
    }
    for (size_t i = 0; !status && i < count; i++) {
        struct gtopo_link link;
        uint32_t other;
        uint64_t rate;
        size_t other_node;
        unsigned to;

        gtopo_map_link(field->map, links[i], &link, NULL);
        other = link.ends[link.ends[0] == object];
        other_node = node_of(field, other);
        if (other_node == SIZE_MAX || (!start && !may_leave(search, state, kind, link.kind, other)) ||
            (search->outside && link.kind != GTOPO_LINK_NETWORK))
            continue;
        to = next_class(search, path_class, link.kind, kind, kind_of(field->map, other)) * 2;
        rate = gtopo_link_carries_Bps(field->map, &link);
        to |= (state & 1) | (link.kind == GTOPO_LINK_PORT && kind == GTOPO_PORT);
        status =
            visit(search, state, (struct step){links[i], other_node * STATES_PER_NODE + to}, rate ? rate : UINT64_MAX);
    }
    if (links != small)
        free(links);
    return status;
}

static int enqueue(struct search *search, struct step step)
{
    if (gtopo_grow((void **)&search->queue, &search->queue_capacity, search->queue_count + 1, sizeof *search->queue))
        return GTOPO_ENOMEM;
    search->queue[search->queue_count++] = step;
    return 0;
}

/* ---- pass 1: the widest ways ---- */

static int wider(const struct search *search, size_t a, size_t b)
{
    return search->width[search->queue[a].state] > search->width[search->queue[b].state];
}

static void swap(struct search *search, size_t a, size_t b)
{
    struct step held = search->queue[a];

    search->queue[a] = search->queue[b];
    search->queue[b] = held;
}

static void sift_up(struct search *search, size_t i)
{
    for (; i && wider(search, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(search, i, (i - 1) / 2);
}

static struct step pop_widest(struct search *search)
{
    struct step top = search->queue[0];
    size_t i = 0;

    search->queue[0] = search->queue[--search->queue_count];
    for (;;) {
        size_t best = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++)
            if (child < search->queue_count && wider(search, child, best))
                best = child;
        if (best == i)
            return top;
        swap(search, i, best);
        i = best;
    }
}

static int visit_widest(struct search *search, size_t from, struct step step, uint64_t rate)
{
    uint64_t width = search->width[from] < rate ? search->width[from] : rate;

    if (width <= search->width[step.state])
        return 0;
    search->width[step.state] = width;
    search->came_from[step.state] = from;
    if (enqueue(search, step))
        return GTOPO_ENOMEM;
    sift_up(search, search->queue_count - 1);
    return 0;
}

static int find_widths(struct search *search, size_t start)
{
    int status;

    search->width[start] = UINT64_MAX;
    search->came_from[start] = start;
    status = enqueue(search, (struct step){GTOPO_NONE, start});
    while (!status && search->queue_count)
        status = each_step(search, pop_widest(search).state, visit_widest);
    return status;
}

/* ---- pass 2: the fewest hops ---- */

static int visit_shortest(struct search *search, size_t from, struct step step, uint64_t rate)
{
    if (rate < search->narrowest || search->came_from[step.state] != SIZE_MAX)
        return 0;
    search->came_from[step.state] = from;
    search->came_by[step.state] = step.link;
    return enqueue(search, step);
}

/* Breadth-first over the steps that are as wide as the widest way to the target. */
static int find_hops(struct search *search, size_t start, size_t target)
{
    int status;

    search->narrowest = search->width[target];
    for (size_t i = 0; i < search->state_count; i++)
        search->came_from[i] = SIZE_MAX;
    search->came_from[start] = start;
    search->queue_count = 0;
    status = enqueue(search, (struct step){GTOPO_NONE, start});
    for (size_t i = 0; !status && i < search->queue_count && search->came_from[target] == SIZE_MAX; i++)
        status = each_step(search, search->queue[i].state, visit_shortest);
    return status;
}

/* ---- the result ---- */

/* The reachable state at a node with the lowest class, and the widest of those; SIZE_MAX for none. */
static size_t best_state(const struct search *search, size_t node)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < STATES_PER_NODE; i++) {
        size_t state = node * STATES_PER_NODE + i;

        if (!search->width[state])
            continue;
        if (best == SIZE_MAX || (state / 2 == best / 2 && search->width[state] > search->width[best]))
            best = state;
    }
    return best;
}

static int write_path(const struct search *search, size_t start, size_t target, struct gtopo_path *path)
{
    size_t hops = 0;

    for (size_t state = target; state != start; state = search->came_from[state])
        hops++;
    path->objects = calloc(hops + 1, sizeof *path->objects);
    path->links = calloc(hops + 1, sizeof *path->links);
    if (!path->objects || !path->links)
        return GTOPO_ENOMEM;
    path->hops = (uint32_t)hops;
    path->path_class = (uint32_t)(target % STATES_PER_NODE / 2);
    path->objects[0] = object_of(&search->field, start / STATES_PER_NODE);
    for (size_t state = target; state != start; state = search->came_from[state], hops--) {
        path->objects[hops] = object_of(&search->field, state / STATES_PER_NODE);
        path->links[hops - 1] = search->came_by[state];
    }
    for (uint32_t i = 0; i < path->hops; i++) {
        struct gtopo_link link;
        uint64_t rate;

        gtopo_map_link(search->field.map, path->links[i], &link, NULL);
        rate = gtopo_link_carries_Bps(search->field.map, &link);
        if (rate && (!path->bottleneck_Bps || rate < path->bottleneck_Bps)) {
            path->bottleneck_Bps = rate;
            path->bottleneck_link = path->links[i];
        }
    }
    return 0;
}

static int search_path(struct search *search, uint32_t from, uint32_t to, struct gtopo_path *path)
{
    size_t start =
        node_of(&search->field, from) * STATES_PER_NODE + (from == to ? 0 : first_class(search->from_kind) * 2);
    size_t target;
    int status;

    search->state_count = search->field.node_count * STATES_PER_NODE;
    search->width = calloc(search->state_count, sizeof *search->width);
    search->came_by = calloc(search->state_count, sizeof *search->came_by);
    search->came_from = malloc(search->state_count * sizeof *search->came_from);
    if (!search->width || !search->came_by || !search->came_from)
        return GTOPO_ENOMEM;
    memset(search->came_from, 0xff, search->state_count * sizeof *search->came_from);
    status = find_widths(search, start);
    if (status)
        return status;
    target = best_state(search, node_of(&search->field, to));
    if (target == SIZE_MAX)
        return 0;
    status = find_hops(search, start, target);
    return status ? status : write_path(search, start, target, path);
}

static int find(struct search *search, const struct gtopo_map *map, uint32_t from, uint32_t to, struct gtopo_path *path,
                struct gtopo_error *error)
{
    struct gtopo_object ends[2];
    int status;

    memset(path, 0, sizeof *path);
    path->path_class = GTOPO_PATH_NONE;
    path->bottleneck_link = GTOPO_NONE;
    if (!map->sealed)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_map_seal() first", "the map is not sealed");
    status = gtopo_map_object(map, from, &ends[0], error);
    if (!status)
        status = gtopo_map_object(map, to, &ends[1], error);
    if (status)
        return status;
    field_init(&search->field, map, ends[0].host, ends[1].host);
    search->from_kind = kind_of(map, from);
    search->to = to;
    status = search_path(search, from, to, path);
    free(search->width);
    free(search->came_by);
    free(search->came_from);
    free(search->queue);
    if (status) {
        gtopo_path_clear(path);
        return gtopo_fail(error, status, NULL, "out of memory while looking for a path");
    }
    return 0;
}

int gtopo_path_find(const struct gtopo_map *map, uint32_t from, uint32_t to, struct gtopo_path *path,
                    struct gtopo_error *error)
{
    struct search search = {.outside = 0};

    return find(&search, map, from, to, path, error);
}

int gtopo_path_find_outside(const struct gtopo_map *map, uint32_t from, uint32_t to, struct gtopo_path *path,
                            struct gtopo_error *error)
{
    struct search search = {.outside = 1};

    return find(&search, map, from, to, path, error);
}

void gtopo_path_clear(struct gtopo_path *path)
{
    free(path->objects);
    free(path->links);
    memset(path, 0, sizeof *path);
    path->path_class = GTOPO_PATH_NONE;
    path->bottleneck_link = GTOPO_NONE;
}
