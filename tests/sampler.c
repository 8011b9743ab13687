/* The sampler: what it may pick, how often, and the same on every machine. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <k3/k3.h>

#define N 1000

static float logits[N];

static void setup(void) {
    for (int i = 0; i < N; i++) logits[i] = (float)(i * 7919 % 1009 / 100.0 - 5);
}

static k3_sampler *sampler(float temperature, uint32_t top_k, float top_p, float min_p, uint64_t seed) {
    k3_sampler_options o;
    k3_sampler *s = NULL;
    k3_sampler_options_init(&o);
    o.temperature = temperature, o.top_k = top_k, o.top_p = top_p, o.min_p = min_p, o.seed = seed;
    ck_assert_int_eq(k3_sampler_new(&o, &s, NULL), K3_OK);
    return s;
}

static int32_t pick(k3_sampler *s, const float *from, size_t n) {
    int32_t id = -1;
    k3_error err = {0};
    k3_status status = k3_sampler_pick(s, from, n, &id, &err);
    if (status != K3_OK || id < 0 || (size_t)id >= n) ck_abort_msg("id %d: %s", id, err.text);
    return id;
}

/* Ids of a Python program that computes the same by sorting, with the C library's exp. */
static const struct {
    float temperature, top_p, min_p;
    uint32_t top_k;
    uint64_t seed;
    int32_t ids[12];
} recorded[] = {
    {1, 1, 0, 0, 0, {595, 752, 99, 410, 739, 998, 417, 541, 851, 917, 106, 66}},
    {0.7f, 1, 0, 0, 42, {74, 376, 680, 917, 996, 766, 719, 838, 765, 581, 681, 297}},
    {1.5f, 1, 0, 20, 1, {653, 521, 554, 343, 620, 99, 66, 343, 831, 554, 864, 897}},
    {1, 0.9f, 0, 0, 7, {700, 278, 831, 983, 996, 864, 60, 99, 397, 146, 541, 739}},
    {1, 1, 0.1f, 0, UINT64_MAX, {555, 765, 515, 752, 562, 739, 364, 766, 620, 608, 264, 40}},
    {0.8f, 0.95f, 0.05f, 50, 123456789, {818, 864, 66, 554, 851, 508, 343, 640, 119, 198, 310, 508}},
};

START_TEST(recorded_ids) {
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        k3_sampler *s = sampler(recorded[i].temperature, recorded[i].top_k, recorded[i].top_p, recorded[i].min_p,
                                recorded[i].seed);
        for (size_t k = 0; k < 12; k++) ck_assert_int_eq(pick(s, logits, N), recorded[i].ids[k]);
        k3_sampler_free(s);
    }
}
END_TEST

START_TEST(defaults) {
    k3_sampler_options o;
    memset(&o, 0xff, sizeof o);
    k3_sampler_options_init(&o);
    ck_assert_uint_eq(o.size, sizeof o);
    ck_assert(o.temperature == 1 && o.top_k == 0 && o.top_p == 1 && o.min_p == 0 && o.seed == 0);
    k3_sampler *s = NULL;
    ck_assert_int_eq(k3_sampler_new(NULL, &s, NULL), K3_OK);
    for (size_t k = 0; k < 12; k++) ck_assert_int_eq(pick(s, logits, N), recorded[0].ids[k]);
    k3_sampler_free(s);
    k3_sampler_free(NULL);
}
END_TEST

