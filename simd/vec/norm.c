#include "simd/vec/kernels.h"
#include "simd/vec/vec.h"
#include "simd/vec/math.h"

#include <math.h>

#define L2_EPS 1e-6f /* whatever the configuration says (spec 2.3) */

K3_INLINE void add_squares(struct k3_doubles *sum, const float *x, size_t n) {
    struct k3_doubles v = k3_load_doubles(x, n);
    k3_add_products(sum, v, v);
}

static double sum_of_squares(const float *x, size_t n) {
    const struct k3_doubles zero = {{0}, {0}};
    struct k3_doubles s[2] = {zero, zero};
    size_t i = 0;
    for (; i + 2 * K3_LANES <= n; i += 2 * K3_LANES) {
        add_squares(&s[0], x + i, K3_LANES);
        add_squares(&s[1], x + i + K3_LANES, K3_LANES);
    }
    for (; i < n; i += K3_LANES) add_squares(&s[0], x + i, n - i);
    return k3_sum_doubles(s);
}

static float rms_factor(const float *x, float eps, size_t n) {
    return (float)(1 / sqrt(sum_of_squares(x, n) / (double)n + (double)eps));
}

K3_INLINE k3_vec normed(k3_vec x, k3_vec w, const float *factor) {
    return w * (x * k3_set(factor[0]));
}

void K3_NAME(rms_norm)(float *y, const float *x, const float *w, float eps, size_t n) {
    float factor = rms_factor(x, eps, n);
    k3_map2(y, x, w, &factor, n, normed);
}

K3_INLINE void gated(float *y, const float *x, const float *w, const float *gate, float factor, size_t n) {
    k3_vec norm = normed(k3_load(x, n), k3_load(w, n), &factor);
    k3_store(y, n, (norm * k3_divide(k3_sigmoid_ratio(k3_load(gate, n)))));
}

void K3_NAME(gated_rms_norm)(float *y, const float *x, const float *w, const float *gate, float eps, size_t n) {
    float factor = rms_factor(x, eps, n);
    size_t i = 0;
    for (; i + K3_LANES <= n; i += K3_LANES) gated(y + i, x + i, w + i, gate + i, factor, K3_LANES);
    if (i < n) gated(y + i, x + i, w + i, gate + i, factor, n - i);
}

K3_INLINE k3_vec scaled(k3_vec x, const float *constants) {
    return x * k3_set(constants[0]) * k3_set(constants[1]);
}

void K3_NAME(l2_norm)(float *y, const float *x, float scale, size_t n) {
    const float constants[2] = {(float)(1 / sqrt(sum_of_squares(x, n) + (double)L2_EPS)), scale};
    k3_map1(y, x, constants, n, scaled);
}
