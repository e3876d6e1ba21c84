/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The topology map: one graph from the memory of a host to the switches of a fabric. Every link carries what it
 * should do (nominal) and what it was measured to do.
 *
 * A map is filled (gtopo_map_add_…, gtopo_map_set_…), sealed, and then asked. Filling unseals it again; sealing is
 * idempotent. A map may be read by several threads at once while it is sealed, and must be filled by one.
 *
 * Hosts that look the same inside share one shape. Objects and links are named by 32-bit numbers that are valid for
 * one map in memory only; what survives a renumbering is the address (gtopo_address_format()) and the identity
 * attributes (PCI address, GUID, MAC, serial number, UUID).
 */
#ifndef GPUTOPO_MAP_H
#define GPUTOPO_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gtopo_map;

/** No object, no link, no host. */
#define GTOPO_NONE UINT32_MAX
/** Objects and links at or above this number belong to the fabric, those below it to a host. */
#define GTOPO_FABRIC_BASE UINT32_C(0x80000000)

enum gtopo_object_kind {
    GTOPO_MACHINE, /**< the host itself; the first object of every host */
    GTOPO_PACKAGE,
    GTOPO_NUMA,
    GTOPO_HOST_BRIDGE, /**< a PCIe root complex, as the operating system sees it */
    GTOPO_PCI_SWITCH,  /**< one physical switch: its upstream and all its downstream ports */
    GTOPO_GPU,
    GTOPO_NIC,
    GTOPO_PORT, /**< a port of a NIC; its parent is the NIC */
    GTOPO_STORAGE,
    GTOPO_NVSWITCH,
    GTOPO_SWITCH, /**< a switch of the fabric; belongs to no host */
    GTOPO_OBJECT_KINDS
};

enum gtopo_link_kind {
    GTOPO_LINK_SOCKET,   /**< between packages: UPI, xGMI */
    GTOPO_LINK_MEMORY,   /**< inside a package: NUMA node or host bridge to the processor */
    GTOPO_LINK_PLATFORM, /**< a device on no enumerable bus: system on chip, paravirtual */
    GTOPO_LINK_PCIE,
    GTOPO_LINK_PORT, /**< a NIC to its own port */
    GTOPO_LINK_C2C,
    GTOPO_LINK_NVLINK,
    GTOPO_LINK_XGMI,    /**< between GPUs of AMD */
    GTOPO_LINK_NETWORK, /**< port to switch, switch to switch, or port to port */
    GTOPO_LINK_KINDS
};

/** The names that files and people use: "host-bridge", "pcie". "?" for a value out of range. */
GTOPO_API const char *gtopo_object_kind_name(enum gtopo_object_kind kind);
GTOPO_API const char *gtopo_link_kind_name(enum gtopo_link_kind kind);

/**
 * What may be known of an object. Each has one type; which objects carry it, its unit and its meaning stand in
 * doc/map-format.md. Values of hosts of one shape are equal, but for those marked "identity".
 */
