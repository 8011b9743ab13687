/* The short convolution and one step of the delta rule. */
#include "kernels.h"

#include <math.h>
#include <string.h>

#define GAP 3 /* floats between rows, which nobody may write */
#define MARK 12345.0f

/* A matrix between guards with marked gaps after all rows but the last. */
struct rows {
    struct guarded g;
    size_t n, cols, ld;
};

static struct rows rows_new(size_t n, size_t cols, struct random *r) {
    struct rows m = {.n = n, .cols = cols, .ld = cols + GAP};
    m.g = guarded_new(n ? n * m.ld - GAP : 0);
    for (size_t i = 0; i < m.g.n; i++) m.g.data[i] = i % m.ld < cols ? random_float(r, -3, 3) : MARK;
    return m;
}

static void rows_free(struct rows *m) {
    for (size_t i = 0; i < m->g.n; i++)
        if (i % m->ld >= m->cols) ck_assert_msg(m->g.data[i] == MARK, "a gap was written");
    guarded_free(&m->g);
}

struct conv {
    struct rows x, y, tail, taps;
};

static struct conv conv_new(size_t width, size_t channels, size_t tokens) {
    struct random r = {31 + width * 10000 + channels * 100 + tokens};
    return (struct conv){
        .x = rows_new(tokens, channels, &r),
        .y = rows_new(tokens, channels, &r),
        .tail = rows_new(width - 1, channels, &r),
        .taps = rows_new(width, channels, &r),
    };
}

static void conv_free(struct conv *c) {
    rows_free(&c->x);
    rows_free(&c->y);
    rows_free(&c->tail);
    rows_free(&c->taps);
}

/* Tokens [t, t + tokens) and channels [ch, ch + channels) of it. */
static void conv_run(const struct k3_kernels *k, struct conv *c, size_t t, size_t tokens, size_t ch, size_t channels) {
    struct k3_short_conv s = {
        .y = c->y.g.data + t * c->y.ld + ch,
        .ldy = c->y.ld,
        .x = c->x.g.data + t * c->x.ld + ch,
        .ldx = c->x.ld,
        .tail = c->tail.g.data + ch,
        .ld_tail = c->tail.ld,
        .taps = c->taps.g.data + ch,
        .ld_taps = c->taps.ld,
        .channels = channels,
        .width = c->taps.n,
        .tokens = tokens,
    };
    k->short_conv(&s);
}

/* Input t of the sequence that begins with the tail. */
static float conv_input(const struct conv *c, size_t t, size_t ch) {
    size_t kept = c->taps.n - 1;
    return t < kept ? c->tail.g.data[t * c->tail.ld + ch] : c->x.g.data[(t - kept) * c->x.ld + ch];
}

static void check_conv(const struct k3_kernels *k, size_t width, size_t channels, size_t tokens) {
    struct conv c = conv_new(width, channels, tokens), was = conv_new(width, channels, tokens);
    conv_run(k, &c, 0, tokens, 0, channels);
    for (size_t ch = 0; ch < channels; ch++) {
        for (size_t t = 0; t < tokens; t++) {
            double sum = 0, size = 0, got = c.y.g.data[t * c.y.ld + ch];
            for (size_t j = 0; j < width; j++) {
                double p = (double)was.taps.g.data[j * was.taps.ld + ch] * conv_input(&was, t + j, ch);
                sum += p;
                size += fabs(p);
            }
            double want = sum * reference_sigmoid(sum);
            ck_assert_msg(fabs(got - want) <= 5e-7 * (size + 1), "%s %zux%zux%zu [%zu, %zu]: %g, not %g", k->isa, width,
                          channels, tokens, t, ch, got, want);
        }
        for (size_t j = 0; j + 1 < width; j++)
            ck_assert_msg(c.tail.g.data[j * c.tail.ld + ch] == conv_input(&was, tokens + j, ch),
                          "%s %zux%zux%zu: tail %zu", k->isa, width, channels, tokens, j);
    }
    conv_free(&c);
    conv_free(&was);
}

START_TEST(convolutions) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    static const size_t channels[] = {1, 2, 3, 7, 8, 9, 16, 31, 40};
    for (size_t width = 1; width <= 6; width++)
        for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
            for (size_t tokens = 0; tokens <= 9; tokens++) check_conv(k, width, channels[i], tokens);
}
END_TEST

START_TEST(convolutions_split_anywhere_give_the_same_bits) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    enum { C = 21, T = 7 };
    for (size_t width = 1; width <= 5; width++)
        for (size_t t = 0; t <= T; t++)
            for (size_t ch = 0; ch <= C; ch++) {
                struct conv whole = conv_new(width, C, T), parts = conv_new(width, C, T);
                conv_run(k, &whole, 0, T, 0, C);
                conv_run(k, &parts, 0, t, 0, ch);
                conv_run(k, &parts, 0, t, ch, C - ch);
                conv_run(k, &parts, t, T - t, 0, ch);
                conv_run(k, &parts, t, T - t, ch, C - ch);
                ck_assert_msg(!memcmp(whole.y.g.data, parts.y.g.data, whole.y.g.n * sizeof(float)),
                              "%s width %zu: split at token %zu, channel %zu", k->isa, width, t, ch);
                ck_assert(!memcmp(whole.tail.g.data, parts.tail.g.data, whole.tail.g.n * sizeof(float)));
                conv_free(&whole);
                conv_free(&parts);
            }
}
END_TEST

