/* The delta rule of one head over a run of tokens (spec 2.3 step 6, and section 3). */
#ifndef K3_MODEL_KDA_CHUNK_H
#define K3_MODEL_KDA_CHUNK_H

#include "simd/kernels.h"

struct k3_kda_run {
    float *state;              /* [k_dim, v_dim]: enters and leaves */
    const float *q, *k;        /* [n, k_dim], normalised, q scaled */
    const float *v;            /* [n, v_dim] */
    const float *g;            /* [n, k_dim]: log-decay, <= 0 */
    const float *beta;         /* [n] */
    float *o;                  /* [n, v_dim] */
    size_t n, k_dim, v_dim;    /* n <= K3_CHUNK_TOKENS */
};

size_t k3_kda_run_scratch(size_t k_dim, size_t v_dim); /* floats */

/* Runs all n tokens: short runs step by step, others in the chunk form. */
void k3_kda_run(const struct k3_kernels *kern, const struct k3_kda_run *r, float *scratch);

/* Both forms by name, for tests and benchmarks. */
void k3_kda_run_steps(const struct k3_kernels *kern, const struct k3_kda_run *r, float *scratch);
void k3_kda_run_chunk(const struct k3_kernels *kern, const struct k3_kda_run *r, float *scratch);

#endif
