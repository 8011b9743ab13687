#include "model/mla_attend.h"

#include "model/model.h"

#include <math.h>
#include <string.h>

#define ABSORBED_ROWS 256 /* heads times queries that share one pass over a page */
#define QUERY_TILE 64     /* expanded: queries that share a score tile */
#define WIDEN_TILE 16     /* rows of W_k widened at a time */

enum k3_mla_form k3_mla_choose(const struct k3_config *c, size_t n) {
    /* Multiplications per key and head: section 2.4 of the spec. */
    double absorbed = (double)n * (2.0 * c->kv_lora_rank + c->rope_dim);
    double expanded = (double)n * ((double)c->nope_dim + c->rope_dim + c->v_dim) +
                      (double)c->kv_lora_rank * ((double)c->nope_dim + c->v_dim);
    return absorbed <= expanded ? K3_MLA_ABSORBED : K3_MLA_EXPANDED;
}

static size_t group_heads(const struct k3_config *c, size_t n) {
    size_t g = n < ABSORBED_ROWS ? ABSORBED_ROWS / n : 1;
    return g < c->heads ? g : c->heads;
}

size_t k3_mla_attend_scratch(const struct k3_config *c, size_t n) {
    size_t qd = k3_mla_query_dim(c), cd = k3_mla_cache_dim(c), r = c->kv_lora_rank, v = c->v_dim, p = K3_PAGE_TOKENS;
    size_t rows = group_heads(c, n) * n;
    size_t absorbed = rows * (cd + r + p + 2) + WIDEN_TILE * r;
    size_t expanded = n * (v + 2) + p * (qd + v) + QUERY_TILE * p;
    return n * qd + (absorbed > expanded ? absorbed : expanded);
}

/* q [n, nope + rope] of head h, times (nope + rope)^-0.5. */
static void query(const struct k3_mla_attend *a, size_t h, float *q) {
    size_t qd = k3_mla_query_dim(a->config);
    k3_linear_rows(a->kern, a->trunk, a->query, h * qd, qd, a->x, a->query->cols, q, qd, a->n);
    a->kern->scale(q, 1 / sqrtf((float)qd), a->n * qd);
}

/* Running sums of an online softmax for `rows` queries: max, sum, accumulated values [rows, width]. */
struct softmax {
    float *max, *sum, *acc;
    size_t width;
};

static void softmax_start(struct softmax *s, size_t rows) {
    for (size_t i = 0; i < rows; i++) s->max[i] = -INFINITY;
    memset(s->sum, 0, rows * sizeof *s->sum);
    memset(s->acc, 0, rows * s->width * sizeof *s->acc);
}

/* Takes one query's scores of a tile in; the keys past `visible` are in its future. */
static void softmax_row(const struct k3_kernels *kern, const struct softmax *s, size_t row, float *scores, size_t keys,
                        size_t visible) {
    for (size_t i = visible; i < keys; i++) scores[i] = -INFINITY;
    float factor = kern->softmax_tile(scores, keys, &s->max[row], &s->sum[row]);
    if (factor != 1) kern->scale(s->acc + row * s->width, factor, s->width);
}

/* Keys of page `first / K3_PAGE_TOKENS` that the query at `position` sees, at most `keys`. */
static size_t visible_keys(uint64_t position, uint64_t first, size_t keys) {
    if (position < first) return 0;
    return position - first + 1 < keys ? (size_t)(position - first + 1) : keys;
}

/* q' = W_k^T q_nope, then q_pe: one row of the absorbed query per token. */
static void absorb(const struct k3_mla_attend *a, size_t h, const float *q, float *rows, float *tile) {
    const struct k3_config *c = a->config;
    size_t qd = k3_mla_query_dim(c), cd = k3_mla_cache_dim(c), r = c->kv_lora_rank;
    size_t first = h * ((size_t)c->nope_dim + c->v_dim);
    for (size_t t = 0; t < a->n; t++) {
        memset(rows + t * cd, 0, r * sizeof *rows);
        memcpy(rows + t * cd + r, q + t * qd + c->nope_dim, c->rope_dim * sizeof *rows);
    }
    for (size_t d = 0; d < c->nope_dim; d += WIDEN_TILE) {
        size_t n = c->nope_dim - d < WIDEN_TILE ? c->nope_dim - d : WIDEN_TILE;
        for (size_t i = 0; i < n; i++) k3_linear_widen_row(a->kern, a->trunk, a->kv_b, first + d + i, tile + i * r);
        struct k3_matmul m = {rows, cd, q + d, qd, n, r, a->n};
        a->kern->matmul_t_f32(&m, tile, r);
    }
}

