/* Norms, AttnRes' sums and the softmax. */
#include "kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define RELATIVE 2e-6 /* of one output of a norm */
#define LONGEST 7168

static const size_t lengths[] = {1,  2,  3,  5,  7,  8,  9,   15,  16,  17,   31,
                                 32, 33, 39, 40, 41, 64, 100, 128, 257, 1000, LONGEST};
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* Powers of ten of the inputs; squares of the largest are no floats. */
static const float scales[] = {-18, -9, -3, -1, 0, 2, 9, 17, 20, 37};
#define SCALES (sizeof scales / sizeof *scales)

enum norm { RMS, GATED, L2, NORMS };
static const char *const norm_names[] = {"rms_norm", "gated_rms_norm", "l2_norm"};

static void run_norm(const struct k3_kernels *k, enum norm kind, float *y, const float *x, const float *w,
                     const float *gate, float eps, size_t n) {
    if (kind == RMS) k->rms_norm(y, x, w, eps, n);
    else if (kind == GATED) k->gated_rms_norm(y, x, w, gate, eps, n);
    else k->l2_norm(y, x, 0.25f, n);
}

static double want_norm(enum norm kind, const float *x, const float *w, const float *gate, float eps, size_t n,
                        size_t i) {
    double sum = 0;
    for (size_t j = 0; j < n; j++) sum += (double)x[j] * (double)x[j];
    if (kind == L2) return 0.25 * x[i] / sqrt(sum + (double)1e-6f);
    double y = (double)w[i] * x[i] / sqrt(sum / (double)n + (double)eps);
    return kind == RMS ? y : y * reference_sigmoid(gate[i]);
}

static void check_norm(const struct k3_kernels *k, enum norm kind, const float *a, const float *b, const float *c,
                       float eps, size_t n) {
    struct guarded x = guarded_copy(a, n), w = guarded_copy(b, n), gate = guarded_copy(c, n), y = guarded_new(n);
    run_norm(k, kind, y.data, x.data, w.data, gate.data, eps, n);
    for (size_t i = 0; i < n; i++) {
        double want = want_norm(kind, a, b, c, eps, n, i);
        ck_assert_msg(fabs(y.data[i] - want) <= RELATIVE * fabs(want) + 1e-44, "%s %s: [%zu] of %zu is %a, not %a",
                      k->isa, norm_names[kind], i, n, y.data[i], want);
        if (n > 100 && i % 64 == 63) i += 191; /* want costs n each */
    }
    float *in_place = x.data;
    run_norm(k, kind, in_place, x.data, w.data, gate.data, eps, n);
    ck_assert_msg(!memcmp(in_place, y.data, n * sizeof *y.data), "%s %s in place", k->isa, norm_names[kind]);
    guarded_free(&x);
    guarded_free(&w);
    guarded_free(&gate);
    guarded_free(&y);
}

START_TEST(norms_of_all_lengths_and_sizes) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    static float x[LONGEST], w[LONGEST], gate[LONGEST];
    struct random r = {11};
    for (size_t l = 0; l < LENGTHS; l++)
        for (size_t s = 0; s < SCALES; s++) {
            for (size_t i = 0; i < lengths[l]; i++) x[i] = random_wide(&r, scales[s] - 1, scales[s]);
            random_fill(&r, w, lengths[l], -2, 2);
            random_fill(&r, gate, lengths[l], -20, 20);
            for (int kind = 0; kind < NORMS; kind++) check_norm(k, (enum norm)kind, x, w, gate, 1e-5f, lengths[l]);
        }
}
END_TEST

START_TEST(norms_of_zero_and_of_nothing) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    float x[40] = {0}, w[40], gate[40], y = 5;
    for (size_t i = 0; i < 40; i++) w[i] = 1, gate[i] = 0;
    for (int kind = 0; kind < NORMS; kind++) {
        check_norm(k, (enum norm)kind, x, w, gate, 1e-6f, 40);
        run_norm(k, (enum norm)kind, &y, x, w, gate, 1e-6f, 0);
        ck_assert(y == 5);
    }
}
END_TEST

START_TEST(norms_pass_nan_on) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    float x[41], w[41], gate[41], y[41];
    for (size_t at = 0; at < 41; at++)
        for (int kind = 0; kind < NORMS; kind++) {
            for (size_t i = 0; i < 41; i++) x[i] = w[i] = gate[i] = 1;
            x[at] = NAN;
            run_norm(k, (enum norm)kind, y, x, w, gate, 1e-5f, 41);
            for (size_t i = 0; i < 41; i++) ck_assert_msg(isnan(y[i]), "%s %s: x[%zu]", k->isa, norm_names[kind], at);
            x[at] = INFINITY;
            run_norm(k, (enum norm)kind, y, x, w, gate, 1e-5f, 41);
            ck_assert_msg(isnan(y[at]), "%s %s: infinity at %zu", k->isa, norm_names[kind], at);
            x[at] = 1;
            w[at] = gate[at] = NAN;
            run_norm(k, (enum norm)kind, y, x, w, gate, 1e-5f, 41);
            if (kind != L2) ck_assert_msg(isnan(y[at]), "%s %s: w or gate [%zu]", k->isa, norm_names[kind], at);
        }
}
END_TEST

