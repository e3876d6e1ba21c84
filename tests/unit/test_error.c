/* SPDX-License-Identifier: Apache-2.0 */
/* Failures in words, and cancellation. */
#include "build.h"
#include "lib/text.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>

static const struct {
    int status;
    const char *name;
} statuses[] = {
    {GTOPO_OK, "ok"},
    {GTOPO_EUSAGE, "usage"},
    {GTOPO_ENOTFOUND, "notfound"},
    {GTOPO_EFORMAT, "format"},
    {GTOPO_EVERSION, "version"},
    {GTOPO_EIO, "io"},
    {GTOPO_ENOMEM, "nomem"},
    {GTOPO_EMISSING, "missing"},
    {GTOPO_ESYSTEM, "system"},
    {GTOPO_EDEVICE, "device"},
    {GTOPO_ELINKDOWN, "linkdown"},
    {GTOPO_EPEER, "peer"},
    {GTOPO_EPROTOCOL, "protocol"},
    {GTOPO_ETIMEOUT, "timeout"},
    {GTOPO_EDATA, "data"},
    {GTOPO_ECANCELLED, "cancelled"},
    {GTOPO_EINTERNAL, "internal"},
};

static void every_status_has_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_string_equal(gtopo_status_name(statuses[i].status), statuses[i].name);
    assert_string_equal(gtopo_status_name(1), "unknown");
    assert_string_equal(gtopo_status_name(-1), "unknown");
    assert_string_equal(gtopo_status_name(INT32_MIN), "unknown");
}

/* They are part of the interface: scripts and other languages hold them as numbers. */
static void statuses_keep_their_values(void **state)
{
    (void)state;
    assert_int_equal(GTOPO_EUSAGE, -256);
    assert_int_equal(GTOPO_EFORMAT, -272);
    assert_int_equal(GTOPO_ENOMEM, -288);
    assert_int_equal(GTOPO_EDEVICE, -304);
    assert_int_equal(GTOPO_EPEER, -320);
    assert_int_equal(GTOPO_ECANCELLED, -336);
}

static void version_is_that_of_the_header(void **state)
{
    char expected[32];

    (void)state;
    snprintf(expected, sizeof expected, "%d.%d.%d", GTOPO_VERSION_MAJOR, GTOPO_VERSION_MINOR, GTOPO_VERSION_PATCH);
    assert_string_equal(gtopo_version(), expected);
}

static void fail_fills_the_error_and_returns_the_code(void **state)
{
    struct gtopo_error error;

    (void)state;
    assert_int_equal(gtopo_fail(&error, GTOPO_EIO, "try again", "%s: line %d", "x.json", 7), GTOPO_EIO);
    assert_int_equal(error.code, GTOPO_EIO);
    assert_string_equal(error.message, "x.json: line 7");
    assert_string_equal(error.hint, "try again");
    gtopo_fail(&error, GTOPO_EIO, NULL, "no hint");
    assert_string_equal(error.hint, "");
}

static void fail_accepts_no_error(void **state)
{
    (void)state;
    assert_int_equal(gtopo_fail(NULL, GTOPO_EPEER, "hint", "%s", "text"), GTOPO_EPEER);
}

static void text_that_does_not_fit_is_cut(void **state)
{
    char text[2000];
    struct gtopo_error error;

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    gtopo_fail(&error, GTOPO_EIO, text, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_int_equal(strlen(error.hint), sizeof error.hint - 1);
}

/* A message may go on a map as a finding's text, which has to be UTF-8. */
static void a_cut_text_is_still_utf8(void **state)
{
    struct gtopo_error error;

    (void)state;
    for (size_t before = 500; before < 512; before++) {
        gtopo_fail(&error, GTOPO_EIO, NULL, "%*s%s", (int)before, "", "ééééééééé→→→→→𝄞𝄞𝄞");
        assert_true(gtopo_text_is_clean(error.message));
        assert_true(strlen(error.message) >= sizeof error.message - 4);
    }
}

/* A file or a peer could otherwise write to the terminal of whoever reads the message. */
static void a_message_holds_no_control_characters(void **state)
{
    struct gtopo_error error;

    (void)state;
    gtopo_fail(&error, GTOPO_EIO, "a\nb", "key \"%s\"", "\x1b[2J\xff\xc2\x9b");
    assert_true(gtopo_text_is_clean(error.message));
    assert_true(gtopo_text_is_clean(error.hint));
    assert_contains(error.message, "key \"?[2J");
}

static int readable(const struct gtopo_cancel *cancel)
{
    struct pollfd wait = {.fd = gtopo_cancel_fd(cancel), .events = POLLIN};

    return poll(&wait, 1, 0) == 1;
}

static void cancel_trips_once_and_stays(void **state)
{
    struct gtopo_cancel *cancel = gtopo_cancel_new();

    (void)state;
    assert_non_null(cancel);
    assert_false(gtopo_cancel_tripped(cancel));
    assert_false(readable(cancel));
    gtopo_cancel_trip(cancel);
    gtopo_cancel_trip(cancel);
    assert_int_equal(gtopo_cancel_tripped(cancel), 1);
    assert_true(readable(cancel));
    assert_true(readable(cancel));
    gtopo_cancel_free(cancel);
}

static void no_cancel_is_never_tripped(void **state)
{
    (void)state;
    assert_int_equal(gtopo_cancel_tripped(NULL), 0);
    assert_int_equal(gtopo_cancel_fd(NULL), -1);
    gtopo_cancel_free(NULL);
}

static struct gtopo_cancel *of_handler;

static void on_signal(int number)
{
    (void)number;
    gtopo_cancel_trip(of_handler);
}

static void cancel_trips_in_a_signal_handler_and_keeps_errno(void **state)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    (void)state;
    of_handler = gtopo_cancel_new();
    sigaction(SIGUSR1, &action, &before);
    errno = ENOENT;
    raise(SIGUSR1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(gtopo_cancel_tripped(of_handler), 1);
    sigaction(SIGUSR1, &before, NULL);
    gtopo_cancel_free(of_handler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(statuses_keep_their_values),
        cmocka_unit_test(version_is_that_of_the_header),
        cmocka_unit_test(fail_fills_the_error_and_returns_the_code),
        cmocka_unit_test(fail_accepts_no_error),
        cmocka_unit_test(text_that_does_not_fit_is_cut),
        cmocka_unit_test(a_cut_text_is_still_utf8),
        cmocka_unit_test(a_message_holds_no_control_characters),
        cmocka_unit_test(cancel_trips_once_and_stays),
        cmocka_unit_test(no_cancel_is_never_tripped),
        cmocka_unit_test(cancel_trips_in_a_signal_handler_and_keeps_errno),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
