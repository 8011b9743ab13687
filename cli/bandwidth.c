#include "config.h"

#include "bandwidth.h"
#include "clock.h"
#include "message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define LARGEST ((size_t)1 << 30)
#define SMALLEST ((size_t)64 << 20)
#define PAGE 4096
#define LINE 64 /* bytes */

typedef uint64_t vector __attribute__((vector_size(32)));

/* Walks `streams` equal parts of the n bytes at p at once: how many a core likes best differs.  `streams` is a
 * constant at every call, so that the sums stay in registers. */
static inline __attribute__((always_inline)) uint64_t walk(const unsigned char *p, size_t n, const int streams) {
    size_t part = n / (size_t)streams / LINE * LINE;
    vector sum[8] = {{0}};
    for (size_t i = 0; i < part; i += LINE) {
#pragma GCC unroll 8
        for (int k = 0; k < streams; k++) {
            const vector *line = (const vector *)(const void *)(p + (size_t)k * part + i);
            sum[k] ^= line[0] ^ line[1];
        }
    }
    for (int k = 1; k < streams; k++) sum[0] ^= sum[k];
    return sum[0][0] ^ sum[0][1] ^ sum[0][2] ^ sum[0][3];
}

static inline __attribute__((always_inline)) uint64_t walk_any(const unsigned char *p, size_t n, int streams) {
    switch (streams) {
    case 1: return walk(p, n, 1);
    case 2: return walk(p, n, 2);
    case 4: return walk(p, n, 4);
    default: return walk(p, n, 8);
    }
}

typedef uint64_t reader(const unsigned char *p, size_t n, int streams);

static uint64_t read_plain(const unsigned char *p, size_t n, int streams) {
    return walk_any(p, n, streams);
}

/* Narrow loads do not reach what memory gives. */
#if defined(__x86_64__)
static __attribute__((target("avx2"))) uint64_t read_avx2(const unsigned char *p, size_t n, int streams) {
    return walk_any(p, n, streams);
}

static reader *choose_reader(void) {
    return __builtin_cpu_supports("avx2") ? read_avx2 : read_plain;
}
#else
static reader *choose_reader(void) {
    return read_plain;
}
#endif

/* Runs over the buffer in `threads` equal parts; what was read is kept from the optimiser by `sink`. */
static double read_all(const struct bandwidth *b, int threads, int streams) {
    size_t part = b->bytes / (size_t)threads / PAGE * PAGE;
    reader *read_part = choose_reader();
    uint64_t sink = 0;
    double start = seconds();
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) reduction(^ : sink)
    sink ^= read_part(b->memory + (size_t)omp_get_thread_num() * part, part, streams);
#else
    for (int t = 0; t < threads; t++) sink ^= read_part(b->memory + (size_t)t * part, part, streams);
#endif
    __asm__ volatile("" : : "r"(sink));
    return (double)part * threads / (seconds() - start);
}

double bandwidth_measure(const struct bandwidth *b, int threads) {
    double best = 0;
    for (int streams = 1; streams <= 8; streams *= 2) {
        double found = read_all(b, threads, streams);
        if (found > best) best = found;
    }
    return best;
}

static size_t choose_size(void) {
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t quarter = pages > 0 && page > 0 ? (size_t)pages / 4 * (size_t)page : SMALLEST;
    return quarter > LARGEST ? LARGEST : quarter < SMALLEST ? SMALLEST : quarter / PAGE * PAGE;
}

int bandwidth_open(struct bandwidth *b) {
    size_t bytes = choose_size();
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return fail("the buffer for the read bandwidth (%zu bytes): %s", bytes, strerror(errno));
    madvise(p, bytes, MADV_HUGEPAGE);
    *b = (struct bandwidth){.memory = p, .bytes = bytes};
    /* Each thread touches its part, as it will read it; untouched pages would all be one page of zeros. */
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (size_t i = 0; i < bytes; i += PAGE) b->memory[i] = (unsigned char)(i / PAGE);
    return CLI_OK;
}

void bandwidth_close(struct bandwidth *b) {
    if (b->memory) munmap(b->memory, b->bytes);
    b->memory = NULL;
}
