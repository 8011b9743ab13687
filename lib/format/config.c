#include "format/config.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LAYERS 4096
#define MAX_DIM (1u << 20)    /* of any one size: keeps products of two far from overflow */
#define MAX_VOCAB (1u << 24)
#define MAX_EXPERTS (1u << 16)

/* Reads fields of one object; the first error stays. */
struct reader {
    const char *file;
    const char *where; /* "" or the path of `object`, with a dot */
    const json_t *object;
    k3_status status;
    k3_error *err;
};


static void __attribute__((format(printf, 4, 5))) refuse(struct reader *r, k3_status code, const char *name,
                                                        const char *format, ...) {
    char text[512];
    va_list args;
    if (r->status) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->status = k3_fail(r->err, code, "%s: %s%s: %s", r->file, r->where, name, text);
}

/* The field, or NULL if it is absent or null. */
static const json_t *field(const struct reader *r, const char *name) {
    const json_t *v = json_object_get(r->object, name);
    return json_is_null(v) ? NULL : v;
}

static bool has(const struct reader *r, const char *name) {
    return field(r, name) != NULL;
}

static uint32_t integer(struct reader *r, const char *name, const json_t *v, uint32_t min, uint32_t max) {
    if (!json_is_integer(v)) {
        refuse(r, K3_ERR_FORMAT, name, "an integer is needed");
        return min;
    }
    json_int_t n = json_integer_value(v);
    if (n < (json_int_t)min || n > (json_int_t)max) {
        refuse(r, K3_ERR_FORMAT, name, "%" JSON_INTEGER_FORMAT " is not between %u and %u", n, min, max);
        return min;
    }
    return (uint32_t)n;
}

static uint32_t required(struct reader *r, const char *name, uint32_t max) {
    const json_t *v = field(r, name);
    if (v) return integer(r, name, v, 1, max);
    refuse(r, K3_ERR_FORMAT, name, "missing");
    return 1;
}

static uint32_t optional(struct reader *r, const char *name, uint32_t absent, uint32_t min, uint32_t max) {
    const json_t *v = field(r, name);
    return v ? integer(r, name, v, min, max) : absent;
}

static bool boolean(struct reader *r, const char *name, bool absent) {
    const json_t *v = field(r, name);
    if (!v) return absent;
    if (!json_is_boolean(v)) refuse(r, K3_ERR_FORMAT, name, "true or false is needed");
    return json_is_true(v);
}

static float number(struct reader *r, const char *name, double absent, double min, double max) {
    const json_t *v = field(r, name);
    if (!v) return (float)absent;
    double x = json_number_value(v);
    if (!json_is_number(v)) refuse(r, K3_ERR_FORMAT, name, "a number is needed");
    else if (!(x >= min && x <= max)) refuse(r, K3_ERR_FORMAT, name, "%g is not between %g and %g", x, min, max);
    return (float)x;
}

/* A string that must be one of two; returns whether it is the second. */
static bool choice(struct reader *r, const char *name, const char *first, const char *second) {
    const json_t *v = field(r, name);
    const char *s = json_string_value(v);
    if (!v) return false;
    if (!s) refuse(r, K3_ERR_FORMAT, name, "a string is needed");
    else if (strcmp(s, first) && strcmp(s, second))
        refuse(r, K3_ERR_UNSUPPORTED, name, "\"%s\" is neither \"%s\" nor \"%s\"", s, first, second);
    return s && !strcmp(s, second);
}

static struct reader inner(struct reader *r, const char *name, const char *where) {
    const json_t *v = field(r, name);
    if (!json_is_object(v)) refuse(r, K3_ERR_FORMAT, name, v ? "an object is needed" : "missing");
    return (struct reader){r->file, where, v, r->status, r->err};
}

