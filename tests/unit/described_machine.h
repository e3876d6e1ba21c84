/* SPDX-License-Identifier: Apache-2.0 */
/* The /sys of a machine that a file of tests/fakes/machines describes, for hwloc to replay. */
#ifndef GTOPO_TESTS_DESCRIBED_MACHINE_H
#define GTOPO_TESTS_DESCRIBED_MACHINE_H

#include "fake_machine.h"
#include "tests/fakes/machine.h"

static inline struct fake *described_machine(const char *path)
{
    struct machine described = {.near = -1};
    struct fake *m;

    machine_read(&described, path);
    m = fake_machine(described.packages, described.cores);
    for (int i = 0; i < described.memory_node_count; i++)
        fake_node(m, described.memory_nodes[i], "", "");
    for (int i = 0; i < described.part_count; i++) {
        const struct machine_part *part = &described.parts[i];

        if (part->bus)
            fake_bridge(m, part->address, part->bus, part->last);
        else
            fake_device(m, part->address, part->class_id, part->ids);
        fake_numa(m, part->address, part->numa);
    }
    return m;
}

#endif
