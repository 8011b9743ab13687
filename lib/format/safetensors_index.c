#include "format/safetensors_index.h"

#include "base/error.h"
#include "base/memory.h"
#include "format/name_map.h"
#include "format/safetensors_header.h"

#include <inttypes.h>
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
    return k3_fail(p->err, K3_ERR_FORMAT, "%s: byte %" PRIu64 ": %s", p->file, k3_json_offset(&p->j), p->j.error);
}

static k3_status no_memory(const struct parser *p) {
    return k3_fail(p->err, K3_ERR_MEMORY, "%s: out of memory for its names", p->file);
}

/* Room for n elements instead of *room; the old ones stay in the arena, unused. */
static k3_status resize(struct parser *p, void *array, size_t element, uint64_t n, uint32_t *room) {
    void *old, *bigger = n <= UINT32_MAX / 2 ? k3_arena_take(&p->x->arena, (size_t)n * element) : NULL;
    if (!bigger) return no_memory(p);
    memcpy(&old, array, sizeof old);
    if (*room) memcpy(bigger, old, *room * element);
    memcpy(array, &bigger, sizeof bigger);
    *room = (uint32_t)n;
    return K3_OK;
}

static bool is_plain(struct k3_name name) {
    bool dots = name.length <= 2 && memcmp(name.s, "..", name.length) == 0; /* "", "." or ".." */
    return !dots && !memchr(name.s, '/', name.length);
}

static k3_status add_shard(struct parser *p, struct k3_name name, uint64_t hash) {
    struct k3_index *x = p->x;
    k3_status status = K3_OK;
    if (!is_plain(name))
        return k3_fail(p->err, K3_ERR_FORMAT, "%s: shard '%.*s' is not the name of a file beside it", p->file,
                       k3_shown(name.length), name.s);
    if (x->shards == p->shard_room)
        status = resize(p, &x->shard, sizeof *x->shard, 64 + 2 * (uint64_t)x->shards, &p->shard_room);
    if (status) return status;
    char *copy = k3_arena_take(&x->arena, name.length);
    if (!copy || !k3_name_map_reserve(&p->map, (size_t)x->shards + 1)) return no_memory(p);
    memcpy(copy, name.s, name.length);
    x->shard[x->shards] = (struct k3_name){copy, name.length};
    k3_name_map_add(&p->map, x->shard, x->shards++, hash);
    return K3_OK;
}

/* The number of a shard, a new one for a new name. */
static k3_status shard_number(struct parser *p, struct k3_name name, uint32_t *out) {
    struct k3_index *x = p->x;
    /* Neighbours mostly lie in the same shard. */
    if (x->count) {
        *out = x->entry[x->count - 1].shard;
        const struct k3_name *last = &x->shard[*out];
        if (last->length == name.length && memcmp(last->s, name.s, name.length) == 0) return K3_OK;
    }
    uint64_t hash = k3_name_hash(name);
    *out = k3_name_map_find(&p->map, x->shard, name, hash);
    if (*out != K3_NAME_NONE) return K3_OK;
    *out = x->shards;
    return add_shard(p, name, hash);
}

static k3_status parse_entry(struct parser *p) {
    struct k3_index *x = p->x;
    struct k3_name name, shard;
    uint32_t number;
    k3_status status = K3_OK;
    if (x->count == p->entry_room)
        status = resize(p, &x->entry, sizeof *x->entry, 64 + 2 * (uint64_t)p->entry_room, &p->entry_room);
    if (status) return status;
    if (!k3_json_key(&p->j, &name)) return broken(p);
    uint64_t hash = k3_name_hash(name);
    if (!k3_json_string(&p->j, &shard))
        return k3_fail(p->err, K3_ERR_FORMAT, "%s: byte %" PRIu64 ", a tensor's shard: %s", p->file,
                       k3_json_offset(&p->j), p->j.error);
    status = shard_number(p, shard, &number);
    if (!status) x->entry[x->count++] = (struct k3_index_entry){hash, number};
    return status;
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

static bool is_map(struct k3_name key) {
    static const char name[] = "weight_map";
    return key.length == sizeof name - 1 && memcmp(key.s, name, key.length) == 0;
}

static k3_status parse_all(struct parser *p) {
    bool first = true, found = false;
    if (!k3_json_enter(&p->j, '{')) return broken(p);
    while (k3_json_more(&p->j, '}', &first)) {
        struct k3_name key;
        if (!k3_json_key(&p->j, &key)) return broken(p);
        if (!is_map(key)) {
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
    k3_status status = rank && place ? K3_OK : no_memory(p);
    free(place);
    free(rank);
    return status;
}

k3_status k3_index_parse(struct k3_index *x, const char *file, const struct k3_json_source *source, uint64_t bytes,
                         k3_error *err) {
    struct parser p = {.x = x, .map = {.name_of = shard_name}, .file = file, .err = err};
    char *window = malloc(K3_JSON_WINDOW);
    *x = (struct k3_index){0};
    k3_status status = window ? K3_OK : no_memory(&p);
    if (!status) { /* an entry takes some 110 bytes of text */
        p.j = k3_json_from(source, window);
        status = resize(&p, &x->entry, sizeof *x->entry, 64 + bytes / 100, &p.entry_room);
    }
    if (!status) status = parse_all(&p);
    if (!status) status = sort_shards(&p);
    k3_name_map_clear(&p.map);
    free(window);
    if (status) k3_index_clear(x);
    return status;
}

void k3_index_clear(struct k3_index *x) {
    k3_arena_clear(&x->arena);
    *x = (struct k3_index){0};
}

/* The name of the i-th member of the object that comes. */
static bool find_member(struct k3_json *j, uint32_t i, char *name, size_t size) {
    struct k3_name key;
    bool first = true;
    if (!k3_json_enter(j, '{')) return false;
    while (k3_json_more(j, '}', &first) && k3_json_key(j, &key)) {
        if (i-- == 0) {
            size_t n = key.length < size ? key.length : size - 1;
            memcpy(name, key.s, n);
            name[n] = 0;
            return true;
        }
        if (!k3_json_skip(j)) return false;
    }
    return false;
}

void k3_index_name(const struct k3_json_source *source, uint32_t i, char *name, size_t size) {
    char *window = malloc(K3_JSON_WINDOW);
    struct k3_json j = k3_json_from(source, window);
    struct k3_name key;
    bool first = true;
    name[0] = 0;
    if (!window || !k3_json_enter(&j, '{')) goto out;
    while (k3_json_more(&j, '}', &first) && k3_json_key(&j, &key)) {
        if (is_map(key) ? find_member(&j, i, name, size) : !k3_json_skip(&j)) break;
    }
out:
    free(window);
}
