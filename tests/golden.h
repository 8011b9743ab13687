/* The golden operations of tests/data/ops: cases with parameters, inputs and expected outputs.
 * Whatever is missing or wrong there fails the running test, so nothing here returns an error. */
#ifndef K3_TESTS_GOLDEN_H
#define K3_TESTS_GOLDEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOLDEN_MAX_RANK 8

struct golden_case {
    const char *name, *op;   /* live as long as the goldens */
    double tolerance, scale; /* |got - want| / max(scale, |want|) <= tolerance */
    json_t *json;            /* the manifest's object; borrowed */
};

struct golden_array {
    size_t rank, shape[GOLDEN_MAX_RANK], count; /* count: elements */
    union {                                     /* by the file's ending; free with golden_free */
        void *data;
        float *f32;
        int32_t *i32;
        uint8_t *u8;
    };
};

/* The manifest under K3_SRCDIR; close with goldens_close. */
json_t *goldens_open(void);
void goldens_close(json_t *goldens);

size_t goldens_count(const json_t *goldens);
struct golden_case goldens_at(const json_t *goldens, size_t i);
struct golden_case goldens_case(const json_t *goldens, const char *name);

/* A number, or `absent` where it is null or missing.  Reads from "params". */
double golden_param(const struct golden_case *c, const char *name, double absent);

/* Array `name` of "inputs"; golden_has_input asks whether there is one. */
bool golden_has_input(const struct golden_case *c, const char *name);
struct golden_array golden_input(const struct golden_case *c, const char *name);
struct golden_array golden_output(const struct golden_case *c, const char *name);
void golden_free(struct golden_array *a);

/* Fails unless `got` (count floats) is within the case's tolerance of output `name`.
 * NaN is right exactly where NaN is expected; infinities must be equal. */
void golden_check(const struct golden_case *c, const char *name, const float *got, size_t count);

#endif
