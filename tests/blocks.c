/* The golden operations that are more than one kernel: the delta rule over many tokens, attention,
 * routing, and whole sub-layers run through a model that is written to disk and opened. */
#include "model/kda_chunk.h"
#include "model/mla_attend.h"
#include "model/router.h"
#include "run/session.h"
#include "tests/checkpoint_writer.h"
#include "tests/golden.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *goldens;

/* ---- the delta rule ------------------------------------------------------------------------- */

typedef void kda_form(const struct k3_kernels *, const struct k3_kda_run *, float *);

/* Runs one head in pieces of `piece` tokens; q, k are raw. */
static void run_head(const struct k3_kernels *kern, kda_form *form, size_t piece, const struct k3_kda_run *all) {
    size_t dim = all->k_dim;
    float *scratch = malloc(k3_kda_run_scratch(dim, dim) * sizeof *scratch);
    for (size_t at = 0; at < all->n; at += piece) {
        struct k3_kda_run r = *all;
        r.q += at * dim, r.k += at * dim, r.v += at * dim, r.g += at * dim, r.beta += at, r.o += at * dim;
        r.n = all->n - at < piece ? all->n - at : piece;
        form(kern, &r, scratch);
    }
    free(scratch);
}

/* [T, H, K] to one head's [T, K]. */
static float *head_of(const struct golden_array *a, size_t h, size_t width) {
    size_t tokens = a->shape[0], heads = a->shape[1];
    float *p = malloc(tokens * width * sizeof *p);
    for (size_t t = 0; t < tokens; t++) memcpy(p + t * width, a->f32 + (t * heads + h) * width, width * sizeof *p);
    return p;
}

static void check_recurrence(const struct golden_case *c, const struct k3_kernels *kern, kda_form *form, size_t piece) {
    struct golden_array q = golden_input(c, "q"), k = golden_input(c, "k"), v = golden_input(c, "v");
    struct golden_array g = golden_input(c, "g"), beta = golden_input(c, "beta"), state = golden_input(c, "state");
    size_t tokens = q.shape[0], heads = q.shape[1], dim = q.shape[2];
    float *o = malloc(q.count * sizeof *o), *of_head = malloc(tokens * dim * sizeof *o);
    for (size_t h = 0; h < heads; h++) {
        float *hq = head_of(&q, h, dim), *hk = head_of(&k, h, dim), *hv = head_of(&v, h, dim);
        float *hg = head_of(&g, h, dim), *hb = head_of(&beta, h, 1);
        for (size_t t = 0; t < tokens; t++) {
            kern->l2_norm(hq + t * dim, hq + t * dim, 1 / sqrtf((float)dim), dim);
            kern->l2_norm(hk + t * dim, hk + t * dim, 1, dim);
        }
        struct k3_kda_run r = {state.f32 + h * dim * dim, hq, hk, hv, hg, hb, of_head, tokens, dim, dim};
        run_head(kern, form, piece, &r);
        for (size_t t = 0; t < tokens; t++)
            memcpy(o + (t * heads + h) * dim, of_head + t * dim, dim * sizeof *o);
        free(hq), free(hk), free(hv), free(hg), free(hb);
    }
    golden_check(c, "o", o, q.count);
    golden_check(c, "state", state.f32, state.count);
    free(o), free(of_head);
    golden_free(&q), golden_free(&k), golden_free(&v), golden_free(&g), golden_free(&beta), golden_free(&state);
}

