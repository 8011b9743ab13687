/* Any bytes as config.json: accepted or refused with a line of text, never both. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct k3_config c;
    k3_error err = {0};
    k3_status status = k3_config_parse("config.json", (const char *)data, n, &c, &err);
    if (status != K3_OK) {
        if (!err.text[0] || strchr(err.text, '\n') || err.status != status) abort();
        return 0;
    }
    if (!c.layers || !c.hidden_size || !c.vocab_size || !c.is_kda) abort();
    unsigned kda = 0;
    for (uint32_t i = 0; i < c.layers; i++) kda += c.is_kda[i] + k3_config_is_moe(&c, i);
    if (kda > 2 * c.layers) abort();
    k3_config_clear(&c);
    return 0;
}
