/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/transport/reach.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define DMABUF_SINCE_MAJOR 5 /* Linux 5.12: ibv_reg_dmabuf_mr */
#define DMABUF_SINCE_MINOR 12

/* Of several causes, whose next step is told. */
enum weight {
    WEIGHT_DOUBT, /* it may be a cause */
    WEIGHT_WAY,   /* this way is not there; another may be */
    WEIGHT_NEAR,  /* this way is set up, and one thing stands before it */
    WEIGHT_GPU    /* no way helps as long as the GPU cannot */
};

struct finder {
    const struct gtopo_reach_facts *facts;
    struct gtopo_reach *reach;
    enum weight weight; /* of reach->next_step */
};

static void append(struct finder *f, const char *what, const char *reason, enum weight weight, const char *next_step)
{
    struct gtopo_reach *reach = f->reach;
    size_t length = strlen(reach->fallback);

    if (!strstr(reach->fallback, reason)) /* both mappings often fail alike */
        snprintf(reach->fallback + length, sizeof reach->fallback - length, "%s%s: %s", length ? "; " : "", what,
                 reason);
    if (next_step && (!reach->next_step[0] || weight > f->weight)) {
        snprintf(reach->next_step, sizeof reach->next_step, "%s", next_step);
        f->weight = weight;
    }
}

/*
 * A MIG slice alone is only a doubt: GPUDirect RDMA is supported from one, where the driver does not say otherwise.
 */
static void explain_gpu(struct finder *f)
{
    const struct gtopo_memory_facts *gpu = &f->facts->gpu;
    char text[160];

    if (gpu->no_gpudirect) {
        snprintf(text, sizeof text, "%.60s has no GPUDirect RDMA: the driver says so (%s)", gpu->name,
                 gpu->mig ? "a MIG slice" : "a vGPU, or not a data centre GPU");
        append(f, "GPU", text, WEIGHT_GPU,
               gpu->mig ? "ask for a whole GPU" : "ask for a whole GPU, or for a vGPU profile with GPUDirect");
    } else if (gpu->mig) {
        snprintf(text, sizeof text, "%.60s is a MIG slice", gpu->name);
        append(f, "GPU", text, WEIGHT_DOUBT, "compare with a whole GPU");
    }
}

/* Why a way failed. Before the first of them, what the driver says of the GPU itself. */
static void refuse(struct finder *f, const char *what, const char *reason, enum weight weight, const char *next_step)
{
    if (!f->reach->fallback[0])
        explain_gpu(f);
    append(f, what, reason, weight, next_step);
}

static int limit_of_locked_memory(unsigned long long *limit_B)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    *limit_B = limit.rlim_cur;
    return 1;
}

int gtopo_reach_fail_resource(const char *device, const char *what, size_t needed_B, int cause,
                              struct gtopo_error *error)
{
    unsigned long long limit_B;

    if (cause != ENOMEM || !limit_of_locked_memory(&limit_B))
        return gtopo_fail(error, cause == ENOMEM ? GTOPO_ESYSTEM : GTOPO_EDEVICE, "look at the kernel log (dmesg)",
                          "cannot %s on %s: %s", what, device, strerror(cause));
    return gtopo_fail(error, GTOPO_ESYSTEM,
                      "raise it: `ulimit -l unlimited`, or memlock in /etc/security/limits.conf and log in again; for "
                      "a service (slurmd) LimitMEMLOCK=infinity",
                      "cannot %s on %s: %s; this process may lock %llu bytes (RLIMIT_MEMLOCK) and %zu are needed", what,
                      device, strerror(cause), limit_B, needed_B);
}

/* ---- dma-buf ---- */

static int kernel_is_too_old(const char *release)
{
    int major, minor;

    return sscanf(release, "%d.%d", &major, &minor) == 2 &&
           (major < DMABUF_SINCE_MAJOR || (major == DMABUF_SINCE_MAJOR && minor < DMABUF_SINCE_MINOR));
}

