/* model.safetensors.index.json: which shard holds which tensor.
 *
 * It is read through a window and never held whole: of a name, its hash is kept. */
#ifndef K3_FORMAT_SAFETENSORS_INDEX_H
#define K3_FORMAT_SAFETENSORS_INDEX_H

#include "base/arena.h"
#include "format/json_scan.h"

#include <k3/k3.h>

struct k3_index_entry {
    uint64_t hash; /* of the tensor's name */
    uint32_t shard;
};

struct k3_index {
    struct k3_index_entry *entry; /* [count], in the order of the text */
    struct k3_name *shard;        /* [shards], sorted by name; each is the name of a file beside the index */
    uint32_t count, shards;
    struct k3_arena arena;
};

/* file: for messages.  bytes: about how many the source has. */
k3_status k3_index_parse(struct k3_index *x, const char *file, const struct k3_json_source *source, uint64_t bytes,
                         k3_error *err);
void k3_index_clear(struct k3_index *x);

/* Reads a source that parsed well once more for the name of its entry i, which goes to name [size],
 * cut to fit and terminated. */
void k3_index_name(const struct k3_json_source *source, uint32_t i, char *name, size_t size);

#endif
