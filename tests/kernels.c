/* Every kernel of every table, against double precision: random, tiny,
 * odd, unaligned and extreme inputs between guards. */
#include "kernels.h"

#include <math.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRONT 64 /* bytes of pattern at least */
#define PATTERN 0xa5

struct guarded guarded_new(size_t n) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), data = n * sizeof(float);
    size_t bytes = (data + FRONT + page - 1) / page * page;
    unsigned char *map = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_msg(map != MAP_FAILED, "mmap");
    ck_assert_int_eq(mprotect(map + bytes, page, PROT_NONE), 0);
    memset(map, PATTERN, bytes);
    return (struct guarded){(float *)(void *)(map + bytes - data), n, map, bytes + page};
}

struct guarded guarded_copy(const float *from, size_t n) {
    struct guarded g = guarded_new(n);
    if (n) memcpy(g.data, from, n * sizeof *from);
    return g;
}

void guarded_check(const struct guarded *g) {
    for (const unsigned char *p = g->map; p < (const unsigned char *)g->data; p++)
        if (*p != PATTERN) ck_abort_msg("a byte was written %td bytes in front", (const unsigned char *)g->data - p);
}

void guarded_free(struct guarded *g) {
    guarded_check(g);
    munmap(g->map, g->bytes);
}

uint64_t random_bits(struct random *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

float random_float(struct random *r, float low, float high) {
    return low + (high - low) * (float)(random_bits(r) >> 40) * 0x1p-24f;
}

float random_wide(struct random *r, float low, float high) {
    float x = powf(10, random_float(r, low, high));
    return random_bits(r) >> 63 ? -x : x;
}

void random_fill(struct random *r, float *x, size_t n, float low, float high) {
    for (size_t i = 0; i < n; i++) x[i] = random_float(r, low, high);
}

const size_t test_lengths[] = {0,  1,  2,  3,  5,  7,  8,  9,  11, 15,  16,  17,  23,  24,
                               25, 31, 32, 33, 40, 47, 63, 64, 65, 100, 127, 257, 1000};
const size_t test_lengths_count = sizeof test_lengths / sizeof *test_lengths;

const float test_specials[] = {
    0.0f,       -0.0f,     0x1p-149f, -0x1p-149f, 1e-40f,    -1e-40f, FLT_MIN,     -FLT_MIN,     1e-30f,  -1e-30f,
    1e-10f,     -1e-10f,   3e-4f,     -3e-4f,     0.1f,      -0.1f,   0.34657359f, -0.34657359f, 0.5f,    -0.5f,
    1,          -1,        3.14159f,  -3.14159f,  9.01f,     -9.01f,  16.7f,       -16.7f,       20,      -20,
    20.000002f, 25,        -25,       80,         -80,       87.3f,   -87.3f,      87.4f,        -87.4f,  88,
    -88,        88.72283f, 88.72284f, 89,         -89,       100,     -100,        -103.2f,      -103.9f, -103.98f,
    -104,       -105,      -106,      128,        -150,      1000,    -1000,       1e4f,         -1e4f,   1e30f,
    -1e30f,     FLT_MAX,   -FLT_MAX,  INFINITY,   -INFINITY, NAN,     -NAN,
};
const size_t test_specials_count = sizeof test_specials / sizeof *test_specials;

double ulps(float got, double want) {
    int exponent;
    frexp(want, &exponent); /* |want| in [2^(exponent-1), 2^exponent) */
    return fabs((double)got - want) / ldexp(1, exponent - 24 > -149 ? exponent - 24 : -149);
}

bool same_bits(float a, float b) {
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

double reference_sigmoid(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

START_TEST(tables_are_found_by_name) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    ck_assert_ptr_eq(k3_kernels_find(k->isa), k);
}
END_TEST

START_TEST(the_best_table_comes_first_and_plain_c_last) {
    size_t n = 0;
    while (k3_kernels_at(n)) n++;
    ck_assert_uint_ge(n, 1);
    ck_assert_str_eq(k3_kernels_at(n - 1)->isa, "scalar");
    ck_assert_ptr_eq(k3_kernels_find(NULL), k3_kernels_at(0));
    ck_assert_ptr_null(k3_kernels_find("z80"));
    ck_assert_ptr_null(k3_kernels_find(""));
}
END_TEST

/* A table is an array of function pointers behind a name: none may be missing. */
START_TEST(no_kernel_is_missing) {
    const struct k3_kernels *k = k3_kernels_at((size_t)_i);
    const unsigned char zero[sizeof(void (*)(void))] = {0};
    for (size_t at = sizeof k->isa; at + sizeof zero <= sizeof *k; at += sizeof zero)
        ck_assert_msg(memcmp((const unsigned char *)k + at, zero, sizeof zero) != 0, "%s: entry at %zu", k->isa, at);
}
END_TEST

int main(void) {
    int tables = 0;
    while (k3_kernels_at((size_t)tables)) tables++;
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("tables");
    tcase_add_test(t, the_best_table_comes_first_and_plain_c_last);
    tcase_add_loop_test(t, tables_are_found_by_name, 0, tables);
    tcase_add_loop_test(t, no_kernel_is_missing, 0, tables);
    suite_add_tcase(s, t);
    suite_add_tcase(s, case_elementwise(tables));
    suite_add_tcase(s, case_reductions(tables));
    suite_add_tcase(s, case_softmax(tables));
    suite_add_tcase(s, case_kda(tables));
    suite_add_tcase(s, case_matmul(tables));
    suite_add_tcase(s, case_goldens(tables));
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
