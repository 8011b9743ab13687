#include "simd/scalar/scalar.h"

void k3_scalar_dot_square(const float *v, const float *s, size_t n, double *dot, double *square) {
    double d = 0, q = 0;
    for (size_t i = 0; i < n; i++) {
        d += (double)v[i] * (double)s[i];
        q += (double)v[i] * (double)v[i];
    }
    *dot = d;
    *square = q;
}

void k3_scalar_weighted_sum(float *y, const float *const *v, const float *p, size_t count, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (size_t j = 0; j < count; j++) sum += p[j] * v[j][i];
        y[i] = sum;
    }
}
