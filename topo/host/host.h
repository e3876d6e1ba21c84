/* SPDX-License-Identifier: Apache-2.0 */
/* What the phases of a host's discovery share. */
#ifndef GTOPO_TOPO_HOST_HOST_H
#define GTOPO_TOPO_HOST_HOST_H

#include <hwloc.h>
#include <gputopo/host.h>
#include "topo/host/pci.h"
#include "topo/host/sysfs.h"

/* Findings that a tree laid over the machine may settle. */
#define GTOPO_RULE_LOCALITY_HIDDEN "locality-hidden"
#define GTOPO_RULE_GPU_LINKS_NOT_IN_FILE "gpu-links-not-in-file"
#define GTOPO_RULE_PCI_CLASS_NOT_IN_FILE "pci-class-not-in-file"

/* A NUMA node of the host. */
struct gtopo_numa_place {
    uint32_t id; /* object */
    unsigned os_index;
    int has_cpus; /* of its own; memory that only hangs on a package (CXL, of a GPU) is no place for a device */
};

/* A NIC that is in the map. */
struct gtopo_found_nic {
    uint32_t id;                         /* object */
    uint32_t last_port;                  /* the highest number of its ports, 0 for none */
    char address[GTOPO_PCI_ADDRESS_MAX]; /* "" when it is on no PCI bus */
    hwloc_obj_t object;                  /* NULL when hwloc does not know it */
};

/* A disk, or the path to one. */
struct gtopo_disk {
    const char *name;
    hwloc_obj_t hwloc; /* NULL when hwloc left out the function that it is on */
    const struct gtopo_disk *next;
};

/* A port that is in the map. */
struct gtopo_found_port {
    uint32_t id;
    size_t nic;                    /* in the list of NICs */
    char netdev[GTOPO_SYSFS_TEXT]; /* "" for none */
};

struct gtopo_overlay;

struct gtopo_discovery {
    struct gtopo_map *map;
    hwloc_topology_t topology;
    struct gtopo_sysfs sysfs;
    struct gtopo_pci_tree pci;
    struct gtopo_sysfs_names block_names; /* block devices, where there are functions that hwloc left out */
    struct gtopo_disk *left_out_disks;    /* which of them are on these */
    uint32_t host, machine;
    struct gtopo_numa_place *numas;
    size_t numa_count, numa_capacity;
    struct gtopo_found_nic *nics;
    size_t nic_count, nic_capacity;
    struct gtopo_found_port *ports;
    size_t port_count, port_capacity;
    uint32_t *port_slots; /* of the first port of every netdev, hashed by name; port + 1, 0 is free */
    size_t port_slot_count;
    char *pci_ids;         /* the database of names, once it was looked for; "" when there is none */
    uint32_t *pci_vendors; /* where each vendor's line is in it, plus 1, by number */
    struct {
        uint32_t key;  /* vendor and device */
        uint32_t line; /* where the device's line is in it, plus 1; 0 when it has none */
        int is_known;
    } pci_models[64]; /* looked for before, by the remainder of the device's number: a host has many of few models */
    int asks_driver;  /* the NVIDIA driver of this machine is that of the host */
    int driver_has_nvlinks;                /* it has told of NVLinks */
    int machine_used;                      /* something hangs on the machine itself */
    int is_virtual;                        /* the machine: what it shows of its buses need not be so */
    int locality_hidden;                   /* a host bridge of which nobody says where it is */
    const struct gtopo_pci *degraded_link; /* the device or the port above it whose degraded link was reported last */
    const struct gtopo_overlay *overlay;   /* the machine that a file is laid over, or NULL */
    struct gtopo_error *error;
};

/* ---- load.c ---- */

/* hwloc's tree of the machine that the options name. Errors: those of gtopo_host_discover(). */
int gtopo_load_topology(const struct gtopo_host_options *options, hwloc_topology_t *topology,
                        struct gtopo_error *error);

/* ---- host.c: what every phase does ---- */

int gtopo_discovery_add(struct gtopo_discovery *d, enum gtopo_object_kind kind, uint32_t parent, uint32_t number,
                        uint32_t *id);
/* Set a text, if there is one. */
int gtopo_discovery_text(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, const char *text);
int gtopo_discovery_number(struct gtopo_discovery *d, uint32_t id, enum gtopo_attribute attribute, uint64_t number);
/* A link of which nothing is known but its kind; rate_Bps may be 0. */
int gtopo_discovery_link(struct gtopo_discovery *d, enum gtopo_link_kind kind, uint32_t a, uint32_t b,
                         uint64_t rate_Bps);
GTOPO_PRINTF(6, 7)
int gtopo_discovery_find(struct gtopo_discovery *d, const char *rule, enum gtopo_severity severity, uint32_t object,
                         const char *next_step, const char *format, ...);
/* An info of hwloc's object, trimmed, or NULL. */
const char *gtopo_discovery_info(hwloc_obj_t object, const char *name, char text[GTOPO_SYSFS_TEXT]);

/* ---- nccl.c ---- */

