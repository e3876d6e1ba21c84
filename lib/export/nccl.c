/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host as a topology file of NCCL's. NCCL reads it with a parser of its own (graph/xml.cc, 2.30), which sets bounds:
 * no prolog, no tabs, no text, no entities, values of at most 255 bytes, at most 255 elements, and the words for link
 * speeds that its table has, exactly. What would not pass is an error here, before the first byte.
 */
#include "lib/export/exporter.h"
#include "lib/map.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX 250 /* NCCL needs some for itself */
#define VALUE_MAX_B 255
#define MASK_WORDS_MAX 28 /* of nine characters each in a value */

struct writer {
    const struct gtopo_map *map;
    int is_dump;                /* or "inject": without what NCCL finds by itself */
    gtopo_write_function write; /* NULL: only count and check */
    void *context;
    struct gtopo_error *error;
    uint32_t first, count;        /* objects of the host */
    uint32_t *first_child, *next; /* by object - first; GTOPO_NONE */
    uint32_t depth, elements, nets;
    uint32_t only_numa; /* the one NUMA node with processors, or GTOPO_NONE when there are several */
    int is_rccl;        /* there are GPUs of AMD */
    int status;
};

/* ---- XML as NCCL takes it ---- */

static void put(struct writer *w, const char *format, ...) GTOPO_PRINTF(2, 3);

static void put(struct writer *w, const char *format, ...)
{
    char text[2 * VALUE_MAX_B];
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!w->status && w->write && w->write(w->context, text, (size_t)size))
        w->status = gtopo_fail(w->error, GTOPO_EIO, NULL, "the file for NCCL cannot be written");
}

static void begin(struct writer *w, const char *name)
{
    w->elements++;
    if (w->depth > ELEMENTS_MAX && !w->status)
        w->status = gtopo_fail(w->error, GTOPO_EUSAGE, NULL, "PCIe switches are nested deeper than NCCL takes them");
    put(w, "%*s<%s", 2 * (int)w->depth, "", name);
}

static void attribute(struct writer *w, const char *key, const char *format, ...) GTOPO_PRINTF(3, 4);

static void attribute(struct writer *w, const char *key, const char *format, ...)
{
    char value[VALUE_MAX_B + 1];
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    if (!w->status && (size > VALUE_MAX_B || strpbrk(value, "\"'<>&\t\n")))
        w->status = gtopo_fail(w->error, GTOPO_EUSAGE, NULL,
                               "%s=\"%.32s\" is too long for NCCL, or holds what its parser does not take", key, value);
    put(w, " %s=\"%s\"", key, value);
}

/* An element without, or with, others inside. */
static void end_empty(struct writer *w)
{
    put(w, "/>\n");
}

static void enter(struct writer *w)
{
    put(w, ">\n");
    w->depth++;
}

static void leave(struct writer *w, const char *name)
{
    w->depth--;
    put(w, "%*s</%s>\n", 2 * (int)w->depth, "", name);
}

/* ---- what is known ---- */

static const char *text_of(const struct writer *w, uint32_t id, enum gtopo_attribute key)
{
    return gtopo_map_text(w->map, id, key);
}

static struct gtopo_object object_of(const struct writer *w, uint32_t id)
{
    struct gtopo_object object = {.kind = GTOPO_OBJECT_KINDS, .parent = GTOPO_NONE};

    gtopo_map_object(w->map, id, &object, NULL);
    return object;
}

/* "15b3:1021" as two attributes. */
static void put_ids(struct writer *w, uint32_t id, enum gtopo_attribute key, const char *vendor, const char *device)
{
    const char *text = text_of(w, id, key);

    if (!text || strlen(text) != 9)
        return;
    attribute(w, vendor, "0x%.4s", text);
    attribute(w, device, "0x%.4s", text + 5);
}

/* The link to what the device is below. */
static struct gtopo_link uplink_of(const struct writer *w, uint32_t id)
{
    uint32_t parent = object_of(w, id).parent;
    struct gtopo_link link;

    for (size_t i = 0; gtopo_map_link_of(w->map, id, i, &link) != GTOPO_NONE; i++)
        if (link.kind == GTOPO_LINK_PCIE && (link.ends[0] == parent || link.ends[1] == parent))
            return link;
    return (struct gtopo_link){0};
}

