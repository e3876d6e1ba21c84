/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining a machine and the tree that is laid over it. Objects keep the numbers that the machine gives them. Of the
 * tree there are the host bridges and switches above what the machine has, and the NVSwitches that it hides.
 */
#include "topo/host/overlay.h"
#include "lib/map.h"
#include <stdio.h>
#include <string.h>

static int is_above(unsigned kind)
{
    return kind == GTOPO_HOST_BRIDGE || kind == GTOPO_PCI_SWITCH;
}

static int is_gpu_link(unsigned kind)
{
    return kind == GTOPO_LINK_NVLINK || kind == GTOPO_LINK_XGMI || kind == GTOPO_LINK_C2C;
}

static uint32_t result_of(const struct gtopo_overlay_side *side, uint32_t id)
{
    return id == GTOPO_NONE ? GTOPO_NONE : side->result[id - side->first];
}

/* What a device of the machine is in the tree, if that says what it hangs on; else GTOPO_NONE. */
static uint32_t in_tree(const struct gtopo_overlay *o, uint32_t seen)
{
    uint32_t tree = gtopo_overlay_match(&o->seen, seen);
    struct gtopo_object object = gtopo_overlay_object(&o->tree, tree);

    if (object.parent == GTOPO_NONE || !is_above(gtopo_overlay_object(&o->tree, object.parent).kind) ||
        (object.kind == GTOPO_PCI_SWITCH && !o->tree.is_bearing[tree - o->tree.first]))
        return GTOPO_NONE;
    return tree;
}

/* All host bridges and switches above an object bear it, up to what is there already. */
static void bear(const struct gtopo_overlay *o, struct gtopo_overlay_side *side, uint32_t id)
{
    for (uint32_t above = gtopo_overlay_object(side, id).parent;
         is_above(gtopo_overlay_object(side, above).kind) && !side->is_bearing[above - side->first] &&
         (side != &o->seen || in_tree(o, above) == GTOPO_NONE);
         above = gtopo_overlay_object(side, above).parent)
        side->is_bearing[above - side->first] = 1;
}

static void find_bearing(struct gtopo_overlay *o)
{
    for (int of_seen = 0; of_seen < 2; of_seen++) /* what the tree does not place stays where the machine has it */
        for (uint32_t id = o->seen.first; id < o->seen.first + o->seen.count; id++) {
            unsigned kind = gtopo_overlay_object(&o->seen, id).kind;
            uint32_t tree = in_tree(o, id);

            if (is_above(kind) || kind == GTOPO_PORT)
                continue;
            if (of_seen && tree == GTOPO_NONE)
                bear(o, &o->seen, id);
            else if (!of_seen && tree != GTOPO_NONE)
                bear(o, &o->tree, tree);
        }
}

/* ---- links ---- */

/* The link of an object to what it hangs on. */
static int uplink_of(const struct gtopo_overlay_side *side, uint32_t id, struct gtopo_link *link)
{
    uint32_t parent = gtopo_overlay_object(side, id).parent;

    for (size_t i = 0; gtopo_map_link_of(side->map, id, i, link) != GTOPO_NONE; i++)
        if (link->ends[0] == parent || link->ends[1] == parent)
            return 1;
    return 0;
}

static int add_link(struct gtopo_overlay *o, const struct gtopo_link *link, uint32_t a, uint32_t b)
{
    struct gtopo_link added = *link;
    uint32_t id;

    added.ends[0] = a;
    added.ends[1] = b;
    return gtopo_map_add_link(o->into.map, &added, &id, o->into.error);
}

/* Hang what the tree has below what it says. What the machine knows of a link goes before what the file does. */
static int hang(struct gtopo_overlay *o, uint32_t tree, uint32_t seen, uint32_t child, uint32_t parent)
{
    struct gtopo_link link, ours;

    if (!uplink_of(&o->tree, tree, &link))
        return 0;
    if (seen != GTOPO_NONE && uplink_of(&o->seen, seen, &ours) && ours.nominal_Bps && ours.kind == link.kind)
        link = ours;
    if (gtopo_overlay_object(&o->tree, tree).kind == GTOPO_HOST_BRIDGE)
        link.kind = parent == o->into.machine ? GTOPO_LINK_PLATFORM : GTOPO_LINK_MEMORY;
    return add_link(o, &link, parent, child);
}

