/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/host/rdma.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIDS_MAX 1024

#define PORT "sys/class/infiniband/%s/ports/%u/"

/* "0002:c903:0003:1f21" or "0x0002c90300031f21"; 0 stands for none. */
static uint64_t parse_guid(const char *text)
{
    uint64_t guid = 0;
    int digits = 0;

    if (!strncmp(text, "0x", 2))
        text += 2;
    for (; *text; text++) {
        if (*text == ':')
            continue;
        if (!isxdigit((unsigned char)*text) || ++digits > 16)
            return 0;
        guid = guid << 4 |
               (uint64_t)(isdigit((unsigned char)*text) ? *text - '0' : tolower((unsigned char)*text) - 'a' + 10);
    }
    return digits == 16 ? guid : 0;
}

int gtopo_rdma_is_virtual(const struct gtopo_discovery *d, const char *rdma)
{
    return gtopo_sysfs_exists(&d->sysfs, "sys/class/infiniband/%s/parent", rdma) ||
           (gtopo_sysfs_exists(&d->sysfs, "sys/class/infiniband/%s/ports", rdma) &&
            !gtopo_sysfs_exists(&d->sysfs, "sys/class/infiniband/%s/device", rdma));
}

static int set_guid(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, uint64_t guid)
{
    return guid ? gtopo_discovery_number(d, id, attribute, guid) : 0;
}

/* ---- GIDs ---- */

static uint32_t gid_type(const struct gtopo_discovery *d, const char *rdma, uint32_t number, const char *index,
                         int is_ethernet)
{
    char text[GTOPO_SYSFS_TEXT];

    if (!gtopo_sysfs_text(&d->sysfs, text, PORT "gid_attrs/types/%s", rdma, number, index))
        return is_ethernet ? GTOPO_GID_ROCE_V1 : GTOPO_GID_IB;
    if (!strcmp(text, "RoCE v2"))
        return GTOPO_GID_ROCE_V2;
    /* The kernel gives RoCE version 1 and InfiniBand one name. */
    return is_ethernet ? GTOPO_GID_ROCE_V1 : GTOPO_GID_IB;
}

static int set_gids(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number, int is_ethernet)
{
    static const uint8_t zero[16];
    struct gtopo_sysfs_names indices;
    struct gtopo_gid *gids = calloc(GIDS_MAX, sizeof *gids);
    size_t count = 0;
    int status = gids ? gtopo_sysfs_list(&d->sysfs, &indices, PORT "gids", rdma, number) : GTOPO_ENOMEM;

    if (status) {
        free(gids);
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    }
    for (size_t i = 0; i < indices.count && count < GIDS_MAX; i++) {
        char text[GTOPO_SYSFS_TEXT];

        if (!gtopo_sysfs_index(indices.names[i], UINT16_MAX, &gids[count].index) ||
            !gtopo_sysfs_text(&d->sysfs, text, PORT "gids/%s", rdma, number, indices.names[i]) ||
            inet_pton(AF_INET6, text, gids[count].raw) != 1 || !memcmp(gids[count].raw, zero, sizeof zero))
            continue;
        gids[count].type = gid_type(d, rdma, number, indices.names[i], is_ethernet);
        count++;
    }
    if (count)
        status = gtopo_map_set_gids(d->map, port, gids, count, d->error);
    /* An InfiniBand port's GUID is the lower half of its first GID. */
    if (!status && count && !is_ethernet && !gids[0].index) {
        uint64_t guid = 0;

        for (int i = 8; i < 16; i++)
            guid = guid << 8 | gids[0].raw[i];
        status = set_guid(d, port, GTOPO_ATTRIBUTE_GUID, guid);
    }
    gtopo_sysfs_names_clear(&indices);
    free(gids);
    return status;
}

/* ---- state, rate, MTU ---- */

/* "4: ACTIVE" gives "ACTIVE". */
static const char *behind_number(const char *text)
{
    const char *colon = strchr(text, ':');

    return colon ? colon + 1 + strspn(colon + 1, " ") : text;
}

/* "4: ACTIVE" gives "active", "5: ACTIVE_DEFER" gives "active-defer"; NULL for what is no state. */
static const char *state_of(char *text)
{
    static const char *const states[] = {"down", "init", "armed", "active", "active-defer"};

    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(behind_number(text), states[i]))
            return states[i];
    return NULL;
}

static int set_state(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number)
{
    char text[GTOPO_SYSFS_TEXT];
    const char *state;
    int status = 0;

    if (gtopo_sysfs_text(&d->sysfs, text, PORT "phys_state", rdma, number))
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_PHYSICAL_STATE, behind_number(text));
    if (status)
        return status;
    state = gtopo_sysfs_text(&d->sysfs, text, PORT "state", rdma, number) ? state_of(text) : NULL;
    return state ? gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_STATE, state)
                 : gtopo_map_set_unknown(d->map, port, GTOPO_ATTRIBUTE_STATE, d->error);
}

