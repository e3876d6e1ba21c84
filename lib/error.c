/* SPDX-License-Identifier: Apache-2.0 */
/* Failures in words. */
#include <gputopo/error.h>
#include "lib/text.h"
#include <stdio.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *gtopo_version(void)
{
    return TEXT(GTOPO_VERSION_MAJOR) "." TEXT(GTOPO_VERSION_MINOR) "." TEXT(GTOPO_VERSION_PATCH);
}

const char *gtopo_status_name(int status)
{
    switch (status) {
    case GTOPO_OK:
        return "ok";
    case GTOPO_EUSAGE:
        return "usage";
    case GTOPO_ENOTFOUND:
        return "notfound";
    case GTOPO_EFORMAT:
        return "format";
    case GTOPO_EVERSION:
        return "version";
    case GTOPO_EIO:
        return "io";
    case GTOPO_ENOMEM:
        return "nomem";
    case GTOPO_EMISSING:
        return "missing";
    case GTOPO_ESYSTEM:
        return "system";
    case GTOPO_EDEVICE:
        return "device";
    case GTOPO_ELINKDOWN:
        return "linkdown";
    case GTOPO_EPEER:
        return "peer";
    case GTOPO_EPROTOCOL:
        return "protocol";
    case GTOPO_ETIMEOUT:
        return "timeout";
    case GTOPO_EDATA:
        return "data";
    case GTOPO_ECANCELLED:
        return "cancelled";
    case GTOPO_EINTERNAL:
        return "internal";
    }
    return "unknown";
}

int gtopo_vfail(struct gtopo_error *error, int code, const char *hint, const char *format, va_list arguments)
{
    if (error) {
        error->code = code;
        vsnprintf(error->message, sizeof error->message, format, arguments);
        snprintf(error->hint, sizeof error->hint, "%s", hint ? hint : "");
        /* Parts come from files, peers and drivers, and may be cut inside a character; the message ends on a terminal
         * or, as a finding, on a map. */
        gtopo_text_clean(error->message);
        gtopo_text_clean(error->hint);
    }
    return code;
}

int gtopo_fail(struct gtopo_error *error, int code, const char *hint, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    gtopo_vfail(error, code, hint, format, arguments);
    va_end(arguments);
    return code;
}
