/* A session: one sequence on a model, fed in blocks. */
#include "base/error.h"
#include "base/memory.h"
#include "model/step.h"
#include "run/session.h"

#include <stdlib.h>
#include <string.h>

k3_status k3_session_new(k3_model *m, k3_session **out, k3_error *err) {
    if (!m || !out) return k3_fail(err, K3_ERR_ARGUMENT, "a model and a place for the session are needed");
    k3_session *s = k3_array(1, sizeof *s);
    if (!s) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    s->model = m;
    k3_status status = k3_state_init(&s->state, m, err);
    if (!status)
        status = k3_store_alloc(m->store, (uint64_t)m->config->vocab_size * sizeof(float), "a row of logits", &s->logits, err);
    if (status) {
        k3_session_free(s);
        return status;
    }
    *out = s;
    return K3_OK;
}

void k3_session_free(k3_session *s) {
    if (!s) return;
    k3_workspace_clear(&s->workspace, s->model);
    k3_store_free(s->model->store, &s->logits);
    k3_state_clear(&s->state);
    free(s);
}

void k3_session_reset(k3_session *s) {
    k3_state_reset(&s->state);
    s->has_logits = s->broken = false;
}

const float *k3_session_logits(const k3_session *s) {
    return s->has_logits ? s->logits.data : NULL;
}

uint64_t k3_session_position(const k3_session *s) {
    return s->state.position;
}

/* Buffers for a block of `tokens`: they grow in steps, so that decoding alone stays small. */
static k3_status make_room(k3_session *s, size_t tokens, k3_error *err) {
    static const size_t sizes[] = {1, 16, 64, 256, K3_BLOCK_TOKENS};
    if (tokens <= s->workspace.tokens) return K3_OK;
    size_t i = 0;
    while (sizes[i] < tokens) i++;
    k3_workspace_clear(&s->workspace, s->model);
    return k3_workspace_init(&s->workspace, s->model, sizes[i], err);
}

static k3_status check_ids(const k3_session *s, const int32_t *ids, size_t n, k3_error *err) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->model->config->vocab_size)
            return k3_fail(err, K3_ERR_TOKEN, "token id %d at index %zu is outside the vocabulary of %u", ids[i], i,
                           (unsigned)s->model->config->vocab_size);
    return K3_OK;
}

static k3_status feed_block(k3_session *s, const int32_t *ids, size_t n, float *logits, size_t rows, k3_error *err) {
    k3_status status = k3_state_reserve(&s->state, s->state.position + n, err);
    if (!status) status = make_room(s, n, err);
    if (status) return status;
    struct k3_step step = {
        .model = s->model,
        .state = &s->state,
        .w = &s->workspace,
        .ids = ids,
        .tokens = n,
        .logits = logits,
        .logit_rows = rows,
        .tap = s->tap,
        .tap_user = s->tap_user,
    };
    status = k3_forward(&step, err);
    if (status) s->broken = true; /* some layers have seen the block, others have not */
    return status;
}

k3_status k3_session_feed(k3_session *s, const int32_t *ids, size_t n, float *all_logits, k3_error *err) {
    if (!s || (n && !ids)) return k3_fail(err, K3_ERR_ARGUMENT, "a session and ids are needed");
    if (s->broken) return k3_fail(err, K3_ERR_ARGUMENT, "the session failed before and must be reset");
    k3_status status = check_ids(s, ids, n, err);
    if (status || !n) return status;
    size_t vocab = s->model->config->vocab_size;
    for (size_t at = 0; at < n; at += K3_BLOCK_TOKENS) {
        bool last = n - at <= K3_BLOCK_TOKENS;
        size_t tokens = last ? n - at : K3_BLOCK_TOKENS;
        float *out = all_logits ? all_logits + at * vocab : s->logits.data;
        s->has_logits = false;
        status = feed_block(s, ids + at, tokens, out, all_logits ? tokens : last, err);
        if (status) return status;
    }
    if (all_logits) memcpy(s->logits.data, all_logits + (n - 1) * vocab, vocab * sizeof(float));
    s->has_logits = true;
    return K3_OK;
}
