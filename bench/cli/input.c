/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STDIN_LIMIT_B ((size_t)4 << 30)

static int load_stdin(struct gtopo_map **map, struct gtopo_error *error)
{
    char *data = NULL;
    size_t used = 0, room = 0, got;
    int status, is_text;

    do {
        if (used == room) {
            char *grown = room < STDIN_LIMIT_B ? realloc(data, room = room ? room * 2 : 65536) : NULL;

            if (!grown) {
                free(data);
                return gtopo_fail(error, GTOPO_EFORMAT, NULL, "standard input is too large for a map");
            }
            data = grown;
        }
        got = fread(data + used, 1, room - used, stdin);
        is_text = !memchr(data + used, 0, got);
        used += got;
    } while (is_text && !feof(stdin) && !ferror(stdin));
    if (!is_text)
        status = gtopo_fail(error, GTOPO_EFORMAT, NULL, "standard input is no text: it holds zero bytes");
    else if (ferror(stdin))
        status = gtopo_fail(error, GTOPO_EIO, NULL, "standard input cannot be read: %s", strerror(errno));
    else
        status = gtopo_map_read(data, used, "standard input", map, error);
    free(data);
    return status;
}

int cli_discover(const struct gtopo_host_options *options, struct gtopo_map **map, struct gtopo_error *error)
{
    struct gtopo_map *filled = gtopo_map_new();
    int status =
        filled ? gtopo_host_discover(filled, options, error) : gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");

    if (!status)
        status = gtopo_map_seal(filled, error);
    if (status) {
        gtopo_map_free(filled);
        return status;
    }
    *map = filled;
    return 0;
}

/* The first element of an XML file that another tool wrote, or "" for what is no XML. What is read from a pipe would be
 * missing when the pipe is read: it is not looked into. */
static void first_element(const char *path, char name[16])
{
    struct stat kind;
    FILE *file = stat(path, &kind) || !S_ISREG(kind.st_mode) ? NULL : fopen(path, "r");
    char head[65536];
    size_t size = file ? fread(head, 1, sizeof head - 1, file) : 0;
    const char *tag = head;

    if (file)
        fclose(file);
    head[size] = *name = 0;
    if (head[strspn(head, " \t\r\n")] != '<')
        return;
    while ((tag = strchr(tag, '<')) && (tag[1] == '!' || tag[1] == '?')) {
        const char *end = strstr(tag, strncmp(tag, "<!--", 4) ? ">" : "-->");

        if (!end)
            return;
        tag = end;
    }
    if (tag)
        snprintf(name, 16, "%.*s", (int)strcspn(tag + 1, " \t\r\n/>"), tag + 1);
}

int cli_load(const char *path, struct gtopo_map **map, struct gtopo_error *error)
{
    struct gtopo_host_options host;
    char element[16];

    gtopo_host_options_init(&host);
    if (!path)
        return cli_discover(&host, map, error);
    if (!strcmp(path, "-"))
        return load_stdin(map, error);
    first_element(path, element);
    if (!strcmp(element, "system"))
        host.nccl_xml = path;
    else if (!strcmp(element, "topology"))
        host.hwloc_xml = path;
    else
        return gtopo_map_load(path, map, error);
    return cli_discover(&host, map, error);
}

int cli_parse_number(const char *text, double lowest, double highest, int bytes, double *number)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (end == text || errno || !isfinite(value))
        return 0;
    if (bytes && *end) {
        static const char letters[] = "kMG";
        const char *letter = strchr(letters, *end == 'K' ? 'k' : *end);

        if (!letter || end[1])
            return 0;
        for (long i = 0; i <= letter - letters; i++)
            value *= 1024;
        end++;
    }
    if (*end || !(value >= lowest && value <= highest) || (bytes && value != floor(value)))
        return 0;
    *number = value;
    return 1;
}
