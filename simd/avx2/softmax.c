#include "simd/avx2/avx2.h"
#include "simd/avx2/lanes.h"
#include "simd/avx2/math.h"

#include <math.h>
#include <string.h>

/* max(*max, scores); a NaN among the scores is passed over, one in *max stays. */
static float largest(const float *scores, size_t n, float max) {
    __m256 a = _mm256_set1_ps(max), b = a;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        a = _mm256_max_ps(k3_load(scores + i, 8), a);
        b = _mm256_max_ps(k3_load(scores + i + 8, 8), b);
    }
    if (i + 8 <= n) a = _mm256_max_ps(k3_load(scores + i, 8), a), i += 8;
    __m256i mask = k3_mask(n - i); /* the other lanes hold no scores */
    b = _mm256_blendv_ps(b, _mm256_max_ps(_mm256_maskload_ps(scores + i, mask), b), _mm256_castsi256_ps(mask));
    a = _mm256_max_ps(a, b);
    a = _mm256_max_ps(a, _mm256_permute2f128_ps(a, a, 1));
    a = _mm256_max_ps(a, _mm256_permute_ps(a, 0x4e));
    return _mm256_cvtss_f32(_mm256_max_ps(a, _mm256_permute_ps(a, 0xb1)));
}

static bool any_nan(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i])) return true;
    return false;
}

K3_INLINE __m256 exponentials(float *scores, size_t n, __m256 max) {
    __m256 e = k3_exp(_mm256_sub_ps(k3_load(scores, n), max));
    k3_store(scores, n, e);
    return n >= 8 ? e : _mm256_and_ps(e, _mm256_castsi256_ps(k3_mask(n)));
}

/* Scores become exp(score - m).  A score's lane of the sum depends on its index alone, so scores of
 * -inf at the end of a tile leave the bits as they are. */
static float exponentials_sum(float *scores, size_t n, float m) {
    __m256 max = _mm256_set1_ps(m), a = _mm256_setzero_ps(), b = a;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        a = _mm256_add_ps(a, exponentials(scores + i, 8, max));
        b = _mm256_add_ps(b, exponentials(scores + i + 8, 8, max));
    }
    if (i < n) a = _mm256_add_ps(a, exponentials(scores + i, n - i, max));
    if (i + 8 < n) b = _mm256_add_ps(b, exponentials(scores + i + 8, n - i - 8, max));
    return k3_sum(_mm256_add_ps(a, b));
}

float k3_avx2_softmax_tile(float *scores, size_t n, float *max, float *sum) {
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
