/* Attention Residuals: softmax over depth (spec 2.2). */
#ifndef K3_MODEL_ATTN_RES_H
#define K3_MODEL_ATTN_RES_H

#include "simd/kernels.h"

#define K3_ATTN_RES_MAX 256 /* sources that one mix can take */

/* y [n] = mix of `count` sources [n] under a site's vector s = norm weight * projection weight.
 * y may be the same as one source. */
void k3_attn_res_mix(const struct k3_kernels *k, float *y, const float *const *source, size_t count, const float *s,
                     float eps, size_t n);

#endif