static void put_speed(struct writer *w, const struct gtopo_link *link)
{
    static const struct {
        uint32_t speed_MTps;
        const char *word;
    } words[] = {{2500, "2.5"}, {5000, "5.0"}, {8000, "8.0"}, {16000, "16.0"}, {32000, "32.0"}, {64000, "64.0"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].speed_MTps == link->speed_MTps)
            attribute(w, "link_speed", "%s GT/s PCIe", words[i].word);
    if (link->width)
        attribute(w, "link_width", "%u", link->width);
}

/* The class with its third byte, which not every source has. */
static const char *class_of(const struct writer *w, uint32_t id, unsigned kind)
{
    const char *text = text_of(w, id, GTOPO_ATTRIBUTE_PCI_CLASS);

    if (text && strlen(text) == 8)
        return text;
    switch (kind) {
    case GTOPO_GPU:
        return "0x030200";
    case GTOPO_NIC:
        return "0x020000";
    case GTOPO_NVSWITCH:
        return "0x068000";
    default:
        return "0x060400";
    }
}

/* ---- GPUs ---- */

/* A link of a GPU, with what the order in the file goes by. */
struct gpu_link {
    struct gtopo_link link;
    struct gtopo_object other;
    const char *target;
};

/* Of what is no PCI device that can be seen: NCCL's own word for it. */
#define HIDDEN_TARGET "fffffff:ffff:ff"

static int compare_gpu_links(const void *a, const void *b)
{
    const struct gpu_link *x = a, *y = b;

    if (x->link.kind != y->link.kind)
        return x->link.kind < y->link.kind ? -1 : 1;
    return strcmp(x->target, y->target);
}

static int is_gpu_link(const struct gtopo_link *link)
{
    return link->kind == GTOPO_LINK_NVLINK || link->kind == GTOPO_LINK_XGMI || link->kind == GTOPO_LINK_C2C;
}

/* The links of a GPU in the order of their targets; NULL for none, or when memory is short. */
static struct gpu_link *list_gpu_links(struct writer *w, uint32_t gpu, size_t *count)
{
    struct gpu_link *links = NULL;
    struct gtopo_link link;
    size_t capacity = 0;

    *count = 0;
    for (size_t i = 0; gtopo_map_link_of(w->map, gpu, i, &link) != GTOPO_NONE; i++) {
        uint32_t other = link.ends[link.ends[0] == gpu];
        const char *address = text_of(w, other, GTOPO_ATTRIBUTE_PCI_ADDRESS);

        if (!is_gpu_link(&link))
            continue;
        if (gtopo_grow((void **)&links, &capacity, *count + 1, sizeof *links)) {
            w->status = gtopo_fail(w->error, GTOPO_ENOMEM, NULL, "out of memory");
            break;
        }
        links[(*count)++] = (struct gpu_link){link, object_of(w, other), address ? address : HIDDEN_TARGET};
    }
    if (*count)
        qsort(links, *count, sizeof *links, compare_gpu_links);
    return links;
}

static void put_gpu_link(struct writer *w, const struct gpu_link *link)
{
    unsigned kind = link->other.kind;

    if (link->link.kind == GTOPO_LINK_C2C) {
        begin(w, "c2c");
        attribute(w, "bw", "%llu", (unsigned long long)(link->link.nominal_Bps / link->link.count / 1000000));
        attribute(w, "count", "%u", link->link.count);
    } else {
        begin(w, link->link.kind == GTOPO_LINK_XGMI ? "xgmi" : "nvlink");
        attribute(w, "target", "%s", link->target);
        attribute(w, "count", "%u", link->link.count);
        attribute(w, "tclass", "%s",
                  kind == GTOPO_NUMA || kind == GTOPO_PACKAGE ? "0x068001" : class_of(w, link->other.id, kind));
    }
    end_empty(w);
}

