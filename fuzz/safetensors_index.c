/* Any bytes as model.safetensors.index.json.  The same text elsewhere in the window, which is small
 * here, and in small pieces must give the same; what is accepted must be JSON for Jansson. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "format/name_map.h"
#include "format/safetensors_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct text {
    const uint8_t *data;
    size_t n, at, blanks, piece;
};

static size_t read_text(void *user, char *to, size_t room) {
    struct text *t = user;
    size_t most = room < t->piece ? room : t->piece;
    if (t->blanks) {
        most = t->blanks < room ? t->blanks : room;
        memset(to, ' ', most);
        t->blanks -= most;
        return most;
    }
    if (most > t->n - t->at) most = t->n - t->at;
    if (most) memcpy(to, t->data + t->at, most);
    t->at += most;
    return most;
}

static k3_status parse(struct text t, struct k3_index *x) {
    k3_error err = {0};
    struct k3_json_source source = {read_text, &t};
    k3_status status = k3_index_parse(x, "index.json", &source, t.n, &err);
    if (status != K3_OK && (!err.text[0] || strchr(err.text, '\n') || status != K3_ERR_FORMAT)) abort();
    return status;
}

static void check(const struct k3_index *x, struct text t) {
    json_error_t error;
    json_t *root = json_loadb((const char *)t.data, t.n, 0, &error);
    if (!root && json_error_code(&error) != json_error_numeric_overflow) abort();
    json_decref(root);
    for (uint32_t i = 0; i < x->count && i < 20; i++) {
        struct text again = t;
        char name[K3_JSON_TOKEN + 1];
        const struct k3_name *shard = &x->shard[x->entry[i].shard];
        if (x->entry[i].shard >= x->shards || !shard->length || memchr(shard->s, '/', shard->length)) abort();
        k3_index_name(&(struct k3_json_source){read_text, &again}, i, name, sizeof name);
        if (k3_name_hash((struct k3_name){name, strlen(name)}) != x->entry[i].hash) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2) return 0;
    struct text whole = {.data = data + 2, .n = n - 2, .piece = SIZE_MAX}, cut = whole;
    struct k3_index x, y;
    cut.blanks = data[0] * 8u;
    cut.piece = 1 + data[1];
    k3_status status = parse(whole, &x);
    if (parse(cut, &y) != status) abort();
    if (status != K3_OK) return 0;
    if (x.count != y.count || x.shards != y.shards) abort();
    for (uint32_t i = 0; i < x.count; i++)
        if (x.entry[i].hash != y.entry[i].hash || x.entry[i].shard != y.entry[i].shard) abort();
    check(&x, whole);
    k3_index_clear(&x);
    k3_index_clear(&y);
    return 0;
}
