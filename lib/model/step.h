/* One step: a block of tokens of one sequence through all layers, run by a team of threads.
 *
 * All threads run the same functions.  A function that computes something others read ends with
 * its outputs complete only after the caller's barrier; barriers stand in forward.c and in the
 * feed-forward and attention files where their phases meet. */
#ifndef K3_MODEL_STEP_H
#define K3_MODEL_STEP_H

#include "base/threads.h"
#include "model/model.h"
#include "model/state.h"

#include <stdatomic.h>

#define K3_BLOCK_TOKENS 512 /* longest step: fixed, so that memory never changes how work is cut */
#define K3_CHUNK_TOKENS 64  /* KDA's chunk */

/* Buffers of a step, f32 unless said; T tokens.  Attention and feed-forward share one area. */
struct k3_workspace {
    size_t tokens; /* room */
    struct k3_span span;
    float *x, *y, *out; /* [T, D]: running sum; input of a sub-layer; its output */
    float *blocks;      /* [blocks, T, D]: AttnRes's list */
    /* KDA */
    float *q, *k, *v, *gate, *o; /* [T, C] (MLA: gate, o [T, Ha v]) */
    float *f_a, *g_a, *beta;     /* [T, K], [T, K], [T, H] */
    /* MLA */
    float *q_a, *kv; /* [T, q_lora_rank], [T, kv_lora_rank + rope_dim] */
    /* dense and shared MLP */
    float *mlp_gate, *mlp_up; /* [T, width] */
    /* MoE */
    float *scores;        /* [T, E] */
    float *route_weight;  /* [T, top_k] */
    int32_t *route;       /* [T, top_k]: expert ids by falling score */
    uint32_t *slot;       /* [T, top_k]: row of `gathered` */
    uint32_t *first_slot; /* [E + 1]: rows of each expert */
    uint32_t *slot_token; /* [T top_k]: token of each row */
    const void **expert;  /* [E]: weights of the chosen ones */
    float *latent, *mixed;                  /* [T, lat]: input and weighted sum of the experts */
    float *gathered, *h_gate, *h_up, *each; /* [T top_k, lat | ff | ff | lat] */
    /* each thread's own */
    float *scratch;
    size_t scratch_floats; /* of one thread */
};

struct k3_step {
    const struct k3_model *model;
    struct k3_state *state;
    struct k3_workspace *w;
    const int32_t *ids; /* [tokens] */
    size_t tokens;
    float *logits;      /* [logit_rows, vocab]: of the last logit_rows tokens */
    size_t logit_rows;
    void (*tap)(void *user, uint32_t layer, const float *x); /* x [tokens, D] after each layer; may be NULL */
    void *tap_user;
    /* shared by the team while it runs */
    const unsigned char *trunk; /* of the layer at hand */
    const unsigned char *matrix; /* embedding or head */
    _Atomic int status;
    k3_error err;              /* of the first failure; written by rank 0 only */
    _Atomic uint32_t bad_site; /* the first place with NaN or infinity: see k3_step_site_name */
};

/* Places in their order, for the search of NaN: the embedding, then attention and feed-forward of each layer. */
#define K3_SITE_EMBEDDING 0u
#define K3_SITE_ATTENTION(layer) (1u + 2u * (layer))
#define K3_SITE_FFN(layer) (2u + 2u * (layer))
#define K3_SITE_HEAD (UINT32_MAX - 1)
#define K3_SITE_NONE UINT32_MAX

k3_status k3_workspace_init(struct k3_workspace *w, const struct k3_model *m, size_t tokens, k3_error *err);
void k3_workspace_clear(struct k3_workspace *w, const struct k3_model *m);

static inline float *k3_step_scratch(const struct k3_step *s, const struct k3_team *team) {
    return s->w->scratch + (size_t)team->rank * s->w->scratch_floats;
}

/* The whole step.  The state's pages must be reserved; its position advances.
 * Errors: K3_ERR_NUMERIC, K3_ERR_IO. */
k3_status k3_forward(struct k3_step *s, k3_error *err);

/* Sub-layers, [T, D] to [T, D]: read w->y, leave w->out complete after the caller's barrier. */
void k3_kda(struct k3_team *team, struct k3_step *s, uint32_t layer);
void k3_mla(struct k3_team *team, struct k3_step *s, uint32_t layer);
void k3_dense_mlp(struct k3_team *team, struct k3_step *s, uint32_t layer);
void k3_latent_moe(struct k3_team *team, struct k3_step *s, uint32_t layer);

/* This thread's columns of glu(gate x, up x), x = w->y, into w->mlp_gate. */
void k3_mlp_hidden(struct k3_team *team, struct k3_step *s, const struct k3_mlp_layout *l);

/* Scratch that they need per thread, in floats, for a step of `tokens`. */
size_t k3_kda_scratch(const struct k3_config *c);
size_t k3_mla_scratch(const struct k3_config *c, size_t tokens);
size_t k3_moe_scratch(const struct k3_config *c);

#endif
