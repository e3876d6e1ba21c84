/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading /sys and /proc of this machine or of a recorded one. Nothing in a record is trusted: symbolic links never
 * lead out of it, files are read up to a bound, and what is not text becomes '?'.
 */
#ifndef GTOPO_TOPO_HOST_SYSFS_H
#define GTOPO_TOPO_HOST_SYSFS_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

#define GTOPO_SYSFS_PATH 512
#define GTOPO_SYSFS_TEXT 256

/* A root directory; fd is -1 when there is none, and everything below it is then absent. */
struct gtopo_sysfs {
    int fd;
    int walks; /* the kernel does not keep links inside; we do */
};

/* Errors: GTOPO_EIO. */
int gtopo_sysfs_open(struct gtopo_sysfs *sysfs, const char *root, struct gtopo_error *error);
void gtopo_sysfs_close(struct gtopo_sysfs *sysfs);

/* A regular file, open for reading: a descriptor, which the caller closes, or -1. */
int gtopo_sysfs_file(const struct gtopo_sysfs *sysfs, const char *format, ...) GTOPO_PRINTF(2, 3);
/* The first line of a file, trimmed, into text. 1 when there is something. */
int gtopo_sysfs_text(const struct gtopo_sysfs *sysfs, char text[GTOPO_SYSFS_TEXT], const char *format, ...)
    GTOPO_PRINTF(3, 4);
/* A number in base 10 or 0x…, from `lowest` to `highest`. 1 when there is one. */
int gtopo_sysfs_number(const struct gtopo_sysfs *sysfs, int64_t lowest, int64_t highest, int64_t *number,
                       const char *format, ...) GTOPO_PRINTF(5, 6);
/*
 * "2.5 GT/s": the number in thousandths, and what stands behind it; NULL when there is no number. The program's locale
 * has no say.
 */
const char *gtopo_sysfs_decimal(const char *text, uint64_t *thousandths);
/* A file's name that is a plain number, without leading zeros. 1 when it is one, up to `highest`. */
int gtopo_sysfs_index(const char *name, uint32_t highest, uint32_t *index);
/* The target of a symbolic link, as it is written. */
int gtopo_sysfs_link(const struct gtopo_sysfs *sysfs, char target[GTOPO_SYSFS_PATH], const char *format, ...)
    GTOPO_PRINTF(3, 4);
/* Is the word in the first 64 KiB of a file, between blanks? */
int gtopo_sysfs_has_word(const struct gtopo_sysfs *sysfs, const char *word, const char *format, ...) GTOPO_PRINTF(3, 4);
int gtopo_sysfs_exists(const struct gtopo_sysfs *sysfs, const char *format, ...) GTOPO_PRINTF(2, 3);

/* The names in a folder, sorted so that eth2 comes before eth10; at most 65,536. The list is the caller's. */
struct gtopo_sysfs_names {
    char **names;
    size_t count;
};
/* 0, also for a folder that is not there, or GTOPO_ENOMEM. */
int gtopo_sysfs_list(const struct gtopo_sysfs *sysfs, struct gtopo_sysfs_names *list, const char *format, ...)
    GTOPO_PRINTF(3, 4);
void gtopo_sysfs_names_clear(struct gtopo_sysfs_names *list);

#endif
