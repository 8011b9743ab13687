/* Loops over floats, eight at a time: the last lanes go through masks and the same arithmetic, so an
 * element's bits do not depend on where it stands. */
#ifndef K3_SIMD_AVX2_LANES_H
#define K3_SIMD_AVX2_LANES_H

#include <immintrin.h>
#include <stddef.h>

#define K3_INLINE static inline __attribute__((always_inline))

/* Before a loop over an array of vectors, which then lives in registers. */
#if defined __clang__
#define K3_UNROLL _Pragma("unroll")
#else
#define K3_UNROLL _Pragma("GCC unroll 16")
#endif

/* All ones in the first n lanes, n <= 8. */
K3_INLINE __m256i k3_mask(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first n floats at p, then zeros; and back.  Masked accesses are slow: the whole ones (n = 8, known where this
 * is inlined) go without. */
K3_INLINE __m256 k3_load(const float *p, size_t n) {
    return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, k3_mask(n));
}

K3_INLINE void k3_store(float *p, size_t n, __m256 x) {
    if (n >= 8) _mm256_storeu_ps(p, x);
    else _mm256_maskstore_ps(p, k3_mask(n), x);
}

/* The sum of all lanes, in a fixed order. */
K3_INLINE float k3_sum(__m256 x) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

K3_INLINE float k3_sum4(const __m256 s[4]) {
    return k3_sum(_mm256_add_ps(_mm256_add_ps(s[0], s[1]), _mm256_add_ps(s[2], s[3])));
}

/* Eight lanes in double, the first four and the others. */
struct k3_doubles {
    __m256d low, high;
};

/* The first n floats at p, then zeros.  Whole ones are widened by the loads themselves, which costs no shuffle. */
K3_INLINE struct k3_doubles k3_load_doubles(const float *p, size_t n) {
    if (n >= 8) return (struct k3_doubles){_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))};
    __m256 x = k3_load(p, n);
    return (struct k3_doubles){_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}

K3_INLINE void k3_add_products(struct k3_doubles *sum, struct k3_doubles a, struct k3_doubles b) {
    sum->low = _mm256_fmadd_pd(a.low, b.low, sum->low);
    sum->high = _mm256_fmadd_pd(a.high, b.high, sum->high);
}

/* The sum of all lanes of two, in a fixed order. */
K3_INLINE double k3_sum_doubles(const struct k3_doubles s[2]) {
    __m256d x = _mm256_add_pd(_mm256_add_pd(s[0].low, s[0].high), _mm256_add_pd(s[1].low, s[1].high));
    __m128d half = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}

/* y[i] = f(a[i], b[i], constants).  f is known where this is inlined, so nothing is called. */
typedef __m256 k3_lanes2(__m256 a, __m256 b, const float *constants);

K3_INLINE void k3_map2(float *y, const float *a, const float *b, const float *constants, size_t n, k3_lanes2 *f) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) k3_store(y + i, 8, f(k3_load(a + i, 8), k3_load(b + i, 8), constants));
    if (i < n) k3_store(y + i, n - i, f(k3_load(a + i, n - i), k3_load(b + i, n - i), constants));
}

typedef __m256 k3_lanes1(__m256 a, const float *constants);

K3_INLINE void k3_map1(float *y, const float *a, const float *constants, size_t n, k3_lanes1 *f) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) k3_store(y + i, 8, f(k3_load(a + i, 8), constants));
    if (i < n) k3_store(y + i, n - i, f(k3_load(a + i, n - i), constants));
}

#endif
