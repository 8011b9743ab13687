/* Residents: everything large, with an identity, a size and a home.
 *
 * The model declares what it will need (weights) and asks for what it writes (states, pages,
 * buffers); the store decides where the bytes live and accounts for every one of them against the
 * budget.  Kernels get pointers and never know.  Here all weights stay in memory.
 *
 * Declaring and loading are for one thread.  Acquire, release, want, alloc and free are safe from
 * several threads. */
#ifndef K3_STORE_STORE_H
#define K3_STORE_STORE_H

#include "format/safetensors.h"

struct k3_store;
typedef uint32_t k3_resident;

/* One tensor's place in a resident. */
struct k3_piece {
    const struct k3_tensor *tensor;
    uint64_t at;    /* bytes from the resident's start */
    bool is_scale;  /* E8M0 scales: 255 is refused when met */
};

struct k3_span {
    void *data;
    uint64_t bytes;
};

/* tensors: outlives the store.  budget: bytes that the store may hold at any time. */
k3_status k3_store_new(const struct k3_tensors *tensors, uint64_t budget, struct k3_store **out, k3_error *err);
void k3_store_close(struct k3_store *s);

/* Declares a resident of weights; its pieces are copied.  Ids count up from 0. */
k3_status k3_store_declare(struct k3_store *s, uint64_t bytes, const struct k3_piece *pieces, size_t count,
                           k3_resident *id, k3_error *err);

/* Bytes that the declared weights need. */
uint64_t k3_store_declared(const struct k3_store *s);

/* Brings the declared weights in, with that many threads.  progress may be NULL and is called from
 * the calling thread. */
k3_status k3_store_load(struct k3_store *s, int threads, k3_progress progress, void *user, k3_error *err);

/* Weights about to be acquired: a hint that lets them move early. */
void k3_store_want(struct k3_store *s, const k3_resident *ids, size_t count);

/* Pins a resident's bytes until k3_store_release. */
k3_status k3_store_acquire(struct k3_store *s, k3_resident id, const void **data, k3_error *err);
void k3_store_release(struct k3_store *s, k3_resident id);

/* Zeroed memory for what the model writes; `what` names it in messages ("an MLA cache page"). */
k3_status k3_store_alloc(struct k3_store *s, uint64_t bytes, const char *what, struct k3_span *out, k3_error *err);
void k3_store_free(struct k3_store *s, struct k3_span *span);

/* Reads the first `count` values of a tensor of any float type as f32. */
k3_status k3_store_read_f32(struct k3_store *s, const struct k3_tensor *tensor, size_t count, float *out, k3_error *err);

uint64_t k3_store_used(const struct k3_store *s);
uint64_t k3_store_budget(const struct k3_store *s);

#endif
