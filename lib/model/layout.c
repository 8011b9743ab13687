#include "model/layout.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ROOM 192

/* Finds and checks the tensors below one prefix; the first error stays. */
struct finder {
    const struct k3_tensors *tensors;
    char name[NAME_ROOM];
    size_t base; /* length of the prefix in `name` */
    const struct k3_tensor *last; /* found; an expert's tensors stand beside each other in a file */
    uint64_t used;
    k3_status status;
    k3_error *err;
};

static void set_base(struct finder *f, const char *prefix, long layer) {
    int n = layer < 0 ? snprintf(f->name, sizeof f->name, "%s", prefix)
                      : snprintf(f->name, sizeof f->name, "%smodel.layers.%ld.", prefix, layer);
    f->base = (size_t)n;
}

/* Appends a part to the first `at` bytes of the name; returns the new length. */
static size_t append(struct finder *f, size_t at, const char *part) {
    size_t n = strlen(part);
    if (at + n >= sizeof f->name) n = 0; /* cannot happen: all parts are ours and short */
    memcpy(f->name + at, part, n);
    return at + n;
}

static const struct k3_tensor *look_up(struct finder *f, size_t length) {
    const struct k3_tensor *t = k3_tensors_find_near(f->tensors, f->last, f->name, length);
    if (t) f->last = t;
    return t;
}

static const char *file_of(const struct finder *f, const struct k3_tensor *t) {
    return k3_tensors_shard(f->tensors, t->shard)->name;
}

static void missing(struct finder *f, size_t length) {
    if (f->status) return;
    f->status = k3_fail(f->err, K3_ERR_FORMAT, "%s: tensor %.*s is missing", k3_tensors_dir(f->tensors), (int)length,
                        f->name);
}

static void wrong(struct finder *f, const struct k3_tensor *t, const char *needed) {
    char shape[256];
    size_t n = 0;
    if (f->status) return;
    shape[0] = 0;
    for (uint8_t i = 0; i < t->rank && n < sizeof shape - 32; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRIu64, i ? ", " : "", t->shape[i]);
    f->status = k3_fail(f->err, K3_ERR_FORMAT, "%s: tensor %.*s is %s [%s]: %s is needed", file_of(f, t),
                        (int)t->name_length, t->name, k3_dtype_name(t), shape, needed);
}

static bool is_float(const struct k3_tensor *t) {
    return t->dtype == K3_DTYPE_BF16 || t->dtype == K3_DTYPE_F16 || t->dtype == K3_DTYPE_F32;
}

static enum k3_weight_type weight_type(const struct k3_tensor *t) {
    return t->dtype == K3_DTYPE_BF16 ? K3_WEIGHT_BF16 : t->dtype == K3_DTYPE_F16 ? K3_WEIGHT_F16 : K3_WEIGHT_F32;
}

static void check_matrix(struct finder *f, const struct k3_tensor *t, bool floats, uint64_t rows, uint64_t cols) {
    char needed[96];
    if (t->rank == 2 && t->shape[0] == rows && t->shape[1] == cols && (floats ? is_float(t) : t->dtype == K3_DTYPE_U8))
        return;
    snprintf(needed, sizeof needed, "%s [%" PRIu64 ", %" PRIu64 "]", floats ? "BF16, F16 or F32" : "U8", rows, cols);
    wrong(f, t, needed);
}

/* Takes room in a resident. */
static uint64_t place(uint64_t *resident, uint64_t bytes) {
    uint64_t at = *resident;
    *resident = k3_round_up(at + bytes, K3_ALIGN);
    return at;
}

/* The linear NAME, whose full name is in f->name[0..length): NAME.weight, or packed codes and scales. */
static struct k3_matrix matrix_at(struct finder *f, size_t length, uint32_t rows, uint32_t cols, uint64_t *resident,
                                  uint64_t *family) {
    struct k3_matrix m = {.rows = rows, .cols = cols};
    if (f->status) return m;
    size_t end = append(f, length, ".weight_packed");
    m.tensor = look_up(f, end);
    if (!m.tensor) {
        end = append(f, length, ".weight");
        m.tensor = look_up(f, end);
        if (!m.tensor) {
            missing(f, end);
            return m;
        }
        check_matrix(f, m.tensor, true, rows, cols);
        m.type = weight_type(m.tensor);
    } else {
        if (cols % 32) wrong(f, m.tensor, "an input width that is a multiple of 32");
        else check_matrix(f, m.tensor, false, rows, cols / 2);
        end = append(f, length, ".weight_scale");
        m.scale = look_up(f, end);
        if (m.scale) check_matrix(f, m.scale, false, rows, cols / 32);
        else missing(f, end);
        m.type = K3_WEIGHT_MXFP4;
    }
    if (f->status) return m;
    m.at = place(resident, m.tensor->bytes);
    *family += m.tensor->bytes + (m.scale ? m.scale->bytes : 0);
    if (m.scale) m.scale_at = place(resident, m.scale->bytes);
    f->used += m.scale ? 2 : 1;
    return m;
}

