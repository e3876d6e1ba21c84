/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of RDMA ports in folders that are not the kernel's, and what is said about how they rose. */
#include "fake_machine.h"
#include "bench/counters.h"
#include <fcntl.h>

#define CLASS "sys/class/infiniband/"
#define PORT CLASS "mlx5_0/ports/1/"

static uint64_t value_of(const struct gtopo_counters *counters, const char *name)
{
    for (uint32_t i = 0; i < counters->count; i++)
        if (!strcmp(counters->items[i].name, name))
            return counters->items[i].value;
    fail_msg("there is no %s", name);
    return 0;
}

static int has(const struct gtopo_counters *counters, const char *name)
{
    for (uint32_t i = 0; i < counters->count; i++)
        if (!strcmp(counters->items[i].name, name))
            return 1;
    return 0;
}

/* ---- reading ---- */

static void test_reads_all_folders(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_counters counters;

    (void)state;
    fake_write(m, "100", PORT "counters/port_xmit_data");
    fake_write(m, "0", PORT "counters/symbol_error");
    fake_write(m, "7", PORT "hw_counters/out_of_sequence");
    fake_write(m, "10", PORT "hw_counters/lifespan");               /* a setting */
    fake_write(m, "8", CLASS "mlx5_0/hw_counters/out_of_sequence"); /* of all ports together */
    fake_write(m, "9", CLASS "mlx5_0/hw_counters/packet_seq_err");
    fake_write(m, "5", CLASS "mlx5_0/ports/2/counters/port_xmit_data");
    fake_write(m, "6", CLASS "mlx5_1/ports/1/counters/port_xmit_data");
    gtopo_counters_read(m->root, "mlx5_0", 1, &counters);
    assert_int_equal(counters.count, 4);
    assert_string_equal(counters.items[0].name, "port_xmit_data");
    assert_string_equal(counters.items[1].name, "symbol_error");
    assert_int_equal(value_of(&counters, "port_xmit_data"), 100);
    assert_int_equal(value_of(&counters, "symbol_error"), 0);
    assert_int_equal(value_of(&counters, "out_of_sequence"), 7);
    assert_int_equal(value_of(&counters, "packet_seq_err"), 9);
    gtopo_counters_read(m->root, "mlx5_0", 2, &counters);
    assert_int_equal(counters.count, 3);
    assert_int_equal(value_of(&counters, "port_xmit_data"), 5);
    assert_int_equal(value_of(&counters, "out_of_sequence"), 8);
    fake_free(m);
}

/* The kernel's devices are links into sys/devices. */
static void test_devices_are_links(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_counters counters;

    (void)state;
    fake_write(m, "3", "sys/devices/virtual/infiniband/rxe0/ports/1/hw_counters/sent_pkts");
    fake_link_to(m, "sys/devices/virtual/infiniband/rxe0", CLASS "rxe0");
    gtopo_counters_read(m->root, "rxe0", 1, &counters);
    assert_int_equal(counters.count, 1);
    assert_int_equal(value_of(&counters, "sent_pkts"), 3);
    fake_free(m);
}

