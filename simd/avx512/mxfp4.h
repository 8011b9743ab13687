/* MXFP4 weights (spec 1.4) in registers.
 *
 * A permutation looks sixteen codes up among the sixteen values that a group can have; it heeds the low four bits of
 * an index only, so codes need be shifted down but not be cut out. */
#ifndef K3_SIMD_AVX512_MXFP4_H
#define K3_SIMD_AVX512_MXFP4_H

#include "simd/vec/mxfp4.h"

#include <string.h>

#define K3_MXFP4_ROWS 8   /* at once */
#define K3_MXFP4_FEW 12 /* tokens for which the weights are widened in registers */
#define K3_MXFP4_LEAST 1
#define K3_MXFP4_TOKENS 2 /* for more, half the rows */

extern const uint32_t k3_avx512_mxfp4_scale[256] __attribute__((visibility("hidden"))); /* as bits of a float */

/* The values of one group's sixteen codes. */
K3_INLINE __m512 k3_mxfp4_values(uint8_t scale) {
    const __m512 e2m1 = _mm512_setr_ps(0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6);
    return _mm512_mul_ps(e2m1, _mm512_castsi512_ps(_mm512_set1_epi32((int)k3_avx512_mxfp4_scale[scale])));
}

/* Sixteen codes, eight bytes, as indices in the order 0 8 1 9 2 10 ... */
K3_INLINE __m512i k3_mxfp4_codes(const uint8_t *p) {
    const __m512i down = _mm512_setr_epi32(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28);
    long long eight;
    memcpy(&eight, p, sizeof eight);
    return _mm512_srlv_epi32(_mm512_set1_epi64(eight), down);
}

/* One group of `rows` rows meets the tokens. */
K3_INLINE void k3_mxfp4_accumulate(k3_vec *s, const struct k3_mxfp4_rows *p, size_t rows, size_t tokens) {
    const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
    k3_vec x[2 * 3];
    K3_UNROLL for (size_t i = 0; i < 2 * tokens; i++)
        x[i] = _mm512_permutexvar_ps(order, k3_load_whole(p->x + i / 2 * p->ldx + i % 2 * 16));
    K3_UNROLL for (size_t r = 0; r < rows; r++) {
        const uint8_t *packed = p->packed + r * p->ld_packed;
        k3_vec values = k3_mxfp4_values(p->scale[r * p->ld_scale]);
        k3_vec w0 = _mm512_permutexvar_ps(k3_mxfp4_codes(packed), values);
        k3_vec w1 = _mm512_permutexvar_ps(k3_mxfp4_codes(packed + 8), values);
        K3_UNROLL for (size_t t = 0; t < tokens; t++) {
            s[r * tokens + t] = k3_fma(w0, x[2 * t], s[r * tokens + t]);
            s[r * tokens + t] = k3_fma(w1, x[2 * t + 1], s[r * tokens + t]);
        }
    }
}

/* Lanes in the order of the columns. */
K3_INLINE k3_vec k3_mxfp4_in_order(k3_vec s) {
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15), s);
}

#endif
