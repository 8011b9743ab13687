#include "format/safetensors_header.h"

#include "base/error.h"
#include "base/memory.h"
#include "format/name_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t bits, dtype;
} types[] = {
    {"BF16", 16, K3_DTYPE_BF16},     {"U8", 8, K3_DTYPE_U8},           {"F32", 32, K3_DTYPE_F32},
    {"F16", 16, K3_DTYPE_F16},       {"F64", 64, K3_DTYPE_OTHER},      {"BOOL", 8, K3_DTYPE_OTHER},
    {"I8", 8, K3_DTYPE_OTHER},       {"I16", 16, K3_DTYPE_OTHER},      {"U16", 16, K3_DTYPE_OTHER},
    {"I32", 32, K3_DTYPE_OTHER},     {"U32", 32, K3_DTYPE_OTHER},      {"I64", 64, K3_DTYPE_OTHER},
    {"U64", 64, K3_DTYPE_OTHER},     {"C64", 64, K3_DTYPE_OTHER},      {"F8_E4M3", 8, K3_DTYPE_OTHER},
    {"F8_E5M2", 8, K3_DTYPE_OTHER},  {"F8_E8M0", 8, K3_DTYPE_OTHER},   {"F8_E4M3FNUZ", 8, K3_DTYPE_OTHER},
    {"F8_E5M2FNUZ", 8, K3_DTYPE_OTHER}, {"F6_E2M3", 6, K3_DTYPE_OTHER}, {"F6_E3M2", 6, K3_DTYPE_OTHER},
    {"F4", 4, K3_DTYPE_OTHER},
};
#define TYPES (sizeof types / sizeof *types)

const char *k3_dtype_name(const struct k3_tensor *t) {
    return types[t->type].name;
}

struct parser {
    struct k3_json j;
    struct k3_header *h;
    const char *file;
    uint64_t data_start, file_bytes;
    k3_error *err;
};

static bool is(struct k3_name name, const char *text, size_t length) {
    return name.length == length && memcmp(name.s, text, length) == 0;
}
#define IS(name, text) is(name, text, sizeof(text) - 1)

static k3_status broken(const struct parser *p) {
    return k3_fail(p->err, K3_ERR_FORMAT, "%s: byte %" PRIu64 " of the header: %s", p->file, k3_json_offset(&p->j),
                   p->j.error);
}

#define TENSOR_FAIL(p, t, status, format, ...)                                                                       \
    k3_fail((p)->err, status, "%s: tensor %.*s: " format, (p)->file, k3_shown((t)->name_length), (t)->name, __VA_ARGS__)

static k3_status broken_tensor(const struct parser *p, const struct k3_tensor *t) {
    return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "byte %" PRIu64 " of the header: %s", k3_json_offset(&p->j), p->j.error);
}

static k3_status parse_dtype(struct parser *p, struct k3_tensor *t) {
    struct k3_name name;
    if (!k3_json_string(&p->j, &name)) return broken_tensor(p, t);
    for (uint8_t i = 0; i < TYPES; i++) {
        if (strlen(types[i].name) != name.length || memcmp(types[i].name, name.s, name.length) != 0) continue;
        t->type = i;
        t->dtype = types[i].dtype;
        return K3_OK;
    }
    return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "unknown dtype %.*s", k3_shown(name.length), name.s);
}

static k3_status parse_shape(struct parser *p, struct k3_tensor *t) {
    bool first = true;
    if (!k3_json_enter(&p->j, '[')) return broken_tensor(p, t);
    while (k3_json_more(&p->j, ']', &first)) {
        if (t->rank == K3_MAX_RANK) return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "more than %d dimensions", K3_MAX_RANK);
        if (!k3_json_uint(&p->j, &t->shape[t->rank])) return broken_tensor(p, t);
        t->rank++;
    }
    return p->j.error ? broken_tensor(p, t) : K3_OK;
}

static k3_status set_range(const struct parser *p, struct k3_tensor *t, uint64_t begin, uint64_t end) {
    uint64_t sum;
    if (begin > end || !k3_add64(p->data_start, end, &sum))
        return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "data_offsets [%" PRIu64 ", %" PRIu64 "] cannot be true", begin, end);
    t->offset = p->data_start + begin;
    t->bytes = end - begin;
    return K3_OK;
}

static k3_status parse_offsets(struct parser *p, struct k3_tensor *t) {
    uint64_t v[2], n = 0;
    bool first = true;
    if (!k3_json_enter(&p->j, '[')) return broken_tensor(p, t);
    while (k3_json_more(&p->j, ']', &first)) {
        if (n == 2) k3_json_fail(&p->j, "more than two data_offsets");
        else k3_json_uint(&p->j, &v[n++]);
        if (p->j.error) return broken_tensor(p, t);
    }
    if (!p->j.error && n < 2) k3_json_fail(&p->j, "fewer than two data_offsets");
    return p->j.error ? broken_tensor(p, t) : set_range(p, t, v[0], v[1]);
}