static void put_gpu(struct writer *w, uint32_t gpu)
{
    const char *architecture = text_of(w, gpu, GTOPO_ATTRIBUTE_ARCHITECTURE);
    uint32_t number = object_of(w, gpu).number;
    struct gpu_link *links;
    uint64_t direct = 0;
    size_t count;

    begin(w, "gpu");
    attribute(w, "dev", "%u", number);
    if (architecture && !strncmp(architecture, "sm_", 3))
        attribute(w, "sm", "%s", architecture + 3);
    else if (architecture)
        attribute(w, "gcn", "%s", architecture);
    attribute(w, "rank", "%u", number);
    if (gtopo_map_number(w->map, gpu, GTOPO_ATTRIBUTE_GPUDIRECT, &direct))
        attribute(w, "gdr", "%llu", (unsigned long long)direct);
    links = list_gpu_links(w, gpu, &count);
    if (count)
        enter(w);
    for (size_t i = 0; i < count; i++)
        put_gpu_link(w, &links[i]);
    if (count)
        leave(w, "gpu");
    else
        end_empty(w);
    free(links);
}

/* ---- NICs ---- */

static void put_net(struct writer *w, uint32_t nic, uint32_t port)
{
    const char *name = text_of(w, port, GTOPO_ATTRIBUTE_DEVICE);
    uint64_t number;

    name = name ? name : text_of(w, nic, GTOPO_ATTRIBUTE_DEVICE);
    name = name ? name : text_of(w, port, GTOPO_ATTRIBUTE_NETDEV);
    begin(w, "net");
    if (name)
        attribute(w, "name", "%s", name);
    attribute(w, "dev", "%u", w->nets++);
    if (gtopo_map_number(w->map, port, GTOPO_ATTRIBUTE_RATE_Bps, &number))
        attribute(w, "speed", "%llu", (unsigned long long)(number / 125000));
    attribute(w, "port", "%u", object_of(w, port).number);
    if (gtopo_map_number(w->map, port, GTOPO_ATTRIBUTE_GUID, &number))
        attribute(w, "guid", "0x%llx", (unsigned long long)number);
    if (gtopo_map_number(w->map, port, GTOPO_ATTRIBUTE_GPUDIRECT, &number))
        attribute(w, "gdr", "%llu", (unsigned long long)number);
    end_empty(w);
}

static void put_nic(struct writer *w, uint32_t nic)
{
    uint32_t port = w->first_child[nic - w->first];

    begin(w, "nic");
    enter(w);
    for (; port != GTOPO_NONE; port = w->next[port - w->first])
        put_net(w, nic, port);
    leave(w, "nic");
}

/* ---- the tree ---- */

static void put_children(struct writer *w, uint32_t id);

static void put_pci(struct writer *w, uint32_t id, unsigned kind)
{
    struct gtopo_link uplink = uplink_of(w, id);
    int has_ports = kind == GTOPO_NIC && w->first_child[id - w->first] != GTOPO_NONE;

    begin(w, "pci");
    attribute(w, "busid", "%s", text_of(w, id, GTOPO_ATTRIBUTE_PCI_ADDRESS));
    attribute(w, "class", "%s", class_of(w, id, kind));
    put_ids(w, id, GTOPO_ATTRIBUTE_PCI_ID, "vendor", "device");
    put_ids(w, id, GTOPO_ATTRIBUTE_PCI_SUBSYSTEM, "subsystem_vendor", "subsystem_device");
    put_speed(w, &uplink);
    if (kind != GTOPO_PCI_SWITCH && !(w->is_dump && (kind == GTOPO_GPU || has_ports))) {
        end_empty(w);
        return;
    }
    enter(w);
    if (kind == GTOPO_PCI_SWITCH)
        put_children(w, id);
    else if (kind == GTOPO_GPU)
        put_gpu(w, id);
    else
        put_nic(w, id);
    leave(w, "pci");
}

static void put_children(struct writer *w, uint32_t id)
{
    for (uint32_t child = w->first_child[id - w->first]; child != GTOPO_NONE && !w->status;
         child = w->next[child - w->first]) {
        unsigned kind = object_of(w, child).kind;
        int is_on_pci = text_of(w, child, GTOPO_ATTRIBUTE_PCI_ADDRESS) != NULL;

        if (kind == GTOPO_HOST_BRIDGE)
            put_children(w, child);
        else if (is_on_pci && (kind == GTOPO_PCI_SWITCH || kind == GTOPO_GPU || kind == GTOPO_NIC))
            put_pci(w, child, kind);
        else if (kind == GTOPO_NIC && w->is_dump)
            put_nic(w, child);
    }
}