static void test_no_folder_is_no_error(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_counters counters;
    char name[5000];

    (void)state;
    fake_write(m, "100", PORT "counters/port_xmit_data");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    memset(&counters, 0xff, sizeof counters);
    gtopo_counters_read("/nonexistent", "mlx5_0", 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, "mlx5_7", 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, "mlx5_0", 3, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, "", 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, "..", 1, &counters);
    assert_int_equal(counters.count, 0);
    fake_write(m, "100", CLASS "ports/1/counters/port_xmit_data");
    gtopo_counters_read(m->root, ".", 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, "mlx5_0/../mlx5_0", 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, "../infiniband/mlx5_0", 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, name, 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(name, "mlx5_0", 1, &counters);
    assert_int_equal(counters.count, 0);
    gtopo_counters_read(m->root, "mlx5_0", 1, &counters);
    assert_int_equal(counters.count, 1);
    fake_free(m);
}

static void test_hostile_files(void **state)
{
    static const char *const nothing[] = {"",
                                          "-1",
                                          "+1",
                                          "0x10",
                                          "N/A (no PMA)",
                                          "12x",
                                          "1 2",
                                          "\t",
                                          "1\n2",
                                          "1.5",
                                          "18446744073709551616",
                                          " 1",
                                          "--",
                                          "1e3",
                                          "99999999999999999999999999999999999999999999999999999999999999"};
    struct fake *m = fake_empty();
    struct gtopo_counters counters;
    char path[FAKE_PATH], idle[FAKE_PATH];
    int pipe;

    (void)state;
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        fake_write(m, nothing[i], PORT "counters/nothing%zu", i);
    fake_write_bytes(m, PORT "counters/zero_bytes", "1\0002", 3);
    fake_write_bytes(m, PORT "counters/empty", "", 0);
    fake_write_bytes(m, PORT "counters/no_newline", "17", 2);
    fake_write(m, "18446744073709551615", PORT "counters/largest");
    fake_write(m, "1", PORT "counters/a_folder/a_file");
    fake_write(m, "1", PORT "counters/.hidden");
    fake_write(m, "1", PORT "counters/a234567890b234567890c234567890d234567890e234567"); /* 47 bytes fit */
    fake_write(m, "1", PORT "counters/a234567890b234567890c234567890d234567890e2345678");
    fake_write(m, "1", PORT "counters/bell\a");
    fake_write(m, "1", PORT "counters/RNR sent");
    fake_write(m, "1", "elsewhere");
    fake_link_to(m, "elsewhere", PORT "counters/link");
    fake_link_to(m, PORT "counters/loop2", PORT "counters/loop1");
    fake_link_to(m, PORT "counters/loop1", PORT "counters/loop2");
    fake_path(m, path, PORT "counters/pipe");
    assert_int_equal(mkfifo(path, 0644), 0);
    fake_path(m, idle, PORT "counters/idle_pipe");
    assert_int_equal(mkfifo(idle, 0644), 0);
    pipe = open(path, O_RDWR | O_NONBLOCK);
    assert_true(pipe >= 0);
    assert_int_equal(write(pipe, "5\n", 2), 2);
    fake_write(m, "1", PORT "counters/locked");
    fake_path(m, path, PORT "counters/locked");
    assert_int_equal(chmod(path, 0), 0);
    gtopo_counters_read(m->root, "mlx5_0", 1, &counters);
    assert_int_equal(value_of(&counters, "largest"), UINT64_MAX);
    assert_int_equal(value_of(&counters, "no_newline"), 17);
    assert_int_equal(value_of(&counters, "RNR sent"), 1);
    assert_int_equal(value_of(&counters, "a234567890b234567890c234567890d234567890e234567"), 1);
    /* root may read what is locked */
    assert_int_equal(has(&counters, "locked"), !geteuid());
    assert_int_equal(counters.count, 4 + !geteuid());
    close(pipe);
    fake_free(m);
}

static void test_more_than_fit(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_counters counters;

    (void)state;
    for (int i = 0; i < GTOPO_COUNTERS_READ_MAX + 50; i++)
        fake_write(m, "1", PORT "hw_counters/c%d", i);
    fake_write(m, "1", PORT "counters/first");
    fake_write(m, "1", CLASS "mlx5_0/hw_counters/last");
    gtopo_counters_read(m->root, "mlx5_0", 1, &counters);
    assert_int_equal(counters.count, GTOPO_COUNTERS_READ_MAX);
    assert_true(has(&counters, "first") && !has(&counters, "last"));
    fake_free(m);
}

/* A folder that links to itself. */
static void test_folder_loop(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_counters counters;

    (void)state;
    fake_write(m, "4", PORT "hw_counters/sent_pkts");
    fake_link_to(m, PORT "counters", PORT "counters");
    gtopo_counters_read(m->root, "mlx5_0", 1, &counters);
    assert_int_equal(counters.count, 1);
    fake_free(m);
}

/* ---- rises ---- */

static void set(struct gtopo_counters *counters, const char *name, uint64_t value)
{
    struct gtopo_counter *counter = &counters->items[counters->count++];

    assert_in_range(counters->count, 1, GTOPO_COUNTERS_READ_MAX);
    snprintf(counter->name, sizeof counter->name, "%s", name);
    counter->value = value;
}

#define NONE UINT64_C(0xdeadbeef)

/* The rise of one counter between two values, or NONE when it is not given. */
static uint64_t rise_of(const char *name, uint64_t before, uint64_t after)
{
    struct gtopo_counters *first = calloc(1, sizeof *first), *second = calloc(1, sizeof *second);
    struct gtopo_port_counter rises[GTOPO_COUNTERS_MAX];
    uint32_t count = 77;
    uint64_t rise;

    assert_non_null(first);
    assert_non_null(second);
    set(first, "other", 1);
    set(first, name, before);
    set(second, name, after);
    gtopo_counters_rise(first, second, rises, &count);
    assert_in_range(count, 0, 1);
    if (count)
        assert_string_equal(rises[0].name, name);
    rise = count ? rises[0].rise : NONE;
    free(first);
    free(second);
    return rise;
}

static void test_rise(void **state)
{
    (void)state;
    assert_int_equal(rise_of("out_of_sequence", 5, 8), 3);
    assert_int_equal(rise_of("out_of_sequence", 5, 5), NONE);
    assert_int_equal(rise_of("out_of_sequence", 5, 4), NONE);
    assert_int_equal(rise_of("out_of_sequence", UINT64_MAX, 4), NONE);
    assert_int_equal(rise_of("out_of_sequence", UINT32_MAX, UINT32_MAX), NONE);
    assert_int_equal(rise_of("symbol_error", 65000, 65535), 535);
    assert_int_equal(rise_of("symbol_error", 0, UINT32_MAX), UINT32_MAX); /* stuck or not, so many there were */
    assert_int_equal(rise_of("not_known", 1, 1000), 999);
    /* bytes, not words; that nothing passed is said; a counter that may have stuck says nothing */
    assert_int_equal(rise_of("port_xmit_data", 1000, 1250), 1000);
    assert_int_equal(rise_of("port_rcv_data", 1000, 1000), 0);
    assert_int_equal(rise_of("port_xmit_data", 1250, 1000), NONE);
    assert_int_equal(rise_of("port_xmit_data", 1000, UINT32_MAX), NONE);
    assert_int_equal(rise_of("port_xmit_data", UINT32_MAX, UINT32_MAX), NONE);
    assert_int_equal(rise_of("port_rcv_data", 1000, UINT64_MAX), NONE);
    assert_int_equal(rise_of("port_rcv_data", 1000, (uint64_t)UINT32_MAX + 1), ((uint64_t)UINT32_MAX + 1 - 1000) * 4);
    assert_int_equal(rise_of("port_rcv_data", 0, UINT64_MAX - 1), UINT64_MAX); /* as many bytes as can be said */
    assert_int_equal(rise_of("port_xmit_packets", 10, 30), 20);
}

static void test_counters_that_come_and_go(void **state)
{
    struct gtopo_counters before = {0}, after = {0};
    struct gtopo_port_counter rises[GTOPO_COUNTERS_MAX];
    uint32_t count;

    (void)state;
    gtopo_counters_rise(&before, &after, rises, &count);
    assert_int_equal(count, 0);
    set(&before, "gone", 1);
    set(&before, "stays", 1);
    set(&after, "stays", 3);
    set(&after, "new", 9);
    gtopo_counters_rise(&before, &after, rises, &count);
    assert_int_equal(count, 1);
    assert_string_equal(rises[0].name, "stays");
    assert_int_equal(rises[0].rise, 2);
}

/* Those that say something are not crowded out by those that do not, and all keep their order. */
static void test_more_rises_than_fit(void **state)
{
    struct gtopo_counters before = {0}, after = {0};
    struct gtopo_port_counter rises[GTOPO_COUNTERS_MAX];
    uint32_t count, place = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        char name[32];

        snprintf(name, sizeof name,
                 i == 10    ? "port_rcv_data"
                 : i == 150 ? "port_xmit_data"
                 : i == 199 ? "out_of_sequence"
                            : "c%d",
                 i);
        set(&before, name, 1);
        set(&after, name, 1 + (i != 150));
    }
    gtopo_counters_rise(&before, &after, rises, &count);
    assert_int_equal(count, GTOPO_COUNTERS_MAX);
    for (int i = 0; i < 200; i++) /* the first 61 that nobody knows, and the three */
        if (i < 62 || i == 150 || i == 199) {
            assert_string_equal(rises[place].name, after.items[i].name);
            assert_int_equal(rises[place++].rise, i == 10 ? 4 : i != 150);
        }
    assert_int_equal(place, count);
}

