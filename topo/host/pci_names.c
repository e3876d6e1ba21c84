/* SPDX-License-Identifier: Apache-2.0 */
/* What PCI devices are called: by hwloc, or in the database that distributions have. */
#include "topo/host/host.h"
#include "lib/file.h"
#include "lib/text.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCI_IDS_LIMIT_B ((size_t)64 << 20)
#define VENDORS 0x10000

/* How many hexadecimal digits a line begins with, up to five. */
static int count_digits(const char *line)
{
    int count = 0;

    while (count < 5 && isxdigit((unsigned char)line[count]))
        count++;
    return count;
}

static int read_pci_ids(struct gtopo_discovery *d)
{
    static const char *const paths[] = {"/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids", "/usr/share/pci.ids"};
    size_t size;

    d->pci_vendors = calloc(VENDORS, sizeof *d->pci_vendors);
    for (size_t i = 0; !d->pci_ids && i < sizeof paths / sizeof *paths; i++)
        if (gtopo_file_read(paths[i], PCI_IDS_LIMIT_B, &d->pci_ids, &size, NULL))
            d->pci_ids = NULL;
    if (!d->pci_ids)
        d->pci_ids = strdup("");
    if (!d->pci_ids || !d->pci_vendors)
        return gtopo_fail(d->error, GTOPO_ENOMEM, NULL, "out of memory");
    for (const char *line = d->pci_ids; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (*line != '\t' && count_digits(line) == 4 && line[4] == ' ' && line[5] == ' ')
            d->pci_vendors[strtoul(line, NULL, 16) % VENDORS] = (uint32_t)(line - d->pci_ids) + 1;
    }
    return 0;
}

static void copy_line(char text[GTOPO_SYSFS_TEXT], const char *line)
{
    snprintf(text, GTOPO_SYSFS_TEXT, "%.*s", (int)strcspn(line, "\r\n"), line);
    gtopo_text_clean(text);
}

/* The line of a device below its vendor's, or NULL. O(devices of the vendor), and O(1) when it was asked for before. */
static const char *find_model(struct gtopo_discovery *d, const char *vendor_line, unsigned vendor_id,
                              unsigned device_id)
{
    uint32_t number = (vendor_id % VENDORS) << 16 | device_id % VENDORS;
    size_t slot = device_id % (sizeof d->pci_models / sizeof *d->pci_models);
    const char *line;
    char key[16];

    if (!d->pci_models[slot].is_known || d->pci_models[slot].key != number) {
        snprintf(key, sizeof key, "\n\t%04x  ", device_id);
        line = strchr(vendor_line, '\n');
        while (line && (line[1] == '\t' || line[1] == '#') && strncmp(line, key, 8))
            line = strchr(line + 1, '\n');
        d->pci_models[slot].is_known = 1;
        d->pci_models[slot].key = number;
        d->pci_models[slot].line = line && !strncmp(line, key, 8) ? (uint32_t)(line - d->pci_ids) + 1 : 0;
    }
    return d->pci_models[slot].line ? d->pci_ids + d->pci_models[slot].line - 1 : NULL;
}

/* "15b3  Mellanox Technologies", then "\t1021  MT2910 Family [ConnectX-7]". What is not in it stays "". */
static void look_up(struct gtopo_discovery *d, unsigned vendor_id, unsigned device_id, char vendor[GTOPO_SYSFS_TEXT],
                    char model[GTOPO_SYSFS_TEXT])
{
    uint32_t place = d->pci_vendors[vendor_id % VENDORS];
    const char *line = d->pci_ids + place - 1;

    *vendor = *model = 0;
    if (!place)
        return;
    copy_line(vendor, line + 6);
    line = find_model(d, line, vendor_id, device_id);
    if (line)
        copy_line(model, line + 8);
}

int gtopo_pci_names(struct gtopo_discovery *d, uint32_t id, hwloc_obj_t device, unsigned vendor_id, unsigned device_id)
{
    char vendor[GTOPO_SYSFS_TEXT], model[GTOPO_SYSFS_TEXT], text[GTOPO_SYSFS_TEXT];
    int status = d->pci_ids ? 0 : read_pci_ids(d);

    if (status)
        return status;
    look_up(d, vendor_id, device_id, vendor, model);
    status = gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_VENDOR,
                                  gtopo_discovery_info(device, "PCIVendor", text) ? text : vendor);
    return status ? status
                  : gtopo_discovery_text(d, id, GTOPO_ATTRIBUTE_MODEL,
                                         gtopo_discovery_info(device, "PCIDevice", text) ? text : model);
}
