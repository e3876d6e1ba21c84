/* SPDX-License-Identifier: Apache-2.0 */
/* Where the library's own modules and helper programs lie. */
#ifndef GTOPO_LIB_LIBRARY_FILE_H
#define GTOPO_LIB_LIBRARY_FILE_H

#include <stddef.h>
#include <gputopo/error.h>

/*
 * The path of a module or helper program of ours: in $GTOPO_MODULE_DIR (ignored when set-user-ID), else in the folder
 * "gputopo" beside the library that is running, else in the folder that was configured. Errors: GTOPO_EMISSING.
 */
int gtopo_library_file(const char *file, char *path, size_t size, struct gtopo_error *error);

#endif
