/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of each host, with what each link should do and what it was measured to do; measurements; findings. */
#include "cli.h"
#include <langinfo.h>
#include <string.h>

/* How the branches of the tree are drawn. */
struct drawing {
    const char *branch, *last, *pass, *blank;
};
static const struct drawing unicode = {"├─ ", "└─ ", "│  ", "   "};
static const struct drawing ascii = {"|- ", "`- ", "|  ", "   "};

#define PREFIX_MAX 512

struct tree {
    FILE *out;
    const struct gtopo_map *map;
    const struct drawing *drawing;
    uint32_t first, count; /* objects of the host */
};

/* ---- one object ---- */

static void put_text(const struct tree *t, uint32_t id, enum gtopo_attribute attribute, const char *format)
{
    const char *text = gtopo_map_text(t->map, id, attribute);

    if (text && *text)
        fprintf(t->out, format, text);
}

static void put_number(const struct tree *t, uint32_t id, enum gtopo_attribute attribute, const char *format)
{
    uint64_t number;

    if (gtopo_map_number(t->map, id, attribute, &number))
        fprintf(t->out, format, (unsigned long long)number);
}

static void put_capacity(const struct tree *t, uint32_t id, enum gtopo_attribute attribute)
{
    char text[CLI_TEXT];
    uint64_t bytes;

    if (gtopo_map_number(t->map, id, attribute, &bytes))
        fprintf(t->out, "  %s", cli_capacity(bytes, text));
}

static void put_device(const struct tree *t, uint32_t id)
{
    put_text(t, id, GTOPO_ATTRIBUTE_DEVICE, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_VENDOR, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_MODEL, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_PCI_ADDRESS, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_DRIVER, "  driver %s");
}

static void put_nic(const struct tree *t, uint32_t id)
{
    uint64_t is_direct;

    put_device(t, id);
    put_text(t, id, GTOPO_ATTRIBUTE_ROLE, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION, " of %s");
    put_text(t, id, GTOPO_ATTRIBUTE_CARD, "  card %s");
    if (gtopo_map_number(t->map, id, GTOPO_ATTRIBUTE_SOCKET_DIRECT, &is_direct) && is_direct)
        fputs(" (Socket Direct)", t->out);
}

static void put_port(const struct tree *t, uint32_t id)
{
    char text[CLI_TEXT];
    uint64_t rate;

    put_text(t, id, GTOPO_ATTRIBUTE_DEVICE, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_NETDEV, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_LINK_LAYER, "  %s");
    put_text(t, id, GTOPO_ATTRIBUTE_STATE, "  %s");
    if (gtopo_map_number(t->map, id, GTOPO_ATTRIBUTE_RATE_Bps, &rate))
        fprintf(t->out, "  %s", cli_network_rate((double)rate, text));
    put_number(t, id, GTOPO_ATTRIBUTE_LANES, " x%llu");
    put_number(t, id, GTOPO_ATTRIBUTE_LID, "  LID %llu");
    put_number(t, id, GTOPO_ATTRIBUTE_MTU_B, "  MTU %llu");
    put_text(t, id, GTOPO_ATTRIBUTE_BOND, "  in %s");
    put_text(t, id, GTOPO_ATTRIBUTE_BOND_MODE, " (%s)");
}

static void put_object(const struct tree *t, const struct gtopo_object *object)
{
    switch (object->kind) {
    case GTOPO_MACHINE:
        put_text(t, object->id, GTOPO_ATTRIBUTE_VENDOR, "  %s");
        put_text(t, object->id, GTOPO_ATTRIBUTE_MODEL, "  %s");
        put_text(t, object->id, GTOPO_ATTRIBUTE_OS, "  %s");
        put_text(t, object->id, GTOPO_ATTRIBUTE_NETWORK_FILE_SYSTEMS, "  mounts %s");
        break;
    case GTOPO_PACKAGE:
        put_text(t, object->id, GTOPO_ATTRIBUTE_MODEL, "  %s");
        put_number(t, object->id, GTOPO_ATTRIBUTE_CORES, "  %llu cores");
        break;
    case GTOPO_NUMA:
        put_capacity(t, object->id, GTOPO_ATTRIBUTE_MEMORY_B);
        put_text(t, object->id, GTOPO_ATTRIBUTE_CPUS, "  CPUs %s");
        break;
    case GTOPO_PORT:
        put_port(t, object->id);
        break;
    case GTOPO_NIC:
        put_nic(t, object->id);
        break;
    case GTOPO_STORAGE:
        put_device(t, object->id);
        put_capacity(t, object->id, GTOPO_ATTRIBUTE_CAPACITY_B);
        put_text(t, object->id, GTOPO_ATTRIBUTE_INTERFACE, "  %s");
        put_text(t, object->id, GTOPO_ATTRIBUTE_MOUNTED_AT, "  mounted at %s");
        break;
    default:
        put_device(t, object->id);
    }
}

