/* Linear layers: y = W x for the rows that this thread owns. */
#ifndef K3_MODEL_LINEAR_H
#define K3_MODEL_LINEAR_H

#include "base/threads.h"
#include "model/model.h"

/* Rows [row, row + rows) of w, which lies at `base`, times n vectors:
 * y[t*ldy + r] = w[row + r] . x[t*ldx ...]. */
void k3_linear_rows(const struct k3_kernels *k, const unsigned char *base, const struct k3_matrix *w, size_t row,
                    size_t rows, const float *x, size_t ldx, float *y, size_t ldy, size_t n);

/* Rows [*begin, *end) of a matrix with `rows` rows are this thread's. */
void k3_linear_share(const struct k3_team *team, size_t rows, size_t *begin, size_t *end);

/* This thread's share of y [n, w->rows] = x [n, w->cols] W^T; both dense. */
void k3_linear(struct k3_team *team, const struct k3_kernels *k, const unsigned char *base, const struct k3_matrix *w,
               const float *x, float *y, size_t n);

/* Row `row` of w as f32 [cols]. */
void k3_linear_widen_row(const struct k3_kernels *k, const unsigned char *base, const struct k3_matrix *w, size_t row,
                         float *out);

#endif
