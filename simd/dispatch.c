#include "simd/kernels.h"

#include <string.h>

extern const struct k3_kernels k3_kernels_scalar;

const struct k3_kernels *k3_kernels_at(size_t i) {
    return i == 0 ? &k3_kernels_scalar : NULL;
}

const struct k3_kernels *k3_kernels_find(const char *isa) {
    const struct k3_kernels *k;
    for (size_t i = 0; (k = k3_kernels_at(i)); i++)
        if (!isa || !strcmp(isa, k->isa)) return k;
    return NULL;
}