/* Was this a link of the machine to what hangs elsewhere now? */
static int is_replaced(const struct gtopo_overlay *o, const struct gtopo_link *link)
{
    for (int end = 0; end < 2; end++)
        if (gtopo_overlay_object(&o->seen, link->ends[end]).parent == link->ends[!end] &&
            in_tree(o, link->ends[end]) != GTOPO_NONE)
            return 1;
    return 0;
}

/* The links of one side whose ends are both in the result: the machine's, or the tree's between GPUs. */
static int copy_links(struct gtopo_overlay *o, const struct gtopo_overlay_side *side)
{
    uint32_t first, count;
    int status = gtopo_map_host_links(side->map, side->host, &first, &count, o->into.error);

    for (uint32_t id = first; !status && id < first + count; id++) {
        struct gtopo_link link;
        uint32_t a, b;

        gtopo_map_link(side->map, id, &link, NULL);
        a = result_of(side, link.ends[0]);
        b = result_of(side, link.ends[1]);
        if (a == GTOPO_NONE || b == GTOPO_NONE || (side == &o->tree ? !is_gpu_link(link.kind) : is_replaced(o, &link)))
            continue;
        o->gpu_links += is_gpu_link(link.kind);
        status = add_link(o, &link, a, b);
    }
    return status;
}

/* ---- objects ---- */

static int copy(struct gtopo_overlay *o, const struct gtopo_overlay_side *side, uint32_t id, uint32_t parent)
{
    struct gtopo_object object = gtopo_overlay_object(side, id);
    uint32_t *added = &side->result[id - side->first];
    int status = gtopo_discovery_add(&o->into, object.kind, parent, object.number, added);

    return status ? status : gtopo_map_copy_values(o->into.map, *added, side->map, id, o->into.error);
}

/* Packages and NUMA nodes are the machine's. */
static int copy_processors(struct gtopo_overlay *o)
{
    int status = 0;

    for (uint32_t id = o->seen.first + 1; !status && id < o->seen.first + o->seen.count; id++) {
        struct gtopo_object object = gtopo_overlay_object(&o->seen, id);

        if (object.kind == GTOPO_PACKAGE || object.kind == GTOPO_NUMA)
            status = copy(o, &o->seen, id, result_of(&o->seen, object.parent));
    }
    return status;
}

/* What the result has for a NUMA node, a package or the machine of the tree; GTOPO_NONE for a node that the machine
 * does not have. */
static uint32_t find_place(const struct gtopo_overlay *o, uint32_t tree)
{
    struct gtopo_object wanted = gtopo_overlay_object(&o->tree, tree);
    uint64_t index = wanted.number, own;
    int by_index = gtopo_map_number(o->tree.map, tree, GTOPO_ATTRIBUTE_OS_INDEX, &index);

    if (wanted.kind == GTOPO_MACHINE || (wanted.kind == GTOPO_NUMA && !by_index))
        return o->into.machine;
    for (uint32_t id = o->seen.first; id < o->seen.first + o->seen.count; id++) {
        struct gtopo_object object = gtopo_overlay_object(&o->seen, id);

        own = object.number;
        if (object.kind != wanted.kind ||
            (by_index && !gtopo_map_number(o->seen.map, id, GTOPO_ATTRIBUTE_OS_INDEX, &own)))
            continue;
        if (own == index)
            return result_of(&o->seen, id);
    }
    return GTOPO_NONE;
}

/*
 * A node or a package that only the tree has: a guest may have fewer than the machine it runs on. It is there as a
 * place of devices, with its number and a link to every other, but without processors or memory, which would be the
 * host's.
 */
