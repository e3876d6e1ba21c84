/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between a coordinator and its agents: JSON objects in frames, each led by its length in four bytes,
 * most significant first. The stream is whatever joins the two: a socket pair, the standard streams of ssh.
 *
 *   coordinator             agent
 *   hello                   hello                 protocol and library version; a mismatch ends it
 *   discover (a name)       map | failed          the host's map, under that name
 *   prepare                 prepared | failed     memory and endpoint are there; carries the endpoint's address
 *   go      (the peer's     connected | failed
 *            address)
 *   run                     {running} result |    the initiator runs, says so twice a second, then answers; the
 * responder failed                serves, and answers only when that fails cancel                  - the initiator ends
 * its run early and answers with what it has stop                    [failed] stopped      both check their data and
 * close; with what each has to report bye                     -                     the agent ends, as it does when the
 * stream closes
 */
#ifndef GTOPO_BENCH_PROTOCOL_H
#define GTOPO_BENCH_PROTOCOL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <gputopo/error.h>

#define GTOPO_PROTOCOL_VERSION 4
#define GTOPO_FRAME_MAX_B ((size_t)16 << 20)

/* A stream and who is at its other end, for messages. */
struct gtopo_stream {
    int input_fd, output_fd; /* both non-blocking */
    const char *peer;
};

/* Make a descriptor non-blocking. */
int gtopo_stream_prepare_fd(int fd, struct gtopo_error *error);

/*
 * Send a message, which is released in every case; NULL stands for memory that was short. deadline_ns is a time of
 * gtopo_clock_ns(). Errors: GTOPO_EPEER, GTOPO_ETIMEOUT, GTOPO_ENOMEM.
 */
int gtopo_message_send(const struct gtopo_stream *stream, json_t *message, uint64_t deadline_ns,
                       struct gtopo_error *error);

/*
 * Wait for a message: an object with a text "type". It is the caller's to release. UINT64_MAX waits for ever. When
 * cancel is tripped first: GTOPO_ECANCELLED. Further errors: GTOPO_EPEER (closed), GTOPO_ETIMEOUT, GTOPO_EPROTOCOL.
 */
int gtopo_message_receive(const struct gtopo_stream *stream, uint64_t deadline_ns, const struct gtopo_cancel *cancel,
                          json_t **message, struct gtopo_error *error);

/*
 * Wait until one of two streams (either may be NULL) has something to read, or was closed; *which says which. Errors:
 * GTOPO_ETIMEOUT, GTOPO_ECANCELLED, GTOPO_ESYSTEM.
 */
int gtopo_streams_wait(const struct gtopo_stream *const streams[2], uint64_t deadline_ns,
                       const struct gtopo_cancel *cancel, int *which, struct gtopo_error *error);

/* "" when there is none. */
const char *gtopo_message_type(const json_t *message);

/*
 * Typed members of a message, with their bounds. Errors: GTOPO_EPROTOCOL, naming the key.
 */
int gtopo_message_text(const json_t *message, const char *key, const char **text, struct gtopo_error *error);
int gtopo_message_number(const json_t *message, const char *key, uint64_t highest, uint64_t *number,
                         struct gtopo_error *error);
int gtopo_message_real(const json_t *message, const char *key, double lowest, double highest, double *number,
                       struct gtopo_error *error);
/* Bytes as hexadecimal text; *size holds the room. */
int gtopo_message_bytes(const json_t *message, const char *key, void *data, size_t *size, struct gtopo_error *error);
/* The text for gtopo_message_bytes(): a JSON string, or NULL. */
json_t *gtopo_bytes_json(const void *data, size_t size);

/* A failure as a message, and back: the sender's message and hint, and its code where that says something of the probe,
 * else GTOPO_EPEER. */
json_t *gtopo_failure_json(const struct gtopo_error *error);
int gtopo_failure_read(const json_t *message, const char *peer, struct gtopo_error *error);

#define GTOPO_MACHINE_MAX 64
#define GTOPO_HELLO_DEADLINE_NS UINT64_C(10000000000) /* for whoever greets to be answered */
/* hello in both directions: send ours, take theirs. `machine`, unless NULL, is given what tells the other side's
 * machine from others. Errors: GTOPO_EVERSION, and those of sending and receiving. */
int gtopo_hello(const struct gtopo_stream *stream, uint64_t deadline_ns, const struct gtopo_cancel *cancel,
                char machine[GTOPO_MACHINE_MAX], struct gtopo_error *error);
/* Answer a hello that came later, from one who uses the stream anew. */
int gtopo_hello_answer(const struct gtopo_stream *stream, const json_t *hello, uint64_t deadline_ns,
                       struct gtopo_error *error);

#endif
