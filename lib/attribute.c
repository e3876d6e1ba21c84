/* SPDX-License-Identifier: Apache-2.0 */
/* What may be known of an object: the table of attributes, and setting and reading them. */
#include "lib/map.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key;
    uint8_t type; /* enum gtopo_value_type */
    uint8_t identity;
} attributes[GTOPO_ATTRIBUTES] = {
    [GTOPO_ATTRIBUTE_MODEL] = {"model", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_VENDOR] = {"vendor", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_PCI_ID] = {"pci_id", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_PCI_SUBSYSTEM] = {"pci_subsystem", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_PCI_CLASS] = {"pci_class", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_PCI_ADDRESS] = {"pci_address", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_NUMA] = {"numa", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_SERIAL] = {"serial", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_UUID] = {"uuid", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_DEVICE] = {"device", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_DRIVER] = {"driver", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_FIRMWARE] = {"firmware", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_ARCHITECTURE] = {"architecture", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_CPU_FAMILY] = {"cpu_family", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_CPU_MODEL] = {"cpu_model", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_GPUDIRECT] = {"gpudirect", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_NVML_INDEX] = {"nvml_index", GTOPO_VALUE_NUMBER, 1},
    [GTOPO_ATTRIBUTE_CUDA_ORDINAL] = {"cuda_ordinal", GTOPO_VALUE_NUMBER, 1},
    [GTOPO_ATTRIBUTE_MEMORY_NUMA] = {"memory_numa", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_MIG] = {"mig", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_MIG_INSTANCES] = {"mig_instances", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_MIG_UUIDS] = {"mig_uuids", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_NVLINK_VERSION] = {"nvlink_version", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_FABRIC_UUID] = {"fabric_uuid", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_FABRIC_CLIQUE] = {"fabric_clique", GTOPO_VALUE_NUMBER, 1},
    [GTOPO_ATTRIBUTE_NVIDIA_DRIVER] = {"nvidia_driver", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_CUDA_VISIBLE_DEVICES] = {"cuda_visible_devices", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_MAX_PAYLOAD_B] = {"max_payload_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_MAX_PAYLOAD_CAPABLE_B] = {"max_payload_capable_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_MAX_READ_REQUEST_B] = {"max_read_request_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_RELAXED_ORDERING] = {"relaxed_ordering", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_ATS] = {"ats", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_ACS] = {"acs", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_IOMMU] = {"iommu", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_IOMMU_GROUP] = {"iommu_group", GTOPO_VALUE_NUMBER, 1},
    [GTOPO_ATTRIBUTE_BAR1_B] = {"bar1_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_OS] = {"os", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_OS_INDEX] = {"os_index", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_CORES] = {"cores", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_CPUS] = {"cpus", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_MEMORY_B] = {"memory_B", GTOPO_VALUE_NUMBER, 1},
    [GTOPO_ATTRIBUTE_ROLE] = {"role", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_CARD] = {"card", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_SOCKET_DIRECT] = {"socket_direct", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION] = {"physical_function", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_NETDEV] = {"netdev", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_BOND] = {"bond", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_BOND_MODE] = {"bond_mode", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_MAC] = {"mac", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_GUID] = {"guid", GTOPO_VALUE_ID, 1},
    [GTOPO_ATTRIBUTE_NODE_GUID] = {"node_guid", GTOPO_VALUE_ID, 1},
    [GTOPO_ATTRIBUTE_SYSTEM_GUID] = {"system_guid", GTOPO_VALUE_ID, 1},
    [GTOPO_ATTRIBUTE_LID] = {"lid", GTOPO_VALUE_NUMBER, 1},
    [GTOPO_ATTRIBUTE_SM_LID] = {"sm_lid", GTOPO_VALUE_NUMBER, 1},
    [GTOPO_ATTRIBUTE_GIDS] = {"gids", GTOPO_VALUE_GIDS, 1},
    [GTOPO_ATTRIBUTE_LINK_LAYER] = {"link_layer", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_STATE] = {"state", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_PHYSICAL_STATE] = {"physical_state", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_RATE_Bps] = {"rate_Bps", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_LANES] = {"lanes", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_MTU_B] = {"mtu_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_RDMA_MTU_B] = {"rdma_mtu_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_RDMA_MAX_MTU_B] = {"rdma_max_mtu_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_VIRTUAL] = {"virtual", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_CAPACITY_B] = {"capacity_B", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_ROTATIONAL] = {"rotational", GTOPO_VALUE_NUMBER, 0},
    [GTOPO_ATTRIBUTE_INTERFACE] = {"interface", GTOPO_VALUE_TEXT, 0},
    [GTOPO_ATTRIBUTE_MOUNTED_AT] = {"mounted_at", GTOPO_VALUE_TEXT, 1},
    [GTOPO_ATTRIBUTE_NETWORK_FILE_SYSTEMS] = {"network_file_systems", GTOPO_VALUE_TEXT, 1},
};

const char *gtopo_attribute_key(enum gtopo_attribute attribute)
{
    return (unsigned)attribute < GTOPO_ATTRIBUTES ? attributes[attribute].key : NULL;
}

enum gtopo_value_type gtopo_attribute_type(enum gtopo_attribute attribute)
{
    return (unsigned)attribute < GTOPO_ATTRIBUTES ? attributes[attribute].type : GTOPO_VALUE_NUMBER;
}

int gtopo_attribute_is_identity(enum gtopo_attribute attribute)
{
    return attributes[attribute].identity;
}

enum gtopo_attribute gtopo_attribute_of_key(const char *key)
{
    unsigned attribute = 0;

    while (attribute < GTOPO_ATTRIBUTES && strcmp(attributes[attribute].key, key))
        attribute++;
    return attribute;
}

int gtopo_values_add_object(struct gtopo_values *values)
{
    if (gtopo_grow((void **)&values->first, &values->object_capacity, values->object_count + 1, sizeof *values->first))
        return GTOPO_ENOMEM;
    values->first[values->object_count++] = GTOPO_NONE;
    return 0;
}

void gtopo_values_clear(struct gtopo_values *values)
{
    free(values->items);
    free(values->first);
    memset(values, 0, sizeof *values);
}

static struct gtopo_value *find(const struct gtopo_values *values, uint32_t object, unsigned attribute)
{
    uint32_t i = values->first[object];

    while (i != GTOPO_NONE && values->items[i].attribute < attribute)
        i = values->items[i].next;
    return i != GTOPO_NONE && values->items[i].attribute == attribute ? &values->items[i] : NULL;
}

/* Set, keeping the list of the object in order of attributes. */
static int put(struct gtopo_values *values, uint32_t object, struct gtopo_value value)
{
    struct gtopo_value *old = find(values, object, value.attribute);
    uint32_t *link = &values->first[object];

    if (old) {
        value.next = old->next;
        *old = value;
        return 0;
    }
    if (values->count >= GTOPO_NONE - 1 ||
        gtopo_grow((void **)&values->items, &values->capacity, values->count + 1, sizeof *values->items))
        return GTOPO_ENOMEM;
    while (*link != GTOPO_NONE && values->items[*link].attribute < value.attribute)
        link = &values->items[*link].next;
    value.next = *link;
    *link = (uint32_t)values->count;
    values->items[values->count++] = value;
    return 0;
}

const struct gtopo_values *gtopo_map_identity_values(const struct gtopo_map *map, struct gtopo_place place)
{
    return place.host == GTOPO_NONE ? &map->switch_values : &map->hosts[place.host].values;
}

/* The store that holds this attribute for objects of this place. */
static struct gtopo_values *store_of(const struct gtopo_map *map, struct gtopo_place place, unsigned attribute)
{
    if (place.host == GTOPO_NONE || attributes[attribute].identity)
        return (struct gtopo_values *)gtopo_map_identity_values(map, place);
    return &map->shapes[map->hosts[place.host].shape].values;
}

static int set(struct gtopo_map *map, uint32_t id, struct gtopo_value value, struct gtopo_error *error)
{
    struct gtopo_place place;

    if (!gtopo_map_place(map, id, &place))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "there is no object %u to set \"%s\" on", id,
                          attributes[value.attribute].key);
    if (place.host != GTOPO_NONE && !attributes[value.attribute].identity &&
        map->shapes[map->hosts[place.host].shape].frozen)
        return gtopo_fail(error, GTOPO_EUSAGE, "set what hosts of one shape share before the map is sealed",
                          "\"%s\" belongs to the shape of host %u, which is sealed", attributes[value.attribute].key,
                          place.host);
    map->sealed = 0;
    if (put(store_of(map, place, value.attribute), place.local, value))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    return 0;
}

static int check_type(unsigned attribute, unsigned type, unsigned other, struct gtopo_error *error)
{
    if (attribute >= GTOPO_ATTRIBUTES)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "there is no attribute %u", attribute);
    if (attributes[attribute].type != type && attributes[attribute].type != other)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "attribute \"%s\" is of another type", attributes[attribute].key);
    return 0;
}

