/* Whole models against their goldens: logits, hidden states and greedy continuations, for every
 * split, instruction set and number of threads. */
#include "run/session.h"

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct golden {
    char dir[4096];
    int32_t ids[64], greedy[64];
    size_t tokens, continuation, vocab, layers, hidden_size;
    size_t splits, pieces[8], piece[8][64];
    float *logits, *hidden;
    double tolerance;
};

static const char *const names[] = {"k3-tiny", "k3-odd", "kimi-linear-tiny"};
#define MODELS (sizeof names / sizeof *names)
static int found[MODELS]; /* those whose weights are here, set before any test runs */

static float *read_floats(const char *dir, json_t *what, size_t shape[3]) {
    char path[8192];
    size_t n = 1, i;
    json_t *d;
    json_array_foreach(json_object_get(what, "shape"), i, d) n *= shape[i] = (size_t)json_integer_value(d);
    snprintf(path, sizeof path, "%s/%s", dir, json_string_value(json_object_get(what, "file")));
    float *p = malloc(n * sizeof *p);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(p && f && fread(p, sizeof *p, n, f) == n, "%s", path);
    fclose(f);
    return p;
}

static size_t read_ids(json_t *list, int32_t *out) {
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) out[i] = (int32_t)json_integer_value(v);
    return json_array_size(list);
}

/* Weights lie beside the expected values, or were generated into the build directory. */
static bool find_dir(const char *name, char *out, size_t size) {
    const char *roots[] = {getenv("K3_BUILDDIR"), getenv("K3_SRCDIR")};
    const char *below[] = {"tests/goldens", "tests/data/models"};
    char probe[8192];
    for (int i = 0; i < 2; i++) {
        snprintf(out, size, "%s/%s/%s", roots[i] ? roots[i] : ".", below[i], name);
        snprintf(probe, sizeof probe, "%s/model.safetensors.index.json", out);
        if (access(probe, R_OK) == 0) return true;
    }
    return false;
}

static void golden_open(struct golden *g, int which) {
    char path[8192];
    size_t shape[3], i, j;
    json_t *split, *v;
    memset(g, 0, sizeof *g);
    ck_assert_msg(find_dir(names[which], g->dir, sizeof g->dir), "%s is gone", names[which]);
    snprintf(path, sizeof path, "%s/expected.json", g->dir);
    json_t *e = json_load_file(path, 0, NULL);
    ck_assert_msg(e != NULL, "%s", path);
    g->tokens = read_ids(json_object_get(e, "ids"), g->ids);
    g->continuation = read_ids(json_object_get(e, "greedy"), g->greedy);
    g->tolerance = json_real_value(json_object_get(e, "tolerance"));
    g->logits = read_floats(g->dir, json_object_get(e, "logits"), shape);
    g->vocab = shape[1];
    g->hidden = read_floats(g->dir, json_object_get(e, "hidden"), shape);
    g->layers = shape[0];
    g->hidden_size = shape[2];
    json_array_foreach(json_object_get(e, "splits"), i, split) {
        json_array_foreach(split, j, v) g->piece[i][j] = (size_t)json_integer_value(v);
        g->pieces[i] = json_array_size(split);
    }
    g->splits = json_array_size(json_object_get(e, "splits"));
    json_decref(e);
}

static void golden_close(struct golden *g) {
    free(g->logits);
    free(g->hidden);
}

static k3_model *open_model(const struct golden *g, const char *isa, int threads) {
    k3_model_options o;
    k3_error err;
    k3_model *m = NULL;
    k3_model_options_init(&o);
    o.isa = isa;
    o.threads = threads;
    k3_status status = k3_model_open(g->dir, &o, &m, &err);
    ck_assert_msg(status == K3_OK, "%s", k3_error_text(&err));
    return m;
}

static void feed(k3_session *s, const int32_t *ids, size_t n, float *all) {
    k3_error err;
    k3_status status = k3_session_feed(s, ids, n, all, &err);
    ck_assert_msg(status == K3_OK, "%s", k3_error_text(&err));
}

