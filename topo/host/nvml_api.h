/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVML that we use, from libnvidia-ml.so.1 of the machine's NVIDIA driver, opened when it is asked, so that
 * one build runs with and without a driver. Nothing is taken from NVIDIA's header: types and numbers are those of the
 * library's binary interface, which gives a changed function a "_v2" and a changed structure another version number.
 */
#ifndef GTOPO_TOPO_HOST_NVML_API_H
#define GTOPO_TOPO_HOST_NVML_API_H

struct gtopo_nvml_gpu; /* nvmlDevice_t */

/* Results of the functions. */
enum {
    GTOPO_NVML_SUCCESS = 0,
    GTOPO_NVML_UNINITIALIZED = 1,
    GTOPO_NVML_INVALID_ARGUMENT = 2,
    GTOPO_NVML_NOT_SUPPORTED = 3,
    GTOPO_NVML_NO_PERMISSION = 4,
    GTOPO_NVML_NOT_FOUND = 6,
    GTOPO_NVML_INSUFFICIENT_SIZE = 7,
    GTOPO_NVML_INSUFFICIENT_POWER = 8,
    GTOPO_NVML_DRIVER_NOT_LOADED = 9,
    GTOPO_NVML_TIMEOUT = 10,
    GTOPO_NVML_LIBRARY_NOT_FOUND = 12,
    GTOPO_NVML_FUNCTION_NOT_FOUND = 13,
    GTOPO_NVML_GPU_IS_LOST = 15,
    GTOPO_NVML_OPERATING_SYSTEM = 17,
    GTOPO_NVML_LIB_RM_VERSION_MISMATCH = 18,
    GTOPO_NVML_ARGUMENT_VERSION_MISMATCH = 25,
    GTOPO_NVML_UNKNOWN = 999,
};

/* Texts have these sizes, their closing zero included (those of NVML's "_V2" constants, where there are two). */
#define GTOPO_NVML_TEXT_B 96
#define GTOPO_NVML_BUS_ID_B 32
#define GTOPO_NVML_LINKS_MAX 36

struct gtopo_nvml_pci { /* nvmlPciInfo_t of the functions with _v3, and _v2 of a remote end */
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[GTOPO_NVML_BUS_ID_B]; /* "00000000:3B:00.0" */
};

struct gtopo_nvml_memory { /* nvmlMemory_t, bytes */
    unsigned long long total, free, used;
};

struct gtopo_nvml_field { /* nvmlFieldValue_t */
    unsigned field;       /* which */
    unsigned scope;       /* the number of the link */
    long long timestamp, latency_us;
    int type;   /* of the value: GTOPO_NVML_UNSIGNED … */
    int result; /* of this field alone */
    union {
        double real;
        unsigned number;
        unsigned long long wide;
    } value;
};
enum {
    GTOPO_NVML_TYPE_UNSIGNED = 1,
    GTOPO_NVML_TYPE_UNSIGNED_LONG = 2,
    GTOPO_NVML_TYPE_UNSIGNED_LONG_LONG = 3,
    GTOPO_NVML_TYPE_SIGNED_LONG_LONG = 4,
    GTOPO_NVML_TYPE_SIGNED_INT = 5,
};
enum { /* fields; speeds in megabytes per second of one link */
       GTOPO_NVML_NVLINK_COUNT = 91,
       GTOPO_NVML_NVLINK_SPEED = 164,
       GTOPO_NVML_C2C_COUNT = 170,
       GTOPO_NVML_C2C_STATUS = 171, /* 1: active */
       GTOPO_NVML_C2C_SPEED = 172,
};

struct gtopo_nvml_fabric { /* nvmlGpuFabricInfo_v2_t */
    unsigned version;
    unsigned char cluster[16];
    int result; /* of registering, once it is completed */
    unsigned clique;
    unsigned char state;
    unsigned health;
};
#define GTOPO_NVML_FABRIC_VERSION ((unsigned)sizeof(struct gtopo_nvml_fabric) | 2u << 24)
enum { GTOPO_NVML_FABRIC_NOT_STARTED = 1, GTOPO_NVML_FABRIC_IN_PROGRESS = 2, GTOPO_NVML_FABRIC_COMPLETED = 3 };

