/* Gated NoPE multi-head latent attention (spec 2.4). */
#include "model/mla_attend.h"
#include "model/step.h"

#include <string.h>

#define INNER_EPS 1e-6f /* of q_a_layernorm and kv_a_layernorm, whatever rms_norm_eps says */

size_t k3_mla_scratch(const struct k3_config *c, size_t tokens) {
    return k3_mla_attend_scratch(c, tokens);
}

static void projections(struct k3_team *team, struct k3_step *s, const struct k3_mla_layout *l) {
    const struct k3_kernels *k = s->model->kernels;
    struct k3_workspace *w = s->w;
    if (l->q_a.type != K3_WEIGHT_NONE) k3_linear(team, k, s->trunk, &l->q_a, w->y, w->q_a, s->tokens);
    k3_linear(team, k, s->trunk, &l->kv_a, w->y, w->kv, s->tokens);
    if (l->g.type != K3_WEIGHT_NONE) k3_linear(team, k, s->trunk, &l->g, w->y, w->gate, s->tokens);
}

/* The inner norms of this thread's tokens; their latents enter the cache. */
static void remember(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_config *c = s->model->config;
    const struct k3_kernels *k = s->model->kernels;
    const struct k3_layer *l = &s->model->layer[layer];
    size_t begin, end, dim = k3_mla_cache_dim(c), lora = c->q_lora_rank;
    k3_team_share(team, s->tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *cache = k3_state_cache(&s->state->layer[layer], s->state->position + t, dim);
        const float *kv = s->w->kv + t * dim;
        k->rms_norm(cache, kv, l->kv_a_norm, INNER_EPS, c->kv_lora_rank);
        memcpy(cache + c->kv_lora_rank, kv + c->kv_lora_rank, c->rope_dim * sizeof *cache);
        if (lora) k->rms_norm(s->w->q_a + t * lora, s->w->q_a + t * lora, l->q_a_norm, INNER_EPS, lora);
    }
}

/* o * sigmoid(gate) in the columns of heads [begin, end). */
static void gate(struct k3_step *s, size_t begin, size_t end) {
    size_t v = s->model->config->v_dim, width = s->model->config->heads * v;
    for (size_t t = 0; t < s->tokens; t++) {
        float *o = s->w->o + t * width + begin * v;
        s->model->kernels->sigmoid_mul(o, o, s->w->gate + t * width + begin * v, (end - begin) * v);
    }
}

void k3_mla(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_mla_layout *l = &s->model->layer[layer].layout->mla;
    bool lora = l->q_a.type != K3_WEIGHT_NONE;
    size_t begin, end;
    projections(team, s, l);
    k3_team_barrier(team);
    remember(team, s, layer);
    k3_team_barrier(team);
    struct k3_mla_attend a = {
        .kern = s->model->kernels,
        .config = s->model->config,
        .trunk = s->trunk,
        .kv_b = &l->kv_b,
        .query = lora ? &l->q_b : &l->q,
        .x = lora ? s->w->q_a : s->w->y,
        .cache = &s->state->layer[layer],
        .start = s->state->position,
        .n = s->tokens,
        .o = s->w->o,
    };
    k3_team_share(team, s->model->config->heads, 1, &begin, &end);
    k3_mla_attend(&a, k3_mla_choose(a.config, a.n), begin, end, k3_step_scratch(s, team));
    if (l->g.type != K3_WEIGHT_NONE) gate(s, begin, end);
    k3_team_barrier(team);
    k3_linear(team, a.kern, s->trunk, &l->o, s->w->o, s->w->out, s->tokens);
}
