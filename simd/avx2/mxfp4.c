#include "simd/vec/kernels.h"
#include "simd/vec/mxfp4.h"

/* BF16 of an E2M1 magnitude at scale s: its exponent (biased by 127, before scaling) and its fraction.  Scales 0
 * and 1 make some of them subnormal. */
#define BITS(s, exponent, fraction)                                                     \
    ((s) == 255 ? 0x7fc0                                                                \
     : (exponent) + (s) - 127 > 254 ? 0x7f80                                            \
     : (exponent) + (s) - 127 > 0 ? ((exponent) + (s) - 127) * 128 + (fraction)         \
                                  : (128 + (fraction)) >> ((128 - (exponent) - (s)) & 3))
#define ZERO(s) ((s) == 255 ? 0x7fc0 : 0)
#define EIGHT(byte, s, sign)                                                                  \
    byte(ZERO(s) | sign), byte(BITS(s, 126, 0) | sign), byte(BITS(s, 127, 0) | sign),         \
    byte(BITS(s, 127, 64) | sign), byte(BITS(s, 128, 0) | sign), byte(BITS(s, 128, 64) | sign), \
    byte(BITS(s, 129, 0) | sign), byte(BITS(s, 129, 64) | sign)
#define LOW(bits) ((bits) & 255)
#define HIGH(bits) ((bits) >> 8)
#define SCALE(s) \
    {.low = {EIGHT(LOW, s, 0), EIGHT(LOW, s, 0x8000)}, .high = {EIGHT(HIGH, s, 0), EIGHT(HIGH, s, 0x8000)}}
#define SCALES_4(s) SCALE(s), SCALE(s + 1), SCALE(s + 2), SCALE(s + 3)
#define SCALES_16(s) SCALES_4(s), SCALES_4(s + 4), SCALES_4(s + 8), SCALES_4(s + 12)
#define SCALES_64(s) SCALES_16(s), SCALES_16(s + 16), SCALES_16(s + 32), SCALES_16(s + 48)

const struct k3_mxfp4_values k3_avx2_mxfp4_values[256] = {SCALES_64(0), SCALES_64(64), SCALES_64(128), SCALES_64(192)};

void k3_avx2_dequant_mxfp4(float *y, const uint8_t *packed, const uint8_t *scale, size_t n) {
    k3_vec w[8];
    for (; n >= 64; n -= 64, y += 64, packed += 32, scale += 2) {
        k3_mxfp4_widen_pair(w, k3_mxfp4_load_pair(packed, packed + 16), scale[0], scale[1]);
        K3_UNROLL for (size_t i = 0; i < 8; i++) k3_store_whole(y + 8 * i, w[i]);
    }
    if (n) {
        k3_mxfp4_widen_pair(w, k3_mxfp4_load_pair(packed, packed), *scale, *scale);
        K3_UNROLL for (size_t i = 0; i < 4; i++) k3_store_whole(y + 8 * i, w[i]);
    }
}

K3_INLINE void store_halves(uint16_t *first, uint16_t *second, __m256i x) {
    _mm_store_si128((__m128i *)(void *)first, _mm256_castsi256_si128(x));
    _mm_store_si128((__m128i *)(void *)second, _mm256_extracti128_si256(x, 1));
}

/* Eight look-ups of BF16 at a time: of both groups' codes, one a byte. */
K3_INLINE void store_bf16(uint16_t *y, __m256i codes, __m256i low_values, __m256i high_values) {
    __m256i low = _mm256_shuffle_epi8(low_values, codes), high = _mm256_shuffle_epi8(high_values, codes);
    store_halves(y, y + 32, _mm256_unpacklo_epi8(low, high));
    store_halves(y + 8, y + 40, _mm256_unpackhi_epi8(low, high));
}

/* Two groups' 64 weights. */
K3_INLINE void to_bf16(uint16_t *y, __m256i packed, uint8_t scale0, uint8_t scale1) {
    const struct k3_mxfp4_values *first = &k3_avx2_mxfp4_values[scale0], *second = &k3_avx2_mxfp4_values[scale1];
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_inserti128_si256(k3_mxfp4_both(first->low), k3_mxfp4_load(second->low), 1);
    __m256i high = _mm256_inserti128_si256(k3_mxfp4_both(first->high), k3_mxfp4_load(second->high), 1);
    __m256i even = _mm256_and_si256(packed, nibble), odd = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
    store_bf16(y, _mm256_unpacklo_epi8(even, odd), low, high);
    store_bf16(y + 16, _mm256_unpackhi_epi8(even, odd), low, high);
}

void k3_avx2_mxfp4_to_bf16(uint16_t *y, const uint8_t *packed, const uint8_t *scale, size_t groups) {
    for (; groups >= 2; groups -= 2, y += 64, packed += 32, scale += 2)
        to_bf16(y, _mm256_loadu_si256((const __m256i *)(const void *)packed), scale[0], scale[1]);
    if (groups) to_bf16(y, _mm256_zextsi128_si256(k3_mxfp4_load(packed)), *scale, *scale);
}
