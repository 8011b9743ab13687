#include "format/json_respell.h"


#include <stdlib.h>
#include <string.h>

struct member {
    const char *text;       /* of all members, once it no longer moves */
    size_t key, key_length; /* there */
    size_t start, end;      /* of `"key":value` there */
    size_t order;
};

static bool value(struct k3_json *j, enum k3_json_style style, int depth, struct k3_text *out);

static bool scalar(struct k3_json *j, struct k3_text *out) {
    struct k3_name s;
    if (k3_json_peek(j) == '"') {
        if (!k3_json_string(j, &s)) return false;
        k3_text_add_json_string(out, s.s, s.length);
    } else {
        const char *start = j->at;
        if (!k3_json_skip(j)) return false;
        k3_text_add(out, start, (size_t)(j->at - start));
    }
    return !out->failed;
}

static bool array(struct k3_json *j, enum k3_json_style style, int depth, struct k3_text *out) {
    bool first = true, next = false;
    if (!k3_json_enter(j, '[')) return false;
    k3_text_put(out, "[");
    while (k3_json_more(j, ']', &first)) {
        if (next) k3_text_put(out, style == K3_JSON_SPACED ? ", " : ",");
        next = true;
        if (!value(j, style, depth, out)) return false;
    }
    k3_text_put(out, "]");
    return !j->error && !out->failed;
}

/* A member with its key, at the end of out. */
static bool member(struct k3_json *j, enum k3_json_style style, int depth, struct k3_text *out, struct member *m) {
    struct k3_name key;
    if (!k3_json_key(j, &key)) return false;
    m->start = out->length;
    k3_text_add_json_string(out, key.s, key.length);
    m->key = m->start + 1;
    m->key_length = out->length - m->start - 2;
    k3_text_put(out, style == K3_JSON_SPACED ? ": " : ":");
    if (!value(j, style, depth, out)) return false;
    m->end = out->length;
    return true;
}

static bool object_in_order(struct k3_json *j, int depth, struct k3_text *out) {
    bool first = true, next = false;
    struct member m;
    k3_text_put(out, "{");
    while (k3_json_more(j, '}', &first)) {
        if (next) k3_text_put(out, ", ");
        next = true;
        if (!member(j, K3_JSON_SPACED, depth, out, &m)) return false;
    }
    k3_text_put(out, "}");
    return !j->error && !out->failed;
}

struct members {
    struct member *of;
    size_t count, room;
    struct k3_text text;
};

static bool read_members(struct k3_json *j, int depth, struct members *m) {
    bool first = true;
    while (k3_json_more(j, '}', &first)) {
        if (m->count == m->room) {
            size_t room = 2 * m->room + 8;
            struct member *of = realloc(m->of, room * sizeof *of);
            if (!of) return !(m->text.failed = true);
            m->of = of;
            m->room = room;
        }
        m->of[m->count].order = m->count;
        if (!member(j, K3_JSON_SORTED, depth, &m->text, &m->of[m->count])) return false;
        m->count++;
    }
    return !j->error;
}

static int compare_keys(const struct member *a, const struct member *b) {
    size_t n = a->key_length < b->key_length ? a->key_length : b->key_length;
    int c = memcmp(a->text + a->key, b->text + b->key, n);
    return c ? c : (a->key_length > b->key_length) - (a->key_length < b->key_length);
}

static int by_key(const void *a, const void *b) {
    const struct member *x = a, *y = b;
    int c = compare_keys(x, y);
    return c ? c : (x->order > y->order) - (x->order < y->order);
}

static bool object_sorted(struct k3_json *j, int depth, struct k3_text *out) {
    struct members m = {0};
    bool ok = read_members(j, depth, &m), next = false;
    for (size_t i = 0; ok && i < m.count; i++) m.of[i].text = m.text.s;
    if (ok && m.count) qsort(m.of, m.count, sizeof *m.of, by_key);
    k3_text_put(out, "{");
    for (size_t i = 0; ok && i < m.count; i++) {
        if (i + 1 < m.count && compare_keys(&m.of[i], &m.of[i + 1]) == 0) continue;
        if (next) k3_text_put(out, ",");
        next = true;
        k3_text_add(out, m.text.s + m.of[i].start, m.of[i].end - m.of[i].start);
    }
    k3_text_put(out, "}");
    out->failed |= m.text.failed;
    k3_text_clear(&m.text);
    free(m.of);
    return ok && !out->failed;
}

static bool value(struct k3_json *j, enum k3_json_style style, int depth, struct k3_text *out) {
    char c = k3_json_peek(j);
    if (c != '{' && c != '[') return scalar(j, out);
    if (depth == K3_JSON_DEPTH) return k3_json_fail(j, "brackets nested too deep");
    if (c == '[') return array(j, style, depth + 1, out);
    k3_json_enter(j, '{');
    return style == K3_JSON_SORTED ? object_sorted(j, depth + 1, out) : object_in_order(j, depth + 1, out);
}

bool k3_json_respell(struct k3_json *j, enum k3_json_style style, struct k3_text *out) {
    return value(j, style, 0, out);
}
