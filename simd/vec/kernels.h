/* The kernels of one instruction set. */
#ifndef K3_SIMD_VEC_KERNELS_H
#define K3_SIMD_VEC_KERNELS_H

#include "simd/kernels.h"
#include "simd/vec/vec.h"

/* matmul.c */
void K3_NAME(matmul_f32)(const struct k3_matmul *m, const void *w, size_t ldw);
void K3_NAME(matmul_bf16)(const struct k3_matmul *m, const void *w, size_t ldw);
void K3_NAME(matmul_f16)(const struct k3_matmul *m, const void *w, size_t ldw);
/* matmul_mxfp4.c; what is behind it is in the instruction set's mxfp4.h */
void K3_NAME(matmul_mxfp4)(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale);
void K3_NAME(dequant_mxfp4)(float *y, const uint8_t *packed, const uint8_t *scale, size_t n);
/* Exact.  y has room for a group more than it needs. */
void K3_NAME(mxfp4_to_bf16)(uint16_t *y, const uint8_t *packed, const uint8_t *scale, size_t groups);
/* matmul_t.c */
void K3_NAME(matmul_t_f32)(const struct k3_matmul *m, const float *b, size_t ldb);
/* widen.c */
void K3_NAME(widen_bf16)(float *y, const void *x, size_t n);
void K3_NAME(widen_f16)(float *y, const void *x, size_t n);
/* norm.c */
void K3_NAME(rms_norm)(float *y, const float *x, const float *w, float eps, size_t n);
void K3_NAME(gated_rms_norm)(float *y, const float *x, const float *w, const float *gate, float eps, size_t n);
void K3_NAME(l2_norm)(float *y, const float *x, float scale, size_t n);
/* elementwise.c */
void K3_NAME(situ_glu)(float *y, const float *gate, const float *up, float beta, float linear_beta, size_t n);
void K3_NAME(silu_glu)(float *y, const float *gate, const float *up, size_t n);
void K3_NAME(sigmoid)(float *y, const float *x, size_t n);
void K3_NAME(sigmoid_mul)(float *y, const float *x, const float *gate, size_t n);
void K3_NAME(exp)(float *y, const float *x, size_t n);
void K3_NAME(add)(float *y, const float *x, size_t n);
void K3_NAME(mul)(float *y, const float *x, size_t n);
void K3_NAME(scale)(float *y, float a, size_t n);
bool K3_NAME(all_finite)(const float *x, size_t n);
/* kda.c */
void K3_NAME(kda_gate_bounded)(float *g, const float *z, const float *bias, float a, float lower_bound, size_t n);
void K3_NAME(kda_gate_softplus)(float *g, const float *z, const float *bias, float a, size_t n);
void K3_NAME(short_conv)(const struct k3_short_conv *c);
void K3_NAME(kda_step)(const struct k3_kda_step *s);
/* attn_res.c */
void K3_NAME(dot_square)(const float *v, const float *s, size_t n, double *dot, double *square);
void K3_NAME(weighted_sum)(float *y, const float *const *v, const float *p, size_t count, size_t n);
/* softmax.c */
float K3_NAME(softmax_tile)(float *scores, size_t n, float *max, float *sum);

#endif
