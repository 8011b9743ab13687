/* What the files of lib/store share. */
#ifndef K3_STORE_INTERNAL_H
#define K3_STORE_INTERNAL_H

#include "store/ledger.h"
#include "store/store.h"

struct k3_weights { /* a declared resident */
    uint64_t at, bytes; /* place in the arena */
    size_t first_piece, pieces;
};

struct k3_store {
    const struct k3_tensors *tensors;
    struct k3_ledger ledger;
    struct k3_weights *weights;
    size_t count, capacity;
    struct k3_piece *pieces;
    size_t piece_count, piece_capacity;
    uint64_t arena_bytes;
    unsigned char *arena; /* all weights, once loaded */
    int *fd;              /* [shards], -1: not open */
};

/* Opens a shard (once) for reading. */
k3_status k3_store_shard(struct k3_store *s, uint32_t shard, int *fd, k3_error *err);
void k3_store_close_shards(struct k3_store *s);

/* Reads bytes [from, from + bytes) of a tensor. */
k3_status k3_store_read(struct k3_store *s, const struct k3_tensor *t, uint64_t from, void *out, size_t bytes,
                        k3_error *err);

#endif
