/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host from a topology file of NCCL's, or of RCCL's, which differs in a few names: what NCCL_TOPO_FILE gives it, or
 * NCCL_TOPO_DUMP_FILE has taken down. Elements and attributes: NCCL's graph/xml.cc and graph/topo.cc.
 *
 * A <cpu> is a NUMA node; which of them share a package is not in such a file. Neither are host bridges and root ports:
 * what hangs on one <cpu> is under one bridge here, which gives the classes that NCCL sees. A <pci> of a bridge's class
 * is the upstream port of a switch.
 */
#include "topo/host/nccl.h"
#include "lib/file.h"
#include "lib/text.h"
#include "topo/host/overlay.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT_B ((size_t)64 << 20)
#define CPUS_MAX 1024 /* each is joined with each */

/* Where a subtree is attached. */
struct nccl_place {
    uint32_t id, cpu; /* objects */
    int64_t numa;
    uint64_t widest_Bps; /* of the links below */
};

/* ---- what is wrong ---- */

int gtopo_nccl_bad(const struct gtopo_nccl *r, uint32_t element, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return gtopo_fail(r->d->error, GTOPO_EFORMAT, "is it a topology file of NCCL's? See NCCL_TOPO_DUMP_FILE",
                      "%s:%u: <%.32s>: %s", r->path, r->xml.elements[element].line, gtopo_xml_name(&r->xml, element),
                      text);
}

/* ---- values ---- */

const char *gtopo_nccl_get(const struct gtopo_nccl *r, uint32_t element, const char *key)
{
    const char *value = gtopo_xml_get(&r->xml, element, key);

    return value && *value ? value : NULL;
}

int gtopo_nccl_is(const struct gtopo_nccl *r, uint32_t element, const char *name)
{
    return !strcmp(gtopo_xml_name(&r->xml, element), name);
}

/* A whole number from `least` to `most`; absent is `otherwise`. */
int gtopo_nccl_number(const struct gtopo_nccl *r, uint32_t element, const char *key, int64_t least, int64_t most,
                      int64_t otherwise, int64_t *number)
{
    const char *text = gtopo_nccl_get(r, element, key);
    char *end;

    *number = otherwise;
    if (!text)
        return 0;
    *number = strtoll(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
    if (end == text || *end || *number < least || *number > most)
        return gtopo_nccl_bad(r, element, "%s=\"%.64s\" is no whole number from %lld to %lld", key, text,
                              (long long)least, (long long)most);
    return 0;
}

/* "0000:3b:00.0", of eight digits of domain "0000:3b:00.0" too. */
int gtopo_nccl_bus_id(const struct gtopo_nccl *r, uint32_t element, const char *key, char bus_id[GTOPO_PCI_ADDRESS_MAX])
{
    const char *text = gtopo_nccl_get(r, element, key);
    unsigned domain, bus, device, function;
    int length = 0;

    if (!text)
        return gtopo_nccl_bad(r, element, "%s is missing", key);
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &length) != 4 || text[length] ||
        !strchr("0123456789abcdefABCDEF", *text) || device > 31 || function > 7)
        return gtopo_nccl_bad(r, element, "%s=\"%.64s\" is no PCI address (0000:3b:00.0)", key, text);
    snprintf(bus_id, GTOPO_PCI_ADDRESS_MAX, "%04x:%02x:%02x.%x", domain, bus, device, function);
    return 0;
}

/* The 24 bits of a PCI class. */
int gtopo_nccl_class(const struct gtopo_nccl *r, uint32_t element, const char *key, unsigned *class_id)
{
    int64_t number;
    int status = gtopo_nccl_number(r, element, key, 0, 0xffffff, 0, &number);

    *class_id = (unsigned)number;
    return status;
}

/* ---- links ---- */

