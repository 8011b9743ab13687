/* tiktoken.model and tokenizer_config.json. */
#include "format/tokenizer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* ---- tiktoken.model: lines of "<base64> <rank>" ---- */

static int base64_digit(unsigned char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Canonical base64 only: padded, and no bits lost in the last digit.  False if it is not. */
static bool base64_decode(const char *s, size_t n, char *out, size_t *out_n) {
    if (n == 0 || n % 4) return false;
    size_t padding = s[n - 1] != '=' ? 0 : s[n - 2] != '=' ? 1 : 2;
    uint32_t bits = 0;
    *out_n = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = i < n - padding ? base64_digit((unsigned char)s[i]) : 0;
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 3) continue;
        for (int shift = 16; shift >= 0; shift -= 8) out[(*out_n)++] = (char)(bits >> shift & 0xff);
    }
    for (size_t i = 0; i < padding; i++)
        if (out[--*out_n]) return false;
    return true;
}

static bool parse_rank(const char *s, size_t n, uint64_t *rank) {
    if (n == 0) return false;
    *rank = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        if (!k3_mul64(*rank, 10, rank) || !k3_add64(*rank, (uint64_t)(s[i] - '0'), rank)) return false;
    }
    return true;
}

struct reader {
    const char *name;
    struct k3_vocab *vocab;
    uint32_t *line_of; /* [count], by rank; 0: not met yet */
    size_t used;       /* of vocab->bytes */
};

static k3_status read_line(struct reader *r, uint32_t line, const char *s, size_t n, k3_error *err) {
    struct k3_vocab *v = r->vocab;
    if (n && s[n - 1] == '\r') n--;
    const char *blank = memchr(s, ' ', n);
    if (!blank) return k3_fail(err, K3_ERR_FORMAT, "%s:%u: not \"<base64> <rank>\"", r->name, line);
    size_t digits = (size_t)(blank - s), length;
    uint64_t rank;
    if (!base64_decode(s, digits, v->bytes + r->used, &length))
        return k3_fail(err, K3_ERR_FORMAT, "%s:%u: not base64", r->name, line);
    if (length > K3_TOKEN_MAX_BYTES)
        return k3_fail(err, K3_ERR_FORMAT, "%s:%u: a token of %zu bytes", r->name, line, length);
    if (!parse_rank(blank + 1, n - digits - 1, &rank))
        return k3_fail(err, K3_ERR_FORMAT, "%s:%u: the rank is not a number", r->name, line);
    if (rank >= v->count)
        return k3_fail(err, K3_ERR_FORMAT, "%s:%u: rank %llu leaves a gap: %u lines have the ranks 0 to %u", r->name,
                       line, (unsigned long long)rank, v->count, v->count - 1);
    if (r->line_of[rank])
        return k3_fail(err, K3_ERR_FORMAT, "%s:%u: rank %llu is on line %u already", r->name, line,
                       (unsigned long long)rank, r->line_of[rank]);
    r->line_of[rank] = line;
    v->tokens[rank] = (struct k3_token){(uint32_t)r->used, (uint32_t)length};
    r->used += length;
    return K3_OK;
}

static size_t count_lines(const char *data, size_t n) {
    size_t lines = n && data[n - 1] != '\n';
    for (size_t i = 0; i < n; i++) lines += data[i] == '\n';
    return lines;
}

static k3_status read_lines(struct reader *r, const char *data, size_t n, k3_error *err) {
    struct k3_vocab *v = r->vocab;
    k3_status status = K3_OK;
    uint32_t line = 1, culprit;
    for (size_t at = 0; status == K3_OK && at < n; line++) {
        const char *end = memchr(data + at, '\n', n - at);
        size_t length = end ? (size_t)(end - (data + at)) : n - at;
        status = read_line(r, line, data + at, length, err);
        at += length + 1;
    }
    if (status != K3_OK) return status;
    status = k3_vocab_index(v, &culprit, err);
    if (status == K3_OK) return status;
    if (culprit == K3_NO_TOKEN) return k3_fail_prefix(err, status, "%s", r->name);
    return k3_fail_prefix(err, status, "%s:%u", r->name, r->line_of[culprit]);
}