static void read_sizes(struct reader *r, struct k3_config *c) {
    c->layers = required(r, "num_hidden_layers", MAX_LAYERS);
    c->hidden_size = required(r, "hidden_size", MAX_DIM);
    c->vocab_size = required(r, "vocab_size", MAX_VOCAB);
    c->intermediate_size = required(r, "intermediate_size", MAX_DIM);
    c->rms_norm_eps = number(r, "rms_norm_eps", 1e-6, 0, 1);
    c->activation = choice(r, "hidden_act", "silu", "situ") ? K3_ACT_SITU : K3_ACT_SILU;
    c->situ_beta = number(r, "activation_situ_beta", 1, 0, 1e6);
    if (c->situ_beta == 0) c->situ_beta = 1;
    c->situ_linear_beta = number(r, "activation_situ_linear_beta", 0, 1e-6, 1e6);
    c->attn_res_block_size = optional(r, "attn_res_block_size", 0, 1, MAX_LAYERS);
    c->tie_embeddings = boolean(r, "tie_word_embeddings", false);
}

static void read_mla(struct reader *r, struct k3_config *c) {
    c->heads = required(r, "num_attention_heads", MAX_DIM);
    c->q_lora_rank = optional(r, "q_lora_rank", 0, 1, MAX_DIM);
    c->kv_lora_rank = required(r, "kv_lora_rank", MAX_DIM);
    c->nope_dim = required(r, "qk_nope_head_dim", MAX_DIM);
    c->rope_dim = required(r, "qk_rope_head_dim", MAX_DIM);
    c->v_dim = required(r, "v_head_dim", MAX_DIM);
    c->mla_output_gate = boolean(r, "mla_use_output_gate", false);
    if (!boolean(r, "mla_use_nope", false))
        refuse(r, K3_ERR_UNSUPPORTED, "mla_use_nope", "must be true: rotary embeddings are not part of these models");
    uint64_t query = (uint64_t)c->heads * (c->nope_dim + c->rope_dim), value = (uint64_t)c->heads * (c->nope_dim + c->v_dim);
    if (query > INT32_MAX || value > INT32_MAX)
        refuse(r, K3_ERR_FORMAT, "num_attention_heads", "%u heads of these sizes are too many", c->heads);
}

/* One of the two lists of layers, which count from 1. */
static void read_list(struct reader *r, const char *name, const struct k3_config *c, uint8_t *seen, uint8_t mark) {
    const json_t *list = field(r, name), *v;
    size_t i;
    if (!json_is_array(list)) {
        refuse(r, K3_ERR_FORMAT, name, list ? "a list is needed" : "missing");
        return;
    }
    json_array_foreach((json_t *)list, i, v) {
        uint32_t layer = integer(r, name, v, 1, c->layers);
        if (r->status) return;
        if (seen[layer - 1] == mark) refuse(r, K3_ERR_FORMAT, name, "layer %u stands in it twice", layer);
        else if (seen[layer - 1])
            refuse(r, K3_ERR_FORMAT, name, "layer %u stands in kda_layers and full_attn_layers", layer);
        seen[layer - 1] = mark;
    }
}

static void read_layer_kinds(struct reader *r, struct k3_config *c) {
    uint8_t *seen = k3_array(c->layers, 1);
    c->is_kda = k3_array(c->layers, sizeof *c->is_kda);
    if (!seen || !c->is_kda) {
        r->status = k3_fail(r->err, K3_ERR_MEMORY, "out of memory");
        free(seen);
        return;
    }
    read_list(r, "kda_layers", c, seen, 1);
    if (!r->status) read_list(r, "full_attn_layers", c, seen, 2);
    for (uint32_t i = 0; i < c->layers && !r->status; i++) {
        if (!seen[i]) refuse(r, K3_ERR_FORMAT, "kda_layers", "layer %u is neither here nor in full_attn_layers", i + 1);
        c->is_kda[i] = seen[i] == 1;
    }
    free(seen);
}

