/* AVX-512 F, BW, DQ and VL: sixteen floats. */
#ifndef K3_SIMD_AVX512_ISA_H
#define K3_SIMD_AVX512_ISA_H

#include <immintrin.h>
#include <stddef.h>

#define K3_ISA_NAME "avx512"
#define K3_NAME(kernel) k3_avx512_##kernel
#define K3_BYTES 64 /* of a vector */
#define K3_TILE_ROWS 6 /* of a product, times K3_TILE_TOKENS: accumulators that fit the 32 registers */
#define K3_TILE_TOKENS 4
#define K3_TILE_COLUMNS 4

#include "simd/vec/types.h"

/* The first n lanes, n <= 16. */
K3_INLINE __mmask16 k3_avx512_mask(size_t n) {
    return (__mmask16)((1u << n) - 1);
}

K3_INLINE k3_vec k3_set(float x) {
    return _mm512_set1_ps(x);
}

K3_INLINE k3_vec k3_load_whole(const float *p) {
    return _mm512_loadu_ps(p);
}

K3_INLINE k3_vec k3_load_part(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(k3_avx512_mask(n), p);
}

K3_INLINE void k3_store_whole(float *p, k3_vec x) {
    _mm512_storeu_ps(p, x);
}

K3_INLINE void k3_store_part(float *p, size_t n, k3_vec x) {
    _mm512_mask_storeu_ps(p, k3_avx512_mask(n), x);
}

K3_INLINE k3_vec k3_fma(k3_vec a, k3_vec b, k3_vec c) {
    return _mm512_fmadd_ps(a, b, c);
}

K3_INLINE k3_vec k3_fnma(k3_vec a, k3_vec b, k3_vec c) {
    return _mm512_fnmadd_ps(a, b, c);
}

K3_INLINE k3_vec k3_max(k3_vec a, k3_vec b) {
    return _mm512_max_ps(a, b);
}

K3_INLINE k3_vec k3_min(k3_vec a, k3_vec b) {
    return _mm512_min_ps(a, b);
}

K3_INLINE k3_vec k3_nearest(k3_vec x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

K3_INLINE k3_ints k3_to_ints(k3_vec x) {
    return (k3_ints)_mm512_cvtps_epi32(x);
}

K3_INLINE k3_vec k3_if_negative(k3_vec x, k3_vec yes, k3_vec no) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), no, yes);
}

/* Each lane and the one 8 further, then 4. */
K3_INLINE k3_quad k3_quarters(k3_vec x) {
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

K3_INLINE float k3_largest(k3_vec x) {
    return _mm512_reduce_max_ps(x);
}

K3_INLINE k3_vec k3_widen_bf16(const unsigned char *p) {
    __m256i halves = _mm256_loadu_si256((const __m256i *)(const void *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

K3_INLINE k3_vec k3_widen_f16(const unsigned char *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

#endif
