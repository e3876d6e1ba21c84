/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs out. Every allocation of the library and of its JSON library goes through the functions below (the
 * test is linked with --wrap), which refuse the n-th. For n = 1, 2, … until nothing is refused: the call in question
 * says GTOPO_ENOMEM, and once the map is freed nothing is left.
 */
#include "build.h"
#include "lib/map.h"
#include <gputopo/probe.h>
#include <jansson.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void __real_free(void *memory);

static long refuse_after = -1; /* allocations until the refused one; -1 refuses none */
static long live;              /* allocations that were not freed */
static int counting;
static int refused;

static int is_refused(void)
{
    if (!counting || refuse_after < 0 || refuse_after-- > 0)
        return 0;
    refused = 1;
    return 1;
}

static void *counted(void *memory, int is_new)
{
    live += counting && memory && is_new;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : counted(__real_malloc(size), 1);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : counted(__real_calloc(count, size), 1);
}

void *__wrap_realloc(void *old, size_t size)
{
    return is_refused() ? NULL : counted(__real_realloc(old, size), !old);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return is_refused() ? NULL : counted(__real_reallocarray(old, count, size), !old);
}

void __wrap_free(void *memory)
{
    live -= counting && memory;
    __real_free(memory);
}

static int json_is_spared;

static void *json_memory(size_t size)
{
    return json_is_spared ? counted(__real_malloc(size), 1) : __wrap_malloc(size);
}

/* ---- what is tried: each returns the library's status and frees what it made ---- */

static struct gtopo_error error;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int status_ = (call);                                                                                          \
        if (status_)                                                                                                   \
            return status_;                                                                                            \
    } while (0)

static int fill_host(struct gtopo_map *map)
{
    static const struct {
        uint32_t kind, parent, link;
    } objects[] = {{GTOPO_PACKAGE, 0, GTOPO_LINK_PLATFORM},   {GTOPO_NUMA, 1, GTOPO_LINK_MEMORY},
                   {GTOPO_HOST_BRIDGE, 1, GTOPO_LINK_MEMORY}, {GTOPO_GPU, 3, GTOPO_LINK_PCIE},
                   {GTOPO_NIC, 3, GTOPO_LINK_PCIE},           {GTOPO_PORT, 5, GTOPO_LINK_PORT}};
    struct gtopo_gid gid = {0, GTOPO_GID_IB, {0xfe, 0x80}};
    uint32_t host, id, link_id;

    TRY(gtopo_map_add_host(map, "a", &host, &error));
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        struct gtopo_link link = {.kind = objects[i].link, .count = 1, .nominal_Bps = GB};

        TRY(gtopo_map_add_object(map, objects[i].kind, objects[i].parent, 1, &id, &error));
        link.ends[0] = id;
        link.ends[1] = objects[i].parent;
        TRY(gtopo_map_add_link(map, &link, &link_id, &error));
        TRY(gtopo_map_set_text(map, id, GTOPO_ATTRIBUTE_MODEL,
                               "a model whose name is long enough for the texts to grow", &error));
        TRY(gtopo_map_set_number(map, id, GTOPO_ATTRIBUTE_LID, i, &error));
    }
    TRY(gtopo_map_set_gids(map, id, &gid, 1, &error));
    return gtopo_map_set_unknown(map, 4, GTOPO_ATTRIBUTE_NUMA, &error);
}

static int fill_fabric(struct gtopo_map *map)
{
    struct gtopo_link link = {.kind = GTOPO_LINK_NETWORK, .count = 1, .ends = {6, GTOPO_FABRIC_BASE}, .ports = {0, 1}};
    struct gtopo_measurement m = {.from = {2, 6},
                                  .to = {9, 13},
                                  .operation = "write",
                                  .transport = "verbs",
                                  .method = "a method",
                                  .tool = "a tool",
                                  .samples = 1,
                                  .median = 2,
                                  .low = 1,
                                  .high = 3,
                                  .message_B = 8};
    struct gtopo_finding finding = {"rule", GTOPO_NOTE, 4, "a text", "a step"};
    uint32_t id;

    TRY(gtopo_map_add_host_like(map, "b", 0, &id, &error));
    TRY(gtopo_map_set_text(map, 13, GTOPO_ATTRIBUTE_MAC, "52:54:00:00:00:01", &error));
    TRY(gtopo_map_add_switch(map, "leaf", &id, &error));
    TRY(gtopo_map_add_link(map, &link, &id, &error));
    link.ends[0] = 13;
    link.ports[1] = 2;
    TRY(gtopo_map_add_link(map, &link, &id, &error));
    TRY(gtopo_map_add_measurement(map, &m, &error));
    return gtopo_map_add_finding(map, &finding, &error);
}

static int fill_and_seal(struct gtopo_map **made)
{
    struct gtopo_map *map = *made = gtopo_map_new();

    if (!map)
        return gtopo_fail(&error, GTOPO_ENOMEM, NULL, "out of memory");
    TRY(fill_host(map));
    TRY(fill_fabric(map));
    return gtopo_map_seal(map, &error);
}