static double worst(const float *got, const float *want, size_t n) {
    double w = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]) / fmax(1, fabs((double)want[i]));
        if (!(d <= w)) w = d; /* NaN too */
    }
    return w;
}

/* Collects hidden states as [layers, tokens, D]. */
struct hidden {
    const struct golden *g;
    float *to;
    size_t at, n; /* the piece that is being fed */
};

static void take_hidden(void *user, uint32_t layer, const float *x) {
    struct hidden *h = user;
    size_t d = h->g->hidden_size;
    memcpy(h->to + (layer * h->g->tokens + h->at) * d, x, h->n * d * sizeof *x);
}

static void check_split(const struct golden *g, k3_model *m, size_t split) {
    float *logits = malloc(g->tokens * g->vocab * sizeof *logits);
    struct hidden h = {.g = g, .to = malloc(g->layers * g->tokens * g->hidden_size * sizeof(float))};
    k3_session *s = NULL;
    ck_assert_int_eq(k3_session_new(m, &s, NULL), K3_OK);
    s->tap = take_hidden;
    s->tap_user = &h;
    for (size_t i = 0; i < g->pieces[split]; i++) {
        h.n = g->piece[split][i];
        feed(s, g->ids + h.at, h.n, logits + h.at * g->vocab);
        h.at += h.n;
    }
    ck_assert_uint_eq(k3_session_position(s), g->tokens);
    double e = worst(logits, g->logits, g->tokens * g->vocab);
    double eh = worst(h.to, g->hidden, g->layers * g->tokens * g->hidden_size);
    printf("%s %s split %zu: logits %.1e, hidden %.1e\n", strrchr(g->dir, '/') + 1, k3_model_isa(m), split, e, eh);
    ck_assert_msg(e <= g->tolerance, "logits %g", e);
    ck_assert_msg(eh <= g->tolerance, "hidden %g", eh);
    k3_session_free(s);
    free(logits);
    free(h.to);
}

START_TEST(logits_and_hidden) {
    struct golden g;
    const char *isa;
    golden_open(&g, found[_i]);
    for (size_t i = 0; (isa = k3_isa_name(i)); i++) {
        k3_model *m = open_model(&g, isa, 2);
        for (size_t split = 0; split < g.splits; split++) check_split(&g, m, split);
        k3_model_close(m);
    }
    golden_close(&g);
}
END_TEST

static int32_t argmax(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return (int32_t)best;
}

START_TEST(greedy) {
    struct golden g;
    const char *isa;
    golden_open(&g, found[_i]);
    for (size_t i = 0; (isa = k3_isa_name(i)); i++) {
        k3_model *m = open_model(&g, isa, 2);
        k3_session *s = NULL;
        ck_assert_int_eq(k3_session_new(m, &s, NULL), K3_OK);
        feed(s, g.ids, g.tokens, NULL);
        for (size_t t = 0; t < g.continuation; t++) {
            int32_t id = argmax(k3_session_logits(s), g.vocab);
            ck_assert_int_eq(id, g.greedy[t]);
            feed(s, &id, 1, NULL);
        }
        k3_session_free(s);
        k3_model_close(m);
    }
    golden_close(&g);
}
END_TEST

/* All logits of the ids fed in the pieces [7, 1, 33, 7], by a new session of a new model. */
static float *run_bits(const struct golden *g, const char *isa, int threads) {
    k3_model *m = open_model(g, isa, threads);
    k3_session *s = NULL;
    float *logits = malloc(g->tokens * g->vocab * sizeof *logits);
    ck_assert_int_eq(k3_session_new(m, &s, NULL), K3_OK);
    for (size_t i = 0, at = 0; i < g->pieces[2]; at += g->piece[2][i++])
        feed(s, g->ids + at, g->piece[2][i], logits + at * g->vocab);
    k3_session_free(s);
    k3_model_close(m);
    return logits;
}

