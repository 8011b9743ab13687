/* Loops over floats, a vector at a time.  The files of this directory are compiled once for each instruction set,
 * whose isa.h says what a vector is; K3_NAME gives each kernel its name.
 *
 * The last lanes of a loop go through masks and the same arithmetic, so an element's bits do not depend on where it
 * stands. */
#ifndef K3_SIMD_VEC_VEC_H
#define K3_SIMD_VEC_VEC_H

#if defined __AVX512F__
#include "simd/avx512/isa.h"
#elif defined __AVX2__
#include "simd/avx2/isa.h"
#endif

/* The first n floats at p, then zeros; and back.  Masked accesses are slow: the whole ones (n known where this is
 * inlined) go without. */
K3_INLINE k3_vec k3_load(const float *p, size_t n) {
    return n >= K3_LANES ? k3_load_whole(p) : k3_load_part(p, n);
}

K3_INLINE void k3_store(float *p, size_t n, k3_vec x) {
    if (n >= K3_LANES) k3_store_whole(p, x);
    else k3_store_part(p, n, x);
}

/* All bits in the first n lanes. */
K3_INLINE k3_ints k3_first(size_t n) {
    k3_ints lane;
    for (size_t i = 0; i < K3_LANES; i++) lane[i] = (int32_t)i;
    return lane < (int32_t)n;
}

K3_INLINE k3_vec k3_choose(k3_ints mask, k3_vec yes, k3_vec no) {
    return (k3_vec)(((k3_ints)yes & mask) | ((k3_ints)no & ~mask));
}

K3_INLINE k3_vec k3_abs(k3_vec x) {
    return (k3_vec)((k3_ints)x & INT32_MAX);
}

K3_INLINE k3_vec k3_negative_abs(k3_vec x) {
    return (k3_vec)((k3_ints)x | INT32_MIN);
}

/* The sum of all lanes, in a fixed order. */
K3_INLINE float k3_sum(k3_vec x) {
    k3_quad q = k3_quarters(x);
    return (q[0] + q[2]) + (q[1] + q[3]);
}

/* k3_sum of four. */
K3_INLINE k3_quad k3_four_sums(const k3_vec s[4]) {
    k3_quad q[4], low, high;
    K3_UNROLL for (size_t i = 0; i < 4; i++) q[i] = k3_quarters(s[i]);
    low = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5) + __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
    high = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5) + __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
    return __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

/* The sum of four's lanes, in a fixed order. */
K3_INLINE float k3_sum4(const k3_vec s[4]) {
    return k3_sum((s[0] + s[1]) + (s[2] + s[3]));
}

/* A vector's lanes in double, the first half and the others. */
struct k3_doubles {
    k3_vecd low, high;
};

K3_INLINE k3_vecd k3_widen_half(const float *p) {
    float half __attribute__((vector_size(K3_BYTES / 2)));
    __builtin_memcpy(&half, p, sizeof half);
    return __builtin_convertvector(half, k3_vecd);
}

/* The first n floats at p, then zeros.  Whole ones are widened by the loads themselves, which costs no shuffle. */
K3_INLINE struct k3_doubles k3_load_doubles(const float *p, size_t n) {
    float part[K3_LANES];
    if (n < K3_LANES) {
        k3_store_whole(part, k3_load_part(p, n));
        p = part;
    }
    return (struct k3_doubles){k3_widen_half(p), k3_widen_half(p + K3_LANES / 2)};
}

/* sum += a b: a product of two floats is exact in double. */
K3_INLINE void k3_add_products(struct k3_doubles *sum, struct k3_doubles a, struct k3_doubles b) {
    sum->low += a.low * b.low;
    sum->high += a.high * b.high;
}

/* The sum of all lanes of two, in a fixed order. */
K3_INLINE double k3_sum_doubles(const struct k3_doubles s[2]) {
    k3_vecd x = (s[0].low + s[0].high) + (s[1].low + s[1].high);
    double sum = 0;
    for (size_t i = 0; i < K3_LANES / 2; i++) sum += x[i];
    return sum;
}

/* y[i] = f(a[i], b[i], constants).  f is known where this is inlined, so nothing is called. */
typedef k3_vec k3_lanes2(k3_vec a, k3_vec b, const float *constants);

K3_INLINE void k3_map2(float *y, const float *a, const float *b, const float *constants, size_t n, k3_lanes2 *f) {
    const size_t all = K3_LANES;
    size_t i = 0;
    for (; i + all <= n; i += all) k3_store(y + i, all, f(k3_load(a + i, all), k3_load(b + i, all), constants));
    if (i < n) k3_store(y + i, n - i, f(k3_load(a + i, n - i), k3_load(b + i, n - i), constants));
}

typedef k3_vec k3_lanes1(k3_vec a, const float *constants);

K3_INLINE void k3_map1(float *y, const float *a, const float *constants, size_t n, k3_lanes1 *f) {
    const size_t all = K3_LANES;
    size_t i = 0;
    for (; i + all <= n; i += all) k3_store(y + i, all, f(k3_load(a + i, all), constants));
    if (i < n) k3_store(y + i, n - i, f(k3_load(a + i, n - i), constants));
}

#endif
