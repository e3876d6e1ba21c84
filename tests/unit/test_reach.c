/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to a GPU's memory: their order, and what is said when one fails. The GPU is the stand-in, exports are its
 * own; what a NIC makes of the memory is made up.
 */
#include "fake_cuda.h"
#include <errno.h>
#include <sys/resource.h>
#include "bench/transport/reach.h"

#define SIZE ((size_t)1 << 20)

/* Of a NIC: errno of each registration, 0 for one that works. */
struct nic {
    struct gtopo_region *region;
    int pcie, mapped, peer;
    int tried; /* 1: the PCIe mapping, 2: the default one, 4: peer memory */
};

static int register_dmabuf(void *context, int pcie, struct gtopo_error *error)
{
    struct nic *nic = context;
    uint64_t offset;
    int fd, status = nic->region->memory->export_dmabuf(nic->region, pcie, &fd, &offset, error);

    nic->tried |= pcie ? 1 : 2;
    if (!status)
        close(fd);
    return status ? status : pcie ? nic->pcie : nic->mapped;
}

static int register_peer(void *context)
{
    struct nic *nic = context;

    nic->tried |= 4;
    return nic->peer;
}

static struct gtopo_reach_facts mlx5(void)
{
    return (struct gtopo_reach_facts){.device = "mlx5_0", .kernel = "6.1.0-28-amd64", .on_pcie = 1, .size_B = SIZE};
}

/* What comes of it on a GPU as the options of the stand-in say; is a way found? */
static int find(struct gtopo_reach_facts facts, struct nic *nic, const char *wanted, struct gtopo_reach *reach)
{
    const struct gtopo_reach_steps steps = {register_dmabuf, register_peer, nic};
    struct gtopo_region region;
    struct gtopo_error error;
    int found;

    assert_ok(allocate("gpu:0", SIZE, &region, &error));
    region.memory->facts(&region, &facts.gpu);
    nic->region = &region;
    nic->tried = 0;
    memset(reach, 0, sizeof *reach);
    found = gtopo_reach_find(&facts, wanted, &steps, reach);
    region.memory->release(&region);
    assert_true(strlen(reach->fallback) + 1 < sizeof reach->fallback); /* nothing was cut off */
    return found;
}

static void assert_reached(const struct gtopo_reach *reach, const char *way, const char *mapping)
{
    assert_string_equal(reach->way, way);
    assert_string_equal(reach->mapping, mapping);
}

/* ---- the order ---- */

static void a_gpu_is_reached_by_the_default_mapping(void **state)
{
    struct gtopo_reach reach;
    struct nic nic = {0};

    (void)state;
    assert_true(find(mlx5(), &nic, NULL, &reach));
    assert_reached(&reach, "dma-buf", "default");
    assert_int_equal(nic.tried, 2);
    assert_string_equal(reach.fallback, "");
    assert_string_equal(reach.next_step, "");
}

static void a_coherent_gpu_is_reached_through_pcie(void **state)
{
    struct gtopo_reach_facts inside = mlx5();
    struct gtopo_reach reach;
    struct nic nic = {0};

    (void)state;
    fake_set("COHERENT", "1");
    assert_true(find(mlx5(), &nic, NULL, &reach));
    assert_reached(&reach, "dma-buf", "PCIe");
    assert_string_equal(reach.fallback, "");
    inside.on_pcie = 0;
    assert_true(find(inside, &nic, NULL, &reach));
    assert_reached(&reach, "dma-buf", "default");
    assert_int_equal(nic.tried, 2);
}

static void a_driver_without_the_pcie_mapping_gets_the_default_one(void **state)
{
    struct gtopo_reach reach;
    struct nic nic = {0};

    (void)state;
    fake_set("COHERENT", "1");
    fake_set("NO_PCIE", "1");
    assert_true(find(mlx5(), &nic, NULL, &reach));
    assert_reached(&reach, "dma-buf", "default");
    assert_int_equal(nic.tried, 1 | 2);
    assert_contains(reach.fallback, "dma-buf through PCIe: GPU 0: the driver does not export a dma-buf that is mapped");
    assert_contains(reach.next_step, "CUDA 12.8");
}

static void a_nic_that_refuses_the_pcie_mapping_gets_the_default_one(void **state)
{
    struct gtopo_reach reach;
    struct nic nic = {.pcie = EINVAL};

    (void)state;
    fake_set("COHERENT", "1");
    assert_true(find(mlx5(), &nic, "dma-buf", &reach));
    assert_reached(&reach, "dma-buf", "default");
    assert_string_equal(reach.fallback, "dma-buf through PCIe: mlx5_0 refused to register it (Invalid argument)");
}

