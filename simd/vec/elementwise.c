#include "simd/vec/kernels.h"
#include "simd/vec/vec.h"
#include "simd/vec/math.h"

/* One division for all three quotients.  constants: 1/beta, 1/linear_beta, beta linear_beta. */
K3_INLINE k3_vec situ(k3_vec gate, k3_vec up, const float *constants) {
    struct k3_ratio s = k3_sigmoid_ratio(gate);
    struct k3_ratio g = k3_tanh_ratio(gate * k3_set(constants[0]));
    struct k3_ratio u = k3_tanh_ratio(up * k3_set(constants[1]));
    k3_vec num = g.num * u.num * k3_set(constants[2]) * s.num;
    return num / (g.den * u.den * s.den);
}

/* constants: 1/beta, beta. */
K3_INLINE k3_vec situ_open(k3_vec gate, k3_vec up, const float *constants) {
    struct k3_ratio s = k3_sigmoid_ratio(gate);
    struct k3_ratio g = k3_tanh_ratio(gate * k3_set(constants[0]));
    k3_vec num = g.num * k3_set(constants[1]) * s.num;
    return num / (g.den * s.den) * up;
}

void K3_NAME(situ_glu)(float *y, const float *gate, const float *up, float beta, float linear_beta, size_t n) {
    if (linear_beta != 0) {
        const float constants[3] = {1 / beta, 1 / linear_beta, beta * linear_beta};
        k3_map2(y, gate, up, constants, n, situ);
    } else {
        const float constants[2] = {1 / beta, beta};
        k3_map2(y, gate, up, constants, n, situ_open);
    }
}

K3_INLINE k3_vec silu(k3_vec gate, k3_vec up, const float *constants) {
    (void)constants;
    struct k3_ratio s = k3_sigmoid_ratio(gate);
    return gate * k3_divide(s) * up;
}

void K3_NAME(silu_glu)(float *y, const float *gate, const float *up, size_t n) {
    k3_map2(y, gate, up, NULL, n, silu);
}

K3_INLINE k3_vec sigmoid(k3_vec x, const float *constants) {
    (void)constants;
    return k3_divide(k3_sigmoid_ratio(x));
}

void K3_NAME(sigmoid)(float *y, const float *x, size_t n) {
    k3_map1(y, x, NULL, n, sigmoid);
}

K3_INLINE k3_vec times_sigmoid(k3_vec x, k3_vec gate, const float *constants) {
    (void)constants;
    return x * k3_divide(k3_sigmoid_ratio(gate));
}

void K3_NAME(sigmoid_mul)(float *y, const float *x, const float *gate, size_t n) {
    k3_map2(y, x, gate, NULL, n, times_sigmoid);
}

K3_INLINE k3_vec exponential(k3_vec x, const float *constants) {
    (void)constants;
    return k3_exp(x);
}

void K3_NAME(exp)(float *y, const float *x, size_t n) {
    k3_map1(y, x, NULL, n, exponential);
}

K3_INLINE k3_vec sum(k3_vec a, k3_vec b, const float *constants) {
    (void)constants;
    return a + b;
}

void K3_NAME(add)(float *y, const float *x, size_t n) {
    k3_map2(y, y, x, NULL, n, sum);
}

K3_INLINE k3_vec product(k3_vec a, k3_vec b, const float *constants) {
    (void)constants;
    return a * b;
}

void K3_NAME(mul)(float *y, const float *x, size_t n) {
    k3_map2(y, y, x, NULL, n, product);
}

K3_INLINE k3_vec times(k3_vec a, const float *constants) {
    return a * k3_set(constants[0]);
}

void K3_NAME(scale)(float *y, float a, size_t n) {
    k3_map1(y, y, &a, n, times);
}

/* x * 0 is 0 for what is finite and NaN for the rest, and a NaN stays in a sum. */
bool K3_NAME(all_finite)(const float *x, size_t n) {
    const k3_vec zero = {0};
    k3_vec s[4] = {zero, zero, zero, zero};
    size_t i = 0;
    for (; i + 4 * K3_LANES <= n; i += 4 * K3_LANES)
        K3_UNROLL for (size_t v = 0; v < 4; v++) s[v] = k3_fma(k3_load_whole(x + i + v * K3_LANES), zero, s[v]);
    for (; i < n; i += K3_LANES) s[0] = k3_fma(k3_load(x + i, n - i), zero, s[0]);
    return k3_sum4(s) == 0;
}
