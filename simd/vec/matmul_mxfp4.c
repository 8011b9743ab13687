/* Products with MXFP4 weights.  A few tokens: the weights are widened in registers.  More: a tile's rows become BF16,
 * which they are exactly, on the stack and go through that product. */
#include "simd/vec/kernels.h"
#include "simd/vec/mxfp4.h"

#define AT_ONCE 3  /* tokens, when there are few */
#define BLOCK 64   /* tokens that meet all rows before the next ones do */
#define MOST_COLS 8192 /* of rows on the stack */
#define AHEAD 2048 /* bytes: how far reading runs before the arithmetic, at least */
#define HALF (K3_MXFP4_ROWS / 2)

/* `rows` rows go through the registers, of which `stored` are wanted. */
K3_INLINE void multiply_rows(float *y, size_t ldy, struct k3_mxfp4_rows p, size_t rows, size_t stored, size_t tokens) {
    k3_vec s[K3_MXFP4_ROWS * AT_ONCE];
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++) s[i] = k3_set(0);
    for (; p.groups; p.groups--, p.packed += 16, p.scale++, p.x += 32, p.ahead += 16 * rows) {
        __builtin_prefetch(p.ahead);
        if (rows > 4) __builtin_prefetch(p.ahead + 64);
        k3_mxfp4_accumulate(s, &p, rows, tokens);
    }
    K3_UNROLL for (size_t i = 0; i < stored * tokens; i++) s[i] = k3_mxfp4_in_order(s[i]);
    k3_store_sums(y, ldy, s, stored, tokens);
}

K3_INLINE void multiply_tokens(const struct k3_matmul *m, struct k3_mxfp4_rows p, float *y, size_t rows,
                               size_t stored) {
    for (size_t t = 0; t < m->n; t += AT_ONCE, y += AT_ONCE * m->ldy, p.x += AT_ONCE * m->ldx) {
        switch (m->n - t) {
        case 1: multiply_rows(y, m->ldy, p, rows, stored, 1); break;
        case 2: multiply_rows(y, m->ldy, p, rows, stored, 2); break;
        default: multiply_rows(y, m->ldy, p, rows, stored, AT_ONCE);
        }
    }
}

static void next(struct k3_mxfp4_rows *p, size_t *row, size_t rows) {
    p->packed += rows * p->ld_packed;
    p->scale += rows * p->ld_scale;
    *row += rows;
}

static void multiply_few(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    struct k3_mxfp4_rows p = {packed, scale, packed, m->x, m->cols / 2, m->cols / 32, m->ldx, m->cols / 32};
    size_t r = 0, ahead = K3_MXFP4_ROWS * p.ld_packed;
    while (ahead && ahead < AHEAD) ahead += K3_MXFP4_ROWS * p.ld_packed;
    for (; m->n <= K3_MXFP4_TOKENS && r + K3_MXFP4_ROWS <= m->rows; next(&p, &r, K3_MXFP4_ROWS)) {
        p.ahead = p.packed + ahead;
        multiply_tokens(m, p, m->y + r, K3_MXFP4_ROWS, K3_MXFP4_ROWS);
    }
    for (; r + HALF <= m->rows; next(&p, &r, HALF)) {
        p.ahead = p.packed + ahead;
        multiply_tokens(m, p, m->y + r, HALF, HALF);
    }
    for (; r < m->rows; next(&p, &r, 1)) { /* where two go at once, it is the same one twice */
        struct k3_mxfp4_rows one = p;
        one.ld_packed = one.ld_scale = 0;
        multiply_tokens(m, one, m->y + r, K3_MXFP4_LEAST, 1);
    }
}

static void multiply_block(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    _Alignas(64) uint16_t w[K3_TILE_ROWS * (MOST_COLS + 32)];
    const size_t ld = m->cols + 32, groups = m->cols / 32; /* room for a group more */
    struct k3_matmul part = *m;
    for (size_t r = 0; r < m->rows; r += K3_TILE_ROWS, part.y += K3_TILE_ROWS) {
        part.rows = m->rows - r < K3_TILE_ROWS ? m->rows - r : K3_TILE_ROWS;
        for (size_t i = 0; i < part.rows; i++)
            K3_NAME(mxfp4_to_bf16)(w + i * ld, packed + (r + i) * 16 * groups, scale + (r + i) * groups, groups);
        K3_NAME(matmul_bf16)(&part, w, ld);
    }
}

void K3_NAME(matmul_mxfp4)(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale) {
    struct k3_matmul block = *m;
    for (size_t t = 0; t < m->n; t += BLOCK, block.x += BLOCK * m->ldx, block.y += BLOCK * m->ldy) {
        block.n = m->n - t < BLOCK ? m->n - t : BLOCK;
        if (block.n <= K3_MXFP4_FEW || m->cols > MOST_COLS) multiply_few(&block, packed, scale);
        else multiply_block(&block, packed, scale);
    }
}
