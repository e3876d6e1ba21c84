/* SPDX-License-Identifier: Apache-2.0 */
/* The words for enumerated values, in one place for files, screens and readers. */
#include "lib/map.h"

static const char *const object_kinds[GTOPO_OBJECT_KINDS] = {
    [GTOPO_MACHINE] = "machine",
    [GTOPO_PACKAGE] = "package",
    [GTOPO_NUMA] = "numa",
    [GTOPO_HOST_BRIDGE] = "host-bridge",
    [GTOPO_PCI_SWITCH] = "pci-switch",
    [GTOPO_GPU] = "gpu",
    [GTOPO_NIC] = "nic",
    [GTOPO_PORT] = "port",
    [GTOPO_STORAGE] = "storage",
    [GTOPO_NVSWITCH] = "nvswitch",
    [GTOPO_SWITCH] = "switch",
};
static const char *const link_kinds[GTOPO_LINK_KINDS] = {
    [GTOPO_LINK_SOCKET] = "socket", [GTOPO_LINK_MEMORY] = "memory", [GTOPO_LINK_PLATFORM] = "platform",
    [GTOPO_LINK_PCIE] = "pcie",     [GTOPO_LINK_PORT] = "port",     [GTOPO_LINK_C2C] = "c2c",
    [GTOPO_LINK_NVLINK] = "nvlink", [GTOPO_LINK_XGMI] = "xgmi",     [GTOPO_LINK_NETWORK] = "network",
};
static const char *const gid_types[] = {
    [GTOPO_GID_IB] = "IB", [GTOPO_GID_ROCE_V1] = "RoCE v1", [GTOPO_GID_ROCE_V2] = "RoCE v2"};
static const char *const provenances[GTOPO_PROVENANCES] = {
    [GTOPO_MEASURED] = "measured", [GTOPO_NOMINAL] = "nominal",   [GTOPO_SIMULATED] = "simulated",
    [GTOPO_MODELLED] = "modelled", [GTOPO_IMPORTED] = "imported",
};
static const char *const metrics[GTOPO_METRICS] = {
    [GTOPO_BANDWIDTH_Bps] = "bandwidth_Bps", [GTOPO_LATENCY_ns] = "latency_ns"};
static const char *const severities[GTOPO_SEVERITIES] = {
    [GTOPO_NOTE] = "note", [GTOPO_WARNING] = "warning", [GTOPO_FAULT] = "fault"};
static const char *const path_classes[GTOPO_PATH_CLASSES] = {
    [GTOPO_PATH_SELF] = "X",  [GTOPO_PATH_NVLINK] = "NV", [GTOPO_PATH_C2C] = "C2C",   [GTOPO_PATH_PIX] = "PIX",
    [GTOPO_PATH_PXB] = "PXB", [GTOPO_PATH_PHB] = "PHB",   [GTOPO_PATH_NODE] = "NODE", [GTOPO_PATH_SYS] = "SYS",
    [GTOPO_PATH_NET] = "NET", [GTOPO_PATH_UNKNOWN] = "?", [GTOPO_PATH_NONE] = "-",
};

static const char *const nccl_classes[GTOPO_NCCL_CLASSES] = {
    [GTOPO_NCCL_LOC] = "LOC",   [GTOPO_NCCL_NVL] = "NVL", [GTOPO_NCCL_NVB] = "NVB", [GTOPO_NCCL_C2C] = "C2C",
    [GTOPO_NCCL_PIX] = "PIX",   [GTOPO_NCCL_PXB] = "PXB", [GTOPO_NCCL_P2C] = "P2C", [GTOPO_NCCL_PXN] = "PXN",
    [GTOPO_NCCL_PHB] = "PHB",   [GTOPO_NCCL_SYS] = "SYS", [GTOPO_NCCL_NET] = "NET", [GTOPO_NCCL_DIS] = "DIS",
    [GTOPO_NCCL_UNKNOWN] = "?",
};

#define WORD(table, value) ((unsigned)(value) < sizeof(table) / sizeof *(table) ? (table)[value] : "?")

const char *gtopo_object_kind_name(enum gtopo_object_kind kind)
{
    return WORD(object_kinds, kind);
}

const char *gtopo_link_kind_name(enum gtopo_link_kind kind)
{
    return WORD(link_kinds, kind);
}

const char *gtopo_gid_type_name(enum gtopo_gid_type type)
{
    return WORD(gid_types, type);
}

const char *gtopo_provenance_name(enum gtopo_provenance provenance)
{
    return WORD(provenances, provenance);
}

const char *gtopo_metric_key(enum gtopo_metric metric)
{
    return WORD(metrics, metric);
}

const char *gtopo_severity_name(enum gtopo_severity severity)
{
    return WORD(severities, severity);
}

const char *gtopo_path_class_name(enum gtopo_path_class path_class)
{
    return WORD(path_classes, path_class);
}

const char *gtopo_nccl_class_name(enum gtopo_nccl_class nccl_class)
{
    return WORD(nccl_classes, nccl_class);
}
