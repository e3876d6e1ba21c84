/* SPDX-License-Identifier: Apache-2.0 */
/* Discovering a host: the phases, in their order, and what they have in common. */
#include "topo/host/host.h"
#include "lib/text.h"
#include "topo/host/overlay.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(struct gtopo_discovery *d);
} phases[] = {
    {"processors", gtopo_discover_processors},
    {"PCI", gtopo_discover_pci},
    {"peers", gtopo_report_peers},
    {"siblings", gtopo_report_siblings},
    {"ports", gtopo_discover_ports},
    {"storage", gtopo_discover_other_storage},
    {"file systems", gtopo_discover_file_systems},
    {"NVIDIA driver", gtopo_ask_nvidia_driver},
    {"links of GPUs", gtopo_discover_gpu_links},
    {"machine", gtopo_join_machine},
    {"what is hidden", gtopo_report_hidden},
};

void gtopo_host_options_init(struct gtopo_host_options *options)
{
    memset(options, 0, sizeof *options);
    options->size = sizeof *options;
}

/* ---- what every phase does ---- */

int gtopo_discovery_add(struct gtopo_discovery *d, enum gtopo_object_kind kind, uint32_t parent, uint32_t number,
                        uint32_t *id)
{
    return gtopo_map_add_object(d->map, kind, parent, number, id, d->error);
}

int gtopo_discovery_text(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, const char *text)
{
    return text && *text ? gtopo_map_set_text(d->map, id, attribute, text, d->error) : 0;
}

int gtopo_discovery_number(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, uint64_t number)
{
    return gtopo_map_set_number(d->map, id, attribute, number, d->error);
}

int gtopo_discovery_link(struct gtopo_discovery *d, enum gtopo_link_kind kind, uint32_t a, uint32_t b,
                         uint64_t rate_Bps)
{
    struct gtopo_link link = {.kind = kind, .ends = {a, b}, .count = 1, .nominal_Bps = rate_Bps};
    uint32_t id;

    d->machine_used |= a == d->machine || b == d->machine;
    return gtopo_map_add_link(d->map, &link, &id, d->error);
}

int gtopo_discovery_find(struct gtopo_discovery *d, const char *rule, enum gtopo_severity severity, uint32_t object,
                         const char *next_step, const char *format, ...)
{
    char text[1024];
    struct gtopo_finding finding = {rule, severity, object, text, next_step};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return gtopo_map_add_finding(d->map, &finding, d->error);
}

const char *gtopo_discovery_info(hwloc_obj_t object, const char *name, char text[GTOPO_SYSFS_TEXT])
{
    const char *value = object ? hwloc_obj_get_info_by_name(object, name) : NULL;

    if (!value)
        return NULL;
    snprintf(text, GTOPO_SYSFS_TEXT, "%s", value + strspn(value, " \t"));
    for (size_t length = strlen(text); length && (text[length - 1] == ' ' || text[length - 1] == '\t');)
        text[--length] = 0;
    gtopo_text_clean(text);
    return *text ? text : NULL;
}

/* ---- the host ---- */

/* The machine's name, or the record's. What no name may hold becomes a hyphen. */
static void find_name(const struct gtopo_discovery *d, const struct gtopo_host_options *options,
                      char name[GTOPO_SYSFS_TEXT])
{
    int is_record = options->fsroot || options->hwloc_xml;

    if (options->nccl_xml)
        *name = 0; /* such files name no machine */
    else if (is_record ? !gtopo_discovery_info(hwloc_get_root_obj(d->topology), "HostName", name)
                       : gethostname(name, GTOPO_SYSFS_TEXT))
        *name = 0;
    name[GTOPO_SYSFS_TEXT - 1] = 0;
    if (!*name)
        snprintf(name, GTOPO_SYSFS_TEXT, "host");
    gtopo_text_clean(name);
    for (char *c = name; *c; c++)
        if (strchr("/:@", *c))
            *c = '-';
}

static int open_sysfs(struct gtopo_discovery *d, const struct gtopo_host_options *options)
{
    d->sysfs.fd = -1;
    if (options->nccl_xml || (options->hwloc_xml && !options->fsroot))
        return 0;
    return gtopo_sysfs_open(&d->sysfs, options->fsroot ? options->fsroot : "/", d->error);
}

static int discover(struct gtopo_discovery *d, const struct gtopo_host_options *options)
{
    char name[GTOPO_SYSFS_TEXT];
    int status;

    if (!options->name)
        find_name(d, options, name);
    status = gtopo_map_add_host(d->map, options->name ? options->name : name, &d->host, d->error);
    if (status)
        return status;
    d->machine = gtopo_map_host_machine(d->map, d->host);
    d->asks_driver = options->driver == GTOPO_DRIVER_ALWAYS ||
                     (options->driver == GTOPO_DRIVER_AUTO && !options->fsroot && !options->hwloc_xml);
    if (options->nccl_xml)
        status = gtopo_discover_nccl(d, options->nccl_xml);
    for (size_t i = 0; !options->nccl_xml && !status && i < sizeof phases / sizeof *phases; i++)
        status = phases[i].run(d);
    if (!status)
        status = gtopo_judge_nics(d);
    return status ? status : gtopo_join_nvswitches(d);
}

int gtopo_host_discover(struct gtopo_map *map, const struct gtopo_host_options *options, struct gtopo_error *error)
{
    struct gtopo_discovery d = {.map = map, .error = error};
    int status;

    if (options->size != sizeof *options)
        return gtopo_fail(error, GTOPO_EUSAGE, "call gtopo_host_options_init()", "the options are not initialised");
    if (options->driver > GTOPO_DRIVER_NEVER)
        return gtopo_fail(error, GTOPO_EUSAGE, NULL, "there is no way %u to ask the driver", options->driver);
    if (options->nccl_xml && (options->fsroot || options->hwloc_xml || options->overlay))
        return gtopo_fail(error, GTOPO_EUSAGE, "take the one or the other",
                          "NCCL's file is a machine by itself: it cannot be completed from a record");
    if (options->overlay)
        return gtopo_overlay_discover(map, options, error);
    status = open_sysfs(&d, options);
    if (!status && !options->nccl_xml)
        status = gtopo_load_topology(options, &d.topology, error);
    if (!status)
        status = discover(&d, options);
    if (d.topology)
        hwloc_topology_destroy(d.topology);
    gtopo_sysfs_close(&d.sysfs);
    gtopo_pci_tree_clear(&d.pci);
    gtopo_sysfs_names_clear(&d.block_names);
    free(d.left_out_disks);
    free(d.pci_ids);
    free(d.pci_vendors);
    free(d.numas);
    free(d.nics);
    free(d.ports);
    free(d.port_slots);
    return status;
}