START_TEST(same_bits_for_all_threads) {
    static const int threads[] = {1, 2, 3, 8, 1};
    struct golden g;
    const char *isa;
    golden_open(&g, found[_i]);
    for (size_t i = 0; (isa = k3_isa_name(i)); i++) {
        float *first = run_bits(&g, isa, threads[0]);
        for (size_t j = 1; j < sizeof threads / sizeof *threads; j++) {
            float *again = run_bits(&g, isa, threads[j]);
            ck_assert_msg(!memcmp(first, again, g.tokens * g.vocab * sizeof *first), "%d threads, %s", threads[j], isa);
            free(again);
        }
        free(first);
    }
    golden_close(&g);
}
END_TEST

/* Two sessions on each of two models, fed in turns, and a reset: none disturbs another. */
START_TEST(sessions_are_apart) {
    struct golden g;
    golden_open(&g, found[_i]);
    k3_model *m[2] = {open_model(&g, NULL, 2), open_model(&g, "scalar", 1)};
    k3_session *s[4];
    float *alone = malloc(g.vocab * sizeof *alone);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(k3_session_new(m[i / 2], &s[i], NULL), K3_OK);
    feed(s[0], g.ids, 20, NULL);
    memcpy(alone, k3_session_logits(s[0]), g.vocab * sizeof *alone);
    for (size_t t = 0; t < 20; t++) {
        feed(s[1], g.ids + 20 + t, 1, NULL); /* noise */
        feed(s[2], g.ids + t, 1, NULL);
        feed(s[3], g.ids + 19 - t, 1, NULL);
    }
    k3_session_reset(s[1]);
    ck_assert_ptr_null(k3_session_logits(s[1]));
    feed(s[1], g.ids, 20, NULL);
    ck_assert(!memcmp(alone, k3_session_logits(s[1]), g.vocab * sizeof *alone));
    ck_assert(worst(k3_session_logits(s[2]), alone, g.vocab) <= g.tolerance);
    for (int i = 0; i < 4; i++) k3_session_free(s[i]);
    for (int i = 0; i < 2; i++) k3_model_close(m[i]);
    free(alone);
    golden_close(&g);
}
END_TEST

struct reader {
    k3_model *model;
    const struct golden *g;
    float *logits;
};

static void *read_alone(void *arg) {
    struct reader *r = arg;
    k3_session *s = NULL;
    if (k3_session_new(r->model, &s, NULL) != K3_OK) return NULL;
    k3_status status = k3_session_feed(s, r->g->ids, 16, NULL, NULL);
    for (size_t t = 16; t < r->g->tokens && !status; t++) status = k3_session_feed(s, r->g->ids + t, 1, NULL, NULL);
    if (!status) memcpy(r->logits, k3_session_logits(s), r->g->vocab * sizeof(float));
    k3_session_free(s);
    return status ? NULL : r;
}

