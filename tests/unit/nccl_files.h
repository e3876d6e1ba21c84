/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of topology files of NCCL and RCCL, and what NCCL calls the ways in them. */
#ifndef GTOPO_TEST_NCCL_FILES_H
#define GTOPO_TEST_NCCL_FILES_H

#include "discover.h"

static inline int try_file(const char *path, struct gtopo_map *map, struct gtopo_error *error)
{
    struct gtopo_host_options options;

    gtopo_host_options_init(&options);
    options.nccl_xml = path;
    return gtopo_host_discover(map, &options, error);
}

static inline int try_text(const char *text, struct gtopo_map *map, struct gtopo_error *error)
{
    char path[] = "/tmp/gputopo-nccl-XXXXXX";
    int fd = mkstemp(path), status;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    status = try_file(path, map, error);
    unlink(path);
    return status;
}

static inline struct gtopo_map *map_of(const char *text)
{
    struct gtopo_map *map = build_map();
    struct gtopo_error error;

    assert_ok(try_text(text, map, &error));
    build_seal(map);
    return map;
}

/* ---- small files ---- */

#define CPU(numa, inside) "<cpu numaid=\"" numa "\" arch=\"x86_64\" affinity=\"0000ffff,ffff0000\">" inside "</cpu>"
#define PCI(bus, class, inside)                                                                                        \
    "<pci busid=\"" bus "\" class=\"" class "\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">" inside "</pci>"
#define GPU(bus, inside) PCI(bus, "0x030200", "<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">" inside "</gpu>")
#define NIC(bus, net) PCI(bus, "0x020700", "<nic>" net "</nic>")
#define NET(name, port) "<net name=\"" name "\" dev=\"0\" speed=\"400000\" port=\"" port "\" guid=\"0x12ab\"/>"
#define SWITCH(bus, inside) PCI(bus, "0x060400", inside)
#define SYSTEM(inside) "<system version=\"1\">\n" inside "\n</system>\n"
#define NVLINK(bus, count) "<nvlink target=\"" bus "\" count=\"" count "\" tclass=\"0x030200\"/>"
#define NVSWITCH(bus, count) "<nvlink target=\"" bus "\" count=\"" count "\" tclass=\"0x068000\"/>"

/* ---- classes ---- */

#define DEVICES_MAX 256

struct table {
    uint32_t devices[DEVICES_MAX];
    uint8_t classes[DEVICES_MAX * DEVICES_MAX];
    size_t count, gpus, nics;
};

static struct table table;

/* NCCL's classes between GPUs, then NICs, of the one host of a map. */
static inline void make_table(const struct gtopo_map *map)
{
    static const uint32_t kinds[] = {GTOPO_GPU, GTOPO_NIC};
    uint32_t first, count;
    struct gtopo_error error;

    memset(&table, 0, sizeof table);
    assert_int_equal(gtopo_map_host_objects(map, 0, &first, &count, NULL), 0);
    for (int k = 0; k < 2; k++)
        for (uint32_t id = first; id < first + count; id++) {
            struct gtopo_object object;

            assert_int_equal(gtopo_map_object(map, id, &object, NULL), 0);
            if (object.kind != kinds[k])
                continue;
            assert_true(table.count < DEVICES_MAX);
            table.devices[table.count++] = id;
            table.gpus += k == 0;
            table.nics += k == 1;
        }
    assert_ok(gtopo_nccl_classes(map, table.devices, table.count, table.classes, &error));
}

static inline const char *gpu_gpu(size_t a, size_t b)
{
    return gtopo_nccl_class_name(table.classes[a * table.count + b]);
}

static inline const char *gpu_nic(size_t gpu, size_t nic)
{
    return gtopo_nccl_class_name(table.classes[gpu * table.count + table.gpus + nic]);
}

#endif
