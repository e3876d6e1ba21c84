/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints, for the checks of doc/map.schema.json and for the fuzzer's corpus: a map (full, empty, host, cluster), the
 * table of attributes, or the words of the enumerations.
 */
#include "tests/unit/full_map.h"
#include "lib/map.h"

static struct gtopo_map *empty_map(void)
{
    struct gtopo_map *map = build_map();

    build_seal(map);
    return map;
}

static struct gtopo_map *host_map(void)
{
    struct gtopo_map *map = build_map();

    build_host(map, "host", TWO_SOCKETS);
    build_seal(map);
    return map;
}

static struct gtopo_map *cluster_map(void)
{
    struct gtopo_map *map = build_map();

    build_host(map, "a", "package0 numa0<package0 host-bridge0<package0 nic0<host-bridge0@32 nic0:1<nic0");
    build_host_like(map, "b", 0);
    build_switch(map, "leaf");
    build_cable(map, "a/nic0:1", "leaf:1", 25 * GB);
    build_cable(map, "b/nic0:1", "leaf:2", 25 * GB);
    build_seal(map);
    return map;
}

/* "key type identity", one a line. */
static void print_attributes(void)
{
    static const char *const types[] = {[GTOPO_VALUE_NUMBER] = "number",
                                        [GTOPO_VALUE_TEXT] = "text",
                                        [GTOPO_VALUE_ID] = "id",
                                        [GTOPO_VALUE_GIDS] = "gids"};

    for (unsigned i = 0; i < GTOPO_ATTRIBUTES; i++)
        printf("%s %s %d\n", gtopo_attribute_key(i), types[gtopo_attribute_type(i)], gtopo_attribute_is_identity(i));
}

/* "enumeration word", one a line. */
static void print_words(void)
{
    for (unsigned i = 0; i < GTOPO_OBJECT_KINDS; i++)
        if (i != GTOPO_SWITCH) /* never inside a host */
            printf("object_kind\t%s\n", gtopo_object_kind_name(i));
    for (unsigned i = 0; i < GTOPO_LINK_KINDS; i++)
        printf("%s\t%s\n", i == GTOPO_LINK_NETWORK ? "cable_kind" : "link_kind", gtopo_link_kind_name(i));
    for (unsigned i = 0; i <= GTOPO_GID_ROCE_V2; i++)
        printf("gid_type\t%s\n", gtopo_gid_type_name(i));
    for (unsigned i = 0; i < GTOPO_PROVENANCES; i++)
        printf("provenance\t%s\n", gtopo_provenance_name(i));
    for (unsigned i = 0; i < GTOPO_METRICS; i++)
        printf("metric\t%s\n", gtopo_metric_key(i));
    for (unsigned i = 0; i < GTOPO_SEVERITIES; i++)
        printf("severity\t%s\n", gtopo_severity_name(i));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        struct gtopo_map *(*make)(void);
    } maps[] = {{"full", full_map}, {"empty", empty_map}, {"host", host_map}, {"cluster", cluster_map}};
    const char *what = argc == 2 ? argv[1] : "";

    if (!strcmp(what, "attributes"))
        return print_attributes(), 0;
    if (!strcmp(what, "words"))
        return print_words(), 0;
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        if (!strcmp(what, maps[i].name)) {
            struct gtopo_map *map = maps[i].make();
            char *text = build_write(map);

            fputs(text, stdout);
            free(text);
            gtopo_map_free(map);
            return 0;
        }
    fprintf(stderr, "usage: print_map full|empty|host|cluster|attributes|words\n");
    return 2;
}
