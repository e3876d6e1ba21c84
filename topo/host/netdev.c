/* SPDX-License-Identifier: Apache-2.0 */
/* What sysfs says of a netdev: address, MTU, speed, link, and the bond that it is in. */
#include "topo/host/nic.h"
#include <ctype.h>
#include <net/if.h>
#include <string.h>

static int netdev_number(struct gtopo_discovery *d, uint32_t port, const char *netdev, const char *file,
                         enum gtopo_attribute attribute)
{
    int64_t number;

    if (!gtopo_sysfs_number(&d->sysfs, 1, INT32_MAX, &number, "sys/class/net/%s/%s", netdev, file))
        return 0;
    return gtopo_discovery_number(d, port, attribute, (uint64_t)number);
}

/* Megabits per second; -1 and 4294967295 stand for "not known". */
static int set_speed(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    int64_t speed_Mbps;

    if (!gtopo_sysfs_number(&d->sysfs, 1, 10000000, &speed_Mbps, "sys/class/net/%s/speed", netdev))
        return 0;
    return gtopo_discovery_number(d, port, GTOPO_ATTRIBUTE_RATE_Bps, (uint64_t)speed_Mbps * 125000);
}

/* 1 or 0, or -1 when nobody says: a record need not hold the flags. */
static int is_switched_on(struct gtopo_discovery *d, const char *netdev)
{
    int64_t flags;

    return gtopo_sysfs_number(&d->sysfs, 0, INT32_MAX, &flags, "sys/class/net/%s/flags", netdev) ? !!(flags & IFF_UP)
                                                                                                 : -1;
}

/* 1 or 0, or -1 when nobody says. operstate is "unknown" for drivers that do not; then the carrier decides. */
static int has_link(struct gtopo_discovery *d, const char *netdev)
{
    char state[GTOPO_SYSFS_TEXT];
    int64_t carrier;

    if (gtopo_sysfs_text(&d->sysfs, state, "sys/class/net/%s/operstate", netdev) && strcmp(state, "unknown"))
        return !strcmp(state, "up");
    if (!is_switched_on(d, netdev))
        return 0;
    return gtopo_sysfs_number(&d->sysfs, 0, 1, &carrier, "sys/class/net/%s/carrier", netdev) ? (int)carrier : -1;
}

/* A plain Ethernet port that is not used is no fault; one that is switched on and has no cable is worth a look. */
int gtopo_netdev_check(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    if (has_link(d, netdev) != 0)
        return 0;
    if (is_switched_on(d, netdev) > 0)
        return gtopo_discovery_find(d, "port-down", GTOPO_WARNING, port, "check the cable and the switch's port",
                                    "%s is switched on and has no link", netdev);
    return gtopo_discovery_find(d, "port-off", GTOPO_NOTE, port, "`ip link set DEVICE up` if it should be used",
                                "%s is switched off", netdev);
}

/* ---- bonds ---- */

/* The bond that a netdev is a member of; what else may be a master (a bridge, a team) has no folder "bonding". */
static int bond_of(const struct gtopo_discovery *d, const char *netdev, char bond[GTOPO_SYSFS_TEXT])
{
    char target[GTOPO_SYSFS_PATH];
    const char *slash =
        gtopo_sysfs_link(&d->sysfs, target, "sys/class/net/%s/master", netdev) ? strrchr(target, '/') : NULL;
    size_t length = slash ? strlen(slash + 1) : 0;

    if (!length || length >= GTOPO_SYSFS_TEXT)
        return 0;
    memcpy(bond, slash + 1, length + 1);
    return gtopo_sysfs_exists(&d->sysfs, "sys/class/net/%s/bonding", bond);
}

/* "802.3ad 4": the kernel's name of a mode, and its number. */
static int set_bond(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    char bond[GTOPO_SYSFS_TEXT], mode[GTOPO_SYSFS_TEXT];
    int status;

    if (!bond_of(d, netdev, bond))
        return 0;
    status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_BOND, bond);
    if (status)
        return status;
    if (!gtopo_sysfs_text(&d->sysfs, mode, "sys/class/net/%s/bonding/mode", bond))
        return gtopo_map_set_unknown(d->map, port, GTOPO_ATTRIBUTE_BOND_MODE, d->error);
    mode[strcspn(mode, " ")] = 0;
    return gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_BOND_MODE, mode);
}

int gtopo_netdev_check_bond(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    char state[GTOPO_SYSFS_TEXT];
    const char *bond = gtopo_map_text(d->map, port, GTOPO_ATTRIBUTE_BOND);
    int status;

    if (!bond)
        return 0;
    /* The bond's own view: it may watch its members by other means than their carrier. */
    if (gtopo_sysfs_text(&d->sysfs, state, "sys/class/net/%s/bonding_slave/mii_status", netdev)
            ? !strcmp(state, "up")
            : has_link(d, netdev) != 0)
        return 0;
    status = gtopo_discovery_find(d, "bond-member-down", GTOPO_WARNING, port,
                                  "check the cable and the switch's port; /proc/net/bonding has what the bond knows",
                                  "%s is down, so the bond %s runs without it", netdev, bond);
    return status ? status : 1;
}

/* ---- all ---- */

/* "52:54:00:00:00:01", and not all zeros. An InfiniBand netdev has an address of 20 bytes, which holds a GID. */
static int is_mac(const char *text)
{
    for (int i = 0; i < 17; i++)
        if (i % 3 == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i]))
            return 0;
    return !text[17] && strspn(text, "0:") < 17;
}

int gtopo_netdev_facts(struct gtopo_discovery *d, uint32_t port, const char *netdev)
{
    char text[GTOPO_SYSFS_TEXT];
    int64_t type = 0;
    int linked = has_link(d, netdev), status;

    if (!gtopo_sysfs_number(&d->sysfs, 0, INT32_MAX, &type, "sys/class/net/%s/type", netdev))
        type = -1;
    if ((status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_NETDEV, netdev)) ||
        (status = netdev_number(d, port, netdev, "mtu", GTOPO_ATTRIBUTE_MTU_B)) ||
        (status = set_speed(d, port, netdev)))
        return status;
    if (type == GTOPO_ARPHRD_ETHERNET && gtopo_sysfs_text(&d->sysfs, text, "sys/class/net/%s/address", netdev) &&
        is_mac(text))
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_MAC, text);
    if (!status && (type == GTOPO_ARPHRD_ETHERNET || type == GTOPO_ARPHRD_INFINIBAND))
        status = gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_LINK_LAYER,
                                      type == GTOPO_ARPHRD_ETHERNET ? "Ethernet" : "InfiniBand");
    if (!status)
        status = linked < 0 ? gtopo_map_set_unknown(d->map, port, GTOPO_ATTRIBUTE_STATE, d->error)
                            : gtopo_discovery_text(d, port, GTOPO_ATTRIBUTE_STATE, linked ? "active" : "down");
    return status ? status : set_bond(d, port, netdev);
}
