/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree that a provider or an administrator gives, over a machine that hides its own: read, and held against what the
 * machine shows. A device of the one is a device of the other when they share an identity that no renumbering changes
 * (a guest has other PCI addresses than its host), else when they have the same PCI address.
 */
#include "topo/host/overlay.h"
#include "lib/file.h"
#include "lib/map.h"
#include "lib/text.h"
#include "topo/host/nccl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT_B ((size_t)1 << 30)
#define OTHER_MACHINE "is it the topology of another machine, or of another size of virtual machine?"

struct gtopo_object gtopo_overlay_object(const struct gtopo_overlay_side *side, uint32_t id)
{
    struct gtopo_object object = {.id = GTOPO_NONE, .kind = GTOPO_OBJECT_KINDS, .parent = GTOPO_NONE};

    gtopo_map_object(side->map, id, &object, NULL);
    return object;
}

const char *gtopo_overlay_name(const struct gtopo_overlay_side *side, uint32_t id, char text[GTOPO_ADDRESS_MAX])
{
    struct gtopo_object object = gtopo_overlay_object(side, id);
    const char *address = gtopo_map_text(side->map, id, GTOPO_ATTRIBUTE_PCI_ADDRESS);

    snprintf(text, GTOPO_ADDRESS_MAX, "%s%u (%.64s)", gtopo_object_kind_name(object.kind), object.number,
             address ? address : "no PCI address");
    return text;
}

/* ---- what devices are known by ---- */

static int is_device(unsigned kind)
{
    return kind == GTOPO_PCI_SWITCH || kind == GTOPO_GPU || kind == GTOPO_NIC || kind == GTOPO_STORAGE ||
           kind == GTOPO_NVSWITCH;
}

static int add_key(struct gtopo_overlay_side *side, uint32_t device, const char *prefix, enum gtopo_attribute attribute,
                   const char *value)
{
    struct gtopo_overlay_key *key;
    int length;

    if (gtopo_grow((void **)&side->keys, &side->key_capacity, side->key_count + 1, sizeof *side->keys))
        return GTOPO_ENOMEM;
    key = &side->keys[side->key_count];
    length = snprintf(key->text, sizeof key->text, "%s%s=%s", prefix, gtopo_attribute_key(attribute), value);
    key->object = device;
    side->key_count += length < (int)sizeof key->text; /* a longer one could be equal only as far as it was cut */
    return 0;
}

/* The keys that one object gives a device: itself, or a port its NIC. */
static int add_keys(struct gtopo_overlay_side *side, const struct gtopo_object *object, uint32_t device)
{
    static const enum gtopo_attribute texts[] = {GTOPO_ATTRIBUTE_UUID, GTOPO_ATTRIBUTE_SERIAL, GTOPO_ATTRIBUTE_MAC};
    const char *address = gtopo_map_text(side->map, object->id, GTOPO_ATTRIBUTE_PCI_ADDRESS), *value;
    char prefix[32], number[32];
    uint64_t guid;
    int status = 0;

    snprintf(prefix, sizeof prefix, "%s ", gtopo_object_kind_name(object->kind));
    if (object->id == device && address)
        status = add_key(side, device, "", GTOPO_ATTRIBUTE_PCI_ADDRESS, address);
    for (size_t i = 0; !status && i < sizeof texts / sizeof *texts; i++)
        if ((value = gtopo_map_text(side->map, object->id, texts[i])))
            status = add_key(side, device, prefix, texts[i], value);
    if (status || object->id != device || !gtopo_map_number(side->map, device, GTOPO_ATTRIBUTE_NODE_GUID, &guid))
        return status;
    snprintf(number, sizeof number, "%llx", (unsigned long long)guid);
    return add_key(side, device, prefix, GTOPO_ATTRIBUTE_NODE_GUID, number);
}

static int compare_keys(const void *a, const void *b)
{
    const struct gtopo_overlay_key *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order ? order : x->object < y->object ? -1 : x->object > y->object;
}

/* Look at a host of a sealed map: keys, and room for what will be known of its objects. */
static int open_side(struct gtopo_overlay_side *side, uint32_t host, struct gtopo_error *error)
{
    int status = gtopo_map_host_objects(side->map, host, &side->first, &side->count, error);

    if (status)
        return status;
    side->host = host;
    side->match = malloc(side->count * sizeof *side->match);
    side->result = malloc(side->count * sizeof *side->result);
    side->is_bearing = calloc(side->count, 1);
    if (!side->match || !side->result || !side->is_bearing)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    memset(side->match, 0xff, side->count * sizeof *side->match);
    memset(side->result, 0xff, side->count * sizeof *side->result);
    for (uint32_t id = side->first; !status && id < side->first + side->count; id++) {
        struct gtopo_object object = gtopo_overlay_object(side, id);

        if (is_device(object.kind) || object.kind == GTOPO_PORT)
            status = add_keys(side, &object, object.kind == GTOPO_PORT ? object.parent : id);
    }
    if (status)
        return gtopo_fail(error, status, NULL, "out of memory");
    if (side->key_count)
        qsort(side->keys, side->key_count, sizeof *side->keys, compare_keys);
    return 0;
}