static void peer_memory_comes_after_both_mappings(void **state)
{
    struct gtopo_reach reach;
    struct nic nic = {.pcie = EOPNOTSUPP, .mapped = EOPNOTSUPP};

    (void)state;
    fake_set("COHERENT", "1");
    assert_true(find(mlx5(), &nic, NULL, &reach));
    assert_reached(&reach, "peer-memory", "");
    assert_int_equal(nic.tried, 1 | 2 | 4);
    assert_string_equal(reach.fallback,
                        "dma-buf through PCIe: the driver of mlx5_0 does not register it (Operation not supported)");
}

static void only_the_way_that_is_wanted_is_tried(void **state)
{
    struct gtopo_reach reach;
    struct nic nic = {.mapped = EINVAL};

    (void)state;
    assert_true(find(mlx5(), &nic, "peer-memory", &reach));
    assert_int_equal(nic.tried, 4);
    assert_string_equal(reach.fallback, "");
    assert_false(find(mlx5(), &nic, "dma-buf", &reach));
    assert_int_equal(nic.tried, 2);
    assert_false(find(mlx5(), &nic, "staged", &reach));
    assert_int_equal(nic.tried, 0);
}

/* ---- causes ---- */

static void a_kernel_before_5_12_is_said(void **state)
{
    static const struct {
        const char *release;
        int is_too_old;
    } kernels[] = {{"4.18.0-553.el8.x86_64", 1}, {"5.11.22-7-pve", 1}, {"5.12.0", 0}, {"6.1.0-28-amd64", 0}, {"", 0}};
    struct nic nic = {.mapped = EOPNOTSUPP, .peer = EFAULT};
    struct gtopo_reach_facts facts = mlx5();
    struct gtopo_reach reach;
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        facts.kernel = kernels[i].release;
        assert_false(find(facts, &nic, NULL, &reach));
        snprintf(text, sizeof text, "dma-buf: this kernel (%s) is older than 5.12", facts.kernel);
        assert_int_equal(strstr(reach.fallback, text) != NULL, kernels[i].is_too_old);
        assert_int_equal(strstr(reach.next_step, "update the kernel") != NULL, kernels[i].is_too_old);
    }
}

static void a_missing_module_is_said(void **state)
{
    struct nic nic = {.mapped = EOPNOTSUPP, .peer = EFAULT};
    struct gtopo_reach reach;

    (void)state;
    assert_false(find(mlx5(), &nic, NULL, &reach));
    assert_contains(reach.fallback, "dma-buf: the driver of mlx5_0 does not register it");
    assert_contains(reach.fallback, "; peer memory: no peer-memory module is loaded (Bad address)");
    assert_contains(reach.next_step, "or load nvidia-peermem");
    assert_false(find(mlx5(), &nic, "peer-memory", &reach));
    assert_string_equal(reach.next_step, "`modprobe nvidia-peermem`");
}

static void a_module_that_refuses_is_not_to_be_loaded(void **state)
{
    struct nic nic = {.mapped = EOPNOTSUPP, .peer = EINVAL};
    struct gtopo_reach_facts facts = mlx5();
    struct gtopo_reach reach;

    (void)state;
    facts.has_module = 1;
    assert_false(find(facts, &nic, NULL, &reach));
    assert_contains(reach.fallback, "the peer-memory module is loaded, and mlx5_0 refused the memory (Invalid arg");
    assert_contains(reach.next_step, "build nvidia-peermem against the RDMA stack");
}

