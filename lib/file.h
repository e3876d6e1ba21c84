/* SPDX-License-Identifier: Apache-2.0 */
/* Files, whole or not at all. */
#ifndef GTOPO_LIB_FILE_H
#define GTOPO_LIB_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <gputopo/error.h>

/* Writes the content; 0 or a status with error filled. */
typedef int gtopo_file_producer(const void *context, FILE *file, struct gtopo_error *error);

/*
 * Write a file through a temporary beside it and a rename, so that a failure leaves what was there before. A path that
 * is a pipe or a device is written to as it is; so is one that names a descriptor, whatever that is. Errors: GTOPO_EIO,
 * and the producer's.
 */
int gtopo_file_write(const char *path, gtopo_file_producer *produce, const void *context, struct gtopo_error *error);

/* The descriptor of this process that a path names (/dev/stdout, /dev/fd/3, /proc/self/fd/3), or -1. */
int gtopo_file_descriptor(const char *path);

/* Read a whole text file of at most `limit_B` bytes, and a zero behind them; *data is the caller's to free. Errors:
 * GTOPO_EIO, GTOPO_EFORMAT for zero bytes in it, GTOPO_ENOMEM. */
int gtopo_file_read(const char *path, size_t limit_B, char **data, size_t *size, struct gtopo_error *error);

#endif
