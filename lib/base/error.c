#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void one_line(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

k3_status k3_fail(k3_error *err, k3_status status, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        one_line(err->text);
        err->status = status;
    }
    return status;
}

/* Puts as much of `more` behind the first `at` bytes as fits; returns the new length. */
static size_t append(k3_error *err, size_t at, const char *more) {
    size_t n = strlen(more), room = sizeof err->text - 1 - at;
    if (n > room) n = room;
    memcpy(err->text + at, more, n);
    err->text[at + n] = 0;
    return at + n;
}

k3_status k3_fail_prefix(k3_error *err, k3_status status, const char *format, ...) {
    if (!err) return status;
    k3_error old = *err;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    append(err, append(err, strlen(err->text), ": "), old.text);
    one_line(err->text);
    return err->status;
}

const char *k3_error_text(const k3_error *err) {
    return err ? err->text : "";
}

const char *k3_status_name(k3_status status) {
    switch (status) {
    case K3_OK: return "success";
    case K3_ERR_ARGUMENT: return "invalid argument";
    case K3_ERR_MEMORY: return "out of memory";
    case K3_ERR_IO: return "input/output error";
    case K3_ERR_FORMAT: return "malformed file";
    case K3_ERR_UNSUPPORTED: return "not supported";
    case K3_ERR_TOKEN: return "token id out of range";
    case K3_ERR_NUMERIC: return "not a number";
    case K3_ERR_CANCELLED: return "cancelled";
    }
    return "unknown status";
}