/* ---- processors ---- */

/* A list ("0-15,32-47") as the kernel's mask of 32-bit words, the highest first. NCCL takes so many processors only. */
static int mask_of(const char *list, char text[VALUE_MAX_B + 1])
{
    uint32_t words[MASK_WORDS_MAX] = {0};
    size_t used = 0, length = 0;

    while (*list) {
        char *end;
        unsigned long low = strtoul(list, &end, 10), high = *end == '-' ? strtoul(end + 1, &end, 10) : low;

        if (high >= 32 * MASK_WORDS_MAX || low > high)
            return 0;
        for (unsigned long cpu = low; cpu <= high; cpu++)
            words[cpu / 32] |= UINT32_C(1) << cpu % 32;
        used = high / 32 + 1 > used ? high / 32 + 1 : used;
        list = *end == ',' ? end + 1 : end + strlen(end);
    }
    for (size_t i = used; i > 0; i--)
        length += (size_t)snprintf(text + length, VALUE_MAX_B + 1 - length, "%08x%s", words[i - 1], i > 1 ? "," : "");
    return used > 0;
}

/* Of the node itself, where the map is of a file of NCCL's, else of its package. */
static const char *cpu_text(const struct writer *w, uint32_t numa, enum gtopo_attribute key)
{
    const char *text = text_of(w, numa, key);

    return text ? text : text_of(w, object_of(w, numa).parent, key);
}

static void put_cpu_number(struct writer *w, uint32_t numa, enum gtopo_attribute key, const char *name)
{
    uint64_t number;

    if (gtopo_map_number(w->map, numa, key, &number) ||
        gtopo_map_number(w->map, object_of(w, numa).parent, key, &number))
        attribute(w, name, "%llu", (unsigned long long)number);
}

/* A host bridge of which the machine does not say where it is. */
static int is_elsewhere(const struct writer *w, uint32_t id)
{
    struct gtopo_object object = object_of(w, id);

    return object.kind == GTOPO_HOST_BRIDGE && object_of(w, object.parent).kind != GTOPO_NUMA;
}

static void put_cpu(struct writer *w, uint32_t numa)
{
    const char *cpus = text_of(w, numa, GTOPO_ATTRIBUTE_CPUS);
    const char *arch = cpu_text(w, numa, GTOPO_ATTRIBUTE_ARCHITECTURE);
    const char *vendor = cpu_text(w, numa, GTOPO_ATTRIBUTE_VENDOR);
    char mask[VALUE_MAX_B + 1];
    uint64_t index;

    begin(w, "cpu");
    if (gtopo_map_number(w->map, numa, GTOPO_ATTRIBUTE_OS_INDEX, &index))
        attribute(w, "numaid", "%llu", (unsigned long long)index);
    if (cpus && mask_of(cpus, mask))
        attribute(w, "affinity", "%s", mask);
    if (arch)
        attribute(w, "arch", "%s", arch);
    if (vendor)
        attribute(w, "vendor", "%s", vendor);
    put_cpu_number(w, numa, GTOPO_ATTRIBUTE_CPU_FAMILY, "familyid");
    put_cpu_number(w, numa, GTOPO_ATTRIBUTE_CPU_MODEL, "modelid");
    enter(w);
    put_children(w, numa);
    for (uint32_t id = w->first; numa == w->only_numa && id < w->first + w->count; id++)
        if (is_elsewhere(w, id))
            put_children(w, id);
    leave(w, "cpu");
}

/* ---- the host ---- */

/* NCCL takes a device's NUMA node from the file alone: it must be known, or be the only one. */
static void check_places(struct writer *w)
{
    unsigned numas = 0;

    for (uint32_t id = w->first; id < w->first + w->count; id++)
        if (object_of(w, id).kind == GTOPO_NUMA && text_of(w, id, GTOPO_ATTRIBUTE_CPUS))
            w->only_numa = numas++ ? GTOPO_NONE : id;
    for (uint32_t id = w->first; w->only_numa == GTOPO_NONE && id < w->first + w->count; id++)
        if (is_elsewhere(w, id)) {
            w->status = gtopo_fail(w->error, GTOPO_EMISSING,
                                   "ask the machine's provider for its topology, or look from the bare machine",
                                   "the machine does not say which NUMA node its devices are on: NCCL needs to know");
            return;
        }
}

