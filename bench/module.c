/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/module.h"
#include "bench/signals.h"
#include "lib/library_file.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

int gtopo_module_load(const char *name, const char *symbol, void **address, struct gtopo_error *error)
{
    char file[64], path[PATH_MAX];
    struct gtopo_signals signals;
    void *module;
    int status;

    snprintf(file, sizeof file, "%s.so", name);
    status = gtopo_library_file(file, path, sizeof path, error);
    if (status)
        return status;
    /* Never closed: the result lives as long as the process. Opening it again only counts. */
    gtopo_signals_save(&signals);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    gtopo_signals_restore(&signals);
    if (!module)
        return gtopo_fail(error, GTOPO_EMISSING, "install that library, or build gputopo with this module",
                          "module %s cannot be loaded: %s", name, dlerror());
    *address = dlsym(module, symbol);
    if (!*address)
        return gtopo_fail(error, GTOPO_EMISSING, "install gputopo again: library and modules belong together",
                          "module %s is not of this library: %s", path, dlerror());
    return 0;
}
