/* LatentMoE and plain MoE (spec 2.6).
 *
 * The (token, expert) pairs of a block become rows grouped by expert, so that each expert's weights
 * are read once a block.  Every thread takes its share of the rows of each matrix of every expert,
 * which loads all threads alike whatever the routing. */
#include "model/linear.h"
#include "model/mlp.h"
#include "model/router.h"
#include "model/step.h"

#include <string.h>

/* The router's, or the pointers to a token's rows. */
size_t k3_moe_scratch(const struct k3_config *c) {
    size_t router = (size_t)c->experts + c->expert_groups, rows = (c->top_k * sizeof(float *) + 3) / sizeof(float);
    return router > rows ? router : rows;
}

/* Scores of all tokens, the experts' input, the shared experts' hidden layer. */
static void project(struct k3_team *team, struct k3_step *s, const struct k3_moe_layout *l) {
    const struct k3_kernels *k = s->model->kernels;
    k3_linear(team, k, s->trunk, &l->router, s->w->y, s->w->scores, s->tokens);
    if (l->latent_down.type != K3_WEIGHT_NONE)
        k3_linear(team, k, s->trunk, &l->latent_down, s->w->y, s->w->latent, s->tokens);
    if (l->shared.gate.type != K3_WEIGHT_NONE) k3_mlp_hidden(team, s, &l->shared);
}

static void route(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_config *c = s->model->config;
    const struct k3_layer *l = &s->model->layer[layer];
    struct k3_router r = {
        .bias = l->router_bias,
        .experts = l->layout->moe.experts,
        .top_k = c->top_k,
        .groups = c->expert_groups,
        .topk_group = c->topk_group,
        .softmax = c->router_softmax,
        .renormalize = c->renormalize,
        .scaling = c->routed_scaling,
    };
    size_t begin, end;
    k3_team_share(team, s->tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++)
        k3_route(s->model->kernels, &r, s->w->scores + t * r.experts, s->w->route + t * c->top_k,
                 s->w->route_weight + t * c->top_k, k3_step_scratch(s, team));
}

/* Groups the pairs by expert and pins the chosen experts. */
static void group(struct k3_step *s, uint32_t layer) {
    const struct k3_layer *l = &s->model->layer[layer];
    struct k3_workspace *w = s->w;
    size_t pairs = s->tokens * s->model->config->top_k, experts = l->layout->moe.experts;
    memset(w->first_slot, 0, (experts + 1) * sizeof *w->first_slot);
    for (size_t i = 0; i < pairs; i++) w->first_slot[w->route[i] + 1]++;
    for (size_t e = 0; e < experts; e++) {
        w->expert[e] = NULL;
        if (w->first_slot[e + 1]) {
            int status = k3_store_acquire(s->model->store, l->first_expert + (k3_resident)e, &w->expert[e], &s->err);
            if (status) atomic_store(&s->status, status);
        }
        w->first_slot[e + 1] += w->first_slot[e];
    }
    for (size_t i = 0; i < pairs; i++) { /* first_slot[e] runs ahead to the end of e's rows ... */
        w->slot[i] = w->first_slot[w->route[i]]++;
        w->slot_token[w->slot[i]] = (uint32_t)(i / s->model->config->top_k);
    }
    for (size_t e = experts; e > 0; e--) w->first_slot[e] = w->first_slot[e - 1]; /* ... and is put back */
    w->first_slot[0] = 0;
}

static void release(struct k3_step *s, uint32_t layer) {
    const struct k3_layer *l = &s->model->layer[layer];
    for (uint32_t e = 0; e < l->layout->moe.experts; e++)
        if (s->w->expert[e]) k3_store_release(s->model->store, l->first_expert + e);
}

/* Copies the experts' inputs into this thread's share of the grouped rows. */
static void gather(struct k3_team *team, struct k3_step *s, const float *from, size_t width) {
    size_t begin, end;
    k3_team_share(team, s->tokens * s->model->config->top_k, 1, &begin, &end);
    for (size_t i = begin; i < end; i++)
        memcpy(s->w->gathered + i * width, from + s->w->slot_token[i] * width, width * sizeof *from);
}

