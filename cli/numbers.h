/* Numbers as options give them: strict, with the option's name in the message.
 * Each returns CLI_OK, or prints one line and returns CLI_USAGE. */
#ifndef K3_CLI_NUMBERS_H
#define K3_CLI_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

int number_uint(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out);

/* Finite, in [least, most]. */
int number_real(const char *option, const char *text, double least, double most, double *out);

/* "64G", "1.5T", "512MiB", "4096": K, M, G and T are powers of 1000, Ki, Mi, Gi and Ti powers of 1024; a B
 * may follow. */
int number_bytes(const char *option, const char *text, uint64_t *out);

/* "1,2,4" or "1 2 4", each in [least, most], at least one.  *out: free() it. */
int number_list(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t **out, size_t *n);

/* 1234567 as "1,234,567".  room: at least 27 bytes, returned. */
char *number_grouped(uint64_t value, char *room);

/* 1560860324864 as "1.561 TB".  room: at least 16 bytes, returned. */
char *number_human(uint64_t bytes, char *room);

#endif
