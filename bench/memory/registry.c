/* SPDX-License-Identifier: Apache-2.0 */
/* All memories. To add one: a file beside this one, and a line in the table. */
#include "bench/memory.h"
#include <string.h>

static const struct gtopo_memory *const memories[] = {
    &gtopo_memory_host,
};

int gtopo_memory_find(const char *name, struct gtopo_region *region, struct gtopo_error *error)
{
    size_t i;

    memset(region, 0, sizeof *region);
    for (i = 0; i < sizeof memories / sizeof *memories; i++)
        if (!strcmp(memories[i]->name, name)) {
            region->memory = memories[i];
            return 0;
        }
    return gtopo_fail(error, GTOPO_EUSAGE, "\"host\" is always there", "there is no memory \"%.40s\"", name);
}
