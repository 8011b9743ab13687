#include "simd/vec/kernels.h"
#include "simd/vec/vec.h"

struct sums {
    struct k3_doubles dot, square;
};

K3_INLINE void add_products(struct sums *sum, const float *v, const float *s, size_t n) {
    struct k3_doubles a = k3_load_doubles(v, n);
    k3_add_products(&sum->dot, a, k3_load_doubles(s, n));
    k3_add_products(&sum->square, a, a);
}

void K3_NAME(dot_square)(const float *v, const float *s, size_t n, double *dot, double *square) {
    const struct k3_doubles zero = {{0}, {0}};
    struct sums a = {zero, zero}, b = a;
    size_t i = 0;
    for (; i + 2 * K3_LANES <= n; i += 2 * K3_LANES) {
        add_products(&a, v + i, s + i, K3_LANES);
        add_products(&b, v + i + K3_LANES, s + i + K3_LANES, K3_LANES);
    }
    for (; i < n; i += K3_LANES) add_products(&a, v + i, s + i, n - i);
    *dot = k3_sum_doubles((const struct k3_doubles[2]){a.dot, b.dot});
    *square = k3_sum_doubles((const struct k3_doubles[2]){a.square, b.square});
}

/* `vectors` vectors of columns of n lanes. */
K3_INLINE void weighted_columns(float *y, const float *const *v, const float *p, size_t count, size_t at,
                                size_t vectors, size_t n) {
    k3_vec s[4] = {{0}};
    for (size_t j = 0; j < count; j++) {
        k3_vec weight = k3_set(p[j]);
        K3_UNROLL for (size_t i = 0; i < vectors; i++)
            s[i] = k3_fma(weight, k3_load(v[j] + at + i * K3_LANES, n), s[i]);
    }
    K3_UNROLL for (size_t i = 0; i < vectors; i++) k3_store(y + at + i * K3_LANES, n, s[i]);
}

void K3_NAME(weighted_sum)(float *y, const float *const *v, const float *p, size_t count, size_t n) {
    size_t i = 0;
    for (; i + 4 * K3_LANES <= n; i += 4 * K3_LANES) weighted_columns(y, v, p, count, i, 4, K3_LANES);
    for (; i + K3_LANES <= n; i += K3_LANES) weighted_columns(y, v, p, count, i, 1, K3_LANES);
    if (i < n) weighted_columns(y, v, p, count, i, 1, n - i);
}
