/* Text to ids and back. */
#include "format/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "format/utf8.h"

/* ---- opening ---- */

/* config_json NULL: no names. */
static k3_status build(const char *model_name, const char *model, size_t model_bytes, const char *config_name,
                       const char *config_json, size_t config_bytes, k3_tokenizer **out, k3_error *err) {
    k3_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return k3_fail(err, K3_ERR_MEMORY, "%s: no memory for the tokenizer", model_name);
    k3_status status = k3_vocab_parse(model_name, model, model_bytes, &t->vocab, err);
    if (status == K3_OK) {
        t->specials.first = t->vocab.count;
        status = config_json ? k3_specials_parse(config_name, config_json, config_bytes, &t->specials, err)
                             : k3_specials_index(&t->specials, err);
    }
    if (status == K3_OK) status = k3_pattern_new(true, &t->pattern, err);
    if (status == K3_OK) *out = t;
    else k3_tokenizer_close(t);
    return status;
}

k3_status k3_tokenizer_from_memory(const char *model, size_t model_bytes, const char *config, size_t config_bytes,
                                   k3_tokenizer **out, k3_error *err) {
    return build("tiktoken.model", model, model_bytes, "tokenizer_config.json", config, config_bytes, out, err);
}

static char *join(const char *dir, const char *name) {
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);
    if (path) snprintf(path, n, "%s/%s", dir, name);
    return path;
}

k3_status k3_tokenizer_open(const char *path, k3_tokenizer **out, k3_error *err) {
    char *model_path = join(path, "tiktoken.model"), *config_path = join(path, "tokenizer_config.json");
    char *model = NULL, *config = NULL;
    size_t model_bytes = 0, config_bytes = 0;
    k3_status status = K3_OK;
    if (!model_path || !config_path) status = k3_fail(err, K3_ERR_MEMORY, "%s: no memory for the tokenizer", path);
    if (status == K3_OK) status = k3_file_read_text(model_path, &model, &model_bytes, err);
    if (status == K3_OK && k3_file_exists(config_path))
        status = k3_file_read_text(config_path, &config, &config_bytes, err);
    if (status == K3_OK) status = build(model_path, model, model_bytes, config_path, config, config_bytes, out, err);
    free(config);
    free(model);
    free(config_path);
    free(model_path);
    return status;
}

void k3_tokenizer_close(k3_tokenizer *t) {
    if (!t) return;
    k3_pattern_free(t->pattern);
    k3_specials_clear(&t->specials);
    k3_vocab_clear(&t->vocab);
    free(t);
}

/* ---- asking ---- */

uint32_t k3_tokenizer_vocab_size(const k3_tokenizer *t) {
    return t->vocab.count + K3_SPECIAL_SLOTS;
}

static bool is_special(const k3_tokenizer *t, int32_t id) {
    return id >= 0 && (uint32_t)id >= t->vocab.count && (uint32_t)id - t->vocab.count < K3_SPECIAL_SLOTS;
}

const char *k3_tokenizer_bytes(const k3_tokenizer *t, int32_t id, size_t *length) {
    if (is_special(t, id)) {
        *length = t->specials.length[(uint32_t)id - t->vocab.count];
        return t->specials.name[(uint32_t)id - t->vocab.count];
    }
    *length = 0;
    if (id < 0 || (uint32_t)id >= t->vocab.count) return NULL;
    *length = t->vocab.tokens[id].length;
    return t->vocab.bytes + t->vocab.tokens[id].start;
}

int32_t k3_tokenizer_special(const k3_tokenizer *t, const char *spelling) {
    int slot = k3_specials_find(&t->specials, spelling, strlen(spelling));
    return slot < 0 ? -1 : (int32_t)t->vocab.count + slot;
}

bool k3_tokenizer_is_reserved(const k3_tokenizer *t, int32_t id) {
    return is_special(t, id) && t->specials.reserved[(uint32_t)id - t->vocab.count];
}

/* ---- encoding ---- */

struct encoder {
    const k3_tokenizer *tokenizer;
    struct k3_match *match;
    struct k3_merge_room room;
    int32_t *ids;
    size_t n, capacity;
};

