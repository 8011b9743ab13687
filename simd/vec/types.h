/* What every instruction set's isa.h is made of: vectors of K3_BYTES bytes.  +, -, *, / and the operators on integers
 * are the compiler's own. */
#ifndef K3_SIMD_VEC_TYPES_H
#define K3_SIMD_VEC_TYPES_H

#include <stdint.h>

#define K3_LANES (K3_BYTES / sizeof(float))

typedef float k3_vec __attribute__((vector_size(K3_BYTES)));
typedef int32_t k3_ints __attribute__((vector_size(K3_BYTES)));
typedef float k3_quad __attribute__((vector_size(16)));
typedef double k3_vecd __attribute__((vector_size(K3_BYTES)));

#define K3_INLINE static inline __attribute__((always_inline))

/* Before a loop over an array of vectors, which then lives in registers. */
#if defined __clang__
#define K3_UNROLL _Pragma("unroll")
#else
#define K3_UNROLL _Pragma("GCC unroll 32")
#endif

#endif
