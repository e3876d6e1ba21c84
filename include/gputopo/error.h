/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Errors, cancellation and the library's version.
 *
 * A function that can fail returns 0 or a negative GTOPO_E… value and describes the failure in its last
 * parameter. The library never prints, never exits and installs no signal handler.
 */
#ifndef GPUTOPO_ERROR_H
#define GPUTOPO_ERROR_H

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GTOPO_API __attribute__((visibility("default")))
#define GTOPO_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define GTOPO_API
#define GTOPO_PRINTF(text, first)
#endif

#define GTOPO_VERSION_MAJOR 0
#define GTOPO_VERSION_MINOR 1
#define GTOPO_VERSION_PATCH 0

/** The library's version at run time, for example "0.1.0". */
GTOPO_API const char *gtopo_version(void);

/** What a failing function returns. The values are grouped by what is at fault and never change. */
enum gtopo_status {
    GTOPO_OK = 0,
    /* the caller */
    GTOPO_EUSAGE = -256,    /**< an argument or an option makes no sense */
    GTOPO_ENOTFOUND = -257, /**< no object of this address in the map */
    /* a file */
    GTOPO_EFORMAT = -272,  /**< the file is not what it should be: truncated, wrong type, out of range */
    GTOPO_EVERSION = -273, /**< the file or the peer is of a version that this library does not read */
    GTOPO_EIO = -274,      /**< the operating system refused to read or write */
    /* the host */
    GTOPO_ENOMEM = -288,
    GTOPO_EMISSING = -289, /**< hardware, driver, module or program that is needed is not there */
    GTOPO_ESYSTEM = -290,  /**< the operating system refused a resource: memory lock, process, file descriptor */
    /* a device or a link */
    GTOPO_EDEVICE = -304,   /**< a device refused or failed */
    GTOPO_ELINKDOWN = -305, /**< a port has no link */
    /* a peer */
    GTOPO_EPEER = -320,     /**< the other side died or closed the stream */
    GTOPO_EPROTOCOL = -321, /**< the other side sent what the protocol does not allow */
    GTOPO_ETIMEOUT = -322,  /**< no progress before the deadline */
    GTOPO_EDATA = -323,     /**< data arrived that is not what was sent */
    /* neither */
    GTOPO_ECANCELLED = -336,
    GTOPO_EINTERNAL = -337, /**< a defect of this library: please report it */
};

/** A failure, in words. The caller owns it; it holds no pointer and needs no release. */
struct gtopo_error {
    int code;          /**< enum gtopo_status */
    char message[512]; /**< one sentence: what failed, on what (device, file:line, host) */
    char hint[256];    /**< the next thing to try, or "" */
};

/** The constant's name without its prefix, in lower case: "format", "linkdown"; "ok" for 0. Never NULL. */
GTOPO_API const char *gtopo_status_name(int status);

/**
 * Fill @p error (NULL is accepted) and return @p code, so that a caller can write `return gtopo_fail(…)`.
 * Text that does not fit is cut. @p hint may be NULL.
 */
GTOPO_API int gtopo_fail(struct gtopo_error *error, int code, const char *hint, const char *format, ...)
    GTOPO_PRINTF(4, 5);

/** The same, for a va_list. */
GTOPO_API int gtopo_vfail(struct gtopo_error *error, int code, const char *hint, const char *format, va_list arguments)
    GTOPO_PRINTF(4, 0);

/** A request to stop long work early, keeping what it has. */
struct gtopo_cancel;

/** NULL when memory is short. Release with gtopo_cancel_free(). */
GTOPO_API struct gtopo_cancel *gtopo_cancel_new(void);
/** NULL is accepted. */
GTOPO_API void gtopo_cancel_free(struct gtopo_cancel *cancel);
/** Ask for the stop. Safe in a signal handler and from any thread. */
GTOPO_API void gtopo_cancel_trip(struct gtopo_cancel *cancel);
/** 1 when the stop was asked for, else 0; 0 for NULL. */
GTOPO_API int gtopo_cancel_tripped(const struct gtopo_cancel *cancel);
/** A file descriptor that becomes readable when the stop is asked for, to wait on with poll(); -1 for NULL. */
GTOPO_API int gtopo_cancel_fd(const struct gtopo_cancel *cancel);

#ifdef __cplusplus
}
#endif
#endif
