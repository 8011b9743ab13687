/* What the program says on stderr: one line, "k3: ...". */
#ifndef K3_CLI_MESSAGE_H
#define K3_CLI_MESSAGE_H

#include <k3/k3.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_SIGNAL = 128 /* + the signal that interrupted the work */
};

/* Prints one line; control bytes in it become '?'. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* say(), then CLI_FAILED or CLI_USAGE. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the library's text and returns the exit code that fits its status. */
int fail_library(const k3_error *err);

#endif
