/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/counters.h"
#include "lib/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "%s/sys/class/infiniband/%s"

/* ---- what the counters are ---- */

enum kind { UNKNOWN, DATA, RETRANSMITS, CONGESTION, PORT_ERRORS, KINDS };

static const struct {
    const char *rule;
    uint32_t severity;
    const char *found, *next_step;
} kinds[KINDS] = {
    [RETRANSMITS] = {"retransmits", GTOPO_WARNING, "packets were lost, late or out of order during the run",
                     "look for errors and drops at the ports between the ends; on RoCE, see whether PFC or ECN covers "
                     "the traffic class of the run"},
    [CONGESTION] = {"congestion", GTOPO_NOTE, "the network was congested during the run",
                    "see what else uses the path, and compare with a run on an idle network"},
    [PORT_ERRORS] = {"port-errors", GTOPO_WARNING, "the port had errors during the run",
                     "check the cable or transceiver and the port at its other end, on InfiniBand with ibdiagnet, on "
                     "Ethernet with ethtool -S"},
};

/*
 * The kernel's names, from drivers/infiniband of Linux 6.x: core/sysfs.c (InfiniBand's own counters),
 * hw/mlx5/counters.c, sw/rxe/rxe_hw_counters.c, hw/bnxt_re/hw_counters.c, hw/irdma/verbs.c, hw/efa/efa_verbs.c,
 * hw/mana/counters.c.
 */
