#include "kernels.h"

#include <math.h>
#include <string.h>

/* One tile between guards: checks scores, maximum, sum and factor against double precision. */
static void check_tile(const struct k3_kernels *k, const float *scores, size_t n, float *max, float *sum) {
    struct guarded s = guarded_copy(scores, n);
    double m = *max, total = 0;
    float old_max = *max, old_sum = *sum;
    for (size_t i = 0; i < n; i++) m = fmax(m, scores[i]);
    float f = k->softmax_tile(s.data, n, max, sum);
    if (isinf(m)) {
        ck_assert_msg(f == 1 && same_bits(*max, old_max) && *sum == old_sum, "%s: nothing to see", k->isa);
        for (size_t i = 0; i < n; i++) ck_assert(s.data[i] == 0);
        guarded_free(&s);
        return;
    }
    ck_assert_msg(*max == m, "%s: maximum %g, not %g", k->isa, *max, m);
    for (size_t i = 0; i < n; i++) {
        double want = exp((double)(scores[i] - *max));
        total += want;
        ck_assert_msg(ulps(s.data[i], want) <= 1.5, "%s: exp(%a - %a) = %a, not %a", k->isa, scores[i], m, s.data[i],
                      want);
    }
    double want_f = isinf(old_max) ? 0 : exp((double)(old_max - *max)), want_sum = old_sum * want_f + total;
    ck_assert_msg(ulps(f, want_f) <= 1.5, "%s: factor %a, not %a", k->isa, f, want_f);
    ck_assert_msg(fabs(*sum - want_sum) <= 1e-6 * want_sum, "%s: sum %a, not %a", k->isa, *sum, want_sum);
    guarded_free(&s);
}

START_TEST(tiles_of_every_length) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    static const float spreads[] = {0.01f, 1, 30, 1e4f, 1e30f};
    struct random r = {21};
    float scores[1000];
    for (size_t l = 0; l < test_lengths_count; l++)
        for (size_t j = 0; j < sizeof spreads / sizeof *spreads; j++) {
            float max = -INFINITY, sum = 0;
            for (int tile = 0; tile < 4; tile++) {
                random_fill(&r, scores, test_lengths[l], -spreads[j], spreads[j]);
                check_tile(k, scores, test_lengths[l], &max, &sum);
            }
        }
}
END_TEST

START_TEST(masked_scores_weigh_nothing) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    struct random r = {22};
    float scores[1000];
    for (size_t l = 0; l < test_lengths_count; l++) {
        size_t n = test_lengths[l];
        float max = -INFINITY, sum = 0;
        for (size_t i = 0; i < n; i++) scores[i] = -INFINITY;
        check_tile(k, scores, n, &max, &sum); /* all masked, nothing before */
        for (size_t i = 0; i < n; i++)
            if (i % 3) scores[i] = random_float(&r, -9, 9);
        check_tile(k, scores, n, &max, &sum);
        for (size_t i = 0; i < n; i++) scores[i] = -INFINITY;
        check_tile(k, scores, n, &max, &sum);          /* all masked, something before */
        for (size_t at = 0; at < n && n < 100; at++) { /* all but one masked */
            max = -INFINITY, sum = 0;
            scores[at] = -3;
            check_tile(k, scores, n, &max, &sum);
            scores[at] = -INFINITY;
        }
    }
}
END_TEST

START_TEST(nan_scores_are_noticed) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    static const float others[] = {-INFINITY, -1000, 1};
    for (size_t n = 1; n < 42; n++)
        for (size_t at = 0; at < n; at++)
            for (size_t j = 0; j < 3; j++) {
                float scores[42], max = j == 2 ? 0 : -INFINITY, sum = j == 2 ? 1 : 0;
                for (size_t i = 0; i < n; i++) scores[i] = others[j];
                scores[at] = NAN;
                k->softmax_tile(scores, n, &max, &sum);
                ck_assert_msg(isnan(scores[at]) && isnan(sum), "%s: NaN at %zu of %zu among %g", k->isa, at, n,
                              others[j]);
            }
}
END_TEST

/* +inf has no softmax: it must not come out as a number. */
START_TEST(infinite_scores_are_noticed) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    float scores[20] = {1, 2, INFINITY}, max = -INFINITY, sum = 0;
    k->softmax_tile(scores, 20, &max, &sum);
    ck_assert(isnan(sum));
}
END_TEST

TCase *case_softmax(int tables) {
    TCase *t = tcase_create("softmax");
    tcase_add_loop_test(t, tiles_of_every_length, 0, tables);
    tcase_add_loop_test(t, masked_scores_weigh_nothing, 0, tables);
    tcase_add_loop_test(t, nan_scores_are_noticed, 0, tables);
    tcase_add_loop_test(t, infinite_scores_are_noticed, 0, tables);
    return t;
}
