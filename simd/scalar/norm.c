#include "simd/scalar/scalar.h"

#include <math.h>

#define L2_EPS 1e-6f /* whatever the configuration says (spec 2.3) */

static double sum_of_squares(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static float rms_factor(const float *x, float eps, size_t n) {
    return (float)(1 / sqrt(sum_of_squares(x, n) / (double)n + (double)eps));
}

void k3_scalar_rms_norm(float *y, const float *x, const float *w, float eps, size_t n) {
    float factor = rms_factor(x, eps, n);
    for (size_t i = 0; i < n; i++) y[i] = w[i] * (x[i] * factor);
}

void k3_scalar_gated_rms_norm(float *y, const float *x, const float *w, const float *gate, float eps, size_t n) {
    float factor = rms_factor(x, eps, n);
    for (size_t i = 0; i < n; i++) y[i] = w[i] * (x[i] * factor) * k3_scalar_sigmoid1(gate[i]);
}

void k3_scalar_l2_norm(float *y, const float *x, float scale, size_t n) {
    float factor = (float)(1 / sqrt(sum_of_squares(x, n) + (double)L2_EPS));
    for (size_t i = 0; i < n; i++) y[i] = x[i] * factor * scale;
}
