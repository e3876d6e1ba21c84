/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration space of a PCI function says of PCI Express. */
#ifndef GTOPO_TOPO_HOST_PCI_CONFIG_H
#define GTOPO_TOPO_HOST_PCI_CONFIG_H

#include <stdint.h>
#include "topo/host/sysfs.h"

/* Bits of the ACS control register that turn peer-to-peer traffic from its way: redirection of requests and of
 * completions, egress control. Linux's drivers/pci/p2pdma.c takes the same for a redirection. */
#define GTOPO_ACS_REDIRECTS 0x002c

enum { GTOPO_CONFIG_UNKNOWN = -1, GTOPO_ACS_ABSENT = -2 };

struct gtopo_pci_config {
    int is_read;
    int is_express;                        /* 1, 0 for conventional PCI, or GTOPO_CONFIG_UNKNOWN */
    uint32_t payload_B, payload_capable_B; /* the largest of a packet, 0 for unknown */
    uint32_t read_request_B;               /* likewise */
    int relaxed_ordering;                  /* may the function use it: 1, 0, GTOPO_CONFIG_UNKNOWN */
    int ats;                               /* is it switched on: likewise; 0 for a function without */
    int acs; /* the control register, GTOPO_ACS_ABSENT for a function without, or GTOPO_CONFIG_UNKNOWN */
};

/* Of the function of this address. Nothing fails: what cannot be read is unknown. */
void gtopo_pci_config_read(const struct gtopo_sysfs *sysfs, const char *address, struct gtopo_pci_config *config);
/* "ReqRedir CmpltRedir", as lspci calls the controls that are on; "off" for none, "absent" for a function without ACS.
 */
#define GTOPO_ACS_TEXT 80
void gtopo_acs_text(int acs, char text[GTOPO_ACS_TEXT]);

#endif
