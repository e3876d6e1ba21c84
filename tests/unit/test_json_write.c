/* SPDX-License-Identifier: Apache-2.0 */
/* Writing maps, and reading back what was written. */
#include "full_map.h"
#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

static struct gtopo_error error;
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/gtopo-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* The names that are in the folder now, removed, and how many there were. */
static unsigned empty_folder(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    unsigned count = 0;
    char path[512];

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
        rmdir(path);
        count++;
    }
    closedir(dir);
    return count;
}

static void remove_tree(const char *name)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf '%s/%s'", folder, name);
    assert_int_equal(system(command), 0);
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static unsigned turn;
    char *path = paths[turn++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void everything_survives_a_round_trip(void **state)
{
    struct gtopo_map *map = full_map();

    (void)state;
    build_round_trip(map);
    gtopo_map_free(map);
}

static void an_empty_map_survives_a_round_trip(void **state)
{
    struct gtopo_map *map = build_map();

    (void)state;
    build_seal(map);
    build_round_trip(map);
    gtopo_map_free(map);
}

static void what_is_read_is_what_was_written(void **state)
{
    struct gtopo_map *map = full_map(), *read;
    char *text = build_write(map);
    struct gtopo_measurement m;
    size_t count;
    uint64_t number = 0;

    (void)state;
    read = build_read(text);
    assert_int_equal(gtopo_map_host_count(read), 3);
    assert_int_equal(gtopo_map_shape_count(read), 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(gtopo_map_shape_fingerprint(read, i), gtopo_map_shape_fingerprint(map, i));
    assert_int_equal(gtopo_map_number(read, at(read, "odd/nic0:1"), GTOPO_ATTRIBUTE_GUID, &number), 1);
    assert_int_equal(number, UINT64_C(0xfedcba9876543210) + GTOPO_ATTRIBUTE_GUID);
    assert_int_equal(gtopo_map_number(read, at(read, "a/gpu0"), GTOPO_ATTRIBUTE_NUMA, &number), 0);
    assert_string_equal(gtopo_map_text(read, at(read, "leaf"), GTOPO_ATTRIBUTE_OS), "text \"é\" → \\");
    gtopo_map_gids(read, at(read, "odd/nic0:1"), &count);
    assert_int_equal(count, 2);
    assert_ok(gtopo_map_measurement(read, 1, &m, &error));
    assert_int_equal(m.provenance, GTOPO_SIMULATED);
    assert_int_equal(m.metric, GTOPO_LATENCY_ns);
    assert_true(m.median == 1234.568);
    assert_int_equal(m.to.memory, at(read, "b/gpu0"));
    assert_true(m.p99 == 1500.125 && m.p999 == 90000);
    assert_string_equal(m.from_way, "host");
    assert_string_equal(m.to_way, "staged");
    assert_int_equal(m.two_way, 0);
    assert_int_equal(m.concurrent, 1);
    assert_ok(gtopo_map_measurement(read, 3, &m, &error));
    assert_int_equal(m.two_way, 1);
    assert_true(m.forward == 0.625e9 && m.reverse == 0.375e9);
    assert_string_equal(m.from_way, "dma-buf");
    assert_int_equal(m.concurrent, 8);
    free(text);
    gtopo_map_free(read);
    gtopo_map_free(map);
}

/* What is as usual is not said: such a map has the bytes that it had before there was anything else to say. */
static void the_usual_measurement_stays_short(void **state)
{
    struct gtopo_map *map = build_map();
    struct gtopo_measurement m;
    char *text;

    (void)state;
    build_host(map, "a", TWO_SOCKETS);
    m = build_measurement(map, "a/numa0@nic0:1", "a/numa0@nic0:1");
    m.from_way = m.to_way = "host";
    m.concurrent = 1;
    assert_ok(gtopo_map_add_measurement(map, &m, &error));
    build_seal(map);
    text = build_write(map);
    assert_contains(text, "\"verified\":true,\"time_unix_s\":1700000000}\n");
    free(text);
    gtopo_map_free(map);
}

static void numbers_of_every_size_survive(void **state)
{
    static const double medians[] = {1e-300, 0.0009999,   0.00100049,        0.4999, 0.9994,   0.99951, 1,
                                     1.5,    123456.7894, 999999999999.9994, 1e12,   1e15 / 3, 8.99e18, 9e18,
                                     9.3e18, 1.7e308};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof medians / sizeof *medians; i++) {
        struct gtopo_map *map = build_map();
        struct gtopo_measurement m;

        build_host(map, "a", TWO_SOCKETS);
        m = build_measurement(map, "numa0", "numa1");
        m.metric = i % 2;
        m.low = m.median = medians[i / 2];
        m.high = i / 2 % 2 ? m.median : m.median * 1.0001;
        assert_ok(gtopo_map_add_measurement(map, &m, &error));
        build_seal(map);
        build_round_trip(map);
        gtopo_map_free(map);
    }
}

static void the_same_map_gives_the_same_bytes(void **state)
{
    struct gtopo_map *a = full_map(), *b = full_map();
    char *first = build_write(a), *second = build_write(b), *again = build_write(a);

    (void)state;
    assert_string_equal(first, second);
    assert_string_equal(first, again);
    free(first);
    free(second);
    free(again);
    gtopo_map_free(a);
    gtopo_map_free(b);
}

/* German numbers: installed, or made here where Debian's package "locales" is. */
static int set_comma_locale(void)
{
    char command[256];

    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return 1;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    if (system(command))
        return 0;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

static void a_locale_with_a_decimal_comma_changes_nothing(void **state)
{
    struct gtopo_map *map = full_map();
    char *before = build_write(map), *after;

    (void)state;
    if (!set_comma_locale()) {
        free(before);
        gtopo_map_free(map);
        skip();
    }
    assert_string_equal(localeconv()->decimal_point, ",");
    after = build_write(map);
    build_round_trip(map);
    setlocale(LC_ALL, "C");
    remove_tree("de_DE.UTF-8");
    assert_string_equal(before, after);
    free(before);
    free(after);
    gtopo_map_free(map);
}

static void an_unsealed_map_is_not_written(void **state)
{
    struct gtopo_map *map = build_map();
    struct written written = {0};

    (void)state;
    assert_fails(GTOPO_EUSAGE, gtopo_map_write(map, build_take, &written, &error));
    assert_fails(GTOPO_EUSAGE, gtopo_map_save(map, in_folder("map.json"), &error));
    assert_int_equal(empty_folder(), 0);
    gtopo_map_free(map);
}

static int refuse_later(void *context, const void *data, size_t size)
{
    size_t *left = context;

    (void)data;
    if (size > *left)
        return 1;
    *left -= size;
    return 0;
}

static void a_writer_that_refuses_stops_the_writing(void **state)
{
    struct gtopo_map *map = full_map();

    (void)state;
    for (size_t room = 0; room < 4000; room += 37) {
        size_t left = room;

        assert_fails(GTOPO_EIO, gtopo_map_write(map, refuse_later, &left, &error));
    }
    gtopo_map_free(map);
}

static void a_saved_map_is_loaded(void **state)
{
    struct gtopo_map *map = full_map(), *loaded;
    const char *path = in_folder("map.json");

    (void)state;
    assert_ok(gtopo_map_save(map, path, &error));
    assert_ok(gtopo_map_save(map, path, &error)); /* over the first */
    assert_ok(gtopo_map_load(path, &loaded, &error));
    assert_int_equal(gtopo_map_host_count(loaded), 3);
    assert_int_equal(empty_folder(), 1); /* no temporary is left */
    gtopo_map_free(loaded);
    gtopo_map_free(map);
}

static void a_file_that_is_replaced_keeps_its_permissions(void **state)
{
    struct gtopo_map *map = full_map();
    const char *path = in_folder("map.json");
    struct stat status;

    (void)state;
    assert_ok(gtopo_map_save(map, path, &error));
    assert_int_equal(chmod(path, 0600), 0);
    assert_ok(gtopo_map_save(map, path, &error));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    empty_folder();
    gtopo_map_free(map);
}

static void a_full_disk_leaves_no_file_and_says_so(void **state)
{
    struct gtopo_map *map = full_map();

    (void)state;
    assert_fails(GTOPO_EIO, gtopo_map_save(map, "/dev/full", &error));
    assert_contains(error.message, "/dev/full");
    assert_contains(error.message, strerror(ENOSPC));
    gtopo_map_free(map);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    struct gtopo_map *map = full_map();

    (void)state;
    assert_fails(GTOPO_EIO, gtopo_map_save(map, in_folder("missing/map.json"), &error));
    assert_contains(error.message, "missing/map.json");
    assert_contains(error.message, strerror(ENOENT));
    assert_fails(GTOPO_EIO, gtopo_map_save(map, folder, &error)); /* a folder is no file */
    assert_fails(GTOPO_EIO, gtopo_map_save(map, "", &error));
    assert_int_equal(empty_folder(), 0);
    gtopo_map_free(map);
}

/* Root may write anywhere; /proc refuses it too. */
static void a_folder_that_refuses_leaves_nothing(void **state)
{
    struct gtopo_map *map = full_map();

    (void)state;
    assert_fails(GTOPO_EIO, gtopo_map_save(map, "/proc/map.json", &error));
    assert_contains(error.message, "/proc/map.json");
    gtopo_map_free(map);
}

static void a_failed_save_keeps_the_former_file(void **state)
{
    struct gtopo_map *map = full_map(), *loaded;
    const char *path = in_folder("map.json");

    (void)state;
    assert_ok(gtopo_map_save(map, path, &error));
    build_host(map, "unsealed", "");
    assert_fails(GTOPO_EUSAGE, gtopo_map_save(map, path, &error));
    assert_ok(gtopo_map_load(path, &loaded, &error));
    assert_int_equal(gtopo_map_host_count(loaded), 3);
    assert_int_equal(empty_folder(), 1);
    gtopo_map_free(loaded);
    gtopo_map_free(map);
}

static void a_symbolic_link_stays_one(void **state)
{
    struct gtopo_map *map = full_map(), *loaded;
    struct stat status;

    (void)state;
    assert_ok(gtopo_map_save(map, in_folder("real.json"), &error));
    assert_int_equal(symlink("real.json", in_folder("link.json")), 0);
    assert_int_equal(symlink("later.json", in_folder("dangling.json")), 0);
    assert_ok(gtopo_map_save(map, in_folder("link.json"), &error));
    assert_int_equal(lstat(in_folder("link.json"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_ok(gtopo_map_save(map, in_folder("dangling.json"), &error));
    assert_int_equal(lstat(in_folder("dangling.json"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_ok(gtopo_map_load(in_folder("later.json"), &loaded, &error));
    assert_int_equal(empty_folder(), 4);
    gtopo_map_free(loaded);
    gtopo_map_free(map);
}

static void a_device_is_written_to_and_left(void **state)
{
    struct gtopo_map *map = full_map();
    struct stat status;

    (void)state;
    assert_ok(gtopo_map_save(map, "/dev/null", &error));
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    gtopo_map_free(map);
}

static void what_cannot_be_loaded_says_why(void **state)
{
    struct gtopo_map *map = NULL;

    (void)state;
    assert_fails(GTOPO_EIO, gtopo_map_load(in_folder("none.json"), &map, &error));
    assert_contains(error.message, "none.json");
    assert_contains(error.message, strerror(ENOENT));
    assert_fails(GTOPO_EIO, gtopo_map_load(folder, &map, &error));
    assert_contains(error.message, strerror(EISDIR));
    assert_fails(GTOPO_EFORMAT, gtopo_map_load("/dev/null", &map, &error));
    assert_null(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_survives_a_round_trip),
        cmocka_unit_test(an_empty_map_survives_a_round_trip),
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(the_usual_measurement_stays_short),
        cmocka_unit_test(numbers_of_every_size_survive),
        cmocka_unit_test(the_same_map_gives_the_same_bytes),
        cmocka_unit_test(a_locale_with_a_decimal_comma_changes_nothing),
        cmocka_unit_test(an_unsealed_map_is_not_written),
        cmocka_unit_test(a_writer_that_refuses_stops_the_writing),
        cmocka_unit_test(a_saved_map_is_loaded),
        cmocka_unit_test(a_file_that_is_replaced_keeps_its_permissions),
        cmocka_unit_test(a_full_disk_leaves_no_file_and_says_so),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
        cmocka_unit_test(a_folder_that_refuses_leaves_nothing),
        cmocka_unit_test(a_failed_save_keeps_the_former_file),
        cmocka_unit_test(a_symbolic_link_stays_one),
        cmocka_unit_test(a_device_is_written_to_and_left),
        cmocka_unit_test(what_cannot_be_loaded_says_why),
    };

    return cmocka_run_group_tests_name("json_write", tests, make_folder, remove_folder);
}
