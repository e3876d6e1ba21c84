/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/host/sysfs.h"
#include "lib/text.h"
#include "topo/host/below.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_MAX 65536
#define WORDS_MAX_B 65536

int gtopo_sysfs_open(struct gtopo_sysfs *sysfs, const char *root, struct gtopo_error *error)
{
    int fd;

    sysfs->walks = 0;
    sysfs->fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    fd = sysfs->fd < 0 ? -1 : gtopo_open_below(sysfs->fd, ".", O_PATH, &sysfs->walks);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    gtopo_fail(error, GTOPO_EIO,
               errno == EMFILE || errno == ENFILE
                   ? "raise the limit of open files (ulimit -n)"
                   : "name a folder that holds a machine's sys and proc, as hwloc-gather-topology leaves them",
               "%s cannot be read: %s", root, strerror(errno));
    gtopo_sysfs_close(sysfs);
    return GTOPO_EIO;
}

void gtopo_sysfs_close(struct gtopo_sysfs *sysfs)
{
    if (sysfs->fd >= 0)
        close(sysfs->fd);
    sysfs->fd = -1;
}

/* Open below the root, which symbolic links cannot leave. */
static int open_below(const struct gtopo_sysfs *sysfs, int flags, const char *format, va_list arguments)
{
    char path[GTOPO_SYSFS_PATH];
    int length = vsnprintf(path, sizeof path, format, arguments), walks = sysfs->walks;

    if (sysfs->fd < 0 || length < 0 || (size_t)length >= sizeof path)
        return -1;
    return gtopo_open_below(sysfs->fd, path, flags, &walks);
}