k3_status k3_vocab_parse(const char *name, const char *data, size_t n, struct k3_vocab *v, k3_error *err) {
    struct reader reader = {.name = name, .vocab = v};
    memset(v, 0, sizeof *v);
    size_t lines = count_lines(data, n);
    if (lines == 0) return k3_fail(err, K3_ERR_FORMAT, "%s: empty", name);
    if (n > INT32_MAX - K3_SPECIAL_SLOTS) return k3_fail(err, K3_ERR_FORMAT, "%s: too long", name);
    v->count = (uint32_t)lines;
    v->bytes = malloc(n); /* base64 shrinks */
    v->tokens = k3_array(lines, sizeof *v->tokens);
    reader.line_of = k3_array(lines, sizeof *reader.line_of);
    k3_status status;
    if (v->bytes && v->tokens && reader.line_of) status = read_lines(&reader, data, n, err);
    else status = k3_fail(err, K3_ERR_MEMORY, "%s: no memory for %zu tokens", name, lines);
    free(reader.line_of);
    if (status != K3_OK) k3_vocab_clear(v);
    return status;
}

/* ---- tokenizer_config.json: only the names of special ids ---- */

static k3_status read_special(const char *name, const char *key, const json_t *value, struct k3_specials *s,
                              k3_error *err) {
    uint64_t id;
    if (!parse_rank(key, strlen(key), &id))
        return k3_fail(err, K3_ERR_FORMAT, "%s: added_tokens_decoder: \"%.40s\" is not an id", name, key);
    if (id < s->first || id >= (uint64_t)s->first + K3_SPECIAL_SLOTS)
        return k3_fail(err, K3_ERR_FORMAT, "%s: added_tokens_decoder: id %.40s is not a special id (%u to %u)", name,
                       key, s->first, s->first + K3_SPECIAL_SLOTS - 1);
    const char *content = json_string_value(json_object_get(value, "content"));
    if (!content || !*content)
        return k3_fail(err, K3_ERR_FORMAT, "%s: added_tokens_decoder: id %.40s has no content that is text", name, key);
    char **slot = &s->name[id - s->first];
    if (*slot) return k3_fail(err, K3_ERR_FORMAT, "%s: added_tokens_decoder: id %.40s is there twice", name, key);
    *slot = strdup(content);
    if (!*slot) return k3_fail(err, K3_ERR_MEMORY, "%s: no memory for special tokens", name);
    return K3_OK;
}

static k3_status read_config(const char *name, json_t *root, struct k3_specials *s, k3_error *err) {
    if (!json_is_object(root)) return k3_fail(err, K3_ERR_FORMAT, "%s: not a JSON object", name);
    json_t *named = json_object_get(root, "added_tokens_decoder"), *value;
    if (named && !json_is_object(named))
        return k3_fail(err, K3_ERR_FORMAT, "%s: added_tokens_decoder is not an object", name);
    const char *key;
    json_object_foreach(named, key, value) {
        k3_status status = read_special(name, key, value, s, err);
        if (status != K3_OK) return status;
    }
    k3_status status = k3_specials_index(s, err);
    return status == K3_OK ? status : k3_fail_prefix(err, status, "%s", name);
}

k3_status k3_specials_parse(const char *name, const char *json, size_t n, struct k3_specials *s, k3_error *err) {
    json_error_t where;
    json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &where);
    k3_status status = root ? read_config(name, root, s, err)
                            : k3_fail(err, K3_ERR_FORMAT, "%s:%d: %s", name, where.line, where.text);
    json_decref(root);
    if (status != K3_OK) k3_specials_clear(s);
    return status;
}
