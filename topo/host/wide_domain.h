/* SPDX-License-Identifier: Apache-2.0 */
/* PCI devices that hwloc has no room for, in its form. */
#ifndef GTOPO_TOPO_HOST_WIDE_DOMAIN_H
#define GTOPO_TOPO_HOST_WIDE_DOMAIN_H

#include <hwloc.h>

struct gtopo_discovery;

struct gtopo_wide_domains {
    struct gtopo_wide_object *devices; /* by address */
    struct gtopo_wide_object *bridges; /* host bridges, one a domain, by domain */
    hwloc_obj_t disks;                 /* copies of hwloc's, below their devices */
    size_t device_count, bridge_count, disk_count;
    unsigned unplaced; /* devices of which sysfs does not say what they are below */
};

/* Find them. A host bridge is one of hwloc's form; below it are bridges and devices. Errors: GTOPO_ENOMEM. O(n log n)
 */
int gtopo_wide_domains_find(struct gtopo_discovery *d);
hwloc_obj_t gtopo_wide_domains_bridge(const struct gtopo_wide_domains *wide, size_t index);
void gtopo_wide_domains_clear(struct gtopo_wide_domains *wide);

/* The whole domain of a PCI device or bridge, of which hwloc's attributes hold these 16 bits. */
unsigned gtopo_pci_domain(hwloc_obj_t object, unsigned low_bits);

#endif
