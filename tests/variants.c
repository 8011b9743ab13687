/* The same small model written in other valid ways must give the same answer: other dtypes, shapes,
 * one file, a tied head, packed trunk matrices, pruned layers. */
#include "format/safetensors.h"
#include "model/model.h"
#include "tests/checkpoint_writer.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS 12
#define VOCAB 512

enum form {
    AS_IT_IS,     /* in one file */
    F32_TRUNK,
    F16_TRUNK,    /* BF16 values rounded to F16 ... */
    F16_AS_F32,   /* ... and the same values as F32 */
    FLAT_SHAPES,  /* convolutions [C, w], AttnRes projections [D], A_log [1, 1, n, 1] */
    TIED,         /* no lm_head */
    COPIED_HEAD,  /* lm_head is a copy of the embedding */
    PACKED_Q,     /* q_proj of layer 0 from MXFP4 codes ... */
    WIDENED_Q,    /* ... and the same values as F32 */
    PRUNED,       /* layer 1 has lost its last two experts ... */
    UNLOVED       /* ... or has them and never chooses them */
};

struct copy {
    struct checkpoint_writer w;
    enum form form;
    const struct k3_tensors *tensors;
};

static char source[4096];

static void *read_tensor(const struct copy *c, const struct k3_tensor *t) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", source, k3_tensors_shard(c->tensors, t->shard)->name);
    FILE *f = fopen(path, "rb");
    void *p = malloc(t->bytes + 1);
    ck_assert(f && p && !fseek(f, (long)t->offset, SEEK_SET) && fread(p, 1, t->bytes, f) == t->bytes);
    fclose(f);
    return p;
}

