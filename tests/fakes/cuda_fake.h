/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the stand-in for libcuda.so.1 share; cuda.c says what it is. */
#ifndef GTOPO_TESTS_FAKES_CUDA_FAKE_H
#define GTOPO_TESTS_FAKES_CUDA_FAKE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

/* Results of the driver's functions. */
#define OK 0
#define INVALID_VALUE 1
#define OUT_OF_MEMORY 2
#define NOT_INITIALIZED 3
#define NO_DEVICE 100
#define INVALID_DEVICE 101
#define INVALID_CONTEXT 201
#define PEER_ACCESS_UNSUPPORTED 217
#define INVALID_HANDLE 400
#define NOT_READY 600
#define PEER_ACCESS_ALREADY_ENABLED 704
#define PEER_ACCESS_NOT_ENABLED 705
#define CONTEXT_IS_DESTROYED 709
#define HOST_MEMORY_ALREADY_REGISTERED 712
#define HOST_MEMORY_NOT_REGISTERED 713
#define NOT_SUPPORTED 801

#define DEVICES_MAX 16
#define HOST_ALIAS (UINT64_C(1) << 62) /* added to a host address, it is the GPU's of the same memory */

struct context {               /* the primary one of each device, CUcontext */
    _Atomic unsigned retained; /* read by every call, outside the lock */
    unsigned peers;            /* bit of each device that it may reach */
    unsigned streams;
    long pending; /* operations of all its streams, those that are closed too */
};

extern pthread_mutex_t fake_lock; /* of everything */
extern pthread_cond_t fake_change;
extern struct context fake_contexts[DEVICES_MAX];

/* What each function begins with: a failure that was asked for, and what every function checks. */
enum needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };
int fake_begin(const char *name, enum needs needs);
struct context *fake_current(void);                           /* of the calling thread, or NULL */
const char *fake_option(const char *name, const char *usual); /* GTOPO_FAKE_CUDA_NAME */
long fake_number(const char *name, long usual);

/* Say what went wrong and end the process: where the real driver would hang for ever. */
void fake_die(const char *why) __attribute__((noreturn));
/* Under the lock: wait for a change; 0, or not 0 when it took so long that the real driver would hang. */
int fake_await(uint64_t since_ns);
uint64_t fake_now_ns(void);
/* Under the lock: wait until no stream of a context has work; dies when that never comes. */
void fake_idle(const struct context *context, const char *who);
unsigned fake_stream_leftovers(void); /* streams and events */

/* Where the bytes at a device address are for the fake itself; NULL when they are not of one allocation. */
uint8_t *fake_bytes(uint64_t address, size_t size, const struct context *owner);
int fake_is_pinned(const void *data, size_t size);
/* A copy, with the damage that was asked for. */
void fake_copy(uint8_t *to, const uint8_t *from, size_t size);

#endif