/* ---- findings ---- */

#define FROM "mlx5_0 port 1 on a"
#define TO "mlx5_3 port 2 on b"

struct judged {
    struct gtopo_probe_finding findings[GTOPO_PROBE_FINDINGS_MAX];
    uint32_t count;
};

static struct judged judge(const struct gtopo_port_counter *from, uint32_t from_count,
                           const struct gtopo_port_counter *to, uint32_t to_count, int one_port, uint64_t payload_B)
{
    struct gtopo_counters_end ends[2] = {{FROM, from, from_count}, {TO, to, to_count}};
    struct judged judged;

    memset(&judged, 0xff, sizeof judged);
    judged.count = 0;
    gtopo_counters_judge(&ends[0], &ends[1], one_port, payload_B, judged.findings, &judged.count);
    for (uint32_t i = 0; i < judged.count; i++) {
        assert_true(memchr(judged.findings[i].text, 0, sizeof judged.findings[i].text) != NULL);
        assert_true(judged.findings[i].next_step[0]);
    }
    return judged;
}

static const struct gtopo_probe_finding *find(const struct judged *judged, const char *rule, const char *end)
{
    for (uint32_t i = 0; i < judged->count; i++)
        if (!strcmp(judged->findings[i].rule, rule) && !strncmp(judged->findings[i].text, end, strlen(end)))
            return &judged->findings[i];
    return NULL;
}

