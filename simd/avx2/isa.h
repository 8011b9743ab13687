/* AVX2 + FMA + F16C: eight floats. */
#ifndef K3_SIMD_AVX2_ISA_H
#define K3_SIMD_AVX2_ISA_H

#include <immintrin.h>
#include <stddef.h>

#define K3_ISA_NAME "avx2"
#define K3_NAME(kernel) k3_avx2_##kernel
#define K3_BYTES 32 /* of a vector */
#define K3_TILE_ROWS 3 /* of a product, times K3_TILE_TOKENS: accumulators that fit the 16 registers */
#define K3_TILE_TOKENS 4
#define K3_TILE_COLUMNS 3

#include "simd/vec/types.h"

/* All ones in the first n lanes, n <= 8. */
K3_INLINE __m256i k3_avx2_mask(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

K3_INLINE k3_vec k3_set(float x) {
    return _mm256_set1_ps(x);
}

K3_INLINE k3_vec k3_load_whole(const float *p) {
    return _mm256_loadu_ps(p);
}

K3_INLINE k3_vec k3_load_part(const float *p, size_t n) {
    return _mm256_maskload_ps(p, k3_avx2_mask(n));
}

K3_INLINE void k3_store_whole(float *p, k3_vec x) {
    _mm256_storeu_ps(p, x);
}

K3_INLINE void k3_store_part(float *p, size_t n, k3_vec x) {
    _mm256_maskstore_ps(p, k3_avx2_mask(n), x);
}

K3_INLINE k3_vec k3_fma(k3_vec a, k3_vec b, k3_vec c) {
    return _mm256_fmadd_ps(a, b, c);
}

K3_INLINE k3_vec k3_fnma(k3_vec a, k3_vec b, k3_vec c) {
    return _mm256_fnmadd_ps(a, b, c);
}

K3_INLINE k3_vec k3_max(k3_vec a, k3_vec b) {
    return _mm256_max_ps(a, b);
}

K3_INLINE k3_vec k3_min(k3_vec a, k3_vec b) {
    return _mm256_min_ps(a, b);
}

K3_INLINE k3_vec k3_nearest(k3_vec x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

K3_INLINE k3_ints k3_to_ints(k3_vec x) {
    return (k3_ints)_mm256_cvtps_epi32(x);
}

K3_INLINE k3_vec k3_if_negative(k3_vec x, k3_vec yes, k3_vec no) {
    return _mm256_blendv_ps(no, yes, x);
}

/* Each lane and the one 4 further. */
K3_INLINE k3_quad k3_quarters(k3_vec x) {
    return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}

K3_INLINE float k3_largest(k3_vec x) {
    x = _mm256_max_ps(x, _mm256_permute2f128_ps(x, x, 1));
    x = _mm256_max_ps(x, _mm256_permute_ps(x, 0x4e));
    return _mm256_cvtss_f32(_mm256_max_ps(x, _mm256_permute_ps(x, 0xb1)));
}

K3_INLINE k3_vec k3_widen_bf16(const unsigned char *p) {
    __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

K3_INLINE k3_vec k3_widen_f16(const unsigned char *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

#endif