static int add_place(struct gtopo_overlay *o, uint32_t tree)
{
    struct gtopo_object object = gtopo_overlay_object(&o->tree, tree);
    uint32_t *added = &o->tree.result[tree - o->tree.first], first, count;
    uint64_t index = object.number;
    int status = gtopo_discovery_add(&o->into, object.kind, o->into.machine, 0, added);

    gtopo_map_number(o->tree.map, tree, GTOPO_ATTRIBUTE_OS_INDEX, &index);
    o->tree.is_bearing[tree - o->tree.first] = 1;
    if (!status)
        status = gtopo_discovery_number(&o->into, *added, GTOPO_ATTRIBUTE_OS_INDEX, index);
    gtopo_map_host_objects(o->into.map, o->into.host, &first, &count, NULL);
    for (uint32_t id = first + 1; !status && id < *added; id++) {
        struct gtopo_object other = {0};

        gtopo_map_object(o->into.map, id, &other, NULL);
        if ((other.kind == GTOPO_PACKAGE || other.kind == GTOPO_NUMA) && other.parent == o->into.machine)
            status = gtopo_discovery_link(&o->into, GTOPO_LINK_SOCKET, id, *added, 0);
    }
    if (status)
        return status;
    return gtopo_discovery_find(&o->into, "overlay-node-missing", GTOPO_WARNING, *added,
                                "give the virtual machine the nodes of its host; or is it the file of another machine?",
                                "%s has devices on %s %llu, which this machine does not have", o->path,
                                object.kind == GTOPO_NUMA ? "NUMA node" : "package", (unsigned long long)index);
}

/* Where a host bridge of the tree is to be. */
static int place_bridge(struct gtopo_overlay *o, uint32_t above, uint32_t *parent)
{
    int status = 0;

    *parent = result_of(&o->tree, above);
    if (*parent == GTOPO_NONE)
        *parent = o->tree.result[above - o->tree.first] = find_place(o, above);
    if (*parent == GTOPO_NONE) {
        status = add_place(o, above);
        *parent = result_of(&o->tree, above);
    }
    return status;
}

/* Host bridges and switches of the tree; a switch that the machine shows has what the machine says of it. */
static int copy_tree(struct gtopo_overlay *o)
{
    int status = 0;

    for (uint32_t id = o->tree.first; !status && id < o->tree.first + o->tree.count; id++) {
        struct gtopo_object object = gtopo_overlay_object(&o->tree, id);
        uint32_t seen = gtopo_overlay_match(&o->tree, id), parent, *added = &o->tree.result[id - o->tree.first];

        if (!is_above(object.kind) || !o->tree.is_bearing[id - o->tree.first])
            continue;
        status = place_bridge(o, object.parent, &parent);
        if (!status && seen != GTOPO_NONE) {
            status = copy(o, &o->seen, seen, parent);
            *added = result_of(&o->seen, seen);
        } else if (!status)
            status = copy(o, &o->tree, id, parent);
        if (!status)
            status = hang(o, id, seen, *added, parent);
    }
    return status;
}

/* The NUMA node that the tree has an object on; unknown is GTOPO_NONE. */
static uint32_t numa_in_tree(const struct gtopo_overlay *o, uint32_t id)
{
    while (id != GTOPO_NONE && gtopo_overlay_object(&o->tree, id).kind != GTOPO_NUMA)
        id = gtopo_overlay_object(&o->tree, id).parent;
    return id;
}

/* The node of a device is that of its place in the tree; where the machine says another, that is worth a look. */
static int set_numa(struct gtopo_overlay *o, uint32_t tree, uint32_t seen)
{
    uint32_t numa = numa_in_tree(o, tree), added = result_of(&o->seen, seen);
    uint64_t theirs, ours;

    if (numa == GTOPO_NONE || o->tree.is_bearing[numa - o->tree.first] || /* a node that the machine does not have */
        !gtopo_map_number(o->tree.map, numa, GTOPO_ATTRIBUTE_OS_INDEX, &theirs))
        return 0;
    if (gtopo_map_number(o->seen.map, seen, GTOPO_ATTRIBUTE_NUMA, &ours) && ours != theirs) {
        int status = gtopo_discovery_find(
            &o->into, "overlay-numa-differs", GTOPO_WARNING, added,
            "find out which is right: firmware may be wrong, or the file is of another machine",
            "it is on NUMA node %llu as the machine says, and on %llu as the tree that was laid over it says",
            (unsigned long long)ours, (unsigned long long)theirs);

        if (status)
            return status;
    }
    return gtopo_discovery_number(&o->into, added, GTOPO_ATTRIBUTE_NUMA, theirs);
}

