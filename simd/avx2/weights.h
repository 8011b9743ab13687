/* Stored weights, widened in registers and in tiles.
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

/* How a matrix is stored, for what need not be inlined: widens n weights of one row from col on. */
struct k3_stored {
    const unsigned char *at, *scale;
    size_t ld; /* elements */
    void (*widen)(float *y, const struct k3_stored *w, size_t row, size_t col, size_t n);
};

/* matmul_tiles.c: any matrix, best for more than a few tokens. */
void k3_avx2_matmul_tiles(const struct k3_matmul *m, const struct k3_stored *w);

#endif