static void refuse_registration(struct finder *f, const char *what, int cause)
{
    const struct gtopo_reach_facts *facts = f->facts;
    char text[160];

    if (kernel_is_too_old(facts->kernel)) {
        snprintf(text, sizeof text, "this kernel (%.40s) is older than 5.12, the first that registers it",
                 facts->kernel);
        refuse(f, what, text, WEIGHT_WAY, "update the kernel, or load nvidia-peermem");
        return;
    }
    if (cause == EOPNOTSUPP || cause == EPROTONOSUPPORT || cause == ENOSYS)
        snprintf(text, sizeof text, "the driver of %.40s does not register it (%s)", facts->device, strerror(cause));
    else
        snprintf(text, sizeof text, "%.40s refused to register it (%s)", facts->device, strerror(cause));
    refuse(f, what, text, WEIGHT_WAY, "use a NIC driver with dma-buf (mlx5 since Linux 5.12), or load nvidia-peermem");
}

static int try_dmabuf(struct finder *f, const struct gtopo_reach_steps *steps, int pcie)
{
    const char *what = pcie ? "dma-buf through PCIe" : "dma-buf";
    struct gtopo_error error = {0};
    int result = steps->register_dmabuf(steps->context, pcie, &error);

    if (result < 0)
        refuse(f, what, error.message, WEIGHT_WAY, error.hint);
    else if (result > 0)
        refuse_registration(f, what, result);
    else {
        snprintf(f->reach->way, sizeof f->reach->way, "dma-buf");
        snprintf(f->reach->mapping, sizeof f->reach->mapping, "%s", pcie ? "PCIe" : "default");
    }
    return !result;
}

/* ---- peer memory ---- */

static void refuse_peer(struct finder *f, int cause)
{
    static const char what[] = "peer memory";
    const struct gtopo_reach_facts *facts = f->facts;
    struct gtopo_error error = {0};
    unsigned long long limit_B;
    char text[224];

    if (cause == ENOMEM) {
        gtopo_reach_fail_resource(facts->device, "register it", facts->size_B, cause, &error);
        refuse(f, what, error.message, limit_of_locked_memory(&limit_B) ? WEIGHT_NEAR : WEIGHT_WAY, error.hint);
    } else if (facts->has_module) {
        snprintf(text, sizeof text, "the peer-memory module is loaded, and %.40s refused the memory (%s)",
                 facts->device, strerror(cause));
        refuse(f, what, text, WEIGHT_NEAR,
               "build nvidia-peermem against the RDMA stack that is in use, and load it after that");
    } else {
        snprintf(text, sizeof text, "no peer-memory module is loaded (%s)", strerror(cause));
        refuse(f, what, text, WEIGHT_WAY, "`modprobe nvidia-peermem`");
    }
}

static int try_peer(struct finder *f, const struct gtopo_reach_steps *steps)
{
    int cause = steps->register_peer(steps->context);

    if (cause)
        refuse_peer(f, cause);
    else
        snprintf(f->reach->way, sizeof f->reach->way, "peer-memory");
    return !cause;
}

/* ---- all ---- */

int gtopo_reach_find(const struct gtopo_reach_facts *facts, const char *wanted, const struct gtopo_reach_steps *steps,
                     struct gtopo_reach *reach)
{
    struct finder f = {.facts = facts, .reach = reach};

    if (!wanted || !strcmp(wanted, "dma-buf")) {
        if (facts->gpu.coherent && facts->on_pcie && try_dmabuf(&f, steps, 1))
            return 1;
        if (try_dmabuf(&f, steps, 0))
            return 1;
    }
    return (!wanted || !strcmp(wanted, "peer-memory")) && try_peer(&f, steps);
}

/* ---- what the GPU sees ---- */

const char *gtopo_reach_visibility(const struct gtopo_memory_facts *gpu, const struct gtopo_reach *reach, int flush)
{
    if (!strcmp(reach->way, "staged"))
        return "the copy makes the data visible to the GPU, without a flush";
    if (!gpu->flush_is_needed)
        return flush ? "the GPU sees remote writes without a flush; one was made and counted"
                     : "the GPU sees remote writes without a flush";
    if (!gpu->can_flush)
        return "the GPU needs a flush to see remote writes, and its driver has none";
    return flush ? "the GPU needs a flush to see remote writes, which is counted"
                 : "the GPU needs a flush to see remote writes, which is not counted (--flush)";
}
