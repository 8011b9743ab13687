/* The small tensors: widened to f32 once, in the form that the kernels want them. */
#include "model/model.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Walks all vectors twice: first to count (base NULL), then to read. */
struct reader {
    struct k3_model *m;
    float *base;
    size_t used; /* floats */
    k3_status status;
    k3_error *err;
};

static float *take(struct reader *r, size_t count) {
    float *p = r->base ? r->base + r->used : NULL;
    r->used += k3_round_up(count, K3_ALIGN / sizeof(float));
    return p;
}

static float *vector(struct reader *r, const struct k3_vector *v) {
    if (!v->tensor) return NULL;
    float *p = take(r, v->count);
    if (p && !r->status) r->status = k3_store_read_f32(r->m->store, v->tensor, v->count, p, r->err);
    return p;
}

/* AttnRes weighs the normalised source by norm * proj: one vector does. */
static float *site(struct reader *r, const struct k3_vector *norm, const struct k3_vector *proj) {
    float *p = vector(r, norm), *q = vector(r, proj);
    if (p && q && !r->status) r->m->kernels->mul(p, q, norm->count);
    return p;
}

/* Stored [C, width]; used [width, C], so that channels lie along the vector lanes. */
static float *taps(struct reader *r, const struct k3_vector *v) {
    float *p = vector(r, v);
    if (!p || r->status) return p;
    size_t width = r->m->config->conv_width, channels = k3_kda_width(r->m->config);
    float *stored = k3_array(v->count, sizeof *stored);
    if (!stored) {
        r->status = k3_fail(r->err, K3_ERR_MEMORY, "out of memory");
        return p;
    }
    memcpy(stored, p, v->count * sizeof *p);
    for (size_t c = 0; c < channels; c++)
        for (size_t j = 0; j < width; j++) p[j * channels + c] = stored[c * width + j];
    free(stored);
    return p;
}

static void kda_vectors(struct reader *r, struct k3_layer *layer, const struct k3_kda_layout *l) {
    layer->taps[0] = taps(r, &l->q_conv);
    layer->taps[1] = taps(r, &l->k_conv);
    layer->taps[2] = taps(r, &l->v_conv);
    layer->a = vector(r, &l->a_log);
    if (layer->a && !r->status)
        for (size_t h = 0; h < l->a_log.count; h++) layer->a[h] = expf(layer->a[h]);
    layer->dt_bias = vector(r, &l->dt_bias);
    layer->o_norm = vector(r, &l->o_norm);
}

static void layer_vectors(struct reader *r, struct k3_layer *layer) {
    const struct k3_layer_layout *l = layer->layout;
    layer->input_norm = vector(r, &l->input_norm);
    layer->post_norm = vector(r, &l->post_norm);
    layer->attn_res = site(r, &l->attn_res_norm, &l->attn_res_proj);
    layer->mlp_res = site(r, &l->mlp_res_norm, &l->mlp_res_proj);
    if (l->is_kda) {
        kda_vectors(r, layer, &l->kda);
    } else {
        layer->q_a_norm = vector(r, &l->mla.q_a_norm);
        layer->kv_a_norm = vector(r, &l->mla.kv_a_norm);
    }
    if (l->is_moe) {
        layer->router_bias = vector(r, &l->moe.router_bias);
        layer->latent_norm = vector(r, &l->moe.latent_norm);
    }
}

static void walk(struct reader *r) {
    for (uint32_t i = 0; i < r->m->config->layers; i++) layer_vectors(r, &r->m->layer[i]);
    r->m->norm = vector(r, &r->m->layout->norm);
    r->m->output_res = site(r, &r->m->layout->output_res_norm, &r->m->layout->output_res_proj);
}

k3_status k3_vectors_read(struct k3_model *m, k3_error *err) {
    struct reader r = {.m = m, .err = err};
    walk(&r);
    k3_status status = k3_store_alloc(m->store, r.used * sizeof(float), "holding norms and biases", &m->vectors, err);
    if (status) return status;
    r.base = m->vectors.data;
    r.used = 0;
    walk(&r);
    return r.status;
}
