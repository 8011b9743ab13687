#include "simd/vec/kernels.h"
#include "simd/vec/mxfp4.h"

/* 2^(s - 127): subnormal for 0, NaN for 255. */
#define SCALE(s) ((s) == 255 ? 0x7fc00000u : (s) ? (uint32_t)(s) << 23 : 0x00400000u)
#define SCALES_4(s) SCALE(s), SCALE((s) + 1), SCALE((s) + 2), SCALE((s) + 3)
#define SCALES_16(s) SCALES_4(s), SCALES_4((s) + 4), SCALES_4((s) + 8), SCALES_4((s) + 12)
#define SCALES_64(s) SCALES_16(s), SCALES_16((s) + 16), SCALES_16((s) + 32), SCALES_16((s) + 48)

const uint32_t k3_avx512_mxfp4_scale[256] = {SCALES_64(0), SCALES_64(64), SCALES_64(128), SCALES_64(192)};

/* Sixteen codes in order: 32-bit words `first` and `first + 1` of the group's four. */
K3_INLINE __m512i codes(__m512i packed, int first) {
    const __m512i down = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    __m512i word = _mm512_mask_set1_epi32(_mm512_set1_epi32(first), 0xff00, first + 1);
    return _mm512_srlv_epi32(_mm512_permutexvar_epi32(word, packed), down);
}

void k3_avx512_dequant_mxfp4(float *y, const uint8_t *packed, const uint8_t *scale, size_t n) {
    for (; n; n -= 32, y += 32, packed += 16, scale++) {
        __m512 values = k3_mxfp4_values(*scale);
        __m512i group = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)packed));
        k3_store_whole(y, _mm512_permutexvar_ps(codes(group, 0), values));
        k3_store_whole(y + 16, _mm512_permutexvar_ps(codes(group, 2), values));
    }
}

/* A group's 32 codes, one a word, look the upper halves of the values up, which are all of them: the rest is 0. */
void k3_avx512_mxfp4_to_bf16(uint16_t *y, const uint8_t *packed, const uint8_t *scale, size_t groups) {
    const __m512i code = _mm512_set1_epi16(15);
    for (; groups; groups--, y += 32, packed += 16, scale++) {
        __m512i upper = _mm512_srli_epi32(_mm512_castps_si512(k3_mxfp4_values(*scale)), 16);
        __m512i values = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(upper));
        __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)packed));
        __m512i codes = _mm512_and_si512(_mm512_or_si512(bytes, _mm512_slli_epi32(bytes, 12)), code);
        _mm512_storeu_si512(y, _mm512_permutexvar_epi16(codes, values));
    }
}
