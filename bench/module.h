/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: what brings a library that not everybody has, loaded on first use from the folder "gputopo" beside us. */
#ifndef GTOPO_BENCH_MODULE_H
#define GTOPO_BENCH_MODULE_H

#include <gputopo/error.h>

/*
 * The address of a symbol in the module NAME.so. The module stays loaded until the process ends. Thread-safe. Errors:
 * GTOPO_EMISSING when it is not there or a library that it needs is not, those of gtopo_library_file().
 */
int gtopo_module_load(const char *name, const char *symbol, void **address, struct gtopo_error *error);

#endif
