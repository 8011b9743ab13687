/* Products with F32, BF16 and F16 weights.  A few tokens: weights are widened in registers, which keeps up with
 * memory; more tokens: in tiles. */
#include "simd/avx2/avx2.h"
#include "simd/avx2/weights.h"

#define FEW 4 /* tokens */
#define AHEAD 1024 /* bytes: how far reading runs before the arithmetic */

struct rows {
    const struct k3_matmul *m;
    const unsigned char *w;
    size_t ldw; /* bytes */
    float *y;
};

/* Columns c to c + n - 1 of `rows` rows and `tokens` tokens. */
K3_INLINE void accumulate(__m256 *s, const struct rows *p, k3_widen8 *widen, size_t element, size_t rows, size_t tokens,
                          size_t c, size_t n) {
    __m256 w[4];
    K3_UNROLL for (size_t r = 0; r < rows; r++) {
        const unsigned char *at = p->w + r * p->ldw + c * element;
        w[r] = n >= 8 ? widen(at) : k3_widen_last(widen, element, at, n);
    }
    K3_UNROLL for (size_t t = 0; t < tokens; t++) {
        __m256 x = k3_load(p->m->x + t * p->m->ldx + c, n);
        K3_UNROLL for (size_t r = 0; r < rows; r++) s[r * tokens + t] = _mm256_fmadd_ps(w[r], x, s[r * tokens + t]);
    }
}

K3_INLINE void multiply_rows(const struct rows *p, k3_widen8 *widen, size_t element, size_t rows, size_t tokens) {
    const size_t cols = p->m->cols, step = 64 / element;
    /* Near a row's end the bytes ahead are those of the next rows' beginnings. */
    const size_t near_end = cols > AHEAD / element ? cols - AHEAD / element : 0;
    const size_t next_rows = AHEAD + rows * p->ldw - cols * element;
    __m256 s[12];
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++) s[i] = _mm256_setzero_ps();
    size_t c = 0;
    for (; c + step <= cols; c += step) {
        size_t ahead = c < near_end ? AHEAD : next_rows;
        K3_UNROLL for (size_t r = 0; r < rows; r++)
            _mm_prefetch((const char *)p->w + r * p->ldw + c * element + ahead, _MM_HINT_T0);
        K3_UNROLL for (size_t i = 0; i < step; i += 8) accumulate(s, p, widen, element, rows, tokens, c + i, 8);
    }
    for (; c + 8 <= cols; c += 8) accumulate(s, p, widen, element, rows, tokens, c, 8);
    if (c < cols) accumulate(s, p, widen, element, rows, tokens, c, cols - c);
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++) p->y[i % tokens * p->m->ldy + i / tokens] = k3_sum(s[i]);
}

K3_INLINE void multiply_few(const struct k3_matmul *m, const struct k3_stored *w, k3_widen8 *widen, size_t element,
                            size_t rows, size_t tokens) {
    struct rows p = {m, w->at, w->ld * element, m->y};
    size_t r = 0;
    for (; r + rows <= m->rows; r += rows, p.w += rows * p.ldw, p.y += rows)
        multiply_rows(&p, widen, element, rows, tokens);
    for (; r < m->rows; r++, p.w += p.ldw, p.y++) multiply_rows(&p, widen, element, 1, tokens);
}

K3_INLINE void multiply(const struct k3_matmul *m, const struct k3_stored *w, k3_widen8 *widen, size_t element) {
    switch (m->n) {
    case 0: break;
    case 1: multiply_few(m, w, widen, element, 4, 1); break;
    case 2: multiply_few(m, w, widen, element, 4, 2); break;
    case 3: multiply_few(m, w, widen, element, 3, 3); break;
    case FEW: multiply_few(m, w, widen, element, 3, FEW); break;
    default: k3_avx2_matmul_tiles(m, w);
    }
}

static void copy_f32(float *y, const struct k3_stored *w, size_t row, size_t col, size_t n) {
    memcpy(y, w->at + (row * w->ld + col) * sizeof *y, n * sizeof *y);
}

static void widen_bf16(float *y, const struct k3_stored *w, size_t row, size_t col, size_t n) {
    k3_avx2_widen_bf16(y, w->at + 2 * (row * w->ld + col), n);
}

static void widen_f16(float *y, const struct k3_stored *w, size_t row, size_t col, size_t n) {
    k3_avx2_widen_f16(y, w->at + 2 * (row * w->ld + col), n);
}

void k3_avx2_matmul_f32(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, &(struct k3_stored){w, NULL, ldw, copy_f32}, k3_widen8_f32, 4);
}

void k3_avx2_matmul_bf16(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, &(struct k3_stored){w, NULL, ldw, widen_bf16}, k3_widen8_bf16, 2);
}

void k3_avx2_matmul_f16(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, &(struct k3_stored){w, NULL, ldw, widen_f16}, k3_widen8_f16, 2);
}
