/* SPDX-License-Identifier: Apache-2.0 */
/* The same from C++: the headers compile, the symbols link, and errors arrive. */
#include <gputopo.h>
#include <cstdio>
#include <cstring>
#include <memory>

struct free_map {
    void operator()(gtopo_map *map) const
    {
        gtopo_map_free(map);
    }
};

int main()
{
    std::unique_ptr<gtopo_map, free_map> map(gtopo_map_new());
    gtopo_campaign_options campaign;
    gtopo_error error;
    gtopo_map *read = nullptr;
    uint32_t host;

    gtopo_campaign_options_init(&campaign);
    if (!map || campaign.size != sizeof campaign || gtopo_map_add_host(map.get(), "node1", &host, &error) ||
        gtopo_map_seal(map.get(), &error))
        return 1;
    if (gtopo_map_read("{", 1, "broken.json", &read, &error) != GTOPO_EFORMAT ||
        !std::strstr(error.message, "broken.json:1"))
        return 1;
    std::printf("gputopo %s, %s\n", gtopo_version(), gtopo_map_host_name(map.get(), host));
    return 0;
}
