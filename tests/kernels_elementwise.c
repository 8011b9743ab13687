#include "kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define BETA 4.0f
#define LINEAR_BETA 25.0f
#define GATE_A 3.7f
#define BOUND (-5.0f)

/* y = f(a, b) element by element; kernels of one input leave b alone. */
typedef void run_fn(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n);

static void run_situ(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    k->situ_glu(y, a, b, BETA, LINEAR_BETA, n);
}
static void run_situ_open(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    k->situ_glu(y, a, b, BETA, 0, n);
}
static void run_silu(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    k->silu_glu(y, a, b, n);
}
static void run_sigmoid(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    (void)b;
    k->sigmoid(y, a, n);
}
static void run_sigmoid_mul(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    k->sigmoid_mul(y, b, a, n);
}
static void run_exp(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    (void)b;
    k->exp(y, a, n);
}
static void run_add(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    memmove(y, a, n * sizeof *y);
    k->add(y, b, n);
}
static void run_mul(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    memmove(y, a, n * sizeof *y);
    k->mul(y, b, n);
}
static void run_scale(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    (void)b;
    memmove(y, a, n * sizeof *y);
    k->scale(y, GATE_A, n);
}
static void run_bounded(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    k->kda_gate_bounded(y, a, b, GATE_A, BOUND, n);
}
static void run_softplus(const struct k3_kernels *k, float *y, const float *a, const float *b, size_t n) {
    k->kda_gate_softplus(y, a, b, GATE_A, n);
}

static double want_situ(float a, float b) {
    double beta = BETA, linear = LINEAR_BETA;
    return beta * tanh(a / beta) * reference_sigmoid(a) * linear * tanh(b / linear);
}
static double want_situ_open(float a, float b) {
    double beta = BETA;
    return beta * tanh(a / beta) * reference_sigmoid(a) * b;
}
static double want_silu(float a, float b) {
    return a * reference_sigmoid(a) * b;
}
static double want_sigmoid(float a, float b) {
    (void)b;
    return reference_sigmoid(a);
}
static double want_sigmoid_mul(float a, float b) {
    return b * reference_sigmoid(a);
}
static double want_exp(float a, float b) {
    (void)b;
    return exp(a);
}
static double want_add(float a, float b) {
    return (double)(a + b);
}
static double want_mul(float a, float b) {
    return (double)(a * b);
}
static double want_scale(float a, float b) {
    (void)b;
    return (double)(a * GATE_A);
}
/* The gates' arguments are rounded to float first, and the rest is measured from there. */
static double want_bounded(float a, float b) {
    float x = a + b;
    return BOUND * reference_sigmoid((double)(GATE_A * x));
}
static double want_softplus(float a, float b) {
    float x = a + b;
    return -(double)GATE_A * (x > 20 ? (double)x : log1p(exp((double)x)));
}

static const struct elementwise {
    const char *name;
    run_fn *run;
    double (*want)(float a, float b);
    double ulps;
    double slack; /* in units of the smallest subnormal, where results or factors of them are subnormal */
    bool gated;   /* sigmoid(a), and perhaps tanh(a / beta), are factors: they may be subnormals of few digits */
    bool one;     /* only a is read */
    bool over_b;  /* y may be b as well as a */
} kernels[] = {
    {"situ_glu", run_situ, want_situ, 8, 256, true, false, true},
    {"situ_glu open", run_situ_open, want_situ_open, 8, 8, true, false, true},
    {"silu_glu", run_silu, want_silu, 5, 8, true, false, true},
    {"sigmoid", run_sigmoid, want_sigmoid, 3, 8, true, true, false},
    {"sigmoid_mul", run_sigmoid_mul, want_sigmoid_mul, 4, 8, true, false, true},
    {"exp", run_exp, want_exp, 1.5, 8, false, true, false},
    {"add", run_add, want_add, 0, 0, false, false, false},
    {"mul", run_mul, want_mul, 0, 0, false, false, false},
    {"scale", run_scale, want_scale, 0, 0, false, true, false},
    {"kda_gate_bounded", run_bounded, want_bounded, 4, 8, true, false, false},
    {"kda_gate_softplus", run_softplus, want_softplus, 4, 8, false, false, false},
};
#define KERNELS (sizeof kernels / sizeof *kernels)

static void check_one(const struct k3_kernels *k, const struct elementwise *e, float a, float b, float got) {
    double want = e->want(a, b), slack = e->slack;
    if (isnan(want)) {
        ck_assert_msg(isnan(got), "%s %s(%a, %a) = %g hides a NaN", k->isa, e->name, a, b, got);
        return;
    }
    if (isinf((float)want) && (got == (float)want || (isnan(got) && isinf(b)))) return; /* 0 times infinity */
    if (e->gated && (a < -80 || fabsf(a) < 16 * FLT_MIN))
        slack *= fmax(1, fabs((double)a)) * (e->one ? 1 : fmax(1, fabs((double)b)));
    ck_assert_msg(ulps(got, want) <= e->ulps || fabs(got - want) <= slack * 0x1p-149,
                  "%s %s(%a, %a) = %a, not %a: %g ulp", k->isa, e->name, a, b, got, want, ulps(got, want));
}

/* Runs the kernel between guards and checks every value. */
static void check_all(const struct k3_kernels *k, const struct elementwise *e, const float *a, const float *b,
                      size_t n) {
    struct guarded x = guarded_copy(a, n), z = guarded_copy(b, n), y = guarded_new(n);
    e->run(k, y.data, x.data, z.data, n);
    for (size_t i = 0; i < n; i++) check_one(k, e, a[i], b[i], y.data[i]);
    guarded_free(&x);
    guarded_free(&z);
    guarded_free(&y);
}

