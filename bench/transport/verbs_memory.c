/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How memory is registered. Host memory as it is. GPU memory as a dma-buf; else as the peer memory of a kernel module
 * (nvidia-peermem) that the RDMA core asks about every address; else not at all: then host memory that both the GPU
 * and the NIC reach stands between, and copies are part of the probe. Each step that failed says why.
 */
#include "bench/transport/verbs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DMABUF_SINCE_MAJOR 5 /* Linux 5.12: ibv_reg_dmabuf_mr */
#define DMABUF_SINCE_MINOR 12

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

/* Append a reason to what stands before the way that is taken. */
static void add_reason(struct gtopo_verbs *v, const char *way, const char *reason, const char *next_step)
{
    size_t length = strlen(v->reach.fallback);

    snprintf(v->reach.fallback + length, sizeof v->reach.fallback - length, "%s%s: %s", length ? "; " : "", way,
             reason);
    if (!v->reach.next_step[0] && next_step)
        snprintf(v->reach.next_step, sizeof v->reach.next_step, "%s", next_step);
}

/* ---- dma-buf ---- */

static int kernel_is_too_old(void)
{
    struct utsname system;
    int major, minor;

    return !uname(&system) && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
           (major < DMABUF_SINCE_MAJOR || (major == DMABUF_SINCE_MAJOR && minor < DMABUF_SINCE_MINOR));
}

static void explain_dmabuf(struct gtopo_verbs *v, int cause)
{
    char text[160];

    if (kernel_is_too_old()) {
        add_reason(v, "dma-buf", "this kernel is older than 5.12, the first that registers it", "update the kernel");
        return;
    }
    if (cause == EOPNOTSUPP || cause == EPROTONOSUPPORT || cause == ENOSYS)
        snprintf(text, sizeof text, "the driver of %.40s does not register it (%s)", v->own->device, strerror(cause));
    else
        snprintf(text, sizeof text, "%.40s refused to register it (%s)", v->own->device, strerror(cause));
    add_reason(v, "dma-buf", text, "use a NIC driver with dma-buf (mlx5 since Linux 5.12), or load nvidia-peermem");
}

static int on_pcie(const struct gtopo_verbs *v)
{
    char path[192];

    /* A software device has no device behind it; a NIC inside the GPU's module would not be on PCIe. */
    snprintf(path, sizeof path, "/sys/class/infiniband/%.63s/device/resource", v->own->device);
    return !access(path, F_OK);
}

/* 1 when it worked, 0 when not. */
static int try_dmabuf(struct gtopo_verbs *v, const struct gtopo_memory_facts *facts)
{
    const struct gtopo_memory *memory = v->region->memory;
    struct gtopo_error error = {0};
    int fd = -1, pcie = facts->coherent && on_pcie(v);
    uint64_t offset = 0;

    if (memory->export_dmabuf(v->region, pcie, &fd, &offset, &error)) {
        add_reason(v, "dma-buf", error.message, error.hint);
        return 0;
    }
    v->mr = ibv_reg_dmabuf_mr(v->pd, offset, v->region->size, (uintptr_t)v->region->data, fd, access_flags(v));
    if (!v->mr)
        explain_dmabuf(v, errno);
    close(fd);
    if (!v->mr)
        return 0;
    set_way(v, "dma-buf");
    snprintf(v->reach.mapping, sizeof v->reach.mapping, "%s", pcie ? "PCIe" : "default");
    return 1;
}

/* ---- peer memory ---- */

static int module_is_loaded(const char *name)
{
    char path[96];

    snprintf(path, sizeof path, "/sys/module/%s", name);
    return !access(path, F_OK);
}

static void explain_peer(struct gtopo_verbs *v, int cause)
{
    struct gtopo_error error = {0};
    char text[224];

    if (cause == ENOMEM) {
        errno = cause;
        gtopo_verbs_fail_resource(v, "register it", v->region->size, &error);
        add_reason(v, "peer memory", error.message, error.hint);
        return;
    }
    if (module_is_loaded("nvidia_peermem") || module_is_loaded("nv_peer_mem"))
        snprintf(text, sizeof text, "the peer-memory module is loaded, and %.40s refused the memory (%s)",
                 v->own->device, strerror(cause));
    else
        snprintf(text, sizeof text, "no peer-memory module is loaded (%s)", strerror(cause));
    add_reason(v, "peer memory", text, "`modprobe nvidia-peermem`");
}

static int try_peer(struct gtopo_verbs *v)
{
    v->mr = ibv_reg_mr(v->pd, v->region->data, v->region->size, access_flags(v));
    if (!v->mr) {
        explain_peer(v, errno);
        return 0;
    }
    set_way(v, "peer-memory");
    return 1;
}

/* ---- staged ---- */

/* What the driver says of the GPU itself comes first: no module helps where the GPU cannot. */
static void explain_gpu(struct gtopo_verbs *v, const struct gtopo_memory_facts *facts)
{
    char text[160];

    if (facts->no_gpudirect)
        snprintf(text, sizeof text,
                 "%.60s has no GPUDirect RDMA: the driver says so (a vGPU, or not a data centre GPU)", facts->name);
    else if (facts->mig)
        snprintf(text, sizeof text, "%.60s is a MIG slice", facts->name);
    else
        return;
    add_reason(v, "GPU", text, "ask for a whole GPU, or for a vGPU profile with GPUDirect");
}

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
    struct gtopo_memory_facts facts = {.name = ""};

    v->region->memory->facts(v->region, &facts);
    if ((!wanted || !strcmp(wanted, "dma-buf")) && try_dmabuf(v, &facts))
        return 0;
    if ((!wanted || !strcmp(wanted, "peer-memory")) && try_peer(v))
        return 0;
    if (wanted && strcmp(wanted, "staged"))
        return fail_way(v, wanted, error);
    if (!wanted)
        explain_gpu(v, &facts);
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
