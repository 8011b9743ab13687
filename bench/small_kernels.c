/* Times the kernels that are no matrix products, for every table that this CPU runs: medians on data in the caches,
 * and one sweep of KDA states through memory beside what the same memory gives when it is only read and written.
 *
 * usage: bench/small_kernels [ISA] */
#include "simd/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 15
#define ROUND_SECONDS 0.004
#define LONG 7168   /* hidden_size of K3 */
#define FF 3072     /* its moe_intermediate_size */
#define HEAD 128    /* its KDA head_dim */
#define SOURCES 9   /* of AttnRes at its last layers */
#define TOKENS 64   /* of a convolution */
#define TILE 256    /* scores of a page */
#define STATES 1024 /* of one head each, 64 MiB in all */
#define STATE (HEAD * HEAD)

struct data {
    const struct k3_kernels *k;
    float *a, *b, *c, *y; /* [SOURCES * LONG] */
    const float *source[SOURCES];
    float weight[SOURCES];
    float *states; /* [STATES, STATE] */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of one call. */
static double seconds(void (*run)(const struct data *), const struct data *d) {
    double round[ROUNDS];
    size_t calls = 1;
    for (double t = 0; t < ROUND_SECONDS; calls *= 2) {
        double start = now();
        for (size_t i = 0; i < calls; i++) run(d);
        t = now() - start;
    }
    for (size_t r = 0; r < ROUNDS; r++) {
        double start = now();
        for (size_t i = 0; i < calls; i++) run(d);
        round[r] = (now() - start) / (double)calls;
    }
    qsort(round, ROUNDS, sizeof *round, by_size);
    return round[ROUNDS / 2];
}

static void situ(const struct data *d) {
    d->k->situ_glu(d->y, d->a, d->b, 4, 25, FF);
}
static void silu(const struct data *d) {
    d->k->silu_glu(d->y, d->a, d->b, FF);
}
static void sigmoid_mul(const struct data *d) {
    d->k->sigmoid_mul(d->y, d->a, d->b, FF);
}
static void exponential(const struct data *d) {
    d->k->exp(d->y, d->a, FF);
}
static void bounded(const struct data *d) {
    d->k->kda_gate_bounded(d->y, d->a, d->b, 2, -5, HEAD);
}
static void softplus(const struct data *d) {
    d->k->kda_gate_softplus(d->y, d->a, d->b, 2, HEAD);
}
static void rms_norm(const struct data *d) {
    d->k->rms_norm(d->y, d->a, d->b, 1e-5f, LONG);
}
static void gated_rms_norm(const struct data *d) {
    d->k->gated_rms_norm(d->y, d->a, d->b, d->c, 1e-5f, HEAD);
}
static void l2_norm(const struct data *d) {
    d->k->l2_norm(d->y, d->a, 1, HEAD);
}
static void add(const struct data *d) {
    d->k->add(d->y, d->c, LONG);
}
static void all_finite(const struct data *d) {
    if (!d->k->all_finite(d->a, LONG)) abort();
}
static void dot_square(const struct data *d) {
    double dot, square;
    d->k->dot_square(d->a, d->b, LONG, &dot, &square);
    d->y[0] = (float)(dot + square);
}
static void weighted_sum(const struct data *d) {
    d->k->weighted_sum(d->y, d->source, d->weight, SOURCES, LONG);
}
static void softmax(const struct data *d) {
    float max = -INFINITY, sum = 0;
    memcpy(d->y, d->a, TILE * sizeof *d->y);
    d->k->softmax_tile(d->y, TILE, &max, &sum);
}
static void convolve(const struct data *d) {
    struct k3_short_conv c = {d->y, HEAD, d->a, HEAD, d->c, HEAD, d->b, HEAD, HEAD, 4, TOKENS};
    d->k->short_conv(&c);
}

static void step(const struct data *d, size_t i) {
    /* |k| < 1 and decay < 1: the state stays bounded however often it is stepped. */
    struct k3_kda_step s = {d->states + i * STATE, d->c, d->c, d->c + HEAD, d->a, 0.5f, d->y, HEAD, HEAD};
    d->k->kda_step(&s);
}
static void step_cached(const struct data *d) {
    step(d, 0);
}
static void step_memory(const struct data *d) {
    for (size_t i = 0; i < STATES; i++) step(d, i);
}
static void scale_memory(const struct data *d) {
    d->k->scale(d->states, 0.999f, (size_t)STATES * STATE);
}

static const struct {
    const char *name;
    void (*run)(const struct data *);
    size_t elements;
} rows[] = {
    {"situ_glu 3072", situ, FF},
    {"silu_glu 3072", silu, FF},
    {"sigmoid_mul 3072", sigmoid_mul, FF},
    {"exp 3072", exponential, FF},
    {"kda_gate_bounded 128", bounded, HEAD},
    {"kda_gate_softplus 128", softplus, HEAD},
    {"rms_norm 7168", rms_norm, LONG},
    {"gated_rms_norm 128", gated_rms_norm, HEAD},
    {"l2_norm 128", l2_norm, HEAD},
    {"add 7168", add, LONG},
    {"all_finite 7168", all_finite, LONG},
    {"dot_square 7168", dot_square, LONG},
    {"weighted_sum 9x7168", weighted_sum, SOURCES *LONG},
    {"softmax_tile 256", softmax, TILE},
    {"short_conv 64x128", convolve, TOKENS *HEAD},
    {"kda_step 128x128", step_cached, STATE},
};

static void bench(struct data *d) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double s = seconds(rows[i].run, d);
        printf("%-8s %-24s %10.3f us %8.3f ns/element\n", d->k->isa, rows[i].name, s * 1e6,
               s / (double)rows[i].elements * 1e9);
    }
    double bytes = 2.0 * STATES * STATE * sizeof(float), roof = seconds(scale_memory, d), s = seconds(step_memory, d);
    printf("%-8s %-24s %10.3f us a state, %.1f GB/s read and written, %.0f %% of scale's %.1f GB/s\n", d->k->isa,
           "kda_step from memory", s / STATES * 1e6, bytes / s * 1e-9, roof / s * 100, bytes / roof * 1e-9);
}

static float *floats(size_t n, float low, float high) {
    float *p = malloc(n * sizeof *p);
    if (!p) exit(1);
    for (size_t i = 0; i < n; i++) p[i] = low + (high - low) * (float)(i * 61 % 97) / 97;
    return p;
}

int main(int argc, char **argv) {
    struct data d = {
        .a = floats(SOURCES * LONG, -3, 3),
        .b = floats(SOURCES * LONG, -1, 1),
        .c = floats(SOURCES * LONG, 0, 0.1f),
        .y = floats(SOURCES * LONG, -1, 1),
        .states = floats((size_t)STATES * STATE, -1, 1),
    };
    for (size_t i = 0; i < SOURCES; i++) d.source[i] = d.a + i * LONG, d.weight[i] = 1.0f / SOURCES;
    for (size_t i = 0; (d.k = k3_kernels_at(i)); i++)
        if (argc < 2 || !strcmp(argv[1], d.k->isa)) bench(&d);
    free(d.a);
    free(d.b);
    free(d.c);
    free(d.y);
    free(d.states);
    return 0;
}
