/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C, and the line on a terminal that says what is going on. */
#include "cli.h"
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

/* A signal handler reaches nothing but what is static. */
static struct gtopo_cancel *interrupt;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof signals / sizeof *signals)

static void on_signal(int number)
{
    /* The second Ctrl-C does not wait for anything. */
    if (gtopo_cancel_tripped(interrupt))
        _exit(128 + number);
    gtopo_cancel_trip(interrupt);
}

int cli_catch_signals(struct gtopo_cancel **cancel, struct gtopo_error *error)
{
    struct sigaction action = {.sa_handler = on_signal}, former;

    interrupt = gtopo_cancel_new();
    if (!interrupt)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i] != SIGHUP || sigaction(SIGHUP, NULL, &former) || former.sa_handler != SIG_IGN) /* nohup's */
            sigaction(signals[i], &action, NULL);
    *cancel = interrupt;
    return 0;
}

void cli_release_signals(void)
{
    struct sigaction is;

    for (size_t i = 0; i < SIGNALS; i++)
        if (!sigaction(signals[i], NULL, &is) && is.sa_handler == on_signal)
            signal(signals[i], SIG_DFL);
    gtopo_cancel_free(interrupt);
    interrupt = NULL;
}

void cli_progress_init(struct cli_progress *progress)
{
    progress->is_terminal = isatty(STDERR_FILENO);
    progress->width = 0;
}

void cli_progress_show(struct cli_progress *progress, const char *format, ...)
{
    va_list arguments;
    int length;

    if (!progress->is_terminal)
        return;
    va_start(arguments, format);
    length = vfprintf(stderr, format, arguments);
    va_end(arguments);
    progress->width = length > 0 ? (size_t)length : 0;
    fflush(stderr);
}

void cli_progress_wipe(struct cli_progress *progress)
{
    if (progress->width)
        fprintf(stderr, "\r%*s\r", (int)progress->width, "");
    progress->width = 0;
}