START_TEST(convolutions_pass_nan_on) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    for (size_t ch = 0; ch < 11; ch++) {
        struct conv c = conv_new(4, 11, 6);
        c.x.g.data[c.x.ld + ch] = NAN; /* token 1: seen by tokens 1 to 4 */
        conv_run(k, &c, 0, 6, 0, 11);
        for (size_t t = 0; t < 6; t++)
            for (size_t i = 0; i < 11; i++)
                ck_assert(isnan(c.y.g.data[t * c.y.ld + i]) == (i == ch && t >= 1 && t <= 4));
        conv_free(&c);
    }
}
END_TEST

struct step {
    struct guarded state, q, k, decay, v, o;
    float beta;
};

static struct step step_new(size_t k_dim, size_t v_dim) {
    struct random r = {41 + k_dim * 1000 + v_dim};
    struct step s = {guarded_new(k_dim * v_dim),
                     guarded_new(k_dim),
                     guarded_new(k_dim),
                     guarded_new(k_dim),
                     guarded_new(v_dim),
                     guarded_new(v_dim),
                     0.7f};
    float unit = 1 / sqrtf((float)k_dim);
    random_fill(&r, s.state.data, k_dim * v_dim, -2, 2);
    random_fill(&r, s.q.data, k_dim, -unit, unit);
    random_fill(&r, s.k.data, k_dim, -unit, unit);
    random_fill(&r, s.decay.data, k_dim, 0, 1);
    random_fill(&r, s.v.data, v_dim, -2, 2);
    if (k_dim > 2) s.decay.data[1] = 0, s.decay.data[2] = 1;
    return s;
}

static void step_run(const struct k3_kernels *k, struct step *s) {
    struct k3_kda_step step = {
        .state = s->state.data,
        .q = s->q.data,
        .k = s->k.data,
        .decay = s->decay.data,
        .v = s->v.data,
        .beta = s->beta,
        .o = s->o.data,
        .k_dim = s->k.n,
        .v_dim = s->v.n,
    };
    k->kda_step(&step);
}

static void step_free(struct step *s) {
    guarded_free(&s->state);
    guarded_free(&s->q);
    guarded_free(&s->k);
    guarded_free(&s->decay);
    guarded_free(&s->v);
    guarded_free(&s->o);
}

static void check_step(const struct k3_kernels *k, size_t k_dim, size_t v_dim) {
    struct step s = step_new(k_dim, v_dim), was = step_new(k_dim, v_dim);
    step_run(k, &s);
    for (size_t j = 0; j < v_dim; j++) {
        double read = 0, o = 0;
        for (size_t i = 0; i < k_dim; i++)
            read += (double)was.k.data[i] * was.decay.data[i] * was.state.data[i * v_dim + j];
        double u = was.beta * (was.v.data[j] - read);
        for (size_t i = 0; i < k_dim; i++) {
            double want = (double)was.decay.data[i] * was.state.data[i * v_dim + j] + was.k.data[i] * u;
            double got = s.state.data[i * v_dim + j];
            ck_assert_msg(fabs(got - want) <= 2e-6, "%s %zux%zu state[%zu, %zu]: %g, not %g", k->isa, k_dim, v_dim, i,
                          j, got, want);
            o += was.q.data[i] * want;
        }
        ck_assert_msg(fabs(s.o.data[j] - o) <= 4e-6, "%s %zux%zu o[%zu]: %g, not %g", k->isa, k_dim, v_dim, j,
                      s.o.data[j], o);
    }
    step_free(&s);
    step_free(&was);
}

START_TEST(steps_of_all_shapes) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    static const size_t dims[] = {1, 2, 3, 4, 5, 7, 8, 16, 31, 33, 48, 64, 128, 130};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (size_t j = 0; j < sizeof dims / sizeof *dims; j++) check_step(k, dims[i], dims[j]);
    check_step(k, 5, 256);
    check_step(k, 6, 257);
    check_step(k, 3, 1000);
    check_step(k, 1000, 3);
}
END_TEST

START_TEST(steps_pass_nan_on) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    for (size_t at = 0; at < 5 * 11; at++) {
        struct step s = step_new(5, 11);
        s.state.data[at] = NAN;
        step_run(k, &s);
        for (size_t j = 0; j < 11; j++) ck_assert(isnan(s.o.data[j]) == (j == at % 11));
        step_free(&s);
    }
}
END_TEST

TCase *case_kda(int tables) {
    TCase *t = tcase_create("kda");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, convolutions, 0, tables);
    tcase_add_loop_test(t, convolutions_split_anywhere_give_the_same_bits, 0, tables);
    tcase_add_loop_test(t, convolutions_pass_nan_on, 0, tables);
    tcase_add_loop_test(t, steps_of_all_shapes, 0, tables);
    tcase_add_loop_test(t, steps_pass_nan_on, 0, tables);
    return t;
}