enum gtopo_attribute {
    /* any device */
    GTOPO_ATTRIBUTE_MODEL,         /**< text */
    GTOPO_ATTRIBUTE_VENDOR,        /**< text */
    GTOPO_ATTRIBUTE_PCI_ID,        /**< text, "15b3:1021" */
    GTOPO_ATTRIBUTE_PCI_SUBSYSTEM, /**< text, "1000:1003" */
    GTOPO_ATTRIBUTE_PCI_CLASS,     /**< text, "0x020700" */
    GTOPO_ATTRIBUTE_PCI_ADDRESS,   /**< text, identity, "0000:3b:00.0" */
    GTOPO_ATTRIBUTE_NUMA,          /**< number: the operating system's index; unknown when firmware does not say */
    GTOPO_ATTRIBUTE_SERIAL,        /**< text, identity */
    GTOPO_ATTRIBUTE_UUID,          /**< text, identity */
    GTOPO_ATTRIBUTE_DEVICE,        /**< text, identity: the operating system's name: "mlx5_0", "eth0", "nvme0n1" */
    GTOPO_ATTRIBUTE_DRIVER,        /**< text */
    GTOPO_ATTRIBUTE_FIRMWARE,      /**< text */
    GTOPO_ATTRIBUTE_ARCHITECTURE,  /**< text: "sm_90", "gfx942" of a GPU, "x86_64" of a processor */
    GTOPO_ATTRIBUTE_CPU_FAMILY,    /**< number, of a processor of the x86 family */
    GTOPO_ATTRIBUTE_CPU_MODEL,     /**< number, likewise */
    GTOPO_ATTRIBUTE_GPUDIRECT,     /**< number: 1 when a GPU's memory, or a port, can do GPUDirect RDMA */
    /* gpu, as the driver says it */
    GTOPO_ATTRIBUTE_NVML_INDEX,     /**< number, identity: its number in NVML and nvidia-smi */
    GTOPO_ATTRIBUTE_CUDA_ORDINAL,   /**< number, identity: its number in CUDA, in the process that made the map */
    GTOPO_ATTRIBUTE_MEMORY_NUMA,    /**< number: the operating system's index of the NUMA node that its memory is */
    GTOPO_ATTRIBUTE_MIG,            /**< number: 1 when MIG is on */
    GTOPO_ATTRIBUTE_MIG_INSTANCES,  /**< number: of slices, where MIG is on */
    GTOPO_ATTRIBUTE_MIG_UUIDS,      /**< text, identity: of the slices, "MIG-…,MIG-…" */
    GTOPO_ATTRIBUTE_NVLINK_VERSION, /**< text: "4.0" */
    GTOPO_ATTRIBUTE_FABRIC_UUID,    /**< text, identity: the NVLink fabric of several hosts, a cluster */
    GTOPO_ATTRIBUTE_FABRIC_CLIQUE,  /**< number, identity: which GPUs of the cluster reach each other by NVLink */
    GTOPO_ATTRIBUTE_NVIDIA_DRIVER,  /**< text, of a machine: "550.54.15" */
    GTOPO_ATTRIBUTE_CUDA_VISIBLE_DEVICES, /**< text, identity, of a machine: where it was set for who made the map */
    /* on PCI Express */
    GTOPO_ATTRIBUTE_MAX_PAYLOAD_B,         /**< number, bytes: of a packet, as it is set */
    GTOPO_ATTRIBUTE_MAX_PAYLOAD_CAPABLE_B, /**< number, bytes: as the function can do it */
    GTOPO_ATTRIBUTE_MAX_READ_REQUEST_B,    /**< number, bytes: as it is set */
    GTOPO_ATTRIBUTE_RELAXED_ORDERING,      /**< number: 1 when the function may ask for it */
    GTOPO_ATTRIBUTE_ATS,                   /**< number: 1 when the function has addresses translated beforehand */
    GTOPO_ATTRIBUTE_ACS,                   /**< text: access controls of the port above, "ReqRedir CmpltRedir" */
    GTOPO_ATTRIBUTE_IOMMU,                 /**< text: "DMA-FQ" and "DMA" translate; "identity"; "off" */
    GTOPO_ATTRIBUTE_IOMMU_GROUP,           /**< number, identity */
    GTOPO_ATTRIBUTE_BAR1_B,                /**< number, bytes: the largest window into a GPU */
    /* machine, package, numa */
    GTOPO_ATTRIBUTE_OS,       /**< text: kernel name and release */
    GTOPO_ATTRIBUTE_OS_INDEX, /**< number */
    GTOPO_ATTRIBUTE_CORES,    /**< number */
    GTOPO_ATTRIBUTE_CPUS,     /**< text: list of logical processors, "0-15,32-47" */
    GTOPO_ATTRIBUTE_MEMORY_B, /**< number, identity, bytes: the kernel's count differs a little on equal machines */
    /* nic, port */
    GTOPO_ATTRIBUTE_ROLE,          /**< text: "fabric", "management", "virtual-function", "data-direct" */
    GTOPO_ATTRIBUTE_CARD,          /**< text, identity: PCI address of the first function of a card that has several */
    GTOPO_ATTRIBUTE_SOCKET_DIRECT, /**< number: 1 for a function of a card that is in slots of several sockets */
    GTOPO_ATTRIBUTE_PHYSICAL_FUNCTION, /**< text, identity: PCI address of what a virtual function is a share of */
    GTOPO_ATTRIBUTE_NETDEV,            /**< text, identity */
    GTOPO_ATTRIBUTE_BOND,              /**< text, identity: the bond's netdev, of a port that is a member of one */
    GTOPO_ATTRIBUTE_BOND_MODE,         /**< text: "802.3ad", "active-backup" */
    GTOPO_ATTRIBUTE_MAC,               /**< text, identity, "52:54:00:00:00:01" */
    GTOPO_ATTRIBUTE_GUID,              /**< 64-bit identifier, identity: of the port's own GUID, else of the node */
    GTOPO_ATTRIBUTE_NODE_GUID,         /**< 64-bit identifier, identity */
    GTOPO_ATTRIBUTE_SYSTEM_GUID, /**< 64-bit identifier, identity: the system image, equal on all functions of a card */
    GTOPO_ATTRIBUTE_LID,         /**< number, identity */
    GTOPO_ATTRIBUTE_SM_LID,      /**< number, identity */
    GTOPO_ATTRIBUTE_GIDS,        /**< GID table, identity */
    GTOPO_ATTRIBUTE_LINK_LAYER,  /**< text: "InfiniBand" or "Ethernet" */
    GTOPO_ATTRIBUTE_STATE,       /**< text: "active", "init", "armed", "down", "active-defer" */
    GTOPO_ATTRIBUTE_PHYSICAL_STATE, /**< text, as the driver says it: "LinkUp", "Polling", "Disabled" */
    GTOPO_ATTRIBUTE_RATE_Bps,       /**< number: bytes a second in one direction that the port runs at */
    GTOPO_ATTRIBUTE_LANES,          /**< number: width of the port's link */
    GTOPO_ATTRIBUTE_MTU_B,          /**< number: the netdev's MTU, bytes */
    GTOPO_ATTRIBUTE_RDMA_MTU_B,     /**< number: the RDMA port's active MTU, bytes */
    GTOPO_ATTRIBUTE_RDMA_MAX_MTU_B, /**< number, bytes */
    GTOPO_ATTRIBUTE_VIRTUAL,        /**< number: 1 for what is software: rxe, siw, paravirtual; a virtual machine */
    /* storage */
    GTOPO_ATTRIBUTE_CAPACITY_B, /**< number, bytes */
    GTOPO_ATTRIBUTE_ROTATIONAL, /**< number: 1 for a spinning disk */
    GTOPO_ATTRIBUTE_INTERFACE,  /**< text: "nvme", "sata", "sas", "usb", "virtio", "iscsi", "fc", "mmc" */
    GTOPO_ATTRIBUTE_MOUNTED_AT, /**< text, identity: where the file systems on it are, "/, /scratch" */
    /* machine */
    GTOPO_ATTRIBUTE_NETWORK_FILE_SYSTEMS, /**< text, identity: "lustre /work from 10.0.0.1@o2ib:/work, nfs …" */
    GTOPO_ATTRIBUTES
};

