/* KDA in chunks (spec section 3): tiles of 16 tokens, all exponents <= 0.
 *
 * Within a tile, sums of g run over at most 16 tokens; between tiles only products of factors <= 1
 * appear, so nothing overflows and the softplus gate needs no other path.  The diagonal tiles walk
 * back token by token: k_t e^(g_{s+1} + .. + g_t) is one running product. */
#include "model/kda_chunk.h"

#include "model/step.h"

#include <string.h>

#define TILE 16
#define TILES (K3_CHUNK_TOKENS / TILE)
#define STEPS_BELOW TILE /* shorter runs: the plain step costs less */

struct chunk {
    const struct k3_kernels *kern;
    const struct k3_kda_run *r;
    float *decay;         /* [n, K]: e^g */
    float *k_in, *q_in;   /* [n, K]: k, q times e^(g from the tile's start to the token) */
    float *k_out;         /* [n, K]: k times e^(g after the token to the tile's end) */
    float *tile_decay;    /* [TILES, K]: e^(all g of the tile) */
    float *a, *p;         /* [n, n]: -beta A' below the diagonal; P with the diagonal */
    float *u;             /* [n, V] */
    float *pair;          /* [2 TILE, K] */
    float *factor;        /* [K] */
    float *transposed;    /* [K, n] */
};

size_t k3_kda_run_scratch(size_t k_dim, size_t v_dim) {
    size_t n = K3_CHUNK_TOKENS;
    return 5 * n * k_dim + (TILES + 2 * TILE + 1) * k_dim + 2 * n * n + n * v_dim;
}

static void place(struct chunk *c, float *s) {
    size_t n = c->r->n, k = c->r->k_dim;
    c->decay = s, s += n * k;
    c->k_in = s, s += n * k;
    c->q_in = s, s += n * k;
    c->k_out = s, s += n * k;
    c->transposed = s, s += n * k;
    c->tile_decay = s, s += TILES * k;
    c->pair = s, s += 2 * TILE * k;
    c->factor = s, s += k;
    c->a = s, s += n * n;
    c->p = s, s += n * n;
    c->u = s;
}

static size_t tile_end(const struct chunk *c, size_t begin) {
    return begin + TILE < c->r->n ? begin + TILE : c->r->n;
}

/* e^g, and k, q times the decay from the tile's start and to its end. */
static void factors(struct chunk *c) {
    const struct k3_kernels *kern = c->kern;
    size_t k = c->r->k_dim;
    const float *g = c->r->g;
    kern->exp(c->decay, g, c->r->n * k);
    for (size_t begin = 0; begin < c->r->n; begin = tile_end(c, begin)) {
        size_t end = tile_end(c, begin);
        memcpy(c->k_in + begin * k, g + begin * k, k * sizeof *g);
        for (size_t t = begin + 1; t < end; t++) {
            memcpy(c->k_in + t * k, c->k_in + (t - 1) * k, k * sizeof *g);
            kern->add(c->k_in + t * k, g + t * k, k);
        }
        memset(c->k_out + (end - 1) * k, 0, k * sizeof *g);
        for (size_t t = end - 1; t-- > begin;) {
            memcpy(c->k_out + t * k, c->k_out + (t + 1) * k, k * sizeof *g);
            kern->add(c->k_out + t * k, g + (t + 1) * k, k);
        }
        kern->exp(c->tile_decay + begin / TILE * k, c->k_in + (end - 1) * k, k);
    }
    kern->exp(c->k_in, c->k_in, c->r->n * k);
    memcpy(c->q_in, c->k_in, c->r->n * k * sizeof *g);
    kern->mul(c->k_in, c->r->k, c->r->n * k);
    kern->mul(c->q_in, c->r->q, c->r->n * k);
    kern->exp(c->k_out, c->k_out, c->r->n * k);
    kern->mul(c->k_out, c->r->k, c->r->n * k);
}

/* Writes A' and P of rows [begin, end) from products in c->a, c->p: a gets -beta A'. */
static void diagonal_tile(struct chunk *c, size_t begin, size_t end) {
    const struct k3_kda_run *r = c->r;
    size_t n = r->n, k = r->k_dim;
    float *both = c->pair; /* k_t and q_t, decayed back to s */
    for (size_t t = begin; t < end; t++) {
        memcpy(both, r->k + t * k, k * sizeof *both);
        memcpy(both + k, r->q + t * k, k * sizeof *both);
        for (size_t s = t + 1; s-- > begin;) {
            float dot[2];
            struct k3_matmul m = {dot, 1, both, k, 1, k, 2};
            c->kern->matmul_f32(&m, r->k + s * k, k);
            if (s < t) c->a[t * n + s] = -r->beta[t] * dot[0];
            c->p[t * n + s] = dot[1];
            c->kern->mul(both, c->decay + s * k, k);
            c->kern->mul(both + k, c->decay + s * k, k);
        }
    }
}

/* Tiles left of the diagonal one: e^(far) stands between the right tile's end and the left one's start. */
static void row_of_tiles(struct chunk *c, size_t begin, size_t end) {
    const struct k3_kda_run *r = c->r;
    size_t n = r->n, k = r->k_dim, rows = end - begin;
    float *left = c->pair; /* [2 rows, K]: k_in then q_in */
    memcpy(left, c->k_in + begin * k, rows * k * sizeof *left);
    memcpy(left + rows * k, c->q_in + begin * k, rows * k * sizeof *left);
    for (size_t at = begin; at > 0; at -= TILE) {
        size_t from = at - TILE;
        struct k3_matmul m = {c->a + begin * n + from, n, left, k, TILE, k, rows};
        c->kern->matmul_f32(&m, c->k_out + from * k, k);
        m.y = c->p + begin * n + from;
        m.x = left + rows * k;
        c->kern->matmul_f32(&m, c->k_out + from * k, k);
        for (size_t t = begin; t < end; t++) c->kern->scale(c->a + t * n + from, -r->beta[t], TILE);
        if (from == 0) break;
        for (size_t i = 0; i < 2 * rows; i++) c->kern->mul(left + i * k, c->tile_decay + from / TILE * k, k);
    }
}