/* ---- the link to the parent ---- */

/* PCI Express generations by speed a lane, after the base specification. */
static unsigned pcie_generation(uint32_t speed_MTps)
{
    static const uint32_t speeds[] = {2500, 5000, 8000, 16000, 32000, 64000};

    for (unsigned i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (speeds[i] == speed_MTps)
            return i + 1;
    return 0;
}

static void put_link(const struct tree *t, uint32_t id)
{
    struct gtopo_link link;
    char text[CLI_TEXT];
    int is_low;

    gtopo_map_link(t->map, id, &link, NULL);
    if (link.kind == GTOPO_LINK_PCIE && link.width && pcie_generation(link.speed_MTps))
        fprintf(t->out, "  PCIe %u x%u", pcie_generation(link.speed_MTps), link.width);
    if (link.nominal_Bps)
        fprintf(t->out, " %s", cli_rate((double)link.nominal_Bps, text));
    is_low = (link.capable_width > link.width && link.width) ||
             (link.capable_speed_MTps > link.speed_MTps && link.speed_MTps);
    if (is_low)
        fprintf(t->out, " (both ends can do PCIe %u x%u)", pcie_generation(link.capable_speed_MTps),
                link.capable_width);
}

/* The link between an object and its parent, or GTOPO_NONE. */
static uint32_t link_to_parent(const struct tree *t, const struct gtopo_object *object)
{
    struct gtopo_link link;
    uint32_t id;

    for (size_t i = 0; (id = gtopo_map_link_of(t->map, object->id, i, &link)) != GTOPO_NONE; i++)
        if (link.ends[0] == object->parent || link.ends[1] == object->parent)
            return id;
    return GTOPO_NONE;
}

/* What crossed the link, in short: the evidence stands below the tree. */
static void put_measured(const struct tree *t, uint32_t link)
{
    char text[CLI_TEXT];
    uint32_t index;

    for (unsigned metric = 0; metric < GTOPO_METRICS; metric++)
        if (!gtopo_map_link_measurement(t->map, link, metric, &index, NULL))
            fprintf(t->out, ", %s", cli_measured_value(t->map, index, text));
}

/* ---- the tree ---- */

static void put_name(const struct tree *t, uint32_t id)
{
    char address[GTOPO_ADDRESS_MAX];
    const char *slash;

    gtopo_address_format(t->map, id, address);
    slash = strchr(address, '/');
    fputs(slash ? slash + 1 : address, t->out);
}

static int is_child(const struct tree *t, uint32_t id, uint32_t parent)
{
    struct gtopo_object object;

    return !gtopo_map_object(t->map, id, &object, NULL) && object.parent == parent;
}

static void put_subtree(const struct tree *t, uint32_t id, const char *prefix)
{
    struct gtopo_object object;
    uint32_t link, last = GTOPO_NONE;
    char below[PREFIX_MAX];

    gtopo_map_object(t->map, id, &object, NULL);
    put_name(t, id);
    put_object(t, &object);
    link = object.parent == GTOPO_NONE ? GTOPO_NONE : link_to_parent(t, &object);
    if (link != GTOPO_NONE) {
        put_link(t, link);
        put_measured(t, link);
    }
    fputc('\n', t->out);
    for (uint32_t child = id + 1; child < t->first + t->count; child++)
        if (is_child(t, child, id))
            last = child;
    for (uint32_t child = id + 1; child < t->first + t->count; child++) {
        if (!is_child(t, child, id))
            continue;
        fprintf(t->out, "%s%s", prefix, child == last ? t->drawing->last : t->drawing->branch);
        snprintf(below, sizeof below, "%s%s", prefix, child == last ? t->drawing->blank : t->drawing->pass);
        put_subtree(t, child, below);
    }
}

void cli_show_tree(FILE *out, const struct gtopo_map *map)
{
    struct tree tree = {.out = out, .map = map};

    tree.drawing = strcmp(nl_langinfo(CODESET), "UTF-8") ? &ascii : &unicode;
    for (uint32_t host = 0; host < gtopo_map_host_count(map); host++) {
        gtopo_map_host_objects(map, host, &tree.first, &tree.count, NULL);
        put_subtree(&tree, tree.first, "");
    }
}

/* ---- measurements and findings ---- */

/* What a measurement has that most do not: two ways, percentiles, memory of a GPU, company. */
static void put_exceptions(FILE *out, const struct gtopo_map *map, const struct gtopo_measurement *m)
{
    const char *const ways[2] = {m->from_way ? m->from_way : "host", m->to_way ? m->to_way : "host"};
    char text[2][CLI_TEXT];

    if (m->two_way)
        fprintf(out, "    both ways at once, of which -> %s, <- %s\n", cli_quantity(map, m, m->forward, text[0]),
                cli_quantity(map, m, m->reverse, text[1]));
    if (m->p99 > 0)
        fprintf(out, "    99 %% are below %s%s%s\n", cli_quantity(map, m, m->p99, text[0]),
                m->p999 > 0 ? ", 99.9 % below " : "", m->p999 > 0 ? cli_quantity(map, m, m->p999, text[1]) : "");
    if (strcmp(ways[0], "host") || strcmp(ways[1], "host"))
        fprintf(out, "    memory reached as: %s -> %s\n", ways[0], ways[1]);
    if (m->concurrent > 1)
        fprintf(out, "    one of %u probes that ran at once\n", m->concurrent);
}

void cli_show_measurements(FILE *out, const struct gtopo_map *map)
{
    struct gtopo_measurement m;

    for (uint32_t i = 0; !gtopo_map_measurement(map, i, &m, NULL); i++) {
        char from[GTOPO_ADDRESS_MAX], to[GTOPO_ADDRESS_MAX], text[CLI_LINE];

        fprintf(out, "%s%s -> %s  %s\n    %s\n", i ? "" : "\nMeasured (median, 95 % interval, samples):\n",
                gtopo_end_format(map, m.from, from), gtopo_end_format(map, m.to, to),
                m.metric == GTOPO_LATENCY_ns ? "latency" : "bandwidth", cli_measurement(map, i, text));
        if (m.method)
            fprintf(out, "    %s%s\n", m.method, m.verified ? "; data verified" : "; data NOT verified");
        put_exceptions(out, map, &m);
        if (m.fallback)
            fprintf(out, "    fell back: %s\n", m.fallback);
        if (m.stopped_by && !strcmp(m.stopped_by, "deadline"))
            fprintf(out, "    the time for a probe was over before the interval was as narrow as asked\n");
        else if (m.stopped_by && !strcmp(m.stopped_by, "one-direction"))
            fprintf(out, "    one direction was as precise as asked, the sum of both is not\n");
        else if (m.stopped_by && strcmp(m.stopped_by, "precision"))
            fprintf(out, "    stopped early: %s\n", m.stopped_by);
        if (m.warmup_samples)
            fprintf(out, "    %llu samples of warm-up were left out\n", (unsigned long long)m.warmup_samples);
    }
}

void cli_show_findings(FILE *out, const struct gtopo_map *map)
{
    struct gtopo_finding finding;

    for (uint32_t i = 0; !gtopo_map_finding(map, i, &finding, NULL); i++) {
        char address[GTOPO_ADDRESS_MAX];

        fprintf(out, "%s%s %s%s%s: %s\n", i ? "" : "\nFound:\n", gtopo_severity_name(finding.severity), finding.rule,
                finding.object == GTOPO_NONE ? "" : " on ",
                finding.object == GTOPO_NONE ? "" : gtopo_address_format(map, finding.object, address), finding.text);
        if (finding.next_step)
            fprintf(out, "    %s\n", finding.next_step);
    }
}
