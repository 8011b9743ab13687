#include "simd/avx2/avx2.h"
#include "simd/avx2/lanes.h"
#include "simd/avx2/math.h"

/* One division for all three quotients.  constants: 1/beta, 1/linear_beta, beta linear_beta. */
K3_INLINE __m256 situ(__m256 gate, __m256 up, const float *constants) {
    struct k3_ratio s = k3_sigmoid_ratio(gate);
    struct k3_ratio g = k3_tanh_ratio(_mm256_mul_ps(gate, _mm256_set1_ps(constants[0])));
    struct k3_ratio u = k3_tanh_ratio(_mm256_mul_ps(up, _mm256_set1_ps(constants[1])));
    __m256 num = _mm256_mul_ps(_mm256_mul_ps(_mm256_mul_ps(g.num, u.num), _mm256_set1_ps(constants[2])), s.num);
    return _mm256_div_ps(num, _mm256_mul_ps(_mm256_mul_ps(g.den, u.den), s.den));
}

/* constants: 1/beta, beta. */
K3_INLINE __m256 situ_open(__m256 gate, __m256 up, const float *constants) {
    struct k3_ratio s = k3_sigmoid_ratio(gate);
    struct k3_ratio g = k3_tanh_ratio(_mm256_mul_ps(gate, _mm256_set1_ps(constants[0])));
    __m256 num = _mm256_mul_ps(_mm256_mul_ps(g.num, _mm256_set1_ps(constants[1])), s.num);
    return _mm256_mul_ps(_mm256_div_ps(num, _mm256_mul_ps(g.den, s.den)), up);
}

void k3_avx2_situ_glu(float *y, const float *gate, const float *up, float beta, float linear_beta, size_t n) {
    if (linear_beta != 0) {
        const float constants[3] = {1 / beta, 1 / linear_beta, beta * linear_beta};
        k3_map2(y, gate, up, constants, n, situ);
    } else {
        const float constants[2] = {1 / beta, beta};
        k3_map2(y, gate, up, constants, n, situ_open);
    }
}

K3_INLINE __m256 silu(__m256 gate, __m256 up, const float *constants) {
    (void)constants;
    struct k3_ratio s = k3_sigmoid_ratio(gate);
    return _mm256_mul_ps(_mm256_mul_ps(gate, k3_divide(s)), up);
}

void k3_avx2_silu_glu(float *y, const float *gate, const float *up, size_t n) {
    k3_map2(y, gate, up, NULL, n, silu);
}

K3_INLINE __m256 sigmoid(__m256 x, const float *constants) {
    (void)constants;
    return k3_divide(k3_sigmoid_ratio(x));
}

void k3_avx2_sigmoid(float *y, const float *x, size_t n) {
    k3_map1(y, x, NULL, n, sigmoid);
}

K3_INLINE __m256 times_sigmoid(__m256 x, __m256 gate, const float *constants) {
    (void)constants;
    return _mm256_mul_ps(x, k3_divide(k3_sigmoid_ratio(gate)));
}

void k3_avx2_sigmoid_mul(float *y, const float *x, const float *gate, size_t n) {
    k3_map2(y, x, gate, NULL, n, times_sigmoid);
}

K3_INLINE __m256 exponential(__m256 x, const float *constants) {
    (void)constants;
    return k3_exp(x);
}

void k3_avx2_exp(float *y, const float *x, size_t n) {
    k3_map1(y, x, NULL, n, exponential);
}

K3_INLINE __m256 sum(__m256 a, __m256 b, const float *constants) {
    (void)constants;
    return _mm256_add_ps(a, b);
}

void k3_avx2_add(float *y, const float *x, size_t n) {
    k3_map2(y, y, x, NULL, n, sum);
}

K3_INLINE __m256 product(__m256 a, __m256 b, const float *constants) {
    (void)constants;
    return _mm256_mul_ps(a, b);
}

void k3_avx2_mul(float *y, const float *x, size_t n) {
    k3_map2(y, y, x, NULL, n, product);
}

K3_INLINE __m256 times(__m256 a, const float *constants) {
    return _mm256_mul_ps(a, _mm256_set1_ps(constants[0]));
}

void k3_avx2_scale(float *y, float a, size_t n) {
    k3_map1(y, y, &a, n, times);
}

/* x * 0 is 0 for what is finite and NaN for the rest, and a NaN stays in a sum. */
bool k3_avx2_all_finite(const float *x, size_t n) {
    const __m256 zero = _mm256_setzero_ps();
    __m256 s[4] = {zero, zero, zero, zero};
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        s[0] = _mm256_fmadd_ps(k3_load(x + i, 8), zero, s[0]);
        s[1] = _mm256_fmadd_ps(k3_load(x + i + 8, 8), zero, s[1]);
        s[2] = _mm256_fmadd_ps(k3_load(x + i + 16, 8), zero, s[2]);
        s[3] = _mm256_fmadd_ps(k3_load(x + i + 24, 8), zero, s[3]);
    }
    for (; i < n; i += 8) s[0] = _mm256_fmadd_ps(k3_load(x + i, n - i), zero, s[0]);
    return k3_sum4(s) == 0;
}
