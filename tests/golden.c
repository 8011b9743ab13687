#include "golden.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void path_of(char *path, size_t size, const char *file) {
    const char *dir = getenv("K3_SRCDIR");
    int n = snprintf(path, size, "%s/tests/data/ops/%s", dir ? dir : ".", file);
    if (n < 0 || (size_t)n >= size) ck_abort_msg("path too long: %s", file);
}

json_t *goldens_open(void) {
    char path[4096];
    json_error_t error;
    path_of(path, sizeof path, "manifest.json");
    json_t *root = json_load_file(path, 0, &error);
    if (!root) ck_abort_msg("%s:%d: %s", path, error.line, error.text);
    return root;
}

void goldens_close(json_t *goldens) {
    json_decref(goldens);
}

size_t goldens_count(const json_t *goldens) {
    return json_array_size(json_object_get(goldens, "cases"));
}

struct golden_case goldens_at(const json_t *goldens, size_t i) {
    json_t *o = json_array_get(json_object_get(goldens, "cases"), i);
    struct golden_case c = {
        .name = json_string_value(json_object_get(o, "name")),
        .op = json_string_value(json_object_get(o, "op")),
        .tolerance = json_number_value(json_object_get(o, "tolerance")),
        .scale = json_number_value(json_object_get(o, "scale")),
        .json = o,
    };
    if (!c.name || !c.op) ck_abort_msg("manifest.json: case %zu has no name or op", i);
    return c;
}

struct golden_case goldens_case(const json_t *goldens, const char *name) {
    for (size_t i = 0; i < goldens_count(goldens); i++) {
        struct golden_case c = goldens_at(goldens, i);
        if (!strcmp(c.name, name)) return c;
    }
    ck_abort_msg("manifest.json: no case %s", name);
}

double golden_param(const struct golden_case *c, const char *name, double absent) {
    const json_t *v = json_object_get(json_object_get(c->json, "params"), name);
    return json_is_number(v) ? json_number_value(v) : absent;
}

static size_t element_size(const char *file) {
    const char *ending = strrchr(file, '.');
    if (ending && !strcmp(ending, ".u8")) return 1;
    if (ending && (!strcmp(ending, ".f32") || !strcmp(ending, ".i32"))) return 4;
    ck_abort_msg("%s: unknown type", file);
}

static void *read_file(const char *file, size_t bytes) {
    char path[4096];
    path_of(path, sizeof path, file);
    FILE *f = fopen(path, "rb");
    if (!f) ck_abort_msg("%s: cannot open", path);
    void *data = malloc(bytes + 1);
    if (!data || fread(data, 1, bytes + 1, f) != bytes) ck_abort_msg("%s: not %zu bytes", path, bytes);
    fclose(f);
    return data;
}

static struct golden_array load(const struct golden_case *c, const char *group, const char *name) {
    const json_t *o = json_object_get(json_object_get(c->json, group), name), *shape = json_object_get(o, "shape");
    const char *file = json_string_value(json_object_get(o, "file"));
    struct golden_array a = {.rank = json_array_size(shape), .count = 1};
    if (!file || a.rank > GOLDEN_MAX_RANK) ck_abort_msg("%s: no %s %s", c->name, group, name);
    for (size_t i = 0; i < a.rank; i++) {
        a.shape[i] = (size_t)json_integer_value(json_array_get(shape, i));
        a.count *= a.shape[i];
    }
    a.data = read_file(file, a.count * element_size(file));
    return a;
}

bool golden_has_input(const struct golden_case *c, const char *name) {
    return json_object_get(json_object_get(c->json, "inputs"), name) != NULL;
}

struct golden_array golden_input(const struct golden_case *c, const char *name) {
    return load(c, "inputs", name);
}

struct golden_array golden_output(const struct golden_case *c, const char *name) {
    return load(c, "outputs", name);
}

void golden_free(struct golden_array *a) {
    free(a->data);
    a->data = NULL;
}

void golden_check(const struct golden_case *c, const char *name, const float *got, size_t count) {
    struct golden_array want = golden_output(c, name);
    if (want.count != count) ck_abort_msg("%s %s: %zu values, not %zu", c->name, name, count, want.count);
    for (size_t i = 0; i < count; i++) {
        double w = want.f32[i], g = got[i], error = fabs(g - w) / fmax(c->scale, fabs(w));
        if (isnan(w) ? isnan(g) : g == w) continue;
        if (!(error <= c->tolerance))
            ck_abort_msg("%s %s[%zu]: %.9g, not %.9g: error %g above %g", c->name, name, i, g, w, error, c->tolerance);
    }
    golden_free(&want);
}