START_TEST(random_values_of_every_length) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    struct random r = {1};
    float a[1000], b[1000];
    for (size_t j = 0; j < KERNELS; j++)
        for (size_t l = 0; l < test_lengths_count; l++) {
            random_fill(&r, a, test_lengths[l], -6, 6);
            random_fill(&r, b, test_lengths[l], -40, 40);
            check_all(k, &kernels[j], a, b, test_lengths[l]);
        }
}
END_TEST

START_TEST(all_pairs_of_special_values) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    size_t n = test_specials_count;
    struct guarded a = guarded_new(n * n), b = guarded_new(n * n);
    for (size_t i = 0; i < n * n; i++) {
        a.data[i] = test_specials[i / n];
        b.data[i] = test_specials[i % n];
    }
    for (size_t j = 0; j < KERNELS; j++) check_all(k, &kernels[j], a.data, b.data, n * n);
    guarded_free(&a);
    guarded_free(&b);
}
END_TEST

/* One float in 100,003, in the order of their bits: every exponent, both signs, infinities, NaNs. */
START_TEST(a_sweep_over_all_floats) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    enum { N = 4096 };
    static float a[N], b[N];
    struct random r = {2};
    size_t n = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 100003) {
        uint32_t low = (uint32_t)bits;
        memcpy(&a[n], &low, sizeof low);
        b[n++] = random_wide(&r, -3, 2);
        if (n < N) continue;
        for (size_t j = 0; j < KERNELS; j++) check_all(k, &kernels[j], a, b, n);
        n = 0;
    }
}
END_TEST

/* Where tanh and exp matter: |x| in 1e-6 .. 100, densely, in both inputs. */
START_TEST(a_sweep_over_usual_values) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    enum { N = 20000 };
    static float a[N], b[N];
    struct random r = {3};
    for (size_t i = 0; i < N; i++) {
        a[i] = random_wide(&r, -6, 2);
        b[i] = random_wide(&r, -6, 2);
    }
    for (size_t j = 0; j < KERNELS; j++) check_all(k, &kernels[j], a, b, N);
}
END_TEST

/* Work is split anywhere, so an element's bits may not depend on its place. */
START_TEST(bits_do_not_depend_on_the_place) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    enum { N = 131 };
    struct random r = {4};
    float a[N], b[N], whole[N], part[N];
    for (size_t i = 0; i < N; i++) {
        a[i] = i < test_specials_count ? test_specials[i] : random_wide(&r, -4, 2);
        b[i] = random_wide(&r, -4, 2);
    }
    for (size_t j = 0; j < KERNELS; j++) {
        kernels[j].run(k, whole, a, b, N);
        for (size_t from = 0; from < N; from++)
            for (size_t n = 1; from + n <= N && n <= 19; n += 3) {
                kernels[j].run(k, part, a + from, b + from, n);
                for (size_t i = 0; i < n; i++)
                    ck_assert_msg(same_bits(part[i], whole[from + i]), "%s %s(%g, %g): %a at %zu of %zu, else %a",
                                  k->isa, kernels[j].name, a[from + i], b[from + i], part[i], i, n, whole[from + i]);
            }
    }
}
END_TEST

START_TEST(output_may_be_either_input) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    enum { N = 45 };
    struct random r = {5};
    float a[N], b[N], want[N], y[N];
    random_fill(&r, a, N, -5, 5);
    random_fill(&r, b, N, -5, 5);
    for (size_t j = 0; j < KERNELS; j++) {
        kernels[j].run(k, want, a, b, N);
        memcpy(y, a, sizeof y);
        kernels[j].run(k, y, y, b, N);
        ck_assert_msg(!memcmp(y, want, sizeof y), "%s %s over its first input", k->isa, kernels[j].name);
        if (!kernels[j].over_b) continue;
        memcpy(y, b, sizeof y);
        kernels[j].run(k, y, a, y, N);
        ck_assert_msg(!memcmp(y, want, sizeof y), "%s %s over its second input", k->isa, kernels[j].name);
    }
}
END_TEST

START_TEST(all_finite_sees_every_place) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    static const float bad[] = {INFINITY, -INFINITY, NAN, -NAN};
    for (size_t l = 0; l < test_lengths_count; l++) {
        struct guarded x = guarded_new(test_lengths[l]);
        for (size_t i = 0; i < x.n; i++) x.data[i] = i % 3 ? 3.4e38f : i % 2 ? -0.0f : 1e-42f;
        ck_assert_msg(k->all_finite(x.data, x.n), "%s: %zu finite values", k->isa, x.n);
        for (size_t i = 0; i < x.n; i++) {
            float keep = x.data[i];
            x.data[i] = bad[i % 4];
            ck_assert_msg(!k->all_finite(x.data, x.n), "%s: %g at %zu of %zu", k->isa, x.data[i], i, x.n);
            x.data[i] = keep;
        }
        guarded_free(&x);
    }
}
END_TEST

TCase *case_elementwise(int tables) {
    TCase *t = tcase_create("elementwise");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, random_values_of_every_length, 0, tables);
    tcase_add_loop_test(t, all_pairs_of_special_values, 0, tables);
    tcase_add_loop_test(t, a_sweep_over_all_floats, 0, tables);
    tcase_add_loop_test(t, a_sweep_over_usual_values, 0, tables);
    tcase_add_loop_test(t, bits_do_not_depend_on_the_place, 0, tables);
    tcase_add_loop_test(t, output_may_be_either_input, 0, tables);
    tcase_add_loop_test(t, all_finite_sees_every_place, 0, tables);
    return t;
}
