/* Times the matrix products beside what this machine can do at best, measured in the same moments: one token against
 * the rate at which as many threads read memory, more tokens against their rate of fused multiply-adds.
 *
 * usage: bench/kernels [--json] [ISA] */
#include "config.h"

#include "simd/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef K3_X86_64
#include <immintrin.h>
#endif
#ifdef HAVE_OPENBLAS
#include <cblas.h>
void openblas_set_num_threads(int threads);
#endif

#define WEIGHTS ((size_t)384 << 20) /* bytes, so that none is in a cache when its turn comes again */
#define REPETITIONS 7
#define SECONDS 0.03 /* of one repetition, at least */
#define MOST_X ((size_t)512 * 7168)
#define MOST_Y ((size_t)512 * 12288)

enum kind { BF16, F16, F32, MXFP4, TRANSPOSED, SGEMM };
static const char *const names[] = {"bf16", "f16", "f32", "mxfp4", "f32 transposed", "OpenBLAS sgemm"};

static const struct shape {
    enum kind kind;
    size_t rows, cols, n;
} shapes[] = {
    {BF16, 2048, 2048, 1}, {BF16, 2048, 7168, 1}, {BF16, 12288, 7168, 1}, {F16, 2048, 7168, 1}, {F32, 896, 7168, 1},
    {MXFP4, 1024, 1024, 1}, {MXFP4, 3072, 3584, 1}, {MXFP4, 3584, 3072, 1},
    {BF16, 2048, 7168, 4}, {MXFP4, 3072, 3584, 4},
    {BF16, 2048, 7168, 32}, {MXFP4, 3072, 3584, 8}, {MXFP4, 3072, 3584, 32}, {MXFP4, 3072, 3584, 64},
    {F32, 64, 576, 64}, {TRANSPOSED, 64, 512, 64},
    {BF16, 1024, 1024, 512}, {BF16, 2048, 7168, 512}, {MXFP4, 3072, 3584, 512}, {F32, 2048, 7168, 512},
    {SGEMM, 2048, 7168, 512},
};

struct data {
    const struct k3_kernels *k;
    uint8_t *weights, *scales;
    float *x, *y;
    size_t first; /* matrix of the next run */
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

/* ---- the roofs ---- */

typedef uint64_t lanes __attribute__((vector_size(32)));

static volatile uint64_t sink;

static uint64_t read_all(const uint8_t *p, size_t n) {
    const size_t part = n / 4 & ~(size_t)63;
    lanes s[4] = {{0}};
    for (size_t i = 0; i < part; i += 64)
        for (size_t k = 0; k < 4; k++) {
            const lanes *q = (const lanes *)(const void *)(p + k * part + i);
            s[k] ^= q[0] ^ q[1];
        }
    s[0] ^= s[1] ^ s[2] ^ s[3];
    return s[0][0] ^ s[0][1] ^ s[0][2] ^ s[0][3];
}

/* GB/s over all weights. */
static double read_rate(const struct data *d, int threads) {
    const size_t share = WEIGHTS / (size_t)threads & ~(size_t)4095;
    double start = now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) sink = read_all(d->weights + (size_t)i * share, share);
    return (double)(share * (size_t)threads) / (now() - start) * 1e-9;
}

#define FMA_ROUNDS 1000000

#ifdef K3_X86_64
__attribute__((target("avx2,fma"))) static void multiply_add(float *out) {
    __m256 s[12], a = _mm256_set1_ps(out[0]), b = _mm256_set1_ps(out[1]);
    for (int i = 0; i < 12; i++) s[i] = _mm256_set1_ps((float)i);
    for (int r = 0; r < FMA_ROUNDS; r++)
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) s[i] = _mm256_fmadd_ps(s[i], a, b);
    for (int i = 1; i < 12; i++) s[0] = _mm256_add_ps(s[0], s[i]);
    _mm256_storeu_ps(out, s[0]);
}

__attribute__((target("avx512f"))) static void multiply_add_512(float *out) {
    __m512 s[12], a = _mm512_set1_ps(out[0]), b = _mm512_set1_ps(out[1]);
    for (int i = 0; i < 12; i++) s[i] = _mm512_set1_ps((float)i);
    for (int r = 0; r < FMA_ROUNDS; r++)
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) s[i] = _mm512_fmadd_ps(s[i], a, b);
    for (int i = 1; i < 12; i++) s[0] = _mm512_add_ps(s[0], s[i]);
    _mm512_storeu_ps(out, s[0]);
}

