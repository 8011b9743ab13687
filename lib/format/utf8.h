/* UTF-8 one character at a time, and text made valid. */
#ifndef K3_FORMAT_UTF8_H
#define K3_FORMAT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define K3_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

enum k3_utf8 {
    K3_UTF8_CHAR, /* a whole character */
    K3_UTF8_CUT,  /* all that is left could be the start of one */
    K3_UTF8_BAD   /* bytes that cannot become one: the maximal subpart of Unicode 3.9, one U+FFFD */
};

/* Looks at the n >= 1 bytes at s; *used: how many belong together, 1 to 4 (to 3 where not whole). */
enum k3_utf8 k3_utf8_next(const char *s, size_t n, size_t *used);

/* The character at s, which must be whole and valid. */
uint32_t k3_utf8_decode(const char *s, size_t length);

/* How many bytes from the start of s are valid. */
size_t k3_utf8_valid(const char *s, size_t n);

/* A copy of s with each maximal invalid subpart as U+FFFD; *out_n its length; NULL without memory. */
char *k3_utf8_repair(const char *s, size_t n, size_t *out_n);

#endif
