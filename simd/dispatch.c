#include "config.h"

#include "simd/kernels.h"

#include <string.h>
#ifdef K3_X86_64
#include <cpuid.h>
#endif

extern const struct k3_kernels k3_kernels_scalar;

static bool always(void) {
    return true;
}

#ifdef K3_X86_64
extern const struct k3_kernels k3_avx2_kernels, k3_avx512_kernels;

/* The builtins ask the operating system as well whether it saves the wide registers; clang's does not know F16C. */
static bool has_avx2(void) {
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const struct {
    const struct k3_kernels *kernels;
    bool (*runs)(void);
} tables[] = {
    /* best first */
#ifdef K3_X86_64
    {&k3_avx512_kernels, has_avx512},
    {&k3_avx2_kernels, has_avx2},
#endif
    {&k3_kernels_scalar, always},
};

const struct k3_kernels *k3_kernels_at(size_t i) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        if (tables[t].runs() && i-- == 0) return tables[t].kernels;
    return NULL;
}

const struct k3_kernels *k3_kernels_find(const char *isa) {
    const struct k3_kernels *k;
    for (size_t i = 0; (k = k3_kernels_at(i)); i++)
        if (!isa || !strcmp(isa, k->isa)) return k;
    return NULL;
}
