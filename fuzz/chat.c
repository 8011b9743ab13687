/* Any bytes as a conversation, as tools and as a reply.  A rendering holds as many special tokens as its markup has,
 * whatever the texts say; the parts of a reply add up to its whole, and a call's arguments are JSON. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_scan.h"
#include "format/tokenizer.h"
#include "tests/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { END = 256, OPEN, CLOSE, SEP };

static k3_tokenizer *make(void) {
    struct model_text m = model_of_bytes();
    k3_tokenizer *t = NULL;
    static const char config[] = "{\"added_tokens_decoder\": {\"256\": {\"content\": \"<|end_of_msg|>\"},"
                                 "\"257\": {\"content\": \"<|open|>\"}, \"258\": {\"content\": \"<|close|>\"},"
                                 "\"259\": {\"content\": \"<|sep|>\"}}}";
    if (k3_tokenizer_from_memory(m.s, m.n, config, sizeof config - 1, &t, NULL) != K3_OK) abort();
    free(m.s);
    return t;
}

/* Every marker is closed by a separator before the next one, and messages end. */
static void check_markup(const int32_t *ids, size_t n) {
    bool in_tag = false;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= 260) abort();
        if (ids[i] == SEP && !in_tag) abort();
        if (ids[i] != SEP && ids[i] >= 256 && in_tag) abort();
        if (ids[i] >= 256) in_tag = ids[i] == OPEN || ids[i] == CLOSE;
    }
    if (in_tag) abort();
}

static void render(const k3_tokenizer *t, const char *messages, const char *tools) {
    k3_chat_options o;
    int32_t *ids;
    size_t n;
    k3_error err;
    k3_chat_options_init(&o);
    o.tools = *tools ? tools : NULL;
    o.response_format = *tools == '{' ? tools : NULL;
    if (*tools == '{') o.tools = NULL;
    if (k3_chat_render(t, messages, &o, &ids, &n, &err) != K3_OK) return;
    check_markup(ids, n);
    k3_free(ids);
}

static bool is_json(const char *text) {
    char *copy = strdup(text);
    struct k3_json j = k3_json_of(copy, strlen(copy));
    bool ok = k3_json_peek(&j) == '{' && k3_json_skip(&j) && k3_json_finish(&j);
    free(copy);
    return ok;
}

/* Bytes from 0xf8 on, which UTF-8 never has, stand for the special tokens. */
static int32_t id_of(uint8_t byte) {
    return byte < 0xf8 ? byte : END + byte % 4;
}

static void reply(const k3_tokenizer *t, const uint8_t *data, size_t n) {
    k3_reply *r;
    k3_reply_event e;
    size_t content = 0, reasoning = 0, length;
    bool whole = false; /* a model may give all arguments at once, which need not be JSON */
    if (k3_reply_new(t, n & 1, &r, NULL) != K3_OK) abort();
    for (size_t i = 0; i <= n; i++) {
        k3_status status = i < n ? k3_reply_push(r, id_of(data[i]), &e, NULL) : k3_reply_finish(r, &e, NULL);
        if (status != K3_OK || strlen(e.text) > e.length) abort();
        if (e.kind == K3_REPLY_CONTENT) content += e.length;
        if (e.kind == K3_REPLY_REASONING) reasoning += e.length;
        if (e.kind >= K3_REPLY_CALL && e.kind <= K3_REPLY_CALL_END && e.call >= k3_reply_calls(r)) abort();
    }
    k3_reply_content(r, &length);
    if (length != content) abort();
    k3_reply_reasoning(r, &length);
    if (length != reasoning) abort();
    whole = memmem(data, n, "json", 4) != NULL || memchr(data, 0, n) != NULL;
    for (size_t i = 0; !whole && i < k3_reply_calls(r); i++)
        if (!is_json(k3_reply_call_arguments(r, i))) abort();
    k3_reply_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static k3_tokenizer *t;
    if (!t) t = make();
    if (n < 1) return 0;
    if (data[0] & 1) {
        reply(t, data + 1, n - 1);
        return 0;
    }
    char *text = malloc(n);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = 0;
    char *tools = memchr(text, 1, n); /* what stands behind a byte 1 are the tools */
    if (tools) *tools++ = 0;
    render(t, text, tools ? tools : "");
    free(text);
    return 0;
}