/* GFLOP/s of the vectors that `isa` has, or of AVX2's; 0 where this CPU has none. */
static double fma_rate(const char *isa, int threads) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    const bool wide = !strcmp(isa, "avx512");
    double start = now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        float out[16] = {0.5f, 0.25f};
        (wide ? multiply_add_512 : multiply_add)(out);
        sink = (uint64_t)out[0];
    }
    return (double)threads * FMA_ROUNDS * 12 * (wide ? 32 : 16) / (now() - start) * 1e-9;
}
#else
static double fma_rate(const char *isa, int threads) {
    (void)isa, (void)threads;
    return 0;
}
#endif

/* ---- the products ---- */

static size_t bytes_of(const struct shape *s) {
    switch (s->kind) {
    case MXFP4: return s->rows * s->cols / 2;
    case BF16:
    case F16: return s->rows * s->cols * 2;
    default: return s->rows * s->cols * 4;
    }
}

static void run_rows(const struct data *d, const struct shape *s, size_t at, size_t from, size_t rows) {
    const uint8_t *w = d->weights + at + from * (bytes_of(s) / s->rows);
    struct k3_matmul m = {d->y + from, s->rows, d->x, s->cols, rows, s->cols, s->n};
    switch (s->kind) {
    case BF16: d->k->matmul_bf16(&m, w, s->cols); break;
    case F16: d->k->matmul_f16(&m, w, s->cols); break;
    case F32: d->k->matmul_f32(&m, w, s->cols); break;
    case MXFP4: d->k->matmul_mxfp4(&m, w, d->scales + (at * 2 + from * s->cols) / 32); break;
    default: break;
    }
}

static void run_transposed(const struct data *d, const struct shape *s, size_t at, size_t from, size_t tokens) {
    struct k3_matmul m = {d->y + from * s->cols, s->cols, d->x + from * s->rows, s->rows, s->rows, s->cols, tokens};
    d->k->matmul_t_f32(&m, (const float *)(const void *)(d->weights + at), s->cols);
}

static void run_sgemm(const struct data *d, const struct shape *s, size_t at, int threads) {
#ifdef HAVE_OPENBLAS
    const int rows = (int)s->rows, cols = (int)s->cols, n = (int)s->n;
    const float *w = (const float *)(const void *)(d->weights + at);
    openblas_set_num_threads(threads);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, rows, cols, 1, d->x, cols, w, cols, 0, d->y, rows);
#else
    (void)d, (void)s, (void)at, (void)threads;
#endif
}

/* Matrices that lie one behind the other; a thread has the same share of the rows (or tokens) of each, and they do
 * not wait for each other in between. */
static void run(const struct data *d, const struct shape *s, int threads, size_t calls) {
    const size_t all = s->kind == TRANSPOSED ? s->n : s->rows, team = (size_t)threads, many = WEIGHTS / bytes_of(s);
    if (s->kind == SGEMM) {
        for (size_t c = 0; c < calls; c++) run_sgemm(d, s, (d->first + c) % many * bytes_of(s), threads);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
        size_t from = all * (size_t)i / team, to = all * ((size_t)i + 1) / team;
        for (size_t c = 0; c < calls; c++) {
            size_t at = (d->first + c) % many * bytes_of(s);
            (s->kind == TRANSPOSED ? run_transposed : run_rows)(d, s, at, from, to - from);
        }
    }
}

struct result {
    double median, least, most, roof; /* GB/s or GFLOP/s */
    double share;                     /* of the roof: the median of the repetitions' own */
};

static double rate_of(struct data *d, const struct shape *s, int threads, size_t calls) {
    double start = now();
    run(d, s, threads, calls);
    double t = (now() - start) / (double)calls;
    d->first += calls;
    double bytes = (double)bytes_of(s) * (s->kind == MXFP4 ? 17. / 16 : 1);
    return (s->n == 1 ? bytes : 2. * (double)(s->rows * s->cols * s->n)) / t * 1e-9;
}

