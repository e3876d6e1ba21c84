/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How near every device is to every other: the table of `nvidia-smi topo -m`, columns separated by tabs, with what was
 * measured beside the class. Scripts read it, so there is nothing in it that such a table does not have, unless the
 * map has it: a way that nvidia-smi has no word for, or a measurement.
 */
#include "cli.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CELL_MAX 16

struct matrix {
    FILE *out;
    const struct gtopo_map *map;
    uint32_t *devices;
    size_t count;
    uint8_t *nccl_classes; /* NULL for nvidia-smi's */
    double *measured_Bps;  /* [from * count + to], 0 for nothing */
    unsigned seen;         /* what cells held, by the bits of struct word */
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

static unsigned kind_of(const struct matrix *m, uint32_t id)
{
    struct gtopo_object object = {0};

    gtopo_map_object(m->map, id, &object, NULL);
    return object.kind;
}

/* What is a part of another NIC that is in the table: a virtual function, a Data Direct function. */
static int is_part_of_nic(const struct matrix *m, uint32_t id)
{
    const char *role = gtopo_map_text(m->map, id, GTOPO_ATTRIBUTE_ROLE);

    return role && (!strcmp(role, "virtual-function") || !strcmp(role, "data-direct"));
}

/* GPUs first, then NICs, as people know the table; then storage, which nvidia-smi does not have. */
static int list_devices(struct matrix *m, uint32_t host, int with_storage, struct gtopo_error *error)
{
    static const enum gtopo_object_kind kinds[] = {GTOPO_GPU, GTOPO_NIC, GTOPO_STORAGE};
    uint32_t first, count;

    gtopo_map_host_objects(m->map, host, &first, &count, NULL);
    m->devices = calloc(count, sizeof *m->devices);
    if (!m->devices)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds - !with_storage; k++)
        for (uint32_t id = first; id < first + count; id++)
            if (kind_of(m, id) == kinds[k] && !is_part_of_nic(m, id))
                m->devices[m->count++] = id;
    return 0;
}

/* ---- what was measured ---- */

/* The place of a device in the table; `count` for what is not in it. */
static size_t place_of(const struct matrix *m, uint32_t id)
{
    size_t i = 0;

    while (i < m->count && m->devices[i] != id)
        i++;
    return i;
}

static void keep_best(struct matrix *m, size_t from, size_t to, double value_Bps)
{
    double *cell = from < m->count && to < m->count ? &m->measured_Bps[from * m->count + to] : NULL;

    if (cell && value_Bps > *cell)
        *cell = value_Bps;
}

/* Of a GPU's memory through a NIC, wherever the bytes went; and from a GPU's memory to another's, copied inside. */
static void place_measurement(struct matrix *m, const struct gtopo_measurement *measurement)
{
    const struct gtopo_end *ends[2] = {&measurement->from, &measurement->to};
    int is_copy = 1;

    for (int i = 0; i < 2; i++) {
        struct gtopo_object via = {0};
        size_t gpu = place_of(m, ends[i]->memory), nic;

        if (gtopo_map_object(m->map, ends[i]->via, &via, NULL) || via.kind != GTOPO_PORT)
            continue;
        is_copy = 0;
        nic = place_of(m, via.parent);
        keep_best(m, gpu, nic, measurement->median);
        keep_best(m, nic, gpu, measurement->median);
    }
    if (is_copy)
        keep_best(m, place_of(m, ends[0]->memory), place_of(m, ends[1]->memory), measurement->median);
}

/* A measurement beside others, or both ways at once, says nothing of one pair. */
static void place_measurements(struct matrix *m)
{
    struct gtopo_measurement measurement;

    for (uint32_t i = 0; !gtopo_map_measurement(m->map, i, &measurement, NULL); i++)
        if (measurement.metric == GTOPO_BANDWIDTH_Bps && measurement.provenance == GTOPO_MEASURED &&
            !measurement.two_way && measurement.concurrent <= 1)
            place_measurement(m, &measurement);
}

/* ---- cells ---- */

/* "NV18", "PIX". */
static int find_word(const struct matrix *m, size_t i, size_t j, char word[CELL_MAX], struct gtopo_error *error)
{
    struct gtopo_path path;
    unsigned links;
    int status;

    if (m->nccl_classes) {
        snprintf(word, CELL_MAX, "%s", gtopo_nccl_class_name(m->nccl_classes[i * m->count + j]));
        return 0;
    }
    status = gtopo_path_find(m->map, m->devices[i], m->devices[j], &path, error);
    if (status)
        return status;
    snprintf(word, CELL_MAX, "%s", gtopo_path_class_name(path.path_class));
    if (path.path_class == GTOPO_PATH_NVLINK) {
        links = gtopo_nvlink_count(m->map, m->devices[i], m->devices[j]);
        snprintf(word, CELL_MAX, links ? "NV%u" : "XGMI", links);
    }
    gtopo_path_clear(&path);
    return 0;
}

