/* Products with many tokens: a tile of weights is widened once and meets all tokens of a block.
 *
 * The tile lies in the second cache; the activations of four tokens, as wide as the tile, stay in the first one
 * while all rows of the tile pass by.  Three rows times four tokens fill the registers: twelve accumulators, seven
 * loads for twelve multiply-adds. */
#include "simd/avx2/weights.h"

#define ROWS 24   /* a multiple of 6 */
#define COLS 1024 /* a multiple of 32: MXFP4's groups */
#define TOKENS 64
#define LD_TILE (COLS + 16) /* rows of the tile do not all fall into the same sets of the cache */

struct tile {
    _Alignas(64) float w[ROWS][LD_TILE];
    __m256 sums[ROWS][TOKENS]; /* where a row is wider than the tile */
};

/* What `rows` rows of the tile and `tokens` tokens add to their sums. */
struct piece {
    const float *w; /* [rows, LD_TILE] */
    const float *x;
    size_t ldx, cols;
    __m256 *sums; /* [rows, TOKENS] */
    float *y;
    size_t ldy;
    bool first, last; /* piece of these rows */
};

K3_INLINE void accumulate(__m256 *s, const struct piece *p, size_t rows, size_t tokens, size_t c, size_t n) {
    __m256 w[6];
    K3_UNROLL for (size_t r = 0; r < rows; r++) w[r] = _mm256_load_ps(p->w + r * LD_TILE + c);
    K3_UNROLL for (size_t t = 0; t < tokens; t++) {
        __m256 x = k3_load(p->x + t * p->ldx + c, n);
        K3_UNROLL for (size_t r = 0; r < rows; r++) s[r * tokens + t] = _mm256_fmadd_ps(w[r], x, s[r * tokens + t]);
    }
}

K3_INLINE void multiply(const struct piece *p, size_t rows, size_t tokens) {
    __m256 s[12];
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++)
        s[i] = p->first ? _mm256_setzero_ps() : p->sums[i / tokens * TOKENS + i % tokens];
    size_t c = 0;
    for (; c + 8 <= p->cols; c += 8) accumulate(s, p, rows, tokens, c, 8);
    if (c < p->cols) accumulate(s, p, rows, tokens, c, p->cols - c);
    K3_UNROLL for (size_t i = 0; i < rows * tokens; i++) {
        if (p->last) p->y[i % tokens * p->ldy + i / tokens] = k3_sum(s[i]);
        else p->sums[i / tokens * TOKENS + i % tokens] = s[i];
    }
}

typedef void multiply_fn(const struct piece *p);

#define MULTIPLY(rows, tokens) \
    static void multiply_##rows##x##tokens(const struct piece *p) { multiply(p, rows, tokens); }
MULTIPLY(1, 1) MULTIPLY(1, 2) MULTIPLY(1, 3) MULTIPLY(1, 4)
MULTIPLY(6, 1) MULTIPLY(6, 2) MULTIPLY(3, 3) MULTIPLY(3, 4)

/* For 1 to 4 tokens: how many rows to take at once, the function for them, and the one for a single row. */
static const struct {
    size_t rows;
    multiply_fn *many, *one;
} shapes[5] = {
    {0, NULL, NULL},
    {6, multiply_6x1, multiply_1x1},
    {6, multiply_6x2, multiply_1x2},
    {3, multiply_3x3, multiply_1x3},
    {3, multiply_3x4, multiply_1x4},
};

struct block {
    const struct k3_matmul *m;
    size_t row, rows, col, cols, token, tokens;
};

static void fill(struct tile *tile, const struct block *b, const struct k3_stored *w) {
    size_t whole = (b->cols + 7) & ~(size_t)7;
    for (size_t r = 0; r < b->rows; r++) {
        w->widen(tile->w[r], w, b->row + r, b->col, b->cols);
        for (size_t c = b->cols; c < whole; c++) tile->w[r][c] = 0;
    }
}

/* All rows of the tile with 1 to 4 tokens. */
static void multiply_tile(struct tile *tile, const struct block *b, size_t token, size_t tokens) {
    const struct k3_matmul *m = b->m;
    struct piece p = {.x = m->x + (b->token + token) * m->ldx + b->col, .ldx = m->ldx, .cols = b->cols,
                      .ldy = m->ldy, .first = b->col == 0, .last = b->col + b->cols == m->cols};
    for (size_t r = 0; r < b->rows;) {
        bool many = b->rows - r >= shapes[tokens].rows;
        p.w = tile->w[r];
        p.sums = &tile->sums[r][token];
        p.y = m->y + (b->token + token) * m->ldy + b->row + r;
        (many ? shapes[tokens].many : shapes[tokens].one)(&p);
        r += many ? shapes[tokens].rows : 1;
    }
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static void multiply_block(struct tile *tile, struct block *b, const struct k3_stored *w) {
    for (b->col = 0; b->col == 0 || b->col < b->m->cols; b->col += COLS) {
        b->cols = smaller(COLS, b->m->cols - b->col);
        fill(tile, b, w);
        for (size_t t = 0; t < b->tokens; t += 4) multiply_tile(tile, b, t, smaller(4, b->tokens - t));
    }
}

void k3_avx2_matmul_tiles(const struct k3_matmul *m, const struct k3_stored *w) {
    struct tile tile;
    struct block b = {.m = m};
    for (b.token = 0; b.token < m->n; b.token += TOKENS) {
        b.tokens = smaller(TOKENS, m->n - b.token);
        for (b.row = 0; b.row < m->rows; b.row += ROWS) {
            b.rows = smaller(ROWS, m->rows - b.row);
            multiply_block(&tile, &b, w);
        }
    }
}
