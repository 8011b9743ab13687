#include "simd/avx2/avx2.h"
#include "simd/avx2/lanes.h"
#include "simd/avx2/math.h"

#include <string.h>

/* ---- gates ---- */

K3_INLINE __m256 bounded(__m256 z, __m256 bias, const float *constants) {
    __m256 x = _mm256_mul_ps(_mm256_set1_ps(constants[0]), _mm256_add_ps(z, bias));
    return _mm256_mul_ps(_mm256_set1_ps(constants[1]), k3_divide(k3_sigmoid_ratio(x)));
}

void k3_avx2_kda_gate_bounded(float *g, const float *z, const float *bias, float a, float lower_bound, size_t n) {
    const float constants[2] = {a, lower_bound};
    k3_map2(g, z, bias, constants, n, bounded);
}

/* softplus(x) = max(x, 0) + log1p(e^-|x|): above 20 the second term is lost in rounding, as it should be. */
K3_INLINE __m256 softplus(__m256 z, __m256 bias, const float *constants) {
    __m256 x = _mm256_add_ps(z, bias);
    __m256 tail = k3_log1p(k3_exp_to_89(_mm256_or_ps(_mm256_set1_ps(-0.0f), x)));
    __m256 y = _mm256_add_ps(_mm256_max_ps(_mm256_setzero_ps(), x), tail);
    return _mm256_mul_ps(_mm256_set1_ps(-constants[0]), y);
}

void k3_avx2_kda_gate_softplus(float *g, const float *z, const float *bias, float a, size_t n) {
    k3_map2(g, z, bias, &a, n, softplus);
}

/* ---- short convolution: channels along the lanes ---- */

K3_INLINE __m256 silu(__m256 x) {
    return _mm256_mul_ps(x, k3_divide(k3_sigmoid_ratio(x)));
}

/* Width 4, eight channels: the last three inputs stay in registers. */
K3_INLINE void conv4(const struct k3_short_conv *c, size_t at, size_t lanes) {
    __m256 tap[4], p[4];
    K3_UNROLL
    for (size_t j = 0; j < 4; j++) tap[j] = k3_load(c->taps + j * c->ld_taps + at, lanes);
    K3_UNROLL
    for (size_t j = 0; j < 3; j++) p[j] = k3_load(c->tail + j * c->ld_tail + at, lanes);
    const float *x = c->x + at;
    float *y = c->y + at;
    for (size_t t = 0; t < c->tokens; t++, x += c->ldx, y += c->ldy) {
        p[3] = k3_load(x, lanes);
        __m256 s = _mm256_mul_ps(tap[0], p[0]);
        s = _mm256_fmadd_ps(tap[1], p[1], s);
        s = _mm256_fmadd_ps(tap[2], p[2], s);
        s = _mm256_fmadd_ps(tap[3], p[3], s);
        k3_store(y, lanes, silu(s));
        p[0] = p[1], p[1] = p[2], p[2] = p[3];
    }
    K3_UNROLL
    for (size_t j = 0; j < 3; j++) k3_store(c->tail + j * c->ld_tail + at, lanes, p[j]);
}

/* Row t of the sequence that begins with the tail. */
static const float *conv_row(const struct k3_short_conv *c, size_t t) {
    size_t kept = c->width - 1;
    return t < kept ? c->tail + t * c->ld_tail : c->x + (t - kept) * c->ldx;
}

K3_INLINE void conv_any(const struct k3_short_conv *c, size_t at, size_t lanes) {
    for (size_t t = 0; t < c->tokens; t++) {
        __m256 s = _mm256_setzero_ps();
        for (size_t j = 0; j < c->width; j++) {
            __m256 tap = k3_load(c->taps + j * c->ld_taps + at, lanes);
            s = _mm256_fmadd_ps(tap, k3_load(conv_row(c, t + j) + at, lanes), s);
        }
        k3_store(c->y + t * c->ldy + at, lanes, silu(s));
    }
}

void k3_avx2_short_conv(const struct k3_short_conv *c) {
    size_t whole = c->channels / 8 * 8, last = c->channels - whole;
    if (c->width == 4) {
        for (size_t i = 0; i < whole; i += 8) conv4(c, i, 8);
        if (last) conv4(c, whole, last);
        return;
    }
    for (size_t i = 0; i < whole; i += 8) conv_any(c, i, 8);
    if (last) conv_any(c, whole, last);
    /* Ascending: a row is read before the one that replaces it is written. */
    for (size_t j = 0; c->tokens && j + 1 < c->width; j++)
        memcpy(c->tail + j * c->ld_tail, conv_row(c, c->tokens + j), c->channels * sizeof *c->tail);
}

