#include "format/safetensors_index.h"

#include "base/error.h"
#include "base/memory.h"
#include "format/name_map.h"
#include "format/safetensors_header.h"

#include <stdlib.h>
#include <string.h>

struct parser {
    struct k3_json j;
    struct k3_index *x;
    struct k3_name_map map; /* of the shards met so far */
    uint32_t entry_room, shard_room;
    const char *file;
    k3_error *err;
};

static struct k3_name shard_name(const void *shards, uint32_t i) {
    return ((const struct k3_name *)shards)[i];
}

static k3_status broken(const struct parser *p) {
    return k3_fail(p->err, K3_ERR_FORMAT, "%s: byte %zu: %s", p->file, k3_json_offset(&p->j), p->j.error);
}

/* Doubles an array that is full. */
static k3_status grow(const struct parser *p, void **array, size_t element, uint32_t count, uint32_t *room) {
    if (count < *room) return K3_OK;
    size_t more = *room ? 2 * (size_t)*room : 256, bytes;
    void *bigger = more < UINT32_MAX && k3_mul(more, element, &bytes) ? realloc(*array, bytes) : NULL;
    if (!bigger) return k3_fail(p->err, K3_ERR_MEMORY, "%s: out of memory", p->file);
    *array = bigger;
    *room = (uint32_t)more;
    return K3_OK;
}

static bool is_plain(struct k3_name name) {
    bool dots = name.length <= 2 && memcmp(name.s, "..", name.length) == 0; /* "", "." or ".." */
    return !dots && !memchr(name.s, '/', name.length);
}

/* The number of a shard, a new one for a new name. */
static k3_status shard_number(struct parser *p, struct k3_name name, uint32_t *out) {
    struct k3_index *x = p->x;
    uint32_t hash = k3_name_hash(name), i = k3_name_map_find(&p->map, x->shard, name, hash);
    *out = i;
    if (i != K3_NAME_NONE) return K3_OK;
    if (!is_plain(name))
        return k3_fail(p->err, K3_ERR_FORMAT, "%s: shard '%.*s' is not the name of a file beside it", p->file,
                       k3_shown(name.length), name.s);
    k3_status status = grow(p, (void **)&x->shard, sizeof *x->shard, x->shards, &p->shard_room);
    if (status) return status;
    if (!k3_name_map_reserve(&p->map, (size_t)x->shards + 1))
        return k3_fail(p->err, K3_ERR_MEMORY, "%s: out of memory", p->file);
    *out = x->shards;
    x->shard[x->shards++] = name;
    k3_name_map_add(&p->map, x->shard, *out, hash);
    return K3_OK;
}

static k3_status parse_entry(struct parser *p) {
    struct k3_index *x = p->x;
    struct k3_name name, shard;
    uint32_t number;
    k3_status status = grow(p, (void **)&x->entry, sizeof *x->entry, x->count, &p->entry_room);
    if (status) return status;
    if (!k3_json_key(&p->j, &name)) return broken(p);
    if (name.length > UINT32_MAX) return k3_fail(p->err, K3_ERR_FORMAT, "%s: a name beyond 4 GB", p->file);
    if (!k3_json_string(&p->j, &shard))
        return k3_fail(p->err, K3_ERR_FORMAT, "%s: the shard of tensor %.*s: byte %zu: %s", p->file,
                       k3_shown(name.length), name.s, k3_json_offset(&p->j), p->j.error);
    /* Neighbours mostly lie in the same shard. */
    number = x->count ? x->entry[x->count - 1].shard : 0;
    if (!x->count || x->shard[number].length != shard.length ||
        memcmp(x->shard[number].s, shard.s, shard.length) != 0)
        status = shard_number(p, shard, &number);
    if (status) return status;
    x->entry[x->count++] = (struct k3_index_entry){name.s, (uint32_t)name.length, number};
    return K3_OK;
}

static k3_status parse_map(struct parser *p) {
    bool first = true;
    if (!k3_json_enter(&p->j, '{'))
        return k3_fail(p->err, K3_ERR_FORMAT, "%s: weight_map: %s", p->file, p->j.error);
    while (k3_json_more(&p->j, '}', &first)) {
        k3_status status = parse_entry(p);
        if (status) return status;
    }
    return p->j.error ? broken(p) : K3_OK;
}

static k3_status parse_all(struct parser *p) {
    bool first = true, found = false;
    if (!k3_json_enter(&p->j, '{')) return broken(p);
    while (k3_json_more(&p->j, '}', &first)) {
        struct k3_name key;
        if (!k3_json_key(&p->j, &key)) return broken(p);
        if (key.length != 10 || memcmp(key.s, "weight_map", 10) != 0) {
            if (!k3_json_skip(&p->j)) return broken(p);
            continue;
        }
        if (found) return k3_fail(p->err, K3_ERR_FORMAT, "%s: weight_map is given twice", p->file);
        found = true;
        k3_status status = parse_map(p);
        if (status) return status;
    }
    if (!k3_json_finish(&p->j)) return broken(p);
    if (!found) return k3_fail(p->err, K3_ERR_FORMAT, "%s: no weight_map", p->file);
    if (!p->x->count) return k3_fail(p->err, K3_ERR_FORMAT, "%s: weight_map is empty", p->file);
    return K3_OK;
}

struct rank {
    struct k3_name name;
    uint32_t number;
};

static int by_name(const void *a, const void *b) {
    const struct k3_name *x = &((const struct rank *)a)->name, *y = &((const struct rank *)b)->name;
    size_t n = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->s, y->s, n);
    return order ? order : x->length < y->length ? -1 : x->length > y->length;
}

/* Numbers the shards by name instead of by first mention. */
static k3_status sort_shards(struct parser *p) {
    struct k3_index *x = p->x;
    struct rank *rank = k3_array(x->shards, sizeof *rank);
    uint32_t *place = k3_array(x->shards, sizeof *place);
    if (rank && place) {
        for (uint32_t i = 0; i < x->shards; i++) rank[i] = (struct rank){x->shard[i], i};
        qsort(rank, x->shards, sizeof *rank, by_name);
        for (uint32_t i = 0; i < x->shards; i++) {
            place[rank[i].number] = i;
            x->shard[i] = rank[i].name;
        }
        for (uint32_t i = 0; i < x->count; i++) x->entry[i].shard = place[x->entry[i].shard];
    }
    k3_status status = rank && place ? K3_OK : k3_fail(p->err, K3_ERR_MEMORY, "%s: out of memory", p->file);
    free(place);
    free(rank);
    return status;
}

k3_status k3_index_parse(struct k3_index *x, const char *file, char *text, size_t length, k3_error *err) {
    struct parser p = {.j = k3_json_of(text, length), .x = x, .map = {.name_of = shard_name}, .file = file, .err = err};
    *x = (struct k3_index){0};
    k3_status status = parse_all(&p);
    if (!status) status = sort_shards(&p);
    k3_name_map_clear(&p.map);
    if (status) k3_index_clear(x);
    return status;
}

void k3_index_clear(struct k3_index *x) {
    free(x->entry);
    free(x->shard);
    *x = (struct k3_index){0};
}