static void test_clean_run(void **state)
{
    static const struct gtopo_port_counter rises[] = {{"port_xmit_data", 1050000},
                                                      {"port_rcv_data", 2000},
                                                      {"ack_deferred", 5},
                                                      {"sent_pkts", 900},
                                                      {"not_known", 1}};
    struct judged judged = judge(rises, 5, rises, 5, 0, 1000000);

    (void)state;
    assert_int_equal(judged.count, 0);
    judged = judge(NULL, 0, NULL, 0, 0, 1000000); /* no counters: nothing to say */
    assert_int_equal(judged.count, 0);
}

/* What is known of each counter. */
static void test_each_counter(void **state)
{
    static const struct {
        const char *rule;
        uint32_t severity;
        const char *names[24];
    } table[] = {
        {"retransmits",
         GTOPO_WARNING,
         {"local_ack_timeout_err", "out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "roce_adp_retrans",
          "rnr_nak_retry_err", "duplicate_request", "out_of_seq_request", "rcvd_seq_err", "completer_retry_err",
          "rcvd_rnr_err", "send_rnr_err", "retry_exceeded_err", "retry_rnr_exceeded_err", "to_retransmits", "dup_req",
          "retrans_pkts", "requester_timeout", "RetransSegs"}},
        {"congestion",
         GTOPO_NOTE,
         {"rp_cnp_handled", "np_cnp_sent", "np_ecn_marked_roce_packets", "port_xmit_wait", "rx_cnp_pkts", "RxECNMrkd"}},
        {"port-errors",
         GTOPO_WARNING,
         {"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards",
          "local_link_integrity_errors", "excessive_buffer_overrun_errors", "rx_icrc_encapsulated", "rx_drops"}},
    };

    (void)state;
    for (size_t row = 0; row < sizeof table / sizeof *table; row++)
        for (const char *const *name = table[row].names; *name; name++) {
            struct gtopo_port_counter rise = {.rise = 4711};
            struct judged judged;
            char words[80];

            snprintf(rise.name, sizeof rise.name, "%s", *name);
            judged = judge(NULL, 0, &rise, 1, 0, 0);
            assert_int_equal(judged.count, 1);
            assert_string_equal(judged.findings[0].rule, table[row].rule);
            assert_int_equal(judged.findings[0].severity, table[row].severity);
            snprintf(words, sizeof words, "4711 %s (", *name);
            assert_contains(judged.findings[0].text, words);
            assert_contains(judged.findings[0].text, TO);
        }
}

