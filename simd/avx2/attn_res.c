#include "simd/avx2/avx2.h"
#include "simd/avx2/lanes.h"

struct sums {
    struct k3_doubles dot, square;
};

K3_INLINE void add_products(struct sums *sum, const float *v, const float *s, size_t n) {
    struct k3_doubles a = k3_load_doubles(v, n);
    k3_add_products(&sum->dot, a, k3_load_doubles(s, n));
    k3_add_products(&sum->square, a, a);
}

void k3_avx2_dot_square(const float *v, const float *s, size_t n, double *dot, double *square) {
    const struct k3_doubles zero = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    struct sums a = {zero, zero}, b = a;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        add_products(&a, v + i, s + i, 8);
        add_products(&b, v + i + 8, s + i + 8, 8);
    }
    for (; i < n; i += 8) add_products(&a, v + i, s + i, n - i);
    *dot = k3_sum_doubles((const struct k3_doubles[2]){a.dot, b.dot});
    *square = k3_sum_doubles((const struct k3_doubles[2]){a.square, b.square});
}

void k3_avx2_weighted_sum(float *y, const float *const *v, const float *p, size_t count, size_t n) {
    const __m256 zero = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256 a = zero, b = zero, c = zero, d = zero;
        for (size_t j = 0; j < count; j++) {
            __m256 weight = _mm256_set1_ps(p[j]);
            a = _mm256_fmadd_ps(weight, k3_load(v[j] + i, 8), a);
            b = _mm256_fmadd_ps(weight, k3_load(v[j] + i + 8, 8), b);
            c = _mm256_fmadd_ps(weight, k3_load(v[j] + i + 16, 8), c);
            d = _mm256_fmadd_ps(weight, k3_load(v[j] + i + 24, 8), d);
        }
        k3_store(y + i, 8, a);
        k3_store(y + i + 8, 8, b);
        k3_store(y + i + 16, 8, c);
        k3_store(y + i + 24, 8, d);
    }
    for (; i < n; i += 8) {
        __m256 a = zero;
        for (size_t j = 0; j < count; j++) a = _mm256_fmadd_ps(_mm256_set1_ps(p[j]), k3_load(v[j] + i, n - i), a);
        k3_store(y + i, n - i, a);
    }
}
