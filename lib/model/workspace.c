/* The buffers of a step, laid out in one allocation. */
#include "model/step.h"

#include "base/error.h"
#include "base/memory.h"

/* A bump over memory that may not be there yet: measuring and placing are the same walk. */
struct bump {
    char *base;
    uint64_t used;
    bool overflow;
};

static void *take(struct bump *b, uint64_t n, uint64_t element) {
    uint64_t bytes, end;
    if (!k3_mul64(n, element, &bytes) || !k3_add64(b->used, bytes, &end) || end > SIZE_MAX / 2) {
        b->overflow = true;
        return NULL;
    }
    void *p = b->base ? b->base + b->used : NULL;
    b->used = k3_round_up(end, K3_ALIGN);
    return p;
}

static float *floats(struct bump *b, uint64_t rows, uint64_t cols) {
    uint64_t n;
    if (!k3_mul64(rows, cols, &n)) b->overflow = true;
    return b->overflow ? NULL : take(b, n, sizeof(float));
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void place_attention(struct k3_workspace *w, const struct k3_config *c, uint64_t t, struct bump *b) {
    uint64_t kda = k3_kda_width(c), mla = (uint64_t)c->heads * c->v_dim;
    w->q = floats(b, t, kda);
    w->k = floats(b, t, kda);
    w->v = floats(b, t, kda);
    w->gate = floats(b, t, larger(kda, mla));
    w->o = floats(b, t, larger(kda, mla));
    w->f_a = floats(b, t, c->kda_head_dim);
    w->g_a = floats(b, t, c->kda_head_dim);
    w->beta = floats(b, t, c->kda_heads);
    w->q_a = floats(b, t, c->q_lora_rank);
    w->kv = floats(b, t, k3_mla_cache_dim(c));
}

static void place_moe(struct k3_workspace *w, const struct k3_config *c, uint64_t t, struct bump *b) {
    uint64_t rows = t * c->top_k, lat = k3_expert_input(c), ff = c->moe_intermediate_size;
    w->scores = floats(b, t, c->experts);
    w->route_weight = floats(b, t, c->top_k);
    w->route = take(b, rows, sizeof *w->route);
    w->slot = take(b, rows, sizeof *w->slot);
    w->slot_token = take(b, rows, sizeof *w->slot_token);
    w->first_slot = take(b, (uint64_t)c->experts + 1, sizeof *w->first_slot);
    w->expert = take(b, c->experts, sizeof *w->expert);
    w->latent = floats(b, t, lat);
    w->mixed = floats(b, t, lat);
    w->gathered = floats(b, rows, lat);
    w->h_gate = floats(b, rows, ff);
    w->h_up = floats(b, rows, ff);
    w->each = floats(b, rows, lat);
}

static void place_ffn(struct k3_workspace *w, const struct k3_config *c, uint64_t t, struct bump *b) {
    uint64_t width = larger(c->intermediate_size, (uint64_t)c->shared_experts * c->moe_intermediate_size);
    w->mlp_gate = floats(b, t, width);
    w->mlp_up = floats(b, t, width);
    if (c->experts) place_moe(w, c, t, b);
}

static void place(struct k3_workspace *w, const struct k3_model *m, size_t tokens, struct bump *b) {
    const struct k3_config *c = m->config;
    w->x = floats(b, tokens, c->hidden_size);
    w->y = floats(b, tokens, c->hidden_size);
    w->out = floats(b, tokens, c->hidden_size);
    w->blocks = floats(b, k3_attn_res_blocks(c) * tokens, c->hidden_size);
    w->scratch_floats = larger(k3_moe_scratch(c), larger(k3_kda_scratch(c), k3_mla_scratch(c, tokens)));
    w->scratch_floats = k3_round_up(w->scratch_floats, K3_ALIGN / sizeof(float));
    w->scratch = floats(b, (uint64_t)m->threads, w->scratch_floats);
    struct bump attention = *b, ffn = *b; /* one area for both: they never live at once */
    place_attention(w, c, tokens, &attention);
    place_ffn(w, c, tokens, &ffn);
    b->used = larger(attention.used, ffn.used);
    b->overflow |= attention.overflow | ffn.overflow;
}

k3_status k3_workspace_init(struct k3_workspace *w, const struct k3_model *m, size_t tokens, k3_error *err) {
    struct bump b = {.base = NULL};
    *w = (struct k3_workspace){.tokens = tokens};
    place(w, m, tokens, &b);
    if (b.overflow) return k3_fail(err, K3_ERR_MEMORY, "the buffers of a step are larger than the address space");
    k3_status status = k3_store_alloc(m->store, b.used, "the buffers of a step", &w->span, err);
    if (status) {
        *w = (struct k3_workspace){.tokens = 0};
        return status;
    }
    b = (struct bump){.base = w->span.data};
    place(w, m, tokens, &b);
    return K3_OK;
}

void k3_workspace_clear(struct k3_workspace *w, const struct k3_model *m) {
    k3_store_free(m->store, &w->span);
    *w = (struct k3_workspace){.tokens = 0};
}