/* NCCL takes 0 lanes for 16, but for a device that is there they are just not known. */
static int read_pci_link(const struct gtopo_nccl *r, uint32_t element, struct gtopo_link *link)
{
    int64_t width;
    int status = gtopo_nccl_number(r, element, "link_width", 0, 255, 0, &width);

    link->width = width <= 32 ? (uint32_t)width : 0;
    link->speed_MTps = gtopo_pci_speed(gtopo_nccl_get(r, element, "link_speed"));
    link->nominal_Bps = gtopo_pci_rate(link->width, link->speed_MTps);
    return status;
}

int gtopo_nccl_add_link(struct gtopo_nccl *r, const struct gtopo_link *link)
{
    uint32_t id;

    return gtopo_map_add_link(r->d->map, link, &id, r->d->error);
}

/* ---- devices ---- */

int gtopo_nccl_add_target(struct gtopo_nccl *r, uint32_t element, const char *bus_id, uint32_t object)
{
    struct gtopo_nccl_target *target;

    if (gtopo_grow((void **)&r->targets, &r->target_capacity, r->target_count + 1, sizeof *r->targets))
        return gtopo_fail(r->d->error, GTOPO_ENOMEM, NULL, "out of memory");
    target = &r->targets[r->target_count++];
    snprintf(target->bus_id, sizeof target->bus_id, "%s", bus_id);
    target->object = object;
    target->element = element;
    return 0;
}

/* Numbers may be missing, or 0 or 0xffff for a switch that a provider made up. */
static int set_pair(struct gtopo_nccl *r, uint32_t element, uint32_t id, const char *const keys[2],
                    enum gtopo_attribute attribute, int64_t numbers[2])
{
    char text[16];
    int status = gtopo_nccl_number(r, element, keys[0], 0, 0xffff, 0, &numbers[0]);

    if (!status)
        status = gtopo_nccl_number(r, element, keys[1], 0, 0xffff, 0, &numbers[1]);
    if (status || !numbers[0] || numbers[0] == 0xffff)
        return status;
    snprintf(text, sizeof text, "%04x:%04x", (unsigned)numbers[0], (unsigned)numbers[1]);
    return gtopo_discovery_text(r->d, id, attribute, text);
}

static int set_ids(struct gtopo_nccl *r, uint32_t element, uint32_t id, unsigned class_id)
{
    static const char *const chip[] = {"vendor", "device"}, *const card[] = {"subsystem_vendor", "subsystem_device"};
    int64_t ids[2], card_ids[2];
    char text[16];
    int status = set_pair(r, element, id, card, GTOPO_ATTRIBUTE_PCI_SUBSYSTEM, card_ids);

    if (!status)
        status = set_pair(r, element, id, chip, GTOPO_ATTRIBUTE_PCI_ID, ids);
    if (!status && gtopo_map_text(r->d->map, id, GTOPO_ATTRIBUTE_PCI_ID))
        status = gtopo_pci_names(r->d, id, NULL, (unsigned)ids[0], (unsigned)ids[1]);
    if (status)
        return status;
    snprintf(text, sizeof text, "0x%06x", class_id);
    return gtopo_discovery_text(r->d, id, GTOPO_ATTRIBUTE_PCI_CLASS, text);
}

/* GPUs in a file of RCCL's are AMD's, also where it has no PCI ids. */
static int set_maker(struct gtopo_nccl *r, uint32_t id, enum gtopo_object_kind kind)
{
    const char *version = gtopo_nccl_get(r, 0, "version");

    if (kind != GTOPO_GPU || !version || strcmp(version, "2") || gtopo_map_text(r->d->map, id, GTOPO_ATTRIBUTE_PCI_ID))
        return 0;
    return gtopo_discovery_text(r->d, id, GTOPO_ATTRIBUTE_VENDOR, "AMD");
}

static int set_numa(struct gtopo_nccl *r, uint32_t id, int64_t numa)
{
    return numa >= 0 ? gtopo_discovery_number(r->d, id, GTOPO_ATTRIBUTE_NUMA, (uint64_t)numa)
                     : gtopo_map_set_unknown(r->d->map, id, GTOPO_ATTRIBUTE_NUMA, r->d->error);
}

