/* Reading files whole or in parts, with errors that name them. */
#ifndef K3_BASE_FILE_H
#define K3_BASE_FILE_H

#include <k3/k3.h>

/* False only where nothing of that name is there: a link to nowhere is something, and fails when opened. */
bool k3_file_exists(const char *path);

/* Opens a regular file for reading (never waits for a FIFO); close() it. */
k3_status k3_file_open(const char *path, int *fd, uint64_t *size, k3_error *err);

/* Reads exactly `bytes` bytes at `offset`; `path` is for messages. */
k3_status k3_file_read(int fd, const char *path, uint64_t offset, void *out, size_t bytes, k3_error *err);

/* The whole file, at most 256 MiB, with a zero byte behind it; free() it. */
k3_status k3_file_read_text(const char *path, char **text, size_t *length, k3_error *err);

#endif
