#include "message.h"

#include <stdarg.h>
#include <stdio.h>

static void say_args(const char *format, va_list args) {
    char line[2048];
    vsnprintf(line, sizeof line, format, args);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    fprintf(stderr, "k3: %s\n", line);
}

void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_args(format, args);
    va_end(args);
}

int fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_args(format, args);
    va_end(args);
    return CLI_FAILED;
}

int fail_usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say_args(format, args);
    va_end(args);
    return CLI_USAGE;
}

int fail_library(const k3_error *err) {
    say("%s", k3_error_text(err));
    return err->status == K3_ERR_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}