/* ---- the legend ---- */

/* A word of the table, in the order of nvidia-smi's legend, whose own texts these are for its words. */
static const struct word {
    const char *word, *text;
    int is_always; /* also where no cell holds it */
} nvidia_words[] =
    {
        {"X", "Self", 1},
        {"SYS", "Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)", 1},
        {"NODE", "Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
         1},
        {"PHB", "Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)", 1},
        {"PXB", "Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)", 1},
        {"PIX", "Connection traversing at most a single PCIe bridge", 1},
        {"NV#", "Connection traversing a bonded set of # NVLinks", 1},
        {"XGMI", "Connection traversing XGMI links (AMD)", 0},
        {"C2C", "Connection traversing NVLink-C2C", 0},
        {"?", "Connection that the machine hides", 0},
        {"-", "No connection in the map", 0},
},
  nccl_words[] = {
      {"X", "Self", 1},
      {"NVL", "NVLink or XGMI", 1},
      {"NVB", "NVLink by way of another GPU", 1},
      {"C2C", "NVLink-C2C", 1},
      {"PIX", "At most one PCIe switch", 1},
      {"PXB", "Several PCIe switches, not the host bridge", 1},
      {"P2C", "A GPU over C2C to a NIC of its processor", 1},
      {"PXN", "To a NIC by way of another GPU", 1},
      {"PHB", "The processor (NUMA node)", 1},
      {"SYS", "The link between NUMA nodes", 1},
      {"LOC", "Parts of one device", 0},
      {"DIS", "Not connected in the map", 0},
      {"?", "The machine hides it", 0},
};

/* Note that a cell holds a word. */
static void see(struct matrix *m, const char *word)
{
    const struct word *words = m->nccl_classes ? nccl_words : nvidia_words;
    size_t count = (m->nccl_classes ? sizeof nccl_words : sizeof nvidia_words) / sizeof *words;

    for (size_t i = 0; i < count; i++)
        if (!strcmp(words[i].word, word))
            m->seen |= 1u << i;
}

static void put_words(const struct matrix *m)
{
    const struct word *words = m->nccl_classes ? nccl_words : nvidia_words;
    size_t count = (m->nccl_classes ? sizeof nccl_words : sizeof nvidia_words) / sizeof *words;
    int is_measured = 0;

    fputs("\nLegend:\n\n", m->out);
    for (size_t i = 0; i < count; i++)
        if (words[i].is_always || (m->seen & 1u << i))
            fprintf(m->out, "  %-4s = %s\n", words[i].word, words[i].text);
    for (size_t i = 0; i < m->count * m->count; i++)
        is_measured |= m->measured_Bps[i] > 0;
    if (is_measured)
        fputs("  A number beside a class is the best bandwidth in GB/s that was measured from the row to the column\n",
              m->out);
}

/* The operating system's name of a device: its own, else those of its ports, else its PCI address. */
static void put_device(const struct matrix *m, uint32_t id)
{
    const char *device = gtopo_map_text(m->map, id, GTOPO_ATTRIBUTE_DEVICE);
    const char *address = gtopo_map_text(m->map, id, GTOPO_ATTRIBUTE_PCI_ADDRESS);
    struct gtopo_link link;
    int ports = 0;

    for (size_t i = 0; !device && gtopo_map_link_of(m->map, id, i, &link) != GTOPO_NONE; i++) {
        const char *port = link.kind != GTOPO_LINK_PORT
                               ? NULL
                               : gtopo_map_text(m->map, link.ends[link.ends[0] == id], GTOPO_ATTRIBUTE_DEVICE);

        if (port)
            fprintf(m->out, "%s%s", ports++ ? ", " : "", port);
    }
    if (!ports)
        fputs(device ? device : address ? address : "?", m->out);
}

/* Which device each column of a kind is. */
static void put_devices(const struct matrix *m, unsigned kind, const char *title)
{
    char name[GTOPO_ADDRESS_MAX];
    int found = 0;

    for (size_t i = 0; i < m->count; i++) {
        if (kind_of(m, m->devices[i]) != kind)
            continue;
        if (!found++)
            fprintf(m->out, "\n%s Legend:\n\n", title);
        fprintf(m->out, "  %s: ", cli_upper_name(m->map, m->devices[i], name));
        put_device(m, m->devices[i]);
        fputc('\n', m->out);
    }
}