static void attend_absorbed(const struct k3_mla_attend *a, size_t h0, size_t heads, float *scratch) {
    const struct k3_config *c = a->config;
    size_t qd = k3_mla_query_dim(c), cd = k3_mla_cache_dim(c), r = c->kv_lora_rank, rows = heads * a->n;
    float *q = scratch, *rows_q = q + a->n * qd, *scores = rows_q + rows * cd, *tile = scores + rows * K3_PAGE_TOKENS;
    float *acc = tile + WIDEN_TILE * r;
    struct softmax soft = {acc + rows * r, acc + rows * r + rows, acc, r};
    for (size_t h = 0; h < heads; h++) {
        query(a, h0 + h, q);
        absorb(a, h0 + h, q, rows_q + h * a->n * cd, tile);
    }
    softmax_start(&soft, rows);
    uint64_t total = a->start + a->n;
    for (uint64_t first = 0; first < total; first += K3_PAGE_TOKENS) {
        const float *page = a->cache->page[first / K3_PAGE_TOKENS].data;
        size_t keys = total - first < K3_PAGE_TOKENS ? (size_t)(total - first) : K3_PAGE_TOKENS;
        struct k3_matmul m = {scores, K3_PAGE_TOKENS, rows_q, cd, keys, cd, rows};
        a->kern->matmul_f32(&m, page, cd);
        for (size_t i = 0; i < rows; i++)
            softmax_row(a->kern, &soft, i, scores + i * K3_PAGE_TOKENS, keys,
                        visible_keys(a->start + i % a->n, first, keys));
        m = (struct k3_matmul){acc, r, scores, K3_PAGE_TOKENS, keys, r, rows};
        a->kern->matmul_t_f32(&m, page, cd);
    }
    size_t width = (size_t)c->heads * c->v_dim;
    for (size_t i = 0; i < rows; i++) a->kern->scale(acc + i * r, 1 / soft.sum[i], r);
    for (size_t h = h0; h < h0 + heads; h++)
        k3_linear_rows(a->kern, a->trunk, a->kv_b, h * ((size_t)c->nope_dim + c->v_dim) + c->nope_dim, c->v_dim,
                       acc + (h - h0) * a->n * r, r, a->o + h * c->v_dim, width, a->n);
}

/* Keys [keys, nope + rope] and values [keys, v] of head h for one page. */
static void expand(const struct k3_mla_attend *a, size_t h, const float *page, size_t keys, float *k, float *v) {
    const struct k3_config *c = a->config;
    size_t qd = k3_mla_query_dim(c), cd = k3_mla_cache_dim(c), first = h * ((size_t)c->nope_dim + c->v_dim);
    k3_linear_rows(a->kern, a->trunk, a->kv_b, first, c->nope_dim, page, cd, k, qd, keys);
    for (size_t i = 0; i < keys; i++)
        memcpy(k + i * qd + c->nope_dim, page + i * cd + c->kv_lora_rank, c->rope_dim * sizeof *k);
    k3_linear_rows(a->kern, a->trunk, a->kv_b, first + c->nope_dim, c->v_dim, page, cd, v, c->v_dim, keys);
}

static void attend_expanded(const struct k3_mla_attend *a, size_t h, float *scratch) {
    const struct k3_config *c = a->config;
    size_t qd = k3_mla_query_dim(c), v = c->v_dim, width = c->heads * v;
    float *q = scratch, *acc = q + a->n * qd, *k = acc + a->n * v, *values = k + K3_PAGE_TOKENS * qd;
    float *scores = values + K3_PAGE_TOKENS * v;
    struct softmax soft = {scores + QUERY_TILE * K3_PAGE_TOKENS, scores + QUERY_TILE * K3_PAGE_TOKENS + a->n, acc, v};
    query(a, h, q);
    softmax_start(&soft, a->n);
    uint64_t total = a->start + a->n;
    for (uint64_t first = 0; first < total; first += K3_PAGE_TOKENS) {
        size_t keys = total - first < K3_PAGE_TOKENS ? (size_t)(total - first) : K3_PAGE_TOKENS;
        expand(a, h, a->cache->page[first / K3_PAGE_TOKENS].data, keys, k, values);
        size_t t = first > a->start ? (size_t)(first - a->start) : 0; /* earlier queries see nothing here */
        while (t < a->n) {
            size_t n = a->n - t < QUERY_TILE ? a->n - t : QUERY_TILE;
            struct k3_matmul m = {scores, K3_PAGE_TOKENS, q + t * qd, qd, keys, qd, n};
            a->kern->matmul_f32(&m, k, qd);
            for (size_t i = 0; i < n; i++)
                softmax_row(a->kern, &soft, t + i, scores + i * K3_PAGE_TOKENS, keys,
                            visible_keys(a->start + t + i, first, keys));
            m = (struct k3_matmul){acc + t * v, v, scores, K3_PAGE_TOKENS, keys, v, n};
            a->kern->matmul_t_f32(&m, values, v);
            t += n;
        }
    }
    for (size_t t = 0; t < a->n; t++) {
        float *o = a->o + t * width + h * v;
        memcpy(o, acc + t * v, v * sizeof *o);
        a->kern->scale(o, 1 / soft.sum[t], v);
    }
}

void k3_mla_attend(const struct k3_mla_attend *a, enum k3_mla_form form, size_t begin, size_t end, float *scratch) {
    if (form == K3_MLA_EXPANDED) {
        for (size_t h = begin; h < end; h++) attend_expanded(a, h, scratch);
        return;
    }
    size_t group = group_heads(a->config, a->n);
    for (size_t h = begin; h < end; h += group)
        attend_absorbed(a, h, end - h < group ? end - h : group, scratch);
}
