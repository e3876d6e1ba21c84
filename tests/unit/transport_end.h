/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of transports share: an end of a probe, and which RDMA device there is to test on. */
#ifndef GTOPO_TESTS_UNIT_TRANSPORT_END_H
#define GTOPO_TESTS_UNIT_TRANSPORT_END_H

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "bench/clock.h"
#include "bench/memory.h"
#include "bench/statistics.h"
#include "bench/transport.h"

#define PATIENCE_NS UINT64_C(10000000000) /* where none does, on a busy machine or an emulated one */

struct spec {
    const char *transport, *device;
    uint32_t metric;
    size_t message_B;
    uint32_t depth;
    double seconds;
    uint64_t deadline_ns; /* 0 for PATIENCE_NS */
};

static int open_end(const struct spec *spec, int initiator, const struct gtopo_transport **transport, void **buffer,
                    size_t *buffer_B, void **endpoint, struct gtopo_error *error)
{
    const struct gtopo_memory *memory;
    struct gtopo_endpoint_options options = {
        .device = spec->device,
        .port = 1,
        .metric = spec->metric,
        .initiator = initiator,
        .message_B = spec->message_B,
        .depth = spec->depth,
        .deadline_ns = spec->deadline_ns ? spec->deadline_ns : PATIENCE_NS,
    };
    int status = gtopo_transport_find(spec->transport, transport, error);

    if (status || (status = gtopo_memory_find("host", &memory, error)))
        return status;
    options.buffer_B = *buffer_B = (*transport)->buffer_B(spec->message_B, spec->depth);
    status = memory->allocate(GTOPO_NUMA_ANY, *buffer_B, buffer, error);
    if (status)
        return status;
    options.buffer = *buffer;
    return (*transport)->open(&options, endpoint, error);
}

static void skip_missing(const struct gtopo_error *error)
{
    print_message("skipped: %s (%s)\n", error->message, error->hint);
    skip();
}

/* An RDMA device of this host, or NULL. */
static const char *rdma_device(void)
{
    static char name[256];
    const char *named = getenv("GTOPO_TEST_RDMA");
    struct dirent *entry;
    DIR *folder;

    if (named)
        return named;
    folder = opendir("/sys/class/infiniband");
    name[0] = 0;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && (!name[0] || strcmp(entry->d_name, name) < 0))
            snprintf(name, sizeof name, "%s", entry->d_name);
    if (folder)
        closedir(folder);
    return name[0] ? name : NULL;
}

__attribute__((unused)) static const char *need_rdma(void)
{
    const char *device = rdma_device();

    if (!device) {
        print_message("skipped: no RDMA device on this host (/sys/class/infiniband)\n");
        skip();
    }
    return device;
}

#endif