/* All of a host from a topology file of NCCL's, in place of the phases. */
int gtopo_discover_nccl(struct gtopo_discovery *d, const char *path);
/* The same from its text; `name` stands for it in messages. */
int gtopo_nccl_read(struct gtopo_discovery *d, const char *name, const char *data, size_t size);

/* ---- the phases, in their order ---- */

/* machine.c: packages and NUMA nodes. */
int gtopo_discover_processors(struct gtopo_discovery *d);
/* Processors by a mask in hexadecimal words, as the kernel writes it. *is_mask is 0 for what is none. */
int gtopo_discovery_cpu_mask(struct gtopo_discovery *d, uint32_t id, const char *mask, int *is_mask);
/* The NUMA node with processors that has this number, or GTOPO_NONE. */
uint32_t gtopo_numa_object(const struct gtopo_discovery *d, int64_t os_index);
/* The number of the one NUMA node that hwloc puts a device on, or -1; of NULL too. */
int64_t gtopo_numa_of_place(const struct gtopo_discovery *d, hwloc_obj_t device);
/* What holds the device in hwloc's tree, but for the whole machine, which says nothing; or NULL. Takes NULL. */
hwloc_obj_t gtopo_place_of(const struct gtopo_discovery *d, hwloc_obj_t device);
/* tree.c: host bridges, PCIe switches, and the devices on them. */
int gtopo_discover_pci(struct gtopo_discovery *d);
/* pci_peers.c: findings for what turns traffic between devices from its way: ACS, an IOMMU. */
int gtopo_report_peers(struct gtopo_discovery *d);
/* pci_siblings.c: findings for a device that is not as the others of its model. */
int gtopo_report_siblings(struct gtopo_discovery *d);
/* nic.c: the ports of the NICs, and NICs that are on no PCI bus. */
int gtopo_discover_ports(struct gtopo_discovery *d);
/* nic_view.c: cards, roles, and findings for NICs; for maps from files of NCCL's too. */
int gtopo_judge_nics(struct gtopo_discovery *d);
/* storage.c: disks that are on no PCI bus. */
int gtopo_discover_other_storage(struct gtopo_discovery *d);
/* file_systems.c: what is mounted, from which disks and over the network; a finding for a scratch on slow disks. */
int gtopo_discover_file_systems(struct gtopo_discovery *d);
/* nvml.c: what the NVIDIA driver knows: GPUs, their NVLinks, C2C. */
int gtopo_ask_nvidia_driver(struct gtopo_discovery *d);
/* distances.c: links between GPUs that hwloc tells of. */
int gtopo_discover_gpu_links(struct gtopo_discovery *d);
/* nvswitch.c: where no GPU joins two groups of NVSwitches that GPUs are linked to, a link between them. */
int gtopo_join_nvswitches(struct gtopo_discovery *d);
/* machine.c: packages to the machine, where something hangs on it, so that there is a path. */
int gtopo_join_machine(struct gtopo_discovery *d);
/* tree.c: findings for what cannot be in the map. */
int gtopo_report_hidden(struct gtopo_discovery *d);

/* ---- pci.c ---- */

/* Megatransfers per second of "8.0 GT/s PCIe" or "16 GT/s"; 0 for what is none, and for NULL. */
uint32_t gtopo_pci_speed(const char *text);
/* Bytes per second of a link in one direction after line coding; 0 when width or speed is. */
uint64_t gtopo_pci_rate(uint32_t width, uint32_t speed_MTps);
/* The link between `parent` and `child`, from the facts of the device and, if not NULL, of the port above it. */
int gtopo_pci_link(struct gtopo_discovery *d, uint32_t parent, uint32_t child, struct gtopo_pci *device,
                   const struct gtopo_pci *port);
/* Model, vendor, ids, address, driver, NUMA node, and those of the next function. */
int gtopo_pci_facts(struct gtopo_discovery *d, uint32_t id, struct gtopo_pci *device);

/* ---- pci_express.c ---- */

/* Sizes of packets, ordering, ATS, ACS of the port above, IOMMU, BAR1. */
int gtopo_pci_express_facts(struct gtopo_discovery *d, uint32_t id, struct gtopo_pci *device);
/* The configuration space of a function, which is read when it is asked for first. */
const struct gtopo_pci_config *gtopo_pci_config_of(const struct gtopo_discovery *d, struct gtopo_pci *pci);

/* ---- pci_names.c ---- */

/* Vendor and model by hwloc's names where it has them (XML), else those of the database; `device` may be NULL. */
int gtopo_pci_names(struct gtopo_discovery *d, uint32_t id, hwloc_obj_t device, unsigned vendor_id, unsigned device_id);

/* ---- storage.c ---- */

/* Put the disks on functions that hwloc left out onto these, before anyone asks for them. */
int gtopo_find_left_out_disks(struct gtopo_discovery *d);
/* Is there anything for the next function to add? A controller without a disk is no storage, but for NVMe. */
int gtopo_pci_has_storage(const struct gtopo_discovery *d, const struct gtopo_pci *device);
/* The disks of a PCI device. */
int gtopo_discover_pci_storage(struct gtopo_discovery *d, uint32_t parent, struct gtopo_pci *device,
                               const struct gtopo_pci *port);

#endif
