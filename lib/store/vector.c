/* Small tensors, widened to f32 as they are read. */
#include "store/internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "simd/kernels.h"

#include <stdlib.h>

k3_status k3_store_read_f32(struct k3_store *s, const struct k3_tensor *t, size_t count, float *out, k3_error *err) {
    const struct k3_kernels *k = k3_kernels_find("scalar");
    size_t element = t->dtype == K3_DTYPE_F32 ? 4 : 2, bytes;
    if (!k3_mul(count, element, &bytes) || bytes > t->bytes)
        return k3_fail(err, K3_ERR_FORMAT, "%.*s: %zu values are needed", (int)t->name_length, t->name, count);
    int fd;
    k3_status status = k3_store_shard(s, t->shard, &fd, err);
    if (status) return status;
    if (t->dtype == K3_DTYPE_F32) return k3_store_read(s, t, 0, out, bytes, err);
    void *raw = k3_array(count, element);
    if (!raw) return k3_fail(err, K3_ERR_MEMORY, "out of memory");
    status = k3_store_read(s, t, 0, raw, bytes, err);
    if (!status) (t->dtype == K3_DTYPE_BF16 ? k->widen_bf16 : k->widen_f16)(out, raw, count);
    free(raw);
    return status;
}