static float widen(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* By arithmetic, independent of the kernels under test; what lies below F16's range is cut off. */
static uint16_t to_f16(float f) {
    float m = fabsf(f);
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    if (m < ldexpf(1, -14)) return sign | (uint16_t)(m * ldexpf(1, 24));
    int e = ilogbf(m);
    return sign | (uint16_t)((e + 15) << 10 | (int)((m / ldexpf(1, e) - 1) * 1024));
}

static float from_f16(uint16_t h) {
    int e = h >> 10 & 31, m = h & 1023;
    float f = e ? ldexpf((float)(1024 + m), e - 25) : ldexpf((float)m, -24);
    return h & 0x8000 ? -f : f;
}

static void add_converted(struct copy *c, const char *name, const char *dtype, size_t rank, const size_t *shape,
                          const uint16_t *data, size_t n) {
    float *f = malloc(n * sizeof *f);
    uint16_t *h = malloc(n * sizeof *h);
    for (size_t i = 0; i < n; i++) {
        f[i] = widen(data[i]);
        h[i] = to_f16(f[i]);
        if (c->form == F16_AS_F32) f[i] = from_f16(h[i]);
    }
    writer_add(&c->w, name, dtype, rank, shape, !strcmp(dtype, "F32") ? (const void *)f : h);
    free(f), free(h);
}

static bool ends(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Layer 0's q_proj becomes a matrix of random codes, packed or widened. */
static void add_q(struct copy *c, const char *base, size_t rows, size_t cols) {
    static const float value[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    char name[512];
    uint8_t *packed = malloc(rows * cols / 2), *scale = malloc(rows * cols / 32);
    float *wide = malloc(rows * cols * sizeof *wide);
    srand(3);
    for (size_t i = 0; i < rows * cols / 2; i++) packed[i] = (uint8_t)rand();
    for (size_t i = 0; i < rows * cols / 32; i++) scale[i] = (uint8_t)(121 + rand() % 3);
    for (size_t i = 0; i < rows * cols; i++) {
        int code = packed[i / 2] >> (i % 2 * 4) & 15;
        wide[i] = (code & 8 ? -1 : 1) * value[code & 7] * ldexpf(1, scale[i / 32] - 127);
    }
    if (c->form == PACKED_Q) {
        snprintf(name, sizeof name, "%s_packed", base);
        writer_add(&c->w, name, "U8", 2, (size_t[]){rows, cols / 2}, packed);
        snprintf(name, sizeof name, "%s_scale", base);
        writer_add(&c->w, name, "U8", 2, (size_t[]){rows, cols / 32}, scale);
    } else {
        writer_add(&c->w, base, "F32", 2, (size_t[]){rows, cols}, wide);
    }
    free(packed), free(scale), free(wide);
}

/* Handles a tensor that this form changes; false: copy it as it is. */
static bool add_changed(struct copy *c, const char *name, const struct k3_tensor *t, void *data) {
    size_t shape[4], n = 1;
    for (uint8_t i = 0; i < t->rank; i++) n *= shape[i] = (size_t)t->shape[i];
    bool router = strstr(name, "layers.1.block_sparse_moe.gate.") != NULL;
    switch (c->form) {
    case F32_TRUNK:
    case F16_AS_F32:
        if (t->dtype != K3_DTYPE_BF16) return false;
        add_converted(c, name, "F32", t->rank, shape, data, n);
        return true;
    case F16_TRUNK:
        if (t->dtype != K3_DTYPE_BF16) return false;
        add_converted(c, name, "F16", t->rank, shape, data, n);
        return true;
    case FLAT_SHAPES:
        if (ends(name, "conv1d.weight")) writer_add(&c->w, name, "F32", 2, (size_t[]){shape[0], shape[2]}, data);
        else if (ends(name, "res_proj.weight")) writer_add(&c->w, name, "BF16", 1, &shape[1], data);
        else if (ends(name, "A_log")) writer_add(&c->w, name, "F32", 4, (size_t[]){1, 1, n, 1}, data);
        else return false;
        return true;
    case TIED: return ends(name, "lm_head.weight");
    case COPIED_HEAD: {
        if (!ends(name, "lm_head.weight")) return false;
        const char *embedding = "language_model.model.embed_tokens.weight";
        void *copy = read_tensor(c, k3_tensors_find(c->tensors, embedding, strlen(embedding)));
        writer_add(&c->w, name, "BF16", 2, shape, copy);
        free(copy);
        return true;
    }
    case PACKED_Q:
    case WIDENED_Q:
        if (!ends(name, "layers.0.self_attn.q_proj.weight")) return false;
        add_q(c, name, shape[0], shape[1]);
        return true;
    case PRUNED: {
        shape[0] -= router ? 2 : 0;
        if (router) writer_add(&c->w, name, t->dtype == K3_DTYPE_F32 ? "F32" : "BF16", t->rank, shape, data);
        return router || strstr(name, "layers.1.block_sparse_moe.experts.14.") ||
               strstr(name, "layers.1.block_sparse_moe.experts.15.");
    }
    case UNLOVED:
        if (!router || !ends(name, "bias")) return false;
        ((float *)data)[14] = ((float *)data)[15] = -100;
        writer_add(&c->w, name, "F32", t->rank, shape, data);
        return true;
    case AS_IT_IS: break;
    }
    return false;
}

static void write_form(enum form form, char *dir) {
    static const char *const dtypes[] = {"BF16", "F16", "F32", "U8"};
    struct copy c = {.form = form};
    struct k3_tensors *tensors = NULL;
    char path[8192], name[256];
    ck_assert_int_eq(k3_tensors_open(source, &tensors, NULL), K3_OK);
    c.tensors = tensors;
    writer_init(&c.w);
    json_decref(c.w.config);
    snprintf(path, sizeof path, "%s/config.json", source);
    c.w.config = json_load_file(path, 0, NULL);
    if (form == TIED) json_object_set_new(json_object_get(c.w.config, "text_config"), "tie_word_embeddings", json_true());
    for (uint64_t i = 0; i < k3_tensors_count(tensors); i++) {
        const struct k3_tensor *t = k3_tensors_at(tensors, i);
        size_t shape[4];
        for (uint8_t j = 0; j < t->rank; j++) shape[j] = (size_t)t->shape[j];
        snprintf(name, sizeof name, "%.*s", (int)t->name_length, t->name);
        void *data = read_tensor(&c, t);
        if (!add_changed(&c, name, t, data)) writer_add(&c.w, name, dtypes[t->dtype], t->rank, shape, data);
        free(data);
    }
    k3_tensors_close(tensors);
    writer_save(&c.w, dir);
}

/* Logits of a few tokens, in two pieces. */
static float *answer(enum form form) {
    static const int32_t ids[TOKENS] = {5, 17, 300, 41, 5, 5, 120, 500, 77, 3, 256, 9};
    char dir[64];
    k3_error err;
    k3_model *m = NULL;
    k3_session *s = NULL;
    float *logits = malloc(TOKENS * VOCAB * sizeof *logits);
    write_form(form, dir);
    k3_status status = k3_model_open(dir, NULL, &m, &err);
    ck_assert_msg(status == K3_OK, "form %d: %s", form, k3_error_text(&err));
    writer_remove(dir);
    ck_assert_int_eq(k3_session_new(m, &s, NULL), K3_OK);
    ck_assert_int_eq(k3_session_feed(s, ids, 8, logits, NULL), K3_OK);
    ck_assert_int_eq(k3_session_feed(s, ids + 8, 4, logits + 8 * VOCAB, NULL), K3_OK);
    k3_session_free(s);
    k3_model_close(m);
    return logits;
}

static const struct {
    enum form a, b;
    float tolerance; /* 0: the same bits */
} pairs[] = {
    {AS_IT_IS, F32_TRUNK, 1e-4f}, {F16_TRUNK, F16_AS_F32, 1e-4f}, {AS_IT_IS, FLAT_SHAPES, 0}, {TIED, COPIED_HEAD, 0},
    {PACKED_Q, WIDENED_Q, 1e-4f}, {PRUNED, UNLOVED, 0},
};

START_TEST(forms_agree) {
    float *a = answer(pairs[_i].a), *b = answer(pairs[_i].b), most = 0;
    for (size_t i = 0; i < TOKENS * VOCAB; i++) {
        float d = fabsf(a[i] - b[i]) / fmaxf(1, fabsf(b[i]));
        if (!(d <= most)) most = d;
    }
    printf("forms %d and %d differ by %.1e\n", pairs[_i].a, pairs[_i].b, (double)most);
    ck_assert_msg(most <= pairs[_i].tolerance, "%g", (double)most);
    free(a), free(b);
}
END_TEST

/* The forms that change weights must change the answer, or the pairs above prove nothing. */
START_TEST(forms_differ) {
    static const enum form others[] = {F16_TRUNK, TIED, PACKED_Q, PRUNED};
    float *a = answer(AS_IT_IS), *b = answer(others[_i]);
    ck_assert(memcmp(a, b, TOKENS * VOCAB * sizeof *a) != 0);
    free(a), free(b);
}
END_TEST

int main(void) {
    const char *root = getenv("K3_SRCDIR");
    snprintf(source, sizeof source, "%s/tests/data/models/k3-tiny", root ? root : ".");
    Suite *s = suite_create("variants");
    TCase *t = tcase_create("forms");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, forms_agree, 0, sizeof pairs / sizeof *pairs);
    tcase_add_loop_test(t, forms_differ, 0, 4);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
