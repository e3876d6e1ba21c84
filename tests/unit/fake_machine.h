/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines that are not there, in a few readable lines. A machine is a folder in $TMPDIR, or in memory, with what the
 * kernel shows in /sys and /proc, which gtopo_host_discover() reads as a record:
 *
 *     struct fake *m = fake_machine(2, 2);                   two packages, each with two cores and a NUMA node
 *     fake_bridge(m, "0000:00:01.0", 1, 1);                  a root port to bus 1
 *     fake_device(m, "0000:01:00.0", "030200", "10de:2330"); a GPU on that bus
 *     fake_numa(m, "0000:01:00.0", 1);
 *     fake_netdev(m, "0000:02:00.0", "eth0");
 *     map = fake_discover(m);                                of discover.h: sealed
 *     fake_free(m);
 */
#ifndef GTOPO_TESTS_FAKE_MACHINE_H
#define GTOPO_TESTS_FAKE_MACHINE_H

#include "build.h"
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_PATH 1024
#define BUSES_MAX 512

struct fake {
    char root[FAKE_PATH];
    char all_cpus[32];
    struct {
        char bus[16]; /* "0000:3b" */
        char *path;   /* of what is above the bus: "sys/devices/pci0000:00/0000:00:01.0" */
    } buses[BUSES_MAX];
    int bus_count;
};

/* ---- files ---- */

static inline void fake_path(const struct fake *m, char path[FAKE_PATH], const char *file)
{
    assert_true(snprintf(path, FAKE_PATH, "%s/%s", m->root, file) < FAKE_PATH);
}

/* Make the folders above a path. */
static inline void fake_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0755) && errno != EEXIST)
            fail_msg("%s: %s", path, strerror(errno));
        *slash = '/';
    }
}

