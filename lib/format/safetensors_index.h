/* model.safetensors.index.json, in memory: which shard holds which tensor. */
#ifndef K3_FORMAT_SAFETENSORS_INDEX_H
#define K3_FORMAT_SAFETENSORS_INDEX_H

#include "format/json_scan.h"

#include <k3/k3.h>

struct k3_index_entry {
    const char *name;
    uint32_t name_length;
    uint32_t shard;
};

struct k3_index {
    struct k3_index_entry *entry; /* [count], in the order of the text */
    struct k3_name *shard;        /* [shards], sorted by name */
    uint32_t count, shards;
};

/* Parses text [length], which is overwritten and must outlive the index: the names point into it.
 * `file` is for messages.  Shards' names stay within the directory. */
k3_status k3_index_parse(struct k3_index *x, const char *file, char *text, size_t length, k3_error *err);
void k3_index_clear(struct k3_index *x);

#endif
