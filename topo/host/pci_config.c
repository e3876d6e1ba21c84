/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI Express base specification 6.0: 7.5.1 (header), 7.5.3 (PCI Express capability), 7.6.3 (extended capabilities),
 * 7.7.11 (ACS); 10.5.1 (ATS).
 *
 * A reader of our own, not libpci: that takes a machine's /sys by an absolute path, follows the links of a record out
 * of it, and asks for all 4,096 bytes where forty are enough, each of which is a transaction with the device. Only root
 * may read beyond the first 64.
 */
#include "topo/host/pci_config.h"
#include <stdio.h>
#include <unistd.h>

#define VENDOR_ID 0x00
#define STATUS 0x06
#define STATUS_CAPABILITIES 0x10
#define CAPABILITIES 0x34
#define FIRST_CAPABILITY 0x40
#define CAPABILITIES_MAX 48 /* of four bytes each, from 0x40 to 0xff */

#define CAPABILITY_EXPRESS 0x10
#define EXPRESS_DEVICE_CAPABILITIES 0x04
#define EXPRESS_DEVICE_CONTROL 0x08
#define CONTROL_RELAXED_ORDERING 0x0010

#define EXTENDED 0x100
#define EXTENDED_END 0x1000
#define EXTENDED_MAX 480 /* of eight bytes each */
#define EXTENDED_ACS 0x0d
#define EXTENDED_ATS 0x0f
#define ACS_CONTROL 0x06
#define ATS_CONTROL 0x06
#define ATS_ENABLE 0x8000

/* What stands for a register that cannot be read, as on the bus. */
#define NOTHING UINT32_MAX

static uint32_t read_register(int fd, unsigned offset, size_t size)
{
    uint8_t bytes[4] = {0};

    if (pread(fd, bytes, size, (off_t)offset) != (ssize_t)size)
        return NOTHING;
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint32_t read_16(int fd, unsigned offset)
{
    return read_register(fd, offset, 2);
}

static uint32_t read_32(int fd, unsigned offset)
{
    return read_register(fd, offset, 4);
}

/* Where the PCI Express capability is: an offset, 0 for conventional PCI, or GTOPO_CONFIG_UNKNOWN. */
static int find_express(int fd)
{
    uint32_t vendor = read_16(fd, VENDOR_ID), status = read_16(fd, STATUS), next = read_16(fd, CAPABILITIES);

    if (vendor == NOTHING || vendor == 0xffff || status == NOTHING || next == NOTHING)
        return GTOPO_CONFIG_UNKNOWN;
    if (!(status & STATUS_CAPABILITIES))
        return 0;
    for (int i = 0; i < CAPABILITIES_MAX; i++) {
        uint32_t head;

        next &= 0xfc;
        if (next < FIRST_CAPABILITY)
            return next ? GTOPO_CONFIG_UNKNOWN : 0;
        head = read_16(fd, next);
        if (head == NOTHING || head == 0xffff)
            return GTOPO_CONFIG_UNKNOWN;
        if ((head & 0xff) == CAPABILITY_EXPRESS)
            return (int)next;
        next = head >> 8;
    }
    return GTOPO_CONFIG_UNKNOWN; /* the list leads into itself */
}

/* 128 bytes to 4 KiB; the two codes above are reserved. */
static uint32_t size_of_code(uint32_t code)
{
    return code <= 5 ? UINT32_C(128) << code : 0;
}

static void read_express(int fd, unsigned express, struct gtopo_pci_config *config)
{
    uint32_t capabilities = read_32(fd, express + EXPRESS_DEVICE_CAPABILITIES);
    uint32_t control = read_16(fd, express + EXPRESS_DEVICE_CONTROL);

    if (capabilities != NOTHING)
        config->payload_capable_B = size_of_code(capabilities & 7);
    if (control == NOTHING || control == 0xffff)
        return;
    config->payload_B = size_of_code(control >> 5 & 7);
    config->read_request_B = size_of_code(control >> 12 & 7);
    config->relaxed_ordering = !!(control & CONTROL_RELAXED_ORDERING);
}

/* Absent is what is not in a list that could be read to its end. */
static void read_extended(int fd, struct gtopo_pci_config *config)
{
    unsigned next = EXTENDED, acs = 0, ats = 0;
    uint32_t control;

    for (int i = 0; next; i++) {
        uint32_t head = next < EXTENDED || next > EXTENDED_END - 8 || i == EXTENDED_MAX ? NOTHING : read_32(fd, next);

        if (head == NOTHING)
            return;
        if ((head & 0xffff) == EXTENDED_ACS)
            acs = next;
        else if ((head & 0xffff) == EXTENDED_ATS)
            ats = next;
        next = head >> 20 & 0xffc;
    }
    control = acs ? read_16(fd, acs + ACS_CONTROL) : 0;
    if (control != NOTHING)
        config->acs = acs ? (int)control : GTOPO_ACS_ABSENT;
    control = ats ? read_16(fd, ats + ATS_CONTROL) : 0;
    if (control != NOTHING)
        config->ats = !!(control & ATS_ENABLE);
}

void gtopo_pci_config_read(const struct gtopo_sysfs *sysfs, const char *address, struct gtopo_pci_config *config)
{
    int fd = gtopo_sysfs_file(sysfs, "sys/bus/pci/devices/%s/config", address), express;

    *config = (struct gtopo_pci_config){.is_read = 1,
                                        .is_express = GTOPO_CONFIG_UNKNOWN,
                                        .relaxed_ordering = GTOPO_CONFIG_UNKNOWN,
                                        .ats = GTOPO_CONFIG_UNKNOWN,
                                        .acs = GTOPO_CONFIG_UNKNOWN};
    if (fd < 0)
        return;
    express = find_express(fd);
    config->is_express = express > 0 ? 1 : express;
    if (express > 0) {
        read_express(fd, (unsigned)express, config);
        read_extended(fd, config);
    }
    close(fd);
}

void gtopo_acs_text(int acs, char text[GTOPO_ACS_TEXT])
{
    static const char *const names[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                        "UpstreamFwd", "EgressCtrl", "DirectTrans"};
    size_t length = 0;

    *text = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (acs >= 0 && acs >> i & 1)
            length += (size_t)snprintf(text + length, GTOPO_ACS_TEXT - length, "%s%s", length ? " " : "", names[i]);
    if (!length)
        snprintf(text, GTOPO_ACS_TEXT, "%s", acs == GTOPO_ACS_ABSENT ? "absent" : "off");
}
