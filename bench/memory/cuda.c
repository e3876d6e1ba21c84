/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver: found, started, and its failures in words. */
#include "bench/memory/cuda.h"
#include "bench/signals.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

/* ---- failures ---- */

/* What a result means to people, and what to do about it. From the driver API's reference and NVIDIA's admin guides. */
static const struct advice {
    int result, status;
    const char *name; /* for a driver that does not know its own */
    const char *cause, *hint;
} advices[] = {
    {1, GTOPO_EDEVICE, "CUDA_ERROR_INVALID_VALUE", "the driver does not accept it", "is the driver up to date?"},
    {2, GTOPO_ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY", "there is not enough memory",
     "use a smaller message or depth; nvidia-smi shows who uses the GPU's memory"},
    {3, GTOPO_ESYSTEM, "CUDA_ERROR_NOT_INITIALIZED", "the driver was started in the parent of this process",
     "after fork() start a new program, or do not use the GPU before it"},
    {4, GTOPO_ESYSTEM, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down: the process is ending", NULL},
    {34, GTOPO_EMISSING, "CUDA_ERROR_STUB_LIBRARY", "the " LIBRARY " that was found is the CUDA Toolkit's stub",
     "take the folder \"stubs\" out of LD_LIBRARY_PATH, so that the driver's own library is found"},
    {36, GTOPO_EMISSING, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the driver is too old", "install a newer driver"},
    {46, GTOPO_ESYSTEM, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the GPU is busy, or set to be used by one process only",
     "nvidia-smi shows its processes; `nvidia-smi -c DEFAULT` lets several use it"},
    {100, GTOPO_EMISSING, "CUDA_ERROR_NO_DEVICE", "the driver sees no GPU",
     "look at `nvidia-smi -L` and CUDA_VISIBLE_DEVICES; in a container, pass the GPUs on (--gpus all)"},
    {101, GTOPO_EMISSING, "CUDA_ERROR_INVALID_DEVICE", "there is no such GPU, or its MIG slices are not made",
     "look at `nvidia-smi -L`"},
    {102, GTOPO_EMISSING, "CUDA_ERROR_DEVICE_NOT_LICENSED", "the virtual GPU has no licence",
     "look at the vGPU licence of this machine (`nvidia-smi -q | grep -i licen`)"},
    {201, GTOPO_EDEVICE, "CUDA_ERROR_INVALID_CONTEXT", "its context is gone: the program has reset the GPU",
     "do not call cudaDeviceReset() while a probe runs"},
    {214, GTOPO_EDEVICE, "CUDA_ERROR_ECC_UNCORRECTABLE", "its memory has an error that ECC could not correct",
     "look at the kernel log (dmesg, \"Xid\") and `nvidia-smi -q -d ECC`, and reset the GPU"},
    {217, GTOPO_EDEVICE, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "the two GPUs cannot reach each other",
     "look at `nvidia-smi topo -p2p r`"},
    {220, GTOPO_EDEVICE, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "NVLink had an error that could not be corrected",
     "look at the kernel log (dmesg, \"Xid\") and `nvidia-smi nvlink -e`"},
    {304, GTOPO_ESYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "the operating system refused something to the driver",
     "look at the permissions of /dev/nvidia*, at `ulimit -n` and `ulimit -l`, and at the kernel log (dmesg)"},
    {700, GTOPO_EDEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS", "an earlier program on this context has broken it",
     "start the process again"},
    {709, GTOPO_EDEVICE, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "its context is gone: the program has reset the GPU",
     "do not call cudaDeviceReset() while a probe runs"},
    {712, GTOPO_EDEVICE, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "that memory is registered already", NULL},
    {719, GTOPO_EDEVICE, "CUDA_ERROR_LAUNCH_FAILED", "an earlier program on this context has broken it",
     "start the process again"},
    {800, GTOPO_ESYSTEM, "CUDA_ERROR_NOT_PERMITTED", "it is not permitted",
     "is the GPU in confidential-computing mode, or the process in a restricted container?"},
    {801, GTOPO_EMISSING, "CUDA_ERROR_NOT_SUPPORTED", "this driver or GPU cannot do that", "is the driver up to date?"},
    {802, GTOPO_ESYSTEM, "CUDA_ERROR_SYSTEM_NOT_READY",
     "the machine is not ready: its NVLink switches are not configured yet",
     "start the fabric manager (`systemctl start nvidia-fabricmanager`); it has to be of the driver's version"},
    {803, GTOPO_ESYSTEM, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "the driver in the kernel and its library are of different versions",
     "load the kernel's part anew (reboot after an update); in a container, use the host's " LIBRARY},
    {804, GTOPO_ESYSTEM, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "a forward-compatibility " LIBRARY " was found, which this GPU does not run with",
     "take CUDA's folder \"compat\" out of LD_LIBRARY_PATH, or update the driver"},
    {805, GTOPO_ESYSTEM, "CUDA_ERROR_MPS_CONNECTION_FAILED", "the MPS server does not answer",
     "look at nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY"},
    {999, GTOPO_ESYSTEM, "CUDA_ERROR_UNKNOWN", "the driver does not say why",
     "look at the kernel log (dmesg, \"NVRM\"), load nvidia-uvm (`nvidia-modprobe -u -c 0`), or reboot"},
};

int gtopo_cuda_fail(const struct gtopo_cuda *cuda, int result, const char *which, const char *what,
                    struct gtopo_error *error)
{
    static const struct advice other = {0, GTOPO_EDEVICE, "unknown", "the driver refused", "look at the kernel log"};
    const struct advice *advice = &other;
    const char *name = NULL;

    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (advices[i].result == result)
            advice = &advices[i];
    if (cuda->cuGetErrorName(result, &name) || !name)
        name = advice->name;
    return gtopo_fail(error, advice->status, advice->hint, "%s%.31s: cannot %s: %s (%s, %d)",
                      which ? "GPU " : "the NVIDIA driver", which ? which : "", what, advice->cause, name, result);
}

/* ---- the library ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gtopo_cuda functions; /* written once, before anybody has it */
static int is_open, is_ready;

static int open_library(void **library, struct gtopo_error *error)
{
    const char *cause;

    *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (*library)
        return 0;
    cause = dlerror();
    if (cause && strstr(cause, "No such file"))
        return gtopo_fail(error, GTOPO_EMISSING,
                          "install the NVIDIA driver; in a container, pass the GPUs on (--gpus all), which brings it",
                          "the NVIDIA driver's library " LIBRARY " is not there");
    return gtopo_fail(error, GTOPO_EMISSING, "install the NVIDIA driver again, for this processor",
                      "the NVIDIA driver's library cannot be loaded: %s", cause ? cause : LIBRARY);
}

/* Look up a function; a table's place for it is given as bytes, since C has no cast to a function's address. */
static void look_up(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof address);
}

static int resolve(void *library, struct gtopo_error *error)
{
    const char *missing = NULL;

#define LOOK_UP(name, parameters) look_up(library, #name, &functions.name);
#define NEED(name, parameters)                                                                                         \
    LOOK_UP(name, )                                                                                                    \
    if (!functions.name)                                                                                               \
        missing = #name;
    GTOPO_CUDA_NEEDED(NEED)
    GTOPO_CUDA_OPTIONAL(LOOK_UP)
#undef NEED
#undef LOOK_UP
    if (missing)
        return gtopo_fail(error, GTOPO_EMISSING, "install a newer driver",
                          "the NVIDIA driver is too old: its " LIBRARY " has no %s", missing);
    return 0;
}

static int start(struct gtopo_error *error)
{
    void *library = NULL;
    int status = 0, result;

    if (!is_open) {
        status = open_library(&library, error);
        if (!status)
            status = resolve(library, error);
        if (status && library)
            dlclose(library);
        is_open = !status; /* never closed: the driver has threads and handlers at the end of the process */
    }
    if (status)
        return status;
    result = functions.cuInit(0);
    return result ? gtopo_cuda_fail(&functions, result, NULL, "start", error) : 0;
}

int gtopo_cuda_load(const struct gtopo_cuda **cuda, struct gtopo_error *error)
{
    struct gtopo_signals signals;
    int status = 0;

    pthread_mutex_lock(&lock);
    if (!is_ready) {
        gtopo_signals_save(&signals);
        status = start(error);
        gtopo_signals_restore(&signals);
        is_ready = !status;
    }
    pthread_mutex_unlock(&lock);
    if (!status)
        *cuda = &functions;
    return status;
}
