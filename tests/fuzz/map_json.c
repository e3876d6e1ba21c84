/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is given to the reader of maps, it refuses or reads. What it reads can be asked anything, is
 * written, and that is read as the same map.
 */
#include <gputopo/map.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/fuzz.h"

struct text {
    char *bytes;
    size_t size, capacity;
};

static int take(void *context, const void *data, size_t size)
{
    struct text *text = context;

    if (text->size + size > text->capacity) {
        text->capacity = 2 * (text->size + size);
        text->bytes = realloc(text->bytes, text->capacity);
        if (!text->bytes)
            abort();
    }
    memcpy(text->bytes + text->size, data, size);
    text->size += size;
    return 0;
}

static void ask(const struct gtopo_map *map)
{
    uint32_t last = gtopo_map_host_count(map) - 1, first, count = 0;
    struct gtopo_measurement measurement;
    struct gtopo_finding finding;
    struct gtopo_error error;
    struct gtopo_path path;
    uint32_t index;

    for (uint32_t i = 0; !gtopo_map_measurement(map, i, &measurement, NULL); i++)
        if (!(measurement.median > 0))
            abort();
    for (uint32_t i = 0; !gtopo_map_finding(map, i, &finding, NULL); i++)
        if (!finding.text)
            abort();
    if (gtopo_map_host_objects(map, last, &first, &count, NULL))
        return;
    for (uint32_t i = 0; i < 3 && i < count; i++) {
        must(gtopo_path_find(map, first + count - 1 - i, i, &path, &error), &error);
        if (path.hops)
            gtopo_map_link_measurement(map, path.links[0], GTOPO_BANDWIDTH_Bps, &index, NULL);
        gtopo_path_clear(&path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gtopo_map *map, *again;
    struct text first = {0}, second = {0};
    struct gtopo_error error;

    if (gtopo_map_read(data, size, "fuzz", &map, &error))
        return 0;
    ask(map);
    must(gtopo_map_write(map, take, &first, &error), &error);
    must(gtopo_map_read(first.bytes, first.size, "again", &again, &error), &error);
    must(gtopo_map_write(again, take, &second, &error), &error);
    if (first.size != second.size || memcmp(first.bytes, second.bytes, first.size)) {
        fprintf(stderr, "the map changes when it is read and written again\n");
        abort();
    }
    free(first.bytes);
    free(second.bytes);
    gtopo_map_free(map);
    gtopo_map_free(again);
    return 0;
}
