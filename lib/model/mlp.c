/* Dense and shared MLPs: down(glu(gate x, up x)). */
#include "model/mlp.h"
#include "model/linear.h"
#include "model/step.h"

/* This thread's columns of the hidden layer, into w->mlp_gate.  Complete after a barrier. */
void k3_mlp_hidden(struct k3_team *team, struct k3_step *s, const struct k3_mlp_layout *l) {
    const struct k3_kernels *k = s->model->kernels;
    struct k3_workspace *w = s->w;
    size_t width = l->gate.rows, begin, end;
    k3_linear_share(team, width, &begin, &end);
    k3_linear_rows(k, s->trunk, &l->gate, begin, end - begin, w->y, l->gate.cols, w->mlp_gate + begin, width, s->tokens);
    k3_linear_rows(k, s->trunk, &l->up, begin, end - begin, w->y, l->up.cols, w->mlp_up + begin, width, s->tokens);
    for (size_t t = 0; t < s->tokens; t++) {
        float *gate = w->mlp_gate + t * width + begin;
        k3_glu(k, s->model->config, gate, gate, w->mlp_up + t * width + begin, end - begin);
    }
}

void k3_dense_mlp(struct k3_team *team, struct k3_step *s, uint32_t layer) {
    const struct k3_mlp_layout *l = &s->model->layer[layer].layout->dense;
    k3_mlp_hidden(team, s, l);
    k3_team_barrier(team);
    k3_linear(team, s->model->kernels, s->trunk, &l->down, s->w->mlp_gate, s->w->out, s->tokens);
}
