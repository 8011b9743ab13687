/* Which experts serve a token, and with what weight (spec 2.5). */
#ifndef K3_MODEL_ROUTER_H
#define K3_MODEL_ROUTER_H

#include "simd/kernels.h"

struct k3_router {
    const float *bias; /* [experts]: takes part in the choice, never in the weights */
    uint32_t experts, top_k, groups, topk_group;
    bool softmax, renormalize;
    float scaling;
};

/* scores: logits [experts], become the scores.  ids, weights: [top_k], by falling choice, ties to
 * the lower id; ids are valid and distinct even for NaN.  scratch: experts + groups floats. */
void k3_route(const struct k3_kernels *k, const struct k3_router *r, float *scores, int32_t *ids, float *weights,
              float *scratch);

#endif
