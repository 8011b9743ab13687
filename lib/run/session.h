/* The inside of k3_session. */
#ifndef K3_RUN_SESSION_H
#define K3_RUN_SESSION_H

#include "model/step.h"

struct k3_session {
    struct k3_model *model;
    struct k3_state state;
    struct k3_workspace workspace;
    struct k3_span logits; /* [vocab_size], of the last id */
    bool has_logits, broken;
    void (*tap)(void *user, uint32_t layer, const float *x); /* hidden states, for tests */
    void *tap_user;
};

#endif
