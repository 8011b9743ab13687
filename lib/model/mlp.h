/* The gated linear unit that all MLPs of the model share. */
#ifndef K3_MODEL_MLP_H
#define K3_MODEL_MLP_H

#include "model/model.h"

static inline void k3_glu(const struct k3_kernels *k, const struct k3_config *c, float *y, const float *gate,
                          const float *up, size_t n) {
    if (c->activation == K3_ACT_SITU) k->situ_glu(y, gate, up, c->situ_beta, c->situ_linear_beta, n);
    else k->silu_glu(y, gate, up, n);
}

#endif
