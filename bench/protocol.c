/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/protocol.h"
#include "bench/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int gtopo_stream_prepare_fd(int fd, struct gtopo_error *error)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        return gtopo_fail(error, GTOPO_EIO, NULL, "file descriptor %d cannot be used as a stream: %s", fd,
                          strerror(errno));
    return 0;
}

/* ---- bytes with a deadline ---- */

/* Wait until fd is ready for `events`. */
static int wait_ready(int fd, short events, const char *peer, uint64_t deadline_ns, const struct gtopo_cancel *cancel,
                      struct gtopo_error *error)
{
    struct pollfd fds[2] = {{fd, events, 0}, {gtopo_cancel_fd(cancel), POLLIN, 0}};

    for (;;) {
        uint64_t now = gtopo_clock_ns();
        uint64_t left_ms = deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 0;

        if (gtopo_cancel_tripped(cancel))
            return gtopo_fail(error, GTOPO_ECANCELLED, NULL, "cancelled while waiting for %s", peer);
        if (!left_ms)
            return gtopo_fail(error, GTOPO_ETIMEOUT, "is the process alive, or the machine overloaded?",
                              "%s did not answer in time", peer);
        if (poll(fds, 2, left_ms > 60000 ? 60000 : (int)left_ms) < 0 && errno != EINTR)
            return gtopo_fail(error, GTOPO_EPEER, NULL, "the stream to %s failed: %s", peer, strerror(errno));
        if (fds[0].revents)
            return 0;
    }
}

int gtopo_streams_wait(const struct gtopo_stream *const streams[2], uint64_t deadline_ns,
                       const struct gtopo_cancel *cancel, int *which, struct gtopo_error *error)
{
    for (;;) {
        struct pollfd fds[3] = {{streams[0] ? streams[0]->input_fd : -1, POLLIN, 0},
                                {streams[1] ? streams[1]->input_fd : -1, POLLIN, 0},
                                {gtopo_cancel_fd(cancel), POLLIN, 0}};
        uint64_t now_ns = gtopo_clock_ns();
        uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1000000 + 1 : 0;

        if (gtopo_cancel_tripped(cancel))
            return gtopo_fail(error, GTOPO_ECANCELLED, NULL, "cancelled");
        if (!left_ms)
            return gtopo_fail(error, GTOPO_ETIMEOUT, "is the process alive, or the machine overloaded?",
                              "%s did not answer in time", streams[0] ? streams[0]->peer : streams[1]->peer);
        if (poll(fds, 3, left_ms > 60000 ? 60000 : (int)left_ms) < 0 && errno != EINTR)
            return gtopo_fail(error, GTOPO_ESYSTEM, NULL, "cannot wait for a stream: %s", strerror(errno));
        for (*which = 0; *which < 2; ++*which)
            if (fds[*which].revents)
                return 0;
    }
}

static int closed(const char *peer, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EPEER, "look at what it printed before it ended", "%s closed the stream", peer);
}

/* A socket's write must not raise SIGPIPE in the program that we are part of; a pipe's cannot be told so. */
static ssize_t write_some(int fd, const char *data, size_t size)
{
    ssize_t written = send(fd, data, size, MSG_NOSIGNAL);

    return written < 0 && errno == ENOTSOCK ? write(fd, data, size) : written;
}

static int send_bytes(const struct gtopo_stream *stream, const char *data, size_t size, uint64_t deadline_ns,
                      struct gtopo_error *error)
{
    while (size) {
        ssize_t written = write_some(stream->output_fd, data, size);
        int status;

        if (written > 0) {
            data += written;
            size -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            status = wait_ready(stream->output_fd, POLLOUT, stream->peer, deadline_ns, NULL, error);
            if (status)
                return status;
        } else if (written < 0 && errno != EINTR)
            return closed(stream->peer, error);
    }
    return 0;
}

static int receive_bytes(const struct gtopo_stream *stream, char *data, size_t size, uint64_t deadline_ns,
                         const struct gtopo_cancel *cancel, struct gtopo_error *error)
{
    while (size) {
        ssize_t got = read(stream->input_fd, data, size);
        int status;

        if (got > 0) {
            data += got;
            size -= (size_t)got;
        } else if (got < 0 && errno == EAGAIN) {
            status = wait_ready(stream->input_fd, POLLIN, stream->peer, deadline_ns, cancel, error);
            if (status)
                return status;
        } else if (!got || errno != EINTR)
            return closed(stream->peer, error);
    }
    return 0;
}

