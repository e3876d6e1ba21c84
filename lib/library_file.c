/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/library_file.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_there(char *path, size_t size, const char *folder, int folder_length, const char *below, const char *file)
{
    int length = snprintf(path, size, "%.*s%s/%s", folder_length, folder, below, file);

    return length > 0 && (size_t)length < size && !access(path, F_OK);
}

int gtopo_library_file(const char *file, char *path, size_t size, struct gtopo_error *error)
{
    const char *chosen = secure_getenv("GTOPO_MODULE_DIR");
    const char *slash;
    Dl_info self;

    if (chosen && is_there(path, size, chosen, (int)strlen(chosen), "", file))
        return 0;
    if (dladdr((void *)(uintptr_t)gtopo_library_file, &self) && self.dli_fname &&
        (slash = strrchr(self.dli_fname, '/')) &&
        is_there(path, size, self.dli_fname, (int)(slash - self.dli_fname), "/gputopo", file))
        return 0;
    if (is_there(path, size, GTOPO_PKGLIBDIR, (int)strlen(GTOPO_PKGLIBDIR), "", file))
        return 0;
    return gtopo_fail(error, GTOPO_EMISSING, "install the package that brings it, or set GTOPO_MODULE_DIR",
                      "%s is neither beside the library nor in %s", file, GTOPO_PKGLIBDIR);
}