static bool reserve(struct encoder *e, size_t extra) {
    size_t needed, bytes;
    if (!k3_add(e->n, extra, &needed)) return false;
    if (needed <= e->capacity) return true;
    if (needed < e->capacity + e->capacity / 2) needed = e->capacity + e->capacity / 2;
    if (!k3_mul(needed, sizeof *e->ids, &bytes)) return false;
    int32_t *ids = realloc(e->ids, bytes);
    if (!ids) return false;
    e->ids = ids;
    e->capacity = needed;
    return true;
}

static k3_status no_memory(k3_error *err) {
    return k3_fail(err, K3_ERR_MEMORY, "no memory to encode the text");
}

static k3_status encode_ordinary(struct encoder *e, const char *text, size_t length, k3_error *err) {
    for (size_t at = 0, piece; at < length; at += piece) {
        k3_status status = k3_pattern_first(e->tokenizer->pattern, e->match, text + at, length - at, &piece, err);
        if (status != K3_OK) return status;
        if (!reserve(e, piece)) return no_memory(err);
        size_t n = k3_vocab_merge(&e->tokenizer->vocab, text + at, piece, &e->room, e->ids + e->n);
        if (n == SIZE_MAX) return no_memory(err);
        e->n += n;
    }
    return K3_OK;
}

/* The text between special tokens is cut as if it stood alone. */
static k3_status encode_special(struct encoder *e, const char *text, size_t length, k3_error *err) {
    const struct k3_specials *specials = &e->tokenizer->specials;
    size_t begin = 0;
    for (size_t at = 0; at < length;) {
        int slot = k3_specials_match(specials, text + at, length - at);
        if (slot < 0) {
            at++;
            continue;
        }
        k3_status status = encode_ordinary(e, text + begin, at - begin, err);
        if (status != K3_OK) return status;
        if (!reserve(e, 1)) return no_memory(err);
        e->ids[e->n++] = (int32_t)(specials->first + (uint32_t)slot);
        at += specials->length[slot];
        begin = at;
    }
    return encode_ordinary(e, text + begin, length - begin, err);
}

static k3_status encode_parts(struct encoder *e, const struct k3_caps *caps, const char *text, size_t length,
                              unsigned flags, k3_error *err) {
    size_t at = 0, slice_left = 0, part;
    if (!reserve(e, length / 4 + 16)) return no_memory(err);
    for (size_t begin = 0; (part = k3_caps_next(caps, text, length, &at, &slice_left)) > 0; begin = at) {
        k3_status status = flags & K3_ENCODE_SPECIAL ? encode_special(e, text + begin, part, err)
                                                     : encode_ordinary(e, text + begin, part, err);
        if (status != K3_OK) return status;
    }
    return K3_OK;
}

k3_status k3_tokenizer_encode_capped(const k3_tokenizer *t, const struct k3_caps *caps, const char *text, size_t length,
                                     unsigned flags, int32_t **ids, size_t *n, k3_error *err) {
    if (flags & ~(unsigned)K3_ENCODE_SPECIAL) return k3_fail(err, K3_ERR_ARGUMENT, "unknown encode flags %#x", flags);
    struct encoder e = {.tokenizer = t};
    char *repaired = NULL;
    k3_status status = K3_OK;
    e.match = k3_match_new(t->pattern);
    if (!e.match) status = no_memory(err);
    if (status == K3_OK && k3_utf8_valid(text, length) != length) {
        repaired = k3_utf8_repair(text, length, &length);
        if (!repaired) status = no_memory(err);
        text = repaired;
    }
    if (status == K3_OK) status = encode_parts(&e, caps, text, length, flags, err);
    if (status == K3_OK) {
        int32_t *fitted = e.n ? realloc(e.ids, e.n * sizeof *e.ids) : NULL;
        *ids = fitted ? fitted : e.n ? e.ids : NULL;
        *n = e.n;
    }
    if (status != K3_OK || e.n == 0) free(e.ids);
    free(repaired);
    free(e.room.memory);
    k3_match_free(e.match);
    return status;
}

k3_status k3_tokenizer_encode(const k3_tokenizer *t, const char *text, size_t length, unsigned flags, int32_t **ids,
                              size_t *n, k3_error *err) {
    return k3_tokenizer_encode_capped(t, &k3_caps_released, text, length, flags, ids, n, err);
}
