/* Products with MXFP4 weights.  A few tokens: weights are widened in registers.  More: a few rows become BF16, which
 * they are exactly, on the stack and go through that product. */
#include "simd/avx2/avx2.h"
#include "simd/avx2/mxfp4.h"

#define FEW 3 /* tokens */
#define ROWS 3
#define MOST_COLS 16384 /* of rows on the stack */
#define AHEAD 2048 /* bytes: how far reading runs before the arithmetic, at least */

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

/* What lies where in a few rows and tokens; the pointers walk along the columns. */
struct rows {
    const uint8_t *packed, *scale, *ahead; /* ahead: what the next rows will read */
    const float *x;
    size_t ld_packed, ld_scale, ldx, groups;
};

/* One group of two rows meets the tokens; the rows take turns, for a row's sums wait for each other. */
K3_INLINE void accumulate(__m256 *s, const struct rows *p, size_t row, size_t tokens) {
    __m256 w[8], *first = s + row * tokens, *second = first + tokens;
    __m256i packed = k3_mxfp4_load_pair(p->packed + row * p->ld_packed, p->packed + (row + 1) * p->ld_packed);
    k3_mxfp4_widen_pair(w, packed, p->scale[row * p->ld_scale], p->scale[(row + 1) * p->ld_scale]);
    K3_UNROLL for (size_t i = 0; i < 4; i++)
        K3_UNROLL for (size_t t = 0; t < tokens; t++) {
            __m256 x = _mm256_loadu_ps(p->x + t * p->ldx + 8 * i);
            first[t] = _mm256_fmadd_ps(w[i], x, first[t]);
            second[t] = _mm256_fmadd_ps(w[4 + i], x, second[t]);
        }
}

K3_INLINE void multiply_rows(float *y, size_t ldy, struct rows p, size_t rows, size_t tokens) {
    __m256 s[8];
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++) s[i] = _mm256_setzero_ps();
    for (; p.groups; p.groups--, p.packed += 16, p.scale++, p.x += 32, p.ahead += 16 * rows) {
        _mm_prefetch((const char *)p.ahead, _MM_HINT_T0);
        K3_UNROLL for (size_t r = 0; r < rows; r += 2) accumulate(s, &p, r, tokens);
    }
    k3_store_sums(y, ldy, s, rows, tokens);
}

/* The odd row: twice the same, and the second one dropped. */
K3_INLINE void multiply_row(float *y, size_t ldy, struct rows p, size_t tokens) {
    __m256 s[6];
    K3_UNROLL for (size_t i = 0; i < 2 * tokens; i++) s[i] = _mm256_setzero_ps();
    p.ld_packed = p.ld_scale = 0;
    for (; p.groups; p.groups--, p.packed += 16, p.scale++, p.x += 32) accumulate(s, &p, 0, tokens);
    k3_store_sums(y, ldy, s, 1, tokens);
}

K3_INLINE void multiply_tokens(const struct k3_matmul *m, struct rows p, float *y, size_t rows) {
    for (size_t t = 0, n; t < m->n; t += n, y += n * m->ldy, p.x += n * m->ldx) {
        n = m->n - t == 4 ? 2 : m->n - t < 3 ? m->n - t : 3;
        switch (n) {
        case 1: rows == 1 ? multiply_row(y, m->ldy, p, 1) : multiply_rows(y, m->ldy, p, rows, 1); break;
        case 2: rows == 1 ? multiply_row(y, m->ldy, p, 2) : multiply_rows(y, m->ldy, p, rows, 2); break;
        default: rows == 1 ? multiply_row(y, m->ldy, p, 3) : multiply_rows(y, m->ldy, p, rows, 3);
        }
    }
}

static void multiply_few(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    struct rows p = {packed, scale, packed, m->x, m->cols / 2, m->cols / 32, m->ldx, m->cols / 32};
    size_t r = 0, ahead = 4 * p.ld_packed;
    while (ahead && ahead < AHEAD) ahead += 4 * p.ld_packed;
    for (; m->n <= 2 && r + 4 <= m->rows; r += 4, p.packed += 4 * p.ld_packed, p.scale += 4 * p.ld_scale) {
        p.ahead = p.packed + ahead;
        if (m->n == 1) multiply_rows(m->y + r, m->ldy, p, 4, 1);
        else multiply_rows(m->y + r, m->ldy, p, 4, 2);
    }
    for (; r + 2 <= m->rows; r += 2, p.packed += 2 * p.ld_packed, p.scale += 2 * p.ld_scale) {
        p.ahead = p.packed + ahead;
        multiply_tokens(m, p, m->y + r, 2);
    }
    if (r < m->rows) multiply_tokens(m, p, m->y + r, 1);
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
    __m256i low = _mm256_inserti128_si256(k3_mxfp4_both(first->low), k3_load_halves(second->low), 1);
    __m256i high = _mm256_inserti128_si256(k3_mxfp4_both(first->high), k3_load_halves(second->high), 1);
    __m256i even = _mm256_and_si256(packed, nibble), odd = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
    store_bf16(y, _mm256_unpacklo_epi8(even, odd), low, high);
    store_bf16(y + 16, _mm256_unpackhi_epi8(even, odd), low, high);
}

static void row_to_bf16(uint16_t *y, const uint8_t *packed, const uint8_t *scale, size_t groups) {
    for (; groups >= 2; groups -= 2, y += 64, packed += 32, scale += 2)
        to_bf16(y, _mm256_loadu_si256((const __m256i *)(const void *)packed), scale[0], scale[1]);
    if (groups) to_bf16(y, _mm256_zextsi128_si256(k3_load_halves(packed)), *scale, *scale);
}

/* Each row has room for a group more: row_to_bf16 writes two at a time. */
static void multiply_many(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    _Alignas(64) uint16_t w[ROWS * (MOST_COLS + 32)];
    const size_t ld = (m->cols + 63) & ~(size_t)63, groups = m->cols / 32;
    struct k3_matmul part = *m;
    for (size_t r = 0; r < m->rows; r += ROWS, part.y += ROWS) {
        part.rows = m->rows - r < ROWS ? m->rows - r : ROWS;
        for (size_t i = 0; i < part.rows; i++)
            row_to_bf16(w + i * ld, packed + (r + i) * 16 * groups, scale + (r + i) * groups, groups);
        k3_avx2_matmul_bf16(&part, w, ld);
    }
}

void k3_avx2_matmul_mxfp4(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    for (size_t t = 0; t < m->n; t += K3_BLOCK) {
        struct k3_matmul block = k3_token_block(m, t);
        if (block.n <= FEW || m->cols > MOST_COLS) multiply_few(&block, packed, scale);
        else multiply_many(&block, packed, scale);
    }
}
