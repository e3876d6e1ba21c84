/* SPDX-License-Identifier: Apache-2.0 */
/* The best path between two objects, hop by hop, with its bottleneck. */
#include "cli.h"

static void put_hop(FILE *out, const struct gtopo_map *map, uint32_t id, int is_bottleneck)
{
    struct gtopo_link link;
    char text[CLI_TEXT];
    uint32_t index;

    gtopo_map_link(map, id, &link, NULL);
    fprintf(out, "    %s", gtopo_link_kind_name(link.kind));
    if (link.width)
        fprintf(out, " x%u", link.width);
    if (link.speed_MTps)
        fprintf(out, " at %g GT/s", link.speed_MTps / 1000.0);
    fprintf(out, ", %s", link.nominal_Bps ? cli_rate((double)link.nominal_Bps, text) : "rate not known");
    if (gtopo_link_carries_Bps(map, &link) != link.nominal_Bps)
        fprintf(out, ", in a bundle of %s", cli_rate((double)gtopo_link_carries_Bps(map, &link), text));
    if (!gtopo_map_link_measurement(map, id, GTOPO_BANDWIDTH_Bps, &index, NULL))
        fprintf(out, ", %s", cli_measured_value(map, index, text));
    fprintf(out, "%s\n", is_bottleneck ? "  <- bottleneck" : "");
}

int cli_show_path(FILE *out, const struct gtopo_map *map, const char *from, const char *to, struct gtopo_error *error)
{
    struct gtopo_address ends[2];
    struct gtopo_path path;
    char address[GTOPO_ADDRESS_MAX], text[CLI_TEXT];
    int status = gtopo_address_parse(map, from, &ends[0], error);

    if (!status)
        status = gtopo_address_parse(map, to, &ends[1], error);
    if (!status)
        status = gtopo_path_find(map, ends[0].object, ends[1].object, &path, error);
    if (status)
        return status;
    if (path.path_class == GTOPO_PATH_NONE)
        fprintf(out, "%s and %s are not connected in the map\n", from, to);
    for (uint32_t i = 0; path.path_class != GTOPO_PATH_NONE && i <= path.hops; i++) {
        fprintf(out, "%s\n", gtopo_address_format(map, path.objects[i], address));
        if (i < path.hops)
            put_hop(out, map, path.links[i], path.links[i] == path.bottleneck_link);
    }
    if (path.path_class != GTOPO_PATH_NONE)
        fprintf(out, "class %s, %u hops, bottleneck %s\n", gtopo_path_class_name(path.path_class), path.hops,
                path.bottleneck_Bps ? cli_rate((double)path.bottleneck_Bps, text) : "not known");
    gtopo_path_clear(&path);
    return 0;
}
