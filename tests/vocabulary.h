/* Small vocabularies for tests: the text of a tiktoken.model, made in memory. */
#ifndef K3_TESTS_VOCABULARY_H
#define K3_TESTS_VOCABULARY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model_text {
    char *s;
    size_t n, capacity;
    unsigned ranks;
};

static inline void model_append(struct model_text *m, const char *s, size_t n) {
    if (m->n + n + 1 > m->capacity) {
        m->capacity = (m->n + n + 1) * 2;
        m->s = realloc(m->s, m->capacity);
        if (!m->s) abort();
    }
    memcpy(m->s + m->n, s, n);
    m->n += n;
    m->s[m->n] = 0;
}

/* Adds the line of the next rank. */
static inline void model_token(struct model_text *m, const char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t bits = 0;
        char quad[4] = {'=', '=', '=', '='};
        size_t have = n - i < 3 ? n - i : 3;
        for (size_t k = 0; k < 3; k++) bits = bits << 8 | (k < have ? (unsigned char)bytes[i + k] : 0);
        for (size_t k = 0; k <= have; k++) quad[k] = digits[bits >> (18 - 6 * k) & 63];
        model_append(m, quad, 4);
    }
    char rank[16];
    model_append(m, rank, (size_t)snprintf(rank, sizeof rank, " %u\n", m->ranks++));
}

/* The 256 single bytes; rank = byte. */
static inline struct model_text model_of_bytes(void) {
    struct model_text m = {0};
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        model_token(&m, &c, 1);
    }
    return m;
}

/* A seeded generator, the same everywhere. */
static inline uint32_t test_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static inline size_t put_utf8(char *s, uint32_t c) {
    if (c < 0x80) return s[0] = (char)c, 1;
    if (c < 0x800) return s[0] = (char)(0xc0 | c >> 6), s[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return s[0] = (char)(0xe0 | c >> 12), s[1] = (char)(0x80 | (c >> 6 & 63)), s[2] = (char)(0x80 | (c & 63)), 3;
    s[0] = (char)(0xf0 | c >> 18), s[1] = (char)(0x80 | (c >> 12 & 63));
    s[2] = (char)(0x80 | (c >> 6 & 63)), s[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* A random character of the kinds that the tokenizer tells apart. */
static inline uint32_t random_character(uint64_t *state) {
    static const uint32_t picked[] = {
        'a', 'b', 'S', 'T', ' ', ' ', '\n', '\r', '\t', '\'', '1', '2', '!', '<', '|', '>', 0, 0x1c, 0x85, 0xa0, 0x17f,
        0x2b0, 0x301, 0x3000, 0x3005, 0x3007, 0x4e2d, 0x6587, 0x2e80, 0x180e, 0x3042, 0x5d0, 0xfffd, 0x1f680, 0x200d,
        0x1c5, 0xbd, 0x10ffff};
    uint32_t c;
    switch (test_random(state) % 4) {
    case 0:
        do c = test_random(state) % 0x110000;
        while (c >= 0xd800 && c < 0xe000);
        return c;
    case 1: return test_random(state) % 0x250;
    default: return picked[test_random(state) % (sizeof picked / sizeof *picked)];
    }
}

/* At most `most` characters into s (4 * most bytes); returns the bytes. */
static inline size_t random_text(uint64_t *state, char *s, size_t most) {
    size_t n = 0;
    for (size_t left = test_random(state) % (most + 1); left; left--) n += put_utf8(s + n, random_character(state));
    return n;
}

#endif