/* Sessions of one model on several threads of the program at once. */
START_TEST(threads_share_a_model) {
    enum { READERS = 3 };
    struct golden g;
    struct reader r[READERS];
    pthread_t thread[READERS];
    void *done;
    golden_open(&g, found[_i]);
    k3_model *m = open_model(&g, NULL, 2);
    for (int i = 0; i < READERS; i++) {
        r[i] = (struct reader){m, &g, malloc(g.vocab * sizeof(float))};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_alone, &r[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(thread[i], &done);
        ck_assert_ptr_nonnull(done);
        ck_assert(!memcmp(r[0].logits, r[i].logits, g.vocab * sizeof(float)));
    }
    ck_assert(worst(r[0].logits, g.logits + (g.tokens - 1) * g.vocab, g.vocab) <= g.tolerance);
    for (int i = 0; i < READERS; i++) free(r[i].logits);
    k3_model_close(m);
    golden_close(&g);
}
END_TEST

/* A block boundary of 512 tokens inside a feed, pages of the cache, and both forms of MLA give what
 * single steps give. */
START_TEST(long_prompt) {
    struct golden g;
    golden_open(&g, found[_i]);
    enum { TOKENS = 700 };
    int32_t ids[TOKENS];
    for (size_t i = 0; i < TOKENS; i++) ids[i] = g.ids[i * 7 % g.tokens];
    k3_model *m = open_model(&g, NULL, 2);
    k3_session *whole = NULL, *steps = NULL;
    ck_assert_int_eq(k3_session_new(m, &whole, NULL), K3_OK);
    ck_assert_int_eq(k3_session_new(m, &steps, NULL), K3_OK);
    feed(whole, ids, TOKENS, NULL);
    for (size_t i = 0; i < TOKENS; i++) feed(steps, ids + i, 1, NULL);
    double e = worst(k3_session_logits(whole), k3_session_logits(steps), g.vocab);
    printf("%s: 700 tokens at once against one by one: %.1e\n", names[found[_i]], e);
    ck_assert_msg(e <= g.tolerance, "%g", e);
    k3_session_free(whole);
    k3_session_free(steps);
    k3_model_close(m);
    golden_close(&g);
}
END_TEST

START_TEST(errors) {
    struct golden g;
    k3_error err;
    golden_open(&g, found[_i]);
    k3_model *m = open_model(&g, NULL, 1);
    k3_session *s = NULL;
    ck_assert_int_eq(k3_session_new(m, &s, &err), K3_OK);
    int32_t bad[2] = {1, (int32_t)g.vocab};
    ck_assert_int_eq(k3_session_feed(s, bad, 2, NULL, &err), K3_ERR_TOKEN);
    ck_assert_ptr_nonnull(strstr(k3_error_text(&err), "index 1"));
    bad[1] = -1;
    ck_assert_int_eq(k3_session_feed(s, bad, 2, NULL, &err), K3_ERR_TOKEN);
    ck_assert_uint_eq(k3_session_position(s), 0);
    ck_assert_int_eq(k3_session_feed(s, NULL, 0, NULL, &err), K3_OK);
    k3_session_free(s);
    uint64_t used = k3_model_memory_used(m);
    k3_model_close(m);
    /* A budget that holds the weights and nothing more: sessions fail, the model stays. */
    k3_model_options o;
    k3_model_options_init(&o);
    o.memory = used;
    ck_assert_int_eq(k3_model_open(g.dir, &o, &m, &err), K3_OK);
    ck_assert_int_eq(k3_session_new(m, &s, &err), K3_ERR_MEMORY);
    ck_assert_uint_eq(k3_model_memory_used(m), used);
    k3_model_close(m);
    o.memory = used / 2;
    ck_assert_int_eq(k3_model_open(g.dir, &o, &m, &err), K3_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(k3_error_text(&err), "bytes"));
    o.memory = 0;
    o.isa = "vax";
    ck_assert_int_eq(k3_model_open(g.dir, &o, &m, &err), K3_ERR_UNSUPPORTED);
    golden_close(&g);
}
END_TEST

/* Models that are not here get no test, instead of one that passes without looking. */
static int find_models(void) {
    char dir[4096];
    int n = 0;
    for (int i = 0; i < (int)MODELS; i++) {
        if (find_dir(names[i], dir, sizeof dir)) {
            found[n++] = i;
        } else {
            printf("%s: not generated (tests/make_models.sh needs python3-numpy): not compared\n", names[i]);
        }
    }
    return n;
}

int main(void) {
    int models = find_models();
    Suite *s = suite_create("models");
    TCase *t = tcase_create("goldens");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, logits_and_hidden, 0, models);
    tcase_add_loop_test(t, greedy, 0, models);
    tcase_add_loop_test(t, same_bits_for_all_threads, 0, models);
    tcase_add_loop_test(t, sessions_are_apart, 0, models);
    tcase_add_loop_test(t, threads_share_a_model, 0, models);
    tcase_add_loop_test(t, long_prompt, 0, models);
    tcase_add_loop_test(t, errors, 0, models);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
