#include "simd/scalar/scalar.h"

#include <math.h>
#include <string.h>

/* No overflow on either side: exp only sees what is not positive. */
float k3_scalar_sigmoid1(float x) {
    float e = expf(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

void k3_scalar_situ_glu(float *y, const float *gate, const float *up, float beta, float linear_beta, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float u = linear_beta != 0 ? linear_beta * tanhf(up[i] / linear_beta) : up[i];
        y[i] = beta * tanhf(gate[i] / beta) * k3_scalar_sigmoid1(gate[i]) * u;
    }
}

void k3_scalar_silu_glu(float *y, const float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = gate[i] * k3_scalar_sigmoid1(gate[i]) * up[i];
}

void k3_scalar_sigmoid(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = k3_scalar_sigmoid1(x[i]);
}

void k3_scalar_sigmoid_mul(float *y, const float *x, const float *gate, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] * k3_scalar_sigmoid1(gate[i]);
}

void k3_scalar_exp(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = expf(x[i]);
}

void k3_scalar_add(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

void k3_scalar_mul(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] *= x[i];
}

void k3_scalar_scale(float *y, float a, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] *= a;
}

bool k3_scalar_all_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if ((bits & 0x7f800000) == 0x7f800000) return false;
    }
    return true;
}