static struct gtopo_map *good;
static char *good_text;

static int try_filling(void)
{
    struct gtopo_map *map;
    int status = fill_and_seal(&map);

    gtopo_map_free(map);
    return status;
}

static int try_sealing_again(void)
{
    struct gtopo_map *map = good;
    uint32_t id;
    char name[32];
    static int turn;

    snprintf(name, sizeof name, "more%d", turn++);
    TRY(gtopo_map_add_switch(map, name, &id, &error));
    return gtopo_map_seal(map, &error);
}

static int drop(void *context, const void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return 0;
}

static int try_writing(void)
{
    return gtopo_map_write(good, drop, NULL, &error);
}

static int try_writing_a_probe(void)
{
    static struct gtopo_probe_result result = {.median = 2, .low = 1, .high = 3, .samples = 9, .histogram_count = 2};
    struct gtopo_probe_options options;

    gtopo_probe_options_init(&options);
    options.metric = GTOPO_LATENCY_ns;
    result.from.counter_count = result.finding_count = 2;
    snprintf(result.from.counters[1].name, sizeof result.from.counters[1].name, "port_xmit_data");
    return gtopo_probe_write_json(&options, &result, drop, NULL, &error);
}

static int try_reading(void)
{
    struct gtopo_map *map = NULL;
    int status = gtopo_map_read(good_text, strlen(good_text), "good.json", &map, &error);

    gtopo_map_free(map);
    return status;
}

static int try_a_path(void)
{
    struct gtopo_path path;
    int status = gtopo_path_find(good, 4, 11, &path, &error);

    gtopo_path_clear(&path);
    return status;
}

static int try_cancel(void)
{
    struct gtopo_cancel *cancel = gtopo_cancel_new();

    gtopo_cancel_free(cancel);
    return cancel ? 0 : gtopo_fail(&error, GTOPO_ENOMEM, NULL, "out of memory");
}

/* ---- the loop ---- */

/* Try with the n-th allocation refused, for every n that the work comes to. */
static void refuse_each(int (*work)(void), int leaves_nothing, int any_status)
{
    for (long n = 0;; n++) {
        int status;

        error = (struct gtopo_error){0};
        live = 0;
        refused = 0;
        refuse_after = n;
        counting = 1;
        status = work();
        counting = 0;
        refuse_after = -1;
        if (leaves_nothing && live)
            fail_msg("allocation %ld refused: %ld allocations are left behind", n, live);
        if (!refused) {
            assert_int_equal(status, 0);
            print_message("%ld allocations\n", n);
            return;
        }
        if (!any_status && (status != GTOPO_ENOMEM || error.code != GTOPO_ENOMEM))
            fail_msg("allocation %ld refused: %s: %s", n, gtopo_status_name(status), error.message);
        assert_true(n < 100000);
    }
}

static void filling_says_that_memory_is_out(void **state)
{
    (void)state;
    refuse_each(try_filling, 1, 0);
}

static void sealing_says_that_memory_is_out_and_can_be_tried_again(void **state)
{
    (void)state;
    refuse_each(try_sealing_again, 0, 0);
    build_seal(good);
}

static void writing_says_that_memory_is_out(void **state)
{
    (void)state;
    refuse_each(try_writing, 1, 0);
}

static void writing_a_probe_says_that_memory_is_out(void **state)
{
    (void)state;
    refuse_each(try_writing_a_probe, 1, 0);
}

static void reading_says_that_memory_is_out(void **state)
{
    (void)state;
    json_is_spared = 1;
    refuse_each(try_reading, 1, 0);
    json_is_spared = 0;
}

/* jansson's lexer takes a text that it has no memory for as another; the file is then refused, or not. */
static void reading_survives_a_parser_without_memory(void **state)
{
    (void)state;
    refuse_each(try_reading, 1, 1);
}

static void finding_a_path_says_that_memory_is_out(void **state)
{
    (void)state;
    refuse_each(try_a_path, 1, 0);
}

static void a_cancel_says_that_memory_is_out(void **state)
{
    (void)state;
    refuse_each(try_cancel, 1, 0);
}

static int make_good_map(void **state)
{
    (void)state;
    json_set_alloc_funcs(json_memory, __wrap_free);
    if (fill_and_seal(&good))
        return -1;
    good_text = build_write(good);
    return 0;
}

static int free_good_map(void **state)
{
    (void)state;
    gtopo_map_free(good);
    free(good_text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filling_says_that_memory_is_out),
        cmocka_unit_test(writing_says_that_memory_is_out),
        cmocka_unit_test(writing_a_probe_says_that_memory_is_out),
        cmocka_unit_test(reading_says_that_memory_is_out),
        cmocka_unit_test(reading_survives_a_parser_without_memory),
        cmocka_unit_test(finding_a_path_says_that_memory_is_out),
        cmocka_unit_test(a_cancel_says_that_memory_is_out),
        cmocka_unit_test(sealing_says_that_memory_is_out_and_can_be_tried_again),
    };

    return cmocka_run_group_tests_name("allocation", tests, make_good_map, free_good_map);
}