enum gtopo_value_type {
    GTOPO_VALUE_NUMBER, /**< uint64_t */
    GTOPO_VALUE_TEXT,
    GTOPO_VALUE_ID, /**< uint64_t, written as "0x%016x" */
    GTOPO_VALUE_GIDS,
};

/** The key in files, for example "rate_Bps"; NULL for a value out of range. */
GTOPO_API const char *gtopo_attribute_key(enum gtopo_attribute attribute);
/** GTOPO_VALUE_NUMBER for a value out of range. */
GTOPO_API enum gtopo_value_type gtopo_attribute_type(enum gtopo_attribute attribute);

enum gtopo_gid_type { GTOPO_GID_IB, GTOPO_GID_ROCE_V1, GTOPO_GID_ROCE_V2 };
/** "IB", "RoCE v1", "RoCE v2". */
GTOPO_API const char *gtopo_gid_type_name(enum gtopo_gid_type type);

/** One line of a port's GID table. */
struct gtopo_gid {
    uint32_t index;  /**< in the port's table */
    uint32_t type;   /**< enum gtopo_gid_type */
    uint8_t raw[16]; /**< network byte order */
};

/** An object as a value: a copy, valid as long as the caller keeps it. */
struct gtopo_object {
    uint32_t id;
    uint32_t kind;   /**< enum gtopo_object_kind */
    uint32_t host;   /**< GTOPO_NONE for a switch of the fabric */
    uint32_t parent; /**< object id; GTOPO_NONE for a machine and for a switch */
    uint32_t number; /**< logical: the 2 of gpu2; for a port, its number on the card (from 1) */
};

/**
 * A link. Rates are for one direction, in bytes per second after line coding, before packet headers.
 * 0 means unknown everywhere here.
 */
struct gtopo_link {
    uint32_t kind;          /**< enum gtopo_link_kind */
    uint32_t ends[2];       /**< object ids */
    uint16_t ports[2];      /**< the port's number when that end is a switch of the fabric, else 0 */
    uint32_t count;         /**< parallel links folded into this one (NVLinks of a pair); at least 1 */
    uint32_t width;         /**< lanes as negotiated */
    uint32_t capable_width; /**< lanes that both ends can do */
    uint32_t speed_MTps;    /**< per lane as negotiated, megatransfers per second: 16000 is PCIe generation 4 */
    uint32_t capable_speed_MTps;
    uint64_t nominal_Bps; /**< of the link as negotiated, all of count */
    uint64_t capable_Bps; /**< of the link as both ends could do it */
};