int gtopo_map_set_number(struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute, uint64_t number,
                         struct gtopo_error *error)
{
    struct gtopo_value value = {.attribute = attribute, .number = number};
    int status = check_type(attribute, GTOPO_VALUE_NUMBER, GTOPO_VALUE_ID, error);

    if (!status && attributes[attribute].type == GTOPO_VALUE_NUMBER && number > INT64_MAX)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "\"%s\" cannot be above 2^63 - 1", attributes[attribute].key);
    return status ? status : set(map, id, value, error);
}

int gtopo_map_set_text(struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute, const char *text,
                       struct gtopo_error *error)
{
    struct gtopo_value value = {.attribute = attribute};
    int status = check_type(attribute, GTOPO_VALUE_TEXT, GTOPO_VALUE_TEXT, error);

    if (status)
        return status;
    if (!gtopo_text_is_clean(text))
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "the text of \"%s\" is not UTF-8 or holds a control character",
                          attributes[attribute].key);
    if (gtopo_texts_add(&map->texts, text, &value.text))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    return set(map, id, value, error);
}

int gtopo_map_set_gids(struct gtopo_map *map, uint32_t id, const struct gtopo_gid *gids, size_t count,
                       struct gtopo_error *error)
{
    struct gtopo_value value = {.attribute = GTOPO_ATTRIBUTE_GIDS};
    /* The table may be one of the map, and would move with it. */
    int inside = map->gids && gids >= map->gids && gids < map->gids + map->gid_count;
    ptrdiff_t first = inside ? gids - map->gids : 0;