static void read_kda(struct reader *r, struct k3_config *c) {
    c->kda_heads = required(r, "num_heads", MAX_DIM);
    c->kda_head_dim = required(r, "head_dim", 4096);
    c->conv_width = required(r, "short_conv_kernel_size", 64);
    c->gate_bounded = has(r, "gate_lower_bound");
    c->gate_lower_bound = number(r, "gate_lower_bound", 0, -1e4, 0);
    if (c->gate_bounded && c->gate_lower_bound == 0)
        refuse(r, K3_ERR_FORMAT, "gate_lower_bound", "0 would never forget: a negative number is needed");
    c->full_rank_gate = boolean(r, "use_full_rank_gate", false);
    if ((uint64_t)c->kda_heads * c->kda_head_dim * c->conv_width > INT32_MAX)
        refuse(r, K3_ERR_FORMAT, "num_heads", "%u heads of %u are too many", c->kda_heads, c->kda_head_dim);
    if (!r->status) read_layer_kinds(r, c);
}

static void read_router(struct reader *r, struct k3_config *c) {
    c->router_softmax = choice(r, "moe_router_activation_func", "sigmoid", "softmax");
    c->renormalize = boolean(r, "moe_renormalize", true);
    c->routed_scaling = number(r, "routed_scaling_factor", 1, -1e6, 1e6);
    c->expert_groups = optional(r, "num_expert_group", 1, 1, MAX_EXPERTS);
    c->topk_group = optional(r, "topk_group", 1, 1, MAX_EXPERTS);
    if (r->status) return;
    if (c->top_k > c->experts)
        refuse(r, K3_ERR_FORMAT, "num_experts_per_token", "%u is more than num_experts, %u", c->top_k, c->experts);
    else if (c->experts % c->expert_groups)
        refuse(r, K3_ERR_FORMAT, "num_expert_group", "%u does not divide num_experts, %u", c->expert_groups, c->experts);
    else if (c->topk_group > c->expert_groups)
        refuse(r, K3_ERR_FORMAT, "topk_group", "%u is more than num_expert_group, %u", c->topk_group, c->expert_groups);
    else if (c->top_k > c->experts / c->expert_groups * c->topk_group)
        refuse(r, K3_ERR_FORMAT, "num_experts_per_token", "%u is more than topk_group groups hold, %u", c->top_k,
               c->experts / c->expert_groups * c->topk_group);
}

static void read_moe(struct reader *r, struct k3_config *c) {
    c->experts = optional(r, "num_experts", 0, 1, MAX_EXPERTS);
    c->expert_groups = c->topk_group = c->moe_every = 1;
    if (!c->experts) return;
    c->top_k = required(r, "num_experts_per_token", 1024);
    c->moe_intermediate_size = required(r, "moe_intermediate_size", MAX_DIM);
    c->latent_size = optional(r, "routed_expert_hidden_size", 0, 1, MAX_DIM);
    c->latent_norm = c->latent_size && boolean(r, "latent_moe_use_norm", false);
    c->shared_experts = optional(r, "num_shared_experts", 0, 0, 1024);
    c->first_dense = optional(r, "first_k_dense_replace", 0, 0, MAX_LAYERS);
    c->moe_every = optional(r, "moe_layer_freq", 1, 1, MAX_LAYERS);
    read_router(r, c);
}

static void read_quantization(struct reader *r, struct k3_config *c) {
    if (!has(r, "quantization_config")) return;
    struct reader q = inner(r, "quantization_config", "quantization_config.");
    const char *format = json_string_value(field(&q, "format"));
    if (!q.status && !format) refuse(&q, K3_ERR_FORMAT, "format", "a string is needed");
    else if (format && strcmp(format, "mxfp4-pack-quantized"))
        refuse(&q, K3_ERR_UNSUPPORTED, "format", "\"%s\" is unknown: only \"mxfp4-pack-quantized\" is", format);
    c->quantized = !q.status;
    r->status = q.status;
}

