#include "model/state.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static k3_status init_kda(struct k3_layer_state *l, const struct k3_model *m, k3_error *err) {
    const struct k3_config *c = m->config;
    size_t state = k3_kda_width(c) * c->kda_head_dim, tail = (size_t)(c->conv_width - 1) * k3_kda_width(c);
    k3_status status = k3_store_alloc(m->store, (state + 3 * tail) * sizeof(float), "a KDA state", &l->kda, err);
    if (status) return status;
    l->kda_state = l->kda.data;
    for (int i = 0; i < 3; i++) l->tail[i] = l->kda_state + state + (size_t)i * tail;
    return K3_OK;
}

k3_status k3_state_init(struct k3_state *s, const struct k3_model *m, k3_error *err) {
    *s = (struct k3_state){.model = m, .layer = k3_array(m->config->layers, sizeof *s->layer)};
    if (!s->layer) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < m->config->layers; i++) {
        if (!m->config->is_kda[i]) continue;
        k3_status status = init_kda(&s->layer[i], m, err);
        if (status) {
            k3_state_clear(s);
            return status;
        }
    }
    return K3_OK;
}

void k3_state_clear(struct k3_state *s) {
    if (!s->layer) return;
    for (uint32_t i = 0; i < s->model->config->layers; i++) {
        struct k3_layer_state *l = &s->layer[i];
        k3_store_free(s->model->store, &l->kda);
        for (size_t p = 0; p < l->pages; p++) k3_store_free(s->model->store, &l->page[p]);
        free(l->page);
    }
    free(s->layer);
    s->layer = NULL;
}

void k3_state_reset(struct k3_state *s) {
    for (uint32_t i = 0; i < s->model->config->layers; i++) {
        struct k3_layer_state *l = &s->layer[i];
        if (l->kda.data) memset(l->kda.data, 0, (size_t)l->kda.bytes);
    }
    s->position = 0;
}

static k3_status reserve_layer(struct k3_layer_state *l, const struct k3_model *m, size_t pages, k3_error *err) {
    size_t bytes = K3_PAGE_TOKENS * k3_mla_cache_dim(m->config) * sizeof(float);
    if (pages > l->page_room) {
        size_t room = pages > 2 * l->page_room ? pages : 2 * l->page_room, size;
        void *p = k3_mul(room, sizeof *l->page, &size) ? realloc(l->page, size) : NULL;
        if (!p) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
        l->page = p;
        l->page_room = room;
    }
    while (l->pages < pages) {
        k3_status status = k3_store_alloc(m->store, bytes, "a page of the MLA cache", &l->page[l->pages], err);
        if (status) return status;
        l->pages++;
    }
    return K3_OK;
}

k3_status k3_state_reserve(struct k3_state *s, uint64_t tokens, k3_error *err) {
    uint64_t pages = tokens / K3_PAGE_TOKENS + (tokens % K3_PAGE_TOKENS != 0);
    if (pages > SIZE_MAX) return k3_fail(err, K3_ERR_MEMORY, "the context is larger than the address space");
    for (uint32_t i = 0; i < s->model->config->layers; i++) {
        if (s->model->config->is_kda[i]) continue;
        k3_status status = reserve_layer(&s->layer[i], s->model, (size_t)pages, err);
        if (status) return status;
    }
    return K3_OK;
}
