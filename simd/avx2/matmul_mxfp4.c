/* Products with MXFP4 weights: a few tokens in registers, more in tiles. */
#include "simd/avx2/avx2.h"
#include "simd/avx2/mxfp4.h"

#define AHEAD 2048 /* bytes: how far reading runs before the arithmetic, at least */

/* BF16 of an E2M1 magnitude at scale s: its exponent (biased by 127, before scaling) and its fraction.  Scales 0
 * and 1 make some of them subnormal. */
#define BITS(s, exponent, fraction)                                                     \
    ((s) == 255 ? 0x7fc0                                                                \
     : (exponent) + (s) - 127 > 254 ? 0x7f80                                            \
     : (exponent) + (s) - 127 > 0 ? ((exponent) + (s) - 127) * 128 + (fraction)         \
                                  : (128 + (fraction)) >> ((128 - (exponent) - (s)) & 3))
#define ZERO(s) ((s) == 255 ? 0x7fc0 : 0)
#define EIGHT(byte, s, sign)                                                                                  \
    byte(ZERO(s) | sign), byte(BITS(s, 126, 0) | sign), byte(BITS(s, 127, 0) | sign), byte(BITS(s, 127, 64) | sign), \
    byte(BITS(s, 128, 0) | sign), byte(BITS(s, 128, 64) | sign), byte(BITS(s, 129, 0) | sign), byte(BITS(s, 129, 64) | sign)
#define LOW(bits) ((bits) & 255)
#define HIGH(bits) ((bits) >> 8)
#define SCALE(s) {.low = {EIGHT(LOW, s, 0), EIGHT(LOW, s, 0x8000)}, .high = {EIGHT(HIGH, s, 0), EIGHT(HIGH, s, 0x8000)}}
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

K3_INLINE void store(const struct k3_matmul *m, size_t row, const __m256 *s, size_t rows, size_t tokens) {
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++)
        m->y[i % tokens * m->ldy + row + i / tokens] = k3_sum(s[i]);
}

K3_INLINE void multiply_rows(const struct k3_matmul *m, size_t row, struct rows p, size_t rows, size_t tokens) {
    __m256 s[12];
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++) s[i] = _mm256_setzero_ps();
    for (; p.groups; p.groups--, p.packed += 16, p.scale++, p.x += 32, p.ahead += 16 * rows) {
        _mm_prefetch((const char *)p.ahead, _MM_HINT_T0);
        K3_UNROLL for (size_t r = 0; r < rows; r += 2) accumulate(s, &p, r, tokens);
    }
    store(m, row, s, rows, tokens);
}

/* The odd row. */
K3_INLINE void multiply_row(const struct k3_matmul *m, size_t row, struct rows p, size_t tokens) {
    __m256 s[4], w[8];
    K3_UNROLL for (size_t t = 0; t < tokens; t++) s[t] = _mm256_setzero_ps();
    for (; p.groups; p.groups--, p.packed += 16, p.scale++, p.x += 32) {
        k3_mxfp4_widen_pair(w, k3_mxfp4_load_pair(p.packed, p.packed), *p.scale, *p.scale);
        K3_UNROLL for (size_t i = 0; i < 4; i++)
            K3_UNROLL for (size_t t = 0; t < tokens; t++)
                s[t] = _mm256_fmadd_ps(w[i], _mm256_loadu_ps(p.x + t * p.ldx + 8 * i), s[t]);
    }
    store(m, row, s, 1, tokens);
}

K3_INLINE void multiply_few(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale, size_t rows,
                            size_t tokens) {
    struct rows p = {packed, scale, packed, m->x, m->cols / 2, m->cols / 32, m->ldx, m->cols / 32};
    size_t r = 0, ahead = rows * p.ld_packed;
    while (ahead && ahead < AHEAD) ahead += rows * p.ld_packed;
    for (; r + rows <= m->rows; r += rows) {
        p.packed = packed + r * p.ld_packed;
        p.scale = scale + r * p.ld_scale;
        p.ahead = p.packed + ahead;
        multiply_rows(m, r, p, rows, tokens);
    }
    for (; r < m->rows; r++) {
        p.packed = packed + r * p.ld_packed;
        p.scale = scale + r * p.ld_scale;
        multiply_row(m, r, p, tokens);
    }
}

static void dequant_mxfp4(float *y, const struct k3_stored *w, size_t row, size_t col, size_t n) {
    k3_avx2_dequant_mxfp4(y, w->at + (row * w->ld + col) / 2, w->scale + (row * w->ld + col) / 32, n);
}

void k3_avx2_matmul_mxfp4(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    switch (m->n) {
    case 0: break;
    case 1: multiply_few(m, packed, scale, 4, 1); break;
    case 2: multiply_few(m, packed, scale, 4, 2); break;
    case 3: multiply_few(m, packed, scale, 2, 3); break;
    default: k3_avx2_matmul_tiles(m, &(struct k3_stored){packed, scale, m->cols, dequant_mxfp4});
    }
}
