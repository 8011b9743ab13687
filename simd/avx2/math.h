/* exp, sigmoid, tanh and log1p of eight floats, to about two ulp.
 *
 * NaN comes out where NaN goes in: min and max return their second operand when one is NaN, so x stands second. */
#ifndef K3_SIMD_AVX2_MATH_H
#define K3_SIMD_AVX2_MATH_H

#include <immintrin.h>

static inline __m256 k3_abs(__m256 x) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

/* 2^n, -126 <= n <= 127. */
static inline __m256 k3_pow2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* x = n ln 2 + r, |r| <= ln 2 / 2: returns expm1(r), a minimax polynomial (2.4e-10 relative). */
static inline __m256 k3_reduce_expm1(__m256 x, __m256i *n) {
    __m256 t = _mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0f)); /* 1 / ln 2 */
    t = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    /* ln 2 in two parts, of which n times the first is exact. */
    __m256 r = _mm256_fnmadd_ps(t, _mm256_set1_ps(0x1.62e400p-1f), x);
    r = _mm256_fnmadd_ps(t, _mm256_set1_ps(0x1.7f7d1cp-20f), r);
    __m256 r2 = _mm256_mul_ps(r, r); /* the polynomial in pairs: half the latency */
    __m256 low = _mm256_fmadd_ps(_mm256_set1_ps(1.6666666370e-01f), r, _mm256_set1_ps(5.0000000442e-01f));
    __m256 middle = _mm256_fmadd_ps(_mm256_set1_ps(8.3333893911e-03f), r, _mm256_set1_ps(4.1666360793e-02f));
    __m256 high = _mm256_fmadd_ps(_mm256_set1_ps(1.9845878760e-04f), r, _mm256_set1_ps(1.3940637576e-03f));
    *n = _mm256_cvtps_epi32(t);
    return _mm256_fmadd_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(high, r2, middle), r2, low), r2, r);
}

/* e^x for x <= 89: subnormals are rounded once, below them 0. */
static inline __m256 k3_exp_to_89(__m256 x) {
    __m256i n;
    x = _mm256_max_ps(_mm256_set1_ps(-105), x);
    __m256 e = _mm256_add_ps(_mm256_set1_ps(1), k3_reduce_expm1(x, &n));
    __m256i half = _mm256_srai_epi32(n, 1); /* 2^n itself may not be a float */
    return _mm256_mul_ps(_mm256_mul_ps(e, k3_pow2(half)), k3_pow2(_mm256_sub_epi32(n, half)));
}

/* e^x over the whole range; above it infinity. */
static inline __m256 k3_exp(__m256 x) {
    return k3_exp_to_89(_mm256_min_ps(_mm256_set1_ps(89), x));
}

/* A quotient not divided yet: several of them share one division. */
struct k3_ratio {
    __m256 num, den;
};

static inline __m256 k3_divide(struct k3_ratio r) {
    return _mm256_div_ps(r.num, r.den);
}

/* 1 / (1 + e^-x), or e^x / (1 + e^x) below 0: exp never sees a positive number.  den in [1, 2]. */
static inline struct k3_ratio k3_sigmoid_ratio(__m256 x) {
    __m256 one = _mm256_set1_ps(1), e = k3_exp_to_89(_mm256_or_ps(_mm256_set1_ps(-0.0f), x));
    return (struct k3_ratio){_mm256_blendv_ps(one, e, x), _mm256_add_ps(one, e)};
}

/* tanh |x| = -m / (2 + m), m = expm1(-2 |x|): keeps its digits near 0.  den in [1, 2]. */
static inline struct k3_ratio k3_tanh_ratio(__m256 x) {
    __m256i n;
    __m256 sign = _mm256_and_ps(_mm256_set1_ps(-0.0f), x);
    __m256 a = _mm256_mul_ps(_mm256_set1_ps(-2), k3_abs(x));
    a = _mm256_max_ps(_mm256_set1_ps(-40), a); /* there tanh is 1 already */
    __m256 p = k3_reduce_expm1(a, &n), scale = k3_pow2(n);
    __m256 m = _mm256_fmadd_ps(p, scale, _mm256_sub_ps(scale, _mm256_set1_ps(1)));
    return (struct k3_ratio){_mm256_or_ps(k3_abs(m), sign), _mm256_add_ps(_mm256_set1_ps(2), m)};
}

/* log(1 + e), 0 <= e <= 1, as 2 atanh(e / (2 + e)). */
static inline __m256 k3_log1p(__m256 e) {
    __m256 s = _mm256_div_ps(e, _mm256_add_ps(_mm256_set1_ps(2), e)), s2 = _mm256_mul_ps(s, s);
    __m256 p = _mm256_set1_ps(2.8024459270e-01f);
    p = _mm256_fmadd_ps(p, s2, _mm256_set1_ps(2.7999140978e-01f));
    p = _mm256_fmadd_ps(p, s2, _mm256_set1_ps(4.0021699066e-01f));
    p = _mm256_fmadd_ps(p, s2, _mm256_set1_ps(6.6666413133e-01f));
    return _mm256_fmadd_ps(_mm256_mul_ps(s, s2), p, _mm256_add_ps(s, s));
}

#endif