/* ---- messages ---- */

int gtopo_message_send(const struct gtopo_stream *stream, json_t *message, uint64_t deadline_ns,
                       struct gtopo_error *error)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    size_t size = text ? strlen(text) : 0;
    unsigned char head[4] = {(unsigned char)(size >> 24), (unsigned char)(size >> 16), (unsigned char)(size >> 8),
                             (unsigned char)size};
    int status;

    json_decref(message);
    if (!text)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory for a message to %s", stream->peer);
    if (size > GTOPO_FRAME_MAX_B)
        status =
            gtopo_fail(error, GTOPO_EINTERNAL, NULL, "a message to %s is longer than a frame may be", stream->peer);
    else
        status = send_bytes(stream, (const char *)head, sizeof head, deadline_ns, error);
    if (!status)
        status = send_bytes(stream, text, size, deadline_ns, error);
    free(text);
    return status;
}

int gtopo_message_receive(const struct gtopo_stream *stream, uint64_t deadline_ns, const struct gtopo_cancel *cancel,
                          json_t **message, struct gtopo_error *error)
{
    unsigned char head[4];
    size_t size;
    char *text;
    int status = receive_bytes(stream, (char *)head, sizeof head, deadline_ns, cancel, error);

    if (status)
        return status;
    size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (!size || size > GTOPO_FRAME_MAX_B)
        return gtopo_fail(error, GTOPO_EPROTOCOL, "is something else writing to its standard output?",
                          "%s sent a frame of %zu bytes; 1 to %zu are allowed", stream->peer, size, GTOPO_FRAME_MAX_B);
    text = malloc(size);
    if (!text)
        return gtopo_fail(error, GTOPO_ENOMEM, NULL, "out of memory for a message of %s", stream->peer);
    status = receive_bytes(stream, text, size, deadline_ns, cancel, error);
    if (!status) {
        *message = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_string(json_object_get(*message, "type"))) {
            json_decref(*message);
            *message = NULL;
            status = gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "%s sent what is not a message", stream->peer);
        }
    }
    free(text);
    return status;
}

const char *gtopo_message_type(const json_t *message)
{
    const char *type = json_string_value(json_object_get(message, "type"));

    return type ? type : "";
}

static int bad_member(const json_t *message, const char *key, const char *expected, struct gtopo_error *error)
{
    return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "in a message \"%.40s\", \"%s\" has to be %s",
                      gtopo_message_type(message), key, expected);
}

int gtopo_message_text(const json_t *message, const char *key, const char **text, struct gtopo_error *error)
{
    *text = json_string_value(json_object_get(message, key));
    return *text ? 0 : bad_member(message, key, "a text", error);
}

int gtopo_message_number(const json_t *message, const char *key, uint64_t highest, uint64_t *number,
                         struct gtopo_error *error)
{
    const json_t *value = json_object_get(message, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > highest)
        return bad_member(message, key, "a whole number in its range", error);
    *number = (uint64_t)json_integer_value(value);
    return 0;
}

int gtopo_message_real(const json_t *message, const char *key, double lowest, double highest, double *number,
                       struct gtopo_error *error)
{
    const json_t *value = json_object_get(message, key);