/* glu(w1 z, w3 z) of all experts, this thread's columns. */
static void experts_hidden(struct k3_team *team, struct k3_step *s, const struct k3_moe_layout *l) {
    const struct k3_kernels *k = s->model->kernels;
    struct k3_workspace *w = s->w;
    for (uint32_t e = 0; e < l->experts; e++) {
        size_t at = w->first_slot[e], n = w->first_slot[e + 1] - at, begin, end;
        if (!n) continue;
        const struct k3_matrix *w1 = &l->expert[e].w1, *w3 = &l->expert[e].w3;
        size_t ff = w1->rows;
        const float *x = w->gathered + at * w1->cols;
        float *gate = w->h_gate + at * ff, *up = w->h_up + at * ff;
        k3_linear_share(team, ff, &begin, &end);
        k3_linear_rows(k, w->expert[e], w1, begin, end - begin, x, w1->cols, gate + begin, ff, n);
        k3_linear_rows(k, w->expert[e], w3, begin, end - begin, x, w3->cols, up + begin, ff, n);
        for (size_t i = 0; i < n; i++)
            k3_glu(k, s->model->config, gate + i * ff + begin, gate + i * ff + begin, up + i * ff + begin, end - begin);
    }
}

/* w2 of all experts and the weighted sum of each token, by falling score; this thread's columns. */
static void experts_output(struct k3_team *team, struct k3_step *s, const struct k3_moe_layout *l, float *sum,
                           size_t width) {
    const struct k3_kernels *k = s->model->kernels;
    struct k3_workspace *w = s->w;
    size_t begin, end, top_k = s->model->config->top_k;
    k3_linear_share(team, width, &begin, &end);
    for (uint32_t e = 0; e < l->experts; e++) {
        size_t at = w->first_slot[e], n = w->first_slot[e + 1] - at;
        const struct k3_matrix *w2 = &l->expert[e].w2;
        if (n)
            k3_linear_rows(k, w->expert[e], w2, begin, end - begin, w->h_gate + at * w2->cols, w2->cols,
                           w->each + at * width + begin, width, n);
    }
    for (size_t t = 0; t < s->tokens; t++) {
        const float **part = (const float **)(void *)k3_step_scratch(s, team);
        for (size_t i = 0; i < top_k; i++) part[i] = w->each + w->slot[t * top_k + i] * width + begin;
        k->weighted_sum(sum + t * width + begin, part, w->route_weight + t * top_k, top_k, end - begin);
    }
}

static void normalise(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const float *norm = s->model->layer[layer].latent_norm;
    size_t begin, end, width = s->model->config->latent_size;
    if (!norm) return;
    k3_team_share(team, s->tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *u = s->w->mixed + t * width;
        s->model->kernels->rms_norm(u, u, norm, s->model->config->rms_norm_eps, width);
    }
}

/* out = up(mixed) + shared(x), this thread's columns; without a latent the experts' sum is in out already. */
static void combine(struct k3_team *team, struct k3_step *s, const struct k3_moe_layout *l) {
    const struct k3_kernels *k = s->model->kernels;
    struct k3_workspace *w = s->w;
    const struct k3_matrix *down = &l->shared.down;
    size_t begin, end, width = s->model->config->hidden_size;
    if (l->latent_up.type != K3_WEIGHT_NONE) k3_linear(team, k, s->trunk, &l->latent_up, w->mixed, w->out, s->tokens);
    if (down->type == K3_WEIGHT_NONE) return;
    k3_linear_share(team, width, &begin, &end);
    /* y is free: every thread is past the projections that read it. */
    k3_linear_rows(k, s->trunk, down, begin, end - begin, w->mlp_gate, down->cols, w->y + begin, width, s->tokens);
    for (size_t t = 0; t < s->tokens; t++) k->add(w->out + t * width + begin, w->y + t * width + begin, end - begin);
}

void k3_latent_moe(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_moe_layout *l = &s->model->layer[layer].layout->moe;
    bool latent = l->latent_down.type != K3_WEIGHT_NONE;
    size_t width = k3_expert_input(s->model->config);
    project(team, s, l);
    k3_team_barrier(team);
    route(team, s, layer);
    k3_team_barrier(team);
    if (team->rank == 0) group(s, layer);
    k3_team_barrier(team);
    if (atomic_load(&s->status)) {
        if (team->rank == 0) release(s, layer);
        return;
    }
    gather(team, s, latent ? s->w->latent : s->w->y, width);
    k3_team_barrier(team);
    experts_hidden(team, s, l);
    k3_team_barrier(team);
    experts_output(team, s, l, latent ? s->w->mixed : s->w->out, width);
    k3_team_barrier(team);
    if (team->rank == 0) release(s, layer);
    if (latent && s->model->layer[layer].latent_norm) {
        normalise(team, s, layer);
        k3_team_barrier(team);
    }
    combine(team, s, l);
}