    for (size_t i = 0; i < count; i++)
        if (gids[i].type > GTOPO_GID_ROCE_V2)
            return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a GID has the unknown type %u", gids[i].type);
    if (count > UINT16_MAX)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "a port has at most 65535 GIDs, not %zu", count);
    if (map->gid_count + count >= UINT32_MAX ||
        gtopo_grow((void **)&map->gids, &map->gid_capacity, map->gid_count + count, sizeof *map->gids))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    value.gids.first = (uint32_t)map->gid_count;
    value.gids.count = (uint32_t)count;
    if (count)
        memcpy(map->gids + map->gid_count, inside ? map->gids + first : gids, count * sizeof *gids);
    map->gid_count += count;
    return set(map, id, value, error);
}

int gtopo_map_set_unknown(struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute, struct gtopo_error *error)
{
    struct gtopo_value value = {.attribute = attribute, .unknown = 1};

    if (attribute >= GTOPO_ATTRIBUTES)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "there is no attribute %u", attribute);
    return set(map, id, value, error);
}

static const struct gtopo_value *get(const struct gtopo_map *map, uint32_t id, unsigned attribute)
{
    struct gtopo_place place;
    const struct gtopo_value *value;

    if (attribute >= GTOPO_ATTRIBUTES || !gtopo_map_place(map, id, &place))
        return NULL;
    value = find(store_of(map, place, attribute), place.local, attribute);
    return value && !value->unknown ? value : NULL;
}

int gtopo_map_number(const struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute, uint64_t *number)
{
    const struct gtopo_value *value = get(map, id, attribute);

    if (!value || check_type(attribute, GTOPO_VALUE_NUMBER, GTOPO_VALUE_ID, NULL))
        return 0;
    *number = value->number;
    return 1;
}

const char *gtopo_map_text(const struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute)
{
    const struct gtopo_value *value = get(map, id, attribute);

    if (!value || attributes[attribute].type != GTOPO_VALUE_TEXT)
        return NULL;
    return gtopo_texts_get(&map->texts, value->text);
}

const struct gtopo_gid *gtopo_map_gids(const struct gtopo_map *map, uint32_t id, size_t *count)
{
    const struct gtopo_value *value = get(map, id, GTOPO_ATTRIBUTE_GIDS);

    *count = value ? value->gids.count : 0;
    return *count ? map->gids + value->gids.first : NULL;
}