static void test_both_ends_and_all_rules(void **state)
{
    static const struct gtopo_port_counter from[] = {
        {"packet_seq_err", 3}, {"local_ack_timeout_err", 2}, {"rp_cnp_handled", 9}};
    static const struct gtopo_port_counter to[] = {{"out_of_sequence", 12}, {"symbol_error", 1}, {"np_cnp_sent", 9}};
    struct judged judged = judge(from, 3, to, 3, 0, 1000);
    const struct gtopo_probe_finding *finding;

    (void)state;
    assert_int_equal(judged.count, 5);
    finding = find(&judged, "retransmits", FROM);
    assert_non_null(finding);
    assert_contains(finding->text, "; 3 packet_seq_err (");
    assert_contains(finding->text, "; 2 local_ack_timeout_err (");
    finding = find(&judged, "retransmits", TO);
    assert_non_null(finding);
    assert_contains(finding->text, "; 12 out_of_sequence (packets out of sequence)");
    assert_null(strstr(finding->text, "symbol_error"));
    assert_non_null(find(&judged, "port-errors", TO));
    assert_null(find(&judged, "port-errors", FROM));
    assert_non_null(find(&judged, "congestion", FROM));
    assert_non_null(find(&judged, "congestion", TO));
    /* one port, read by both ends: once is enough */
    judged = judge(from, 3, from, 3, 1, 1000);
    assert_int_equal(judged.count, 2);
}

static void test_stayed_in_adapter(void **state)
{
    static const struct gtopo_port_counter none[] = {{"port_rcv_data", 0}, {"port_xmit_data", 40}};
    static const struct gtopo_port_counter sent[] = {{"port_rcv_data", 40}, {"port_xmit_data", 500}};
    static const struct gtopo_port_counter received[] = {{"port_rcv_data", 500}, {"port_xmit_data", 40}};
    static const struct gtopo_port_counter packets[] = {{"sent_pkts", 3}, {"tx_bytes", 1}};
    struct judged judged = judge(none, 2, none, 2, 1, 1000);

    (void)state;
    assert_int_equal(judged.count, 1);
    assert_string_equal(judged.findings[0].rule, "stayed-in-adapter");
    assert_int_equal(judged.findings[0].severity, GTOPO_NOTE);
    assert_contains(judged.findings[0].text, FROM);
    assert_contains(judged.findings[0].text, "by 40 bytes");
    assert_contains(judged.findings[0].text, "1000 bytes were sent");
    judged = judge(none, 2, none, 2, 0, 1000); /* two ports: once, and louder */
    assert_int_equal(judged.count, 1);
    assert_int_equal(judged.findings[0].severity, GTOPO_WARNING);
    judged = judge(sent, 2, none, 2, 0, 1000); /* it left one port and did not arrive at the other */
    assert_int_equal(judged.count, 1);
    assert_contains(judged.findings[0].text, TO);
    judged = judge(packets, 2, none, 2, 0, 1000); /* one end has no data counters */
    assert_int_equal(judged.count, 1);
    assert_contains(judged.findings[0].text, TO);
    assert_int_equal(judge(sent, 2, received, 2, 0, 1000).count, 0);
    assert_int_equal(judge(received, 2, sent, 2, 0, 1000).count, 0); /* a read */
    assert_int_equal(judge(sent, 2, received, 2, 0, 1001).count, 1); /* less than half */
    assert_int_equal(judge(sent, 2, sent, 2, 1, UINT64_MAX).count, 1);
    assert_int_equal(judge(sent, 2, none, 2, 1, 1000).count, 0); /* of one port, those of `from` count */
    assert_int_equal(judge(none, 2, none, 2, 0, 0).count, 0);    /* nobody knows how much was sent */
    assert_int_equal(judge(packets, 2, packets, 2, 0, 1000).count, 0);
}

