/* Which tensors the model needs and how they lie in residents.
 *
 * A resident (lib/store) is a unit that moves as one: the trunk of a layer, one routed expert, the
 * head, the embedding.  The layout finds every tensor in the checkpoint, checks its type and shape
 * and gives it a place in its resident.  It reads no weights. */
#ifndef K3_MODEL_LAYOUT_H
#define K3_MODEL_LAYOUT_H

#include "format/config.h"
#include "format/safetensors.h"

enum k3_weight_type { K3_WEIGHT_NONE, K3_WEIGHT_BF16, K3_WEIGHT_F16, K3_WEIGHT_F32, K3_WEIGHT_MXFP4 };

/* A linear's weight [rows, cols] in its resident, rows contiguous. */
struct k3_matrix {
    enum k3_weight_type type; /* NONE: the model has no such matrix */
    uint32_t rows, cols;
    uint64_t at;       /* weights (or packed codes): bytes from the resident's start, a multiple of K3_ALIGN */
    uint64_t scale_at; /* MXFP4: scales */
    const struct k3_tensor *tensor, *scale; /* scale: MXFP4 only */
};

/* A small tensor that is widened to f32 when the model is opened (norms, biases, taps, A_log). */
struct k3_vector {
    const struct k3_tensor *tensor; /* NULL: the model has no such vector */
    uint32_t count;                 /* values used (A_log may be stored longer) */
};

struct k3_expert_layout {
    struct k3_matrix w1, w3, w2; /* gate, up [ff, latent]; down [latent, ff] */
    uint64_t bytes;              /* of the resident */
};

struct k3_mlp_layout {
    struct k3_matrix gate, up, down;
};

struct k3_kda_layout {
    struct k3_matrix q, k, v, f_a, f_b, b, g, g_a, g_b, o; /* g, or g_a and g_b */
    struct k3_vector q_conv, k_conv, v_conv, a_log, dt_bias, o_norm;
};

struct k3_mla_layout {
    struct k3_matrix q_a, q_b, q, kv_a, kv_b, g, o; /* q_a and q_b, or q; g with the output gate */
    struct k3_vector q_a_norm, kv_a_norm;
};

struct k3_moe_layout {
    uint32_t experts; /* of this layer: rows of the router */
    struct k3_matrix router, latent_down, latent_up;
    struct k3_mlp_layout shared;
    struct k3_vector router_bias, latent_norm;
    struct k3_expert_layout *expert; /* [experts] */
};

struct k3_layer_layout {
    bool is_kda, is_moe;
    struct k3_kda_layout kda;
    struct k3_mla_layout mla;
    struct k3_mlp_layout dense;
    struct k3_moe_layout moe;
    struct k3_vector input_norm, post_norm, attn_res_norm, attn_res_proj, mlp_res_norm, mlp_res_proj;
    uint64_t trunk_bytes; /* of the resident with all matrices but the experts' */
};

struct k3_layout {
    struct k3_layer_layout *layer; /* [layers] */
    struct k3_matrix embedding, head; /* each alone in its resident; head.type NONE: tied */
    uint64_t embedding_bytes, head_bytes;
    struct k3_vector norm, output_res_norm, output_res_proj;
    struct k3_bytes bytes; /* as stored */
    uint64_t token_bytes;  /* weights that one decoded token reads, as stored */
    uint64_t tensors_used;
};

/* Errors: K3_ERR_FORMAT (a tensor is missing or has the wrong type or shape: file and tensor are named),
 *         K3_ERR_UNSUPPORTED (fused experts under other names), K3_ERR_MEMORY. */
k3_status k3_layout_make(const struct k3_config *c, const struct k3_tensors *t, struct k3_layout *out, k3_error *err);
void k3_layout_clear(const struct k3_config *c, struct k3_layout *l);

#endif