static enum gtopo_object_kind kind_of(const struct gtopo_nccl *r, uint32_t element, const char *bus_id,
                                      unsigned class_id)
{
    enum gtopo_object_kind seen = GTOPO_OBJECT_KINDS;

    if (!class_id) /* what a provider wrote by hand may leave to NCCL to find */
        for (uint32_t child = r->xml.elements[element].first_child; child != GTOPO_XML_NONE;
             child = r->xml.elements[child].next)
            if (gtopo_nccl_is(r, child, "gpu") || gtopo_nccl_is(r, child, "nic"))
                return gtopo_nccl_is(r, child, "gpu") ? GTOPO_GPU : GTOPO_NIC;
    if (!class_id && r->d->overlay)
        seen = gtopo_overlay_kind(r->d->overlay, bus_id);
    if (seen != GTOPO_OBJECT_KINDS)
        return seen;
    switch (class_id >> 16) {
    case 0x03:
    case 0x12:
        return GTOPO_GPU;
    case 0x02:
        return GTOPO_NIC;
    case 0x01:
        return GTOPO_STORAGE;
    default:
        break;
    }
    if (class_id >> 8 == 0x0c06)
        return GTOPO_NIC;
    if (class_id == 0x068000)
        return GTOPO_NVSWITCH;
    if (class_id >> 8 == 0x0604 || class_id == 0x080100 || r->xml.elements[element].first_child != GTOPO_XML_NONE)
        return GTOPO_PCI_SWITCH;
    return GTOPO_OBJECT_KINDS;
}

static int set_gpudirect(struct gtopo_nccl *r, uint32_t element, uint32_t id)
{
    int64_t is;
    int status = gtopo_nccl_number(r, element, "gdr", 0, 1, -1, &is);

    return status || is < 0 ? status : gtopo_discovery_number(r->d, id, GTOPO_ATTRIBUTE_GPUDIRECT, (uint64_t)is);
}

/* "sm_90", as NVIDIA's compilers name it; AMD's name stands in the file. */
static int set_gpu(struct gtopo_nccl *r, uint32_t gpu, uint32_t object)
{
    const char *amd = gtopo_nccl_get(r, gpu, "gcn");
    char text[32];
    int64_t sm;
    int status = gtopo_nccl_number(r, gpu, "sm", 0, 100000, 0, &sm);

    if (!status)
        status = set_gpudirect(r, gpu, object);
    if (status || (!amd && !sm))
        return status;
    if (amd && !strncmp(amd, "gfx", 3))
        return gtopo_discovery_text(r->d, object, GTOPO_ATTRIBUTE_ARCHITECTURE, amd);
    snprintf(text, sizeof text, amd ? "gfx%.16s" : "sm_%.16s", amd ? amd : gtopo_nccl_get(r, gpu, "sm"));
    return gtopo_discovery_text(r->d, object, GTOPO_ATTRIBUTE_ARCHITECTURE, text);
}

/* ---- NICs ---- */

/* The port's number in the file, unless another port of the card has it: files of two functions of a card may number
 * both 1 (NCCL issue 2097). */