/* eos_token_id: one id or a list. */
static void read_eos(struct reader *r, struct k3_config *c) {
    const json_t *v = field(r, "eos_token_id");
    if (!v || r->status) return;
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    int32_t *ids = k3_array(n, sizeof *ids);
    if (!ids) {
        r->status = k3_fail(r->err, K3_ERR_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)integer(r, "eos_token_id", json_is_array(v) ? json_array_get(v, i) : v, 0, INT32_MAX);
    free(c->eos);
    c->eos = ids;
    c->eos_count = n;
}

static void read_architecture(struct reader *r, struct k3_config *c, bool nested) {
    const char *type = json_string_value(field(r, "model_type"));
    c->architecture = nested ? "kimi_k3" : "kimi_linear";
    if (!type) refuse(r, K3_ERR_FORMAT, "model_type", "missing");
    else if (strcmp(type, "kimi_k3") && strcmp(type, "kimi_linear"))
        refuse(r, K3_ERR_UNSUPPORTED, "model_type", "\"%s\" is neither \"kimi_k3\" nor \"kimi_linear\"", type);
    else if (!nested && !strcmp(type, "kimi_k3")) refuse(r, K3_ERR_FORMAT, "text_config", "missing");
}

static void read_all(struct reader *outer, struct k3_config *c) {
    bool nested = has(outer, "text_config");
    read_architecture(outer, c, nested);
    struct reader text = nested ? inner(outer, "text_config", "text_config.") : *outer;
    if (text.status) {
        outer->status = text.status;
        return;
    }
    read_sizes(&text, c);
    read_mla(&text, c);
    read_moe(&text, c);
    struct reader linear = inner(&text, "linear_attn_config", nested ? "text_config.linear_attn_config." : "linear_attn_config.");
    if (!linear.status) read_kda(&linear, c);
    text.status = linear.status;
    read_eos(&text, c);
    if (!text.status) read_quantization(&text, c);
    outer->status = text.status;
    if (nested && !outer->status) { /* what stands at the outer level counts as well */
        c->tie_embeddings |= boolean(outer, "tie_word_embeddings", false);
        read_eos(outer, c);
        read_quantization(outer, c);
    }
}

static json_t *load_text(const char *file, const char *text, size_t length, k3_error *err) {
    json_error_t where;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (!root) k3_fail(err, K3_ERR_FORMAT, "%s:%d: %s", file, where.line, where.text);
    else if (!json_is_object(root)) {
        k3_fail(err, K3_ERR_FORMAT, "%s: a JSON object is needed", file);
        json_decref(root);
        return NULL;
    }
    return root;
}

k3_status k3_config_parse(const char *file, const char *text, size_t length, struct k3_config *out, k3_error *err) {
    *out = (struct k3_config){.layers = 0};
    json_t *root = load_text(file, text, length, err);
    if (!root) return K3_ERR_FORMAT;
    struct reader r = {file, "", root, K3_OK, err};
    read_all(&r, out);
    json_decref(root);
    if (r.status) k3_config_clear(out);
    return r.status;
}

/* generation_config.json's eos ids come first; the file may be absent. */
static k3_status read_generation(const char *dir, struct k3_config *c, k3_error *err) {
    char path[4096];
    char *text;
    size_t length;
    snprintf(path, sizeof path, "%s/generation_config.json", dir);
    if (!k3_file_exists(path)) return K3_OK;
    k3_status status = k3_file_read_text(path, &text, &length, err);
    if (status) return status;
    json_t *root = load_text(path, text, length, err);
    free(text);
    if (!root) return K3_ERR_FORMAT;
    struct reader r = {path, "", root, K3_OK, err};
    read_eos(&r, c);
    json_decref(root);
    return r.status;
}

k3_status k3_config_read(const char *dir, struct k3_config *out, k3_error *err) {
    char path[4096];
    char *text;
    size_t length;
    int n = snprintf(path, sizeof path, "%s/config.json", dir);
    if (n < 0 || (size_t)n >= sizeof path - 16) return k3_fail(err, K3_ERR_ARGUMENT, "the path is too long");
    k3_status status = k3_file_read_text(path, &text, &length, err);
    if (status) return status;
    status = k3_config_parse(path, text, length, out, err);
    free(text);
    if (!status) status = read_generation(dir, out, err);
    if (status) k3_config_clear(out);
    return status;
}

void k3_config_clear(struct k3_config *c) {
    free(c->is_kda);
    free(c->eos);
    c->is_kda = NULL;
    c->eos = NULL;
    c->eos_count = 0;
}

bool k3_config_is_moe(const struct k3_config *c, uint32_t layer) {
    return c->experts && layer >= c->first_dense && layer % c->moe_every == 0;
}