static k3_status check_bytes(const struct parser *p, const struct k3_tensor *t) {
    uint64_t bits = types[t->type].bits;
    char shape[24 * K3_MAX_RANK];
    bool fits = true;
    for (uint8_t i = 0; i < t->rank; i++) fits = fits && k3_mul64(bits, t->shape[i], &bits);
    if (fits && bits % 8 == 0 && bits / 8 == t->bytes) return K3_OK;
    shape[0] = 0;
    for (size_t i = 0, n = 0; i < t->rank; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRIu64, i ? ", " : "", t->shape[i]);
    if (!fits) return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "the size of %s [%s] overflows", k3_dtype_name(t), shape);
    return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "%s [%s] takes %" PRIu64 " bytes, its data_offsets hold %" PRIu64,
                       k3_dtype_name(t), shape, bits / 8 + (bits % 8 != 0), t->bytes);
}

static bool literal(struct k3_json *j, const char *text, size_t length) {
    if ((size_t)(j->end - j->at) < length || memcmp(j->at, text, length) != 0) return false;
    j->at += length;
    return true;
}
#define LITERAL(j, text) literal(j, text, sizeof(text) - 1)

/* The object behind a tensor's name, spelled as the safetensors library does, which leaves no blanks
 * and keeps this order: the headers of the full release take 0.09 s so, and 0.14 s without.  False: it
 * is spelled otherwise, or broken, and nothing was done. */
static bool parse_usual(struct parser *p, struct k3_tensor *t, uint64_t range[2]) {
    struct k3_json *j = &p->j, before = *j;
    bool usual = LITERAL(j, "{\"dtype\":\"");
    t->type = LITERAL(j, "U8\"") ? 1 : 0; /* the commonest of types[] */
    usual = usual && (t->type || LITERAL(j, "BF16\"")) && LITERAL(j, ",\"shape\":[") && j->at < j->end;
    if (usual && *j->at != ']') {
        do usual = t->rank < K3_MAX_RANK && k3_json_uint(j, &t->shape[t->rank++]);
        while (usual && LITERAL(j, ","));
    }
    usual = usual && LITERAL(j, "],\"data_offsets\":[") && k3_json_uint(j, &range[0]) && LITERAL(j, ",") &&
            k3_json_uint(j, &range[1]) && LITERAL(j, "]}");
    if (!usual) {
        *j = before;
        t->rank = 0;
    }
    t->dtype = types[t->type].dtype;
    return usual;
}

/* The object behind a tensor's name. */
static k3_status parse_members(struct parser *p, struct k3_tensor *t) {
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    static const char *const names[] = {"dtype", "shape", "data_offsets"};
    unsigned seen = 0;
    bool first = true;
    if (!k3_json_enter(&p->j, '{')) return broken_tensor(p, t);
    while (k3_json_more(&p->j, '}', &first)) {
        struct k3_name key;
        k3_status status = K3_OK;
        unsigned field;
        if (!k3_json_key(&p->j, &key)) return broken_tensor(p, t);
        field = IS(key, "dtype") ? DTYPE : IS(key, "shape") ? SHAPE : IS(key, "data_offsets") ? OFFSETS : 0;
        if (seen & field) return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "%.*s is given twice", (int)key.length, key.s);
        seen |= field;
        switch (field) {
        case DTYPE: status = parse_dtype(p, t); break;
        case SHAPE: status = parse_shape(p, t); break;
        case OFFSETS: status = parse_offsets(p, t); break;
        default:
            if (!k3_json_skip(&p->j)) return broken_tensor(p, t);
        }
        if (status) return status;
    }
    if (p->j.error) return broken_tensor(p, t);
    for (size_t i = 0; i < 3; i++)
        if (!(seen & 1u << i)) return TENSOR_FAIL(p, t, K3_ERR_FORMAT, "no %s", names[i]);
    return K3_OK;
}

static bool grow(struct k3_header *h) {
    if (h->count < h->room) return true;
    size_t room = h->room ? 2 * (size_t)h->room : 1024;
    if (room > UINT32_MAX / 2) return false;
    struct k3_tensor *tensor = realloc(h->tensor, room * sizeof *tensor);
    if (tensor) h->tensor = tensor;
    uint64_t *hash = realloc(h->hash, room * sizeof *hash);
    if (hash) h->hash = hash;
    if (!tensor || !hash) return false;
    h->room = (uint32_t)room;
    return true;
}

