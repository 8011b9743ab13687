/* The forward pass (spec 2.2): embedding, layers with their residuals, head. */
#include "model/attn_res.h"
#include "model/linear.h"
#include "model/step.h"

#include "base/error.h"

#include <string.h>

static void note_site(struct k3_step *s, uint32_t site) {
    uint32_t old = atomic_load(&s->bad_site);
    while (site < old && !atomic_compare_exchange_weak(&s->bad_site, &old, site)) continue;
}

static void check_finite(struct k3_step *s, const float *x, size_t n, uint32_t site) {
    if (!s->model->kernels->all_finite(x, n)) note_site(s, site);
}

/* y = what a sub-layer reads of token t: its residual mix, normed. */
static void enter(struct k3_step *s, size_t t, size_t blocks, const float *site, const float *norm) {
    const struct k3_config *c = s->model->config;
    const struct k3_kernels *k = s->model->kernels;
    size_t d = c->hidden_size;
    const float *x = s->w->x + t * d;
    float *y = s->w->y + t * d;
    if (site && blocks) {
        const float *source[K3_ATTN_RES_MAX];
        for (size_t j = 0; j < blocks; j++) source[j] = s->w->blocks + (j * s->tokens + t) * d;
        source[blocks] = x;
        k3_attn_res_mix(k, y, source, blocks + 1, site, c->rms_norm_eps, d);
        k->rms_norm(y, y, norm, c->rms_norm_eps, d);
    } else {
        k->rms_norm(y, x, norm, c->rms_norm_eps, d);
    }
}

static size_t opened_blocks(const struct k3_config *c, uint32_t layer) { /* by the layers before it */
    return c->attn_res_block_size ? (layer + c->attn_res_block_size - 1) / c->attn_res_block_size : 0;
}

static bool opens_block(const struct k3_config *c, uint32_t layer) {
    return c->attn_res_block_size && layer % c->attn_res_block_size == 0;
}

/* Before attention: the list may receive the running sum of this thread's tokens. */
static void before_attention(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_config *c = s->model->config;
    const struct k3_layer *l = &s->model->layer[layer];
    size_t begin, end, d = c->hidden_size, blocks = opened_blocks(c, layer);
    k3_team_share(team, s->tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        enter(s, t, blocks, l->attn_res, l->input_norm); /* an opening layer still sees the old list */
        if (opens_block(c, layer))
            memcpy(s->w->blocks + (blocks * s->tokens + t) * d, s->w->x + t * d, d * sizeof(float));
    }
}

/* After attention: an opening layer's output replaces the running sum, others add to it. */
static void before_ffn(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_config *c = s->model->config;
    const struct k3_layer *l = &s->model->layer[layer];
    size_t begin, end, d = c->hidden_size, blocks = opened_blocks(c, layer + 1);
    k3_team_share(team, s->tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *x = s->w->x + t * d;
        if (opens_block(c, layer)) memcpy(x, s->w->out + t * d, d * sizeof *x);
        else s->model->kernels->add(x, s->w->out + t * d, d);
        check_finite(s, x, d, K3_SITE_ATTENTION(layer));
        enter(s, t, blocks, l->mlp_res, l->post_norm);
    }
}

static void after_ffn(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    size_t begin, end, d = s->model->config->hidden_size;
    k3_team_share(team, s->tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        s->model->kernels->add(s->w->x + t * d, s->w->out + t * d, d);
        check_finite(s, s->w->x + t * d, d, K3_SITE_FFN(layer));
    }
    if (s->tap) {
        k3_team_barrier(team);
        if (team->rank == 0) s->tap(s->tap_user, layer, s->w->x);
        k3_team_barrier(team);
    }
}

/* Rank 0 pins a resident for the team; the next barrier shows it to all. */
static void pin(struct k3_team *team, struct k3_step *s, k3_resident id, const unsigned char **data) {
    if (team->rank) return;
    const void *p = NULL;
    int status = k3_store_acquire(s->model->store, id, &p, &s->err);
    *data = p;
    if (status) atomic_store(&s->status, status);
}

static void unpin(struct k3_team *team, struct k3_step *s, k3_resident id) {
    if (team->rank == 0) k3_store_release(s->model->store, id);
}

