/* Stored weights, widened in registers.
 *
 * Every product in this directory sums in one order: a (row, token) pair has one accumulator; lane j of L
 * takes the columns L i + j with i ascending, by fused multiply-add; what lies behind the last column counts as
 * 0 * 0; k3_sum adds the lanes.  So bits depend neither on the path taken nor on the rows and tokens beside. */
#ifndef K3_SIMD_VEC_WEIGHTS_H
#define K3_SIMD_VEC_WEIGHTS_H

#include "simd/vec/vec.h"
#include "simd/kernels.h"

#include <string.h>

/* A vector of stored weights at p. */
typedef k3_vec k3_widen(const unsigned char *p);

K3_INLINE k3_vec k3_widen_f32(const unsigned char *p) {
    k3_vec x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* The first n weights at p, then zeros, without reading further. */
K3_INLINE k3_vec k3_widen_last(k3_widen *widen, size_t element, const unsigned char *p, size_t n) {
    unsigned char whole[K3_BYTES] = {0};
    memcpy(whole, p, n * element);
    return widen(whole);
}

/* s [rows, tokens] becomes y[t * ldy + r]. */
K3_INLINE void k3_store_sums(float *y, size_t ldy, const k3_vec *s, size_t rows, size_t tokens) {
    K3_UNROLL for (size_t r = 0; r < rows; r++, s += tokens) {
        if (tokens == 4) {
            k3_quad sums = k3_four_sums(s);
            K3_UNROLL for (size_t t = 0; t < 4; t++) y[t * ldy + r] = sums[t];
        } else K3_UNROLL for (size_t t = 0; t < tokens; t++) y[t * ldy + r] = k3_sum(s[t]);
    }
}

#endif
