/* SPDX-License-Identifier: Apache-2.0 */
/* All memories. To add one: a file beside this one, and a line in the table. */
#include "bench/memory.h"
#include <ctype.h>
#include <string.h>

static const struct entry {
    const struct gtopo_memory *memory;
    int has_devices; /* "gpu:…" */
} entries[] = {
    {&gtopo_memory_host, 0},
    {&gtopo_memory_gpu, 1},
};
#define ENTRIES (sizeof entries / sizeof *entries)

/* Of at most four digits, so that a typing error is not taken for one. */
static int is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits && digits <= 4 && !text[digits];
}

/* "0000:1b:00.0", with a domain of 4 to 8 digits. */
static int is_pci_address(const char *text)
{
    const char *hex = "0123456789abcdefABCDEF";
    size_t domain = strspn(text, hex);
    const char *rest = text + domain;

    if (domain < 4 || domain > 8 || rest[0] != ':' || strspn(rest + 1, hex) != 2 || rest[3] != ':')
        return 0;
    return strspn(rest + 4, hex) == 2 && rest[6] == '.' && strspn(rest + 7, "01234567") == 1 && !rest[8];
}

/* What stands behind the colon, in lower case as the kernel writes addresses. */
static int set_device(struct gtopo_region *region, const char *name, const char *device, struct gtopo_error *error)
{
    if (!is_number(device) && !is_pci_address(device))
        return gtopo_fail(error, GTOPO_EUSAGE,
                          "a number as the driver counts (\"gpu:0\"), or a PCI address (\"gpu:0000:1b:00.0\")",
                          "memory \"%.40s\" does not name a device", name);
    for (size_t i = 0; device[i]; i++) /* the rest of which is zero */
        region->which[i] = (char)tolower((unsigned char)device[i]);
    return 0;
}

int gtopo_memory_find(const char *name, struct gtopo_region *region, struct gtopo_error *error)
{
    size_t length = strcspn(name, ":");
    const struct entry *entry = NULL;

    memset(region, 0, sizeof *region);
    region->numa = GTOPO_NUMA_ANY;
    for (size_t i = 0; i < ENTRIES; i++)
        if (strlen(entries[i].memory->name) == length && !strncmp(entries[i].memory->name, name, length))
            entry = &entries[i];
    if (!entry || (!entry->has_devices && name[length]))
        return gtopo_fail(error, GTOPO_EUSAGE, "there are \"host\", \"gpu:0\" and \"gpu:0000:1b:00.0\"",
                          "there is no memory \"%.40s\"", name);
    region->memory = entry->memory;
    if (!entry->has_devices)
        return 0;
    return set_device(region, name, name[length] ? name + length + 1 : "", error);
}
