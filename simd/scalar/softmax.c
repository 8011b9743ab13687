#include "simd/scalar/scalar.h"

#include <math.h>

float k3_scalar_softmax_tile(float *scores, size_t n, float *max, float *sum) {
    float m = *max, total = 0;
    for (size_t i = 0; i < n; i++)
        if (scores[i] > m || isnan(scores[i])) m = scores[i]; /* a NaN stays */
    if (m == -INFINITY) {
        for (size_t i = 0; i < n; i++) scores[i] = 0;
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        scores[i] = expf(scores[i] - m);
        total += scores[i];
    }
    float f = expf(*max - m);
    *sum = *sum * f + total;
    *max = m;
    return f;
}