/* Everything else that the machine has: below the tree, or where the machine has it. */
static int copy_devices(struct gtopo_overlay *o)
{
    int status = 0;

    for (uint32_t id = o->seen.first + 1; !status && id < o->seen.first + o->seen.count; id++) {
        struct gtopo_object object = gtopo_overlay_object(&o->seen, id);
        uint32_t tree = in_tree(o, id), parent;

        if (result_of(&o->seen, id) != GTOPO_NONE || (is_above(object.kind) && !o->seen.is_bearing[id - o->seen.first]))
            continue;
        parent = tree == GTOPO_NONE ? result_of(&o->seen, object.parent)
                                    : result_of(&o->tree, gtopo_overlay_object(&o->tree, tree).parent);
        status = copy(o, &o->seen, id, parent);
        if (!status && tree != GTOPO_NONE) {
            o->tree.result[tree - o->tree.first] = result_of(&o->seen, id);
            status = hang(o, tree, id, result_of(&o->seen, id), parent);
            if (!status)
                status = set_numa(o, tree, id);
        }
    }
    return status;
}

/* ---- links between GPUs that only the tree tells of ---- */

static int copy_gpu_links(struct gtopo_overlay *o)
{
    int status = 0;

    for (uint32_t id = o->tree.first; !status && id < o->tree.first + o->tree.count; id++) {
        struct gtopo_object object = gtopo_overlay_object(&o->tree, id);
        uint32_t *result = &o->tree.result[id - o->tree.first], seen = gtopo_overlay_match(&o->tree, id);

        if (*result != GTOPO_NONE)
            continue;
        if (seen != GTOPO_NONE)
            *result = result_of(&o->seen, seen);
        else if (object.kind == GTOPO_NVSWITCH)
            status = copy(o, &o->tree, id, o->into.machine);
        else if (object.kind == GTOPO_NUMA || object.kind == GTOPO_PACKAGE)
            *result = find_place(o, id);
    }
    if (!status)
        status = copy_links(o, &o->tree);
    o->gpu_links_given = o->gpu_links > 0;
    return status;
}

/* Where nothing hung on the machine before, there is no way from there yet. */
static int join_machine(struct gtopo_overlay *o)
{
    int status = 0, is_needed = 0;
    uint32_t first, count;
    struct gtopo_link link;

    gtopo_map_host_objects(o->into.map, o->into.host, &first, &count, NULL);
    for (uint32_t id = first + 1; id < first + count; id++) {
        struct gtopo_object object = {0};

        gtopo_map_object(o->into.map, id, &object, NULL);
        is_needed |= object.kind == GTOPO_HOST_BRIDGE && object.parent == o->into.machine;
    }
    for (uint32_t id = o->seen.first; is_needed && !status && id < o->seen.first + o->seen.count; id++) {
        if (gtopo_overlay_object(&o->seen, id).kind != GTOPO_PACKAGE || uplink_of(&o->seen, id, &link))
            continue;
        status = gtopo_discovery_link(&o->into, GTOPO_LINK_PLATFORM, result_of(&o->seen, id), o->into.machine, 0);
    }
    return status;
}

/* ---- findings ---- */

/* Is there anything left whose place is hidden? */
static int is_place_hidden(const struct gtopo_overlay *o)
{
    for (uint32_t id = o->seen.first; id < o->seen.first + o->seen.count; id++)
        if (gtopo_overlay_object(&o->seen, id).kind == GTOPO_HOST_BRIDGE && o->seen.is_bearing[id - o->seen.first] &&
            gtopo_overlay_object(&o->seen, id).parent == o->seen.first)
            return 1;
    return 0;
}

/* Those of the machine on what is still there. */
static int copy_findings(struct gtopo_overlay *o)
{
    struct gtopo_finding finding;
    int status = 0;

    for (uint32_t i = 0; !status && !gtopo_map_finding(o->seen.map, i, &finding, NULL); i++) {
        if (!strcmp(finding.rule, GTOPO_RULE_LOCALITY_HIDDEN) && !is_place_hidden(o))
            continue;
        if (finding.object != GTOPO_NONE && (finding.object = result_of(&o->seen, finding.object)) == GTOPO_NONE)
            continue;
        status = gtopo_map_add_finding(o->into.map, &finding, o->into.error);
    }
    return status;
}