/** @name Filling
 * @{ */

/** NULL when memory is short. Release with gtopo_map_free(). */
GTOPO_API struct gtopo_map *gtopo_map_new(void);
/** NULL is accepted. */
GTOPO_API void gtopo_map_free(struct gtopo_map *map);

/**
 * Begin a host with its machine object. Objects of a host can be added until the next host is begun.
 * Errors: GTOPO_EUSAGE for a name that is empty, repeated or holds one of "/:@" or a control character, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_map_add_host(struct gtopo_map *map, const char *name, uint32_t *host, struct gtopo_error *error);
/**
 * Begin a host that looks like another: the same objects, links and values, but for what is marked "identity", which
 * it has none of yet. Nothing can be added to a shape that is shared. Errors: as gtopo_map_add_host().
 */
GTOPO_API int gtopo_map_add_host_like(struct gtopo_map *map, const char *name, uint32_t like, uint32_t *host,
                                      struct gtopo_error *error);
/**
 * Append the hosts of another map, with what was measured and found on them; @p other is unchanged and must be sealed.
 * On failure the map may hold some of them. Errors: GTOPO_EUSAGE for a name that is there already or an unsealed map,
 * GTOPO_ENOMEM. O(hosts + objects).
 */
GTOPO_API int gtopo_map_add_hosts_of(struct gtopo_map *map, const struct gtopo_map *other, struct gtopo_error *error);
/** The machine object of a host. */
GTOPO_API uint32_t gtopo_map_host_machine(const struct gtopo_map *map, uint32_t host);

/**
 * Add an object under @p parent (of the host begun last). Its number is the next of its kind in the host, or for a
 * port the @p number given, which must be at least 1 and free; other kinds ignore @p number.
 * Errors: GTOPO_EUSAGE, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_map_add_object(struct gtopo_map *map, enum gtopo_object_kind kind, uint32_t parent, uint32_t number,
                                   uint32_t *id, struct gtopo_error *error);

/** Add a switch of the fabric. The name follows the rules of host names and is unique among hosts and switches. */
GTOPO_API int gtopo_map_add_switch(struct gtopo_map *map, const char *name, uint32_t *id, struct gtopo_error *error);

/** Add a link; both ends in one host, or a network link between ports and switches. The struct is copied. */
GTOPO_API int gtopo_map_add_link(struct gtopo_map *map, const struct gtopo_link *link, uint32_t *id,
                                 struct gtopo_error *error);

/**
 * Set an attribute of an object, replacing a former value. The text is copied; it must be UTF-8.
 * Errors: GTOPO_EUSAGE when the type is not the attribute's, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_map_set_number(struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute, uint64_t value,
                                   struct gtopo_error *error);
GTOPO_API int gtopo_map_set_text(struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute, const char *text,
                                 struct gtopo_error *error);
GTOPO_API int gtopo_map_set_gids(struct gtopo_map *map, uint32_t id, const struct gtopo_gid *gids, size_t count,
                                 struct gtopo_error *error);
/** Say that the attribute applies to this object but is not known: null in files. */
GTOPO_API int gtopo_map_set_unknown(struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute,
                                    struct gtopo_error *error);

/** @}
 * @name Measurements and findings
 * @{ */

enum gtopo_provenance {
    GTOPO_MEASURED,
    GTOPO_NOMINAL,
    GTOPO_SIMULATED,
    GTOPO_MODELLED,
    GTOPO_IMPORTED,
    GTOPO_PROVENANCES
};
enum gtopo_metric {
    GTOPO_BANDWIDTH_Bps, /**< payload bytes per second, one direction unless the method says otherwise */
    GTOPO_LATENCY_ns,    /**< one way; the method says whether it is half a round trip */
    GTOPO_METRICS
};
GTOPO_API const char *gtopo_provenance_name(enum gtopo_provenance provenance);
/** "bandwidth_Bps", "latency_ns". */
GTOPO_API const char *gtopo_metric_key(enum gtopo_metric metric);

/** One end of a probe: the memory that the bytes are in, and what moves them. */
struct gtopo_end {
    uint32_t memory; /**< a numa or gpu object */
    uint32_t via;    /**< a port, a package (the processor copies) or GTOPO_NONE */
};

