/* The AVX2 + FMA + F16C kernels. */
#ifndef K3_SIMD_AVX2_H
#define K3_SIMD_AVX2_H

#include "simd/kernels.h"

/* matmul.c */
void k3_avx2_matmul_f32(const struct k3_matmul *m, const void *w, size_t ldw);
void k3_avx2_matmul_bf16(const struct k3_matmul *m, const void *w, size_t ldw);
void k3_avx2_matmul_f16(const struct k3_matmul *m, const void *w, size_t ldw);
/* matmul_mxfp4.c */
void k3_avx2_matmul_mxfp4(const struct k3_matmul *m, const uint8_t *packed, const uint8_t *scale);
/* matmul_t.c */
void k3_avx2_matmul_t_f32(const struct k3_matmul *m, const float *b, size_t ldb);
/* widen.c */
void k3_avx2_widen_bf16(float *y, const void *x, size_t n);
void k3_avx2_widen_f16(float *y, const void *x, size_t n);
void k3_avx2_dequant_mxfp4(float *y, const uint8_t *packed, const uint8_t *scale, size_t n);
/* norm.c */
void k3_avx2_rms_norm(float *y, const float *x, const float *w, float eps, size_t n);
void k3_avx2_gated_rms_norm(float *y, const float *x, const float *w, const float *gate, float eps, size_t n);
void k3_avx2_l2_norm(float *y, const float *x, float scale, size_t n);
/* elementwise.c */
void k3_avx2_situ_glu(float *y, const float *gate, const float *up, float beta, float linear_beta, size_t n);
void k3_avx2_silu_glu(float *y, const float *gate, const float *up, size_t n);
void k3_avx2_sigmoid(float *y, const float *x, size_t n);
void k3_avx2_sigmoid_mul(float *y, const float *x, const float *gate, size_t n);
void k3_avx2_exp(float *y, const float *x, size_t n);
void k3_avx2_add(float *y, const float *x, size_t n);
void k3_avx2_mul(float *y, const float *x, size_t n);
void k3_avx2_scale(float *y, float a, size_t n);
bool k3_avx2_all_finite(const float *x, size_t n);
/* kda.c */
void k3_avx2_kda_gate_bounded(float *g, const float *z, const float *bias, float a, float lower_bound, size_t n);
void k3_avx2_kda_gate_softplus(float *g, const float *z, const float *bias, float a, size_t n);
void k3_avx2_short_conv(const struct k3_short_conv *c);
void k3_avx2_kda_step(const struct k3_kda_step *s);
/* attn_res.c */
void k3_avx2_dot_square(const float *v, const float *s, size_t n, double *dot, double *square);
void k3_avx2_weighted_sum(float *y, const float *const *v, const float *p, size_t count, size_t n);
/* softmax.c */
float k3_avx2_softmax_tile(float *scores, size_t n, float *max, float *sum);

#endif
