/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines with NVIDIA GPUs, described in files of tests/fakes/machines. The stand-in for libnvidia-ml.so.1 answers as
 * one of them would, and tests/unit/described_machine.h makes the /sys of the same machine.
 *
 * A line says one thing; "#" begins a comment; numbers of buses are hexadecimal.
 *
 *   include FILE                 first what that file says; lines below then add to it
 *   processors PACKAGES CORES    CORES in each package, which is a NUMA node
 *   memory-node N                a NUMA node without processors
 *   driver VERSION
 *   model NAME VENDOR:DEVICE MAJOR.MINOR MIB    of all GPUs; "_" stands for a space
 *   nvlinks VERSION MBPS         of all: NVML's number of the version, and the speed of the wire
 *   c2c COUNT MBPS               of each GPU
 *   fabric UUID CLIQUE           UUID in 32 hexadecimal digits; the GPUs are registered with it
 *   fabric-state N RESULT        … or are not, or not well
 *   p2p STATUS                   nvmlGpuP2PStatus_t of pairs without an NVLink (0)
 *   unsupported                  NVML only tells which GPUs there are
 *   numa N                       the NUMA node of the devices below, -1 for none in /sys
 *   near N                       the node that NVML says of the GPUs below, when /sys has none
 *   bridge ADDRESS BUS LAST      a root port, or a port of a switch, to the buses from BUS to LAST
 *   device ADDRESS CLASS VENDOR:DEVICE
 *   gpu ADDRESS                  they are numbered from 0, as NVML does
 *   memory GPU N                 its memory is the NUMA node N
 *   mig GPU SLICES
 *   nvlink GPU|all FIRST-LAST gpu N | switch ADDRESS | switch hidden | cpu | down
 */
#ifndef GTOPO_TESTS_FAKES_MACHINE_H
#define GTOPO_TESTS_FAKES_MACHINE_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_GPUS 16
#define MACHINE_LINKS 18
#define MACHINE_PARTS 256
#define MACHINE_ADDRESS 16

enum machine_end { NO_LINK, TO_GPU, TO_CPU, TO_SWITCH, IS_DOWN };

struct machine_link {
    enum machine_end end;
    char address[MACHINE_ADDRESS]; /* "" for a hidden NVSwitch */
};

struct machine_gpu {
    char address[MACHINE_ADDRESS];
    int near, memory_node, slices; /* -1 for none */
    struct machine_link links[MACHINE_LINKS];
};

struct machine_part { /* of the PCI bus */
    char address[MACHINE_ADDRESS], class_id[8], ids[12];
    int bus, last, numa; /* bus is 0 for what is no bridge */
};

struct machine {
    int packages, cores, memory_nodes[8], memory_node_count;
    char driver[32], model[64], ids[12], cluster[33];
    int major, minor, version, speed_MBps, c2c_count, c2c_MBps, p2p, is_unsupported;
    int fabric_state, fabric_result;
    unsigned clique;
    long long memory_MiB;
    struct machine_gpu gpus[MACHINE_GPUS];
    int gpu_count;
    struct machine_part parts[MACHINE_PARTS];
    int part_count;
    int numa, near; /* of what comes next */
};

static void machine_bad(const char *file, int line, const char *text)
{
    fprintf(stderr, "%s:%d: not understood: %s\n", file, line, text);
    exit(99);
}

static struct machine_part *machine_add_part(struct machine *m, const char *class_id, const char *ids)
{
    struct machine_part *part = &m->parts[m->part_count++];

    if (m->part_count > MACHINE_PARTS)
        machine_bad("machine", m->part_count, "too many devices");
    *part = (struct machine_part){.numa = m->numa};
    snprintf(part->class_id, sizeof part->class_id, "%s", class_id);
    snprintf(part->ids, sizeof part->ids, "%s", ids);
    return part;
}

