#include "simd/vec/kernels.h"
#include "simd/vec/vec.h"
#include "simd/vec/math.h"

#include <string.h>

/* ---- gates ---- */

K3_INLINE k3_vec bounded(k3_vec z, k3_vec bias, const float *constants) {
    k3_vec x = k3_set(constants[0]) * (z + bias);
    return k3_set(constants[1]) * k3_divide(k3_sigmoid_ratio(x));
}

void K3_NAME(kda_gate_bounded)(float *g, const float *z, const float *bias, float a, float lower_bound, size_t n) {
    const float constants[2] = {a, lower_bound};
    k3_map2(g, z, bias, constants, n, bounded);
}

/* softplus(x) = max(x, 0) + log1p(e^-|x|): above 20 the second term is lost in rounding, as it should be. */
K3_INLINE k3_vec softplus(k3_vec z, k3_vec bias, const float *constants) {
    k3_vec x = z + bias;
    k3_vec tail = k3_log1p(k3_exp_to_89(k3_negative_abs(x)));
    k3_vec y = k3_max(k3_set(0), x) + tail;
    return k3_set(-constants[0]) * y;
}

void K3_NAME(kda_gate_softplus)(float *g, const float *z, const float *bias, float a, size_t n) {
    k3_map2(g, z, bias, &a, n, softplus);
}

/* ---- short convolution: channels along the lanes ---- */

K3_INLINE k3_vec silu(k3_vec x) {
    return x * k3_divide(k3_sigmoid_ratio(x));
}

/* Width 4, a vector of channels: the last three inputs stay in registers. */
K3_INLINE void conv4(const struct k3_short_conv *c, size_t at, size_t lanes) {
    k3_vec tap[4], p[4];
    K3_UNROLL
    for (size_t j = 0; j < 4; j++) tap[j] = k3_load(c->taps + j * c->ld_taps + at, lanes);
    K3_UNROLL
    for (size_t j = 0; j < 3; j++) p[j] = k3_load(c->tail + j * c->ld_tail + at, lanes);
    const float *x = c->x + at;
    float *y = c->y + at;
    for (size_t t = 0; t < c->tokens; t++, x += c->ldx, y += c->ldy) {
        p[3] = k3_load(x, lanes);
        k3_vec s = tap[0] * p[0];
        s = k3_fma(tap[1], p[1], s);
        s = k3_fma(tap[2], p[2], s);
        s = k3_fma(tap[3], p[3], s);
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
        k3_vec s = k3_set(0);
        for (size_t j = 0; j < c->width; j++) {
            k3_vec tap = k3_load(c->taps + j * c->ld_taps + at, lanes);
            s = k3_fma(tap, k3_load(conv_row(c, t + j) + at, lanes), s);
        }
        k3_store(c->y + t * c->ldy + at, lanes, silu(s));
    }
}

void K3_NAME(short_conv)(const struct k3_short_conv *c) {
    size_t whole = c->channels / K3_LANES * K3_LANES, last = c->channels - whole;
    if (c->width == 4) {
        for (size_t i = 0; i < whole; i += K3_LANES) conv4(c, i, K3_LANES);
        if (last) conv4(c, whole, last);
        return;
    }
    for (size_t i = 0; i < whole; i += K3_LANES) conv_any(c, i, K3_LANES);
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

/* sum += rows of (k decay)_i S_i, a vector of columns. */
K3_INLINE void read_columns(const float *state, size_t ld, float *sum, const k3_vec *k, size_t rows, size_t lanes) {
    k3_vec s = k3_load(sum, lanes);
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) s = k3_fma(k[i], k3_load(state + i * ld, lanes), s);
    k3_store(sum, lanes, s);
}

K3_INLINE void read_rows(const struct panel *p, size_t row, size_t rows) {
    k3_vec k[ROWS];
    size_t ld = p->s->v_dim, whole = p->columns / K3_LANES * K3_LANES;
    const float *state = p->state + row * ld;
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) k[i] = k3_set(p->s->k[row + i] * p->s->decay[row + i]);
    for (size_t j = 0; j < whole; j += K3_LANES) read_columns(state + j, ld, p->u + j, k, rows, K3_LANES);
    if (whole < p->columns) read_columns(state + whole, ld, p->u + whole, k, rows, p->columns - whole);
}

struct rows {
    k3_vec k[ROWS], decay[ROWS], q[ROWS];
};

/* S_i <- decay_i S_i + k_i u, o += q_i S_i, a vector of columns. */
K3_INLINE void write_columns(float *state, size_t ld, const float *u, float *o, const struct rows *r, size_t rows,
                             size_t lanes) {
    k3_vec uu = k3_load(u, lanes), oo = k3_load(o, lanes);
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) {
        k3_vec s = r->decay[i] * k3_load(state + i * ld, lanes);
        s = k3_fma(r->k[i], uu, s);
        k3_store(state + i * ld, lanes, s);
        oo = k3_fma(r->q[i], s, oo);
    }
    k3_store(o, lanes, oo);
}

K3_INLINE void write_rows(const struct panel *p, size_t row, size_t rows) {
    struct rows r;
    size_t ld = p->s->v_dim, whole = p->columns / K3_LANES * K3_LANES;
    float *state = p->state + row * ld;
    K3_UNROLL
    for (size_t i = 0; i < rows; i++) {
        r.k[i] = k3_set(p->s->k[row + i]);
        r.decay[i] = k3_set(p->s->decay[row + i]);
        r.q[i] = k3_set(p->s->q[row + i]);
    }
    for (size_t j = 0; j < whole; j += K3_LANES) write_columns(state + j, ld, p->u + j, p->o + j, &r, rows, K3_LANES);
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

void K3_NAME(kda_step)(const struct k3_kda_step *s) {
    float u[COLUMNS];
    for (size_t at = 0; at < s->v_dim; at += COLUMNS) {
        size_t columns = s->v_dim - at < COLUMNS ? s->v_dim - at : COLUMNS;
        struct panel p = {s, s->state + at, u, s->o + at, columns};
        step(&p, s->v + at);
    }
}
