/* Ids to text as they come, whole characters only. */
#include <k3/k3.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "format/utf8.h"

struct k3_decoder {
    const k3_tokenizer *tokenizer;
    char *text; /* what the last call handed out, terminated */
    size_t capacity;
    char held[4]; /* the start of a character */
    size_t held_bytes;
};

k3_status k3_decoder_new(const k3_tokenizer *t, k3_decoder **out, k3_error *err) {
    k3_decoder *d = calloc(1, sizeof *d);
    if (!d) return k3_fail(err, K3_ERR_MEMORY, "no memory for a decoder");
    d->tokenizer = t;
    *out = d;
    return K3_OK;
}

void k3_decoder_free(k3_decoder *d) {
    if (!d) return;
    free(d->text);
    free(d);
}

static bool reserve(k3_decoder *d, size_t bytes) {
    size_t capacity; /* every byte may become U+FFFD, held ones too */
    if (!k3_add(bytes, sizeof d->held, &capacity) || !k3_mul(capacity, sizeof K3_REPLACEMENT, &capacity)) return false;
    if (capacity <= d->capacity) return true;
    char *text = realloc(d->text, capacity);
    if (!text) return false;
    d->text = text;
    d->capacity = capacity;
    return true;
}

static size_t append(k3_decoder *d, size_t n, const char *s, size_t length) {
    memcpy(d->text + n, s, length);
    return n + length;
}

k3_status k3_decoder_push(k3_decoder *d, int32_t id, const char **text, size_t *length, k3_error *err) {
    size_t bytes, at = 0, n = 0, used;
    const char *s = k3_tokenizer_bytes(d->tokenizer, id, &bytes);
    if (!s)
        return k3_fail(err, K3_ERR_TOKEN, "token id %d is not in the tokenizer's 0 to %u", (int)id,
                       k3_tokenizer_vocab_size(d->tokenizer) - 1);
    if (!reserve(d, bytes)) return k3_fail(err, K3_ERR_MEMORY, "no memory for %zu bytes of text", bytes);

    while (d->held_bytes && at < bytes) { /* at most three bytes are held: feed them one more at a time */
        d->held[d->held_bytes] = s[at];
        switch (k3_utf8_next(d->held, d->held_bytes + 1, &used)) {
        case K3_UTF8_CHAR:
            n = append(d, n, d->held, used);
            d->held_bytes = 0;
            at++;
            break;
        case K3_UTF8_CUT:
            d->held_bytes++;
            at++;
            break;
        case K3_UTF8_BAD: /* the new byte is no part of it, and may start a character itself */
            n = append(d, n, K3_REPLACEMENT, sizeof K3_REPLACEMENT - 1);
            d->held_bytes = 0;
            break;
        }
    }
    for (; at < bytes; at += used) {
        enum k3_utf8 kind = k3_utf8_next(s + at, bytes - at, &used);
        if (kind == K3_UTF8_CUT) {
            memcpy(d->held, s + at, used);
            d->held_bytes = used;
        } else {
            n = kind == K3_UTF8_CHAR ? append(d, n, s + at, used)
                                     : append(d, n, K3_REPLACEMENT, sizeof K3_REPLACEMENT - 1);
        }
    }
    d->text[n] = 0;
    *text = d->text;
    *length = n;
    return K3_OK;
}

k3_status k3_decoder_finish(k3_decoder *d, const char **text, size_t *length, k3_error *err) {
    if (!reserve(d, 0)) return k3_fail(err, K3_ERR_MEMORY, "no memory for text");
    size_t n = d->held_bytes ? append(d, 0, K3_REPLACEMENT, sizeof K3_REPLACEMENT - 1) : 0;
    d->held_bytes = 0;
    d->text[n] = 0;
    *text = d->text;
    *length = n;
    return K3_OK;
}