/* Cut at the first line's end, trim, and replace what is not clean text. */
static int tidy(char *text)
{
    size_t skip = strspn(text, " \t"), length = strcspn(text, "\r\n");

    while (length > skip && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    if (length <= skip)
        return 0;
    memmove(text, text + skip, length - skip);
    text[length - skip] = 0;
    gtopo_text_clean(text);
    return 1;
}

static int open_file(const struct gtopo_sysfs *sysfs, const char *format, va_list arguments)
{
    int fd = open_below(sysfs, O_RDONLY | O_NONBLOCK, format, arguments); /* a pipe in a record must not hold us */
    struct stat file;

    if (fd < 0 || (!fstat(fd, &file) && S_ISREG(file.st_mode)))
        return fd;
    close(fd);
    return -1;
}

int gtopo_sysfs_file(const struct gtopo_sysfs *sysfs, const char *format, ...)
{
    va_list arguments;
    int fd;

    va_start(arguments, format);
    fd = open_file(sysfs, format, arguments);
    va_end(arguments);
    return fd;
}

/* The beginning of a file, and a zero behind it; 0 when there is nothing. */
static int read_begin(const struct gtopo_sysfs *sysfs, char *text, size_t size, const char *format, va_list arguments)
{
    int fd = open_file(sysfs, format, arguments);
    ssize_t got;

    if (fd < 0)
        return 0;
    got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = 0;
    return 1;
}

static int read_text(const struct gtopo_sysfs *sysfs, char text[GTOPO_SYSFS_TEXT], const char *format,
                     va_list arguments)
{
    return read_begin(sysfs, text, GTOPO_SYSFS_TEXT, format, arguments) && tidy(text);
}

int gtopo_sysfs_has_word(const struct gtopo_sysfs *sysfs, const char *word, const char *format, ...)
{
    static const char blanks[] = " \t\r\n";
    char text[WORDS_MAX_B];
    va_list arguments;
    int found;

    va_start(arguments, format);
    found = read_begin(sysfs, text, sizeof text, format, arguments);
    va_end(arguments);
    for (const char *c = found ? text : ""; (c = strstr(c, word)); c++)
        if ((c == text || strchr(blanks, c[-1])) && (!c[strlen(word)] || strchr(blanks, c[strlen(word)])))
            return 1;
    return 0;
}

int gtopo_sysfs_text(const struct gtopo_sysfs *sysfs, char text[GTOPO_SYSFS_TEXT], const char *format, ...)
{
    va_list arguments;
    int found;

    va_start(arguments, format);
    found = read_text(sysfs, text, format, arguments);
    va_end(arguments);
    return found;
}

int gtopo_sysfs_number(const struct gtopo_sysfs *sysfs, int64_t lowest, int64_t highest, int64_t *number,
                       const char *format, ...)
{
    char text[GTOPO_SYSFS_TEXT], *end;
    va_list arguments;
    long long value;
    int found;

    va_start(arguments, format);
    found = read_text(sysfs, text, format, arguments);
    va_end(arguments);
    if (!found)
        return 0;
    errno = 0;
    value = strtoll(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
    if (errno || end == text || *end || value < lowest || value > highest)
        return 0;
    *number = value;
    return 1;
}

const char *gtopo_sysfs_decimal(const char *text, uint64_t *thousandths)
{
    uint64_t whole = 0, fraction = 0;
    const char *digit = text;

    for (; *digit >= '0' && *digit <= '9' && whole < UINT32_MAX; digit++)
        whole = whole * 10 + (uint64_t)(*digit - '0');
    if (digit == text)
        return NULL;
    if (*digit == '.') {
        digit++;
        for (uint64_t place = 100; *digit >= '0' && *digit <= '9'; digit++, place /= 10)
            fraction += place * (uint64_t)(*digit - '0');
    }
    *thousandths = whole * 1000 + fraction;
    return digit;
}

int gtopo_sysfs_index(const char *name, uint32_t highest, uint32_t *index)
{
    uint64_t value = 0;

    if (!*name || (*name == '0' && name[1]))
        return 0;
    for (; *name >= '0' && *name <= '9' && value <= highest; name++)
        value = value * 10 + (uint64_t)(*name - '0');
    if (*name || value > highest)
        return 0;
    *index = (uint32_t)value;
    return 1;
}

int gtopo_sysfs_link(const struct gtopo_sysfs *sysfs, char target[GTOPO_SYSFS_PATH], const char *format, ...)
{
    va_list arguments;
    ssize_t length;
    int fd;

    va_start(arguments, format);
    fd = open_below(sysfs, O_PATH | O_NOFOLLOW, format, arguments);
    va_end(arguments);
    if (fd < 0)
        return 0;
    length = readlinkat(fd, "", target, GTOPO_SYSFS_PATH - 1);
    close(fd);
    if (length <= 0)
        return 0;
    target[length] = 0;
    return gtopo_text_is_clean(target);
}

int gtopo_sysfs_exists(const struct gtopo_sysfs *sysfs, const char *format, ...)
{
    va_list arguments;
    int fd;

    va_start(arguments, format);
    fd = open_below(sysfs, O_PATH, format, arguments);
    va_end(arguments);
    if (fd < 0)
        return 0;
    close(fd);
    return 1;
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *folder, struct gtopo_sysfs_names *list)
{
    size_t capacity = 0;
    struct dirent *entry;

    while (list->count < NAMES_MAX && (entry = readdir(folder))) {
        char *name;

        if (entry->d_name[0] == '.' || !gtopo_text_is_clean(entry->d_name))
            continue;
        name = strdup(entry->d_name);
        if (!name || gtopo_grow((void **)&list->names, &capacity, list->count + 1, sizeof *list->names)) {
            free(name);
            return GTOPO_ENOMEM;
        }
        list->names[list->count++] = name;
    }
    if (list->count)
        qsort(list->names, list->count, sizeof *list->names, compare_names);
    return 0;
}

int gtopo_sysfs_list(const struct gtopo_sysfs *sysfs, struct gtopo_sysfs_names *list, const char *format, ...)
{
    va_list arguments;
    DIR *folder;
    int fd, status;

    memset(list, 0, sizeof *list);
    va_start(arguments, format);
    fd = open_below(sysfs, O_RDONLY | O_DIRECTORY, format, arguments);
    va_end(arguments);
    if (fd < 0)
        return 0;
    folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return GTOPO_ENOMEM;
    }
    status = read_names(folder, list);
    closedir(folder);
    if (status)
        gtopo_sysfs_names_clear(list);
    return status;
}

void gtopo_sysfs_names_clear(struct gtopo_sysfs_names *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    memset(list, 0, sizeof *list);
}