static int add_net(struct gtopo_nccl *r, uint32_t net, uint32_t nic, uint32_t *last)
{
    const char *guid = gtopo_nccl_get(r, net, "guid");
    int64_t number, speed_Mbps;
    uint32_t port;
    int status;

    if ((status = gtopo_nccl_number(r, net, "port", 0, 255, *last + 1, &number)) ||
        (status = gtopo_nccl_number(r, net, "speed", -1, INT32_MAX, 0, &speed_Mbps)))
        return status;
    if (number <= *last)
        number = *last + 1;
    *last = (uint32_t)number;
    if ((status = gtopo_discovery_add(r->d, GTOPO_PORT, nic, *last, &port)) ||
        (status = gtopo_discovery_text(r->d, port, GTOPO_ATTRIBUTE_DEVICE, gtopo_nccl_get(r, net, "name"))))
        return status;
    status = set_gpudirect(r, net, port);
    if (!status && speed_Mbps > 0)
        status = gtopo_discovery_number(r->d, port, GTOPO_ATTRIBUTE_RATE_Bps, (uint64_t)speed_Mbps * 125000);
    if (!status && guid) {
        char *end;
        uint64_t value = strtoull(guid, &end, 16);

        if (*end)
            return gtopo_nccl_bad(r, net, "guid=\"%.64s\" is no hexadecimal number", guid);
        status = gtopo_discovery_number(r->d, port, GTOPO_ATTRIBUTE_GUID, value);
    }
    return status ? status
                  : gtopo_discovery_link(r->d, GTOPO_LINK_PORT, nic, port,
                                         speed_Mbps > 0 ? (uint64_t)speed_Mbps * 125000 : 0);
}

/* <net> without dev is ignored by NCCL, as is <gpu> without rank, but they are there. */
static int add_nets(struct gtopo_nccl *r, uint32_t nic_element, uint32_t nic)
{
    uint32_t last = 0;
    int status = 0;

    for (uint32_t net = r->xml.elements[nic_element].first_child; net != GTOPO_XML_NONE && !status;
         net = r->xml.elements[net].next)
        if (gtopo_nccl_is(r, net, "net"))
            status = add_net(r, net, nic, &last);
    return status;
}

/* ---- the tree ---- */

static int visit(struct gtopo_nccl *r, struct nccl_place *place, uint32_t parent);

/* An idle link may report less than it does under load: it is a report, not a verdict. */
static int visit_switch(struct gtopo_nccl *r, const struct nccl_place *place, uint32_t element, uint32_t id,
                        const struct gtopo_link *uplink)
{
    struct nccl_place below = {id, place->cpu, place->numa, 0};
    int status = visit(r, &below, element);

    if (status || !uplink->nominal_Bps || uplink->nominal_Bps >= below.widest_Bps)
        return status;
    return gtopo_discovery_find(
        r->d, "pcie-uplink-slow", GTOPO_WARNING, id, "look at the link's LnkSta and LnkCap under load (`lspci -vv`)",
        "the uplink of this switch is reported at x%u and %u.%u GT/s, less than a link below it: "
        "it is the bottleneck of every path across it",
        uplink->width, uplink->speed_MTps / 1000, uplink->speed_MTps % 1000 / 100);
}

/* What the <pci> of a GPU or a NIC holds. */
static int visit_device(struct gtopo_nccl *r, uint32_t element, uint32_t id)
{
    int status = 0;

    for (uint32_t child = r->xml.elements[element].first_child; child != GTOPO_XML_NONE && !status;
         child = r->xml.elements[child].next) {
        if (gtopo_nccl_is(r, child, "gpu"))
            status = set_gpu(r, child, id);
        else if (gtopo_nccl_is(r, child, "nic"))
            status = add_nets(r, child, id);
        else if (gtopo_nccl_is(r, child, "pci"))
            status = gtopo_nccl_bad(r, child, "it is inside a device that is no bridge");
    }
    return status;
}

