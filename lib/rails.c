/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which NIC each GPU of a host is to use. An assignment problem, solved exactly: every NIC has as many places as its
 * even share of the GPUs, the worst class of all pairs is made as good as can be, and of the assignments that have it
 * the one with the highest sum of bandwidths is taken, and of those the one in the order of both.
 *
 * The sum by the Hungarian algorithm with potentials (Kuhn and Munkres; as in Burkard, Dell'Amico and Martello,
 * "Assignment Problems", 4.4): O(gpus^2 * places) for every class that is tried.
 */
#include "lib/map.h"
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX 128
/* A NIC that is so much slower than the fastest is for management. */
#define SLOW_SHARE 8
/* Costs, of which the first counts before all of the second, and so on: GPUS_MAX of a lower one are less than one. */
#define COST_ORDER INT64_C(1)
#define COST_MBps (INT64_C(1) << 15)
#define COST_EXTRA_PLACE (INT64_C(1) << 43)
#define COST_FORBIDDEN (INT64_C(1) << 51)
#define RATE_MAX_MBps ((INT64_C(1) << 20) - 1)

struct rails {
    const struct gtopo_map *map;
    uint32_t *gpus, *nics;
    size_t gpu_count, nic_count;
    size_t even, places; /* GPUs that each NIC serves at least; places in all, some NICs serving one more */
    struct pair {
        uint32_t path_class;
        uint64_t bottleneck_Bps;
    } * pairs; /* [gpu * nic_count + nic] */
    size_t *place_of;
};

/* ---- who takes part ---- */

/* Bytes per second of a NIC's fastest port that has a link; 0 for unknown, UINT64_MAX when none has a link. */
static uint64_t rate_of(const struct gtopo_map *map, uint32_t nic)
{
    struct gtopo_link link;
    uint64_t fastest = 0;
    int ports = 0, down = 0;

    for (size_t i = 0; gtopo_map_link_of(map, nic, i, &link) != GTOPO_NONE; i++) {
        const char *state;
        uint64_t rate_Bps = 0;
        uint32_t port;

        if (link.kind != GTOPO_LINK_PORT)
            continue;
        port = link.ends[link.ends[0] == nic];
        state = gtopo_map_text(map, port, GTOPO_ATTRIBUTE_STATE);
        ports++;
        down += state && !strcmp(state, "down");
        if (gtopo_map_number(map, port, GTOPO_ATTRIBUTE_RATE_Bps, &rate_Bps) && rate_Bps > fastest)
            fastest = rate_Bps;
    }
    return ports && ports == down ? UINT64_MAX : fastest;
}

static int is_software(const struct gtopo_map *map, uint32_t nic)
{
    uint64_t is = 0;

    return gtopo_map_number(map, nic, GTOPO_ATTRIBUTE_VIRTUAL, &is) && is;
}

static int has_role(const struct gtopo_map *map, uint32_t nic, const char *role)
{
    const char *its = gtopo_map_text(map, nic, GTOPO_ATTRIBUTE_ROLE);

    return its && !strcmp(its, role);
}

int gtopo_nic_is_part(const struct gtopo_map *map, uint32_t nic)
{
    return has_role(map, nic, "virtual-function") || has_role(map, nic, "data-direct");
}

static int is_management(const struct gtopo_map *map, uint32_t nic)
{
    return has_role(map, nic, "management");
}

static void drop(struct rails *r, int (*is_unwanted)(const struct gtopo_map *map, uint32_t nic))
{
    size_t kept = 0;

    for (size_t i = 0; i < r->nic_count; i++)
        if (!is_unwanted(r->map, r->nics[i]))
            r->nics[kept++] = r->nics[i];
    r->nic_count = kept;
}

/* They serve where there is nothing else. */
static void drop_management(struct rails *r)
{
    size_t management = 0;

    for (size_t i = 0; i < r->nic_count; i++)
        management += is_management(r->map, r->nics[i]);
    if (management < r->nic_count)
        drop(r, is_management);
}

static void drop_slow(struct rails *r)
{
    uint64_t fastest = 0;
    size_t kept = 0;

    for (size_t i = 0; i < r->nic_count; i++) {
        uint64_t rate_Bps = rate_of(r->map, r->nics[i]);

        if (rate_Bps != UINT64_MAX && !is_software(r->map, r->nics[i]) && rate_Bps > fastest)
            fastest = rate_Bps;
    }
    for (size_t i = 0; i < r->nic_count; i++) {
        uint64_t rate_Bps = rate_of(r->map, r->nics[i]);

        if (rate_Bps != UINT64_MAX && !is_software(r->map, r->nics[i]) &&
            (!rate_Bps || rate_Bps >= fastest / SLOW_SHARE))
            r->nics[kept++] = r->nics[i];
    }
    r->nic_count = kept;
}

