#include "simd/avx2/avx2.h"
#include "simd/avx2/mxfp4.h"

K3_INLINE void widen(float *y, const unsigned char *x, size_t n, k3_widen8 *widen8) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, widen8(x + 2 * i));
    if (i < n) k3_store(y + i, n - i, k3_widen_last(widen8, 2, x + 2 * i, n - i));
}

void k3_avx2_widen_bf16(float *y, const void *x, size_t n) {
    widen(y, x, n, k3_widen8_bf16);
}

void k3_avx2_widen_f16(float *y, const void *x, size_t n) {
    widen(y, x, n, k3_widen8_f16);
}

void k3_avx2_dequant_mxfp4(float *y, const uint8_t *packed, const uint8_t *scale, size_t n) {
    __m256 w[8];
    for (; n >= 64; n -= 64, y += 64, packed += 32, scale += 2) {
        k3_mxfp4_widen_pair(w, k3_mxfp4_load_pair(packed, packed + 16), scale[0], scale[1]);
        K3_UNROLL for (size_t i = 0; i < 8; i++) _mm256_storeu_ps(y + 8 * i, w[i]);
    }
    if (n) {
        k3_mxfp4_widen_pair(w, k3_mxfp4_load_pair(packed, packed), *scale, *scale);
        K3_UNROLL for (size_t i = 0; i < 4; i++) _mm256_storeu_ps(y + 8 * i, w[i]);
    }
}