static const struct known {
    const char *name;
    enum kind kind;
    const char *words;
    uint64_t unit_B; /* of data counters */
} known[] = {
    {"port_xmit_data", DATA, NULL, 4},
    {"port_rcv_data", DATA, NULL, 4},

    /* mlx5 */
    {"local_ack_timeout_err", RETRANSMITS, "acknowledgements that did not come in time", 0},
    {"out_of_sequence", RETRANSMITS, "packets out of sequence", 0},
    {"packet_seq_err", RETRANSMITS, "sequence error NAKs received", 0},
    {"implied_nak_seq_err", RETRANSMITS, "responses missing in between", 0},
    {"duplicate_request", RETRANSMITS, "requests that came again", 0},
    {"roce_adp_retrans", RETRANSMITS, "adaptive retransmissions", 0},
    {"roce_adp_retrans_to", RETRANSMITS, "timeouts of adaptive retransmission", 0},
    {"roce_slow_restart", RETRANSMITS, "restarts at a low rate", 0},
    {"rnr_nak_retry_err", RETRANSMITS, "receiver-not-ready NAKs received", 0},
    {"out_of_buffer", RETRANSMITS, "packets dropped for want of a posted receive", 0},
    {"req_transport_retries_exceeded", RETRANSMITS, "requests given up after all retries", 0},
    {"req_rnr_retries_exceeded", RETRANSMITS, "requests given up with the receiver not ready", 0},
    /* rxe; duplicate_request is above */
    {"out_of_seq_request", RETRANSMITS, "requests out of sequence", 0},
    {"rcvd_seq_err", RETRANSMITS, "sequence error NAKs received", 0},
    {"completer_retry_err", RETRANSMITS, "retries", 0},
    {"rcvd_rnr_err", RETRANSMITS, "receiver-not-ready NAKs received", 0},
    {"send_rnr_err", RETRANSMITS, "receiver-not-ready NAKs sent", 0},
    {"retry_exceeded_err", RETRANSMITS, "requests given up after all retries", 0},
    {"retry_rnr_exceeded_err", RETRANSMITS, "requests given up with the receiver not ready", 0},
    {"send_err", RETRANSMITS, "packets that could not be sent", 0},
    /* bnxt_re */
    {"to_retransmits", RETRANSMITS, "retransmissions after a timeout", 0},
    {"seq_err_naks_rcvd", RETRANSMITS, "sequence error NAKs received", 0},
    {"rnr_naks_rcvd", RETRANSMITS, "receiver-not-ready NAKs received", 0},
    {"max_retry_exceeded", RETRANSMITS, "requests given up after all retries", 0},
    {"missing_resp", RETRANSMITS, "responses missing in between", 0},
    {"dup_req", RETRANSMITS, "requests that came again", 0},
    {"oos_drop_count", RETRANSMITS, "packets dropped out of sequence", 0},
    {"res_oos_drop_count", RETRANSMITS, "packets dropped out of sequence", 0},
    /* irdma */
    {"tcpRetransSegs", RETRANSMITS, "TCP segments sent again", 0},
    {"RetransSegs", RETRANSMITS, "TCP segments sent again", 0},
    {"RNR sent", RETRANSMITS, "receiver-not-ready NAKs sent", 0},
    {"RNR received", RETRANSMITS, "receiver-not-ready NAKs received", 0},
    /* EFA */
    {"retrans_pkts", RETRANSMITS, "packets sent again", 0},
    {"retrans_timeout_events", RETRANSMITS, "timeouts of a packet", 0},
    {"impaired_remote_conn_events", RETRANSMITS, "connections that became slow", 0},
    {"unresponsive_remote_events", RETRANSMITS, "connections without an answer", 0},
    /* MANA */
    {"requester_timeout", RETRANSMITS, "acknowledgements that did not come in time", 0},
    {"requester_oos_nak", RETRANSMITS, "sequence error NAKs received", 0},
    {"requester_rnr_nak", RETRANSMITS, "receiver-not-ready NAKs received", 0},
    {"requester_implicit_nak", RETRANSMITS, "responses missing in between", 0},
    {"responder_rnr_nak", RETRANSMITS, "receiver-not-ready NAKs sent", 0},
    {"responder_oos", RETRANSMITS, "packets out of sequence", 0},
    {"responder_dup_request", RETRANSMITS, "requests that came again", 0},

    {"port_xmit_wait", CONGESTION, "ticks that the port had data to send and could not", 0},
    {"rp_cnp_handled", CONGESTION, "congestion notifications that slowed the sender", 0},
    {"np_cnp_sent", CONGESTION, "congestion notifications sent", 0},
    {"np_ecn_marked_roce_packets", CONGESTION, "packets that came marked as congested", 0},
    {"rx_cnp_pkts", CONGESTION, "congestion notifications received", 0},
    {"tx_cnp_pkts", CONGESTION, "congestion notifications sent", 0},
    {"rx_ecn_marked_pkts", CONGESTION, "packets that came marked as congested", 0},
    {"cnpHandled", CONGESTION, "congestion notifications that slowed the sender", 0},
    {"cnpSent", CONGESTION, "congestion notifications sent", 0},
    {"RxECNMrkd", CONGESTION, "packets that came marked as congested", 0},

    {"symbol_error", PORT_ERRORS, "symbol errors", 0},
    {"link_error_recovery", PORT_ERRORS, "recoveries of the link", 0},
    {"link_downed", PORT_ERRORS, "times that the link went down", 0},
    {"port_rcv_errors", PORT_ERRORS, "packets received with errors", 0},
    {"port_rcv_remote_physical_errors", PORT_ERRORS, "packets marked bad on their way", 0},
    {"port_rcv_constraint_errors", PORT_ERRORS, "packets received and refused", 0},
    {"port_xmit_discards", PORT_ERRORS, "packets to send that were discarded", 0},
    {"port_xmit_constraint_errors", PORT_ERRORS, "packets to send that were refused", 0},
    {"local_link_integrity_errors", PORT_ERRORS, "bursts of errors on the link", 0},
    {"excessive_buffer_overrun_errors", PORT_ERRORS, "overruns of the receive buffer", 0},
    {"rx_icrc_encapsulated", PORT_ERRORS, "RoCE packets with a wrong checksum", 0},
    {"rx_roce_errors", PORT_ERRORS, "RoCE packets received with errors", 0},
    {"rx_roce_discards", PORT_ERRORS, "RoCE packets received and discarded", 0},
    {"rx_drops", PORT_ERRORS, "packets received and dropped", 0},
};

static const struct known *find_known(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return &known[i];
    return NULL;
}

/* ---- reading ---- */

static const struct gtopo_counter *find_counter(const struct gtopo_counters *counters, const char *name)
{
    for (uint32_t i = 0; i < counters->count; i++)
        if (!strcmp(counters->items[i].name, name))
            return &counters->items[i];
    return NULL;
}

/* A whole number and a line's end. "-1" and "N/A (no PMA)" are none. */
static int parse_value(const char *text, uint64_t *value)
{
    unsigned long long number;
    char *end;

    if (*text < '0' || *text > '9')
        return 0;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno || end[strspn(end, " \n")])
        return 0;
    *value = number;
    return 1;
}

