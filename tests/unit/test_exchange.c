/* SPDX-License-Identifier: Apache-2.0 */
/* A probe on two agents that are made up: what the coordinator makes of what they say at the end, or do not say. */
#include "bench/clock.h"
#include "bench/exchange.h"
#include "bench/protocol.h"
#include "bench/result.h"
#include "lib/text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum end { FINE, CLOSES, STAYS_SILENT, HAS_WRONG_DATA, KEEPS_FAILING, KEEPS_RUNNING };

/* What the responder does when it is asked to stop, and what it measured. */
struct script {
    enum end end;
    double low, median, high;
    int is_cut; /* the run is ended early */
};

/* ---- an agent ---- */

static void say(const struct gtopo_stream *stream, json_t *message)
{
    gtopo_message_send(stream, message, gtopo_clock_ns() + UINT64_C(1000000000), NULL);
}

/* The same until nobody hears it. */
static void keep_saying(const struct gtopo_stream *stream, json_t *message)
{
    while (!gtopo_message_send(stream, json_incref(message), gtopo_clock_ns() + UINT64_C(1000000000), NULL))
        continue;
    json_decref(message);
}

static void say_result(const struct gtopo_stream *stream, const char *stopped_by)
{
    struct gtopo_probe_result *result = calloc(1, sizeof *result);

    result->median = 100e9;
    result->low = 99.5e9;
    result->high = 100.5e9;
    snprintf(result->stopped_by, sizeof result->stopped_by, "%s", stopped_by);
    say(stream, gtopo_result_json(result));
    free(result);
}

static void end_agent(const struct gtopo_stream *stream, const struct script *script, int initiator)
{
    struct gtopo_report report = {.reach.way = "host"};
    struct gtopo_error wrong;

    if (initiator) {
        say(stream, gtopo_report_json(&report));
        return;
    }
    report.low = script->low;
    report.median = script->median;
    report.high = script->high;
    switch (script->end) {
    case HAS_WRONG_DATA:
        gtopo_fail(&wrong, GTOPO_EDATA, NULL, "a byte is wrong");
        say(stream, gtopo_failure_json(&wrong));
        break;
    case CLOSES:
        _exit(0);
    case STAYS_SILENT:
        return;
    case KEEPS_FAILING:
        gtopo_fail(&wrong, GTOPO_EDEVICE, NULL, "it failed");
        keep_saying(stream, gtopo_failure_json(&wrong));
        return;
    case FINE:
    case KEEPS_RUNNING:
        break;
    }
    say(stream, gtopo_report_json(&report));
}

static void answer(const struct gtopo_stream *stream, const struct script *script, int initiator, const char *asked)
{
    if (!strcmp(asked, "prepare"))
        say(stream, json_pack("{ss, ss}", "type", "prepared", "address", ""));
    else if (!strcmp(asked, "go"))
        say(stream, json_pack("{ss}", "type", "connected"));
    else if (script->end == KEEPS_RUNNING && initiator && (!strcmp(asked, "cancel") || !strcmp(asked, "run")))
        keep_saying(stream, json_pack("{ss}", "type", "running"));
    else if (!strcmp(asked, "run") && initiator && !script->is_cut)
        say_result(stream, "precision");
    else if (!strcmp(asked, "cancel"))
        say_result(stream, "cancelled");
    else if (!strcmp(asked, "stop"))
        end_agent(stream, script, initiator);
}

static pid_t start_agent(const struct script *script, int initiator, struct gtopo_stream *stream)
{
    struct gtopo_stream own;
    json_t *message;
    int fds[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gtopo_stream_prepare_fd(fds[i], NULL), 0);
    *stream = (struct gtopo_stream){fds[0], fds[0], initiator ? "a" : "b"};
    own = (struct gtopo_stream){fds[1], fds[1], "the coordinator"};
    pid = fork();
    assert_true(pid >= 0);
    if (pid) {
        close(fds[1]);
        return pid;
    }
    close(fds[0]);
    while (!gtopo_message_receive(&own, UINT64_MAX, NULL, &message, NULL)) {
        answer(&own, script, initiator, gtopo_message_type(message));
        json_decref(message);
    }
    _exit(0);
}

/* ---- the coordinator ---- */

static int exchange(const struct script *script, int two_way, struct gtopo_probe_result *result,
                    struct gtopo_error *error)
{
    struct gtopo_stream streams[2];
    struct gtopo_exchange e = {.initiator = &streams[0], .responder = &streams[1], .end_ns = UINT64_MAX};
    struct gtopo_probe_options options;
    pid_t pids[2];
    int status, usable;