/* ---- one token of the delta rule ----
 *
 * Two passes over the state.  The first streams rows from memory in order, four at a time, so that
 * the columns' sums are loaded and stored once for four rows; the second walks back, so that it
 * begins with the rows that are still in the first cache. */

#define COLUMNS 256 /* at most so many columns' sums on the stack */
#define ROWS 4

struct panel {
    const struct k3_kda_step *s;
    float *state; /* first column */
    float *u, *o; /* [columns] */
    size_t columns;
};

/* sum += rows of (k decay)_i S_i, eight columns. */
K3_INLINE void read_columns(const float *state, size_t ld, float *sum, const __m256 *k, size_t rows, size_t lanes) {
    __m256 s = k3_load(sum, lanes);
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) s = _mm256_fmadd_ps(k[i], k3_load(state + i * ld, lanes), s);
    k3_store(sum, lanes, s);
}

K3_INLINE void read_rows(const struct panel *p, size_t row, size_t rows) {
    __m256 k[ROWS];
    size_t ld = p->s->v_dim, whole = p->columns / 8 * 8;
    const float *state = p->state + row * ld;
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) k[i] = _mm256_set1_ps(p->s->k[row + i] * p->s->decay[row + i]);
    for (size_t j = 0; j < whole; j += 8) read_columns(state + j, ld, p->u + j, k, rows, 8);
    if (whole < p->columns) read_columns(state + whole, ld, p->u + whole, k, rows, p->columns - whole);
}

struct rows {
    __m256 k[ROWS], decay[ROWS], q[ROWS];
};

/* S_i <- decay_i S_i + k_i u, o += q_i S_i, eight columns. */
K3_INLINE void write_columns(float *state, size_t ld, const float *u, float *o, const struct rows *r, size_t rows,
                             size_t lanes) {
    __m256 uu = k3_load(u, lanes), oo = k3_load(o, lanes);
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) {
        __m256 s = _mm256_mul_ps(r->decay[i], k3_load(state + i * ld, lanes));
        s = _mm256_fmadd_ps(r->k[i], uu, s);
        k3_store(state + i * ld, lanes, s);
        oo = _mm256_fmadd_ps(r->q[i], s, oo);
    }
    k3_store(o, lanes, oo);
}

K3_INLINE void write_rows(const struct panel *p, size_t row, size_t rows) {
    struct rows r;
    size_t ld = p->s->v_dim, whole = p->columns / 8 * 8;
    float *state = p->state + row * ld;
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) {
        r.k[i] = _mm256_set1_ps(p->s->k[row + i]);
        r.decay[i] = _mm256_set1_ps(p->s->decay[row + i]);
        r.q[i] = _mm256_set1_ps(p->s->q[row + i]);
    }
    for (size_t j = 0; j < whole; j += 8) write_columns(state + j, ld, p->u + j, p->o + j, &r, rows, 8);
    if (whole < p->columns) write_columns(state + whole, ld, p->u + whole, p->o + whole, &r, rows, p->columns - whole);
}

static void step(const struct panel *p, const float *v) {
    size_t k_dim = p->s->k_dim, row = 0;
    memset(p->u, 0, p->columns * sizeof *p->u);
    for (; row + ROWS <= k_dim; row += ROWS) read_rows(p, row, ROWS);
    for (; row < k_dim; row++) read_rows(p, row, 1);
    for (size_t j = 0; j < p->columns; j++) p->u[j] = p->s->beta * (v[j] - p->u[j]);
    memset(p->o, 0, p->columns * sizeof *p->o);
    for (; row % ROWS; row--) write_rows(p, row - 1, 1);
    for (; row; row -= ROWS) write_rows(p, row - ROWS, ROWS);
}

void k3_avx2_kda_step(const struct k3_kda_step *s) {
    float u[COLUMNS];
    for (size_t at = 0; at < s->v_dim; at += COLUMNS) {
        size_t columns = s->v_dim - at < COLUMNS ? s->v_dim - at : COLUMNS;
        struct panel p = {s, s->state + at, u, s->o + at, columns};
        step(&p, s->v + at);
    }
}