static int read_value(int folder, const char *name, uint64_t *value)
{
    /* A pipe must not hold us; a link is no counter, and may lead anywhere. */
    int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    char text[64];
    struct stat file;
    ssize_t got;

    if (fd < 0)
        return 0;
    got = fstat(fd, &file) || !S_ISREG(file.st_mode) ? 0 : read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = 0;
    return strlen(text) == (size_t)got && parse_value(text, value);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct gtopo_counter *)a)->name, ((const struct gtopo_counter *)b)->name);
}

static void read_folder(const char *path, struct gtopo_counters *counters)
{
    DIR *folder = opendir(path);
    uint32_t first = counters->count;
    struct dirent *entry;

    if (!folder)
        return;
    while (counters->count < GTOPO_COUNTERS_READ_MAX && (entry = readdir(folder))) {
        struct gtopo_counter *counter = &counters->items[counters->count];
        size_t length = strlen(entry->d_name);

        if (length >= sizeof counter->name || entry->d_name[0] == '.' || !gtopo_text_is_clean(entry->d_name) ||
            !strcmp(entry->d_name, "lifespan") || /* for how long the kernel keeps its values: a setting */
            find_counter(counters, entry->d_name) || !read_value(dirfd(folder), entry->d_name, &counter->value))
            continue;
        memcpy(counter->name, entry->d_name, length + 1);
        counters->count++;
    }
    closedir(folder);
    qsort(counters->items + first, counters->count - first, sizeof *counters->items, compare_names);
}

void gtopo_counters_read(const char *root, const char *device, uint32_t port, struct gtopo_counters *counters)
{
    static const char *const folders[] = {"counters", "hw_counters"};
    char path[PATH_MAX];

    memset(counters, 0, sizeof *counters);
    if (!*device || *device == '.' || strchr(device, '/'))
        return;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (snprintf(path, sizeof path, FOLDER "/ports/%" PRIu32 "/%s", root, device, port, folders[i]) < PATH_MAX)
            read_folder(path, counters);
    if (snprintf(path, sizeof path, FOLDER "/hw_counters", root, device) < PATH_MAX)
        read_folder(path, counters);
}

/* ---- rises ---- */

/* 1 when the two values say by how much the counter rose. */
static int find_rise(const struct gtopo_counters *before, const struct gtopo_counter *after, const struct known *what,
                     uint64_t *rise)
{
    const struct gtopo_counter *former = find_counter(before, after->name);

    if (!former || after->value < former->value)
        return 0;
    *rise = after->value - former->value;
    if (!what || what->kind != DATA)
        return *rise > 0;
    *rise = *rise > UINT64_MAX / what->unit_B ? UINT64_MAX : *rise * what->unit_B;
    return after->value != UINT32_MAX && after->value != UINT64_MAX;
}

void gtopo_counters_rise(const struct gtopo_counters *before, const struct gtopo_counters *after,
                         struct gtopo_port_counter rises[GTOPO_COUNTERS_MAX], uint32_t *count)
{
    uint32_t wanted = 0; /* known ones that are still to come */
    uint64_t rise;

    *count = 0;
    for (uint32_t i = 0; i < after->count; i++) {
        const struct known *what = find_known(after->items[i].name);

        wanted += what && find_rise(before, &after->items[i], what, &rise);
    }
    for (uint32_t i = 0; i < after->count && *count < GTOPO_COUNTERS_MAX; i++) {
        const struct known *what = find_known(after->items[i].name);

        if (!find_rise(before, &after->items[i], what, &rise))
            continue;
        if (what)
            wanted--;
        else if (*count + wanted >= GTOPO_COUNTERS_MAX)
            continue;
        memcpy(rises[*count].name, after->items[i].name, sizeof rises->name);
        rises[(*count)++].rise = rise;
    }
}

/* ---- findings ---- */

static struct gtopo_probe_finding *add_finding(enum kind kind, struct gtopo_probe_finding *findings, uint32_t *count)
{
    struct gtopo_probe_finding *finding;

