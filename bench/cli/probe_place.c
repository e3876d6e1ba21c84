/* SPDX-License-Identifier: Apache-2.0 */
/* gtopo-bench probe: which hosts the two addresses are on, how they are reached, and what the addresses name there. */
#include "probe.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SSH "ssh {host} gtopo-bench agent"

/* ---- names ---- */

static size_t first_label(const char *name)
{
    return strcspn(name, ".");
}

/* Is it a name of the host that we run on? One with a domain and one without are the same name. */
static int is_here(const char *name)
{
    char here[PROBE_NAME_MAX];

    if (gethostname(here, sizeof here))
        return 0;
    here[sizeof here - 1] = 0;
    if (!strcmp(here, name))
        return 1;
    return (!here[first_label(here)] || !name[first_label(name)]) && first_label(here) == first_label(name) &&
           !strncmp(here, name, first_label(here));
}

/* The host that an address begins with; 0 when it begins with none, or with what is too long to be one. */
static int host_of(const char *address, char host[PROBE_NAME_MAX])
{
    size_t length = strcspn(address, "/");

    if (!address[length] || length >= PROBE_NAME_MAX)
        return 0;
    memcpy(host, address, length);
    host[length] = 0;
    return 1;
}

/* The name that this host has, or is to have, in the map: as the map has it, as the user wrote it, or its own. */
static void name_here(const struct gtopo_map *map, const struct probe_settings *settings, char name[PROBE_NAME_MAX])
{
    for (uint32_t i = 0; i < gtopo_map_host_count(map); i++)
        if (is_here(gtopo_map_host_name(map, i))) {
            snprintf(name, PROBE_NAME_MAX, "%s", gtopo_map_host_name(map, i));
            return;
        }
    for (int end = 0; end < 2; end++)
        if (host_of(settings->addresses[end], name) && is_here(name))
            return;
    if (gethostname(name, PROBE_NAME_MAX))
        snprintf(name, PROBE_NAME_MAX, "host");
    name[PROBE_NAME_MAX - 1] = 0;
    for (char *c = name; *c; c++) /* what no name of the map may hold */
        if (strchr("/:@", *c))
            *c = '-';
}

/* The host of an address. Without one it is this host, or the only one of the map that was loaded. */
static void name_host(const struct gtopo_map *map, const char *address, const char *here, char name[PROBE_NAME_MAX])
{
    if (!host_of(address, name))
        snprintf(name, PROBE_NAME_MAX, "%s", gtopo_map_host_count(map) == 1 ? gtopo_map_host_name(map, 0) : here);
    else if (is_here(name))
        snprintf(name, PROBE_NAME_MAX, "%s", here);
}

/* ---- launching ---- */

/* Append in single quotes, as the shell takes it. */
static void quote(FILE *out, const char *text)
{
    putc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            putc(*text, out);
    putc('\'', out);
}

/* What is on this host needs no ssh: its agent is started as it is, and only the others as was asked for. */
static int set_launch(struct probe_settings *settings, struct probe_place *place, const char *here,
                      struct gtopo_error *error)
{
    const char *launch = settings->launch ? settings->launch : SSH;
    size_t size = 0;
    FILE *out = open_memstream(&place->launch, &size);

    if (!out)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (here) {
        fputs("case {host} in ", out);
        quote(out, here);
        fputs(") exec ", out);
        quote(out, settings->campaign.agent_program);
        fprintf(out, " agent;; *) %s\n;; esac", launch);
    } else
        fputs(launch, out);
    if (fclose(out))
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    settings->campaign.launch = place->launch;
    return 0;
}

/* ---- hosts ---- */

/* The finding that says why a host is missing becomes the error. */
static int fail_missing(const struct gtopo_map *map, const char *name, struct gtopo_error *error)
{
    struct gtopo_finding finding, last = {.text = NULL};

    for (uint32_t i = 0; !gtopo_map_finding(map, i, &finding, NULL); i++)
        if (!strcmp(finding.rule, "host-missing"))
            last = finding;
    if (last.text)
        return gtopo_fail(error, GTOPO_EPEER, last.next_step, "%s", last.text);
    return gtopo_fail(error, GTOPO_EPEER, NULL, "host %s could not be discovered", name);
}

