#include "simd/vec/kernels.h"
#include "simd/vec/weights.h"

K3_INLINE void widen_all(float *y, const unsigned char *x, size_t n, k3_widen *widen) {
    size_t i = 0;
    for (; i + K3_LANES <= n; i += K3_LANES) k3_store_whole(y + i, widen(x + 2 * i));
    if (i < n) k3_store(y + i, n - i, k3_widen_last(widen, 2, x + 2 * i, n - i));
}

void K3_NAME(widen_bf16)(float *y, const void *x, size_t n) {
    widen_all(y, x, n, k3_widen_bf16);
}

void K3_NAME(widen_f16)(float *y, const void *x, size_t n) {
    widen_all(y, x, n, k3_widen_f16);
}
