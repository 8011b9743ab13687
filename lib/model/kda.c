/* Kimi Delta Attention (spec 2.3). */
#include "model/kda_chunk.h"
#include "model/linear.h"
#include "model/step.h"

#include <math.h>

/* One thread's buffers for one head and chunk; n = K3_CHUNK_TOKENS. */
struct head {
    float *q, *k, *v, *g, *gate, *o; /* [n, K] */
    float *beta;                     /* [n] */
    float *run;                      /* scratch of k3_kda_run */
};

size_t k3_kda_scratch(const struct k3_config *c) {
    size_t k = c->kda_head_dim;
    return K3_CHUNK_TOKENS * (6 * k + 1) + k3_kda_run_scratch(k, k);
}

static struct head place(const struct k3_config *c, float *s) {
    size_t n = (size_t)K3_CHUNK_TOKENS * c->kda_head_dim;
    return (struct head){s, s + n, s + 2 * n, s + 3 * n, s + 4 * n, s + 5 * n, s + 6 * n, s + 6 * n + K3_CHUNK_TOKENS};
}

static void projections(struct k3_team *team, struct k3_step *s, const struct k3_kda_layout *l) {
    const struct k3_kernels *k = s->model->kernels;
    struct k3_workspace *w = s->w;
    k3_linear(team, k, s->trunk, &l->q, w->y, w->q, s->tokens);
    k3_linear(team, k, s->trunk, &l->k, w->y, w->k, s->tokens);
    k3_linear(team, k, s->trunk, &l->v, w->y, w->v, s->tokens);
    if (l->g.type != K3_WEIGHT_NONE) k3_linear(team, k, s->trunk, &l->g, w->y, w->gate, s->tokens);
    else k3_linear(team, k, s->trunk, &l->g_a, w->y, w->g_a, s->tokens);
    k3_linear(team, k, s->trunk, &l->f_a, w->y, w->f_a, s->tokens);
    k3_linear(team, k, s->trunk, &l->b, w->y, w->beta, s->tokens);
}

/* q, k, v of one head for tokens [at, at + n): convolution, SiLU, normalisation. */
static void convolve(struct k3_step *s, uint32_t layer, size_t h, size_t at, size_t n, const struct head *b) {
    const struct k3_config *c = s->model->config;
    const struct k3_kernels *kern = s->model->kernels;
    size_t dim = c->kda_head_dim, width = k3_kda_width(c), channel = h * dim;
    const float *from[3] = {s->w->q, s->w->k, s->w->v};
    float *to[3] = {b->q, b->k, b->v};
    for (int i = 0; i < 3; i++) {
        struct k3_short_conv conv = {
            .y = to[i],
            .ldy = dim,
            .x = from[i] + at * width + channel,
            .ldx = width,
            .tail = s->state->layer[layer].tail[i] + channel,
            .ld_tail = width,
            .taps = s->model->layer[layer].taps[i] + channel,
            .ld_taps = width,
            .channels = dim,
            .width = c->conv_width,
            .tokens = n,
        };
        kern->short_conv(&conv);
    }
    for (size_t t = 0; t < n; t++) {
        kern->l2_norm(b->q + t * dim, b->q + t * dim, 1 / sqrtf((float)dim), dim);
        kern->l2_norm(b->k + t * dim, b->k + t * dim, 1, dim);
    }
}

/* Log-decay g and beta of one head. */
static void gates(struct k3_step *s, uint32_t layer, size_t h, size_t at, size_t n, const struct head *b) {
    const struct k3_config *c = s->model->config;
    const struct k3_kernels *kern = s->model->kernels;
    const struct k3_layer *l = &s->model->layer[layer];
    size_t dim = c->kda_head_dim;
    k3_linear_rows(kern, s->trunk, &l->layout->kda.f_b, h * dim, dim, s->w->f_a + at * dim, dim, b->g, dim, n);
    for (size_t t = 0; t < n; t++) {
        float *g = b->g + t * dim;
        if (c->gate_bounded) kern->kda_gate_bounded(g, g, l->dt_bias + h * dim, l->a[h], c->gate_lower_bound, dim);
        else kern->kda_gate_softplus(g, g, l->dt_bias + h * dim, l->a[h], dim);
        b->beta[t] = s->w->beta[(at + t) * c->kda_heads + h];
    }
    kern->sigmoid(b->beta, b->beta, n);
}

/* norm(o) * sigmoid(gate) of one head, into the step's o. */
static void output(struct k3_step *s, uint32_t layer, size_t h, size_t at, size_t n, const struct head *b) {
    const struct k3_config *c = s->model->config;
    const struct k3_kernels *kern = s->model->kernels;
    const struct k3_layer *l = &s->model->layer[layer];
    const struct k3_matrix *low = &l->layout->kda.g_b;
    size_t dim = c->kda_head_dim, width = k3_kda_width(c);
    const float *gate = s->w->gate + at * width + h * dim;
    size_t ld_gate = width;
    if (low->type != K3_WEIGHT_NONE) {
        k3_linear_rows(kern, s->trunk, low, h * dim, dim, s->w->g_a + at * dim, dim, b->gate, dim, n);
        gate = b->gate;
        ld_gate = dim;
    }
    for (size_t t = 0; t < n; t++)
        kern->gated_rms_norm(s->w->o + (at + t) * width + h * dim, b->o + t * dim, l->o_norm, gate + t * ld_gate,
                             c->rms_norm_eps, dim);
}

static void head(struct k3_step *s, uint32_t layer, size_t h, const struct head *b) {
    size_t dim = s->model->config->kda_head_dim;
    for (size_t at = 0; at < s->tokens; at += K3_CHUNK_TOKENS) {
        size_t n = s->tokens - at < K3_CHUNK_TOKENS ? s->tokens - at : K3_CHUNK_TOKENS;
        convolve(s, layer, h, at, n, b);
        gates(s, layer, h, at, n, b);
        struct k3_kda_run run = {
            .state = s->state->layer[layer].kda_state + h * dim * dim,
            .q = b->q,
            .k = b->k,
            .v = b->v,
            .g = b->g,
            .beta = b->beta,
            .o = b->o,
            .n = n,
            .k_dim = dim,
            .v_dim = dim,
        };
        k3_kda_run(s->model->kernels, &run, b->run);
        output(s, layer, h, at, n, b);
    }
}

void k3_kda(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_kda_layout *l = &s->model->layer[layer].layout->kda;
    struct head buffers = place(s->model->config, k3_step_scratch(s, team));
    size_t begin, end;
    projections(team, s, l);
    k3_team_barrier(team);
    k3_team_share(team, s->model->config->kda_heads, 1, &begin, &end);
    for (size_t h = begin; h < end; h++) head(s, layer, h, &buffers);
    k3_team_barrier(team);
    k3_linear(team, s->model->kernels, s->trunk, &l->o, s->w->o, s->w->out, s->tokens);
}