/* ---- the table ---- */

/* The processors and the NUMA node near a GPU, and the NUMA node that its memory is. */
static void put_affinity(const struct matrix *m, uint32_t device)
{
    uint32_t place;
    uint64_t index;

    if (kind_of(m, device) != GTOPO_GPU) {
        fputs("\t\t\t\n", m->out);
        return;
    }
    if (gtopo_processors_near(m->map, device, &place, NULL))
        fputs("N/A\tN/A", m->out);
    else if (kind_of(m, place) == GTOPO_NUMA && gtopo_map_number(m->map, place, GTOPO_ATTRIBUTE_OS_INDEX, &index))
        fprintf(m->out, "%s\t%llu", gtopo_map_text(m->map, place, GTOPO_ATTRIBUTE_CPUS), (unsigned long long)index);
    else
        fprintf(m->out, "%s\tN/A", gtopo_map_text(m->map, place, GTOPO_ATTRIBUTE_CPUS));
    if (gtopo_map_number(m->map, device, GTOPO_ATTRIBUTE_MEMORY_NUMA, &index))
        fprintf(m->out, "\t\t%llu\n", (unsigned long long)index);
    else
        fputs("\t\tN/A\n", m->out);
}

static int put_row(struct matrix *m, size_t i, struct gtopo_error *error)
{
    char name[GTOPO_ADDRESS_MAX], word[CELL_MAX];

    fprintf(m->out, "%s\t", cli_upper_name(m->map, m->devices[i], name));
    for (size_t j = 0; j < m->count; j++) {
        double measured_Bps = m->measured_Bps[i * m->count + j];
        int status;

        if (i == j) {
            fputs(" X \t", m->out);
            continue;
        }
        status = find_word(m, i, j, word, error);
        if (status)
            return status;
        see(m, word);
        fputs(word, m->out);
        if (measured_Bps > 0)
            fprintf(m->out, " %.4g", measured_Bps / 1e9);
        fputc('\t', m->out);
    }
    put_affinity(m, m->devices[i]);
    return 0;
}

static int put_table(struct matrix *m, struct gtopo_error *error)
{
    char name[GTOPO_ADDRESS_MAX];
    int status = 0;

    fputc('\t', m->out);
    for (size_t i = 0; i < m->count; i++)
        fprintf(m->out, "%s\t", cli_upper_name(m->map, m->devices[i], name));
    fputs("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\n", m->out);
    for (size_t i = 0; !status && i < m->count; i++)
        status = put_row(m, i, error);
    if (status)
        return status;
    put_words(m);
    put_devices(m, GTOPO_NIC, "NIC");
    put_devices(m, GTOPO_STORAGE, "Storage");
    fputc('\n', m->out);
    return 0;
}

static int put_host(struct matrix *m, uint32_t host, enum cli_matrix kind, struct gtopo_error *error)
{
    int status = list_devices(m, host, kind != CLI_MATRIX_NVIDIA, error);

    if (status)
        return status;
    if (!m->count) {
        fprintf(m->out, "%s has no GPU%s in the map\n", gtopo_map_host_name(m->map, host),
                kind == CLI_MATRIX_NVIDIA ? " or NIC" : ", NIC or storage");
        return 0;
    }
    m->measured_Bps = calloc(m->count * m->count, sizeof *m->measured_Bps);
    m->nccl_classes = kind == CLI_MATRIX_NCCL ? calloc(m->count * m->count, 1) : NULL;
    if (!m->measured_Bps || (kind == CLI_MATRIX_NCCL && !m->nccl_classes))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    place_measurements(m);
    if (m->nccl_classes)
        status = gtopo_nccl_classes(m->map, m->devices, m->count, m->nccl_classes, error);
    return status ? status : put_table(m, error);
}

int cli_show_matrix(FILE *out, const struct gtopo_map *map, enum cli_matrix kind, struct gtopo_error *error)
{
    int status = 0;

    for (uint32_t host = 0; !status && host < gtopo_map_host_count(map); host++) {
        struct matrix m = {.out = out, .map = map};

        if (gtopo_map_host_count(map) > 1)
            fprintf(out, "%s:\n", gtopo_map_host_name(map, host));
        status = put_host(&m, host, kind, error);
        free(m.devices);
        free(m.measured_Bps);
        free(m.nccl_classes);
    }
    return status;
}
