/* SPDX-License-Identifier: Apache-2.0 */
/* Which NIC each GPU is to use. */
#include "cli.h"

#define RAILS_MAX 128

static void put_rail(FILE *out, const struct gtopo_map *map, const struct gtopo_rail *rail)
{
    const char *device = gtopo_map_text(map, rail->nic, GTOPO_ATTRIBUTE_DEVICE);
    const char *address = gtopo_map_text(map, rail->nic, GTOPO_ATTRIBUTE_PCI_ADDRESS);
    char gpu[GTOPO_ADDRESS_MAX], nic[GTOPO_ADDRESS_MAX], rate[CLI_TEXT] = "?";

    if (rail->bottleneck_Bps)
        cli_rate((double)rail->bottleneck_Bps, rate);
    fprintf(out, "%-8s  %-8s  %-5s  %-10s  %s\n", cli_upper_name(map, rail->gpu, gpu),
            cli_upper_name(map, rail->nic, nic), gtopo_path_class_name(rail->path_class), rate,
            device    ? device
            : address ? address
                      : "");
}

int cli_show_rails(FILE *out, const struct gtopo_map *map, struct gtopo_error *error)
{
    struct gtopo_rail rails[RAILS_MAX];
    size_t count;

    for (uint32_t host = 0; host < gtopo_map_host_count(map); host++) {
        int status = gtopo_rails(map, host, rails, RAILS_MAX, &count, error);

        if (status)
            return status;
        if (gtopo_map_host_count(map) > 1)
            fprintf(out, "%s%s:\n", host ? "\n" : "", gtopo_map_host_name(map, host));
        if (count)
            fprintf(out, "%-8s  %-8s  %-5s  %-10s  %s\n", "GPU", "NIC", "class", "bottleneck", "device");
        else
            fprintf(out, "%s has no GPU, or no NIC for one, in the map\n", gtopo_map_host_name(map, host));
        for (size_t i = 0; i < count; i++)
            put_rail(out, map, &rails[i]);
    }
    return 0;
}
