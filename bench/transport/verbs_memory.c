/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How memory is registered. Host memory as it is. GPU memory as a dma-buf; else as the peer memory of a kernel module
 * (nvidia-peermem) that the RDMA core asks about every address; else not at all: then host memory that both the GPU
 * and the NIC reach stands between, and copies are part of the probe. reach.c tries them and says why one failed.
 */
#include "bench/transport/verbs.h"
#include "bench/transport/reach.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static int access_flags(const struct gtopo_verbs *v)
{
    int flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

    if (v->device.atomic_cap != IBV_ATOMIC_NONE)
        flags |= IBV_ACCESS_REMOTE_ATOMIC;
    return gtopo_verbs_is_relaxed(v) ? flags | IBV_ACCESS_RELAXED_ORDERING : flags;
}

static void set_way(struct gtopo_verbs *v, const char *way)
{
    snprintf(v->reach.way, sizeof v->reach.way, "%s", way);
}

/* ---- a GPU's ---- */

static int register_dmabuf(void *context, int pcie, struct gtopo_error *error)
{
    struct gtopo_verbs *v = context;
    uint64_t offset = 0;
    int fd = -1, cause, status = v->region->memory->export_dmabuf(v->region, pcie, &fd, &offset, error);

    if (status)
        return status;
    v->mr = ibv_reg_dmabuf_mr(v->pd, offset, v->region->size, (uintptr_t)v->region->data, fd, access_flags(v));
    cause = v->mr ? 0 : errno;
    close(fd);
    return cause;
}

static int register_peer(void *context)
{
    struct gtopo_verbs *v = context;

    v->mr = ibv_reg_mr(v->pd, v->region->data, v->region->size, access_flags(v));
    return v->mr ? 0 : errno;
}

static int on_pcie(const struct gtopo_verbs *v)
{
    char path[192];

    /* A software device has no device behind it; a NIC inside the GPU's module would not be on PCIe. */
    snprintf(path, sizeof path, "/sys/class/infiniband/%.63s/device/resource", v->own->device);
    return !access(path, F_OK);
}

static int module_is_loaded(const char *name)
{
    char path[96];

    snprintf(path, sizeof path, "/sys/module/%s", name);
    return !access(path, F_OK);
}

/* ---- staged ---- */

static int stage(struct gtopo_verbs *v, const char *wanted, struct gtopo_error *error)
{
    int status;

    if (gtopo_operation_is_round_trip(v->probe->operation) || v->probe->two_way || v->probe->verify_every)
        return gtopo_fail(error, GTOPO_EDEVICE,
                          v->reach.next_step[0] ? v->reach.next_step : "use write or send, one way",
                          "memory %s cannot be registered with %s (%s), and an RDMA %s%s cannot be staged",
                          v->own->memory, v->own->device, v->reach.fallback[0] ? v->reach.fallback : "as was asked",
                          gtopo_operation_name(v->probe->operation), v->probe->two_way ? ", two-way," : "");
    status = gtopo_verbs_staging_open(v, error);
    if (status)
        return status;
    set_way(v, "staged");
    if (!wanted)
        snprintf(v->reach.finding, sizeof v->reach.finding, "no-gpudirect");
    return 0;
}

static int fail_way(const struct gtopo_verbs *v, const char *wanted, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EDEVICE, v->reach.next_step[0] ? v->reach.next_step : NULL,
                      "memory %s cannot be registered with %s as was asked (%s): %s", v->own->memory, v->own->device,
                      wanted, v->reach.fallback);
}

static int register_gpu(struct gtopo_verbs *v, struct gtopo_error *error)
{
    const char *wanted = v->own->way;
    const struct gtopo_reach_steps steps = {register_dmabuf, register_peer, v};
    struct utsname system = {.release = ""};
    struct gtopo_reach_facts facts = {
        .device = v->own->device,
        .kernel = system.release,
        .on_pcie = on_pcie(v),
        .has_module = module_is_loaded("nvidia_peermem") || module_is_loaded("nv_peer_mem"),
        .size_B = v->region->size,
    };

    uname(&system);
    v->region->memory->facts(v->region, &facts.gpu);
    if (gtopo_reach_find(&facts, wanted, &steps, &v->reach))
        return 0;
    if (wanted && strcmp(wanted, "staged"))
        return fail_way(v, wanted, error);
    return stage(v, wanted, error);
}

/* ---- all ---- */

static int register_control(struct gtopo_verbs *v, struct gtopo_error *error)
{
    struct gtopo_region *region = &v->control_region;
    int status;

    *region = (struct gtopo_region){.memory = v->host, .numa = GTOPO_NUMA_ANY, .size = sizeof *v->control};
    status = v->host->allocate(region, error);
    if (status)
        return status;
    v->control = region->data;
    v->control_mr = ibv_reg_mr(v->pd, v->control, sizeof *v->control, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return v->control_mr ? 0 : gtopo_verbs_fail_resource(v, "register memory", sizeof *v->control, error);
}

int gtopo_verbs_register(struct gtopo_verbs *v, struct gtopo_error *error)
{
    int status = register_control(v, error);

    if (status)
        return status;
    v->address = (uintptr_t)v->region->data;
    if (!v->region->memory->is_host)
        return register_gpu(v, error);
    set_way(v, "host");
    v->mr = ibv_reg_mr(v->pd, v->region->data, v->region->size, access_flags(v));
    return v->mr ? 0 : gtopo_verbs_fail_resource(v, "register memory", v->region->size, error);
}

const char *gtopo_verbs_visibility(const struct gtopo_verbs *v)
{
    struct gtopo_memory_facts facts;

    if (v->initiator || v->region->memory->is_host || v->probe->metric != GTOPO_LATENCY_ns ||
        gtopo_operation_is_round_trip(v->probe->operation))
        return NULL;
    v->region->memory->facts(v->region, &facts);
    return gtopo_reach_visibility(&facts, &v->reach, v->probe->flush);
}

void gtopo_verbs_unregister(struct gtopo_verbs *v)
{
    if (v->mr)
        ibv_dereg_mr(v->mr);
    if (v->control_mr)
        ibv_dereg_mr(v->control_mr);
    gtopo_verbs_staging_close(v);
    if (v->control_region.memory)
        v->control_region.memory->release(&v->control_region);
}