    if (*count >= GTOPO_PROBE_FINDINGS_MAX)
        return NULL;
    finding = &findings[(*count)++];
    memset(finding, 0, sizeof *finding);
    if (kinds[kind].rule) {
        snprintf(finding->rule, sizeof finding->rule, "%s", kinds[kind].rule);
        snprintf(finding->next_step, sizeof finding->next_step, "%s", kinds[kind].next_step);
        finding->severity = kinds[kind].severity;
    }
    return finding;
}

/* "; 12 out_of_sequence (packets out of sequence)", as many as fit; "; and 3 more". */
static void list_rises(const struct gtopo_counters_end *end, enum kind kind, char *text, size_t size)
{
    const size_t tail = sizeof "; and 4294967295 more";
    size_t used = strlen(text);
    uint32_t left_out = 0;

    for (uint32_t i = 0; i < end->count; i++) {
        const struct known *what = find_known(end->rises[i].name);
        char words[160];
        size_t length;

        if (!what || what->kind != kind || !end->rises[i].rise)
            continue;
        length =
            (size_t)snprintf(words, sizeof words, "; %" PRIu64 " %s (%s)", end->rises[i].rise, what->name, what->words);
        if (left_out || used + length + tail > size) {
            left_out++;
            continue;
        }
        memcpy(text + used, words, length + 1);
        used += length;
    }
    if (left_out)
        snprintf(text + used, size - used, "; and %" PRIu32 " more", left_out);
}

static void judge_kind(const struct gtopo_counters_end *end, enum kind kind, struct gtopo_probe_finding *findings,
                       uint32_t *count)
{
    struct gtopo_probe_finding *finding;

    for (uint32_t i = 0; i < end->count; i++) {
        const struct known *what = find_known(end->rises[i].name);

        if (!what || what->kind != kind || !end->rises[i].rise)
            continue;
        finding = add_finding(kind, findings, count);
        if (finding) {
            snprintf(finding->text, sizeof finding->text, "%.128s: %s", end->name, kinds[kind].found);
            list_rises(end, kind, finding->text, sizeof finding->text);
        }
        return;
    }
}

/* The more of what the port sent and received; 0 when it has no data counters. */
static int find_data(const struct gtopo_counters_end *end, uint64_t *data_B)
{
    int found = 0;

    *data_B = 0;
    for (uint32_t i = 0; i < end->count; i++) {
        const struct known *what = find_known(end->rises[i].name);

        if (!what || what->kind != DATA)
            continue;
        found = 1;
        if (end->rises[i].rise > *data_B)
            *data_B = end->rises[i].rise;
    }
    return found;
}

/* 1 when it did, and that was said. */
static int judge_stay(const struct gtopo_counters_end *end, int one_port, uint64_t payload_B,
                      struct gtopo_probe_finding *findings, uint32_t *count)
{
    struct gtopo_probe_finding *finding;
    uint64_t data_B;

    if (!find_data(end, &data_B) || data_B >= payload_B / 2 + payload_B % 2)
        return 0;
    finding = add_finding(UNKNOWN, findings, count);
    if (!finding)
        return 1;
    snprintf(finding->rule, sizeof finding->rule, "stayed-in-adapter");
    finding->severity = one_port ? GTOPO_NOTE : GTOPO_WARNING;
    snprintf(finding->text, sizeof finding->text,
             "%.128s: its data counters rose by %" PRIu64 " bytes while %" PRIu64 " bytes were sent: the traffic never "
             "left the adapter, so the figures say nothing about the link",
             end->name, data_B, payload_B);
    snprintf(finding->next_step, sizeof finding->next_step, "%s",
             one_port
                 ? "to weigh the link, take two ports that a cable or a switch connects"
                 : "check that both ends are the ports that were meant, and that the adapter does not loop traffic "
                   "between its ports or functions back");
    return 1;
}

void gtopo_counters_judge(const struct gtopo_counters_end *from, const struct gtopo_counters_end *to, int one_port,
                          uint64_t payload_B, struct gtopo_probe_finding findings[GTOPO_PROBE_FINDINGS_MAX],
                          uint32_t *count)
{
    static const enum kind order[] = {RETRANSMITS, PORT_ERRORS, CONGESTION};

    if (!judge_stay(from, one_port, payload_B, findings, count) && !one_port)
        judge_stay(to, 0, payload_B, findings, count);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        judge_kind(from, order[i], findings, count);
        if (!one_port)
            judge_kind(to, order[i], findings, count);
    }
}
