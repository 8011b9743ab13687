/* Products with F32, BF16 and F16 weights, which are widened in registers.
 *
 * A tile of rows times tokens fills the registers with accumulators, so that a load serves several multiply-adds.  The
 * rows stay in the caches while the tokens of a block pass by; the block stays there while all rows pass by. */
#include "simd/vec/kernels.h"
#include "simd/vec/weights.h"

#define BLOCK 64   /* tokens that meet all rows before the next ones do */
#define AHEAD 1024 /* bytes: how far reading runs before the arithmetic */

struct rows {
    const unsigned char *w;
    size_t ldw; /* bytes */
    const float *x;
    size_t ldx, cols;
};

/* Columns c to c + n - 1 of `rows` rows and `tokens` tokens. */
K3_INLINE void accumulate(k3_vec *s, const struct rows *p, k3_widen *widen, size_t element, size_t rows, size_t tokens,
                          size_t c, size_t n) {
    k3_vec w[K3_TILE_ROWS > 4 ? K3_TILE_ROWS : 4];
    K3_UNROLL for (size_t r = 0; r < rows; r++) {
        const unsigned char *at = p->w + r * p->ldw + c * element;
        w[r] = n >= K3_LANES ? widen(at) : k3_widen_last(widen, element, at, n);
    }
    K3_UNROLL for (size_t t = 0; t < tokens; t++) {
        k3_vec x = k3_load(p->x + t * p->ldx + c, n);
        K3_UNROLL for (size_t r = 0; r < rows; r++) s[r * tokens + t] = k3_fma(w[r], x, s[r * tokens + t]);
    }
}

K3_INLINE void multiply_rows(float *y, size_t ldy, const struct rows *p, k3_widen *widen, size_t element, size_t rows,
                             size_t tokens) {
    const size_t cols = p->cols, step = 64 / element;
    /* Near a row's end the bytes ahead are those of the next rows' beginnings. */
    const size_t near_end = cols > AHEAD / element ? cols - AHEAD / element : 0;
    const size_t next_rows = AHEAD + rows * p->ldw - cols * element;
    k3_vec s[K3_TILE_ROWS * K3_TILE_TOKENS];
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++) s[i] = k3_set(0);
    size_t c = 0;
    for (; c + step <= cols; c += step) {
        size_t ahead = c < near_end ? AHEAD : next_rows;
        K3_UNROLL for (size_t r = 0; r < rows; r++)
            _mm_prefetch((const char *)p->w + r * p->ldw + c * element + ahead, _MM_HINT_T0);
        K3_UNROLL for (size_t i = 0; i < step; i += K3_LANES)
            accumulate(s, p, widen, element, rows, tokens, c + i, K3_LANES);
    }
    for (; c + K3_LANES <= cols; c += K3_LANES) accumulate(s, p, widen, element, rows, tokens, c, K3_LANES);
    if (c < cols) accumulate(s, p, widen, element, rows, tokens, c, cols - c);
    k3_store_sums(y, ldy, s, rows, tokens);
}

K3_INLINE void multiply_tokens(const struct k3_matmul *m, struct rows p, float *y, k3_widen *widen, size_t element,
                               size_t rows) {
    for (size_t t = 0; t < m->n; t += 4, y += 4 * m->ldy, p.x += 4 * m->ldx) {
        switch (m->n - t) {
        case 1: multiply_rows(y, m->ldy, &p, widen, element, rows, 1); break;
        case 2: multiply_rows(y, m->ldy, &p, widen, element, rows, 2); break;
        case 3: multiply_rows(y, m->ldy, &p, widen, element, rows, 3); break;
        default: multiply_rows(y, m->ldy, &p, widen, element, rows, 4);
        }
    }
}

K3_INLINE void multiply_block(const struct k3_matmul *m, const unsigned char *w, size_t ldw, k3_widen *widen,
                            size_t element) {
    struct rows p = {w, ldw * element, m->x, m->ldx, m->cols};
    size_t r = 0;
    if (m->n == 1) /* one sum waits for each multiply-add */
        for (; r + 4 <= m->rows; r += 4, p.w += 4 * p.ldw) multiply_rows(m->y + r, m->ldy, &p, widen, element, 4, 1);
    for (; r + K3_TILE_ROWS <= m->rows; r += K3_TILE_ROWS, p.w += K3_TILE_ROWS * p.ldw)
        multiply_tokens(m, p, m->y + r, widen, element, K3_TILE_ROWS);
    for (; r < m->rows; r++, p.w += p.ldw) multiply_tokens(m, p, m->y + r, widen, element, 1);
}

K3_INLINE void multiply(const struct k3_matmul *m, const void *w, size_t ldw, k3_widen *widen, size_t element) {
    struct k3_matmul block = *m;
    for (size_t t = 0; t < m->n; t += BLOCK, block.x += BLOCK * m->ldx, block.y += BLOCK * m->ldy) {
        block.n = m->n - t < BLOCK ? m->n - t : BLOCK;
        multiply_block(&block, w, ldw, widen, element);
    }
}

void K3_NAME(matmul_f32)(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, w, ldw, k3_widen_f32, 4);
}

void K3_NAME(matmul_bf16)(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, w, ldw, k3_widen_bf16, 2);
}

void K3_NAME(matmul_f16)(const struct k3_matmul *m, const void *w, size_t ldw) {
    multiply(m, w, ldw, k3_widen_f16, 2);
}