static struct k3_matrix matrix(struct finder *f, const char *name, uint32_t rows, uint32_t cols, uint64_t *resident,
                               uint64_t *family) {
    return matrix_at(f, append(f, f->base, name), rows, cols, resident, family);
}

/* A small tensor; `exact`: it holds `count` values, else at least that many. */
static struct k3_vector vector(struct finder *f, const char *name, uint32_t count, bool exact, uint64_t *family) {
    struct k3_vector v = {.count = count};
    char needed[64];
    if (f->status) return v;
    size_t end = append(f, f->base, name);
    uint64_t n = 1;
    v.tensor = look_up(f, end);
    if (!v.tensor) {
        missing(f, end);
        return v;
    }
    for (uint8_t i = 0; i < v.tensor->rank; i++) n *= v.tensor->shape[i]; /* no overflow: the reader checked it */
    if (!is_float(v.tensor) || (exact ? n != count : n < count)) {
        snprintf(needed, sizeof needed, "BF16, F16 or F32 with %s%u values", exact ? "" : "at least ", count);
        wrong(f, v.tensor, needed);
    }
    *family += v.tensor->bytes;
    f->used++;
    return v;
}

static struct k3_vector norm(struct finder *f, const char *name, uint32_t count, uint64_t *family) {
    return vector(f, name, count, true, family);
}

/* Convolution weights: [C, width] or [C, 1, width]. */
static struct k3_vector taps(struct finder *f, const char *name, const struct k3_config *c, uint64_t *family) {
    uint32_t channels = c->kda_heads * c->kda_head_dim;
    struct k3_vector v = vector(f, name, channels * c->conv_width, true, family);
    const struct k3_tensor *t = v.tensor;
    char needed[64];
    if (f->status) return v;
    bool flat = t->rank == 2 && t->shape[0] == channels, deep = t->rank == 3 && t->shape[0] == channels && t->shape[1] == 1;
    if (!flat && !deep) {
        snprintf(needed, sizeof needed, "[%u, %u] or [%u, 1, %u]", channels, c->conv_width, channels, c->conv_width);
        wrong(f, t, needed);
    }
    return v;
}

static void find_kda(struct finder *f, const struct k3_config *c, struct k3_layer_layout *l, uint64_t *bytes) {
    struct k3_kda_layout *a = &l->kda;
    uint32_t d = c->hidden_size, k = c->kda_head_dim, h = c->kda_heads, width = h * k;
    uint64_t *r = &l->trunk_bytes;
    a->q = matrix(f, "self_attn.q_proj", width, d, r, bytes);
    a->k = matrix(f, "self_attn.k_proj", width, d, r, bytes);
    a->v = matrix(f, "self_attn.v_proj", width, d, r, bytes);
    a->f_a = matrix(f, "self_attn.f_a_proj", k, d, r, bytes);
    a->f_b = matrix(f, "self_attn.f_b_proj", width, k, r, bytes);
    a->b = matrix(f, "self_attn.b_proj", h, d, r, bytes);
    if (c->full_rank_gate) {
        a->g = matrix(f, "self_attn.g_proj", width, d, r, bytes);
    } else {
        a->g_a = matrix(f, "self_attn.g_a_proj", k, d, r, bytes);
        a->g_b = matrix(f, "self_attn.g_b_proj", width, k, r, bytes);
    }
    a->o = matrix(f, "self_attn.o_proj", d, width, r, bytes);
    a->q_conv = taps(f, "self_attn.q_conv1d.weight", c, bytes);
    a->k_conv = taps(f, "self_attn.k_conv1d.weight", c, bytes);
    a->v_conv = taps(f, "self_attn.v_conv1d.weight", c, bytes);
    a->a_log = vector(f, "self_attn.A_log", h, false, bytes); /* released padded to head_dim entries */
    a->dt_bias = norm(f, "self_attn.dt_bias", width, bytes);
    a->o_norm = norm(f, "self_attn.o_norm.weight", k, bytes);
}

