#include "simd/vec/kernels.h"
#include "simd/vec/vec.h"
#include "simd/vec/math.h"

#include <math.h>
#include <string.h>

/* max(*max, scores); a NaN among the scores is passed over, one in *max stays. */
static float largest(const float *scores, size_t n, float max) {
    k3_vec a = k3_set(max), b = a;
    size_t i = 0;
    for (; i + 2 * K3_LANES <= n; i += 2 * K3_LANES) {
        a = k3_max(k3_load_whole(scores + i), a);
        b = k3_max(k3_load_whole(scores + i + K3_LANES), b);
    }
    if (i + K3_LANES <= n) a = k3_max(k3_load_whole(scores + i), a), i += K3_LANES;
    b = k3_choose(k3_first(n - i), k3_max(k3_load_part(scores + i, n - i), b), b); /* the other lanes hold no scores */
    return k3_largest(k3_max(a, b));
}

static bool any_nan(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i])) return true;
    return false;
}

K3_INLINE k3_vec exponentials(float *scores, size_t n, k3_vec max) {
    k3_vec e = k3_exp((k3_load(scores, n) - max));
    k3_store(scores, n, e);
    return n >= K3_LANES ? e : k3_choose(k3_first(n), e, (k3_vec){0});
}

/* Scores become exp(score - m).  A score's lane of the sum depends on its index alone, so scores of
 * -inf at the end of a tile leave the bits as they are. */
static float exponentials_sum(float *scores, size_t n, float m) {
    k3_vec max = k3_set(m), a = k3_set(0), b = a;
    size_t i = 0;
    for (; i + 2 * K3_LANES <= n; i += 2 * K3_LANES) {
        a = a + exponentials(scores + i, K3_LANES, max);
        b = b + exponentials(scores + i + K3_LANES, K3_LANES, max);
    }
    if (i < n) a = a + exponentials(scores + i, n - i, max);
    if (i + K3_LANES < n) b = b + exponentials(scores + i + K3_LANES, n - i - K3_LANES, max);
    return k3_sum(a + b);
}

float K3_NAME(softmax_tile)(float *scores, size_t n, float *max, float *sum) {
    float m = largest(scores, n, *max);
    if (m == -INFINITY) {
        if (any_nan(scores, n)) m = NAN;
        else {
            memset(scores, 0, n * sizeof *scores);
            return 1;
        }
    }
    float total = exponentials_sum(scores, n, m), f = expf(*max - m);
    *sum = *sum * f + total;
    *max = m;
    return f;
}
