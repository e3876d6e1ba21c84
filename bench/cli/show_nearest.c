/* SPDX-License-Identifier: Apache-2.0 */
/* The NICs of each GPU, nearest first, with what the way between the two should do and was measured to do, and why. */
#include "cli.h"
#include <string.h>

#define NICS_MAX 256

/* Why a NIC is as near as it is. */
static const char *const reasons[GTOPO_PATH_CLASSES] = {
    [GTOPO_PATH_SELF] = "one card",
    [GTOPO_PATH_NVLINK] = "NVLink",
    [GTOPO_PATH_C2C] = "C2C",
    [GTOPO_PATH_PIX] = "at most one PCIe switch between",
    [GTOPO_PATH_PXB] = "several PCIe switches between",
    [GTOPO_PATH_PHB] = "on one host bridge",
    [GTOPO_PATH_NODE] = "on host bridges of one NUMA node",
    [GTOPO_PATH_SYS] = "on another NUMA node",
    [GTOPO_PATH_UNKNOWN] = "the machine hides what is between",
    [GTOPO_PATH_NET] = "across the network",
    [GTOPO_PATH_NONE] = "not connected in the map",
};

/* What limits the way: "; bottleneck: PCI-SWITCH0 to NIC0, pcie x8 at 16 GT/s". */
static void put_bottleneck(FILE *out, const struct gtopo_map *map, uint32_t id)
{
    struct gtopo_link link;
    char ends[2][GTOPO_ADDRESS_MAX];

    if (gtopo_map_link(map, id, &link, NULL))
        return;
    fprintf(out, "; bottleneck: %s to %s, %s", cli_upper_name(map, link.ends[0], ends[0]),
            cli_upper_name(map, link.ends[1], ends[1]), gtopo_link_kind_name(link.kind));
    if (link.width)
        fprintf(out, " x%u", link.width);
    if (link.speed_MTps)
        fprintf(out, " at %g GT/s", link.speed_MTps / 1000.0);
}

static const char *device_of(const struct gtopo_map *map, const struct gtopo_near_nic *near)
{
    const char *device = gtopo_map_text(map, near->port, GTOPO_ATTRIBUTE_DEVICE);

    device = device ? device : gtopo_map_text(map, near->nic, GTOPO_ATTRIBUTE_DEVICE);
    device = device ? device : gtopo_map_text(map, near->nic, GTOPO_ATTRIBUTE_PCI_ADDRESS);
    return device ? device : "?";
}

static void put_nic(FILE *out, const struct gtopo_map *map, uint32_t gpu, const struct gtopo_near_nic *near)
{
    char names[2][GTOPO_ADDRESS_MAX], rate[CLI_TEXT] = "?", measured[CLI_TEXT] = "-";
    const char *cpus = "?";
    struct gtopo_measurement m;
    uint32_t place, index;

    if (near->bottleneck_Bps)
        cli_rate((double)near->bottleneck_Bps, rate);
    if (!gtopo_map_loopback(map, (struct gtopo_end){gpu, near->port}, GTOPO_BANDWIDTH_Bps, 0, &index, NULL) &&
        !gtopo_map_measurement(map, index, &m, NULL))
        cli_rate(m.median, measured);
    if (!gtopo_processors_of_pair(map, gpu, near->nic, &place, NULL))
        cpus = gtopo_map_text(map, place, GTOPO_ATTRIBUTE_CPUS);
    fprintf(out, "%-6s  %-8s  %-5s  %-10s  %-10s  %-14s  %-10s  %s", cli_upper_name(map, gpu, names[0]),
            cli_upper_name(map, near->port == GTOPO_NONE ? near->nic : near->port, names[1]),
            gtopo_path_class_name(near->path_class), rate, measured, cpus, device_of(map, near),
            near->is_down ? "no port has a link; " : "");
    fputs(reasons[near->path_class], out);
    put_bottleneck(out, map, near->bottleneck_link);
    fputc('\n', out);
}

static int put_gpu(FILE *out, const struct gtopo_map *map, uint32_t gpu, struct gtopo_error *error)
{
    struct gtopo_near_nic nics[NICS_MAX];
    char name[GTOPO_ADDRESS_MAX];
    size_t count;
    int status = gtopo_nearest_nics(map, gpu, nics, NICS_MAX, &count, error);

    if (status)
        return status;
    if (!count)
        fprintf(out, "%s  there is no NIC in the map of its host\n", cli_upper_name(map, gpu, name));
    for (size_t i = 0; i < count && i < NICS_MAX; i++)
        put_nic(out, map, gpu, &nics[i]);
    if (count > NICS_MAX)
        fprintf(out, "%s  and %zu NICs more\n", cli_upper_name(map, gpu, name), count - NICS_MAX);
    return 0;
}

static int put_host(FILE *out, const struct gtopo_map *map, uint32_t host, uint32_t only, struct gtopo_error *error)
{
    uint32_t first, count, gpus = 0;
    int status = gtopo_map_host_objects(map, host, &first, &count, error);

    for (uint32_t id = first; !status && id < first + count; id++) {
        struct gtopo_object object;

        if (gtopo_map_object(map, id, &object, NULL) || object.kind != GTOPO_GPU || (only != GTOPO_NONE && only != id))
            continue;
        if (!gpus++)
            fprintf(out, "%-6s  %-8s  %-5s  %-10s  %-10s  %-14s  %-10s  %s\n", "GPU", "NIC", "class", "bottleneck",
                    "measured", "processors", "device", "reason");
        status = put_gpu(out, map, id, error);
    }
    if (!status && !gpus)
        fprintf(out, "%s has no GPU in the map\n", gtopo_map_host_name(map, host));
    return status;
}

int cli_show_nearest(FILE *out, const struct gtopo_map *map, const char *only, struct gtopo_error *error)
{
    struct gtopo_address gpu = {.object = GTOPO_NONE};
    struct gtopo_object object = {.host = GTOPO_NONE};
    int status = only ? gtopo_address_parse(map, only, &gpu, error) : 0;

    if (!status && only)
        status = gtopo_map_object(map, gpu.object, &object, error);
    if (!status && only && object.kind != GTOPO_GPU)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "--nearest=%s: name a GPU", only);
    for (uint32_t host = 0; !status && host < gtopo_map_host_count(map); host++) {
        if (object.host != GTOPO_NONE && object.host != host)
            continue;
        if (gtopo_map_host_count(map) > 1)
            fprintf(out, "%s%s:\n", host && !only ? "\n" : "", gtopo_map_host_name(map, host));
        status = put_host(out, map, host, gpu.object, error);
    }
    return status;
}