/* The bond that a NIC's first port is a member of, or NULL; *is_rdma when the port has an RDMA device as well. */
static const char *bond_of(const struct gtopo_map *map, uint32_t nic, int *is_rdma)
{
    struct gtopo_link link;

    *is_rdma = 0;
    for (size_t i = 0; gtopo_map_link_of(map, nic, i, &link) != GTOPO_NONE; i++) {
        uint32_t port = link.ends[link.ends[0] == nic];

        if (link.kind != GTOPO_LINK_PORT)
            continue;
        *is_rdma = gtopo_map_text(map, port, GTOPO_ATTRIBUTE_DEVICE) != NULL;
        return gtopo_map_text(map, port, GTOPO_ATTRIBUTE_BOND);
    }
    return NULL;
}

/*
 * Members of a bond are one way out: those that have an RDMA device of their own take part (of RoCE LAG, that is the
 * one whose device stands for all), and where none has, the first.
 */
static int is_in_other_members_place(const struct rails *r, size_t nic)
{
    int own, others;
    const char *bond = bond_of(r->map, r->nics[nic], &own);

    for (size_t i = 0; bond && !own && i < r->nic_count; i++) {
        const char *other = i == nic ? NULL : bond_of(r->map, r->nics[i], &others);

        if (other && !strcmp(other, bond) && (others || i < nic))
            return 1;
    }
    return 0;
}

static int drop_bonded(struct rails *r)
{
    uint32_t *kept = calloc(r->nic_count + 1, sizeof *kept);
    size_t count = 0;

    if (!kept)
        return GTOPO_ENOMEM;
    for (size_t i = 0; i < r->nic_count; i++)
        if (!is_in_other_members_place(r, i))
            kept[count++] = r->nics[i];
    free(r->nics);
    r->nics = kept;
    r->nic_count = count;
    return 0;
}

static int list_devices(struct rails *r, uint32_t host, struct gtopo_error *error)
{
    uint32_t first, count;
    int status = gtopo_map_host_objects(r->map, host, &first, &count, error);

    if (status)
        return status;
    r->gpus = calloc(count + 1, sizeof *r->gpus);
    r->nics = calloc(count + 1, sizeof *r->nics);
    if (!r->gpus || !r->nics)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_object object = {0};

        gtopo_map_object(r->map, id, &object, NULL);
        if (object.kind == GTOPO_GPU)
            r->gpus[r->gpu_count++] = id;
        else if (object.kind == GTOPO_NIC)
            r->nics[r->nic_count++] = id;
    }
    drop(r, gtopo_nic_is_part);
    drop_slow(r);
    drop_management(r);
    if (r->gpu_count > GPUS_MAX || r->nic_count > GPUS_MAX)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a host of more than %d GPUs or NICs is not one", GPUS_MAX);
    return drop_bonded(r) ? gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory") : 0;
}

static int find_pairs(struct rails *r, struct gtopo_error *error)
{
    r->pairs = calloc(r->gpu_count * r->nic_count, sizeof *r->pairs);
    r->place_of = calloc(r->gpu_count, sizeof *r->place_of);
    if (!r->pairs || !r->place_of)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t g = 0; g < r->gpu_count; g++)
        for (size_t n = 0; n < r->nic_count; n++) {
            struct gtopo_path path;
            int status = gtopo_path_find(r->map, r->gpus[g], r->nics[n], &path, error);

            if (status)
                return status;
            r->pairs[g * r->nic_count + n] = (struct pair){path.path_class, path.bottleneck_Bps};
            gtopo_path_clear(&path);
        }
    return 0;
}

/* ---- the assignment ---- */

/* The NIC of a place: each has `even` places, then those follow that not every NIC needs. */
static size_t nic_of(const struct rails *r, size_t place)
{
    return place % r->nic_count;
}

static int64_t cost(const struct rails *r, size_t g, size_t place, uint32_t worst)
{
    size_t nic = nic_of(r, place), order = g * r->nic_count / r->gpu_count;
    const struct pair *pair = &r->pairs[g * r->nic_count + nic];
    int64_t rate_MBps = (int64_t)(pair->bottleneck_Bps / 1000000);

    if (pair->path_class > worst || pair->path_class == GTOPO_PATH_NONE)
        return COST_FORBIDDEN;
    if (rate_MBps > RATE_MAX_MBps)
        rate_MBps = RATE_MAX_MBps;
    return (RATE_MAX_MBps - rate_MBps) * COST_MBps + (place >= r->even * r->nic_count ? COST_EXTRA_PLACE : 0) +
           COST_ORDER * (int64_t)(order > nic ? order - nic : nic - order);
}

