#include "model/router.h"

#include <math.h>
#include <string.h>

static void score(const struct k3_kernels *k, const struct k3_router *r, float *scores) {
    if (!r->softmax) {
        k->sigmoid(scores, scores, r->experts);
        return;
    }
    float max = -INFINITY, sum = 0;
    k->softmax_tile(scores, r->experts, &max, &sum);
    k->scale(scores, 1 / sum, r->experts);
}

static float ranked(float v) {
    return isnan(v) ? -INFINITY : v;
}

/* Indices of the k largest of n values, falling, ties to the lower index; NaN counts as -infinity. */
static void largest(const float *values, size_t n, size_t k, int32_t *out) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        float v = ranked(values[i]);
        if (count == k && v <= ranked(values[out[k - 1]])) continue;
        size_t at = count < k ? count++ : k - 1;
        for (; at > 0 && v > ranked(values[out[at - 1]]); at--) out[at] = out[at - 1];
        out[at] = (int32_t)i;
    }
}

/* Sum of a group's two largest values. */
static float group_score(const float *values, size_t n) {
    int32_t best[2];
    largest(values, n, n < 2 ? n : 2, best);
    return n < 2 ? values[best[0]] : values[best[0]] + values[best[1]];
}

/* Sets all but the best groups to -infinity. */
static void keep_groups(const struct k3_router *r, float *choice, float *group) {
    size_t size = r->experts / r->groups;
    for (uint32_t g = 0; g < r->groups; g++) group[g] = group_score(choice + g * size, size);
    for (uint32_t g = 0; g < r->groups; g++) {
        uint32_t better = 0; /* groups that come before g */
        for (uint32_t h = 0; h < r->groups; h++) better += group[h] > group[g] || (group[h] == group[g] && h < g);
        if (better >= r->topk_group)
            for (size_t e = g * size; e < (g + 1) * size; e++) choice[e] = -INFINITY;
    }
}

void k3_route(const struct k3_kernels *k, const struct k3_router *r, float *scores, int32_t *ids, float *weights,
              float *scratch) {
    score(k, r, scores);
    float *choice = scratch;
    memcpy(choice, scores, r->experts * sizeof *choice);
    k->add(choice, r->bias, r->experts);
    if (r->groups > 1 && r->groups > r->topk_group) keep_groups(r, choice, scratch + r->experts);
    largest(choice, r->experts, r->top_k, ids);
    float sum = 0;
    for (uint32_t i = 0; i < r->top_k; i++) {
        weights[i] = scores[ids[i]];
        sum += weights[i];
    }
    float factor = r->top_k > 1 && r->renormalize ? r->scaling / (sum + 1e-20f) : r->scaling;
    k->scale(weights, factor, r->top_k);
}
