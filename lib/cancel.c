/* SPDX-License-Identifier: Apache-2.0 */
/* A request to stop, as a flag to look at and a file descriptor to wait on. */
#include <gputopo/error.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gtopo_cancel {
    volatile sig_atomic_t tripped;
    int fd;
};

struct gtopo_cancel *gtopo_cancel_new(void)
{
    struct gtopo_cancel *cancel = calloc(1, sizeof *cancel);

    if (!cancel)
        return NULL;
    cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cancel->fd < 0) {
        free(cancel);
        return NULL;
    }
    return cancel;
}

void gtopo_cancel_free(struct gtopo_cancel *cancel)
{
    if (!cancel)
        return;
    close(cancel->fd);
    free(cancel);
}

void gtopo_cancel_trip(struct gtopo_cancel *cancel)
{
    int saved = errno; /* a signal handler must leave it as it was */
    uint64_t one = 1;
    ssize_t written;

    cancel->tripped = 1;
    written = write(cancel->fd, &one, sizeof one);
    (void)written; /* a full counter is readable already */
    errno = saved;
}

int gtopo_cancel_tripped(const struct gtopo_cancel *cancel)
{
    return cancel && cancel->tripped;
}

int gtopo_cancel_fd(const struct gtopo_cancel *cancel)
{
    return cancel ? cancel->fd : -1;
}
