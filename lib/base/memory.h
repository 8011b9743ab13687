/* Checked sizes and aligned memory. */
#ifndef K3_BASE_MEMORY_H
#define K3_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define K3_ALIGN 64 /* bytes: a cache line, and the widest vector */

static inline bool k3_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool k3_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool k3_mul64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool k3_add64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline uint64_t k3_round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* Zeroed array of n elements, or NULL (also when the product overflows); free() it. */
void *k3_array(size_t n, size_t element);

/* `bytes` of zeroed memory aligned to K3_ALIGN, in huge pages where the system gives them and the
 * size pays; NULL when there is none.  Freed with k3_unmap and the same size. */
void *k3_map(size_t bytes);
void k3_unmap(void *p, size_t bytes);

#endif