/**
 * A number with its evidence. Texts are borrowed: from the caller when a measurement is added (the map copies them),
 * from the map when it is read (valid until the map is changed or freed). A text may be NULL when there is nothing to
 * say, except operation and transport.
 */
struct gtopo_measurement {
    struct gtopo_end from, to;
    uint32_t provenance;    /**< enum gtopo_provenance */
    uint32_t metric;        /**< enum gtopo_metric */
    const char *operation;  /**< "write", "send" */
    const char *transport;  /**< "verbs", "ofi:tcp" */
    const char *method;     /**< how, in words: "half a round trip, polling on the last byte" */
    const char *fallback;   /**< what was wanted and why it was not used, or NULL */
    const char *stopped_by; /**< "precision", "one-direction", "deadline", "iterations", "cancelled" */
    const char *tool;       /**< program and version that measured */
    uint64_t message_B;
    uint32_t queue_pairs;
    uint32_t depth; /**< messages in flight a queue pair */
    uint64_t samples;
    uint64_t warmup_samples; /**< discarded before the samples */
    double median;           /**< in the metric's unit; two-way: of both directions together */
    double low, high;        /**< 95 % confidence interval of the median */
    int32_t two_way;         /**< 1: both ends drove at once (bandwidth) */
    double forward, reverse; /**< two-way: the median of each direction, else 0 */
    double p99, p999;        /**< latency: percentiles; 0 where the sample was too small for them */
    /**
     * How the memory of each end was reached: "host", "dma-buf", "peer-memory", "staged", "device". NULL: not known for
     * a GPU's memory; for the host's, which is reached in one way only, it is read back as "host".
     */
    const char *from_way, *to_way;
    uint32_t concurrent; /**< how many probes ran at once, this one included: 1 when it was alone, as is 0 */
    int32_t verified;    /**< 1: the data was compared after the timed region; 0: it was not */
    int64_t time_unix_s; /**< when it ended; 0 for unknown */
};

/**
 * Append a measurement. It counts for every link on the best path from each end's memory to what moves it, and
 * between the two. Errors: GTOPO_EUSAGE for an end that is no memory, a value that is not finite, not positive or
 * outside its own interval, directions of what is not two-way, percentiles of what is no latency, or no samples;
 * GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_map_add_measurement(struct gtopo_map *map, const struct gtopo_measurement *measurement,
                                        struct gtopo_error *error);
GTOPO_API uint32_t gtopo_map_measurement_count(const struct gtopo_map *map);
/** Read the @p index-th measurement, in the order they were added. Errors: GTOPO_ENOTFOUND. */
GTOPO_API int gtopo_map_measurement(const struct gtopo_map *map, uint32_t index, struct gtopo_measurement *measurement,
                                    struct gtopo_error *error);
/**
 * The latest measurement from a memory through a port and back into the same memory, one way: alone, or beside others
 * (at_once). Works on an unsealed map too. Errors: GTOPO_ENOTFOUND when there is none.
 */
GTOPO_API int gtopo_map_loopback(const struct gtopo_map *map, struct gtopo_end end, enum gtopo_metric metric,
                                 int at_once, uint32_t *index, struct gtopo_error *error);
/**
 * The best measurement that crossed a link: highest bandwidth or lowest latency. A bandwidth is a lower bound on
 * what the link can do in one direction, so one way goes before two-way. The map must be sealed. Errors:
 * GTOPO_ENOTFOUND when nothing crossed it.
 */
GTOPO_API int gtopo_map_link_measurement(const struct gtopo_map *map, uint32_t link, enum gtopo_metric metric,
                                         uint32_t *index, struct gtopo_error *error);

enum gtopo_severity {
    GTOPO_NOTE,    /**< worth knowing; not a fault */
    GTOPO_WARNING, /**< likely to cost performance */
    GTOPO_FAULT,   /**< broken */
    GTOPO_SEVERITIES
};
GTOPO_API const char *gtopo_severity_name(enum gtopo_severity severity);

/** What is wrong, on what, and what to do. Text ownership as in struct gtopo_measurement. */
struct gtopo_finding {
    const char *rule;      /**< stable identifier: "port-down" */
    uint32_t severity;     /**< enum gtopo_severity */
    uint32_t object;       /**< object id or GTOPO_NONE */
    const char *text;      /**< one sentence: what was found and what was expected */
    const char *next_step; /**< or NULL */
};
GTOPO_API int gtopo_map_add_finding(struct gtopo_map *map, const struct gtopo_finding *finding,
                                    struct gtopo_error *error);
