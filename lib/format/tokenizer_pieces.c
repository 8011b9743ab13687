/* How text is cut before bytes are merged: first by the two caps, then by the pattern. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "format/tokenizer.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/utf8.h"

const struct k3_caps k3_caps_released = {.slice = 400000, .run = 25000};

/* The original asks Python's str.isspace.  It counts four control characters as blank (U+001C to U+001F)
 * that are none to the pattern's \s. */
static bool is_blank(uint32_t c) {
    if (c < 0x80) return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
    if (c >= 0x2000 && c <= 0x200a) return true;
    return c == 0x85 || c == 0xa0 || c == 0x1680 || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

size_t k3_caps_next(const struct k3_caps *caps, const char *text, size_t length, size_t *at, size_t *slice_left) {
    size_t begin = *at, i = begin, run = 0, used = 1;
    bool blank_run = false;
    if (begin < length && *slice_left == 0) *slice_left = caps->slice;
    if (length - begin <= *slice_left && length - begin <= caps->run) { /* no more characters than bytes */
        *slice_left -= length - begin;
        *at = length;
        return length - begin;
    }
    while (i < length && *slice_left) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80) k3_utf8_next(text + i, length - i, &used);
        else used = 1;
        bool blank = is_blank(c < 0x80 ? c : k3_utf8_decode(text + i, used));
        run = blank == blank_run ? run + 1 : 1;
        blank_run = blank;
        if (run > caps->run) break;
        --*slice_left;
        i += used;
    }
    *at = i;
    return i - begin;
}

/* Written out where PCRE2's own class would differ from the original's: PCRE2 counts U+180E as \s. */
#define SPACES                                                                                                         \
    "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

/* The general categories divide all characters, so [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]] is the
 * complement of the others and Han: one class, where a lookahead would cost a group for each character. */
#define UPPER(HAN) "[^\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}" HAN "]"
#define LOWER(HAN) "[^\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}" HAN "]"
#define ENDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define PATTERN(HAN)                                                                                                   \
    "[" HAN "]+"                                                                                                       \
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER(HAN) "*" LOWER(HAN) "+" ENDING                                                     \
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER(HAN) "+" LOWER(HAN) "*" ENDING                                                     \
    "|\\p{N}{1,3}"                                                                                                     \
    "| ?[^" SPACES "\\p{L}\\p{N}]+[\\r\\n]*"                                                                           \
    "|[" SPACES "]*[\\r\\n]+"                                                                                          \
    "|[" SPACES "]+(?![^" SPACES "])"                                                                                  \
    "|[" SPACES "]+"

struct k3_pattern {
    pcre2_code *code;
    pcre2_match_context *context;
    bool jitted;
};

struct k3_match {
    pcre2_match_data *data;
};

static k3_status pcre2_failed(k3_error *err, int code, const char *what) {
    char text[128] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
    return k3_fail(err, code == PCRE2_ERROR_NOMEMORY ? K3_ERR_MEMORY : K3_ERR_UNSUPPORTED, "tokenizer pattern: %s: %s",
                   what, text);
}

static pcre2_code *compile(const char *pattern, int *error) {
    PCRE2_SIZE offset;
    return pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, error,
                         &offset, NULL);
}

k3_status k3_pattern_new(bool jit, struct k3_pattern **out, k3_error *err) {
    struct k3_pattern *p = calloc(1, sizeof *p);
    if (!p) return k3_fail(err, K3_ERR_MEMORY, "no memory for the tokenizer's pattern");
    int error;
    /* Script, not Script_Extensions.  Before 10.40 PCRE2 had no sc: and \p{Han} meant the script. */
    p->code = compile(PATTERN("\\p{sc:Han}"), &error);
    if (!p->code) p->code = compile(PATTERN("\\p{Han}"), &error);
    if (!p->code) {
        k3_pattern_free(p);
        return pcre2_failed(err, error, "does not compile");
    }
    p->context = pcre2_match_context_create(NULL);
    if (!p->context) {
        k3_pattern_free(p);
        return k3_fail(err, K3_ERR_MEMORY, "no memory for the tokenizer's pattern");
    }
    /* Every piece takes time linear in its length, so limits against runaway patterns could only refuse
     * long pieces that are fine. */
    pcre2_set_match_limit(p->context, UINT32_MAX);
    pcre2_set_depth_limit(p->context, UINT32_MAX);
    pcre2_set_heap_limit(p->context, UINT32_MAX);
    p->jitted = jit && pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0; /* else the interpreter: slower only */
    *out = p;
    return K3_OK;
}

void k3_pattern_free(struct k3_pattern *p) {
    if (!p) return;
    pcre2_match_context_free(p->context);
    pcre2_code_free(p->code);
    free(p);
}

bool k3_pattern_jitted(const struct k3_pattern *p) {
    return p->jitted;
}

struct k3_match *k3_match_new(const struct k3_pattern *p) {
    struct k3_match *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->data = pcre2_match_data_create_from_pattern(p->code, NULL);
    if (m->data) return m;
    free(m);
    return NULL;
}

void k3_match_free(struct k3_match *m) {
    if (!m) return;
    pcre2_match_data_free(m->data);
    free(m);
}

k3_status k3_pattern_first(const struct k3_pattern *p, struct k3_match *m, const char *text, size_t n, size_t *piece,
                           k3_error *err) {
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int rc = pcre2_match(p->code, subject, n, 0, PCRE2_NO_UTF_CHECK, m->data, p->context);
    /* JIT code works on 32 KiB of the stack.  The pattern repeats single classes only, for which it keeps
     * two positions however long the repeat, so this is for PCRE2 versions that think otherwise. */
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(p->code, subject, n, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, p->context);
    if (rc < 0) return pcre2_failed(err, rc, "cannot cut a text");
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(m->data);
    if (range[1] == 0) return k3_fail(err, K3_ERR_UNSUPPORTED, "tokenizer pattern: an empty piece");
    *piece = range[1];
    return K3_OK;
}
