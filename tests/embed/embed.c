/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside of the tree that uses the installed library: builds a map, asks it, and looks at its own
 * host. */
#include <gputopo.h>
#include <stdio.h>

static int fail(const struct gtopo_error *error)
{
    fprintf(stderr, "%s: %s\n", gtopo_status_name(error->code), error->message);
    return 1;
}

static int ask_a_small_map(void)
{
    struct gtopo_map *map = gtopo_map_new();
    struct gtopo_link link = {0};
    struct gtopo_path path;
    struct gtopo_error error;
    uint32_t host, bridge, gpu, nic, id;

    if (!map || gtopo_map_add_host(map, "node1", &host, &error) ||
        gtopo_map_add_object(map, GTOPO_HOST_BRIDGE, gtopo_map_host_machine(map, host), 0, &bridge, &error) ||
        gtopo_map_add_object(map, GTOPO_GPU, bridge, 0, &gpu, &error) ||
        gtopo_map_add_object(map, GTOPO_NIC, bridge, 0, &nic, &error))
        return fail(&error);
    link.kind = GTOPO_LINK_PCIE;
    link.count = 1;
    link.ends[0] = gpu;
    link.ends[1] = bridge;
    if (gtopo_map_add_link(map, &link, &id, &error))
        return fail(&error);
    link.ends[0] = nic;
    if (gtopo_map_add_link(map, &link, &id, &error) || gtopo_map_seal(map, &error) ||
        gtopo_path_find(map, gpu, nic, &path, &error))
        return fail(&error);
    printf("gpu0 to nic0: %s\n", gtopo_path_class_name(path.path_class));
    gtopo_path_clear(&path);
    gtopo_map_free(map);
    return 0;
}

static int look_at_this_host(void)
{
    struct gtopo_map *map = gtopo_map_new();
    struct gtopo_host_options options;
    struct gtopo_error error;

    gtopo_host_options_init(&options);
    options.name = "here";
    if (!map || gtopo_host_discover(map, &options, &error) || gtopo_map_seal(map, &error))
        return fail(&error);
    printf("hosts: %u\n", gtopo_map_host_count(map));
    gtopo_map_free(map);
    return 0;
}

int main(void)
{
    printf("gputopo %s\n", gtopo_version());
    return ask_a_small_map() || look_at_this_host();
}
