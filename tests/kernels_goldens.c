/* The golden operations that are kernels, or a few of them in a row. */
#include "golden.h"
#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SOURCES 16

static float *floats(size_t n) {
    float *p = malloc((n + 1) * sizeof *p);
    ck_assert_ptr_nonnull(p);
    return p;
}

static void golden_short_conv(const struct k3_kernels *k, const struct golden_case *c) {
    struct golden_array x = golden_input(c, "x"), weight = golden_input(c, "weight"), tail = golden_input(c, "tail");
    size_t tokens = x.shape[0], channels = x.shape[1], width = weight.shape[1];
    float *y = floats(x.count), *taps = floats(weight.count);
    for (size_t i = 0; i < weight.count; i++) taps[i % width * channels + i / width] = weight.f32[i];
    struct k3_short_conv s = {
        .y = y,
        .ldy = channels,
        .x = x.f32,
        .ldx = channels,
        .tail = tail.f32,
        .ld_tail = channels,
        .taps = taps,
        .ld_taps = channels,
        .channels = channels,
        .width = width,
        .tokens = tokens,
    };
    k->short_conv(&s);
    golden_check(c, "y", y, x.count);
    golden_check(c, "tail", tail.f32, tail.count);
    golden_free(&x);
    golden_free(&weight);
    golden_free(&tail);
    free(y);
    free(taps);
}

static void golden_kda_gate(const struct k3_kernels *k, const struct golden_case *c) {
    struct golden_array z = golden_input(c, "z"), a_log = golden_input(c, "a_log"), bias = golden_input(c, "dt_bias");
    size_t heads = z.shape[1], dim = z.shape[2];
    double bound = golden_param(c, "lower_bound", 0);
    for (size_t row = 0; row < z.count / dim; row++) {
        float *g = z.f32 + row * dim, a = expf(a_log.f32[row % heads]);
        const float *b = bias.f32 + row % heads * dim;
        if (bound != 0) k->kda_gate_bounded(g, g, b, a, (float)bound, dim);
        else k->kda_gate_softplus(g, g, b, a, dim);
    }
    golden_check(c, "g", z.f32, z.count);
    golden_free(&z);
    golden_free(&a_log);
    golden_free(&bias);
}

static void golden_kda_recurrence(const struct k3_kernels *k, const struct golden_case *c) {
    struct golden_array q = golden_input(c, "q"), key = golden_input(c, "k"), v = golden_input(c, "v");
    struct golden_array g = golden_input(c, "g"), beta = golden_input(c, "beta"), state = golden_input(c, "state");
    size_t heads = q.shape[1], dim = q.shape[2];
    float *o = floats(v.count);
    k->exp(g.f32, g.f32, g.count);
    for (size_t row = 0; row < q.count / dim; row++) {
        k->l2_norm(q.f32 + row * dim, q.f32 + row * dim, 1 / sqrtf((float)dim), dim);
        k->l2_norm(key.f32 + row * dim, key.f32 + row * dim, 1, dim);
        struct k3_kda_step step = {
            .state = state.f32 + row % heads * dim * dim,
            .q = q.f32 + row * dim,
            .k = key.f32 + row * dim,
            .decay = g.f32 + row * dim,
            .v = v.f32 + row * dim,
            .beta = beta.f32[row],
            .o = o + row * dim,
            .k_dim = dim,
            .v_dim = dim,
        };
        k->kda_step(&step);
    }
    golden_check(c, "o", o, v.count);
    golden_check(c, "state", state.f32, state.count);
    struct golden_array *all[] = {&q, &key, &v, &g, &beta, &state};
    for (size_t i = 0; i < 6; i++) golden_free(all[i]);
    free(o);
}

