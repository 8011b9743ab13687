/* The tensors of a checkpoint directory: where each lies, in which file, with what shape.
 *
 * Reads model.safetensors.index.json and the headers of the shards that it names, or one
 * model.safetensors without an index.  Knows files, not models. */
#ifndef K3_FORMAT_SAFETENSORS_H
#define K3_FORMAT_SAFETENSORS_H

#include <k3/k3.h>

#define K3_MAX_RANK 8

enum k3_dtype { K3_DTYPE_BF16, K3_DTYPE_F16, K3_DTYPE_F32, K3_DTYPE_U8, K3_DTYPE_OTHER /* known size, not used */ };

struct k3_tensor {
    const char *name; /* not terminated */
    uint64_t offset;  /* first byte, from the start of the file */
    uint64_t bytes;
    uint64_t shape[K3_MAX_RANK];
    uint32_t name_length;
    uint32_t shard;
    uint8_t dtype; /* enum k3_dtype */
    uint8_t type;  /* index of the stored spelling, see k3_dtype_name */
    uint8_t rank;
};

struct k3_shard {
    char *name; /* relative to the directory */
    uint64_t bytes; /* size of the file */
};

struct k3_tensors; /* the table */

k3_status k3_tensors_open(const char *dir, struct k3_tensors **out, k3_error *err);
void k3_tensors_close(struct k3_tensors *t);

const char *k3_tensors_dir(const struct k3_tensors *t);
uint64_t k3_tensors_count(const struct k3_tensors *t);
const struct k3_tensor *k3_tensors_at(const struct k3_tensors *t, uint64_t i); /* order of the files, then of the headers */
const struct k3_tensor *k3_tensors_find(const struct k3_tensors *t, const char *name, size_t length); /* or NULL */

/* The same, quicker where it stands beside `near` (or NULL) in its file. */
const struct k3_tensor *k3_tensors_find_near(const struct k3_tensors *t, const struct k3_tensor *near, const char *name,
                                             size_t length);

uint32_t k3_tensors_shards(const struct k3_tensors *t);
const struct k3_shard *k3_tensors_shard(const struct k3_tensors *t, uint32_t shard);

/* The stored spelling: "BF16", "I64", ... */
const char *k3_dtype_name(const struct k3_tensor *t);

#endif