static void find_mla(struct finder *f, const struct k3_config *c, struct k3_layer_layout *l, uint64_t *bytes) {
    struct k3_mla_layout *a = &l->mla;
    uint32_t d = c->hidden_size, query = c->heads * (c->nope_dim + c->rope_dim), value = c->heads * c->v_dim;
    uint64_t *r = &l->trunk_bytes;
    if (c->q_lora_rank) {
        a->q_a = matrix(f, "self_attn.q_a_proj", c->q_lora_rank, d, r, bytes);
        a->q_a_norm = norm(f, "self_attn.q_a_layernorm.weight", c->q_lora_rank, bytes);
        a->q_b = matrix(f, "self_attn.q_b_proj", query, c->q_lora_rank, r, bytes);
    } else {
        a->q = matrix(f, "self_attn.q_proj", query, d, r, bytes);
    }
    a->kv_a = matrix(f, "self_attn.kv_a_proj_with_mqa", c->kv_lora_rank + c->rope_dim, d, r, bytes);
    a->kv_a_norm = norm(f, "self_attn.kv_a_layernorm.weight", c->kv_lora_rank, bytes);
    a->kv_b = matrix(f, "self_attn.kv_b_proj", c->heads * (c->nope_dim + c->v_dim), c->kv_lora_rank, r, bytes);
    if (c->mla_output_gate) a->g = matrix(f, "self_attn.g_proj", value, d, r, bytes);
    a->o = matrix(f, "self_attn.o_proj", d, value, r, bytes);
}

static struct k3_mlp_layout find_mlp(struct finder *f, const char *name, uint32_t width, uint32_t d, uint64_t *resident,
                                     uint64_t *bytes) {
    struct k3_mlp_layout m;
    size_t base = f->base;
    f->base = append(f, base, name);
    m.gate = matrix(f, "gate_proj", width, d, resident, bytes);
    m.up = matrix(f, "up_proj", width, d, resident, bytes);
    m.down = matrix(f, "down_proj", d, width, resident, bytes);
    f->base = base;
    return m;
}

static struct k3_expert_layout find_expert(struct finder *f, const struct k3_config *c, uint32_t e, uint64_t *bytes) {
    struct k3_expert_layout x = {.bytes = 0};
    uint32_t in = c->latent_size ? c->latent_size : c->hidden_size, ff = c->moe_intermediate_size;
    char digits[16];
    size_t base = f->base, i = sizeof digits - 1;
    digits[i] = 0;
    digits[--i] = '.';
    do digits[--i] = (char)('0' + e % 10);
    while (e /= 10);
    f->base = append(f, append(f, base, "block_sparse_moe.experts."), digits + i);
    x.w1 = matrix(f, "w1", ff, in, &x.bytes, bytes);
    x.w2 = matrix(f, "w2", in, ff, &x.bytes, bytes);
    x.w3 = matrix(f, "w3", ff, in, &x.bytes, bytes);
    f->base = base;
    return x;
}

/* The layer's own number of experts: the rows of its router (pruned checkpoints differ by layer). */
static uint32_t count_experts(struct finder *f, const struct k3_config *c) {
    char needed[96];
    size_t end = append(f, f->base, "block_sparse_moe.gate.weight");
    const struct k3_tensor *t = look_up(f, end);
    if (!t) t = look_up(f, append(f, f->base, "block_sparse_moe.gate.weight_packed"));
    if (!t) {
        missing(f, append(f, f->base, "block_sparse_moe.gate.weight"));
        return 0;
    }
    if (t->rank == 2 && t->shape[0] >= c->top_k && t->shape[0] <= c->experts && t->shape[0] % c->expert_groups == 0 &&
        c->top_k <= t->shape[0] / c->expert_groups * c->topk_group)
        return (uint32_t)t->shape[0];
    snprintf(needed, sizeof needed, "a row for each of %u to %u experts", c->top_k, c->experts);
    wrong(f, t, needed);
    return 0;
}

