/* What the kernel tests share: every test runs once for each table that this CPU can run. */
#ifndef K3_TESTS_KERNELS_H
#define K3_TESTS_KERNELS_H

#include "simd/kernels.h"

#include <check.h>
#include <stdint.h>

/* Floats that end right before an unmapped page, with a pattern in front of them. */
struct guarded {
    float *data;
    size_t n;
    void *map;
    size_t bytes;
};

struct guarded guarded_new(size_t n);
/* A copy of n floats. */
struct guarded guarded_copy(const float *from, size_t n);
/* Fails if anything in front of the data was written. */
void guarded_check(const struct guarded *g);
/* Checks, then frees. */
void guarded_free(struct guarded *g);

/* Seeded; the same numbers everywhere. */
struct random {
    uint64_t state;
};
uint64_t random_bits(struct random *r);
float random_float(struct random *r, float low, float high);
/* Either sign, magnitudes from 10^low to 10^high. */
float random_wide(struct random *r, float low, float high);
void random_fill(struct random *r, float *x, size_t n, float low, float high);

/* Lengths around every width that kernels work in. */
extern const size_t test_lengths[];
extern const size_t test_lengths_count;

/* Zeros, subnormals, the edges of exp, large, infinite and NaN. */
extern const float test_specials[];
extern const size_t test_specials_count;

/* |got - want| in units of the last place of want (of the smallest normal below it). */
double ulps(float got, double want);
/* The same bits, or both NaN. */
bool same_bits(float a, float b);

double reference_sigmoid(double x);

TCase *case_elementwise(int tables);
TCase *case_reductions(int tables);
TCase *case_softmax(int tables);
TCase *case_kda(int tables);
TCase *case_matmul(int tables);
TCase *case_goldens(int tables);

#endif
