/* Tells the store which tensors make up which resident. */
#include "model/model.h"

#include "base/error.h"

/* The pieces of one resident, collected before it is declared. */
struct pieces {
    struct k3_piece at[64]; /* a KDA MoE trunk with everything packed has 2 * 15 */
    size_t count;
};

static void add(struct pieces *p, const struct k3_matrix *m) {
    if (m->type == K3_WEIGHT_NONE) return;
    p->at[p->count++] = (struct k3_piece){m->tensor, m->at, false};
    if (m->type == K3_WEIGHT_MXFP4) p->at[p->count++] = (struct k3_piece){m->scale, m->scale_at, true};
}

static void add_mlp(struct pieces *p, const struct k3_mlp_layout *m) {
    add(p, &m->gate);
    add(p, &m->up);
    add(p, &m->down);
}

static void add_trunk(struct pieces *p, const struct k3_layer_layout *l) {
    if (l->is_kda) {
        const struct k3_kda_layout *a = &l->kda;
        const struct k3_matrix *all[] = {&a->q, &a->k, &a->v, &a->f_a, &a->f_b, &a->b, &a->g, &a->g_a, &a->g_b, &a->o};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) add(p, all[i]);
    } else {
        const struct k3_mla_layout *a = &l->mla;
        const struct k3_matrix *all[] = {&a->q_a, &a->q_b, &a->q, &a->kv_a, &a->kv_b, &a->g, &a->o};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) add(p, all[i]);
    }
    if (l->is_moe) {
        add(p, &l->moe.router);
        add(p, &l->moe.latent_down);
        add(p, &l->moe.latent_up);
        add_mlp(p, &l->moe.shared);
    } else {
        add_mlp(p, &l->dense);
    }
}

static k3_status declare_experts(struct k3_model *m, struct k3_layer *layer, k3_error *err) {
    const struct k3_moe_layout *moe = &layer->layout->moe;
    for (uint32_t e = 0; e < moe->experts; e++) {
        struct pieces p = {.count = 0};
        k3_resident id;
        add(&p, &moe->expert[e].w1);
        add(&p, &moe->expert[e].w2);
        add(&p, &moe->expert[e].w3);
        k3_status status = k3_store_declare(m->store, moe->expert[e].bytes, p.at, p.count, &id, err);
        if (status) return status;
        if (e == 0) layer->first_expert = id;
    }
    return K3_OK;
}

static k3_status declare_matrix(struct k3_model *m, const struct k3_matrix *w, uint64_t bytes, k3_resident *id,
                                k3_error *err) {
    struct pieces p = {.count = 0};
    add(&p, w);
    return k3_store_declare(m->store, bytes, p.at, p.count, id, err);
}

k3_status k3_weights_declare(struct k3_model *m, k3_error *err) {
    const struct k3_layout *l = m->layout;
    k3_status status = declare_matrix(m, &l->embedding, l->embedding_bytes, &m->embedding, err);
    if (status) return status;
    for (uint32_t i = 0; i < m->config->layers; i++) {
        struct k3_layer *layer = &m->layer[i];
        struct pieces p = {.count = 0};
        layer->layout = &l->layer[i];
        add_trunk(&p, layer->layout);
        status = k3_store_declare(m->store, layer->layout->trunk_bytes, p.at, p.count, &layer->trunk, err);
        if (!status && layer->layout->is_moe) status = declare_experts(m, layer, err);
        if (status) return status;
    }
    m->head = m->embedding;
    if (l->head.type != K3_WEIGHT_NONE) status = declare_matrix(m, &l->head, l->head_bytes, &m->head, err);
    return status;
}
