/* y += x b.  An output adds its products to itself, r ascending, so blocks may be cut anywhere. */
#include "simd/avx2/avx2.h"
#include "simd/avx2/weights.h"

#define PANEL 256 /* rows of b that stay in the caches for all tokens of one strip of columns */

/* `vectors` vectors of columns, the last with n of its eight, of `tokens` tokens and m->rows rows of b. */
K3_INLINE void multiply(const struct k3_matmul *m, const float *b, size_t ldb, size_t tokens, size_t vectors,
                        size_t n) {
    __m256 s[12];
    K3_UNROLL for (size_t i = 0; i < tokens * vectors; i++)
        s[i] = k3_load(m->y + i / vectors * m->ldy + i % vectors * 8, i % vectors + 1 < vectors ? 8 : n);
    for (size_t r = 0; r < m->rows; r++) {
        __m256 row[4];
        K3_UNROLL for (size_t v = 0; v < vectors; v++) row[v] = k3_load(b + r * ldb + 8 * v, v + 1 < vectors ? 8 : n);
        K3_UNROLL for (size_t t = 0; t < tokens; t++) {
            __m256 x = _mm256_broadcast_ss(m->x + t * m->ldx + r);
            K3_UNROLL for (size_t v = 0; v < vectors; v++)
                s[t * vectors + v] = _mm256_fmadd_ps(x, row[v], s[t * vectors + v]);
        }
    }
    K3_UNROLL for (size_t i = 0; i < tokens * vectors; i++)
        k3_store(m->y + i / vectors * m->ldy + i % vectors * 8, i % vectors + 1 < vectors ? 8 : n, s[i]);
}

/* All tokens with one strip of columns. */
K3_INLINE void strip(struct k3_matmul m, const float *b, size_t ldb, size_t vectors, size_t n) {
    for (; m.n >= 4; m.n -= 4, m.x += 4 * m.ldx, m.y += 4 * m.ldy) multiply(&m, b, ldb, 4, vectors, n);
    for (; m.n; m.n--, m.x += m.ldx, m.y += m.ldy) multiply(&m, b, ldb, 1, vectors, n);
}

static void panel(struct k3_matmul m, const float *b, size_t ldb) {
    for (; m.cols >= 24; m.cols -= 24, m.y += 24, b += 24) strip(m, b, ldb, 3, 8);
    for (; m.cols >= 8; m.cols -= 8, m.y += 8, b += 8) strip(m, b, ldb, 1, 8);
    if (m.cols) strip(m, b, ldb, 1, m.cols);
}

void k3_avx2_matmul_t_f32(const struct k3_matmul *m, const float *b, size_t ldb) {
    struct k3_matmul part = *m;
    for (size_t r = 0; r < m->rows; r += PANEL) {
        part.x = m->x + r;
        part.rows = m->rows - r < PANEL ? m->rows - r : PANEL;
        panel(part, b + r * ldb, ldb);
    }
}
