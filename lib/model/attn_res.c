#include "model/attn_res.h"

#include <math.h>

void k3_attn_res_mix(const struct k3_kernels *k, float *y, const float *const *source, size_t count, const float *s,
                     float eps, size_t n) {
    float p[K3_ATTN_RES_MAX], max = -INFINITY, sum = 0;
    for (size_t j = 0; j < count; j++) {
        double dot, square;
        k->dot_square(source[j], s, n, &dot, &square);
        p[j] = (float)(dot / sqrt(square / (double)n + (double)eps));
    }
    k->softmax_tile(p, count, &max, &sum);
    k->scale(p, 1 / sum, count);
    k->weighted_sum(y, source, p, count, n);
}