static inline void fake_write_bytes(const struct fake *m, const char *file, const void *data, size_t size)
{
    char path[FAKE_PATH];
    FILE *stream;

    fake_path(m, path, file);
    stream = fopen(path, "w");
    if (!stream) {
        fake_folders(path);
        stream = fopen(path, "w");
    }
    if (!stream)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* fake_write(m, "1500", "sys/class/net/%s/mtu", "eth0"): the text and a newline. */
static inline void fake_write(const struct fake *m, const char *text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline void fake_write(const struct fake *m, const char *text, const char *format, ...)
{
    char file[FAKE_PATH], *line;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(file, sizeof file, format, arguments);
    va_end(arguments);
    assert_true(asprintf(&line, "%s\n", text) > 0);
    fake_write_bytes(m, file, line, strlen(line));
    free(line);
}

static inline void fake_number(const struct fake *m, long number, const char *folder, const char *file)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", number);
    fake_write(m, text, "%s/%s", folder, file);
}

/* A symbolic link; what it leads to is written from the root: "sys/devices/…". */
static inline void fake_link_to(const struct fake *m, const char *target, const char *file)
{
    char path[FAKE_PATH], relative[2 * FAKE_PATH] = "";

    for (const char *slash = strchr(file, '/'); slash; slash = strchr(slash + 1, '/'))
        strcat(relative, "../");
    strcat(relative, target);
    fake_path(m, path, file);
    fake_folders(path);
    if (symlink(relative, path))
        fail_msg("%s: %s", path, strerror(errno));
}

/* ---- processors ---- */

static inline void fake_cpu(const struct fake *m, int cpu, int package, int core, const char *package_cpus)
{
    char folder[64], own[16];

    snprintf(folder, sizeof folder, "sys/devices/system/cpu/cpu%d/topology", cpu);
    snprintf(own, sizeof own, "%x", 1 << cpu);
    fake_number(m, package, folder, "physical_package_id");
    fake_number(m, core, folder, "core_id");
    fake_write(m, own, "%s/thread_siblings", folder);
    fake_write(m, own, "%s/core_cpus", folder);
    fake_write(m, package_cpus, "%s/core_siblings", folder);
    fake_write(m, package_cpus, "%s/package_cpus", folder);
}

/* A NUMA node; "" for one without processors. */
static inline void fake_node(const struct fake *m, int node, const char *cpumap, const char *cpulist)
{
    char folder[64], meminfo[128];

    snprintf(folder, sizeof folder, "sys/devices/system/node/node%d", node);
    snprintf(meminfo, sizeof meminfo, "Node %d MemTotal:       1048576 kB", node);
    fake_write(m, *cpumap ? cpumap : "0", "%s/cpumap", folder);
    fake_write(m, cpulist, "%s/cpulist", folder);
    fake_write(m, meminfo, "%s/meminfo", folder);
}

/* A folder for a machine; nothing in it but sys and proc. */
static inline struct fake *fake_empty(void)
{
    struct fake *m = calloc(1, sizeof *m);
    const char *folder = getenv("TMPDIR");
    char path[FAKE_PATH];

    assert_non_null(m);
    if (!folder) /* memory takes thousands of files in the time of a disk's hundred */
        folder = access("/dev/shm", W_OK | X_OK) ? "/tmp" : "/dev/shm";
    snprintf(m->root, sizeof m->root, "%s/gputopo-fake-XXXXXX", folder);
    assert_non_null(mkdtemp(m->root));
    fake_path(m, path, "sys/bus/pci/devices/x");
    fake_folders(path);
    fake_path(m, path, "proc/x");
    fake_folders(path);
    return m;
}

/* Packages with so many cores each; every package has its NUMA node, unless `nodes` is 1. */
static inline struct fake *fake_processors(int packages, int cores, int nodes)
{
    struct fake *m = fake_empty();
    char map[16], list[32], *cpuinfo = strdup("");

    snprintf(m->all_cpus, sizeof m->all_cpus, "%x", (1 << (packages * cores)) - 1);
    for (int package = 0; package < packages; package++) {
        int first = package * cores;

        snprintf(map, sizeof map, "%x", ((1 << cores) - 1) << first);
        snprintf(list, sizeof list, "%d-%d", first, first + cores - 1);
        for (int core = 0; core < cores; core++) {
            char *grown;

            fake_cpu(m, first + core, package, core, map);
            assert_true(asprintf(&grown, "%sprocessor\t: %d\n", cpuinfo, first + core) > 0);
            free(cpuinfo);
            cpuinfo = grown;
        }
        if (nodes > 1)
            fake_node(m, package, map, list);
    }
    fake_write(m, cpuinfo, "proc/cpuinfo");
    free(cpuinfo);
    snprintf(list, sizeof list, "0-%d", packages * cores - 1);
    if (nodes == 1)
        fake_node(m, 0, m->all_cpus, list);
    fake_write(m, list, "sys/devices/system/cpu/online");
    fake_write(m, list, "sys/devices/system/cpu/possible");
    snprintf(list, sizeof list, nodes > 1 ? "0-%d" : "0", nodes - 1);
    fake_write(m, list, "sys/devices/system/node/online");
    return m;
}

static inline struct fake *fake_machine(int packages, int cores)
{
    return fake_processors(packages, cores, packages);
}

static inline int fake_remove(const char *path, const struct stat *file, int kind, struct FTW *place)
{
    (void)file, (void)kind, (void)place;
    return remove(path);
}

static inline void fake_free(struct fake *m)
{
    for (int i = 0; i < m->bus_count; i++)
        free(m->buses[i].path);
    assert_int_equal(nftw(m->root, fake_remove, 32, FTW_DEPTH | FTW_PHYS), 0);
    free(m);
}

/* Put a link in the place of a file or a folder; it is written as it is. */
static inline void fake_replace_by_link(const struct fake *m, const char *file, const char *target)
{
    char path[FAKE_PATH];

    fake_path(m, path, file);
    nftw(path, fake_remove, 32, FTW_DEPTH | FTW_PHYS);
    if (symlink(target, path))
        fail_msg("%s: %s", path, strerror(errno));
}

/* ---- the PCI bus ---- */

/* The folder of a PCI device: below that of the bridge to its bus, else of a root bus. */
static inline void fake_pci_folder(const struct fake *m, const char *address, char folder[FAKE_PATH])
{
    for (int i = 0; i < m->bus_count; i++)
        if (!strncmp(m->buses[i].bus, address, strlen(m->buses[i].bus))) {
            snprintf(folder, FAKE_PATH, "%s/%s", m->buses[i].path, address);
            return;
        }
    snprintf(folder, FAKE_PATH, "sys/devices/pci%.*s/%s", (int)strcspn(address, ":") + 3, address, address);
}

static inline void fake_pci(struct fake *m, const char *address, const char *class_id, const char *ids, uint8_t *config)
{
    char folder[FAKE_PATH], file[FAKE_PATH + 16], text[16];
    unsigned vendor, device, class_number;

    assert_int_equal(sscanf(ids, "%x:%x", &vendor, &device), 2);
    assert_int_equal(sscanf(class_id, "%x", &class_number), 1);
    fake_pci_folder(m, address, folder);
    snprintf(text, sizeof text, "0x%04x", vendor);
    fake_write(m, text, "%s/vendor", folder);
    snprintf(text, sizeof text, "0x%04x", device);
    fake_write(m, text, "%s/device", folder);
    snprintf(text, sizeof text, "0x%06x", class_number);
    fake_write(m, text, "%s/class", folder);
    fake_write(m, m->all_cpus, "%s/local_cpus", folder);
    memcpy(config, (uint8_t[]){(uint8_t)vendor, (uint8_t)(vendor >> 8), (uint8_t)device, (uint8_t)(device >> 8)}, 4);
    memcpy(config + 9, (uint8_t[]){(uint8_t)class_number, (uint8_t)(class_number >> 8), (uint8_t)(class_number >> 16)},
           3);
    snprintf(file, sizeof file, "%s/config", folder);
    fake_write_bytes(m, file, config, 64);
    snprintf(file, sizeof file, "sys/bus/pci/devices/%s", address);
    fake_link_to(m, folder, file);
}

static inline void fake_device(struct fake *m, const char *address, const char *class_id, const char *ids)
{
    uint8_t config[64] = {0};

    fake_pci(m, address, class_id, ids, config);
}

/* A bridge to the buses from `secondary` to `subordinate`. */
static inline void fake_bridge(struct fake *m, const char *address, int secondary, int subordinate)
{
    uint8_t config[64] = {[14] = 1,
                          [24] = (uint8_t)strtoul(strchr(address, ':') + 1, NULL, 16),
                          [25] = (uint8_t)secondary,
                          [26] = (uint8_t)subordinate};
    char folder[FAKE_PATH];

    assert_true(m->bus_count < BUSES_MAX);
    fake_pci(m, address, "060400", "8086:1234", config);
    fake_pci_folder(m, address, folder);
    snprintf(m->buses[m->bus_count].bus, sizeof m->buses[0].bus, "%.*s:%02x", (int)strcspn(address, ":"), address,
             (uint8_t)secondary);
    m->buses[m->bus_count++].path = strdup(folder);
}

/* A file of a PCI device. */
static inline void fake_pci_file(const struct fake *m, const char *address, const char *file, const char *text)
{
    char folder[FAKE_PATH];

    fake_pci_folder(m, address, folder);
    fake_write(m, text, "%s/%s", folder, file);
}

/* What the kernel says of a device's NUMA node, -1 for nothing. */
static inline void fake_numa(const struct fake *m, const char *address, int node)
{
    char text[16];

    snprintf(text, sizeof text, "%d", node);
    fake_pci_file(m, address, "numa_node", text);
}

/* fake_trained(m, "0000:01:00.0", "8 16.0", "16 32.0"): lanes and GT/s as negotiated, and what the device can do. */
static inline void fake_trained(const struct fake *m, const char *address, const char *current, const char *max)
{
    const char *const states[2] = {current, max}, *const words[2] = {"current", "max"};

    for (int i = 0; i < 2; i++) {
        char width[16], speed[32], file[32];

        snprintf(width, sizeof width, "%.*s", (int)strcspn(states[i], " "), states[i]);
        snprintf(speed, sizeof speed, "%s GT/s PCIe", strchr(states[i], ' ') + 1);
        snprintf(file, sizeof file, "%s_link_width", words[i]);
        fake_pci_file(m, address, file, width);
        snprintf(file, sizeof file, "%s_link_speed", words[i]);
        fake_pci_file(m, address, file, speed);
    }
}

/* ---- what is on the devices ---- */

/* An entry of a class whose folder is below a device's, with a link back to the device: net, infiniband, block. */
static inline void fake_class(struct fake *m, const char *address, const char *below, const char *class_name,
                              const char *name)
{
    char device[FAKE_PATH], folder[2 * FAKE_PATH], file[3 * FAKE_PATH], entry[256];

    if (address)
        fake_pci_folder(m, address, device);
    else
        snprintf(device, sizeof device, "sys/devices/virtual");
    snprintf(folder, sizeof folder, "%s/%s/%s", device, below, name);
    snprintf(entry, sizeof entry, "sys/class/%s/%s", class_name, name);
    fake_link_to(m, folder, entry);
    snprintf(file, sizeof file, "%s/device", folder);
    if (address)
        fake_link_to(m, device, file);
    else {
        char path[FAKE_PATH];

        fake_path(m, path, file);
        fake_folders(path);
    }
}

/* An Ethernet interface that is up; NULL for one that is on no device. */
static inline void fake_netdev(struct fake *m, const char *address, const char *name)
{
    static const char *const files[][2] = {{"type", "1"},       {"mtu", "1500"},    {"address", "52:54:00:00:00:01"},
                                           {"operstate", "up"}, {"carrier", "1"},   {"flags", "0x1003"},
                                           {"dev_port", "0"},   {"speed", "100000"}};

    fake_class(m, address, "net", "net", name);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        fake_write(m, files[i][1], "sys/class/net/%s/%s", name, files[i][0]);
}

/* A file of an interface, or of an RDMA device. */
static inline void fake_net_file(const struct fake *m, const char *name, const char *file, const char *text)
{
    fake_write(m, text, "sys/class/net/%s/%s", name, file);
}
static inline void fake_rdma_file(const struct fake *m, const char *name, const char *file, const char *text)
{
    fake_write(m, text, "sys/class/infiniband/%s/%s", name, file);
}

/* An RDMA device of InfiniBand with so many active ports; NULL for a virtual one. */
static inline void fake_rdma(struct fake *m, const char *address, const char *name, int ports)
{
    static const char *const files[][2] = {{"state", "4: ACTIVE"},
                                           {"phys_state", "5: LinkUp"},
                                           {"link_layer", "InfiniBand"},
                                           {"rate", "100 Gb/sec (4X EDR)"},
                                           {"lid", "0x0"},
                                           {"sm_lid", "0x0"}};

    fake_class(m, address, "infiniband", "infiniband", name);
    fake_rdma_file(m, name, "node_guid", "0002:c903:0003:1f20");
    fake_rdma_file(m, name, "sys_image_guid", "0002:c903:0003:1f2f");
    for (int port = 1; port <= ports; port++)
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            fake_write(m, files[i][1], "sys/class/infiniband/%s/ports/%d/%s", name, port, files[i][0]);
}

/* A line of a port's GID table; the type is the kernel's word, NULL for a kernel without. */
static inline void fake_gid(const struct fake *m, const char *name, int port, int index, const char *gid,
                            const char *type)
{
    fake_write(m, gid, "sys/class/infiniband/%s/ports/%d/gids/%d", name, port, index);
    if (type)
        fake_write(m, type, "sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", name, port, index);
}

/* A disk below a device: fake_disk(m, "0000:01:00.0", "nvme/nvme0", "nvme0n1"). */
static inline void fake_disk(struct fake *m, const char *address, const char *below, const char *name)
{
    fake_class(m, address, below, "block", name);
    fake_write(m, "2000", "sys/class/block/%s/size", name);
    fake_write(m, "0", "sys/class/block/%s/queue/rotational", name);
}

#endif
