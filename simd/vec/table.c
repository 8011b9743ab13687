#include "simd/vec/kernels.h"

#define K(name) .name = K3_NAME(name)

const struct k3_kernels K3_NAME(kernels) = {
    .isa = K3_ISA_NAME,
    K(matmul_f32), K(matmul_bf16), K(matmul_f16), K(matmul_mxfp4), K(matmul_t_f32),
    K(widen_bf16), K(widen_f16), K(dequant_mxfp4),
    K(rms_norm), K(gated_rms_norm), K(l2_norm),
    K(situ_glu), K(silu_glu), K(sigmoid), K(sigmoid_mul), K(exp), K(add), K(mul), K(scale), K(all_finite),
    K(kda_gate_bounded), K(kda_gate_softplus), K(short_conv), K(kda_step),
    K(dot_square), K(weighted_sum), K(softmax_tile),
};
