/* What a sequence remembers: KDA states, convolution tails, and MLA's cache in pages. */
#ifndef K3_MODEL_STATE_H
#define K3_MODEL_STATE_H

#include "model/model.h"

#define K3_PAGE_TOKENS 128 /* tokens of a page of the MLA cache: also the tile of attention */

struct k3_layer_state {
    struct k3_span kda;     /* KDA: states, then tails */
    float *kda_state;       /* [H, K, V] */
    float *tail[3];         /* q, k, v: [conv_width - 1, C] */
    struct k3_span *page;   /* MLA: each [K3_PAGE_TOKENS, kv_lora_rank + rope_dim], latent then k_pe */
    size_t pages, page_room;
};

struct k3_state {
    const struct k3_model *model;
    struct k3_layer_state *layer; /* [layers] */
    uint64_t position;            /* tokens that it has seen */
};

k3_status k3_state_init(struct k3_state *s, const struct k3_model *m, k3_error *err);
void k3_state_clear(struct k3_state *s);
void k3_state_reset(struct k3_state *s); /* forget, keep the memory */

/* Makes sure that every MLA layer has pages for `tokens` tokens in all. */
k3_status k3_state_reserve(struct k3_state *s, uint64_t tokens, k3_error *err);

/* Where the cache of a token at `position` lies: [kv_lora_rank + rope_dim]. */
static inline float *k3_state_cache(const struct k3_layer_state *l, uint64_t position, size_t cache_dim) {
    return (float *)l->page[position / K3_PAGE_TOKENS].data + position % K3_PAGE_TOKENS * cache_dim;
}

#endif
