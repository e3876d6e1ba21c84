/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is given to the reader of NCCL's topology files, it refuses, with the place, or makes a map that is sealed,
 * asked and written.
 */
#include <fcntl.h>
#include <gputopo/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"

#define DEVICES_MAX 32

static int count_bytes(void *context, const void *data, size_t size)
{
    (void)data;
    *(size_t *)context += size;
    return 0;
}

static void ask(const struct gtopo_map *map)
{
    uint32_t devices[DEVICES_MAX], first, count;
    uint8_t classes[DEVICES_MAX * DEVICES_MAX];
    struct gtopo_error error;
    size_t written = 0, found = 0;

    must(gtopo_map_host_objects(map, 0, &first, &count, &error), &error);
    for (uint32_t id = first; id < first + count && found < DEVICES_MAX; id++) {
        struct gtopo_object object;

        must(gtopo_map_object(map, id, &object, &error), &error);
        if (object.kind == GTOPO_GPU || object.kind == GTOPO_NIC)
            devices[found++] = id;
    }
    must(gtopo_nccl_classes(map, devices, found, classes, &error), &error);
    must(gtopo_map_write(map, count_bytes, &written, &error), &error);
    if (!written)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gtopo_map *map = gtopo_map_new();
    struct gtopo_host_options options;
    struct gtopo_error error;
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (!map || fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    gtopo_host_options_init(&options);
    options.nccl_xml = path;
    if (!gtopo_host_discover(map, &options, &error)) {
        must(gtopo_map_seal(map, &error), &error);
        ask(map);
    } else if (!*error.message) {
        abort();
    }
    close(fd);
    gtopo_map_free(map);
    return 0;
}