static int add_pci(struct gtopo_nccl *r, struct nccl_place *place, uint32_t element)
{
    struct gtopo_link link = {.kind = GTOPO_LINK_PCIE, .ends = {place->id}, .count = 1};
    enum gtopo_object_kind kind;
    char bus_id[GTOPO_PCI_ADDRESS_MAX];
    unsigned class_id;
    uint32_t id;
    int status;

    if ((status = gtopo_nccl_bus_id(r, element, "busid", bus_id)) ||
        (status = gtopo_nccl_class(r, element, "class", &class_id)) || (status = read_pci_link(r, element, &link)))
        return status;
    kind = kind_of(r, element, bus_id, class_id);
    r->unknown_count += !class_id && kind == GTOPO_OBJECT_KINDS;
    if (kind == GTOPO_OBJECT_KINDS)
        return 0;
    if ((status = gtopo_discovery_add(r->d, kind, place->id, 0, &id)) ||
        (status = gtopo_discovery_text(r->d, id, GTOPO_ATTRIBUTE_PCI_ADDRESS, bus_id)) ||
        (status = set_ids(r, element, id, class_id)) || (status = set_maker(r, id, kind)) ||
        (status = set_numa(r, id, place->numa)) || (status = gtopo_nccl_add_target(r, element, bus_id, id)))
        return status;
    r->gpu_count += kind == GTOPO_GPU;
    link.ends[1] = id;
    if (link.nominal_Bps > place->widest_Bps)
        place->widest_Bps = link.nominal_Bps;
    status = gtopo_nccl_add_link(r, &link);
    if (status)
        return status;
    return kind == GTOPO_PCI_SWITCH ? visit_switch(r, place, element, id, &link) : visit_device(r, element, id);
}

/* A NIC on no PCI bus. */
static int add_other_nic(struct gtopo_nccl *r, const struct nccl_place *place, uint32_t element)
{
    uint32_t id;
    int status = gtopo_discovery_add(r->d, GTOPO_NIC, place->cpu, 0, &id);

    if (!status)
        status = set_numa(r, id, place->numa);
    if (!status)
        status = gtopo_discovery_link(r->d, GTOPO_LINK_PLATFORM, id, place->cpu, 0);
    return status ? status : add_nets(r, element, id);
}

static int visit(struct gtopo_nccl *r, struct nccl_place *place, uint32_t parent)
{
    int status = 0;

    for (uint32_t child = r->xml.elements[parent].first_child; child != GTOPO_XML_NONE && !status;
         child = r->xml.elements[child].next)
        if (gtopo_nccl_is(r, child, "pci"))
            status = add_pci(r, place, child);
        else if (gtopo_nccl_is(r, child, "nic"))
            status = add_other_nic(r, place, child);
    return status;
}

static int set_processor(struct gtopo_nccl *r, uint32_t element, uint32_t numa)
{
    int64_t family, model;
    int status;

    if ((status = gtopo_discovery_text(r->d, numa, GTOPO_ATTRIBUTE_ARCHITECTURE, gtopo_nccl_get(r, element, "arch"))) ||
        (status = gtopo_discovery_text(r->d, numa, GTOPO_ATTRIBUTE_VENDOR, gtopo_nccl_get(r, element, "vendor"))) ||
        (status = gtopo_nccl_number(r, element, "familyid", 0, INT32_MAX, -1, &family)) ||
        (status = gtopo_nccl_number(r, element, "modelid", 0, INT32_MAX, -1, &model)))
        return status;
    if (family >= 0)
        status = gtopo_discovery_number(r->d, numa, GTOPO_ATTRIBUTE_CPU_FAMILY, (uint64_t)family);
    if (!status && model >= 0)
        status = gtopo_discovery_number(r->d, numa, GTOPO_ATTRIBUTE_CPU_MODEL, (uint64_t)model);
    return status;
}

