/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages memory of the host came to lie in, by /proc/self/smaps. */
#include <stdio.h>
#include <stdlib.h>
#include "bench/memory.h"

#define TRANSPARENT_B (2 << 20) /* the large pages that the kernel makes of small ones by itself */

int32_t gtopo_memory_page_B(const void *data)
{
    unsigned long long from, to, at = (uintptr_t)data, size_kB = 0, page_kB = 0, large_kB = 0;
    FILE *maps = fopen("/proc/self/smaps", "re");
    char *line = NULL;
    size_t room = 0;
    int within = 0;

    while (maps && getline(&line, &room, maps) > 0) {
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
            within = from <= at && at < to;
        else if (within &&
                 (sscanf(line, "Size: %llu", &size_kB) == 1 || sscanf(line, "KernelPageSize: %llu", &page_kB) == 1))
            continue;
        else if (within)
            sscanf(line, "AnonHugePages: %llu", &large_kB);
    }
    free(line);
    if (maps)
        fclose(maps);
    if (!page_kB)
        return -1;
    return large_kB && large_kB == size_kB ? TRANSPARENT_B : (int32_t)(page_kB << 10);
}
