/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of an RDMA port: what a run made of them, and what that says about the run.
 */
#ifndef GTOPO_BENCH_COUNTERS_H
#define GTOPO_BENCH_COUNTERS_H

#include <stdint.h>
#include <gputopo/probe.h>

#define GTOPO_COUNTERS_READ_MAX 256

struct gtopo_counter {
    char name[48];  /* the kernel's */
    uint64_t value; /* in the kernel's unit */
};

/* All counters of a port at one moment; 14 KiB. */
struct gtopo_counters {
    uint32_t count;
    struct gtopo_counter items[GTOPO_COUNTERS_READ_MAX];
};

/*
 * Read the port's counters and hw_counters, and the device's hw_counters if there are any; a name that was there before
 * is not taken again. Each folder's are in the order of the alphabet. `root` stands before /sys, "" for this machine.
 * What is no counter is skipped: folders, links, what cannot be read, holds no whole number below 2^64 or has a name of
 * more than 47 bytes. No folder, no counters. The kernel may answer for hw_counters with values of up to 10 ms ago.
 */
void gtopo_counters_read(const char *root, const char *device, uint32_t port, struct gtopo_counters *counters);

/*
 * By how much counters rose, in the order of `after`. A counter that is not in both, that fell or that stood still says
 * nothing and is left out, and so is a data counter that is at its maximum (32 or 64 bits) and may have stuck there. A
 * data counter is given also when it stood still: that nothing passed the port is worth knowing. port_xmit_data and
 * port_rcv_data count words of 4 bytes (InfiniBand Architecture Specification, PortCounters) and become bytes. When
 * there are more than fit, those that gtopo_counters_judge() knows go first. *count: how many.
 */
void gtopo_counters_rise(const struct gtopo_counters *before, const struct gtopo_counters *after,
                         struct gtopo_port_counter rises[GTOPO_COUNTERS_MAX], uint32_t *count);

/* One end of a probe, for gtopo_counters_judge(). */
struct gtopo_counters_end {
    const char *name; /* "mlx5_0 port 1 on node3" */
    const struct gtopo_port_counter *rises;
    uint32_t count;
};

/*
 * What the rises of both ends say, added to findings[*count …] as long as there is room (GTOPO_PROBE_FINDINGS_MAX):
 *   "retransmits"        warning: packets were lost, late or out of order, or the receiver was not ready
 *   "port-errors"        warning: the port, its cable or its link had errors
 *   "congestion"         note: the network slowed the sender down, or the port waited for it
 *   "stayed-in-adapter"  the port's data counters rose by less than half of what was sent: the traffic never left the
 *                        adapter. A note where both ends are one port, else a warning
 * one_port: both ends are the same port, whose counters are those of `from`. payload_B: bytes that the messages held,
 * in the busier direction; 0 if not known. The text names the end, and how much of what.
 */
void gtopo_counters_judge(const struct gtopo_counters_end *from, const struct gtopo_counters_end *to, int one_port,
                          uint64_t payload_B, struct gtopo_probe_finding findings[GTOPO_PROBE_FINDINGS_MAX],
                          uint32_t *count);

#endif
