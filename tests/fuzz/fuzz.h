/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets have in common. */
#ifndef GTOPO_TESTS_FUZZ_H
#define GTOPO_TESTS_FUZZ_H

#include <gputopo/error.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(int status, const struct gtopo_error *error)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", gtopo_status_name(status), error->message);
        abort();
    }
}

#endif
