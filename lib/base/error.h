/* Status out, message beside it. */
#ifndef K3_BASE_ERROR_H
#define K3_BASE_ERROR_H

#include <k3/k3.h>

/* Writes one line into err (may be NULL; cut to fit, control bytes become '?') and returns status. */
k3_status k3_fail(k3_error *err, k3_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before the text already in err, and returns err's status (or `status` if err is NULL). */
k3_status k3_fail_prefix(k3_error *err, k3_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