static int add_cpu(struct gtopo_nccl *r, uint32_t element)
{
    const char *affinity = gtopo_nccl_get(r, element, "affinity");
    struct nccl_place place = {0};
    uint32_t numa;
    int status, is_mask = 1;

    if (r->cpu_count == CPUS_MAX)
        return gtopo_nccl_bad(r, element, "a machine of more than %d NUMA nodes is not one", CPUS_MAX);
    if (gtopo_grow((void **)&r->cpus, &r->cpu_capacity, r->cpu_count + 1, sizeof *r->cpus))
        return gtopo_fail(r->d->error, GTOPO_ENOMEM, NULL, "out of memory");
    if ((status = gtopo_nccl_number(r, element, "numaid", -1, INT32_MAX, -1, &place.numa)) ||
        (status = gtopo_discovery_add(r->d, GTOPO_NUMA, r->d->machine, 0, &numa)))
        return status;
    place.cpu = r->cpus[r->cpu_count++] = numa;
    if (place.numa >= 0)
        status = gtopo_discovery_number(r->d, numa, GTOPO_ATTRIBUTE_OS_INDEX, (uint64_t)place.numa);
    if (!status)
        status = set_processor(r, element, numa);
    if (!status && affinity)
        status = gtopo_discovery_cpu_mask(r->d, numa, affinity, &is_mask);
    if (!is_mask)
        return gtopo_nccl_bad(r, element, "affinity=\"%.64s\" is no mask of processors", affinity);
    for (size_t i = 0; !status && i + 1 < r->cpu_count; i++)
        status = gtopo_discovery_link(r->d, GTOPO_LINK_SOCKET, r->cpus[i], numa, 0);
    if (status || r->xml.elements[element].first_child == GTOPO_XML_NONE)
        return status;
    if ((status = gtopo_discovery_add(r->d, GTOPO_HOST_BRIDGE, numa, 0, &place.id)) ||
        (status = set_numa(r, place.id, place.numa)) ||
        (status = gtopo_discovery_link(r->d, GTOPO_LINK_MEMORY, place.id, numa, 0)))
        return status;
    return visit(r, &place, element);
}

/* ---- the file ---- */

static int check_root(const struct gtopo_nccl *r)
{
    const char *version = gtopo_nccl_get(r, 0, "version");

    if (!gtopo_nccl_is(r, 0, "system"))
        return gtopo_nccl_bad(r, 0, "the first element is no <system>");
    if (version && strcmp(version, "1") && strcmp(version, "2")) /* 2 is RCCL's */
        return gtopo_fail(r->d->error, GTOPO_EVERSION, "dump it with another NCCL, or use a newer gputopo",
                          "%s:%u: version %.16s of NCCL's topology files is not known", r->path,
                          r->xml.elements[0].line, version);
    return 0;
}

static int read_machine(struct gtopo_nccl *r)
{
    size_t links = 0;
    int status = check_root(r);

    for (uint32_t child = r->xml.elements[0].first_child; child != GTOPO_XML_NONE && !status;
         child = r->xml.elements[child].next)
        if (gtopo_nccl_is(r, child, "cpu"))
            status = add_cpu(r, child);
    if (!status)
        status = gtopo_nccl_read_links(r, &links);
    if (!status && r->unknown_count)
        status = gtopo_discovery_find(r->d, GTOPO_RULE_PCI_CLASS_NOT_IN_FILE, GTOPO_NOTE, r->d->machine,
                                      "dump the topology on the machine (NCCL_TOPO_DUMP_FILE): NCCL fills in what is "
                                      "missing",
                                      "%u PCI devices have no class in the file: what they are is not known, and they "
                                      "are not in the map",
                                      r->unknown_count);
    if (status || links || r->gpu_count < 2)
        return status;
    return gtopo_discovery_find(r->d, GTOPO_RULE_GPU_LINKS_NOT_IN_FILE, GTOPO_NOTE, r->d->machine,
                                "dump the topology on the machine (NCCL_TOPO_DUMP_FILE), or discover it there",
                                "the file has the PCIe tree only: whether NVLink or XGMI joins the GPUs is not in it");
}

int gtopo_nccl_read(struct gtopo_discovery *d, const char *name, const char *data, size_t size)
{
    struct gtopo_nccl r = {.d = d, .path = name};
    int status = gtopo_xml_read(name, data, size, &r.xml, d->error);

    if (!status)
        status = read_machine(&r);
    gtopo_xml_clear(&r.xml);
    free(r.cpus);
    free(r.targets);
    return status;
}

int gtopo_discover_nccl(struct gtopo_discovery *d, const char *path)
{
    char *data = NULL;
    size_t size = 0;
    int status = gtopo_file_read(path, FILE_LIMIT_B, &data, &size, d->error);

    if (!status)
        status = gtopo_nccl_read(d, path, data, size);
    free(data);
    return status;
}