static void golden_attn_res(const struct k3_kernels *k, const struct golden_case *c) {
    struct golden_array blocks = golden_input(c, "blocks"), partial = golden_input(c, "partial");
    struct golden_array norm = golden_input(c, "norm"), proj = golden_input(c, "proj");
    size_t n = norm.count, tokens = partial.shape[0], count = blocks.shape[0] + 1;
    float eps = (float)golden_param(c, "eps", 0);
    ck_assert_uint_le(count, MOST_SOURCES);
    k->mul(norm.f32, proj.f32, n);
    for (size_t t = 0; t < tokens; t++) {
        const float *v[MOST_SOURCES];
        float p[MOST_SOURCES], max = -INFINITY, sum = 0;
        for (size_t j = 0; j < count; j++) {
            double dot, square;
            v[j] = j + 1 < count ? blocks.f32 + (j * tokens + t) * n : partial.f32 + t * n;
            k->dot_square(v[j], norm.f32, n, &dot, &square);
            p[j] = (float)(dot / sqrt(square / (double)n + (double)eps));
        }
        k->softmax_tile(p, count, &max, &sum);
        k->scale(p, 1 / sum, count);
        k->weighted_sum(partial.f32 + t * n, v, p, count, n);
    }
    golden_check(c, "y", partial.f32, partial.count);
    golden_free(&blocks);
    golden_free(&partial);
    golden_free(&norm);
    golden_free(&proj);
}

static void golden_glu(const struct k3_kernels *k, const struct golden_case *c) {
    struct golden_array gate = golden_input(c, "gate"), up = golden_input(c, "up");
    double beta = golden_param(c, "beta", 0);
    if (beta != 0)
        k->situ_glu(gate.f32, gate.f32, up.f32, (float)beta, (float)golden_param(c, "linear_beta", 0), gate.count);
    else k->silu_glu(gate.f32, gate.f32, up.f32, gate.count);
    golden_check(c, "y", gate.f32, gate.count);
    golden_free(&gate);
    golden_free(&up);
}

static void golden_norm(const struct k3_kernels *k, const struct golden_case *c) {
    struct golden_array x = golden_input(c, "x"), weight = golden_input(c, "weight"), gate = {0};
    bool gated = golden_has_input(c, "gate");
    float eps = (float)golden_param(c, "eps", 0);
    if (gated) gate = golden_input(c, "gate");
    for (float *row = x.f32; row < x.f32 + x.count; row += weight.count) {
        if (gated) k->gated_rms_norm(row, row, weight.f32, gate.f32 + (row - x.f32), eps, weight.count);
        else k->rms_norm(row, row, weight.f32, eps, weight.count);
    }
    golden_check(c, "y", x.f32, x.count);
    golden_free(&x);
    golden_free(&weight);
    golden_free(&gate);
}

static const struct {
    const char *op;
    void (*run)(const struct k3_kernels *k, const struct golden_case *c);
    size_t cases; /* so that none can vanish from the manifest unseen */
} ops[] = {
    {"short_conv", golden_short_conv, 4},
    {"kda_gate", golden_kda_gate, 2},
    {"kda_recurrence", golden_kda_recurrence, 19},
    {"attn_res", golden_attn_res, 5},
    {"situ_glu", golden_glu, 2},
    {"silu_glu", golden_glu, 1},
    {"rms_norm", golden_norm, 3},
    {"gated_rms_norm", golden_norm, 2},
};

START_TEST(golden_operations) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    json_t *goldens = goldens_open();
    for (size_t j = 0; j < sizeof ops / sizeof *ops; j++) {
        size_t cases = 0;
        for (size_t i = 0; i < goldens_count(goldens); i++) {
            struct golden_case c = goldens_at(goldens, i);
            if (strcmp(c.op, ops[j].op)) continue;
            ops[j].run(k, &c);
            cases++;
        }
        ck_assert_msg(cases == ops[j].cases, "%s: %zu cases, not %zu", ops[j].op, cases, ops[j].cases);
    }
    goldens_close(goldens);
}
END_TEST

TCase *case_goldens(int tables) {
    TCase *t = tcase_create("goldens");
    tcase_add_loop_test(t, golden_operations, 0, tables);
    return t;
}
