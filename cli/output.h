/* Where results go: stdout, and files that appear whole or not at all. */
#ifndef K3_CLI_OUTPUT_H
#define K3_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes to stdout (buffered) or flushes it.  A reader that went away is a silent CLI_FAILED; any other failure
 * prints one line, once. */
int output_text(const char *text, size_t length);
int output_flush(void);

/* A file that is written under another name beside its own and renamed when it is whole.  A path that names
 * something else than a regular file (a device, a pipe) is written in place. */
struct output_file {
    char *path;      /* the name in messages, and the last one */
    char *temporary; /* NULL: written in place */
    int fd;
};

/* Until output_file_finish or output_file_drop, SIGINT, SIGTERM and SIGHUP remove the temporary file before they end
 * the program; so only one file may be open at a time. */
int output_file_open(struct output_file *f, const char *path);
int output_file_write(struct output_file *f, const void *data, size_t bytes);
int output_file_finish(struct output_file *f);

/* Removes what was written so far; for a file that was finished or never opened it does nothing. */
void output_file_drop(struct output_file *f);

#endif