/* k_in and q_in as seen from the chunk's start, k_out from its end; factor: the decay of the whole chunk. */
static void to_chunk(struct chunk *c) {
    size_t n = c->r->n, k = c->r->k_dim;
    for (size_t i = 0; i < k; i++) c->factor[i] = 1;
    for (size_t begin = 0; begin < n; begin = tile_end(c, begin)) {
        for (size_t t = begin; begin && t < tile_end(c, begin); t++) {
            c->kern->mul(c->k_in + t * k, c->factor, k);
            c->kern->mul(c->q_in + t * k, c->factor, k);
        }
        c->kern->mul(c->factor, c->tile_decay + begin / TILE * k, k);
    }
    float *after = c->pair;
    for (size_t i = 0; i < k; i++) after[i] = 1;
    for (size_t tile = (n - 1) / TILE + 1; tile-- > 0;) {
        for (size_t t = tile * TILE; t < tile_end(c, tile * TILE); t++) c->kern->mul(c->k_out + t * k, after, k);
        c->kern->mul(after, c->tile_decay + tile * k, k);
    }
}

/* U = (I + A)^-1 diag(beta) (V - Kp S0): tiles by products, rows within a tile one after another. */
static void solve(struct chunk *c) {
    const struct k3_kda_run *r = c->r;
    size_t n = r->n, v = r->v_dim;
    memset(c->u, 0, n * v * sizeof *c->u);
    struct k3_matmul m = {c->u, v, c->k_in, r->k_dim, r->k_dim, v, n};
    c->kern->matmul_t_f32(&m, r->state, v);
    for (size_t t = 0; t < n; t++) {
        c->kern->scale(c->u + t * v, -1, v);
        c->kern->add(c->u + t * v, r->v + t * v, v);
        c->kern->scale(c->u + t * v, r->beta[t], v);
    }
    for (size_t begin = 0; begin < n; begin = tile_end(c, begin)) {
        size_t end = tile_end(c, begin);
        m = (struct k3_matmul){c->u + begin * v, v, c->a + begin * n, n, begin, v, end - begin};
        if (begin) c->kern->matmul_t_f32(&m, c->u, v);
        for (size_t t = begin + 1; t < end; t++) {
            m = (struct k3_matmul){c->u + t * v, v, c->a + t * n + begin, n, t - begin, v, 1};
            c->kern->matmul_t_f32(&m, c->u + begin * v, v);
        }
    }
}

/* O = Qp S0 + P U;  S1 = diag(e^G) S0 + K_end^T U. */
static void finish(struct chunk *c) {
    const struct k3_kda_run *r = c->r;
    size_t n = r->n, k = r->k_dim, v = r->v_dim;
    memset(r->o, 0, n * v * sizeof *r->o);
    struct k3_matmul m = {r->o, v, c->q_in, k, k, v, n};
    c->kern->matmul_t_f32(&m, r->state, v);
    m = (struct k3_matmul){r->o, v, c->p, n, n, v, n};
    c->kern->matmul_t_f32(&m, c->u, v);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < k; i++) c->transposed[i * n + t] = c->k_out[t * k + i];
    for (size_t i = 0; i < k; i++) c->kern->scale(r->state + i * v, c->factor[i], v);
    m = (struct k3_matmul){r->state, v, c->transposed, n, n, v, k};
    c->kern->matmul_t_f32(&m, c->u, v);
}

void k3_kda_run_chunk(const struct k3_kernels *kern, const struct k3_kda_run *r, float *scratch) {
    struct chunk c = {.kern = kern, .r = r};
    if (!r->n) return;
    place(&c, scratch);
    memset(c.a, 0, 2 * r->n * r->n * sizeof *c.a); /* a and p */
    factors(&c);
    for (size_t begin = 0; begin < r->n; begin = tile_end(&c, begin)) {
        diagonal_tile(&c, begin, tile_end(&c, begin));
        if (begin) row_of_tiles(&c, begin, tile_end(&c, begin));
    }
    to_chunk(&c);
    solve(&c);
    finish(&c);
}

void k3_kda_run_steps(const struct k3_kernels *kern, const struct k3_kda_run *r, float *scratch) {
    for (size_t t = 0; t < r->n; t++) {
        kern->exp(scratch, r->g + t * r->k_dim, r->k_dim);
        struct k3_kda_step step = {
            .state = r->state,
            .q = r->q + t * r->k_dim,
            .k = r->k + t * r->k_dim,
            .decay = scratch,
            .v = r->v + t * r->v_dim,
            .beta = r->beta[t],
            .o = r->o + t * r->v_dim,
            .k_dim = r->k_dim,
            .v_dim = r->v_dim,
        };
        kern->kda_step(&step);
    }
}

void k3_kda_run(const struct k3_kernels *kern, const struct k3_kda_run *r, float *scratch) {
    if (r->n < STEPS_BELOW) k3_kda_run_steps(kern, r, scratch);
    else k3_kda_run_chunk(kern, r, scratch);
}