START_TEST(dot_square_of_all_lengths_and_sizes) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    struct random r = {12};
    for (size_t l = 0; l <= LENGTHS; l++)
        for (size_t s = 0; s < SCALES; s++) {
            size_t n = l < LENGTHS ? lengths[l] : 0;
            struct guarded v = guarded_new(n), w = guarded_new(n);
            double dot = 0, size = 0, square = 0;
            for (size_t i = 0; i < n; i++) {
                v.data[i] = random_wide(&r, scales[s] - 2, scales[s]);
                w.data[i] = random_float(&r, -2, 2);
                dot += (double)v.data[i] * (double)w.data[i];
                size += fabs((double)v.data[i] * (double)w.data[i]);
                square += (double)v.data[i] * (double)v.data[i];
            }
            double got_dot = 7, got_square = 7;
            k->dot_square(v.data, w.data, n, &got_dot, &got_square);
            ck_assert_msg(fabs(got_dot - dot) <= 1e-12 * size, "%s n=%zu: dot %a, not %a", k->isa, n, got_dot, dot);
            ck_assert_msg(fabs(got_square - square) <= 1e-12 * square, "%s n=%zu: square %a, not %a", k->isa, n,
                          got_square, square);
            guarded_free(&v);
            guarded_free(&w);
        }
}
END_TEST

START_TEST(dot_square_passes_nan_on) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    float v[41], s[41];
    double dot, square;
    for (size_t at = 0; at < 41; at++) {
        for (size_t i = 0; i < 41; i++) v[i] = s[i] = 1;
        v[at] = NAN;
        k->dot_square(v, s, 41, &dot, &square);
        ck_assert(isnan(dot) && isnan(square));
        v[at] = 1;
        s[at] = NAN;
        k->dot_square(v, s, 41, &dot, &square);
        ck_assert(isnan(dot) && square == 41);
    }
}
END_TEST

/* y over v[alias] where alias < count, else over an array of its own. */
static void check_weighted_sum(const struct k3_kernels *k, size_t count, size_t n, size_t alias) {
    enum { MOST = 12 };
    struct random r = {13 + count * 1000 + n};
    struct guarded v[MOST], y = guarded_new(n);
    const float *rows[MOST];
    float p[MOST];
    static double want[1000], size[1000];
    memset(want, 0, sizeof want);
    memset(size, 0, sizeof size);
    for (size_t j = 0; j < count; j++) {
        v[j] = guarded_new(n);
        rows[j] = v[j].data;
        p[j] = j == 1 ? 0 : random_float(&r, 0, 1);
        for (size_t i = 0; i < n; i++) {
            v[j].data[i] = random_wide(&r, -3, 3);
            want[i] += (double)p[j] * (double)v[j].data[i];
            size[i] += fabs((double)p[j] * (double)v[j].data[i]);
        }
    }
    float *out = alias < count ? v[alias].data : y.data;
    k->weighted_sum(out, rows, p, count, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs(out[i] - want[i]) <= 1e-6 * size[i], "%s: [%zu] of %zu x %zu is %g, not %g", k->isa, i,
                      count, n, out[i], want[i]);
    for (size_t j = 0; j < count; j++) guarded_free(&v[j]);
    guarded_free(&y);
}

START_TEST(weighted_sums) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    for (size_t count = 0; count <= 12; count++)
        for (size_t l = 0; l < test_lengths_count; l++) {
            check_weighted_sum(k, count, test_lengths[l], count);
            if (count) check_weighted_sum(k, count, test_lengths[l], count - 1);
            if (count > 2) check_weighted_sum(k, count, test_lengths[l], 1);
        }
}
END_TEST

/* A weight of 0 hides no NaN. */
START_TEST(weighted_sum_passes_nan_on) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    float a[41], b[41], y[41];
    const float *v[2] = {a, b}, p[2] = {1, 0};
    for (size_t at = 0; at < 41; at++) {
        for (size_t i = 0; i < 41; i++) a[i] = b[i] = 1;
        b[at] = NAN;
        k->weighted_sum(y, v, p, 2, 41);
        for (size_t i = 0; i < 41; i++) ck_assert(isnan(y[i]) == (i == at));
    }
}
END_TEST

START_TEST(weighted_sum_bits_do_not_depend_on_the_place) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    enum { N = 77 };
    float a[N], b[N], c[N], whole[N], part[N];
    const float *v[3] = {a, b, c}, p[3] = {0.3f, 0.6f, 0.1f};
    struct random r = {14};
    random_fill(&r, a, N, -1, 1);
    random_fill(&r, b, N, -1, 1);
    random_fill(&r, c, N, -1, 1);
    k->weighted_sum(whole, v, p, 3, N);
    for (size_t from = 0; from < N; from++)
        for (size_t n = 1; from + n <= N; n += 5) {
            const float *at[3] = {a + from, b + from, c + from};
            k->weighted_sum(part, at, p, 3, n);
            ck_assert_msg(!memcmp(part, whole + from, n * sizeof *part), "%s: %zu from %zu", k->isa, n, from);
        }
}
END_TEST

TCase *case_reductions(int tables) {
    TCase *t = tcase_create("reductions");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, norms_of_all_lengths_and_sizes, 0, tables);
    tcase_add_loop_test(t, norms_of_zero_and_of_nothing, 0, tables);
    tcase_add_loop_test(t, norms_pass_nan_on, 0, tables);
    tcase_add_loop_test(t, dot_square_of_all_lengths_and_sizes, 0, tables);
    tcase_add_loop_test(t, dot_square_passes_nan_on, 0, tables);
    tcase_add_loop_test(t, weighted_sums, 0, tables);
    tcase_add_loop_test(t, weighted_sum_passes_nan_on, 0, tables);
    tcase_add_loop_test(t, weighted_sum_bits_do_not_depend_on_the_place, 0, tables);
    return t;
}
