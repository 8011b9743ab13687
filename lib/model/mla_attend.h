/* NoPE MLA's attention over the latent cache (spec 2.4), in two forms that give the same answer.
 *
 * Expanded: keys and values of a page are computed from the latent; costs less for many queries.
 * Absorbed: the query goes to the latent's space and all heads share one key; for few queries. */
#ifndef K3_MODEL_MLA_ATTEND_H
#define K3_MODEL_MLA_ATTEND_H

#include "model/linear.h"
#include "model/state.h"

struct k3_mla_attend {
    const struct k3_kernels *kern;
    const struct k3_config *config;
    const unsigned char *trunk;
    const struct k3_matrix *kv_b;         /* [Ha (nope + v), R] */
    const struct k3_matrix *query;        /* [Ha (nope + rope), cols]: q_b or q */
    const float *x;                       /* [n, query->cols] */
    const struct k3_layer_state *cache;   /* holds start + n tokens */
    uint64_t start;                       /* position of the first query */
    size_t n;
    float *o; /* [n, Ha v] */
};

enum k3_mla_form { K3_MLA_ABSORBED, K3_MLA_EXPANDED };

/* The cheaper form: depends on shapes only. */
enum k3_mla_form k3_mla_choose(const struct k3_config *c, size_t n);

size_t k3_mla_attend_scratch(const struct k3_config *c, size_t n); /* floats, for either form */

/* Heads [begin, end), into their columns of o. */
void k3_mla_attend(const struct k3_mla_attend *a, enum k3_mla_form form, size_t begin, size_t end, float *scratch);

#endif
