#include "model/linear.h"

static size_t element_bytes(enum k3_weight_type type) {
    return type == K3_WEIGHT_F32 ? 4 : 2;
}

void k3_linear_rows(const struct k3_kernels *k, const unsigned char *base, const struct k3_matrix *w, size_t row,
                    size_t rows, const float *x, size_t ldx, float *y, size_t ldy, size_t n) {
    struct k3_matmul m = {y, ldy, x, ldx, rows, w->cols, n};
    size_t cols = w->cols;
    const unsigned char *at = base + w->at + row * cols * element_bytes(w->type);
    if (!rows || !n) return;
    switch (w->type) {
    case K3_WEIGHT_BF16: k->matmul_bf16(&m, at, cols); break;
    case K3_WEIGHT_F16: k->matmul_f16(&m, at, cols); break;
    case K3_WEIGHT_F32: k->matmul_f32(&m, at, cols); break;
    case K3_WEIGHT_MXFP4:
        k->matmul_mxfp4(&m, base + w->at + row * (cols / 2), base + w->scale_at + row * (cols / 32));
        break;
    case K3_WEIGHT_NONE: break;
    }
}

void k3_linear_share(const struct k3_team *team, size_t rows, size_t *begin, size_t *end) {
    k3_team_share(team, rows, 4, begin, end);
}

void k3_linear(struct k3_team *team, const struct k3_kernels *k, const unsigned char *base, const struct k3_matrix *w,
               const float *x, float *y, size_t n) {
    size_t begin, end;
    k3_linear_share(team, w->rows, &begin, &end);
    k3_linear_rows(k, base, w, begin, end - begin, x, w->cols, y + begin, w->rows, n);
}

void k3_linear_widen_row(const struct k3_kernels *k, const unsigned char *base, const struct k3_matrix *w, size_t row,
                         float *out) {
    size_t cols = w->cols;
    const unsigned char *at = base + w->at + row * cols * element_bytes(w->type);
    switch (w->type) {
    case K3_WEIGHT_BF16: k->widen_bf16(out, at, cols); break;
    case K3_WEIGHT_F16: k->widen_f16(out, at, cols); break;
    case K3_WEIGHT_F32: __builtin_memcpy(out, at, cols * sizeof *out); break;
    case K3_WEIGHT_MXFP4:
        k->dequant_mxfp4(out, base + w->at + row * (cols / 2), base + w->scale_at + row * (cols / 32), cols);
        break;
    case K3_WEIGHT_NONE: break;
    }
}