/* Those of the tree on switches that the machine hides, and what the file says nothing of. */
static int copy_tree_findings(struct gtopo_overlay *o)
{
    struct gtopo_finding finding;
    int status = 0;

    for (uint32_t i = 0; !status && !gtopo_map_finding(o->tree.map, i, &finding, NULL); i++) {
        int is_lack = (!o->gpu_links && !strcmp(finding.rule, GTOPO_RULE_GPU_LINKS_NOT_IN_FILE)) ||
                      !strcmp(finding.rule, GTOPO_RULE_PCI_CLASS_NOT_IN_FILE);

        if (finding.object < o->tree.first || finding.object - o->tree.first >= o->tree.count)
            continue;
        if (!is_lack && (gtopo_overlay_object(&o->tree, finding.object).kind != GTOPO_PCI_SWITCH ||
                         gtopo_overlay_match(&o->tree, finding.object) != GTOPO_NONE))
            continue;
        finding.object = is_lack ? o->into.machine : result_of(&o->tree, finding.object);
        if (finding.object != GTOPO_NONE)
            status = gtopo_map_add_finding(o->into.map, &finding, o->into.error);
    }
    return status;
}

static int report_missing(struct gtopo_overlay *o)
{
    uint32_t count = 0, first = GTOPO_NONE;
    char name[GTOPO_ADDRESS_MAX];

    for (uint32_t id = o->tree.first; id < o->tree.first + o->tree.count; id++) {
        unsigned kind = gtopo_overlay_object(&o->tree, id).kind;

        if ((kind != GTOPO_GPU && kind != GTOPO_NIC && kind != GTOPO_STORAGE) ||
            !gtopo_map_text(o->tree.map, id, GTOPO_ATTRIBUTE_PCI_ADDRESS) ||
            gtopo_overlay_match(&o->tree, id) != GTOPO_NONE)
            continue;
        first = count++ ? first : id;
    }
    if (!count)
        return 0;
    return gtopo_discovery_find(&o->into, "overlay-device-missing", GTOPO_WARNING, o->into.machine,
                                "in a container that was given a part of the machine this is right; else look for "
                                "what fell off the bus (`dmesg`, `lspci`)",
                                "%u of the devices of %s are not on this machine: the first is %s", count, o->path,
                                gtopo_overlay_name(&o->tree, first, name));
}

static int report_unplaced(struct gtopo_overlay *o, unsigned kind)
{
    uint32_t count = 0, first = GTOPO_NONE;
    char name[GTOPO_ADDRESS_MAX];

    for (uint32_t id = o->seen.first; id < o->seen.first + o->seen.count; id++) {
        if (gtopo_overlay_object(&o->seen, id).kind != kind || in_tree(o, id) != GTOPO_NONE ||
            !gtopo_map_text(o->seen.map, id, GTOPO_ATTRIBUTE_PCI_ADDRESS))
            continue;
        first = count++ ? first : id;
    }
    if (!count)
        return 0;
    return gtopo_discovery_find(&o->into, "overlay-device-unplaced", kind == GTOPO_GPU ? GTOPO_WARNING : GTOPO_NOTE,
                                result_of(&o->seen, first), "complete the file, or take that of this machine",
                                "%u %ss of this machine are not in %s: the first is %s", count,
                                gtopo_object_kind_name(kind), o->path, gtopo_overlay_name(&o->seen, first, name));
}

static int report(struct gtopo_overlay *o)
{
    int status = copy_findings(o);

    if (!status)
        status = copy_tree_findings(o);
    if (!status)
        status = gtopo_discovery_find(&o->into, "tree-given", GTOPO_NOTE, o->into.machine, NULL,
                                      "the tree of PCIe%s is that of %s, and not what the machine itself shows",
                                      o->gpu_links_given ? " and the links between GPUs" : "", o->path);
    if (!status)
        status = report_missing(o);
    if (!status)
        status = report_unplaced(o, GTOPO_GPU);
    return status ? status : report_unplaced(o, GTOPO_NIC);
}

/* ---- the host ---- */

int gtopo_overlay_lay(struct gtopo_overlay *o, const char *name)
{
    int status = gtopo_map_add_host(o->into.map, name, &o->into.host, o->into.error);

    if (status)
        return status;
    o->into.machine = o->seen.result[0] = gtopo_map_host_machine(o->into.map, o->into.host);
    find_bearing(o);
    status = gtopo_map_copy_values(o->into.map, o->into.machine, o->seen.map, o->seen.first, o->into.error);
    if (!status)
        status = copy_processors(o);
    if (!status)
        status = copy_tree(o);
    if (!status)
        status = copy_devices(o);
    if (!status)
        status = copy_links(o, &o->seen);
    if (!status && !o->gpu_links)
        status = copy_gpu_links(o);
    if (!status)
        status = join_machine(o);
    return status ? status : report(o);
}