static void recurrence(const struct golden_case *c, const struct k3_kernels *kern) {
    static const size_t pieces[] = {1, 7, 15, 16, 17, 33, 64};
    check_recurrence(c, kern, k3_kda_run_steps, K3_CHUNK_TOKENS);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        check_recurrence(c, kern, k3_kda_run_chunk, pieces[i]);
        check_recurrence(c, kern, k3_kda_run, pieces[i]);
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

/* A layer's cache with these latents and k_pe, as pages. */
static void fill_cache(struct k3_layer_state *l, const struct golden_array *latent, const struct golden_array *k_pe) {
    size_t n = latent->shape[0], r = latent->shape[1], rope = k_pe->shape[1];
    l->pages = (n + K3_PAGE_TOKENS - 1) / K3_PAGE_TOKENS;
    l->page = calloc(l->pages, sizeof *l->page);
    for (size_t p = 0; p < l->pages; p++) l->page[p].data = calloc(K3_PAGE_TOKENS, (r + rope) * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        float *at = k3_state_cache(l, i, r + rope);
        memcpy(at, latent->f32 + i * r, r * sizeof *at);
        memcpy(at + r, k_pe->f32 + i * rope, rope * sizeof *at);
    }
}

static void attention_form(const struct golden_case *c, const struct k3_kernels *kern, enum k3_mla_form form) {
    struct golden_array q = golden_input(c, "q"), latent = golden_input(c, "latent"), k_pe = golden_input(c, "k_pe");
    struct golden_array kv_b = golden_input(c, "kv_b");
    struct k3_config config = {
        .heads = (uint32_t)q.shape[1],
        .kv_lora_rank = (uint32_t)latent.shape[1],
        .nope_dim = (uint32_t)golden_param(c, "nope", 0),
        .rope_dim = (uint32_t)k_pe.shape[1],
        .v_dim = (uint32_t)golden_param(c, "vdim", 0),
    };
    size_t n = q.shape[0], width = q.shape[1] * q.shape[2], out = n * config.heads * config.v_dim;
    float *identity = calloc(width * width, sizeof *identity), *o = malloc(out * sizeof *o);
    for (size_t i = 0; i < width; i++) identity[i * width + i] = 1; /* the queries are given, not projected */
    struct k3_matrix query = {.type = K3_WEIGHT_F32, .rows = (uint32_t)width, .cols = (uint32_t)width};
    query.at = (uint64_t)((char *)identity - (char *)kv_b.data);
    struct k3_matrix matrix = {.type = K3_WEIGHT_F32, .rows = (uint32_t)kv_b.shape[0], .cols = (uint32_t)kv_b.shape[1]};
    struct k3_layer_state cache = {.pages = 0};
    fill_cache(&cache, &latent, &k_pe);
    struct k3_mla_attend a = {kern, &config, kv_b.data, &matrix, &query, q.f32, &cache,
                              (uint64_t)golden_param(c, "start", 0), n, o};
    float *scratch = malloc(k3_mla_attend_scratch(&config, n) * sizeof *scratch);
    k3_mla_attend(&a, form, 0, 1, scratch); /* heads in two shares */
    k3_mla_attend(&a, form, 1, config.heads, scratch);
    golden_check(c, "y", o, out);
    for (size_t p = 0; p < cache.pages; p++) free(cache.page[p].data);
    free(cache.page), free(scratch), free(identity), free(o);
    golden_free(&q), golden_free(&latent), golden_free(&k_pe), golden_free(&kv_b);
}

static void attention(const struct golden_case *c, const struct k3_kernels *kern) {
    attention_form(c, kern, K3_MLA_ABSORBED);
    attention_form(c, kern, K3_MLA_EXPANDED);
}

/* ---- routing -------------------------------------------------------------------------------- */

static void routing(const struct golden_case *c, const struct k3_kernels *kern) {
    struct golden_array x = golden_input(c, "x"), w = golden_input(c, "weight"), bias = golden_input(c, "bias");
    struct golden_array want = golden_output(c, "ids");
    json_t *params = json_object_get(c->json, "params");
    json_t *renormalize = json_object_get(params, "renormalize");
    size_t tokens = x.shape[0], d = x.shape[1], experts = w.shape[0];
    struct k3_router r = {
        .bias = bias.f32,
        .experts = (uint32_t)experts,
        .top_k = (uint32_t)golden_param(c, "top_k", 0),
        .groups = (uint32_t)golden_param(c, "groups", 1),
        .topk_group = (uint32_t)golden_param(c, "topk_group", 1),
        .softmax = json_is_true(json_object_get(params, "softmax_scores")),
        .renormalize = !renormalize || json_is_true(renormalize),
        .scaling = (float)golden_param(c, "scaling", 1),
    };
    float *scores = malloc(tokens * experts * sizeof *scores), *weights = malloc(want.count * sizeof *weights);
    float *scratch = malloc((experts + r.groups) * sizeof *scratch);
    int32_t *ids = malloc(want.count * sizeof *ids);
    struct k3_matmul m = {scores, experts, x.f32, d, experts, d, tokens};
    kern->matmul_f32(&m, w.f32, d);
    for (size_t t = 0; t < tokens; t++)
        k3_route(kern, &r, scores + t * experts, ids + t * r.top_k, weights + t * r.top_k, scratch);
    ck_assert_msg(!memcmp(ids, want.i32, want.count * sizeof *ids), "%s: other experts", c->name);
    golden_check(c, "weights", weights, want.count);
    free(scores), free(weights), free(scratch), free(ids);
    golden_free(&x), golden_free(&w), golden_free(&bias), golden_free(&want);
}

/* NaN must not break the choice: ids stay valid and distinct. */
START_TEST(routing_of_nan) {
    float scores[5] = {NAN, 1, NAN, NAN, 2}, bias[5] = {0}, weights[4], scratch[6];
    int32_t ids[4];
    struct k3_router r = {bias, 5, 4, 1, 1, false, true, 1};
    k3_route(k3_kernels_find("scalar"), &r, scores, ids, weights, scratch);
    static const int32_t want[4] = {4, 1, 0, 2};
    ck_assert(!memcmp(ids, want, sizeof want));
}
END_TEST

/* ---- whole sub-layers ------------------------------------------------------------------------ */

/* Tensors and settings that a model of one layer must have and this sub-layer does not care about. */
static void fill_in(struct checkpoint_writer *w, size_t d, bool kda, bool moe) {
    static const char *const settings[] = {"num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                           "v_head_dim", "intermediate_size"};
    json_t *lin = json_object_get(w->config, "linear_attn_config");
    if (!lin) json_object_set_new(w->config, "linear_attn_config", lin = json_object());
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (!json_object_get(w->config, settings[i])) json_object_set_new(w->config, settings[i], json_integer(1));
    if (!json_object_get(lin, "num_heads")) {
        json_object_set_new(lin, "num_heads", json_integer(1));
        json_object_set_new(lin, "head_dim", json_integer(1));
        json_object_set_new(lin, "short_conv_kernel_size", json_integer(4));
    }
    json_object_set_new(lin, "kda_layers", kda ? json_pack("[i]", 1) : json_array());
    json_object_set_new(lin, "full_attn_layers", kda ? json_array() : json_pack("[i]", 1));
    json_object_set_new(w->config, "mla_use_nope", json_true());
    json_object_set_new(w->config, "model_type", json_string("kimi_linear"));
    json_object_set_new(w->config, "num_hidden_layers", json_integer(1));
    json_object_set_new(w->config, "hidden_size", json_integer((json_int_t)d));
    json_object_set_new(w->config, "vocab_size", json_integer(2));
    writer_fill(w, "model.embed_tokens.weight", 2, d, 1);
    writer_fill(w, "model.norm.weight", d, 0, 1);
    writer_fill(w, "model.layers.0.input_layernorm.weight", d, 0, 1);
    writer_fill(w, "model.layers.0.post_attention_layernorm.weight", d, 0, 1);
    if (moe) { /* its attention: one MLA head of width 1 */
        writer_fill(w, "model.layers.0.self_attn.q_proj.weight", 2, d, 0);
        writer_fill(w, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight", 2, d, 0);
        writer_fill(w, "model.layers.0.self_attn.kv_a_layernorm.weight", 1, 0, 1);
        writer_fill(w, "model.layers.0.self_attn.kv_b_proj.weight", 2, 1, 0);
        writer_fill(w, "model.layers.0.self_attn.o_proj.weight", d, 1, 0);
    } else {
        writer_fill(w, "model.layers.0.mlp.gate_proj.weight", 1, d, 0);
        writer_fill(w, "model.layers.0.mlp.up_proj.weight", 1, d, 0);
        writer_fill(w, "model.layers.0.mlp.down_proj.weight", d, 1, 0);
    }
}

/* The case's weights as tensors of layer 0; linears as BF16 where asked (their values fit exactly). */
static void add_weights(struct checkpoint_writer *w, const struct golden_case *c, bool as_bf16) {
    const char *name;
    json_t *unused;
    json_object_foreach(json_object_get(c->json, "inputs"), name, unused) {
        if (strncmp(name, "self_attn.", 10) && strncmp(name, "block_sparse_moe.", 17)) continue;
        struct golden_array a = golden_input(c, name);
        char full[256];
        snprintf(full, sizeof full, "model.layers.0.%s", name);
        bool packed = strstr(name, ".weight_packed") || strstr(name, ".weight_scale");
        if (!packed && as_bf16 && strstr(name, "_proj.weight")) {
            uint16_t *half = malloc(a.count * sizeof *half);
            for (size_t i = 0; i < a.count; i++) {
                uint32_t bits;
                memcpy(&bits, a.f32 + i, sizeof bits);
                half[i] = (uint16_t)(bits >> 16);
            }
            writer_add(w, full, "BF16", a.rank, a.shape, half);
            free(half);
        } else {
            writer_add(w, full, packed ? "U8" : "F32", a.rank, a.shape, a.data);
        }
        golden_free(&a);
    }
}

struct block {
    struct k3_step step;
    void (*run)(struct k3_team *, struct k3_step *, uint32_t);
};

static void run_block(struct k3_team *team, void *arg) {
    struct block *b = arg;
    if (team->rank == 0) {
        const void *trunk;
        k3_store_acquire(b->step.model->store, b->step.model->layer[0].trunk, &trunk, NULL);
        b->step.trunk = trunk;
    }
    k3_team_barrier(team);
    b->run(team, &b->step, 0);
}

static k3_model *open_block(const struct golden_case *c, const struct k3_kernels *kern, size_t d, bool as_bf16) {
    struct checkpoint_writer w;
    char dir[64];
    k3_error err;
    k3_model *m = NULL;
    k3_model_options o;
    bool kda = !strcmp(c->op, "kda_block"), moe = !strcmp(c->op, "moe_block");
    writer_init(&w);
    json_decref(w.config);
    w.config = json_deep_copy(json_object_get(json_object_get(c->json, "params"), "config"));
    add_weights(&w, c, as_bf16);
    fill_in(&w, d, kda, moe);
    writer_save(&w, dir);
    k3_model_options_init(&o);
    o.isa = kern->isa;
    o.threads = 2;
    k3_status status = k3_model_open(dir, &o, &m, &err);
    ck_assert_msg(status == K3_OK, "%s: %s", c->name, k3_error_text(&err));
    writer_remove(dir);
    return m;
}

/* Puts the case's past into the session's state. */
static void enter_state(const struct golden_case *c, k3_session *s) {
    struct k3_layer_state *l = &s->state.layer[0];
    if (golden_has_input(c, "latent")) {
        struct golden_array latent = golden_input(c, "latent"), k_pe = golden_input(c, "k_pe");
        size_t r = latent.shape[1], rope = k_pe.shape[1];
        for (size_t i = 0; i < latent.shape[0]; i++) {
            float *at = k3_state_cache(l, i, r + rope);
            memcpy(at, latent.f32 + i * r, r * sizeof *at);
            memcpy(at + r, k_pe.f32 + i * rope, rope * sizeof *at);
        }
        s->state.position = latent.shape[0];
        golden_free(&latent), golden_free(&k_pe);
    }
    if (golden_has_input(c, "state")) {
        struct golden_array state = golden_input(c, "state"), tails = golden_input(c, "tails");
        memcpy(l->kda_state, state.f32, state.count * sizeof(float));
        memcpy(l->tail[0], tails.f32, tails.count * sizeof(float)); /* q, k, v lie one after another */
        golden_free(&state), golden_free(&tails);
    }
}

static void leave_state(const struct golden_case *c, k3_session *s, size_t tokens) {
    struct k3_layer_state *l = &s->state.layer[0];
    if (golden_has_input(c, "state")) {
        struct golden_array state = golden_input(c, "state"), tails = golden_input(c, "tails");
        golden_check(c, "state", l->kda_state, state.count);
        golden_check(c, "tails", l->tail[0], tails.count);
        golden_free(&state), golden_free(&tails);
    }
    if (golden_has_input(c, "latent")) {
        struct golden_array latent = golden_output(c, "latent"), k_pe = golden_output(c, "k_pe");
        size_t r = latent.shape[1], rope = k_pe.shape[1];
        ck_assert_uint_eq(latent.shape[0], s->state.position + tokens);
        for (size_t i = 0; i < latent.shape[0]; i++) {
            const float *at = k3_state_cache(l, i, r + rope);
            memcpy(latent.f32 + i * r, at, r * sizeof *at);
            memcpy(k_pe.f32 + i * rope, at + r, rope * sizeof *at);
        }
        golden_check(c, "latent", latent.f32, latent.count);
        golden_check(c, "k_pe", k_pe.f32, k_pe.count);
        golden_free(&latent), golden_free(&k_pe);
    }
}

static void sub_layer_as(const struct golden_case *c, const struct k3_kernels *kern, bool as_bf16) {
    struct golden_array x = golden_input(c, "x");
    size_t tokens = x.shape[0], d = x.shape[1];
    k3_model *m = open_block(c, kern, d, as_bf16);
    k3_session *s = NULL;
    ck_assert_int_eq(k3_session_new(m, &s, NULL), K3_OK);
    ck_assert_int_eq(k3_state_reserve(&s->state, 64, NULL), K3_OK);
    ck_assert_int_eq(k3_workspace_init(&s->workspace, m, tokens, NULL), K3_OK);
    struct block b = {.step = {.model = m, .state = &s->state, .w = &s->workspace, .tokens = tokens}};
    b.run = !strcmp(c->op, "kda_block") ? k3_kda : !strcmp(c->op, "mla_block") ? k3_mla : k3_latent_moe;
    memcpy(s->workspace.y, x.f32, x.count * sizeof(float));
    enter_state(c, s);
    k3_team_run(2, run_block, &b);
    golden_check(c, "y", s->workspace.out, x.count);
    leave_state(c, s, tokens);
    k3_session_free(s);
    k3_model_close(m);
    golden_free(&x);
}

static void sub_layer(const struct golden_case *c, const struct k3_kernels *kern) {
    sub_layer_as(c, kern, false);
    sub_layer_as(c, kern, true);
}

/* ---- all cases ------------------------------------------------------------------------------- */

static const struct {
    const char *op;
    void (*check)(const struct golden_case *, const struct k3_kernels *);
} checks[] = {
    {"kda_recurrence", recurrence}, {"mla", attention},      {"route", routing},
    {"mla_block", sub_layer},       {"kda_block", sub_layer}, {"moe_block", sub_layer},
};
#define CHECKS (sizeof checks / sizeof *checks)

START_TEST(golden_operations) {
    const struct k3_kernels *kern;
    size_t seen = 0;
    for (size_t i = 0; i < goldens_count(goldens); i++) {
        struct golden_case c = goldens_at(goldens, i);
        if (strcmp(c.op, checks[_i].op)) continue;
        seen++;
        for (size_t k = 0; (kern = k3_kernels_at(k)); k++) checks[_i].check(&c, kern);
    }
    ck_assert_uint_gt(seen, 0);
}
END_TEST

/* The chunk form against single steps on long runs with slow and with hard decay. */
START_TEST(chunks_like_steps) {
    enum { DIM = 128, N = K3_CHUNK_TOKENS };
    static const float strength[] = {0.002f, 1, 5, 100};
    const struct k3_kernels *kern = k3_kernels_find(NULL);
    float *x = malloc((5 * N * DIM + N) * sizeof *x), *state = calloc(2 * DIM * DIM, sizeof *state);
    float *o = malloc(2 * N * DIM * sizeof *o), *scratch = malloc(k3_kda_run_scratch(DIM, DIM) * sizeof *scratch);
    srand(7);
    for (size_t i = 0; i < 5 * N * DIM + N; i++) x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    float *q = x, *k = q + N * DIM, *v = k + N * DIM, *g = v + N * DIM, *beta = x + 5 * N * DIM;
    for (size_t t = 0; t < N; t++) {
        kern->l2_norm(q + t * DIM, q + t * DIM, 1 / sqrtf(DIM), DIM);
        kern->l2_norm(k + t * DIM, k + t * DIM, 1, DIM);
        beta[t] = fabsf(beta[t]) * 2;
    }
    for (size_t i = 0; i < N * DIM; i++) g[i] = -strength[_i] * (g[i] + 0.5f);
    for (int repeat = 0; repeat < 5; repeat++) {
        struct k3_kda_run a = {state, q, k, v, g, beta, o, N, DIM, DIM}, b = a;
        b.state = state + DIM * DIM;
        b.o = o + N * DIM;
        k3_kda_run_chunk(kern, &a, scratch);
        k3_kda_run_steps(kern, &b, scratch);
        float most = 0, diff = 0;
        for (size_t i = 0; i < N * DIM; i++) {
            most = fmaxf(most, fabsf(b.o[i]));
            diff = fmaxf(diff, fabsf(a.o[i] - b.o[i]));
        }
        ck_assert_msg(diff <= 3e-6f * most, "o: %g of %g", (double)diff, (double)most); /* spec section 3: <= 1.5e-6 each */
        most = diff = 0;
        for (size_t i = 0; i < DIM * DIM; i++) {
            most = fmaxf(most, fabsf(b.state[i]));
            diff = fmaxf(diff, fabsf(a.state[i] - b.state[i]));
        }
        ck_assert_msg(diff <= 3e-6f * most, "state: %g of %g", (double)diff, (double)most);
    }
    free(x), free(state), free(o), free(scratch);
}
END_TEST

int main(void) {
    goldens = goldens_open();
    Suite *s = suite_create("blocks");
    TCase *t = tcase_create("goldens");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, golden_operations, 0, (int)CHECKS);
    tcase_add_loop_test(t, chunks_like_steps, 0, 4);
    tcase_add_test(t, routing_of_nan);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    goldens_close(goldens);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