struct hungarian {
    int64_t *row_potential, *column_potential, *slack;
    size_t *row_of, *came_from; /* of columns; rows count from 1, 0 is none */
    char *is_done;
};

/* One more row is assigned, along the cheapest way of changes. */
static void assign_row(const struct rails *r, struct hungarian *h, size_t row, uint32_t worst)
{
    size_t column = 0;

    h->row_of[0] = row;
    for (size_t j = 0; j <= r->places; j++) {
        h->slack[j] = INT64_MAX;
        h->is_done[j] = 0;
    }
    do {
        int64_t step = INT64_MAX;
        size_t next = 0, from = h->row_of[column];

        h->is_done[column] = 1;
        for (size_t j = 1; j <= r->places; j++) {
            int64_t reduced;

            if (h->is_done[j])
                continue;
            reduced = cost(r, from - 1, j - 1, worst) - h->row_potential[from] - h->column_potential[j];
            if (reduced < h->slack[j]) {
                h->slack[j] = reduced;
                h->came_from[j] = column;
            }
            if (h->slack[j] < step) {
                step = h->slack[j];
                next = j;
            }
        }
        for (size_t j = 0; j <= r->places; j++)
            if (h->is_done[j]) {
                h->row_potential[h->row_of[j]] += step;
                h->column_potential[j] -= step;
            } else {
                h->slack[j] -= step;
            }
        column = next;
    } while (h->row_of[column]);
    for (size_t before; column; column = before) {
        before = h->came_from[column];
        h->row_of[column] = h->row_of[before];
    }
}

/* The best assignment in which no pair is of a class above `worst`; 0 when there is none. */
static int assign(struct rails *r, struct hungarian *h, uint32_t worst)
{
    memset(h->row_potential, 0, (r->gpu_count + 1) * sizeof *h->row_potential);
    memset(h->column_potential, 0, (r->places + 1) * sizeof *h->column_potential);
    memset(h->row_of, 0, (r->places + 1) * sizeof *h->row_of);
    for (size_t row = 1; row <= r->gpu_count; row++)
        assign_row(r, h, row, worst);
    for (size_t j = 1; j <= r->places; j++)
        if (h->row_of[j]) {
            if (cost(r, h->row_of[j] - 1, j - 1, worst) == COST_FORBIDDEN)
                return 0;
            r->place_of[h->row_of[j] - 1] = j - 1;
        }
    for (size_t j = 1; j <= r->even * r->nic_count; j++)
        if (!h->row_of[j]) /* the load is even only by a worse class */
            return 0;
    return 1;
}

static int solve(struct rails *r, int *found, struct gtopo_error *error)
{
    struct hungarian h = {
        .row_potential = calloc(r->gpu_count + 1, sizeof *h.row_potential),
        .column_potential = calloc(r->places + 1, sizeof *h.column_potential),
        .slack = calloc(r->places + 1, sizeof *h.slack),
        .row_of = calloc(r->places + 1, sizeof *h.row_of),
        .came_from = calloc(r->places + 1, sizeof *h.came_from),
        .is_done = calloc(r->places + 1, 1),
    };
    int status = 0;

    *found = 0;
    if (!h.row_potential || !h.column_potential || !h.slack || !h.row_of || !h.came_from || !h.is_done)
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (uint32_t worst = 0; !status && !*found && worst < GTOPO_PATH_NONE; worst++)
        *found = assign(r, &h, worst);
    free(h.row_potential);
    free(h.column_potential);
    free(h.slack);
    free(h.row_of);
    free(h.came_from);
    free(h.is_done);
    return status;
}

int gtopo_rails(const struct gtopo_map *map, uint32_t host, struct gtopo_rail *rails, size_t capacity, size_t *count,
                struct gtopo_error *error)
{
    struct rails r = {.map = map};
    int found = 0, status = list_devices(&r, host, error);

    *count = 0;
    if (!status && r.gpu_count && r.nic_count) {
        r.even = r.gpu_count / r.nic_count;
        r.places = r.nic_count * (r.even + (r.gpu_count % r.nic_count != 0));
        status = find_pairs(&r, error);
        if (!status)
            status = solve(&r, &found, error);
    }
    for (size_t g = 0; !status && found && g < r.gpu_count; g++) {
        size_t nic = nic_of(&r, r.place_of[g]);
        const struct pair *pair = &r.pairs[g * r.nic_count + nic];

        if (g < capacity)
            rails[g] = (struct gtopo_rail){r.gpus[g], r.nics[nic], pair->path_class, pair->bottleneck_Bps};
        *count = g + 1;
    }
    free(r.gpus);
    free(r.nics);
    free(r.pairs);
    free(r.place_of);
    return status;
}
