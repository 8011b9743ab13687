#include "simd/scalar/scalar.h"

#include <math.h>
#include <string.h>

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

void k3_scalar_widen_bf16(float *y, const void *x, size_t n) {
    const unsigned char *p = x;
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, p + 2 * i, sizeof h);
        y[i] = float_of((uint32_t)h << 16);
    }
}

/* The product moves the exponent's bias from 15 to 127 and normalises subnormals; infinity and NaN keep the
 * largest exponent. */
static float widen_f16(uint16_t h) {
    uint32_t magnitude = bits_of(float_of((uint32_t)(h & 0x7fff) << 13) * 0x1p112f);
    if ((h & 0x7c00) == 0x7c00) magnitude = 0x7f800000 | (uint32_t)(h & 0x3ff) << 13;
    return float_of(magnitude | (uint32_t)(h & 0x8000) << 16);
}

void k3_scalar_widen_f16(float *y, const void *x, size_t n) {
    const unsigned char *p = x;
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, p + 2 * i, sizeof h);
        y[i] = widen_f16(h);
    }
}

/* 2^(s - 127); s = 0 is a subnormal, 255 is NaN (spec 1.4). */
static float scale_of(uint8_t s) {
    return s == 255 ? NAN : s == 0 ? 0x1p-127f : float_of((uint32_t)s << 23);
}

/* The products are exact: the values have one bit behind the first. */
void k3_scalar_dequant_mxfp4(float *y, const uint8_t *packed, const uint8_t *scale, size_t n) {
    static const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    for (size_t i = 0; i < n / 2; i++) {
        float s = scale_of(scale[i / 16]);
        y[2 * i] = e2m1[packed[i] & 15] * s;
        y[2 * i + 1] = e2m1[packed[i] >> 4] * s;
    }
}
