#include "format/json_scan.h"

#include "format/utf8.h"

#include <string.h>

#define AHEAD (K3_JSON_TOKEN + 2) /* bytes in the window before a token is begun: it, its quotes or its colon */
#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

bool k3_json_fail(struct k3_json *j, const char *error) {
    if (!j->error) j->error = error;
    j->refill = j->start;
    return false;
}

static void skip_blanks(struct k3_json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t')) j->at++;
}

/* Moves the rest of the window, little more than a token, to its start and reads on; false when nothing more comes. */
static bool refill(struct k3_json *j) {
    if (!j->source) return false;
    size_t rest = (size_t)(j->end - j->at), had = rest, n = 1;
    j->before += (uint64_t)(j->at - j->start);
    memmove(j->start, j->at, rest);
    while (n && rest <= AHEAD) {
        n = j->source->read(j->source->user, j->start + rest, K3_JSON_WINDOW - rest);
        rest += n;
    }
    if (!n) j->source = NULL;
    j->at = j->start;
    j->end = j->start + rest;
    j->refill = n ? j->end - AHEAD : j->end;
    return rest > had;
}

/* peek where it is not simple. */
static char look(struct k3_json *j) {
    if (j->error) return 0;
    do skip_blanks(j);
    while (j->at >= j->refill && refill(j));
    return j->at < j->end ? *j->at : 0;
}

/* The next byte that is not blank; 0 at the end, and after an error.  A token's start: the rest of
 * the token is in the window then. */
static inline char peek(struct k3_json *j) {
    return j->at < j->refill && *j->at > ' ' ? *j->at : look(j);
}

char k3_json_peek(struct k3_json *j) {
    return peek(j);
}

bool k3_json_null(struct k3_json *j) {
    if (peek(j) != 'n' || j->end - j->at < 4 || memcmp(j->at, "null", 4) != 0) return false;
    j->at += 4;
    return true;
}

static inline bool expect(struct k3_json *j, char c, const char *error) {
    if (peek(j) != c) return k3_json_fail(j, j->at < j->end ? error : "ends too early");
    j->at++;
    return true;
}

bool k3_json_enter(struct k3_json *j, char bracket) {
    return expect(j, bracket, bracket == '{' ? "expected an object" : "expected an array");
}

bool k3_json_more(struct k3_json *j, char close, bool *first) {
    char c = peek(j);
    if (c == close) {
        j->at++;
        return false;
    }
    if (*first) {
        *first = false;
        return c || k3_json_fail(j, j->at < j->end ? "a zero byte" : "ends too early");
    }
    return expect(j, ',', close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
}

/* A bit in every byte of x that is a quote, a backslash, a control or not ASCII.  Borrows may mark
 * bytes behind the first marked one too: only the first counts. */
static uint64_t special(uint64_t x) {
    uint64_t quote = x ^ (ONES * '"'), backslash = x ^ (ONES * '\\');
    return (((quote - ONES) | (backslash - ONES) | (x - ONES * 0x20)) | x) & HIGHS;
}

/* From p on, the first byte that ends a run of plain ASCII in a string; end if there is none. */
static char *plain(char *p, char *end) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - p >= 8) {
        uint64_t x;
        memcpy(&x, p, sizeof x);
        uint64_t marks = special(x);
        if (marks) return p + __builtin_ctzll(marks) / 8;
        p += 8;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80) p++;
    return p;
}

/* Four hexadecimal digits; false if there are fewer. */
static bool hex4(const struct k3_json *j, const char *p, uint32_t *out) {
    uint32_t v = 0;
    if (j->end - p < 4) return false;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t digit;
        if (c >= '0' && c <= '9') digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f') digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') digit = (uint32_t)(c - 'A' + 10);
        else return false;
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

static char *put_utf8(char *to, uint32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int tails = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)((0xf00u >> (tails + 1) & 0xf0u) | c >> 6 * tails);
    while (tails--) *to++ = (char)(0x80u | (c >> 6 * tails & 0x3fu));
    return to;
}

/* \uXXXX behind the backslash at j->at, with its second half where it is a surrogate. */
static char *unicode_escape(struct k3_json *j, char *to) {
    uint32_t c, low;
    if (!hex4(j, j->at + 2, &c)) return k3_json_fail(j, "a broken \\u escape"), NULL;
    j->at += 6;
    if (c >= 0xd800 && c < 0xe000) {
        bool pair = c < 0xdc00 && j->end - j->at >= 6 && j->at[0] == '\\' && j->at[1] == 'u' &&
                    hex4(j, j->at + 2, &low) && low >= 0xdc00 && low < 0xe000;
        if (!pair) return k3_json_fail(j, "half a surrogate pair"), NULL;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        j->at += 6;
    }
    if (c == 0) return k3_json_fail(j, "a zero byte in a string"), NULL;
    return put_utf8(to, c);
}

/* Decodes the escape at j->at to `to`; where that ends, or NULL. */
static char *escape(struct k3_json *j, char *to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    if (j->end - j->at < 2) return k3_json_fail(j, "a string without an end"), NULL;
    char c = j->at[1];
    if (c == 'u') return unicode_escape(j, to);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found) return k3_json_fail(j, "an unknown escape"), NULL;
    *to = into[found - from];
    j->at += 2;
    return to + 1;
}