int gtopo_rdma_check(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number)
{
    const char *state = gtopo_map_text(d->map, port, GTOPO_ATTRIBUTE_STATE);
    const char *physical = gtopo_map_text(d->map, port, GTOPO_ATTRIBUTE_PHYSICAL_STATE);

    /* What is wrong with a virtual device is wrong with its netdev, which has been said. */
    if (!state || !strncmp(state, "active", 6) || gtopo_rdma_is_virtual(d, rdma))
        return 0;
    return gtopo_discovery_find(d, "port-down", GTOPO_WARNING, port,
                                "check the cable and the switch's port; on InfiniBand the subnet manager, on Ethernet "
                                "`ip link`",
                                "%s port %u is %s%s%s", rdma, number, state, physical ? ", " : "",
                                physical ? physical : "");
}

/* "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)". A virtual device gives a rate that it has not. */
static int set_rate(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number)
{
    char text[GTOPO_SYSFS_TEXT];
    const char *unit;
    uint64_t rate_Mbps;
    unsigned lanes;
    int status;

    if (!gtopo_sysfs_text(&d->sysfs, text, PORT "rate", rdma, number))
        return 0;
    unit = gtopo_sysfs_decimal(text, &rate_Mbps);
    if (!unit || strncmp(unit, " Gb/sec", 7) || !rate_Mbps || rate_Mbps > 100000000)
        return 0;
    status = gtopo_discovery_number(d, port, GTOPO_ATTRIBUTE_RATE_Bps, rate_Mbps * 125000);
    if (!status && sscanf(unit, " Gb/sec (%3uX", &lanes) == 1 && lanes >= 1 && lanes <= 64)
        status = gtopo_discovery_number(d, port, GTOPO_ATTRIBUTE_LANES, lanes);
    return status;
}

/*
 * What drivers of RoCE devices put around a payload at most, for which an RDMA MTU has to leave room in the netdev's.
 * Most ask the kernel (iboe_get_mtu() in include/rdma/ib_addr.h): GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4. rxe
 * has its own (RXE_MAX_HDR_LENGTH in drivers/infiniband/sw/rxe/rxe_hdr.h). 0 for a driver that is not known here.
 */
static uint64_t headers_B(const struct gtopo_discovery *d, const char *rdma)
{
    static const char *const askers[] = {"mlx5_core", "mlx4_core", "bnxt_en", "hns3"};
    char target[GTOPO_SYSFS_PATH];
    const char *slash;

    if (gtopo_sysfs_exists(&d->sysfs, "sys/class/infiniband/%s/parent", rdma))
        return 80;
    if (!gtopo_sysfs_link(&d->sysfs, target, "sys/class/infiniband/%s/device/driver", rdma) ||
        !(slash = strrchr(target, '/')))
        return 0;
    for (size_t i = 0; i < sizeof askers / sizeof *askers; i++)
        if (!strcmp(slash + 1, askers[i]))
            return 96;
    return 0;
}

/* Of InfiniBand the MTU is known to the verbs library only. */
static int set_mtu(struct gtopo_discovery *d, uint32_t port, const char *rdma, int is_ethernet)
{
    uint64_t headers = is_ethernet ? headers_B(d, rdma) : 0, netdev_B, mtu_B = 4096;

    if (!headers || !gtopo_map_number(d->map, port, GTOPO_ATTRIBUTE_MTU_B, &netdev_B) || netdev_B < 256 + headers)
        return gtopo_map_set_unknown(d->map, port, GTOPO_ATTRIBUTE_RDMA_MTU_B, d->error);
    while (mtu_B + headers > netdev_B)
        mtu_B /= 2;
    return gtopo_discovery_number(d, port, GTOPO_ATTRIBUTE_RDMA_MTU_B, mtu_B);
}

static int set_lid(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number, const char *file,
                   enum gtopo_attribute attribute)
{
    int64_t lid;

    if (!gtopo_sysfs_number(&d->sysfs, 1, 0xfffe, &lid, PORT "%s", rdma, number, file))
        return 0;
    return gtopo_discovery_number(d, port, attribute, (uint64_t)lid);
}

/* ---- all ---- */

int gtopo_rdma_facts(struct gtopo_discovery *d, uint32_t port, const char *rdma, uint32_t number)
{
    char layer[GTOPO_SYSFS_TEXT], text[GTOPO_SYSFS_TEXT];
    int is_ethernet, is_virtual = gtopo_rdma_is_virtual(d, rdma), status;
    uint64_t guid = 0;

    if (!gtopo_sysfs_text(&d->sysfs, layer, PORT "link_layer", rdma, number) ||
        (strcmp(layer, "Ethernet") && strcmp(layer, "InfiniBand")))
        *layer = 0;
    is_ethernet = !strcmp(layer, "Ethernet");
    if ((status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_DEVICE, rdma)) ||
        (status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_LINK_LAYER, layer)) ||
        (status = set_state(d, port, rdma, number)) || (status = set_gids(d, port, rdma, number, is_ethernet)) ||
        (status = set_mtu(d, port, rdma, is_ethernet)) || (!is_virtual && (status = set_rate(d, port, rdma, number))) ||
        (is_virtual && (status = gtopo_discovery_number(d, port, GTOPO_ATTRIBUTE_VIRTUAL, 1))) ||
        (!is_ethernet && ((status = set_lid(d, port, rdma, number, "lid", GTOPO_ATTRIBUTE_LID)) ||
                          (status = set_lid(d, port, rdma, number, "sm_lid", GTOPO_ATTRIBUTE_SM_LID)))))
        return status;
    if (gtopo_map_number(d->map, port, GTOPO_ATTRIBUTE_GUID, &guid) ||
        !gtopo_sysfs_text(&d->sysfs, text, "sys/class/infiniband/%s/node_guid", rdma))
        return 0;
    return set_guid(d, port, GTOPO_ATTRIBUTE_GUID, parse_guid(text));
}

