/* MXFP4 weights (spec 1.4) in registers.
 *
 * A weight's value, scaled, is a BF16 number for every code and every scale, so two byte look-ups give it: one of
 * the low and one of the high bytes of the sixteen values that a group can have. */
#ifndef K3_SIMD_AVX2_MXFP4_H
#define K3_SIMD_AVX2_MXFP4_H

#include "simd/vec/mxfp4.h"

struct k3_mxfp4_values {
    _Alignas(32) uint8_t low[16];
    uint8_t high[16];
};

extern const struct k3_mxfp4_values k3_avx2_mxfp4_values[256] __attribute__((visibility("hidden"))); /* by scale */

K3_INLINE __m128i k3_mxfp4_load(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Sixteen bytes of one group's codes and its values' bytes in both halves. */
K3_INLINE __m256i k3_mxfp4_both(const uint8_t *p) {
    return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(const void *)p));
}

/* Codes, one a byte, in the order 0 8 1 9 2 10 3 11 16 24 .. | 4 12 5 13 .., become weights in order. */
K3_INLINE void k3_mxfp4_look_up(k3_vec w[4], __m256i codes, const struct k3_mxfp4_values *values) {
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000);
    __m256i low = _mm256_shuffle_epi8(k3_mxfp4_both(values->low), codes);
    __m256i high = _mm256_shuffle_epi8(k3_mxfp4_both(values->high), codes);
    __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
    w[0] = _mm256_castsi256_ps(_mm256_slli_epi32(first, 16));
    w[1] = _mm256_castsi256_ps(_mm256_and_si256(first, upper));
    w[2] = _mm256_castsi256_ps(_mm256_slli_epi32(second, 16));
    w[3] = _mm256_castsi256_ps(_mm256_and_si256(second, upper));
}

/* Two groups' bytes, in the order that k3_mxfp4_widen_pair wants: first group's, second group's | the same of their
 * columns 4 to 7 of every eight. */
K3_INLINE __m256i k3_mxfp4_load_pair(const uint8_t *first, const uint8_t *second) {
    const __m256i to_first = _mm256_setr_epi8(0, 4, 1, 5, 8, 12, 9, 13, -1, -1, -1, -1, -1, -1, -1, -1,
                                              2, 6, 3, 7, 10, 14, 11, 15, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i to_second = _mm256_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 1, 5, 8, 12, 9, 13,
                                               -1, -1, -1, -1, -1, -1, -1, -1, 2, 6, 3, 7, 10, 14, 11, 15);
    __m256i a = _mm256_broadcastsi128_si256(k3_mxfp4_load(first));
    __m256i b = _mm256_broadcastsi128_si256(k3_mxfp4_load(second));
    return _mm256_or_si256(_mm256_shuffle_epi8(a, to_first), _mm256_shuffle_epi8(b, to_second));
}

/* The 64 weights of two groups. */
K3_INLINE void k3_mxfp4_widen_pair(k3_vec w[8], __m256i packed, uint8_t scale0, uint8_t scale1) {
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i even = _mm256_and_si256(packed, nibble), odd = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
    k3_mxfp4_look_up(w, _mm256_unpacklo_epi16(even, odd), &k3_avx2_mxfp4_values[scale0]);
    k3_mxfp4_look_up(w + 4, _mm256_unpackhi_epi16(even, odd), &k3_avx2_mxfp4_values[scale1]);
}

#define K3_MXFP4_ROWS 4 /* at once */
#define K3_MXFP4_FEW 3  /* tokens for which the weights are widened in registers */
#define K3_MXFP4_LEAST 2
#define K3_MXFP4_TOKENS 2 /* for more, half the rows */

/* One group of `rows` rows meets the tokens; two rows take turns, for a row's sums wait for each other. */
K3_INLINE void k3_mxfp4_accumulate(k3_vec *s, const struct k3_mxfp4_rows *p, size_t rows, size_t tokens) {
    K3_UNROLL for (size_t r = 0; r < rows; r += 2) {
        k3_vec w[8], *first = s + r * tokens, *second = first + tokens;
        __m256i packed = k3_mxfp4_load_pair(p->packed + r * p->ld_packed, p->packed + (r + 1) * p->ld_packed);
        k3_mxfp4_widen_pair(w, packed, p->scale[r * p->ld_scale], p->scale[(r + 1) * p->ld_scale]);
        K3_UNROLL for (size_t i = 0; i < 4; i++)
            K3_UNROLL for (size_t t = 0; t < tokens; t++) {
                k3_vec x = k3_load_whole(p->x + t * p->ldx + 8 * i);
                first[t] = k3_fma(w[i], x, first[t]);
                second[t] = k3_fma(w[4 + i], x, second[t]);
            }
    }
}

/* Lanes in the order of the columns. */
K3_INLINE k3_vec k3_mxfp4_in_order(k3_vec s) {
    return s;
}

#endif
