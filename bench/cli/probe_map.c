/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gtopo-bench probe: the map that measurements are added to. Several probes may add to one at a time, so it is written
 * under a lock, and what others have written to it since it was loaded stays.
 */
#include "probe.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES 50
#define LOCK_NAP_NS 100000000

int probe_map_load(const char *path, struct probe_place *place, struct gtopo_error *error)
{
    int status = 0;

    if (path && (!stat(path, &place->loaded) || errno != ENOENT))
        status = gtopo_map_load(path, &place->map, error);
    else
        place->map = gtopo_map_new();
    if (!status && !place->map)
        status = gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    if (!status)
        place->first_measurement = gtopo_map_measurement_count(place->map);
    return status;
}

/*
 * The lock is the folder's: the file is replaced whenever it is written, and may not be there yet. *fd is -1 where file
 * systems have no such locks, as NFS has none of folders.
 */
static int lock(const char *path, int *fd, struct gtopo_error *error)
{
    const struct timespec nap = {0, LOCK_NAP_NS};
    char *real = realpath(path, NULL), *slash;
    int failed = -1;

    if (!real)
        real = strdup(path);
    if (!real)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    slash = strrchr(real, '/');
    if (slash)
        slash[1] = 0;
    *fd = open(slash ? real : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(real);
    for (int try = 0; *fd >= 0 && try < LOCK_TRIES && (failed = flock(*fd, LOCK_EX | LOCK_NB)) && errno == EWOULDBLOCK;
         try++)
        nanosleep(&nap, NULL);
    if (*fd >= 0 && failed && errno == EWOULDBLOCK)
        return gtopo_fail(error, GTOPO_EIO, "see who holds it with lslocks, or give --map a file in another folder",
                          "\"%s\" is not written: its folder has been locked for %d s", path,
                          (int)((double)LOCK_TRIES * LOCK_NAP_NS * 1e-9));
    return 0;
}

/* Is the file as it was when it was loaded, or still not there? */
static int is_as_loaded(const char *path, const struct stat *loaded)
{
    struct stat is;

    if (stat(path, &is))
        return errno == ENOENT && !loaded->st_ino;
    return is.st_dev == loaded->st_dev && is.st_ino == loaded->st_ino && is.st_size == loaded->st_size &&
           is.st_mtim.tv_sec == loaded->st_mtim.tv_sec && is.st_mtim.tv_nsec == loaded->st_mtim.tv_nsec;
}

/* An end keeps its name from map to map, but not its number. */
static int move_end(const struct gtopo_map *from, const struct gtopo_map *to, struct gtopo_end *end,
                    struct gtopo_error *error)
{
    char name[GTOPO_ADDRESS_MAX];

    return gtopo_end_parse(to, gtopo_end_format(from, *end, name), end, error);
}

static int add_measurements(const struct probe_place *place, struct gtopo_map *to, struct gtopo_error *error)
{
    struct gtopo_measurement m;
    int status = 0;

    for (uint32_t i = place->first_measurement; !status && !gtopo_map_measurement(place->map, i, &m, NULL); i++) {
        status = move_end(place->map, to, &m.from, error);
        if (!status)
            status = move_end(place->map, to, &m.to, error);
        if (!status)
            status = gtopo_map_add_measurement(to, &m, error);
    }
    return status;
}

static int seal_and_save(struct gtopo_map *map, const char *path, struct gtopo_error *error)
{
    int status = gtopo_map_seal(map, error);

    return status ? status : gtopo_map_save(map, path, error);
}

/* What is in the file by now, with our measurements. */
static int add_to_file(const struct probe_settings *settings, const struct probe_place *place,
                       struct gtopo_error *error)
{
    struct probe_settings again = *settings;
    struct probe_place now = {0};
    int status = probe_place_find(&again, &now, error);

    if (!status)
        status = add_measurements(place, now.map, error);
    if (!status)
        status = seal_and_save(now.map, settings->map, error);
    probe_place_clear(&now);
    return status;
}

int probe_map_save(const struct probe_settings *settings, struct probe_place *place, struct gtopo_error *error)
{
    int fd = -1, status = gtopo_map_seal(place->map, error);

    if (!status)
        status = lock(settings->map, &fd, error);
    if (status)
        return status;
    status = is_as_loaded(settings->map, &place->loaded) ? gtopo_map_save(place->map, settings->map, error)
                                                         : add_to_file(settings, place, error);
    if (fd >= 0)
        close(fd);
    return status;
}
