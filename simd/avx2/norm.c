#include "simd/avx2/avx2.h"
#include "simd/avx2/lanes.h"
#include "simd/avx2/math.h"

#include <math.h>

#define L2_EPS 1e-6f /* whatever the configuration says (spec 2.3) */

K3_INLINE void add_squares(struct k3_doubles *sum, const float *x, size_t n) {
    struct k3_doubles v = k3_load_doubles(x, n);
    k3_add_products(sum, v, v);
}

static double sum_of_squares(const float *x, size_t n) {
    const struct k3_doubles zero = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    struct k3_doubles s[2] = {zero, zero};
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        add_squares(&s[0], x + i, 8);
        add_squares(&s[1], x + i + 8, 8);
    }
    for (; i < n; i += 8) add_squares(&s[0], x + i, n - i);
    return k3_sum_doubles(s);
}

static float rms_factor(const float *x, float eps, size_t n) {
    return (float)(1 / sqrt(sum_of_squares(x, n) / (double)n + (double)eps));
}

K3_INLINE __m256 normed(__m256 x, __m256 w, const float *factor) {
    return _mm256_mul_ps(w, _mm256_mul_ps(x, _mm256_set1_ps(factor[0])));
}

void k3_avx2_rms_norm(float *y, const float *x, const float *w, float eps, size_t n) {
    float factor = rms_factor(x, eps, n);
    k3_map2(y, x, w, &factor, n, normed);
}

K3_INLINE void gated(float *y, const float *x, const float *w, const float *gate, float factor, size_t n) {
    __m256 norm = normed(k3_load(x, n), k3_load(w, n), &factor);
    k3_store(y, n, _mm256_mul_ps(norm, k3_divide(k3_sigmoid_ratio(k3_load(gate, n)))));
}

void k3_avx2_gated_rms_norm(float *y, const float *x, const float *w, const float *gate, float eps, size_t n) {
    float factor = rms_factor(x, eps, n);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) gated(y + i, x + i, w + i, gate + i, factor, 8);
    if (i < n) gated(y + i, x + i, w + i, gate + i, factor, n - i);
}

K3_INLINE __m256 scaled(__m256 x, const float *constants) {
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_set1_ps(constants[0])), _mm256_set1_ps(constants[1]));
}

void k3_avx2_l2_norm(float *y, const float *x, float scale, size_t n) {
    const float constants[2] = {(float)(1 / sqrt(sum_of_squares(x, n) + (double)L2_EPS)), scale};
    k3_map1(y, x, constants, n, scaled);
}
