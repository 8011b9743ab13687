#include "base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <k3/k3.h>

#define HUGE_PAGE ((size_t)2 << 20)

void *k3_array(size_t n, size_t element) {
    size_t bytes;
    return k3_mul(n, element, &bytes) ? calloc(bytes ? bytes : 1, 1) : NULL;
}

void *k3_map(size_t bytes) {
    void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (bytes >= HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE); /* advice: failing costs speed only */
    return p;
}

void k3_unmap(void *p, size_t bytes) {
    if (p) munmap(p, bytes ? bytes : 1);
}

void k3_free(void *p) {
    free(p);
}
