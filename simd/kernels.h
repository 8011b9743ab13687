/* The kernel table: every piece of arithmetic of the model, as functions of shapes and pointers.
 *
 * One table per instruction set, chosen once (k3_kernels_find).  Kernels are pure: no allocation,
 * no threads, no state.  Callers split the work among threads by rows, tokens, heads or channels.
 *
 * Bits: an output's value depends only on its own inputs and on the shape of its reduction (cols,
 * n), never on which other rows or tokens are computed by the same call.  So a caller may split rows
 * and tokens anywhere and get the same bits.
 *
 * Pointers to weights have no alignment at all (they may point into a file's bytes); pointers to
 * float have the alignment of float.  Inputs and outputs never overlap unless said so.
 * "may alias" means: y may be the very same array as the named input. */
#ifndef K3_KERNELS_H
#define K3_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Y = X W^T:  y[t*ldy + r] = sum over c < cols of w[r, c] x[t*ldx + c],  t < n, r < rows. */
struct k3_matmul {
    float *y;
    size_t ldy;
    const float *x;
    size_t ldx;
    size_t rows, cols, n;
};

/* Causal depthwise convolution and SiLU over `tokens` rows of x [tokens, channels]:
 * y_t = SiLU(sum over j < width of taps_j p_(t-(width-1)+j)), p = tail then x.
 * tail [width-1, channels] holds the inputs before x and receives the last width-1 of all. */
struct k3_short_conv {
    float *y;
    size_t ldy;
    const float *x;
    size_t ldx;
    float *tail;
    size_t ld_tail;
    const float *taps; /* [width, channels], row stride ld_taps: tap width-1 meets the current token */
    size_t ld_taps;
    size_t channels, width, tokens;
};

/* One token of the delta rule for one head (spec 2.3): S <- diag(decay) S; u = beta (v - S^T k);
 * S <- S + k u^T; o = S^T q.  q, k are normalised already; decay = exp(g). */
struct k3_kda_step {
    float *state; /* [k_dim, v_dim] */
    const float *q, *k, *decay; /* [k_dim] */
    const float *v;             /* [v_dim] */
    float beta;
    float *o; /* [v_dim] */
    size_t k_dim, v_dim;
};

struct k3_kernels {
    const char *isa;

    /* Products with weights.  w: [rows, cols], row stride ldw elements. */
    void (*matmul_f32)(const struct k3_matmul *m, const void *w, size_t ldw);
    void (*matmul_bf16)(const struct k3_matmul *m, const void *w, size_t ldw);
    void (*matmul_f16)(const struct k3_matmul *m, const void *w, size_t ldw);
    /* packed [rows, cols/2], scale [rows, cols/32], rows contiguous; cols is a multiple of 32.
     * No scale byte is 255. */
    void (*matmul_mxfp4)(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale);
    /* The other way round: y[t*ldy + c] += sum over r < rows of x[t*ldx + r] b[r*ldb + c], c < cols. */
    void (*matmul_t_f32)(const struct k3_matmul *m, const float *b, size_t ldb);

    /* Exact widening of n stored weights. */
    void (*widen_bf16)(float *y, const void *x, size_t n);
    void (*widen_f16)(float *y, const void *x, size_t n);
    void (*dequant_mxfp4)(float *y, const uint8_t *packed, const uint8_t *scale, size_t n); /* n % 32 == 0; scale 255 is NaN */

    /* One row each.  y may alias x.  Squares are summed in double: a float's overflow from 1e19 on. */
    void (*rms_norm)(float *y, const float *x, const float *w, float eps, size_t n);
    void (*gated_rms_norm)(float *y, const float *x, const float *w, const float *gate, float eps, size_t n); /* norm * sigmoid(gate) */
    void (*l2_norm)(float *y, const float *x, float scale, size_t n); /* scale * x / sqrt(sum x^2 + 1e-6) */

    /* Elementwise, n each.  y may alias any input.  Correct to a few ulp for every finite input. */
    void (*situ_glu)(float *y, const float *gate, const float *up, float beta, float linear_beta, size_t n); /* linear_beta 0: up as it is */
    void (*silu_glu)(float *y, const float *gate, const float *up, size_t n);
    void (*sigmoid)(float *y, const float *x, size_t n);
    void (*sigmoid_mul)(float *y, const float *x, const float *gate, size_t n); /* x * sigmoid(gate) */
    void (*exp)(float *y, const float *x, size_t n); /* underflows to 0 */
    void (*add)(float *y, const float *x, size_t n); /* y += x */
    void (*mul)(float *y, const float *x, size_t n); /* y *= x */
    void (*scale)(float *y, float a, size_t n);      /* y *= a */

    /* KDA.  The log-decay g of one head's channels: lower_bound * sigmoid(a (z + bias)), or
     * -a softplus(z + bias).  y may alias z. */
    void (*kda_gate_bounded)(float *g, const float *z, const float *bias, float a, float lower_bound, size_t n);
    void (*kda_gate_softplus)(float *g, const float *z, const float *bias, float a, size_t n);
    void (*short_conv)(const struct k3_short_conv *c);
    void (*kda_step)(const struct k3_kda_step *s);

    /* AttnRes: one source's share of a score (dot = s.v, square = v.v), summed in double, and the mix. */
    void (*dot_square)(const float *v, const float *s, size_t n, double *dot, double *square);
    /* y[i] = sum over j < count of p[j] v[j][i], j ascending.  y may alias one v[j]. */
    void (*weighted_sum)(float *y, const float *const *v, const float *p, size_t count, size_t n);

    /* Online softmax over a tile of n scores (some may be -inf): *max becomes m' = max(*max, scores),
     * scores become exp(score - m'), *sum becomes *sum * f + their sum, and f = exp(old *max - m')
     * is returned, by which the caller scales what it has accumulated.  *max may be -inf at first
     * (then f is 0).  If all is -inf: scores become 0, f is 1, *max and *sum stay. */
    float (*softmax_tile)(float *scores, size_t n, float *max, float *sum);

    bool (*all_finite)(const float *x, size_t n);
};

/* The table called `isa`, or the best that this CPU can run where isa is NULL; NULL if this build
 * or this CPU has no such table. */
const struct k3_kernels *k3_kernels_find(const char *isa);

/* The i-th table that this CPU can run, best first; the last one is "scalar"; NULL past it. */
const struct k3_kernels *k3_kernels_at(size_t i);

#endif