static void embed(struct k3_team *team, struct k3_step *s) {
    const struct k3_matrix *e = &s->model->layout->embedding;
    size_t begin, end, d = e->cols;
    k3_team_share(team, s->tokens, 1, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        k3_linear_widen_row(s->model->kernels, s->matrix, e, (size_t)s->ids[t], s->w->x + t * d);
        check_finite(s, s->w->x + t * d, d, K3_SITE_EMBEDDING);
    }
}

/* Returns false where the step has failed.  The status is read only between a barrier and the next
 * place that may set it, so that all threads decide alike. */
static bool run_layer(struct k3_team *team, struct k3_step *s, uint32_t i) {
    const struct k3_layer *l = &s->model->layer[i];
    pin(team, s, l->trunk, &s->trunk);
    before_attention(team, s, i);
    k3_team_barrier(team);
    if (atomic_load(&s->status)) return false;
    (l->layout->is_kda ? k3_kda : k3_mla)(team, s, i);
    k3_team_barrier(team);
    before_ffn(team, s, i);
    k3_team_barrier(team);
    (l->layout->is_moe ? k3_latent_moe : k3_dense_mlp)(team, s, i);
    k3_team_barrier(team);
    unpin(team, s, l->trunk);
    after_ffn(team, s, i);
    return true;
}

/* Logits of the last logit_rows tokens. */
static void head(struct k3_team *team, struct k3_step *s) {
    const struct k3_model *m = s->model;
    const struct k3_matrix *w = m->layout->head.type == K3_WEIGHT_NONE ? &m->layout->embedding : &m->layout->head;
    size_t first = s->tokens - s->logit_rows, begin, end, d = m->config->hidden_size, vocab = w->rows;
    pin(team, s, m->head, &s->matrix);
    k3_team_barrier(team); /* the last tokens may be another thread's */
    k3_team_share(team, s->logit_rows, 1, &begin, &end);
    for (size_t t = first + begin; t < first + end; t++)
        enter(s, t, opened_blocks(m->config, m->config->layers), m->output_res, m->norm);
    k3_team_barrier(team);
    if (atomic_load(&s->status)) return;
    k3_linear(team, m->kernels, s->matrix, w, s->w->y + first * d, s->logits, s->logit_rows);
    k3_team_barrier(team);
    unpin(team, s, m->head);
    for (size_t t = begin; t < end; t++) check_finite(s, s->logits + t * vocab, vocab, K3_SITE_HEAD);
}

static void run(struct k3_team *team, void *arg) {
    struct k3_step *s = arg;
    pin(team, s, s->model->embedding, &s->matrix);
    k3_team_barrier(team);
    if (atomic_load(&s->status)) return;
    embed(team, s);
    k3_team_barrier(team);
    unpin(team, s, s->model->embedding);
    for (uint32_t i = 0; i < s->model->config->layers; i++) {
        if (!run_layer(team, s, i)) return;
    }
    if (s->logit_rows) head(team, s);
}

static k3_status not_finite(const struct k3_step *s, uint32_t site, k3_error *err) {
    unsigned long long at = s->state->position;
    if (site == K3_SITE_EMBEDDING)
        return k3_fail(err, K3_ERR_NUMERIC, "NaN or infinity in the embedding, tokens from position %llu on", at);
    if (site == K3_SITE_HEAD)
        return k3_fail(err, K3_ERR_NUMERIC, "NaN or infinity in the logits, tokens from position %llu on", at);
    uint32_t layer = (site - 1) / 2;
    const struct k3_layer_layout *l = s->model->layer[layer].layout;
    const char *part = site == K3_SITE_ATTENTION(layer) ? (l->is_kda ? "KDA" : "MLA") : l->is_moe ? "MoE" : "dense MLP";
    return k3_fail(err, K3_ERR_NUMERIC,
                   "NaN or infinity first appeared in layer %u (counted from 0), %s, tokens from position %llu on",
                   (unsigned)layer, part, at);
}

k3_status k3_forward(struct k3_step *s, k3_error *err) {
    atomic_store(&s->status, K3_OK);
    atomic_store(&s->bad_site, K3_SITE_NONE);
    k3_team_run(s->model->threads, run, s);
    k3_status status = (k3_status)atomic_load(&s->status);
    if (status && err) *err = s->err;
    uint32_t site = atomic_load(&s->bad_site);
    if (!status && site != K3_SITE_NONE) status = not_finite(s, site, err);
    if (!status) s->state->position += s->tokens;
    return status;
}