/* What is at the other end of an NVLink. */
enum { GTOPO_NVML_REMOTE_GPU = 0, GTOPO_NVML_REMOTE_CPU = 1, GTOPO_NVML_REMOTE_SWITCH = 2 };

enum { GTOPO_NVML_P2P_READ = 0 };   /* of nvmlDeviceGetP2PStatus: what is asked … */
enum { GTOPO_NVML_P2P_OK = 0 };     /* … and answered */
enum { GTOPO_NVML_SCOPE_NODE = 0 }; /* of nvmlDeviceGetMemoryAffinity */

/* clang-format off */
/* F(name, parameters): without one of these there is no knowing which GPU is which. */
#define GTOPO_NVML_NEEDED(F)                                                                                           \
    F(nvmlInit_v2, (void))                                                                                             \
    F(nvmlShutdown, (void))                                                                                            \
    F(nvmlDeviceGetCount_v2, (unsigned *count))                                                                        \
    F(nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct gtopo_nvml_gpu **gpu))                                    \
    F(nvmlDeviceGetPciInfo_v3, (struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_pci *pci))
/* What older drivers, or smaller ones (of Jetson), do not have. */
#define GTOPO_NVML_OPTIONAL(F)                                                                                         \
    F(nvmlSystemGetDriverVersion, (char *text, unsigned size))                                                         \
    F(nvmlDeviceGetUUID, (struct gtopo_nvml_gpu *gpu, char *text, unsigned size))                                      \
    F(nvmlDeviceGetName, (struct gtopo_nvml_gpu *gpu, char *text, unsigned size))                                      \
    F(nvmlDeviceGetCudaComputeCapability, (struct gtopo_nvml_gpu *gpu, int *major, int *minor))                        \
    F(nvmlDeviceGetMemoryInfo, (struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_memory *memory))                         \
    F(nvmlDeviceGetMigMode, (struct gtopo_nvml_gpu *gpu, unsigned *now, unsigned *pending))                            \
    F(nvmlDeviceGetMaxMigDeviceCount, (struct gtopo_nvml_gpu *gpu, unsigned *count))                                   \
    F(nvmlDeviceGetMigDeviceHandleByIndex,                                                                             \
      (struct gtopo_nvml_gpu *gpu, unsigned index, struct gtopo_nvml_gpu **slice))                                     \
    F(nvmlDeviceGetMemoryAffinity, (struct gtopo_nvml_gpu *gpu, unsigned words, unsigned long *nodes, int scope))      \
    F(nvmlDeviceGetNumaNodeId, (struct gtopo_nvml_gpu *gpu, unsigned *node))                                           \
    F(nvmlDeviceGetNvLinkState, (struct gtopo_nvml_gpu *gpu, unsigned link, unsigned *is_active))                      \
    F(nvmlDeviceGetNvLinkVersion, (struct gtopo_nvml_gpu *gpu, unsigned link, unsigned *version))                      \
    F(nvmlDeviceGetNvLinkRemoteDeviceType, (struct gtopo_nvml_gpu *gpu, unsigned link, int *kind))                     \
    F(nvmlDeviceGetNvLinkRemotePciInfo_v2,                                                                             \
      (struct gtopo_nvml_gpu *gpu, unsigned link, struct gtopo_nvml_pci *pci))                                         \
    F(nvmlDeviceGetFieldValues, (struct gtopo_nvml_gpu *gpu, int count, struct gtopo_nvml_field *fields))              \
    F(nvmlDeviceGetP2PStatus,                                                                                          \
      (struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_gpu *peer, int which, int *p2p))                                  \
    F(nvmlDeviceGetGpuFabricInfoV, (struct gtopo_nvml_gpu *gpu, struct gtopo_nvml_fabric *fabric))
/* clang-format on */

struct gtopo_nvml_api {
#define GTOPO_NVML_DECLARE(name, parameters) int(*name) parameters;
    GTOPO_NVML_NEEDED(GTOPO_NVML_DECLARE)
    GTOPO_NVML_OPTIONAL(GTOPO_NVML_DECLARE)
#undef GTOPO_NVML_DECLARE
};

#endif
