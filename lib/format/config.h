/* config.json: what the model is.  Both layouts, nested (kimi_k3) and flat (kimi_linear).
 * Fields, defaults and checks: spec/kimi-k3.md, section 1.2. */
#ifndef K3_FORMAT_CONFIG_H
#define K3_FORMAT_CONFIG_H

#include <k3/k3.h>

enum k3_activation { K3_ACT_SILU, K3_ACT_SITU };

struct k3_config {
    const char *architecture; /* "kimi_k3" or "kimi_linear", static */
    uint32_t layers, hidden_size, vocab_size, intermediate_size;
    float rms_norm_eps;
    enum k3_activation activation;
    float situ_beta, situ_linear_beta; /* situ_linear_beta 0: no cap on up */

    /* gated NoPE MLA */
    uint32_t heads, q_lora_rank /* 0: one q_proj */, kv_lora_rank, nope_dim, rope_dim, v_dim;
    bool mla_output_gate;

    /* KDA */
    uint32_t kda_heads, kda_head_dim, conv_width;
    bool gate_bounded; /* gate_lower_bound is given */
    float gate_lower_bound;
    bool full_rank_gate;
    bool *is_kda; /* [layers] */

    uint32_t attn_res_block_size; /* 0: plain residuals */

    /* MoE */
    uint32_t experts /* 0: dense model; else the most of any layer */, top_k, moe_intermediate_size;
    uint32_t latent_size; /* 0: experts see hidden_size */
    bool latent_norm;
    uint32_t shared_experts, first_dense, moe_every;
    bool router_softmax, renormalize;
    float routed_scaling;
    uint32_t expert_groups, topk_group;

    bool tie_embeddings, quantized;
    int32_t *eos; /* [eos_count]: generation_config.json's, else config.json's */
    size_t eos_count;
};

/* Reads DIR/config.json and, where present, DIR/generation_config.json.
 * Errors name file, field and value. */
k3_status k3_config_read(const char *dir, struct k3_config *out, k3_error *err);

/* The same from text in memory; `file` is used in messages.  No generation_config.json is read. */
k3_status k3_config_parse(const char *file, const char *text, size_t length, struct k3_config *out, k3_error *err);

void k3_config_clear(struct k3_config *c);

/* Layer i (from 0) has routed experts. */
bool k3_config_is_moe(const struct k3_config *c, uint32_t layer);

#endif