static void close_side(struct gtopo_overlay_side *side)
{
    gtopo_map_free(side->map);
    free(side->keys);
    free(side->match);
    free(side->result);
    free(side->is_bearing);
}

/* ---- which is which ---- */

enum gtopo_object_kind gtopo_overlay_kind(const struct gtopo_overlay *o, const char *bus_id)
{
    struct gtopo_overlay_key wanted = {.object = 0};
    size_t low = 0, high = o->seen.key_count;

    snprintf(wanted.text, sizeof wanted.text, "%s=%s", gtopo_attribute_key(GTOPO_ATTRIBUTE_PCI_ADDRESS), bus_id);
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_keys(&o->seen.keys[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == o->seen.key_count || strcmp(o->seen.keys[low].text, wanted.text))
        return GTOPO_OBJECT_KINDS;
    return gtopo_overlay_object(&o->seen, o->seen.keys[low].object).kind;
}

/* What is at one PCI address on both sides has to be the same thing. */
static int check_device(const struct gtopo_overlay *o, uint32_t seen, uint32_t tree)
{
    struct gtopo_object ours = gtopo_overlay_object(&o->seen, seen), theirs = gtopo_overlay_object(&o->tree, tree);
    const char *our_id = gtopo_map_text(o->seen.map, seen, GTOPO_ATTRIBUTE_PCI_ID);
    const char *their_id = gtopo_map_text(o->tree.map, tree, GTOPO_ATTRIBUTE_PCI_ID);
    char name[GTOPO_ADDRESS_MAX];

    if (ours.kind != theirs.kind)
        return gtopo_fail(o->into.error, GTOPO_EFORMAT, OTHER_MACHINE, "%s: %s is a %s on this machine", o->path,
                          gtopo_overlay_name(&o->tree, tree, name), gtopo_object_kind_name(ours.kind));
    if (our_id && their_id && strcmp(our_id, their_id))
        return gtopo_fail(o->into.error, GTOPO_EFORMAT, OTHER_MACHINE,
                          "%s: %s has the PCI id %.32s, but %.32s on this machine", o->path,
                          gtopo_overlay_name(&o->tree, tree, name), their_id, our_id);
    return 0;
}

static size_t end_of_equal(const struct gtopo_overlay_side *side, size_t begin)
{
    size_t end = begin + 1;

    while (end < side->key_count && !strcmp(side->keys[begin].text, side->keys[end].text))
        end++;
    return end;
}

/* Equal keys, `ours` of the machine from `i` on and `theirs` of the file from `j` on. Disks share their controller's
 * PCI address; an identity that two devices have is none. */
static int join_equal(struct gtopo_overlay *o, int by_address, size_t i, size_t ours, size_t j, size_t theirs)
{
    uint32_t tree = o->tree.keys[j].object;
    unsigned kind = gtopo_overlay_object(&o->tree, tree).kind;
    char name[GTOPO_ADDRESS_MAX];
    int status = 0;

    if (by_address && theirs > 1 && kind != GTOPO_STORAGE)
        return gtopo_fail(o->into.error, GTOPO_EFORMAT, NULL, "%s: there are two of %s", o->path,
                          gtopo_overlay_name(&o->tree, tree, name));
    if (!by_address && (ours > 1 || theirs > 1))
        return 0;
    if (by_address && gtopo_overlay_match(&o->tree, tree) != GTOPO_NONE) /* joined by an identity */
        return 0;
    for (size_t k = j; k < j + theirs; k++)
        o->tree.match[o->tree.keys[k].object - o->tree.first] = o->seen.keys[i].object;
    for (size_t k = i; !status && k < i + ours; k++) {
        uint32_t seen = o->seen.keys[k].object;

        if (gtopo_overlay_match(&o->seen, seen) != GTOPO_NONE)
            continue;
        status = by_address ? check_device(o, seen, tree) : 0;
        o->seen.match[seen - o->seen.first] = tree;
    }
    return status;
}

/* Walk over both sorted lists of keys at once. */
static int join_by(struct gtopo_overlay *o, int by_address)
{
    static const char address[] = "pci_address=";
    int status = 0;

    for (size_t i = 0, j = 0; !status && i < o->seen.key_count && j < o->tree.key_count;) {
        int order = strcmp(o->seen.keys[i].text, o->tree.keys[j].text);
        size_t next_i = end_of_equal(&o->seen, i), next_j = end_of_equal(&o->tree, j);

        if (!order && by_address == !strncmp(o->seen.keys[i].text, address, sizeof address - 1))
            status = join_equal(o, by_address, i, next_i - i, j, next_j - j);
        i = order <= 0 ? next_i : i;
        j = order >= 0 ? next_j : j;
    }
    return status;
}

/* Is it one of what the tree is there for? */
static int is_leaf(unsigned kind)
{
    return kind == GTOPO_GPU || kind == GTOPO_NIC || kind == GTOPO_STORAGE;
}

static int check_any(const struct gtopo_overlay *o)
{
    uint32_t count = 0, first = GTOPO_NONE;
    char name[GTOPO_ADDRESS_MAX];

    for (uint32_t id = o->tree.first; id < o->tree.first + o->tree.count; id++) {
        if (!is_leaf(gtopo_overlay_object(&o->tree, id).kind))
            continue;
        if (gtopo_overlay_match(&o->tree, id) != GTOPO_NONE)
            return 0;
        first = count++ ? first : id;
    }
    if (!count)
        return gtopo_fail(o->into.error, GTOPO_EFORMAT, "name the machine's topology: NCCL's XML, or a map",
                          "%s has no GPU, NIC or storage that could be on this machine", o->path);
    return gtopo_fail(o->into.error, GTOPO_EFORMAT, OTHER_MACHINE,
                      "this machine has none of the %u devices of %s, the first of which is %s", count, o->path,
                      gtopo_overlay_name(&o->tree, first, name));
}

/* ---- reading ---- */

static int read_nccl(struct gtopo_overlay *o, const char *data, size_t size)
{
    struct gtopo_discovery d = {.map = o->tree.map, .sysfs = {.fd = -1}, .overlay = o, .error = o->into.error};
    int status = gtopo_map_add_host(d.map, "tree", &d.host, d.error);

    d.machine = status ? GTOPO_NONE : gtopo_map_host_machine(d.map, d.host);
    if (!status)
        status = gtopo_nccl_read(&d, o->path, data, size);
    if (!status)
        status = gtopo_join_nvswitches(&d);
    if (!status)
        status = gtopo_map_seal(d.map, d.error);
    free(d.pci_ids);
    free(d.pci_vendors);
    return status;
}

/* Of a map of several hosts, the one that has this machine's name. */
static int choose_host(const struct gtopo_overlay *o, const char *name, uint32_t *host)
{
    uint32_t count = gtopo_map_host_count(o->tree.map);

    *host = gtopo_map_find_host(o->tree.map, name);
    if (*host == GTOPO_NONE && count == 1)
        *host = 0;
    if (*host != GTOPO_NONE)
        return 0;
    return gtopo_fail(o->into.error, GTOPO_EFORMAT, "name a map of this host, or this host with --name",
                      "%s has %u hosts, and none is called \"%.255s\"", o->path, count, name);
}

/* NCCL's XML, or a map. */
static int read_tree(struct gtopo_overlay *o, const char *name)
{
    char *data = NULL;
    size_t size = 0;
    uint32_t host = 0;
    int status = gtopo_file_read(o->path, FILE_LIMIT_B, &data, &size, o->into.error);

    if (status)
        return status;
    if (data[strspn(data, " \t\r\n")] == '<') {
        o->tree.map = gtopo_map_new();
        status =
            o->tree.map ? read_nccl(o, data, size) : gtopo_fail(o->into.error, GTOPO_ENOMEM, NULL, "out of memory");
    } else {
        status = gtopo_map_read(data, size, o->path, &o->tree.map, o->into.error);
        if (!status)
            status = choose_host(o, name, &host);
    }
    free(data);
    return status ? status : open_side(&o->tree, host, o->into.error);
}

static int read_machine(struct gtopo_overlay *o, const struct gtopo_host_options *options)
{
    struct gtopo_host_options plain = *options;
    int status;

    plain.overlay = NULL;
    o->seen.map = gtopo_map_new();
    if (!o->seen.map)
        return gtopo_fail(o->into.error, GTOPO_ENOMEM, NULL, "out of memory");
    status = gtopo_host_discover(o->seen.map, &plain, o->into.error);
    if (!status)
        status = gtopo_map_seal(o->seen.map, o->into.error);
    return status ? status : open_side(&o->seen, 0, o->into.error);
}

int gtopo_overlay_discover(struct gtopo_map *map, const struct gtopo_host_options *options, struct gtopo_error *error)
{
    struct gtopo_overlay o = {.path = options->overlay, .into = {.map = map, .error = error}};
    const char *name = NULL;
    int status = read_machine(&o, options);

    if (!status) {
        name = gtopo_map_host_name(o.seen.map, 0);
        status = read_tree(&o, name);
    }
    if (!status)
        status = join_by(&o, 0);
    if (!status)
        status = join_by(&o, 1);
    if (!status)
        status = check_any(&o);
    if (!status)
        status = gtopo_overlay_lay(&o, name);
    close_side(&o.seen);
    close_side(&o.tree);
    return status;
}
