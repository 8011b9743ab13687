/* Stored weights, widened in registers.
 *
 * Every product in this directory sums in one order: a (row, token) pair has one accumulator of eight lanes; lane j
 * takes the columns 8i + j with i ascending, by fused multiply-add; what lies behind the last column counts as
 * 0 * 0; k3_sum adds the lanes.  So bits depend neither on the path taken nor on the rows and tokens beside. */
#ifndef K3_SIMD_AVX2_WEIGHTS_H
#define K3_SIMD_AVX2_WEIGHTS_H

#include "simd/avx2/lanes.h"
#include "simd/kernels.h"

#include <string.h>

#if defined __clang__
#define K3_UNROLL _Pragma("unroll")
#else
#define K3_UNROLL _Pragma("GCC unroll 16")
#endif

/* Eight stored weights at p; or the first n < 8, then zeros, without reading further. */
typedef __m256 k3_widen8(const unsigned char *p);

K3_INLINE __m256 k3_widen8_f32(const unsigned char *p) {
    return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

K3_INLINE __m128i k3_load_halves(const unsigned char *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

K3_INLINE __m256 k3_widen8_bf16(const unsigned char *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(k3_load_halves(p)), 16));
}

K3_INLINE __m256 k3_widen8_f16(const unsigned char *p) {
    return _mm256_cvtph_ps(k3_load_halves(p));
}

K3_INLINE __m256 k3_widen_last(k3_widen8 *widen, size_t element, const unsigned char *p, size_t n) {
    unsigned char whole[32] = {0};
    memcpy(whole, p, n * element);
    return widen(whole);
}

/* The sums of four at once, each in k3_sum's order. */
K3_INLINE __m128 k3_four_sums(const __m256 s[4]) {
    __m128 h[4], low, high;
    K3_UNROLL for (size_t t = 0; t < 4; t++)
        h[t] = _mm_add_ps(_mm256_castps256_ps128(s[t]), _mm256_extractf128_ps(s[t], 1));
    low = _mm_add_ps(_mm_unpacklo_ps(h[0], h[1]), _mm_unpackhi_ps(h[0], h[1]));
    high = _mm_add_ps(_mm_unpacklo_ps(h[2], h[3]), _mm_unpackhi_ps(h[2], h[3]));
    return _mm_add_ps(_mm_movelh_ps(low, high), _mm_movehl_ps(high, low));
}

/* s [rows, tokens] becomes y[t * ldy + r]. */
K3_INLINE void k3_store_sums(float *y, size_t ldy, const __m256 *s, size_t rows, size_t tokens) {
    K3_UNROLL for (size_t r = 0; r < rows; r++, s += tokens) {
        if (tokens == 4) {
            __m128 sums = k3_four_sums(s);
            _mm_store_ss(y + r, sums);
            _mm_store_ss(y + ldy + r, _mm_movehdup_ps(sums));
            _mm_store_ss(y + 2 * ldy + r, _mm_movehl_ps(sums, sums));
            _mm_store_ss(y + 3 * ldy + r, _mm_shuffle_ps(sums, sums, 0xff));
        } else K3_UNROLL for (size_t t = 0; t < tokens; t++) y[t * ldy + r] = k3_sum(s[t]);
    }
}

#define K3_BLOCK 32 /* tokens that meet all rows before the next ones do */

K3_INLINE struct k3_matmul k3_token_block(const struct k3_matmul *m, size_t token) {
    size_t n = m->n - token < K3_BLOCK ? m->n - token : K3_BLOCK;
    return (struct k3_matmul){m->y + token * m->ldy, m->ldy, m->x + token * m->ldx, m->ldx, m->rows, m->cols, n};
}

#endif
