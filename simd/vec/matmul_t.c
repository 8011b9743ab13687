/* y += x b.  An output adds its products to itself, r ascending, so blocks may be cut anywhere. */
#include "simd/vec/kernels.h"
#include "simd/vec/weights.h"

#define PANEL 256 /* rows of b that stay in the caches for all tokens of one strip of columns */

/* `vectors` vectors of columns, the last with n of its lanes, of `tokens` tokens and m->rows rows of b. */
K3_INLINE void multiply(const struct k3_matmul *m, const float *b, size_t ldb, size_t tokens, size_t vectors,
                        size_t n) {
    k3_vec s[4 * K3_TILE_COLUMNS];
    K3_UNROLL for (size_t i = 0; i < tokens * vectors; i++)
        s[i] = k3_load(m->y + i / vectors * m->ldy + i % vectors * K3_LANES, i % vectors + 1 < vectors ? K3_LANES : n);
    for (size_t r = 0; r < m->rows; r++) {
        k3_vec row[K3_TILE_COLUMNS];
        K3_UNROLL for (size_t v = 0; v < vectors; v++)
            row[v] = k3_load(b + r * ldb + v * K3_LANES, v + 1 < vectors ? K3_LANES : n);
        K3_UNROLL for (size_t t = 0; t < tokens; t++) {
            k3_vec x = k3_set(m->x[t * m->ldx + r]);
            K3_UNROLL for (size_t v = 0; v < vectors; v++) s[t * vectors + v] = k3_fma(x, row[v], s[t * vectors + v]);
        }
    }
    K3_UNROLL for (size_t i = 0; i < tokens * vectors; i++)
        k3_store(m->y + i / vectors * m->ldy + i % vectors * K3_LANES, i % vectors + 1 < vectors ? K3_LANES : n, s[i]);
}

/* All tokens with one strip of columns. */
K3_INLINE void strip(struct k3_matmul m, const float *b, size_t ldb, size_t vectors, size_t n) {
    for (; m.n >= 4; m.n -= 4, m.x += 4 * m.ldx, m.y += 4 * m.ldy) multiply(&m, b, ldb, 4, vectors, n);
    for (; m.n; m.n--, m.x += m.ldx, m.y += m.ldy) multiply(&m, b, ldb, 1, vectors, n);
}

static void panel(struct k3_matmul m, const float *b, size_t ldb) {
    const size_t wide = K3_TILE_COLUMNS * K3_LANES, one = K3_LANES;
    for (; m.cols >= wide; m.cols -= wide, m.y += wide, b += wide) strip(m, b, ldb, K3_TILE_COLUMNS, one);
    for (; m.cols >= one; m.cols -= one, m.y += one, b += one) strip(m, b, ldb, 1, one);
    if (m.cols) strip(m, b, ldb, 1, m.cols);
}

void K3_NAME(matmul_t_f32)(const struct k3_matmul *m, const float *b, size_t ldb) {
    struct k3_matmul part = *m;
    for (size_t r = 0; r < m->rows; r += PANEL) {
        part.x = m->x + r;
        part.rows = m->rows - r < PANEL ? m->rows - r : PANEL;
        panel(part, b + r * ldb, ldb);
    }
}