/* A long list ends in a number, and the room for findings is kept. */
static void test_bounds(void **state)
{
    static const char *const names[] = {"local_ack_timeout_err",
                                        "out_of_sequence",
                                        "packet_seq_err",
                                        "implied_nak_seq_err",
                                        "duplicate_request",
                                        "roce_adp_retrans",
                                        "roce_adp_retrans_to",
                                        "roce_slow_restart",
                                        "rnr_nak_retry_err",
                                        "out_of_buffer",
                                        "req_transport_retries_exceeded",
                                        "req_rnr_retries_exceeded",
                                        "out_of_seq_request",
                                        "rcvd_seq_err"};
    struct gtopo_port_counter rises[14] = {{.rise = 0}};
    struct gtopo_counters_end end = {NULL, rises, 14}, none = {"", NULL, 0};
    struct gtopo_probe_finding findings[GTOPO_PROBE_FINDINGS_MAX + 1];
    char name[2000], words[64], *more;
    uint32_t count = 0, listed = 0;

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    end.name = name;
    for (int i = 0; i < 14; i++) {
        snprintf(rises[i].name, sizeof rises[i].name, "%s", names[i]);
        rises[i].rise = UINT64_MAX;
    }
    memset(findings, 0x5a, sizeof findings);
    gtopo_counters_judge(&end, &none, 0, 0, findings, &count);
    assert_int_equal(count, 1);
    assert_in_range(strlen(findings[0].text), 350, sizeof findings[0].text - 1);
    for (char *p = findings[0].text; (p = strstr(p, "; 18446744073709551615 ")); p++)
        listed++;
    for (uint32_t i = 0; i < 14; i++) { /* the first ones */
        snprintf(words, sizeof words, " %s (", names[i]);
        assert_int_equal(strstr(findings[0].text, words) != NULL, i < listed);
    }
    more = strstr(findings[0].text, "; and ");
    assert_non_null(more);
    assert_int_equal(atoi(more + 6), 14 - listed);
    assert_contains(more, " more");
    for (int i = 0; i < 30; i++)
        gtopo_counters_judge(&end, &none, 0, 0, findings, &count);
    assert_int_equal(count, GTOPO_PROBE_FINDINGS_MAX);
    for (size_t i = 0; i < sizeof findings[0]; i++)
        assert_int_equal(((unsigned char *)&findings[GTOPO_PROBE_FINDINGS_MAX])[i], 0x5a);
}

/* From the folders to the finding. */
static void test_whole_way(void **state)
{
    struct fake *m = fake_empty();
    struct gtopo_counters before, after;
    struct gtopo_port_counter rises[GTOPO_COUNTERS_MAX];
    struct judged judged;
    uint32_t count;

    (void)state;
    fake_write(m, "1000", PORT "counters/port_xmit_data");
    fake_write(m, "1000", PORT "counters/port_rcv_data");
    fake_write(m, "4", PORT "hw_counters/out_of_sequence");
    gtopo_counters_read(m->root, "mlx5_0", 1, &before);
    fake_write(m, "1010", PORT "counters/port_xmit_data");
    fake_write(m, "6", PORT "hw_counters/out_of_sequence");
    gtopo_counters_read(m->root, "mlx5_0", 1, &after);
    gtopo_counters_rise(&before, &after, rises, &count);
    assert_int_equal(count, 3);
    judged = judge(rises, count, rises, count, 1, 65536);
    assert_int_equal(judged.count, 2);
    assert_contains(find(&judged, "stayed-in-adapter", FROM)->text, "by 40 bytes while 65536 bytes");
    assert_contains(find(&judged, "retransmits", FROM)->text, "; 2 out_of_sequence (");
    fake_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_all_folders),
        cmocka_unit_test(test_devices_are_links),
        cmocka_unit_test(test_no_folder_is_no_error),
        cmocka_unit_test(test_hostile_files),
        cmocka_unit_test(test_more_than_fit),
        cmocka_unit_test(test_folder_loop),
        cmocka_unit_test(test_rise),
        cmocka_unit_test(test_counters_that_come_and_go),
        cmocka_unit_test(test_more_rises_than_fit),
        cmocka_unit_test(test_clean_run),
        cmocka_unit_test(test_each_counter),
        cmocka_unit_test(test_both_ends_and_all_rules),
        cmocka_unit_test(test_stayed_in_adapter),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_whole_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
