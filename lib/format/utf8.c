#include "format/utf8.h"

#include <stdlib.h>
#include <string.h>

/* The bytes that may follow a lead: well-formed sequences, Unicode 3.9, table 3-7.  Only the second
 * byte's range depends on the lead (no overlong forms, no surrogates, nothing above U+10FFFF). */
static size_t lead(unsigned char c, unsigned char *low, unsigned char *high) {
    *low = 0x80, *high = 0xbf;
    if (c < 0x80) return 1;
    if (c < 0xc2) return 0;
    if (c < 0xe0) return 2;
    if (c == 0xe0) *low = 0xa0;
    if (c == 0xed) *high = 0x9f;
    if (c < 0xf0) return 3;
    if (c == 0xf0) *low = 0x90;
    if (c == 0xf4) *high = 0x8f;
    return c < 0xf5 ? 4 : 0;
}

enum k3_utf8 k3_utf8_next(const char *s, size_t n, size_t *used) {
    unsigned char low, high;
    size_t length = lead((unsigned char)s[0], &low, &high);
    *used = 1;
    if (length == 0) return K3_UTF8_BAD;
    for (; *used < length; ++*used) {
        if (*used == n) return K3_UTF8_CUT;
        unsigned char c = (unsigned char)s[*used];
        if (c < low || c > high) return K3_UTF8_BAD;
        low = 0x80, high = 0xbf;
    }
    return K3_UTF8_CHAR;
}

uint32_t k3_utf8_decode(const char *s, size_t length) {
    const unsigned char *p = (const unsigned char *)s;
    if (length == 1) return p[0];
    uint32_t c = p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) c = c << 6 | (p[i] & 0x3fu);
    return c;
}

size_t k3_utf8_valid(const char *s, size_t n) {
    size_t at = 0, used;
    while (at < n) {
        uint64_t eight;
        if (n - at >= sizeof eight) { /* most text is ASCII: eight bytes at a time */
            memcpy(&eight, s + at, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        if (k3_utf8_next(s + at, n - at, &used) != K3_UTF8_CHAR) break;
        at += used;
    }
    return at;
}

char *k3_utf8_repair(const char *s, size_t n, size_t *out_n) {
    const size_t replacement = sizeof K3_REPLACEMENT - 1;
    if (n > SIZE_MAX / replacement) return NULL;
    char *out = malloc(n ? n * replacement : 1); /* the worst: every byte stands for itself */
    if (!out) return NULL;
    size_t to = 0, used;
    for (size_t at = 0; at < n; at += used) {
        if (k3_utf8_next(s + at, n - at, &used) == K3_UTF8_CHAR) {
            memcpy(out + to, s + at, used);
            to += used;
        } else {
            memcpy(out + to, K3_REPLACEMENT, replacement);
            to += replacement;
        }
    }
    *out_n = to;
    return out;
}
