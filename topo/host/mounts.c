/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's table of mounts, /proc/mounts. */
#include "topo/host/mounts.h"
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE_MAX_B (16 << 20) /* of a record; the kernel's own table says that it has 0 bytes */
#define MOUNTS_MAX 100000      /* Linux' own limit (fs.mount-max) */
#define LINE_MAX_B 16384       /* what is longer are options, of an overlay with many layers */

/* File systems whose data come from servers over the network. */
static int is_network_type(const char *type)
{
    static const char *const types[] = {
        "lustre",    "gpfs",           "nfs",          "nfs4",           "beegfs",     "fhgfs",     "ceph",
        "cifs",      "smb3",           "wekafs",       "panfs",          "pvfs2",      "afs",       "dvs",
        "glusterfs", "fuse.glusterfs", "fuse.ceph",    "fuse.ceph-fuse", "cvfs",       "yrfs",      "quobyte",
        "fuse.daos", "fuse.dfuse",     "fuse.quobyte", "fuse.juicefs",   "fuse.sshfs", "fuse.s3fs",
    };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i]))
            return 1;
    return 0;
}

static int add_text(struct gtopo_mounts *mounts, char *text, uint32_t *number)
{
    gtopo_text_clean(text);
    return gtopo_texts_add(&mounts->texts, text, number);
}

static int add(struct gtopo_mounts *mounts, struct mntent *entry)
{
    const char *proto = hasmntopt(entry, "proto");
    struct gtopo_mount mount = {
        .is_network = is_network_type(entry->mnt_type),
        .by_rdma = proto && !strncmp(proto, "proto=rdma", 10),
    };

    gtopo_text_clean(entry->mnt_type);
    snprintf(mount.type, sizeof mount.type, "%s", entry->mnt_type);
    if (add_text(mounts, entry->mnt_fsname, &mount.source) || add_text(mounts, entry->mnt_dir, &mount.directory) ||
        gtopo_grow((void **)&mounts->items, &mounts->capacity, mounts->count + 1, sizeof *mounts->items))
        return GTOPO_ENOMEM;
    mounts->items[mounts->count++] = mount;
    return 0;
}

static int read_table(struct gtopo_mounts *mounts, FILE *table)
{
    char line[LINE_MAX_B];
    struct mntent entry, *next;
    int status = gtopo_texts_init(&mounts->texts);

    while (!status && mounts->count < MOUNTS_MAX && (next = getmntent_r(table, &entry, line, sizeof line)))
        if (*next->mnt_fsname && *next->mnt_dir && *next->mnt_type)
            status = add(mounts, next);
    return status;
}

/* From the last on: what has been there already stands above. */
static int find_hidden(struct gtopo_mounts *mounts)
{
    struct gtopo_texts seen;
    uint32_t number;
    int status = gtopo_texts_init(&seen);

    for (size_t i = mounts->count; i-- > 0 && !status;) {
        const char *directory = gtopo_texts_get(&mounts->texts, mounts->items[i].directory);

        mounts->items[i].is_hidden = gtopo_texts_find(&seen, directory) != UINT32_MAX;
        status = gtopo_texts_add(&seen, directory, &number);
    }
    gtopo_texts_clear(&seen);
    return status;
}

int gtopo_mounts_read(const struct gtopo_sysfs *sysfs, struct gtopo_mounts *mounts)
{
    int fd = gtopo_sysfs_file(sysfs, "proc/mounts"), status;
    struct stat file;
    FILE *table;

    memset(mounts, 0, sizeof *mounts);
    if (fd < 0)
        return 0;
    if (fstat(fd, &file) || file.st_size > TABLE_MAX_B) {
        close(fd);
        return 0;
    }
    table = fdopen(fd, "r");
    if (!table) {
        close(fd);
        return GTOPO_ENOMEM;
    }
    status = read_table(mounts, table);
    fclose(table);
    if (!status)
        status = find_hidden(mounts);
    return status ? status : 1;
}

void gtopo_mounts_clear(struct gtopo_mounts *mounts)
{
    gtopo_texts_clear(&mounts->texts);
    free(mounts->items);
    memset(mounts, 0, sizeof *mounts);
}
