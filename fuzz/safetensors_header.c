/* Any bytes as the header of a safetensors file.  What is accepted must be JSON for Jansson too, and
 * every tensor must lie in the file, alone.  The first two bytes say how much data the file has. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "format/safetensors_header.h"
#include "format/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Jansson knows no integers beyond 2^63 and no numbers beyond 1e308: the only texts on which it may differ. */
static void check_json(const uint8_t *text, size_t n) {
    json_error_t error;
    json_t *root = json_loadb((const char *)text, n, 0, &error);
    enum json_error_code code = json_error_code(&error);
    if (!root && code != json_error_numeric_overflow) abort();
    json_decref(root);
}

static void check_tensor(const struct k3_header *h, uint32_t i, uint64_t start, uint64_t size) {
    const struct k3_tensor *t = &h->tensor[i];
    if (t->rank > K3_MAX_RANK || t->offset < start || t->offset > size || t->bytes > size - t->offset) abort();
    if (k3_utf8_valid(t->name, t->name_length) != t->name_length || memchr(t->name, 0, t->name_length)) abort();
    if (!k3_dtype_name(t)[0]) abort();
    for (uint32_t k = 0; k < i; k++) {
        const struct k3_tensor *u = &h->tensor[k];
        if (t->bytes && u->bytes && t->offset < u->offset + u->bytes && u->offset < t->offset + t->bytes) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct k3_header h; /* used again and again, as a reading thread does */
    if (n < 2) return 0;
    size_t length = n - 2;
    uint64_t start = 8 + length, size = start + data[0] + 256u * data[1];
    char *text = malloc(length ? length : 1);
    k3_error err = {0};
    if (!text) return 0;
    memcpy(text, data + 2, length);
    k3_status status = k3_header_parse(&h, "x.safetensors", text, length, start, size, &err);
    if (status == K3_OK) {
        check_json(data + 2, length);
        for (uint32_t i = 0; i < h.count && i < 300; i++) check_tensor(&h, i, start, size);
    } else if (!err.text[0] || strchr(err.text, '\n') || status != K3_ERR_FORMAT) {
        abort();
    }
    free(text);
    return 0;
}