GTOPO_API uint32_t gtopo_map_finding_count(const struct gtopo_map *map);
GTOPO_API int gtopo_map_finding(const struct gtopo_map *map, uint32_t index, struct gtopo_finding *finding,
                                struct gtopo_error *error);

/** @}
 * @name Asking
 * The map must be sealed for everything below, unless said otherwise.
 * @{ */

/**
 * Finish filling: share equal shapes, build the adjacency, place measurements on links.
 * O(V + E + M · path). Errors: GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_map_seal(struct gtopo_map *map, struct gtopo_error *error);

GTOPO_API uint32_t gtopo_map_host_count(const struct gtopo_map *map);
/** Valid until the map is changed or freed; NULL for a host that is not there. */
GTOPO_API const char *gtopo_map_host_name(const struct gtopo_map *map, uint32_t host);
/** GTOPO_NONE when there is none of that name. */
GTOPO_API uint32_t gtopo_map_find_host(const struct gtopo_map *map, const char *name);
GTOPO_API uint32_t gtopo_map_shape_count(const struct gtopo_map *map);
GTOPO_API uint32_t gtopo_map_host_shape(const struct gtopo_map *map, uint32_t host);
/**
 * What a host looks like, as a number that does not depend on the order in which devices were enumerated, nor on
 * anything marked "identity". Equal for every host of one shape.
 */
GTOPO_API uint64_t gtopo_map_shape_fingerprint(const struct gtopo_map *map, uint32_t shape);

/** The objects of a host are [*first, *first + *count), parents before children. Works on an unsealed map too. */
GTOPO_API int gtopo_map_host_objects(const struct gtopo_map *map, uint32_t host, uint32_t *first, uint32_t *count,
                                     struct gtopo_error *error);
GTOPO_API int gtopo_map_host_links(const struct gtopo_map *map, uint32_t host, uint32_t *first, uint32_t *count,
                                   struct gtopo_error *error);
/** Switches are objects [GTOPO_FABRIC_BASE, GTOPO_FABRIC_BASE + count); network links likewise. */
GTOPO_API uint32_t gtopo_map_switch_count(const struct gtopo_map *map);
GTOPO_API uint32_t gtopo_map_network_link_count(const struct gtopo_map *map);

/** Works on an unsealed map too. Errors: GTOPO_ENOTFOUND. */
GTOPO_API int gtopo_map_object(const struct gtopo_map *map, uint32_t id, struct gtopo_object *object,
                               struct gtopo_error *error);
GTOPO_API int gtopo_map_link(const struct gtopo_map *map, uint32_t id, struct gtopo_link *link,
                             struct gtopo_error *error);

/**
 * Read an attribute. Works on an unsealed map too.
 * @return 1 and the value; 0 when it is not known or does not apply (the value is untouched).
 */
GTOPO_API int gtopo_map_number(const struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute,
                               uint64_t *value);
/** The same for text: valid until the map is changed or freed; NULL when not known. */
GTOPO_API const char *gtopo_map_text(const struct gtopo_map *map, uint32_t id, enum gtopo_attribute attribute);
/** The GID table of a port; NULL and *count = 0 when there is none. */
GTOPO_API const struct gtopo_gid *gtopo_map_gids(const struct gtopo_map *map, uint32_t id, size_t *count);

/**
 * The links of an object: link ids into @p links (up to @p capacity of them).
 * @return how many there are, which may be more than @p capacity.
 */
GTOPO_API size_t gtopo_map_links_of(const struct gtopo_map *map, uint32_t id, uint32_t *links, size_t capacity);
/**
 * The @p index-th link of an object, in the same order, for a loop over all: its id, and what it is in @p link.
 * GTOPO_NONE, and @p link untouched, when there are no more.
 */
GTOPO_API uint32_t gtopo_map_link_of(const struct gtopo_map *map, uint32_t id, size_t index, struct gtopo_link *link);

/** @}
 * @name Addresses
 * One syntax everywhere: `node3`, `node3/gpu2`, `node3/nic1`, `node3/nic1:1` (its port 1), `node3/gpu2@nic1` (memory
 * of gpu2 through nic1), `leaf4`, `leaf4:17`. In a map of one host, `node3/` may be left out.
 * @{ */

struct gtopo_address {
    uint32_t object; /**< a host's machine object for `node3` */
    uint32_t via;    /**< what stands behind the @, or GTOPO_NONE */
    uint32_t port;   /**< a switch's port, or 0 */
};
/** Works on an unsealed map too. Errors: GTOPO_EUSAGE for bad syntax, GTOPO_ENOTFOUND. */
GTOPO_API int gtopo_address_parse(const struct gtopo_map *map, const char *text, struct gtopo_address *address,
                                  struct gtopo_error *error);