/* A program built against a header that ended after top_k. */
START_TEST(older_options) {
    k3_sampler_options o;
    k3_sampler_options_init(&o);
    o.size = offsetof(k3_sampler_options, top_p);
    o.top_p = o.min_p = -1; /* not its own: must not be looked at */
    k3_sampler *s = NULL;
    ck_assert_int_eq(k3_sampler_new(&o, &s, NULL), K3_OK);
    for (size_t k = 0; k < 12; k++) ck_assert_int_eq(pick(s, logits, N), recorded[0].ids[k]);
    k3_sampler_free(s);
    s = NULL;
    o.size = 0;
    ck_assert_int_eq(k3_sampler_new(&o, &s, NULL), K3_ERR_ARGUMENT);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(options_out_of_range) {
    static const struct {
        float temperature, top_p, min_p;
        const char *name;
    } bad[] = {{NAN, 1, 0, "temperature"},       {-0.5f, 1, 0, "temperature"}, {INFINITY, 1, 0, "temperature"},
               {1, NAN, 0, "top_p"},             {1, 0, 0, "top_p"},           {1, -1, 0, "top_p"},
               {1, 1.0000002f, 0, "top_p"},      {1, 1, NAN, "min_p"},         {1, 1, -0.1f, "min_p"},
               {1, 1, 1, "min_p"},               {1, 1, INFINITY, "min_p"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        k3_sampler_options o;
        k3_sampler *s = NULL;
        k3_error err = {0};
        k3_sampler_options_init(&o);
        o.temperature = bad[i].temperature, o.top_p = bad[i].top_p, o.min_p = bad[i].min_p;
        ck_assert_int_eq(k3_sampler_new(&o, &s, &err), K3_ERR_ARGUMENT);
        ck_assert_ptr_null(s);
        ck_assert_msg(strncmp(err.text, bad[i].name, strlen(bad[i].name)) == 0, "%s", err.text);
    }
}
END_TEST

START_TEST(greedy) {
    k3_sampler *s = sampler(0, 5, 0.5f, 0.5f, 1);
    static const float ties[] = {-1, 3, 2, 3, -INFINITY, 3}, negative[] = {-INFINITY, -7, -INFINITY};
    static const float extreme[] = {-3.4e38f, 3.4e38f, 1, -INFINITY};
    ck_assert_int_eq(pick(s, ties, 6), 1);
    ck_assert_int_eq(pick(s, negative, 3), 1);
    ck_assert_int_eq(pick(s, extreme, 4), 1);
    static const int32_t ban[] = {1, 3};
    ck_assert_int_eq(k3_sampler_ban(s, ban, 2, NULL), K3_OK);
    ck_assert_int_eq(pick(s, ties, 6), 5);
    k3_sampler_free(s);
}
END_TEST

START_TEST(logits_that_are_no_numbers) {
    float bad[8];
    for (int at_zero = 0; at_zero < 2; at_zero++)
        for (int where = 0; where < 8; where++)
            for (int kind = 0; kind < 3; kind++) {
                k3_sampler *s = sampler(at_zero ? 0 : 1, 0, 1, 0, 1);
                static const int32_t ban[] = {3};
                ck_assert_int_eq(k3_sampler_ban(s, ban, 1, NULL), K3_OK);
                for (int i = 0; i < 8; i++) bad[i] = (float)i;
                bad[where] = kind == 0 ? NAN : kind == 1 ? -NAN : INFINITY;
                int32_t id = 77;
                k3_error err = {0};
                char expected[16];
                snprintf(expected, sizeof expected, "id %d ", where);
                ck_assert_int_eq(k3_sampler_pick(s, bad, 8, &id, &err), K3_ERR_NUMERIC);
                ck_assert_int_eq(id, 77);
                ck_assert_ptr_nonnull(strstr(err.text, expected));
                ck_assert_ptr_nonnull(strstr(err.text, kind == 2 ? "infinite" : "NaN"));
                k3_sampler_free(s);
            }
}
END_TEST

START_TEST(nothing_left) {
    static const float two[] = {1, 2}, none[] = {-INFINITY, -INFINITY};
    static const int32_t both[] = {1, 0, 1};
    for (int at_zero = 0; at_zero < 2; at_zero++) {
        k3_sampler *s = sampler(at_zero ? 0 : 1, 0, 1, 0, 1);
        int32_t id = 77;
        ck_assert_int_eq(k3_sampler_pick(s, two, 0, &id, NULL), K3_ERR_NUMERIC);
        ck_assert_int_eq(k3_sampler_pick(s, none, 2, &id, NULL), K3_ERR_NUMERIC);
        ck_assert_int_eq(k3_sampler_ban(s, both, 3, NULL), K3_OK);
        ck_assert_int_eq(k3_sampler_pick(s, two, 2, &id, NULL), K3_ERR_NUMERIC);
        ck_assert_int_eq(id, 77);
        ck_assert_int_eq(k3_sampler_ban(s, NULL, 0, NULL), K3_OK); /* replaces the list */
        ck_assert_int_ge(pick(s, two, 2), 0);
        static const int32_t negative[] = {1, -1};
        ck_assert_int_eq(k3_sampler_ban(s, negative, 2, NULL), K3_ERR_ARGUMENT);
        k3_sampler_free(s);
    }
}
END_TEST

START_TEST(banned_ids) {
    static const int32_t ban[] = {999, 0, 500, 501, 502, 500, INT32_MAX, 5000, 998, 1};
    k3_sampler *s = sampler(2, 0, 1, 0, 3);
    float flat[N] = {0};
    bool seen[N] = {false};
    ck_assert_int_eq(k3_sampler_ban(s, ban, sizeof ban / sizeof *ban, NULL), K3_OK);
    for (int k = 0; k < 30000; k++) seen[pick(s, flat, N)] = true;
    for (int i = 0; i < N; i++) {
        bool banned = i <= 1 || (i >= 500 && i <= 502) || i >= 998;
        ck_assert_int_eq(seen[i], !banned);
    }
    for (int k = 0; k < 100; k++) ck_assert_int_eq(pick(s, flat, 3), 2);
    k3_sampler_free(s);
}
END_TEST

/* ---- which ids are left, compared with sorting ---- */

static const float *sorting;

static int by_logit(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return sorting[x] != sorting[y] ? (sorting[x] < sorting[y] ? 1 : -1) : x - y;
}

/* How many of `order` are left; order: ids from the most likely on. */
static size_t kept(const float *from, size_t n, int *order, double temperature, uint32_t top_k, double top_p,
                   double min_p) {
    double sum = 0, reached = 0, best;
    size_t left = n;
    for (size_t i = 0; i < n; i++) order[i] = (int)i;
    sorting = from;
    qsort(order, n, sizeof *order, by_logit);
    best = from[order[0]];
    if (top_k && top_k < left) left = top_k;
    for (size_t i = 0; i < left; i++) sum += exp((from[order[i]] - best) / temperature);
    for (size_t i = 0; top_p < 1 && i < left; i++) {
        reached += exp((from[order[i]] - best) / temperature);
        if (reached >= top_p * sum) left = i + 1;
    }
    while (left > 1 && exp((from[order[left - 1]] - best) / temperature) < min_p) left--;
    return left;
}

static const struct {
    float temperature, top_p, min_p;
    uint32_t top_k;
} cuts[] = {
    {1, 1, 0, 1},       {1, 1, 0, 2},          {1, 1, 0, 30},          {1, 1, 0, 39},       {1, 1, 0, 40},
    {1, 1, 0, 1000},
    {1, 0.5f, 0, 0},    {1, 0.01f, 0, 0},      {1, 0.9999f, 0, 0},     {2, 0.37f, 0, 17},   {1, 1, 0.5f, 0},
    {1, 1, 0.999f, 0},  {0.5f, 0.8f, 0.02f, 9}, {3, 0.7f, 0.9f, 0},    {1e-6f, 1, 0, 0},    {1e-40f, 1, 0, 0},
    {100, 0.5f, 0, 0},  {3e38f, 0.5f, 0, 0},   {1, 1e-30f, 0, 0},      {1, 0.25f, 0, 0},
};

/* Draws so often that each id that is left is met, and no other. */
static void expect_kept(const float *from, size_t n) {
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        int order[64];
        size_t left = kept(from, n, order, cuts[c].temperature, cuts[c].top_k, cuts[c].top_p, cuts[c].min_p);
        bool seen[64] = {false};
        k3_sampler *s = sampler(cuts[c].temperature, cuts[c].top_k, cuts[c].top_p, cuts[c].min_p, c);
        for (int k = 0; k < 20000; k++) seen[pick(s, from, n)] = true;
        double last = exp(((double)from[order[left - 1]] - (double)from[order[0]]) / cuts[c].temperature);
        for (size_t i = 0; i < n; i++) {
            if (i >= left && seen[order[i]]) ck_abort_msg("case %zu: %d was cut and came", c, order[i]);
            if (i < left && last > 0.02 && !seen[order[i]]) ck_abort_msg("case %zu: %d never came", c, order[i]);
        }
        k3_sampler_free(s);
    }
}

START_TEST(cuts_equal_sorting) {
    float from[40];
    for (int i = 0; i < 40; i++) from[i] = (float)(i * 17 % 40) / 20;
    expect_kept(from, 40);
    for (int i = 0; i < 40; i++) from[i] = (float)(i * 17 % 5) / 2; /* many ties: the lower id stays */
    expect_kept(from, 40);
    for (int i = 0; i < 40; i++) from[i] = 7;
    expect_kept(from, 40);
    for (int i = 0; i < 40; i++) from[i] = (float)-(i * 17 % 40) * 3; /* steep: beyond what is ever drawn */
    expect_kept(from, 40);
}
END_TEST

/* min_p one float below and above e^-x: shows errors of the sampler's own exp from 1e-7 on. */
START_TEST(exponentials) {
    for (int i = 1; i <= 24; i++) {
        float two[2] = {5, 5 - (float)i * 0.21f};
        float p = (float)exp((double)two[1] - (double)two[0]);
        for (int above = 0; above < 2; above++) {
            k3_sampler *s = sampler(1, 0, 1, nextafterf(p, (float)above), (uint64_t)i);
            int second = 0;
            for (int k = 0; k < 2000; k++) second += pick(s, two, 2) == 1;
            ck_assert_msg((second > 0) == !above, "e^%g", (double)two[1] - (double)two[0]);
            k3_sampler_free(s);
        }
    }
}
END_TEST

/* ---- how often ---- */

/* Pearson's statistic over ids whose expectation is `p`; about its degrees of freedom if all is well. */
static double chi_square(k3_sampler *s, const float *from, size_t n, const double *p, int draws) {
    int count[64] = {0};
    double sum = 0;
    for (int k = 0; k < draws; k++) count[pick(s, from, n)]++;
    for (size_t i = 0; i < n; i++) {
        double expected = p[i] * draws;
        if (expected == 0) ck_assert_int_eq(count[i], 0);
        else sum += (count[i] - expected) * (count[i] - expected) / expected;
    }
    return sum;
}

START_TEST(distributions) {
    static const float temperatures[] = {0.5f, 1, 2};
    float from[16];
    double p[16];
    for (int i = 0; i < 16; i++) from[i] = (float)(i * 7 % 16) / 6;
    for (size_t t = 0; t < 3; t++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            double sum = 0;
            for (int i = 0; i < 16; i++) sum += exp(from[i] / temperatures[t]);
            for (int i = 0; i < 16; i++) p[i] = exp(from[i] / temperatures[t]) / sum;
            k3_sampler *s = sampler(temperatures[t], 0, 1, 0, seed);
            double x = chi_square(s, from, 16, p, 40000);
            ck_assert_msg(x > 2 && x < 37.7, "chi-square %g with 15 degrees of freedom", x); /* 0.1 % above 37.7 */
            k3_sampler_free(s);
        }
    /* After a cut the rest keeps its proportions. */
    double sum = 0;
    for (int i = 0; i < 16; i++) p[i] = i * 7 % 16 >= 12 ? exp(from[i]) : 0;
    for (int i = 0; i < 16; i++) sum += p[i];
    for (int i = 0; i < 16; i++) p[i] /= sum;
    k3_sampler *s = sampler(1, 4, 1, 0, 9);
    double x = chi_square(s, from, 16, p, 40000);
    ck_assert_msg(x < 16.3, "chi-square %g with 3 degrees of freedom", x);
    k3_sampler_free(s);
}
END_TEST

START_TEST(seeds) {
    k3_sampler *a = sampler(1, 0, 1, 0, 5), *b = sampler(1, 0, 1, 0, 5), *c = sampler(1, 0, 1, 0, 6);
    int equal = 0;
    for (int k = 0; k < 200; k++) {
        int32_t id = pick(a, logits, N);
        ck_assert_int_eq(pick(b, logits, N), id);
        equal += pick(c, logits, N) == id;
    }
    ck_assert_int_lt(equal, 20);
    k3_sampler_free(a);
    k3_sampler_free(b);
    k3_sampler_free(c);
}
END_TEST

/* The room grows with the logits. */
START_TEST(sizes_may_change) {
    k3_sampler *s = sampler(1, 3, 0.9f, 0.01f, 5);
    float *many = calloc(200000, sizeof *many);
    ck_assert_ptr_nonnull(many);
    for (int k = 0; k < 3; k++) {
        ck_assert_int_lt(pick(s, logits, 10), 10);
        many[150000] = 60;
        ck_assert_int_eq(pick(s, many, 200000), 150000);
        many[150000] = 0; /* all alike: the first three are left */
        ck_assert_int_lt(pick(s, many, 200000), 3);
    }
    free(many);
    k3_sampler_free(s);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sampler");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, NULL);
    tcase_add_test(all, recorded_ids);
    tcase_add_test(all, defaults);
    tcase_add_test(all, older_options);
    tcase_add_test(all, options_out_of_range);
    tcase_add_test(all, greedy);
    tcase_add_test(all, logits_that_are_no_numbers);
    tcase_add_test(all, nothing_left);
    tcase_add_test(all, banned_ids);
    tcase_add_test(all, cuts_equal_sorting);
    tcase_add_test(all, exponentials);
    tcase_add_test(all, distributions);
    tcase_add_test(all, seeds);
    tcase_add_test(all, sizes_may_change);
    tcase_set_timeout(all, 60);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
