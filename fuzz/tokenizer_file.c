/* Any bytes as tiktoken.model or as tokenizer_config.json.  The first byte says which; odd ones put the 256
 * single bytes before the rest, so that a fuzzer gets past the check for them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/tokenizer.h"
#include "tests/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void use(k3_tokenizer *t) {
    static const char text[] = "it's <|open|> 中文\xff [BOS]";
    for (unsigned flags = 0; flags < 2; flags++) {
        int32_t *ids = NULL;
        size_t count = 0, length;
        if (k3_tokenizer_encode(t, text, sizeof text - 1, flags, &ids, &count, NULL) != K3_OK) abort();
        for (size_t i = 0; i < count; i++)
            if (!k3_tokenizer_bytes(t, ids[i], &length) || length == 0) abort();
        k3_free(ids);
    }
    k3_tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n == 0) return 0;
    const char *rest = (const char *)data + 1;
    struct model_text m = {0};
    k3_tokenizer *t = NULL;
    k3_error err = {0};
    k3_status status;
    if (data[0] % 4 == 2) {
        m = model_of_bytes();
        status = k3_tokenizer_from_memory(m.s, m.n, rest, n - 1, &t, &err);
    } else {
        if (data[0] % 2) m = model_of_bytes();
        model_append(&m, rest, n - 1);
        status = k3_tokenizer_from_memory(m.s, m.n, NULL, 0, &t, &err);
    }
    if ((status == K3_OK) != (t != NULL)) abort();
    if (status != K3_OK && !err.text[0]) abort();
    if (t) use(t);
    free(m.s);
    return 0;
}