int gtopo_rdma_device_facts(struct gtopo_discovery *d, uint32_t nic, const char *rdma)
{
    char text[GTOPO_SYSFS_TEXT];
    int status = gtopo_discovery_text(d, nic, GTOPO_ATTRIBUTE_DEVICE, rdma);

    if (!status && gtopo_sysfs_text(&d->sysfs, text, "sys/class/infiniband/%s/fw_ver", rdma))
        status = gtopo_discovery_text(d, nic, GTOPO_ATTRIBUTE_FIRMWARE, text);
    if (!status && gtopo_sysfs_text(&d->sysfs, text, "sys/class/infiniband/%s/node_guid", rdma))
        status = set_guid(d, nic, GTOPO_ATTRIBUTE_NODE_GUID, parse_guid(text));
    if (!status && gtopo_sysfs_text(&d->sysfs, text, "sys/class/infiniband/%s/sys_image_guid", rdma))
        status = set_guid(d, nic, GTOPO_ATTRIBUTE_SYSTEM_GUID, parse_guid(text));
    return status;
}

/* ---- hwloc's word ---- */

/* The netdev and the RDMA device among what hwloc found below the NIC, and an info of a port of the latter. */
static const char *port_info(hwloc_obj_t rdma, unsigned number, const char *what, char text[GTOPO_SYSFS_TEXT])
{
    char name[32];

    snprintf(name, sizeof name, "Port%u%s", number, what);
    return gtopo_discovery_info(rdma, name, text);
}

static int add_hwloc_port(struct gtopo_discovery *d, uint32_t nic, hwloc_obj_t netdev, hwloc_obj_t rdma,
                          unsigned number)
{
    char text[GTOPO_SYSFS_TEXT];
    uint32_t port;
    int status = gtopo_discovery_add(d, GTOPO_PORT, nic, number, &port);

    if (!status && netdev) {
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_NETDEV, netdev->name);
        if (!status)
            status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_MAC, gtopo_discovery_info(netdev, "Address", text));
    }
    if (!status && rdma) {
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_DEVICE, rdma->name);
        if (!status && port_info(rdma, number, "State", text))
            status =
                gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_STATE, strtoul(text, NULL, 10) == 4 ? "active" : "down");
        if (!status && port_info(rdma, number, "LID", text) && strtoul(text, NULL, 0) % 0xffff)
            status = gtopo_discovery_number(d, port, GTOPO_ATTRIBUTE_LID, strtoul(text, NULL, 0) & 0xffff);
        if (!status && gtopo_discovery_info(rdma, "NodeGUID", text))
            status = set_guid(d, port, GTOPO_ATTRIBUTE_GUID, parse_guid(text));
    }
    return status ? status : gtopo_discovery_link(d, GTOPO_LINK_PORT, nic, port, 0);
}

int gtopo_ports_of_hwloc(struct gtopo_discovery *d, const struct gtopo_found_nic *nic)
{
    hwloc_obj_t netdev = NULL, rdma = NULL;
    char text[GTOPO_SYSFS_TEXT];
    unsigned number = 1;
    int status = 0;

    for (hwloc_obj_t child = nic->object->io_first_child; child; child = child->next_sibling) {
        if (child->type != HWLOC_OBJ_OS_DEVICE || !child->name)
            continue;
        if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && !netdev)
            netdev = child;
        if (child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && !rdma)
            rdma = child;
    }
    if (!netdev && !rdma)
        return 0;
    status = gtopo_discovery_text(d, nic->id, GTOPO_ATTRIBUTE_DEVICE, rdma ? rdma->name : netdev->name);
    if (!status && gtopo_discovery_info(rdma, "NodeGUID", text))
        status = set_guid(d, nic->id, GTOPO_ATTRIBUTE_NODE_GUID, parse_guid(text));
    if (!status && gtopo_discovery_info(rdma, "SysImageGUID", text))
        status = set_guid(d, nic->id, GTOPO_ATTRIBUTE_SYSTEM_GUID, parse_guid(text));
    do
        if (!status)
            status = add_hwloc_port(d, nic->id, number == 1 ? netdev : NULL, rdma, number);
    while (!status && rdma && ++number < 256 && port_info(rdma, number, "State", text));
    return status;
}