/**
 * Read what a probe may begin or end at: a memory (`node3/numa0`, `node3/gpu2`), a port (`node3/nic1:1`), or a memory
 * through a port (`node3/gpu2@nic1:1`). A NIC stands for its port when it has one. A port alone has the memory
 * GTOPO_NONE: that of the host near the port. Works on an unsealed map too.
 * Errors: GTOPO_EUSAGE for bad syntax and for what is no end, GTOPO_ENOTFOUND, GTOPO_EMISSING for a NIC without a port.
 */
GTOPO_API int gtopo_end_parse(const struct gtopo_map *map, const char *text, struct gtopo_end *end,
                              struct gtopo_error *error);
/** The longest address of an object or an end, with its closing zero. */
#define GTOPO_ADDRESS_MAX 640
/** Write an object's address, with host. Works on an unsealed map too. Always zero-terminated; returns @p text. */
GTOPO_API const char *gtopo_address_format(const struct gtopo_map *map, uint32_t object, char text[GTOPO_ADDRESS_MAX]);
/** The same for memory and what moves it: "node3/gpu2@nic1:1"; for a port with memory GTOPO_NONE "node3/nic1:1". */
GTOPO_API const char *gtopo_end_format(const struct gtopo_map *map, struct gtopo_end end, char text[GTOPO_ADDRESS_MAX]);

/** @}
 * @name Paths
 * @{ */

/** Best first. The names are those of `nvidia-smi topo`. */
enum gtopo_path_class {
    GTOPO_PATH_SELF,    /**< X: the same object, or parts of the same card */
    GTOPO_PATH_NVLINK,  /**< NV */
    GTOPO_PATH_C2C,     /**< C2C */
    GTOPO_PATH_PIX,     /**< at most one PCIe switch */
    GTOPO_PATH_PXB,     /**< several PCIe switches, no host bridge */
    GTOPO_PATH_PHB,     /**< through one host bridge */
    GTOPO_PATH_NODE,    /**< between host bridges of one NUMA node */
    GTOPO_PATH_SYS,     /**< between NUMA nodes */
    GTOPO_PATH_UNKNOWN, /**< connected, but the machine hides where */
    GTOPO_PATH_NET,     /**< across the network */
    GTOPO_PATH_NONE,    /**< not connected */
    GTOPO_PATH_CLASSES
};
/** "X", "PIX", … "?" for unknown, "-" for none. */
GTOPO_API const char *gtopo_path_class_name(enum gtopo_path_class path_class);

/** A path: objects[0] … objects[hops], with links[i] between objects[i] and objects[i + 1]. */
struct gtopo_path {
    uint32_t path_class; /**< enum gtopo_path_class */
    uint32_t hops;
    uint32_t *objects;
    uint32_t *links;
    uint64_t bottleneck_Bps;  /**< lowest known of gtopo_link_carries_Bps() on the way, 0 when none is known */
    uint32_t bottleneck_link; /**< the first link of that rate, or GTOPO_NONE */
};

/**
 * The best path between two objects: lowest class, then highest bottleneck, then fewest hops (the rule of NCCL's
 * graph/paths.cc, with nvidia-smi's classes). Links of unknown rate are no bottleneck. Hosts other than those of the
 * two ends carry no traffic, and no host forwards from port to port. The class is the same in both directions.
 * O((V + E) log V) in the objects of the two hosts and the fabric.
 *
 * With no path the class is GTOPO_PATH_NONE and the return value 0. Release with gtopo_path_clear().
 * Errors: GTOPO_ENOTFOUND, GTOPO_EUSAGE for an unsealed map, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_path_find(const struct gtopo_map *map, uint32_t from, uint32_t to, struct gtopo_path *path,
                              struct gtopo_error *error);
/**
 * Bytes per second that a step of a path carries in one direction, 0 for unknown: the link's nominal rate; between a
 * GPU and an NVSwitch that of all NVLinks of the GPU to NVSwitches, over which what it sends is spread.
 */
GTOPO_API uint64_t gtopo_link_carries_Bps(const struct gtopo_map *map, const struct gtopo_link *link);
/**
 * How many NVLinks join two objects of a sealed map, as `nvidia-smi topo -m` counts them (the # of NV#): those between
 * them, else, where both have some to NVSwitches, those of the end that has fewer. 0 for none.
 */
