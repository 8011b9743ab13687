#include "simd/scalar/scalar.h"

#include <math.h>
#include <string.h>

void k3_scalar_kda_gate_bounded(float *g, const float *z, const float *bias, float a, float lower_bound, size_t n) {
    for (size_t i = 0; i < n; i++) g[i] = lower_bound * k3_scalar_sigmoid1(a * (z[i] + bias[i]));
}

void k3_scalar_kda_gate_softplus(float *g, const float *z, const float *bias, float a, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float s = z[i] + bias[i];
        g[i] = -a * (s > 20 ? s : log1pf(expf(s)));
    }
}

/* Row t of the sequence that begins with the tail: t counts from the oldest tail row. */
static const float *conv_row(const struct k3_short_conv *c, size_t t) {
    size_t kept = c->width - 1;
    return t < kept ? c->tail + t * c->ld_tail : c->x + (t - kept) * c->ldx;
}

void k3_scalar_short_conv(const struct k3_short_conv *c) {
    for (size_t t = 0; t < c->tokens; t++) {
        float *y = c->y + t * c->ldy;
        for (size_t i = 0; i < c->channels; i++) {
            float sum = 0;
            for (size_t j = 0; j < c->width; j++) sum += c->taps[j * c->ld_taps + i] * conv_row(c, t + j)[i];
            y[i] = sum * k3_scalar_sigmoid1(sum);
        }
    }
    /* Ascending: a row is read before the one that replaces it is written. */
    for (size_t j = 0; c->tokens && j + 1 < c->width; j++)
        memcpy(c->tail + j * c->ld_tail, conv_row(c, c->tokens + j), c->channels * sizeof *c->tail);
}

void k3_scalar_kda_step(const struct k3_kda_step *s) {
    for (size_t j = 0; j < s->v_dim; j++) {
        float read = 0, out = 0;
        for (size_t i = 0; i < s->k_dim; i++) {
            float *state = s->state + i * s->v_dim + j;
            *state *= s->decay[i];
            read += s->k[i] * *state;
        }
        float u = s->beta * (s->v[j] - read);
        for (size_t i = 0; i < s->k_dim; i++) {
            float *state = s->state + i * s->v_dim + j;
            *state += s->k[i] * u;
            out += s->q[i] * *state;
        }
        s->o[j] = out;
    }
}