/* Longer tokens may or may not be whole in the window: refused wherever they lie. */
static bool too_long(struct k3_json *j, const char *start) {
    return (size_t)(j->at - start) > j->longest && !k3_json_fail(j, "too long");
}

bool k3_json_string(struct k3_json *j, struct k3_name *out) {
    if (!expect(j, '"', "expected a string")) return false;
    char *start = j->at, *to = start;
    bool ascii = true;
    for (;;) {
        char *p = plain(j->at, j->end);
        if (to != j->at) memmove(to, j->at, (size_t)(p - j->at));
        to += p - j->at;
        j->at = p;
        if (too_long(j, start)) return false;
        if (p == j->end) return k3_json_fail(j, "a string without an end");
        if (*p == '"') break;
        if (*p == '\\') {
            to = escape(j, to);
            if (!to) return false;
        } else if ((unsigned char)*p < 0x20) {
            return k3_json_fail(j, "a control character in a string");
        } else {
            ascii = false;
            *to++ = *j->at++;
        }
    }
    *out = (struct k3_name){start, (size_t)(to - start)};
    if (!ascii && k3_utf8_valid(start, out->length) != out->length)
        return k3_json_fail(j, "a string that is not UTF-8");
    j->at++;
    return true;
}

bool k3_json_key(struct k3_json *j, struct k3_name *out) {
    if (!k3_json_string(j, out)) return false;
    skip_blanks(j); /* no peek: the window must not move under the name */
    if (too_long(j, out->s)) return false;
    if (j->at == j->end) return k3_json_fail(j, "ends too early");
    if (*j->at != ':') return k3_json_fail(j, "expected ':'");
    j->at++;
    return true;
}

static bool is_digit(const struct k3_json *j) {
    return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

bool k3_json_uint(struct k3_json *j, uint64_t *out) {
    uint64_t v = 0;
    char c = peek(j);
    if (c == '-') return k3_json_fail(j, "a negative number");
    if (c < '0' || c > '9') return k3_json_fail(j, "expected a whole number");
    char *start = j->at, *p = start, *safe = j->end - start < 18 ? j->end : start + 18; /* 18 digits always fit */
    for (; p < safe && *p >= '0' && *p <= '9'; p++) v = 10 * v + (unsigned)(*p - '0');
    j->at = p;
    for (; is_digit(j); j->at++)
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (unsigned)(*j->at - '0'), &v))
            return k3_json_fail(j, "a number beyond 2^64 - 1");
    if (*start == '0' && j->at - start > 1) return k3_json_fail(j, "a number with a leading zero");
    if (j->at < j->end && (*j->at == '.' || *j->at == 'e' || *j->at == 'E'))
        return k3_json_fail(j, "a number that is not whole");
    *out = v;
    return true;
}

static bool digits(struct k3_json *j) {
    if (!is_digit(j)) return k3_json_fail(j, "a broken number");
    while (is_digit(j)) j->at++;
    return true;
}

static bool skip_number(struct k3_json *j) {
    const char *start = j->at;
    if (*j->at == '-') j->at++;
    if (j->at < j->end && *j->at == '0') j->at++;
    else if (!digits(j)) return false;
    if (is_digit(j)) return k3_json_fail(j, "a number with a leading zero");
    if (j->at < j->end && *j->at == '.') {
        j->at++;
        if (!digits(j)) return false;
    }
    if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
        j->at++;
        if (j->at < j->end && (*j->at == '+' || *j->at == '-')) j->at++;
        if (!digits(j)) return false;
    }
    return !too_long(j, start);
}

/* A string, a number, true, false or null. */
static bool skip_scalar(struct k3_json *j, char c) {
    static const char *const words[] = {"true", "false", "null"};
    struct k3_name unused;
    if (c == '"') return k3_json_string(j, &unused);
    if (c == '-' || (c >= '0' && c <= '9')) return skip_number(j);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(j->end - j->at) < n || memcmp(j->at, words[i], n) != 0) continue;
        j->at += n;
        return true;
    }
    return k3_json_fail(j, j->at < j->end ? "expected a value" : "ends too early");
}

bool k3_json_skip(struct k3_json *j) {
    char close[K3_JSON_DEPTH];
    struct k3_name key;
    size_t depth = 0;
    bool first = false;
    do {
        char c = peek(j);
        if (c == '{' || c == '[') {
            if (depth == K3_JSON_DEPTH) return k3_json_fail(j, "brackets nested too deep");
            close[depth++] = c == '{' ? '}' : ']';
            j->at++;
            first = true;
        } else if (!skip_scalar(j, c)) {
            return false;
        }
        /* After a value or an opening bracket: on to the next value, past the brackets that close here. */
        while (depth && !k3_json_more(j, close[depth - 1], &first)) {
            if (j->error) return false;
            depth--;
            first = false;
        }
        if (depth && close[depth - 1] == '}' && !k3_json_key(j, &key)) return false;
    } while (depth);
    return true;
}

bool k3_json_finish(struct k3_json *j) {
    peek(j);
    if (j->error) return false;
    return j->at == j->end || k3_json_fail(j, "more text behind the end");
}
