/* Any bytes as text: encoding, with the released caps and with small ones, gives ids whose bytes are the
 * text again, invalid UTF-8 repaired; streaming them gives the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/tokenizer.h"
#include "format/utf8.h"
#include "tests/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static k3_tokenizer *make(void) {
    static const char *const tokens[] = {"th", " t", "he", " th", " the", "in", "aa", "aaaa", "  ", "中",
                                        "中文", "\n\n"};
    struct model_text m = model_of_bytes();
    k3_tokenizer *t = NULL;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) model_token(&m, tokens[i], strlen(tokens[i]));
    static const char config[] = "{\"added_tokens_decoder\": {\"268\": {\"content\": \"[B]\"},"
                                 "\"269\": {\"content\": \"<|\"}, \"270\": {\"content\": \"<|o|>\"},"
                                 "\"271\": {\"content\": \"a\"}}}";
    if (k3_tokenizer_from_memory(m.s, m.n, config, sizeof config - 1, &t, NULL) != K3_OK) abort();
    free(m.s);
    return t;
}

static void round_trip(const k3_tokenizer *t, const struct k3_caps *caps, const char *text, size_t n, unsigned flags) {
    int32_t *ids = NULL;
    size_t count = 0, at = 0, expected_n, length;
    const char *out;
    char *expected = k3_utf8_repair(text, n, &expected_n);
    k3_decoder *d = NULL;
    if (!expected || k3_decoder_new(t, &d, NULL) != K3_OK) abort();
    if (k3_tokenizer_encode_capped(t, caps, text, n, flags, &ids, &count, NULL) != K3_OK) abort();
    for (size_t i = 0; i < count; i++) {
        if (flags == K3_ENCODE_ORDINARY && ids[i] >= 268) abort();
        if (k3_decoder_push(d, ids[i], &out, &length, NULL) != K3_OK) abort();
        if (at + length > expected_n || memcmp(expected + at, out, length) != 0) abort();
        at += length;
    }
    if (k3_decoder_finish(d, &out, &length, NULL) != K3_OK || length || at != expected_n) abort();
    k3_decoder_free(d);
    k3_free(ids);
    free(expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static k3_tokenizer *t;
    if (!t) t = make();
    if (n < 2) return 0;
    struct k3_caps caps = {1 + data[0], 1 + data[1] % 16};
    const char *text = (const char *)data + 2;
    for (unsigned flags = 0; flags < 2; flags++) {
        round_trip(t, &k3_caps_released, text, n - 2, flags);
        round_trip(t, &caps, text, n - 2, flags);
    }
    return 0;
}