static void put_system(struct writer *w)
{
    w->elements = w->nets = w->depth = 0;
    begin(w, "system");
    attribute(w, "version", w->is_rccl ? "2" : "1"); /* RCCL's, NCCL's */
    enter(w);
    for (uint32_t id = w->first; id < w->first + w->count && !w->status; id++)
        if (object_of(w, id).kind == GTOPO_NUMA)
            put_cpu(w, id);
    leave(w, "system");
}

/* A GPU that RCCL is for: by its PCI ids, its maker's name, or links that only AMD's have. */
static int is_of_amd(const struct writer *w, uint32_t id)
{
    const char *pci_id = text_of(w, id, GTOPO_ATTRIBUTE_PCI_ID), *vendor = text_of(w, id, GTOPO_ATTRIBUTE_VENDOR);
    struct gtopo_link link;

    if (object_of(w, id).kind != GTOPO_GPU)
        return 0;
    for (size_t i = 0; gtopo_map_link_of(w->map, id, i, &link) != GTOPO_NONE; i++)
        if (link.kind == GTOPO_LINK_XGMI)
            return 1;
    return (pci_id && !strncmp(pci_id, "1002:", 5)) || (vendor && strstr(vendor, "AMD"));
}

static int prepare(struct writer *w, uint32_t host)
{
    int status = gtopo_map_host_objects(w->map, host, &w->first, &w->count, w->error);

    if (status)
        return status;
    w->first_child = malloc((w->count + 1) * sizeof *w->first_child);
    w->next = malloc((w->count + 1) * sizeof *w->next);
    if (!w->first_child || !w->next)
        return gtopo_fail(w->error, GTOPO_ENOMEM, NULL, "out of memory");
    memset(w->first_child, 0xff, w->count * sizeof *w->first_child);
    for (uint32_t i = w->count; i-- > 1;) { /* backwards, so that children are in their order */
        uint32_t parent = object_of(w, w->first + i).parent - w->first;

        w->next[i] = w->first_child[parent];
        w->first_child[parent] = w->first + i;
    }
    for (uint32_t id = w->first; id < w->first + w->count; id++)
        w->is_rccl |= is_of_amd(w, id);
    return 0;
}

/* What to do about a host of too many elements, by what they are. */
static int fail_count(struct writer *w)
{
    uint32_t elements = w->elements, nics = 0;
    char hint[256];

    for (uint32_t id = w->first; id < w->first + w->count; id++)
        nics += object_of(w, id).kind == GTOPO_NIC;
    w->is_dump = 0;
    put_system(w);
    if (w->elements < elements && w->elements <= ELEMENTS_MAX)
        snprintf(hint, sizeof hint, "export the profile \"inject\", which has PCI devices only: %u elements",
                 w->elements);
    else
        snprintf(hint, sizeof hint,
                 "leave out devices that no GPU uses: without NICs, of which there are %u, PCI devices alone are %u",
                 nics, w->elements - nics);
    return gtopo_fail(w->error, GTOPO_EUSAGE, hint,
                      "NCCL takes a topology file of at most %d elements; that of this host would have %u",
                      ELEMENTS_MAX, elements);
}

static int run(const struct gtopo_export_job *job)
{
    struct writer w = {.map = job->map,
                       .is_dump = !job->profile,
                       .context = job->context,
                       .error = job->error,
                       .only_numa = GTOPO_NONE};

    w.status = prepare(&w, job->host);
    if (!w.status)
        check_places(&w);
    if (!w.status)
        put_system(&w); /* counts and checks */
    if (!w.status && w.elements > ELEMENTS_MAX)
        w.status = fail_count(&w);
    w.write = job->write;
    if (!w.status)
        put_system(&w);
    free(w.first_child);
    free(w.next);
    return w.status;
}

static const char *const profiles[] = {"dump", "inject", NULL};

const struct gtopo_exporter gtopo_export_nccl = {
    "nccl", "a topology file for NCCL (NCCL_TOPO_FILE), or for RCCL where GPUs are AMD's", profiles, 1, run};