static int machine_read_link(struct machine *m, const char *line)
{
    char who[8], kind[8], target[MACHINE_ADDRESS] = "";
    int first, last, words = sscanf(line, "nvlink %7s %d-%d %7s %15s", who, &first, &last, kind, target), other;
    struct machine_link link = {.end = NO_LINK};

    if (words < 4 || first < 0 || last >= MACHINE_LINKS)
        return 0;
    if (!strcmp(kind, "gpu") && sscanf(target, "%d", &other) == 1 && other >= 0 && other < m->gpu_count) {
        link.end = TO_GPU;
        snprintf(link.address, sizeof link.address, "%s", m->gpus[other].address);
    } else if (!strcmp(kind, "switch") && words == 5) {
        link.end = TO_SWITCH;
        snprintf(link.address, sizeof link.address, "%s", strcmp(target, "hidden") ? target : "");
    } else
        link.end = !strcmp(kind, "cpu") ? TO_CPU : !strcmp(kind, "down") ? IS_DOWN : NO_LINK;
    for (int gpu = 0; gpu < m->gpu_count; gpu++)
        for (int i = first; i <= last; i++)
            if (!strcmp(who, "all") || atoi(who) == gpu)
                m->gpus[gpu].links[i] = link;
    return link.end != NO_LINK;
}

static int machine_read_part(struct machine *m, const char *line)
{
    char address[MACHINE_ADDRESS], class_id[8] = "", ids[12] = "";
    unsigned bus = 0, last = 0;
    struct machine_part *part;

    if (sscanf(line, "bridge %15s %x %x", address, &bus, &last) == 3)
        part = machine_add_part(m, "060400", "8086:1234");
    else if (sscanf(line, "device %15s %7s %11s", address, class_id, ids) == 3)
        part = machine_add_part(m, class_id, ids);
    else if (sscanf(line, "gpu %15s", address) == 1 && m->gpu_count < MACHINE_GPUS) {
        struct machine_gpu *gpu = &m->gpus[m->gpu_count++];

        *gpu = (struct machine_gpu){.near = m->near, .memory_node = -1, .slices = -1};
        snprintf(gpu->address, sizeof gpu->address, "%s", address);
        part = machine_add_part(m, "030200", m->ids);
    } else
        return 0;
    snprintf(part->address, sizeof part->address, "%s", address);
    part->bus = (int)bus;
    part->last = (int)last;
    return 1;
}

static int machine_read_gpu(struct machine *m, const char *line)
{
    int gpu, number, is_memory = sscanf(line, "memory %d %d", &gpu, &number) == 2;

    if ((!is_memory && sscanf(line, "mig %d %d", &gpu, &number) != 2) || gpu < 0 || gpu >= m->gpu_count)
        return 0;
    *(is_memory ? &m->gpus[gpu].memory_node : &m->gpus[gpu].slices) = number;
    return 1;
}

static int machine_read_line(struct machine *m, const char *line)
{
    if (sscanf(line, "model %63s %11s %d.%d %lld", m->model, m->ids, &m->major, &m->minor, &m->memory_MiB) == 5) {
        for (char *c = m->model; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        return 1;
    }
    if (sscanf(line, "memory-node %d", &m->memory_nodes[m->memory_node_count & 7]) == 1)
        return ++m->memory_node_count <= 8;
    if (sscanf(line, "fabric %32[0-9a-f] %u", m->cluster, &m->clique) == 2)
        return (m->fabric_state = 3);
    if (!strcmp(line, "unsupported"))
        return (m->is_unsupported = 1);
    return sscanf(line, "processors %d %d", &m->packages, &m->cores) == 2 ||
           sscanf(line, "driver %31s", m->driver) == 1 ||
           sscanf(line, "nvlinks %d %d", &m->version, &m->speed_MBps) == 2 ||
           sscanf(line, "c2c %d %d", &m->c2c_count, &m->c2c_MBps) == 2 || sscanf(line, "p2p %d", &m->p2p) == 1 ||
           sscanf(line, "fabric-state %d %d", &m->fabric_state, &m->fabric_result) == 2 ||
           sscanf(line, "numa %d", &m->numa) == 1 || sscanf(line, "near %d", &m->near) == 1 ||
           machine_read_gpu(m, line) || machine_read_part(m, line) || machine_read_link(m, line);
}

/* Ends the process with file and line when the description is bad. The struct begins with zeroes and near = -1. */
static void machine_read(struct machine *m, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256], other[PATH_MAX], name[128];
    int number = 0;

    if (!file)
        machine_bad(path, 0, "it cannot be read");
    while (fgets(line, sizeof line, file)) {
        number++;
        line[strcspn(line, "#\n")] = 0;
        for (size_t end = strlen(line); end && line[end - 1] == ' ';)
            line[--end] = 0;
        if (sscanf(line, "include %127s", name) == 1) {
            const char *slash = strrchr(path, '/');

            snprintf(other, sizeof other, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
            machine_read(m, other);
        } else if (*line && !machine_read_line(m, line))
            machine_bad(path, number, line);
    }
    fclose(file);
}

#endif
