/* Rows of MXFP4 weights (spec 1.4) in registers: what an instruction set's mxfp4.h does with them. */
#ifndef K3_SIMD_VEC_MXFP4_H
#define K3_SIMD_VEC_MXFP4_H

#include "simd/vec/weights.h"

/* What lies where in a few rows and tokens; the pointers walk along the columns, a group of 32 at a time. */
struct k3_mxfp4_rows {
    const uint8_t *packed, *scale, *ahead; /* ahead: what the next rows will read */
    const float *x;
    size_t ld_packed, ld_scale, ldx, groups;
};

#if defined __AVX512F__
#include "simd/avx512/mxfp4.h"
#elif defined __AVX2__
#include "simd/avx2/mxfp4.h"
#endif

#endif