GTOPO_API uint32_t gtopo_nvlink_count(const struct gtopo_map *map, uint32_t a, uint32_t b);
/** Release what gtopo_path_find() made; a zeroed struct is accepted. */
GTOPO_API void gtopo_path_clear(struct gtopo_path *path);

/** What NCCL calls the way between two devices, in its order, best first (2.30). */
enum gtopo_nccl_class {
    GTOPO_NCCL_LOC, /**< itself */
    GTOPO_NCCL_NVL, /**< NVLink, XGMI */
    GTOPO_NCCL_NVB, /**< NVLink by way of another GPU */
    GTOPO_NCCL_C2C,
    GTOPO_NCCL_PIX, /**< at most one PCIe switch */
    GTOPO_NCCL_PXB, /**< several PCIe switches */
    GTOPO_NCCL_P2C, /**< a GPU over C2C to a NIC of its processor */
    GTOPO_NCCL_PXN, /**< to a NIC by way of another GPU */
    GTOPO_NCCL_PHB, /**< through the processor (NUMA node) */
    GTOPO_NCCL_SYS, /**< between NUMA nodes */
    GTOPO_NCCL_NET,
    GTOPO_NCCL_DIS,     /**< not connected */
    GTOPO_NCCL_UNKNOWN, /**< connected, but the machine hides where: NCCL would say PHB */
    GTOPO_NCCL_CLASSES
};
/** "LOC", "NVL", … "?" for unknown. */
GTOPO_API const char *gtopo_nccl_class_name(enum gtopo_nccl_class nccl_class);

/**
 * NCCL's classes between all of @p count objects (GPUs, NICs, storage): classes[i * count + j] is how objects[i]
 * reaches objects[j]. A way by another GPU is only found where that GPU is among the objects. Two levels of one
 * Broadcom switch count as one, as in NCCL. O(count^2) paths and O(count^3). Errors: as gtopo_path_find().
 */
GTOPO_API int gtopo_nccl_classes(const struct gtopo_map *map, const uint32_t *objects, size_t count, uint8_t *classes,
                                 struct gtopo_error *error);

/** The NIC that a GPU is to use. */
struct gtopo_rail {
    uint32_t gpu, nic;       /**< objects */
    uint32_t path_class;     /**< enum gtopo_path_class */
    uint64_t bottleneck_Bps; /**< of the path between the two; 0 for unknown */
};

/**
 * A NIC for each GPU of a host, in the order of the GPUs: every NIC serves as many GPUs as any other, or one more; the
 * worst class of all is as good as can be; and then the sum of the bottlenecks is as high as can be. NICs without a
 * link, made by software, or with less than an eighth of the fastest one's rate take no part; nor do virtual functions,
 * Data Direct functions, NICs for management where there are others, and members of a bond that another stands for. Of
 * the rails @p capacity are written; *count is how many there are, 0 when there is no GPU, no NIC or no way. O(gpus^2 *
 * (gpus + nics)). Errors: GTOPO_EUSAGE for more than 128 GPUs or NICs and for an unsealed map, GTOPO_ENOTFOUND,
 * GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_rails(const struct gtopo_map *map, uint32_t host, struct gtopo_rail *rails, size_t capacity,
                          size_t *count, struct gtopo_error *error);

/** @}
 * @name Files
 * Version 1 of the format, described by doc/map.schema.json. The same map gives the same bytes.
 * @{ */

/** Takes @p size bytes; returns 0, or non-zero to stop the writing. */
typedef int (*gtopo_write_function)(void *context, const void *data, size_t size);

/** Stream a sealed map. Errors: GTOPO_EIO when @p write refuses, GTOPO_EUSAGE for an unsealed map, GTOPO_ENOMEM. */
GTOPO_API int gtopo_map_write(const struct gtopo_map *map, gtopo_write_function write, void *context,
                              struct gtopo_error *error);
/** Write to a file through a temporary beside it and a rename: the file is whole or as it was before. */
GTOPO_API int gtopo_map_save(const struct gtopo_map *map, const char *path, struct gtopo_error *error);
/**
 * Read a map; it comes sealed. @p name stands for the source in messages.
 * Errors: GTOPO_EFORMAT with name:line or the place in the document, GTOPO_EVERSION, GTOPO_ENOMEM.
 */
GTOPO_API int gtopo_map_read(const void *data, size_t size, const char *name, struct gtopo_map **map,
                             struct gtopo_error *error);
/** The same from a file. Further errors: GTOPO_EIO. */
GTOPO_API int gtopo_map_load(const char *path, struct gtopo_map **map, struct gtopo_error *error);
/** @} */

#ifdef __cplusplus
}
#endif
#endif
