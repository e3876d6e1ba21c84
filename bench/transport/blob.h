/* SPDX-License-Identifier: Apache-2.0 */
/* What the addresses of all transports begin with: four letters of their own, and a version of two bytes,
 * little-endian. */
#ifndef GTOPO_BENCH_TRANSPORT_BLOB_H
#define GTOPO_BENCH_TRANSPORT_BLOB_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <gputopo/error.h>

/* What an address of this kind is: "RDMA", "GTOV", 2, and how many bytes it has. */
struct gtopo_blob_form {
    const char *kind, *magic;
    uint16_t version;
    size_t size;
};

static inline int gtopo_blob_refuse(const struct gtopo_blob_form *form, const char *what, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EPROTOCOL, "run the same version on both ends",
                      "the other end's %s address is not one: %s", form->kind, what);
}

/* Copy a peer's bytes to `blob` if they are an address of this form; the fields are still to be checked. */
static inline int gtopo_blob_copy(const struct gtopo_blob_form *form, const void *data, size_t size, void *blob,
                                  struct gtopo_error *error)
{
    uint16_t version;

    if (size < 6 || memcmp(data, form->magic, 4))
        return gtopo_blob_refuse(form, "it begins with something else", error);
    memcpy(&version, (const uint8_t *)data + 4, sizeof version);
    if (le16toh(version) != form->version)
        return gtopo_fail(error, GTOPO_EVERSION, "run the same version on both ends",
                          "the other end's %s address is of version %u, not %u", form->kind, le16toh(version),
                          form->version);
    if (size != form->size)
        return gtopo_blob_refuse(form, "its length is wrong", error);
    memcpy(blob, data, size);
    return 0;
}

#endif
