/* A strict JSON reader that walks a text once, in place, without a tree.
 *
 * config.json goes through Jansson.  The index of the full release does not: json_load_file takes
 * 1.6 to 1.9 s and 126 MB for its 58 MB, where opening the whole checkpoint shall take 0.2 s.
 *
 * The text is in memory, or comes from a source through a window.  It is overwritten: strings are
 * decoded where they stand (a decoded string is never longer) and point into it, with a source only
 * until the next call.  The first error stays; every later call returns false. */
#ifndef K3_FORMAT_JSON_SCAN_H
#define K3_FORMAT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define K3_JSON_DEPTH 64 /* brackets within one skipped value */

#ifndef K3_JSON_TOKEN                      /* fuzzing sets a small one */
#define K3_JSON_TOKEN ((size_t)64 << 10)   /* bytes: the longest string or number that may come from a source */
#endif
#define K3_JSON_WINDOW (8 * K3_JSON_TOKEN) /* bytes */

struct k3_json_source {
    size_t (*read)(void *user, char *to, size_t room); /* bytes read; 0: no more */
    void *user;
};

struct k3_json {
    char *start, *at, *end;
    char *refill;                        /* from here on look for more text, or for an error, before going on */
    const char *error;                   /* NULL, or what is wrong at `at` */
    const struct k3_json_source *source; /* NULL: all that is left is here */
    uint64_t before;                     /* bytes of the text before `start` */
    size_t longest;                      /* token, in bytes */
};

struct k3_name {
    const char *s; /* valid UTF-8 without a zero byte, not terminated */
    size_t length;
};

static inline bool k3_name_is(struct k3_name s, const char *text) {
    return s.s && s.length == strlen(text) && !memcmp(s.s, text, s.length);
}

static inline struct k3_json k3_json_of(char *text, size_t length) {
    char *end = text + length;
    return (struct k3_json){.start = text, .at = text, .end = end, .refill = end, .longest = SIZE_MAX};
}

/* The text of a source, which is read through window [K3_JSON_WINDOW]. */
static inline struct k3_json k3_json_from(const struct k3_json_source *source, char *window) {
    struct k3_json j = {.start = window, .at = window, .end = window, .refill = window};
    j.source = source;
    j.longest = K3_JSON_TOKEN;
    return j;
}

/* Steps into an object or array: bracket is '{' or '['. */
bool k3_json_enter(struct k3_json *j, char bracket);

/* True if another member or element follows; false when the bracket closed (it is passed) or on an
 * error.  `close` is '}' or ']'; *first is true before the first call and cleared by it. */
bool k3_json_more(struct k3_json *j, char close, bool *first);

/* The first byte of the next token, without passing it; 0 at the end, and after an error. */
char k3_json_peek(struct k3_json *j);

/* Passes a null and returns true; anything else stays. */
bool k3_json_null(struct k3_json *j);

bool k3_json_string(struct k3_json *j, struct k3_name *out);
bool k3_json_key(struct k3_json *j, struct k3_name *out); /* a member's name and its colon */
bool k3_json_uint(struct k3_json *j, uint64_t *out);      /* digits only, below 2^64 */
bool k3_json_skip(struct k3_json *j);                     /* any value, checked as strictly */
bool k3_json_finish(struct k3_json *j);                   /* only blanks are left */

/* Sets the error; always false. */
bool k3_json_fail(struct k3_json *j, const char *error);

static inline uint64_t k3_json_offset(const struct k3_json *j) { return j->before + (uint64_t)(j->at - j->start); }

#endif
