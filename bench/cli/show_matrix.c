/* SPDX-License-Identifier: Apache-2.0 */
/* How near every device is to every other, in the form of `nvidia-smi topo -m`. */
#include "cli.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct matrix {
    FILE *out;
    const struct gtopo_map *map;
    uint32_t *devices;
    size_t count;
    uint8_t *nccl_classes; /* NULL for nvidia-smi's */
};

const char *cli_upper_name(const struct gtopo_map *map, uint32_t id, char text[GTOPO_ADDRESS_MAX])
{
    char *slash;

    gtopo_address_format(map, id, text);
    slash = strchr(text, '/');
    if (slash)
        memmove(text, slash + 1, strlen(slash));
    for (char *c = text; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return text;
}

/* GPUs first, then NICs, then storage, as people know the table. */
static int list_devices(struct matrix *m, uint32_t host, struct gtopo_error *error)
{
    static const enum gtopo_object_kind kinds[] = {GTOPO_GPU, GTOPO_NIC, GTOPO_STORAGE};
    uint32_t first, count;

    gtopo_map_host_objects(m->map, host, &first, &count, NULL);
    free(m->devices);
    m->count = 0;
    m->devices = calloc(count, sizeof *m->devices);
    if (!m->devices)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t id = first; id < first + count; id++) {
            struct gtopo_object object;

            if (!gtopo_map_object(m->map, id, &object, NULL) && object.kind == kinds[k])
                m->devices[m->count++] = id;
        }
    return 0;
}

/* The processors near a device: those of its NUMA node. */
static void put_affinity(const struct matrix *m, uint32_t device, uint32_t host)
{
    uint64_t numa, index;
    uint32_t first, count;
    const char *cpus = NULL;

    if (!gtopo_map_number(m->map, device, GTOPO_ATTRIBUTE_NUMA, &numa)) {
        fprintf(m->out, "  %-14s  %s\n", "?", "?");
        return;
    }
    gtopo_map_host_objects(m->map, host, &first, &count, NULL);
    for (uint32_t id = first; id < first + count; id++) {
        struct gtopo_object object;

        gtopo_map_object(m->map, id, &object, NULL);
        if (object.kind == GTOPO_NUMA && gtopo_map_number(m->map, id, GTOPO_ATTRIBUTE_OS_INDEX, &index) &&
            index == numa)
            cpus = gtopo_map_text(m->map, id, GTOPO_ATTRIBUTE_CPUS);
    }
    fprintf(m->out, "  %-14s  %llu\n", cpus ? cpus : "?", (unsigned long long)numa);
}

static int put_cell(const struct matrix *m, size_t i, size_t j, struct gtopo_error *error)
{
    struct gtopo_path path;
    char text[16];
    unsigned links;
    int status;

    if (m->nccl_classes) {
        fprintf(m->out, "  %-8s", i == j ? "X" : gtopo_nccl_class_name(m->nccl_classes[i * m->count + j]));
        return 0;
    }
    status = gtopo_path_find(m->map, m->devices[i], m->devices[j], &path, error);
    if (status)
        return status;
    snprintf(text, sizeof text, "%s", gtopo_path_class_name(path.path_class));
    if (path.path_class == GTOPO_PATH_NVLINK) {
        links = gtopo_nvlink_count(m->map, m->devices[i], m->devices[j]);
        snprintf(text, sizeof text, links ? "NV%u" : "XGMI", links);
    }
    fprintf(m->out, "  %-8s", text);
    gtopo_path_clear(&path);
    return 0;
}

static int put_rows(const struct matrix *m, uint32_t host, struct gtopo_error *error)
{
    char name[GTOPO_ADDRESS_MAX];

    fprintf(m->out, "%-10s", "");
    for (size_t i = 0; i < m->count; i++)
        fprintf(m->out, "  %-8s", cli_upper_name(m->map, m->devices[i], name));
    fprintf(m->out, "  %-14s  %s\n", "CPU Affinity", "NUMA Affinity");
    for (size_t i = 0; i < m->count; i++) {
        fprintf(m->out, "%-10s", cli_upper_name(m->map, m->devices[i], name));
        for (size_t j = 0; j < m->count; j++) {
            int status = put_cell(m, i, j, error);

            if (status)
                return status;
        }
        put_affinity(m, m->devices[i], host);
    }
    return 0;
}

static const char nccl_legend[] = "  X     the device itself\n"
                                  "  NVL   NVLink or XGMI\n"
                                  "  NVB   NVLink by way of another GPU\n"
                                  "  C2C   C2C\n"
                                  "  PIX   at most one PCIe switch\n"
                                  "  PXB   several PCIe switches, not the host bridge\n"
                                  "  P2C   a GPU over C2C to a NIC of its processor\n"
                                  "  PXN   to a NIC by way of another GPU\n"
                                  "  PHB   the processor (NUMA node)\n"
                                  "  SYS   the link between NUMA nodes\n"
                                  "  ?     the machine hides it\n\n";

static void put_legend(const struct matrix *m)
{
    fputs("\nLegend:\n", m->out);
    fputs(m->nccl_classes ? nccl_legend
                          : "  X     the device itself\n"
                            "  NV#   so many NVLinks; XGMI: links of AMD\n"
                            "  PIX   at most one PCIe switch\n"
                            "  PXB   several PCIe switches, not the host bridge\n"
                            "  PHB   the PCIe host bridge (CPU)\n"
                            "  NODE  host bridges of one NUMA node\n"
                            "  SYS   the link between NUMA nodes\n"
                            "  ?     the machine hides it\n\n",
          m->out);
    for (size_t i = 0; i < m->count; i++) {
        const char *device = gtopo_map_text(m->map, m->devices[i], GTOPO_ATTRIBUTE_DEVICE);
        const char *address = gtopo_map_text(m->map, m->devices[i], GTOPO_ATTRIBUTE_PCI_ADDRESS);
        char name[GTOPO_ADDRESS_MAX];

        fprintf(m->out, "  %s: %s%s%s\n", cli_upper_name(m->map, m->devices[i], name), device ? device : "",
                device && address ? "  " : "", address ? address : "");
    }
}

/* NCCL's classes of all devices, where they are asked for. */
static int find_nccl_classes(struct matrix *m, struct gtopo_error *error)
{
    free(m->nccl_classes);
    m->nccl_classes = calloc(m->count * m->count + 1, 1);
    if (!m->nccl_classes)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    return gtopo_nccl_classes(m->map, m->devices, m->count, m->nccl_classes, error);
}

int cli_show_matrix(FILE *out, const struct gtopo_map *map, int of_nccl, struct gtopo_error *error)
{
    struct matrix m = {.out = out, .map = map};
    int status = 0;

    for (uint32_t host = 0; !status && host < gtopo_map_host_count(map); host++) {
        status = list_devices(&m, host, error);
        if (status)
            break;
        if (gtopo_map_host_count(map) > 1)
            fprintf(out, "%s%s:\n", host ? "\n" : "", gtopo_map_host_name(map, host));
        if (!m.count) {
            fprintf(out, "%s has no GPU, NIC or storage in the map\n", gtopo_map_host_name(map, host));
            continue;
        }
        status = of_nccl ? find_nccl_classes(&m, error) : 0;
        if (!status)
            status = put_rows(&m, host, error);
        if (!status)
            put_legend(&m);
    }
    free(m.devices);
    free(m.nccl_classes);
    return status;
}