static k3_status add_tensor(struct parser *p, struct k3_name name) {
    struct k3_header *h = p->h;
    if (!grow(h)) return k3_fail(p->err, K3_ERR_MEMORY, "%s: out of memory for its tensors", p->file);
    struct k3_tensor *t = &h->tensor[h->count];
    /* The text up to here has been read: the names move together at its start. */
    char *kept = p->j.start + h->name_bytes;
    memmove(kept, name.s, name.length);
    h->name_bytes += name.length;
    *t = (struct k3_tensor){.name = kept, .name_length = (uint32_t)name.length};
    h->hash[h->count++] = k3_name_hash((struct k3_name){kept, name.length});
    uint64_t range[2];
    k3_status status = parse_usual(p, t, range) ? set_range(p, t, range[0], range[1]) : parse_members(p, t);
    return status ? status : check_bytes(p, t);
}

struct range {
    uint64_t begin, end;
    const struct k3_tensor *tensor;
};

static int by_begin(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor; /* ties in the order of the text */
}

/* Of ranges sorted by begin, the first two that share a byte. */
static k3_status find_overlap(const struct parser *p, const struct range *r, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const struct k3_tensor *a = r[i - 1].tensor, *b = r[i].tensor;
        if (r[i].begin < r[i - 1].end)
            return k3_fail(p->err, K3_ERR_FORMAT, "%s: tensors %.*s and %.*s overlap", p->file,
                           k3_shown(a->name_length), a->name, k3_shown(b->name_length), b->name);
    }
    return K3_OK;
}

static k3_status check_overlaps(const struct parser *p) {
    const struct k3_header *h = p->h;
    uint64_t end = 0;
    bool ascending = true; /* as every known writer leaves them */
    for (uint32_t i = 0; i < h->count; i++) {
        if (!h->tensor[i].bytes) continue;
        ascending = ascending && h->tensor[i].offset >= end;
        end = h->tensor[i].offset + h->tensor[i].bytes;
    }
    if (ascending) return K3_OK;
    struct range *r = k3_array(h->count, sizeof *r);
    size_t n = 0;
    if (!r) return k3_fail(p->err, K3_ERR_MEMORY, "%s: out of memory for its tensors", p->file);
    for (uint32_t i = 0; i < h->count; i++) {
        const struct k3_tensor *t = &h->tensor[i];
        if (t->bytes) r[n++] = (struct range){t->offset, t->offset + t->bytes, t};
    }
    qsort(r, n, sizeof *r, by_begin);
    k3_status status = find_overlap(p, r, n);
    free(r);
    return status;
}

/* The file ends where its last tensor does: neither cut nor followed by something else. */
static k3_status check_end(const struct parser *p) {
    const struct k3_tensor *last = NULL;
    uint64_t end = p->data_start;
    for (uint32_t i = 0; i < p->h->count; i++) {
        const struct k3_tensor *t = &p->h->tensor[i];
        if (t->offset + t->bytes <= end) continue;
        end = t->offset + t->bytes;
        last = t;
    }
    if (end == p->file_bytes) return K3_OK;
    if (!last)
        return k3_fail(p->err, K3_ERR_FORMAT, "%s: has %" PRIu64 " bytes, but its header describes %" PRIu64, p->file,
                       p->file_bytes, end);
    return k3_fail(p->err, K3_ERR_FORMAT, "%s: has %" PRIu64 " bytes, but its last tensor %.*s ends at byte %" PRIu64,
                   p->file, p->file_bytes, k3_shown(last->name_length), last->name, end);
}

k3_status k3_header_parse(struct k3_header *h, const char *file, char *text, size_t length, uint64_t data_start,
                          uint64_t file_bytes, k3_error *err) {
    struct parser p = {k3_json_of(text, length), h, file, data_start, file_bytes, err};
    bool first = true, metadata = false;
    h->count = 0;
    h->name_bytes = 0;
    k3_json_enter(&p.j, '{');
    while (!p.j.error && k3_json_more(&p.j, '}', &first)) {
        struct k3_name name;
        if (!k3_json_key(&p.j, &name)) break;
        if (IS(name, "__metadata__")) {
            if (metadata) return k3_fail(err, K3_ERR_FORMAT, "%s: __metadata__ is given twice", file);
            metadata = true;
            k3_json_skip(&p.j);
            continue;
        }
        k3_status status = add_tensor(&p, name);
        if (status) return status;
    }
    if (!k3_json_finish(&p.j)) return broken(&p);
    k3_status status = check_overlaps(&p);
    return status ? status : check_end(&p);
}

void k3_header_clear(struct k3_header *h) {
    free(h->tensor);
    free(h->hash);
    *h = (struct k3_header){0};
}