/* transformers' own class stores all experts of a layer as one tensor, under other names. */
static void refuse_fused(struct finder *f) {
    static const char *const names[] = {"block_sparse_moe.experts.0.w1.weight", "block_sparse_moe.experts.0.w1.weight_packed",
                                        "block_sparse_moe.experts.1.w1.weight", "block_sparse_moe.experts.1.w1.weight_packed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (look_up(f, append(f, f->base, names[i]))) return;
    f->status = k3_fail(f->err, K3_ERR_UNSUPPORTED,
                        "%s: no tensor %.*sblock_sparse_moe.experts.0.w1.*: experts under other names (fused into one "
                        "tensor?) cannot be read", k3_tensors_dir(f->tensors), (int)f->base, f->name);
}

static void find_moe(struct finder *f, const struct k3_config *c, struct k3_layer_layout *l, struct k3_bytes *b) {
    struct k3_moe_layout *m = &l->moe;
    uint32_t d = c->hidden_size;
    uint64_t *r = &l->trunk_bytes;
    if (f->status) return;
    m->experts = count_experts(f, c);
    if (!f->status) refuse_fused(f);
    if (f->status) return;
    m->router = matrix(f, "block_sparse_moe.gate", m->experts, d, r, &b->router);
    m->router_bias = norm(f, "block_sparse_moe.gate.e_score_correction_bias", m->experts, &b->router);
    if (c->latent_size) {
        m->latent_down = matrix(f, "block_sparse_moe.routed_expert_down_proj", c->latent_size, d, r, &b->latent);
        m->latent_up = matrix(f, "block_sparse_moe.routed_expert_up_proj", d, c->latent_size, r, &b->latent);
    }
    if (c->latent_norm) m->latent_norm = norm(f, "block_sparse_moe.routed_expert_norm.weight", c->latent_size, &b->latent);
    if (c->shared_experts)
        m->shared = find_mlp(f, "block_sparse_moe.shared_experts.", c->shared_experts * c->moe_intermediate_size, d, r,
                             &b->shared);
    m->expert = k3_array(m->experts, sizeof *m->expert);
    if (!m->expert) f->status = k3_fail(f->err, K3_ERR_MEMORY, "out of memory");
    for (uint32_t e = 0; e < m->experts && !f->status; e++) m->expert[e] = find_expert(f, c, e, &b->experts);
}

static void find_layer(struct finder *f, const struct k3_config *c, uint32_t layer, struct k3_layer_layout *l,
                       struct k3_bytes *b) {
    uint32_t d = c->hidden_size;
    l->is_kda = c->is_kda[layer];
    l->is_moe = k3_config_is_moe(c, layer);
    l->input_norm = norm(f, "input_layernorm.weight", d, &b->norms);
    l->post_norm = norm(f, "post_attention_layernorm.weight", d, &b->norms);
    if (c->attn_res_block_size) {
        /* Layer 0 mixes nothing before attention: its pair is stored in the release and never used. */
        if (layer > 0 || look_up(f, append(f, f->base, "self_attention_res_norm.weight"))) {
            l->attn_res_norm = norm(f, "self_attention_res_norm.weight", d, &b->norms);
            l->attn_res_proj = norm(f, "self_attention_res_proj.weight", d, &b->norms);
        }
        l->mlp_res_norm = norm(f, "mlp_res_norm.weight", d, &b->norms);
        l->mlp_res_proj = norm(f, "mlp_res_proj.weight", d, &b->norms);
    }
    if (l->is_kda) find_kda(f, c, l, &b->kda);
    else find_mla(f, c, l, &b->mla);
    if (l->is_moe) find_moe(f, c, l, b);
    else l->dense = find_mlp(f, "mlp.", c->intermediate_size, d, &l->trunk_bytes, &b->dense);
}

static void find_ends(struct finder *f, const struct k3_config *c, struct k3_layout *l) {
    uint32_t d = c->hidden_size;
    l->embedding = matrix(f, "model.embed_tokens", c->vocab_size, d, &l->embedding_bytes, &l->bytes.embedding);
    l->norm = norm(f, "model.norm.weight", d, &l->bytes.norms);
    if (c->attn_res_block_size) {
        l->output_res_norm = norm(f, "model.output_attn_res_norm.weight", d, &l->bytes.norms);
        l->output_res_proj = norm(f, "model.output_attn_res_proj.weight", d, &l->bytes.norms);
    }
    bool stored = look_up(f, append(f, f->base, "lm_head.weight")) || look_up(f, append(f, f->base, "lm_head.weight_packed"));
    if (stored && !c->tie_embeddings) l->head = matrix(f, "lm_head", c->vocab_size, d, &l->head_bytes, &l->bytes.head);
}

/* Layers are found in parallel: half a million look-ups in a large table wait for memory. */
struct search {
    const struct k3_config *config;
    const struct k3_tensors *tensors;
    const char *prefix;
    struct k3_layout *out;
    struct found {
        struct k3_bytes bytes;
        uint64_t used;
        k3_error err;
        k3_status status;
    } *found; /* [layers] */
};

static void search_share(struct k3_team *team, void *arg) {
    struct search *s = arg;
    for (uint32_t i = (uint32_t)team->rank; i < s->config->layers; i += (uint32_t)team->size) {
        struct finder f = {.tensors = s->tensors, .err = &s->found[i].err};
        set_base(&f, s->prefix, (long)i);
        find_layer(&f, s->config, i, &s->out->layer[i], &s->found[i].bytes);
        s->found[i].status = f.status;
        s->found[i].used = f.used;
    }
}

static void add_bytes(struct k3_bytes *to, const struct k3_bytes *b) {
    to->kda += b->kda;
    to->mla += b->mla;
    to->dense += b->dense;
    to->shared += b->shared;
    to->latent += b->latent;
    to->router += b->router;
    to->norms += b->norms;
    to->experts += b->experts;
}

/* Sums up what the layers found; the first failing layer speaks. */
static k3_status collect(struct search *s, k3_error *err) {
    for (uint32_t i = 0; i < s->config->layers; i++) {
        if (s->found[i].status) {
            if (err) *err = s->found[i].err;
            return s->found[i].status;
        }
        add_bytes(&s->out->bytes, &s->found[i].bytes);
        s->out->tensors_used += s->found[i].used;
    }
    return K3_OK;
}

static uint64_t stored(const struct k3_matrix *m) {
    return m->tensor->bytes + (m->scale ? m->scale->bytes : 0);
}

static void sum_up(const struct k3_config *c, const struct k3_tensors *t, struct k3_layout *l) {
    const struct k3_bytes *b = &l->bytes;
    uint64_t all = 0, trunk = b->kda + b->mla + b->dense + b->shared + b->latent + b->router + b->norms;
    for (uint64_t i = 0; i < k3_tensors_count(t); i++) all += k3_tensors_at(t, i)->bytes;
    l->bytes.ignored = all - trunk - b->experts - b->head - b->embedding;
    l->token_bytes = trunk + (b->head ? b->head : b->embedding) + b->embedding / c->vocab_size;
    for (uint32_t i = 0; i < c->layers; i++) {
        if (!l->layer[i].is_moe) continue;
        const struct k3_expert_layout *e = l->layer[i].moe.expert;
        l->token_bytes += c->top_k * (stored(&e->w1) + stored(&e->w2) + stored(&e->w3));
    }
}

k3_status k3_layout_make(const struct k3_config *c, const struct k3_tensors *t, struct k3_layout *out, k3_error *err) {
    static const char nested[] = "language_model.model.norm.weight";
    static const char nested_too[] = "language_model.model.embed_tokens.weight";
    struct search s = {.config = c, .tensors = t, .out = out};
    struct finder f = {.tensors = t, .err = err};
    *out = (struct k3_layout){.layer = k3_array(c->layers, sizeof *out->layer)};
    s.found = k3_array(c->layers, sizeof *s.found);
    /* Either is enough: the other one may be what is missing. */
    bool is_nested = k3_tensors_find(t, nested, sizeof nested - 1) || k3_tensors_find(t, nested_too, sizeof nested_too - 1);
    s.prefix = is_nested ? "language_model." : "";
    if (!out->layer || !s.found) {
        f.status = k3_fail(err, K3_ERR_MEMORY, "out of memory");
        goto out;
    }
    set_base(&f, s.prefix, -1);
    find_ends(&f, c, out);
    out->tensors_used = f.used;
    if (f.status) goto out;
    k3_team_run(k3_threads_default(), search_share, &s);
    f.status = collect(&s, err);
    if (!f.status) sum_up(c, t, out);
out:
    free(s.found);
    if (f.status) k3_layout_clear(c, out);
    return f.status;
}

void k3_layout_clear(const struct k3_config *c, struct k3_layout *l) {
    if (l->layer)
        for (uint32_t i = 0; i < c->layers; i++) free(l->layer[i].moe.expert);
    free(l->layer);
    l->layer = NULL;
}
