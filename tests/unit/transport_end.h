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
    uint32_t operation, metric;
    size_t message_B;
    uint32_t depth;
    double seconds;
    uint64_t deadline_ns; /* 0 for PATIENCE_NS */
    int connection_manager;
};

/* One end of a probe. `probe` and `region` are used by the endpoint until it is closed. */
struct end {
    const struct gtopo_transport *transport;
    struct gtopo_probe_options probe;
    struct gtopo_region region;
    void *endpoint;
};

__attribute__((unused)) static void close_end(struct end *end)
{
    if (end->transport)
        end->transport->close(end->endpoint);
    if (end->region.memory)
        end->region.memory->release(&end->region);
    end->endpoint = NULL;
}

__attribute__((unused)) static void make_end(const struct spec *spec, struct end *end)
{
    memset(end, 0, sizeof *end);
    gtopo_probe_options_init(&end->probe);
    end->probe.transport = spec->transport;
    end->probe.from.device = end->probe.to.device = spec->device;
    end->probe.operation = spec->operation;
    end->probe.metric = spec->metric;
    end->probe.message_B = spec->message_B;
    end->probe.depth = spec->depth;
    end->probe.connection_manager = spec->connection_manager;
}

/* One that was made; its options may have been changed. */
__attribute__((unused)) static int open_made(const struct spec *spec, int initiator, struct end *end,
                                             struct gtopo_error *error)
{
    struct gtopo_endpoint_options options = {
        .probe = &end->probe,
        .own = initiator ? &end->probe.from : &end->probe.to,
        .initiator = initiator,
        .seed = 0x123456789abcdef,
        .region = &end->region,
        .host = &gtopo_memory_host,
        .deadline_ns = spec->deadline_ns ? spec->deadline_ns : PATIENCE_NS,
    };
    int status;

    if ((status = gtopo_probe_options_check(&end->probe, error)) ||
        (status = gtopo_transport_find(spec->transport, &end->transport, error)) ||
        (status = gtopo_memory_find("host", &end->region, error)))
        return status;
    end->region.numa = GTOPO_NUMA_ANY;
    end->region.size = end->transport->buffer_B(&end->probe, initiator);
    status = end->region.memory->allocate(&end->region, error);
    return status ? status : end->transport->open(&options, &end->endpoint, error);
}

__attribute__((unused)) static int open_end(const struct spec *spec, int initiator, struct end *end,
                                            struct gtopo_error *error)
{
    make_end(spec, end);
    return open_made(spec, initiator, end, error);
}

__attribute__((unused)) static void skip_missing(const struct gtopo_error *error)
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