/* Each by itself, so that the first that is missing ends it. */
static int add_host(struct probe_settings *settings, struct probe_place *place, const char *name, int here,
                    struct gtopo_error *error)
{
    struct gtopo_host_options host;
    int status;

    if (gtopo_map_find_host(place->map, name) != GTOPO_NONE)
        return 0;
    if (here) {
        gtopo_host_options_init(&host);
        host.name = name;
        return gtopo_host_discover(place->map, &host, error);
    }
    status = gtopo_campaign_gather(place->map, &name, 1, &settings->campaign, error);
    if ((!status || status == GTOPO_EPEER) && gtopo_map_find_host(place->map, name) == GTOPO_NONE)
        return fail_missing(place->map, name, error);
    return status;
}

static int find_hosts(struct probe_settings *settings, struct probe_place *place, const char *here,
                      char hosts[2][PROBE_NAME_MAX], struct gtopo_error *error)
{
    int is_local[2], status = 0;

    for (int end = 0; end < 2; end++) {
        name_host(place->map, settings->addresses[end], here, hosts[end]);
        is_local[end] = !strcmp(hosts[end], here);
    }
    /* A map of several hosts is measured through agents that are launched, even when both ends are on this one. */
    if (!is_local[0] || !is_local[1] || gtopo_map_host_count(place->map) > 1 ||
        (gtopo_map_host_count(place->map) == 1 && gtopo_map_find_host(place->map, here) == GTOPO_NONE))
        status = set_launch(settings, place, is_local[0] || is_local[1] ? here : NULL, error);
    else
        settings->campaign.launch = NULL;
    for (int end = 0; !status && end < 2; end++)
        status = add_host(settings, place, hosts[end], is_local[end], error);
    return status ? status : gtopo_map_seal(place->map, error);
}

/* ---- ends ---- */

static int find_end(const struct probe_settings *settings, struct probe_place *place, int end, const char *host,
                    struct gtopo_error *error)
{
    const char *slash = strchr(settings->addresses[end], '/');
    char address[PROBE_NAME_MAX + GTOPO_ADDRESS_MAX];
    struct gtopo_object memory, via;
    int status;

    snprintf(address, sizeof address, "%s/%.639s", host, slash ? slash + 1 : settings->addresses[end]);
    status = gtopo_end_parse(place->map, address, &place->ends[end], error);
    if (status)
        return status;
    gtopo_end_format(place->map, place->ends[end], place->names[end]);
    place->is_gpu[end] =
        !gtopo_map_object(place->map, place->ends[end].memory, &memory, NULL) && memory.kind == GTOPO_GPU;
    place->is_network |= !gtopo_map_object(place->map, place->ends[end].via, &via, NULL) && via.kind == GTOPO_PORT;
    return 0;
}

int probe_place_find(struct probe_settings *settings, struct probe_place *place, struct gtopo_error *error)
{
    char here[PROBE_NAME_MAX], hosts[2][PROBE_NAME_MAX];
    int status;

    if (settings->launch && !strchr(settings->addresses[0], '/') && !strchr(settings->addresses[1], '/') &&
        !settings->map)
        return gtopo_fail(error, GTOPO_EUSAGE, "name the host in the address: node3/nic0:1",
                          "--launch is for other hosts, and no address names one");
    status = probe_map_load(settings->map, place, error);
    if (status)
        return status;
    name_here(place->map, settings, here);
    status = find_hosts(settings, place, here, hosts, error);
    for (int end = 0; !status && end < 2; end++)
        status = find_end(settings, place, end, hosts[end], error);
    return status;
}

void probe_place_clear(struct probe_place *place)
{
    gtopo_map_free(place->map);
    free(place->launch);
}
