/* SPDX-License-Identifier: Apache-2.0 */
/* make_machine FILE: make the /sys of a described machine in a new folder, and print its name. */
#include "tests/unit/described_machine.h"

int main(int argc, char **argv)
{
    struct fake *m;

    if (argc != 2) {
        fprintf(stderr, "usage: make_machine FILE\n");
        return 2;
    }
    m = described_machine(argv[1]);
    puts(m->root);
    for (int i = 0; i < m->bus_count; i++)
        free(m->buses[i].path);
    free(m);
    return 0;
}