static void a_limit_of_locked_memory_is_said_with_its_value(void **state)
{
    struct nic nic = {.mapped = EOPNOTSUPP, .peer = ENOMEM};
    struct rlimit before, low;
    struct gtopo_reach reach;
    struct gtopo_reach_facts facts = mlx5();

    (void)state;
    facts.has_module = 1;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    low = (struct rlimit){65536, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
    assert_false(find(facts, &nic, NULL, &reach));
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
    assert_contains(reach.fallback, "peer memory: cannot register it on mlx5_0: Cannot allocate memory; this process "
                                    "may lock 65536 bytes (RLIMIT_MEMLOCK) and 1048576 are needed");
    assert_contains(reach.next_step, "ulimit -l unlimited");
    assert_contains(reach.next_step, "LimitMEMLOCK=infinity");
}

/* ---- what the GPU cannot ---- */

static void a_vgpu_without_gpudirect_is_the_first_cause(void **state)
{
    struct nic nic = {.mapped = EOPNOTSUPP, .peer = EFAULT};
    struct gtopo_reach_facts facts = mlx5();
    struct gtopo_reach reach;

    (void)state;
    fake_set("DEVICE_NAME", "GRID A100-10C");
    fake_set("NO_GPUDIRECT", "1");
    fake_set("NO_DMABUF", "1");
    for (facts.has_module = 0; facts.has_module < 2; facts.has_module++) {
        assert_false(find(facts, &nic, NULL, &reach));
        assert_int_equal(strncmp(reach.fallback, "GPU: GRID A100-10C has no GPUDirect RDMA: the driver says so (a vGPU",
                                 strlen("GPU: GRID A100-10C has no GPUDirect RDMA: the driver says so (a vGPU")),
                         0);
        assert_contains(reach.fallback, "; dma-buf: ");
        assert_contains(reach.fallback, "; peer memory: ");
        assert_string_equal(reach.next_step, "ask for a whole GPU, or for a vGPU profile with GPUDirect");
    }
}

static void a_mig_slice_without_gpudirect_is_the_first_cause(void **state)
{
    struct nic nic = {.peer = EFAULT};
    struct gtopo_reach reach;

    (void)state;
    fake_set("MIG", "1");
    fake_set("NO_GPUDIRECT", "1");
    fake_set("NO_DMABUF", "1");
    assert_false(find(mlx5(), &nic, NULL, &reach));
    assert_contains(reach.fallback,
                    "GPU: Fake GPU MIG 1g.10gb has no GPUDirect RDMA: the driver says so (a MIG slice)");
    assert_string_equal(reach.next_step, "ask for a whole GPU");
}

/* The driver says that the slice has GPUDirect: then a missing module is the likelier cause. */
static void a_mig_slice_alone_is_only_told(void **state)
{
    struct nic nic = {.mapped = EOPNOTSUPP, .peer = EFAULT};
    struct gtopo_reach reach;

    (void)state;
    fake_set("MIG", "1");
    assert_false(find(mlx5(), &nic, NULL, &reach));
    assert_contains(reach.fallback, "GPU: Fake GPU MIG 1g.10gb is a MIG slice; dma-buf: ");
    assert_contains(reach.next_step, "nvidia-peermem");
    nic.mapped = 0;
    assert_true(find(mlx5(), &nic, NULL, &reach));
    assert_string_equal(reach.fallback, "");
}

/* ---- what the GPU sees ---- */

static void it_is_said_whether_the_gpu_needs_a_flush(void **state)
{
    static const struct {
        const char *ordering, *options;
        int flush;
        const char *says;
    } gpus[] = {
        {"100", "1", 0, "without a flush"},
        {"200", "1", 1, "without a flush; one was made and counted"},
        {"0", "1", 0, "needs a flush to see remote writes, which is not counted (--flush)"},
        {"0", "1", 1, "needs a flush to see remote writes, which is counted"},
        {"0", "2", 0, "needs a flush to see remote writes, and its driver has none"},
    };
    struct gtopo_reach reach = {.way = "peer-memory"}, staged = {.way = "staged"};
    struct gtopo_memory_facts facts;
    struct gtopo_region region;
    struct gtopo_error error;

    (void)state;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        fake_set("ORDERING", gpus[i].ordering);
        fake_set("FLUSH", gpus[i].options);
        assert_ok(allocate("gpu:0", SIZE, &region, &error));
        region.memory->facts(&region, &facts);
        region.memory->release(&region);
        assert_contains(gtopo_reach_visibility(&facts, &reach, gpus[i].flush), gpus[i].says);
        assert_contains(gtopo_reach_visibility(&facts, &staged, gpus[i].flush), "the copy makes the data visible");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        unit(a_gpu_is_reached_by_the_default_mapping),
        unit(a_coherent_gpu_is_reached_through_pcie),
        unit(a_driver_without_the_pcie_mapping_gets_the_default_one),
        unit(a_nic_that_refuses_the_pcie_mapping_gets_the_default_one),
        unit(peer_memory_comes_after_both_mappings),
        unit(only_the_way_that_is_wanted_is_tried),
        unit(a_kernel_before_5_12_is_said),
        unit(a_missing_module_is_said),
        unit(a_module_that_refuses_is_not_to_be_loaded),
        unit(a_limit_of_locked_memory_is_said_with_its_value),
        unit(a_vgpu_without_gpudirect_is_the_first_cause),
        unit(a_mig_slice_without_gpudirect_is_the_first_cause),
        unit(a_mig_slice_alone_is_only_told),
        unit(it_is_said_whether_the_gpu_needs_a_flush),
    };

    return fake_load("") ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
