#include "store/internal.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

k3_status k3_store_new(const struct k3_tensors *tensors, uint64_t budget, struct k3_store **out, k3_error *err) {
    struct k3_store *s = k3_array(1, sizeof *s);
    uint32_t shards = k3_tensors_shards(tensors);
    int *fd = k3_array(shards, sizeof *fd);
    if (!s || !fd) {
        free(s);
        free(fd);
        return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < shards; i++) fd[i] = -1;
    s->tensors = tensors;
    s->ledger.budget = budget;
    s->fd = fd;
    *out = s;
    return K3_OK;
}

void k3_store_close(struct k3_store *s) {
    if (!s) return;
    k3_store_close_shards(s);
    k3_unmap(s->arena, s->arena_bytes);
    free(s->fd);
    free(s->weights);
    free(s->pieces);
    free(s);
}

/* Makes room for `more` elements behind `count`. */
static bool grow(void **array, size_t *capacity, size_t count, size_t more, size_t element) {
    if (count + more <= *capacity) return true;
    size_t want = *capacity * 2 > count + more ? *capacity * 2 : count + more + 64, bytes;
    if (!k3_mul(want, element, &bytes)) return false;
    void *p = realloc(*array, bytes);
    if (!p) return false;
    *array = p;
    *capacity = want;
    return true;
}

k3_status k3_store_declare(struct k3_store *s, uint64_t bytes, const struct k3_piece *pieces, size_t count,
                           k3_resident *id, k3_error *err) {
    void *weights = s->weights, *all = s->pieces;
    bool ok = grow(&weights, &s->capacity, s->count, 1, sizeof *s->weights);
    s->weights = weights;
    ok = ok && grow(&all, &s->piece_capacity, s->piece_count, count, sizeof *pieces);
    s->pieces = all;
    if (!ok || s->count >= UINT32_MAX) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    uint64_t end;
    if (!k3_add64(s->arena_bytes, bytes, &end) || end > SIZE_MAX - K3_ALIGN)
        return k3_fail(err, K3_ERR_MEMORY, "the weights are larger than the address space");
    s->weights[s->count] = (struct k3_weights){s->arena_bytes, bytes, s->piece_count, count};
    if (count) memcpy(s->pieces + s->piece_count, pieces, count * sizeof *pieces);
    s->piece_count += count;
    s->arena_bytes = k3_round_up(end, K3_ALIGN);
    *id = (k3_resident)s->count++;
    return K3_OK;
}

uint64_t k3_store_declared(const struct k3_store *s) {
    return s->arena_bytes;
}

void k3_store_want(struct k3_store *s, const k3_resident *ids, size_t count) {
    (void)s, (void)ids, (void)count; /* everything is here already */
}

k3_status k3_store_acquire(struct k3_store *s, k3_resident id, const void **data, k3_error *err) {
    if (!s->arena) return k3_fail(err, K3_ERR_ARGUMENT, "weights are not loaded");
    *data = s->arena + s->weights[id].at;
    return K3_OK;
}

void k3_store_release(struct k3_store *s, k3_resident id) {
    (void)s, (void)id; /* nothing is ever evicted */
}

k3_status k3_store_alloc(struct k3_store *s, uint64_t bytes, const char *what, struct k3_span *out, k3_error *err) {
    k3_status status = k3_ledger_charge(&s->ledger, bytes, what, err);
    if (status) return status;
    void *p = bytes <= SIZE_MAX ? k3_map((size_t)bytes) : NULL;
    if (!p) {
        k3_ledger_refund(&s->ledger, bytes);
        return k3_fail(err, K3_ERR_MEMORY, "%s: %llu bytes are needed, and the system refused them", what,
                       (unsigned long long)bytes);
    }
    *out = (struct k3_span){p, bytes};
    return K3_OK;
}

void k3_store_free(struct k3_store *s, struct k3_span *span) {
    if (!span->data) return;
    k3_unmap(span->data, (size_t)span->bytes);
    k3_ledger_refund(&s->ledger, span->bytes);
    *span = (struct k3_span){NULL, 0};
}

uint64_t k3_store_used(const struct k3_store *s) {
    return atomic_load(&s->ledger.used);
}

uint64_t k3_store_budget(const struct k3_store *s) {
    return s->ledger.budget;
}
