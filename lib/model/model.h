/* An opened model: its description, where its weights are, and its small vectors in f32. */
#ifndef K3_MODEL_MODEL_H
#define K3_MODEL_MODEL_H

#include "model/checkpoint.h"
#include "simd/kernels.h"
#include "store/store.h"

struct k3_layer {
    const struct k3_layer_layout *layout;
    k3_resident trunk, first_expert; /* experts have consecutive ids */
    float *input_norm, *post_norm;   /* [D] */
    float *attn_res, *mlp_res;       /* [D]: norm weight times projection weight; NULL without AttnRes */
    /* KDA */
    float *taps[3];  /* q, k, v: [conv_width, C], the transpose of what is stored */
    float *a;        /* [H]: exp(A_log) */
    float *dt_bias;  /* [C] */
    float *o_norm;   /* [K] */
    /* MLA */
    float *q_a_norm, *kv_a_norm;
    /* MoE */
    float *router_bias, *latent_norm;
};

struct k3_model {
    k3_checkpoint *checkpoint;
    const struct k3_config *config; /* the checkpoint's */
    const struct k3_layout *layout; /* the checkpoint's */
    const struct k3_kernels *kernels;
    struct k3_store *store;
    int threads;
    struct k3_layer *layer; /* [config->layers] */
    struct k3_span vectors; /* the memory of all small vectors */
    float *norm, *output_res;
    k3_resident embedding, head; /* the same where tied */
};

/* Widths that the configuration implies. */
static inline size_t k3_kda_width(const struct k3_config *c) {
    return (size_t)c->kda_heads * c->kda_head_dim;
}
static inline size_t k3_mla_query_dim(const struct k3_config *c) {
    return (size_t)c->nope_dim + c->rope_dim;
}
static inline size_t k3_mla_cache_dim(const struct k3_config *c) {
    return (size_t)c->kv_lora_rank + c->rope_dim;
}
static inline size_t k3_expert_input(const struct k3_config *c) {
    return c->latent_size ? c->latent_size : c->hidden_size;
}
static inline size_t k3_attn_res_blocks(const struct k3_config *c) { /* the most that a token's list holds */
    return c->attn_res_block_size ? (c->layers + c->attn_res_block_size - 1) / c->attn_res_block_size : 0;
}

/* Declares all weights to the store and reads the small vectors. */
k3_status k3_weights_declare(struct k3_model *m, k3_error *err);
k3_status k3_vectors_read(struct k3_model *m, k3_error *err);

#endif
