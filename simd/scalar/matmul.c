#include "simd/scalar/scalar.h"

#include <string.h>

/* A chunk of a row is widened once for TOKENS tokens.  A sum is LANES partial sums, each over every LANES-th
 * column, so that the compiler may use vectors; they are added in pairs at the end. */
#define CHUNK 512
#define TOKENS 8
#define LANES 16

struct weights {
    const unsigned char *at, *scale;
    size_t ld; /* elements */
    void (*widen)(float *y, const struct weights *w, size_t at, size_t n);
};

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static void add_products(float sum[LANES], const float *w, const float *x, size_t n) {
    size_t i = 0;
    float s[LANES];
    memcpy(s, sum, sizeof s);
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) s[j] += w[i + j] * x[i + j];
    for (size_t j = 0; i < n; i++, j++) s[j] += w[i] * x[i];
    memcpy(sum, s, sizeof s);
}

static float total(float sum[LANES]) {
    for (size_t half = LANES / 2; half; half /= 2)
        for (size_t j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}

static void multiply_row(const struct k3_matmul *m, const struct weights *w, size_t row, size_t first, size_t tokens) {
    float sums[TOKENS][LANES] = {{0}}, chunk[CHUNK];
    for (size_t col = 0; col < m->cols; col += CHUNK) {
        size_t n = smaller(CHUNK, m->cols - col);
        w->widen(chunk, w, row * w->ld + col, n);
        for (size_t t = 0; t < tokens; t++) add_products(sums[t], chunk, m->x + (first + t) * m->ldx + col, n);
    }
    for (size_t t = 0; t < tokens; t++) m->y[(first + t) * m->ldy + row] = total(sums[t]);
}

static void multiply(const struct k3_matmul *m, const struct weights *w) {
    for (size_t t = 0; t < m->n; t += TOKENS)
        for (size_t r = 0; r < m->rows; r++) multiply_row(m, w, r, t, smaller(TOKENS, m->n - t));
}

static void copy_f32(float *y, const struct weights *w, size_t at, size_t n) {
    memcpy(y, w->at + at * sizeof *y, n * sizeof *y);
}

static void widen_bf16(float *y, const struct weights *w, size_t at, size_t n) {
    k3_scalar_widen_bf16(y, w->at + 2 * at, n);
}

static void widen_f16(float *y, const struct weights *w, size_t at, size_t n) {
    k3_scalar_widen_f16(y, w->at + 2 * at, n);
}

static void dequant_mxfp4(float *y, const struct weights *w, size_t at, size_t n) {
    k3_scalar_dequant_mxfp4(y, w->at + at / 2, w->scale + at / 32, n);
}

void k3_scalar_matmul_f32(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, &(struct weights){w, NULL, ldw, copy_f32});
}

void k3_scalar_matmul_bf16(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, &(struct weights){w, NULL, ldw, widen_bf16});
}

void k3_scalar_matmul_f16(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, &(struct weights){w, NULL, ldw, widen_f16});
}

void k3_scalar_matmul_mxfp4(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    multiply(m, &(struct weights){packed, scale, m->cols, dequant_mxfp4});
}

void k3_scalar_matmul_t_f32(const struct k3_matmul *m, const float *b, size_t ldb) {
    for (size_t t = 0; t < m->n; t++) {
        float *restrict y = m->y + t * m->ldy;
        for (size_t r = 0; r < m->rows; r++) {
            const float *restrict row = b + r * ldb;
            float x = m->x[t * m->ldx + r];
            for (size_t c = 0; c < m->cols; c++) y[c] += x * row[c];
        }
    }
}