    gtopo_probe_options_init(&options);
    options.from.device = options.to.device = "mlx5_0";
    options.deadline_s = 0.1;
    options.seconds = 0.2;
    options.message_B = 4096;
    options.two_way = two_way;
    for (int i = 0; i < 2; i++)
        pids[i] = start_agent(script, !i, &streams[i]);
    if (script->is_cut)
        e.end_ns = gtopo_clock_ns() + UINT64_C(300000000);
    memset(error, 0, sizeof *error);
    status = gtopo_exchange_run(&e, &options, result, &usable, error);
    for (int i = 0; i < 2; i++) { /* closing is not enough: the second agent has the first one's stream too */
        shutdown(streams[i].input_fd, SHUT_RDWR);
        close(streams[i].input_fd);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    return status;
}

static struct gtopo_probe_result result;
static struct gtopo_error error;

static void a_run_that_both_ends_confirm_is_verified(void **state)
{
    (void)state;
    assert_int_equal(exchange(&(struct script){FINE, 0, 0, 0, 0}, 0, &result, &error), 0);
    assert_true(result.verified);
    assert_int_equal(result.finding_count, 0);
    assert_string_equal(result.stopped_by, "precision");
}

static void an_end_that_is_lost_before_it_confirms_fails_the_probe(void **state)
{
    (void)state;
    assert_int_equal(exchange(&(struct script){CLOSES, 0, 0, 0, 0}, 0, &result, &error), GTOPO_EPEER);
    assert_int_equal(error.code, GTOPO_EPEER);
    assert_non_null(strstr(error.message, "b"));
    assert_false(result.verified);
    assert_int_equal(exchange(&(struct script){STAYS_SILENT, 0, 0, 0, 0}, 0, &result, &error), GTOPO_ETIMEOUT);
    assert_false(result.verified);
}

static void an_interrupted_run_keeps_its_figures_and_says_that_nobody_confirmed(void **state)
{
    static const enum end ends[] = {CLOSES, STAYS_SILENT};

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        assert_int_equal(exchange(&(struct script){ends[i], 0, 0, 0, 1}, 0, &result, &error), 0);
        assert_true(result.median > 0);
        assert_false(result.verified);
        assert_int_equal(result.finding_count, 1);
        assert_string_equal(result.findings[0].rule, "not-verified");
        assert_int_equal(result.findings[0].severity, GTOPO_WARNING);
    }
    assert_int_equal(exchange(&(struct script){FINE, 0, 0, 0, 1}, 0, &result, &error), 0);
    assert_true(result.verified);
    assert_int_equal(result.finding_count, 0);
}

static void wrong_data_is_told_of_any_run(void **state)
{
    (void)state;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        assert_int_equal(exchange(&(struct script){HAS_WRONG_DATA, 0, 0, 0, is_cut}, 0, &result, &error), GTOPO_EDATA);
        assert_non_null(strstr(error.message, "a byte is wrong"));
    }
}

static void one_direction_is_never_taken_for_both(void **state)
{
    (void)state;
    assert_int_equal(exchange(&(struct script){FINE, 0, 0, 0, 0}, 1, &result, &error), GTOPO_EPEER);
    assert_int_equal(exchange(&(struct script){STAYS_SILENT, 0, 0, 0, 1}, 1, &result, &error), GTOPO_ECANCELLED);
}

static void precision_is_that_of_the_sum(void **state)
{
    (void)state;
    assert_int_equal(exchange(&(struct script){FINE, 99.5e9, 100e9, 100.5e9, 0}, 1, &result, &error), 0);
    assert_string_equal(result.stopped_by, "precision");
    assert_true(result.forward == 100e9 && result.reverse == 100e9 && result.median == 200e9);
    assert_int_equal(exchange(&(struct script){FINE, 80e9, 100e9, 120e9, 0}, 1, &result, &error), 0);
    assert_string_equal(result.stopped_by, "one-direction");
}

static void an_end_that_never_stops_talking_has_a_deadline_too(void **state)
{
    uint64_t start_ns = gtopo_clock_ns();

    (void)state;
    assert_int_equal(exchange(&(struct script){KEEPS_FAILING, 0, 0, 0, 0}, 0, &result, &error), GTOPO_EDEVICE);
    assert_non_null(strstr(error.message, "it failed"));
    assert_int_equal(exchange(&(struct script){KEEPS_RUNNING, 0, 0, 0, 1}, 0, &result, &error), GTOPO_ECANCELLED);
    assert_int_equal(exchange(&(struct script){KEEPS_RUNNING, 0, 0, 0, 0}, 0, &result, &error), GTOPO_ETIMEOUT);
    assert_non_null(strstr(error.message, "a says that it runs, longer than a run can take"));
    assert_true(gtopo_clock_ns() - start_ns < UINT64_C(10000000000));
}

static void what_an_agent_says_is_fit_for_a_terminal(void **state)
{
    struct gtopo_report told = {.reach.mapping = "\r\n\033[2J", .counter_count = 1, .counters = {{"red", 1}}}, report;
    json_t *message = gtopo_report_json(&told);

    (void)state;
    assert_int_equal(gtopo_report_read(message, &report, &error), 0);
    assert_string_equal(report.reach.mapping, "???[2J");
    json_decref(message);
    told.description[0] = (char)0xc3; /* as a driver gave it */
    message = gtopo_report_json(&told);
    assert_non_null(message);
    /* longer than its place, which ends inside a character */
    json_object_set_new(message, "mapping",
                        json_string("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
                                    "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
                                    "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"));
    assert_int_equal(gtopo_report_read(message, &report, &error), 0);
    assert_true(gtopo_text_is_clean(report.reach.mapping));
    json_object_set_new(message, "counters", json_pack("{si}", "\033[31mred", 1));
    assert_int_equal(gtopo_report_read(message, &report, &error), GTOPO_EPROTOCOL);
    json_decref(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_both_ends_confirm_is_verified),
        cmocka_unit_test(an_end_that_is_lost_before_it_confirms_fails_the_probe),
        cmocka_unit_test(an_interrupted_run_keeps_its_figures_and_says_that_nobody_confirmed),
        cmocka_unit_test(wrong_data_is_told_of_any_run),
        cmocka_unit_test(one_direction_is_never_taken_for_both),
        cmocka_unit_test(precision_is_that_of_the_sum),
        cmocka_unit_test(an_end_that_never_stops_talking_has_a_deadline_too),
        cmocka_unit_test(what_an_agent_says_is_fit_for_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