static struct result measure(struct data *d, const struct shape *s, int threads) {
    double rate[REPETITIONS], roof[REPETITIONS], share[REPETITIONS];
    size_t calls = 1;
    for (double start = now(); run(d, s, threads, calls), now() - start < SECONDS; start = now()) calls *= 2;
    for (int i = 0; i < REPETITIONS; i++) {
        roof[i] = s->n == 1 ? read_rate(d, threads) : fma_rate(d->k->isa, threads);
        rate[i] = rate_of(d, s, threads, calls);
        share[i] = roof[i] > 0 ? rate[i] / roof[i] : 0;
    }
    qsort(share, REPETITIONS, sizeof *share, by_size);
    qsort(rate, REPETITIONS, sizeof *rate, by_size);
    qsort(roof, REPETITIONS, sizeof *roof, by_size);
    const int middle = REPETITIONS / 2;
    return (struct result){rate[middle], rate[0], rate[REPETITIONS - 1], roof[middle], share[middle]};
}

static void print(const struct shape *s, int threads, const struct result *r, bool json, bool first) {
    const char *unit = s->n == 1 ? "GB/s" : "GFLOP/s";
    if (json)
        printf("%s{\"kernel\": \"%s\", \"rows\": %zu, \"cols\": %zu, \"tokens\": %zu, \"threads\": %d, "
               "\"unit\": \"%s\", \"median\": %.4g, \"min\": %.4g, \"max\": %.4g, \"roof\": %.4g, \"share\": %.3f}",
               first ? "" : ",\n ", names[s->kind], s->rows, s->cols, s->n, threads, unit, r->median, r->least, r->most,
               r->roof, r->share);
    else
        printf("%-14s %5zu x %-5zu %4zu %7d  %7.1f %-7s [%6.1f .. %6.1f]  %6.1f %5.0f%%\n", names[s->kind], s->rows,
               s->cols, s->n, threads, r->median, unit, r->least, r->most, r->roof, 100 * r->share);
    fflush(stdout);
}

static bool data_new(struct data *d) {
    d->weights = mmap(NULL, WEIGHTS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    d->scales = malloc(WEIGHTS / 16);
    d->x = malloc(MOST_X * sizeof *d->x);
    d->y = malloc(MOST_Y * sizeof *d->y);
    if (d->weights == MAP_FAILED || !d->scales || !d->x || !d->y) return false;
#ifdef MADV_HUGEPAGE
    madvise(d->weights, WEIGHTS, MADV_HUGEPAGE);
#endif
    /* Numbers near 1 in every format. */
    uint32_t random = 1;
    for (size_t i = 0; i < WEIGHTS; i += 4) {
        random = random * 1664525 + 1013904223;
        uint32_t bits = (random & 0x807f807f) | 0x3c003c00;
        memcpy(d->weights + i, &bits, 4);
    }
    for (size_t i = 0; i < WEIGHTS / 16; i++) d->scales[i] = (uint8_t)(112 + i * 7 % 11);
    for (size_t i = 0; i < MOST_X; i++) d->x[i] = (float)(i % 13) - 6;
    memset(d->y, 0, MOST_Y * sizeof *d->y);
    return true;
}

static bool can_run(const struct shape *s) {
#ifdef HAVE_OPENBLAS
    (void)s;
    return true;
#else
    return s->kind != SGEMM;
#endif
}

int main(int argc, char **argv) {
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    const char *isa = argc > 1 + json ? argv[1 + json] : NULL;
    struct data d = {.k = k3_kernels_find(isa)};
    int most = 1;
#ifdef _OPENMP
    most = omp_get_num_procs() < 2 ? 1 : 2;
#endif
    if (!d.k) {
        fprintf(stderr, "bench/kernels: no kernels called %s here\n", isa);
        return 2;
    }
    if (!data_new(&d)) {
        fprintf(stderr, "bench/kernels: not enough memory\n");
        return 1;
    }
    if (json) printf("{\"isa\": \"%s\", \"repetitions\": %d, \"results\": [\n ", d.k->isa, REPETITIONS);
    else
        printf("%s, medians of %d; one token: roof = reading memory; more: roof = FMA\n"
               "%-14s %13s %4s %7s  %-15s %-18s  %6s %6s\n",
               d.k->isa, REPETITIONS, "weights", "rows x cols", "n", "threads", "  rate", "[least .. most]", "roof",
               "share");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int threads = 1; threads <= most && can_run(&shapes[i]); threads++) {
            struct result r = measure(&d, &shapes[i], threads);
            print(&shapes[i], threads, &r, json, i == 0 && threads == 1);
        }
    if (json) printf("]}\n");
    free(d.scales);
    free(d.x);
    free(d.y);
    munmap(d.weights, WEIGHTS);
    return 0;
}