    if (!json_is_number(value) || !(json_number_value(value) >= lowest && json_number_value(value) <= highest))
        return bad_member(message, key, "a number in its range", error);
    *number = json_number_value(value);
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int gtopo_message_bytes(const json_t *message, const char *key, void *data, size_t *size, struct gtopo_error *error)
{
    const char *text = json_string_value(json_object_get(message, key));
    size_t length = text ? strlen(text) : 1;
    unsigned char *bytes = data;

    if (length % 2 || length / 2 > *size)
        return bad_member(message, key, "hexadecimal bytes", error);
    for (size_t i = 0; i < length / 2; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return bad_member(message, key, "hexadecimal bytes", error);
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    *size = length / 2;
    return 0;
}

json_t *gtopo_bytes_json(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    char *text = malloc(2 * size + 1);
    json_t *json;

    if (!text)
        return NULL;
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[2 * size] = 0;
    json = json_string(text);
    free(text);
    return json;
}

json_t *gtopo_failure_json(const struct gtopo_error *error)
{
    return json_pack("{ss, si, ss, ss}", "type", "failed", "code", error->code, "message", error->message, "hint",
                     error->hint);
}

/* Of what failed on the other side, only what says something of the probe keeps its code: their memory is not ours. */
static int code_here(json_int_t theirs)
{
    switch (theirs) {
    case GTOPO_EUSAGE: /* only where the device is can be seen what it cannot do */
    case GTOPO_EMISSING:
    case GTOPO_ESYSTEM:
    case GTOPO_EDEVICE:
    case GTOPO_ELINKDOWN:
    case GTOPO_EPROTOCOL:
    case GTOPO_ETIMEOUT:
    case GTOPO_EDATA:
        return (int)theirs;
    default:
        return GTOPO_EPEER;
    }
}

int gtopo_failure_read(const json_t *message, const char *peer, struct gtopo_error *error)
{
    const json_t *code = json_object_get(message, "code");
    const char *text, *hint;

    if (gtopo_message_text(message, "message", &text, error) || gtopo_message_text(message, "hint", &hint, error))
        return GTOPO_EPROTOCOL;
    if (!json_is_integer(code) || json_integer_value(code) > GTOPO_EUSAGE || json_integer_value(code) < GTOPO_EINTERNAL)
        return bad_member(message, "code", "a status", error);
    return gtopo_fail(error, code_here(json_integer_value(code)), hint, "%s: %s", peer, text);
}

/* What tells this boot of this machine from all others, or "": containers share it, guests do not. */
static void read_machine(char machine[GTOPO_MACHINE_MAX])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!file || !fgets(machine, GTOPO_MACHINE_MAX, file))
        machine[0] = 0;
    machine[strcspn(machine, "\n")] = 0;
    if (file)
        fclose(file);
}

static json_t *hello_json(void)
{
    char machine[GTOPO_MACHINE_MAX];

    read_machine(machine);
    return json_pack("{ss, si, ss, ss}", "type", "hello", "protocol", GTOPO_PROTOCOL_VERSION, "version",
                     gtopo_version(), "machine", machine);
}

static int check_hello(const json_t *hello, const char *peer, struct gtopo_error *error)
{
    const char *version;
    uint64_t protocol;
    int status;

    if (strcmp(gtopo_message_type(hello), "hello"))
        return gtopo_fail(error, GTOPO_EPROTOCOL, NULL, "%s did not begin with hello", peer);
    if ((status = gtopo_message_number(hello, "protocol", UINT32_MAX, &protocol, error)) ||
        (status = gtopo_message_text(hello, "version", &version, error)))
        return status;
    if (protocol == GTOPO_PROTOCOL_VERSION)
        return 0;
    return gtopo_fail(error, GTOPO_EVERSION, "install the same gputopo everywhere",
                      "%s runs gputopo %.40s with protocol %llu; this is gputopo %s with protocol %d", peer, version,
                      (unsigned long long)protocol, gtopo_version(), GTOPO_PROTOCOL_VERSION);
}

int gtopo_hello(const struct gtopo_stream *stream, uint64_t deadline_ns, const struct gtopo_cancel *cancel,
                char machine[GTOPO_MACHINE_MAX], struct gtopo_error *error)
{
    const char *text;
    json_t *hello = NULL;
    int status = gtopo_message_send(stream, hello_json(), deadline_ns, error);

    if (!status)
        status = gtopo_message_receive(stream, deadline_ns, cancel, &hello, error);
    if (!status)
        status = check_hello(hello, stream->peer, error);
    if (!status && machine && !(status = gtopo_message_text(hello, "machine", &text, error)))
        snprintf(machine, GTOPO_MACHINE_MAX, "%s", text);
    json_decref(hello);
    return status;
}

int gtopo_hello_answer(const struct gtopo_stream *stream, const json_t *hello, uint64_t deadline_ns,
                       struct gtopo_error *error)
{
    int status = gtopo_message_send(stream, hello_json(), deadline_ns, error);

    return status ? status : check_hello(hello, stream->peer, error);
}
