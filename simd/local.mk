noinst_LTLIBRARIES += simd/libk3_scalar.la
simd_libk3_scalar_la_SOURCES = simd/kernels.h simd/dispatch.c simd/scalar/scalar.h simd/scalar/scalar.c \
  simd/scalar/matmul.c simd/scalar/widen.c \
  simd/scalar/norm.c simd/scalar/elementwise.c simd/scalar/kda.c simd/scalar/attn_res.c simd/scalar/softmax.c
K3_SIMD_LIBS = simd/libk3_scalar.la

# Compiled once for each instruction set with vectors.
K3_VEC_SOURCES = simd/vec/types.h simd/vec/vec.h simd/vec/math.h simd/vec/kernels.h simd/vec/weights.h simd/vec/mxfp4.h \
  simd/vec/table.c simd/vec/matmul.c simd/vec/matmul_mxfp4.c simd/vec/matmul_t.c simd/vec/widen.c \
  simd/vec/norm.c simd/vec/elementwise.c simd/vec/kda.c simd/vec/attn_res.c simd/vec/softmax.c

if X86_64
noinst_LTLIBRARIES += simd/libk3_avx2.la simd/libk3_avx512.la
simd_libk3_avx2_la_SOURCES = $(K3_VEC_SOURCES) simd/avx2/isa.h simd/avx2/mxfp4.h simd/avx2/mxfp4.c
simd_libk3_avx2_la_CFLAGS = $(AM_CFLAGS) $(AVX2_CFLAGS)
simd_libk3_avx512_la_SOURCES = $(K3_VEC_SOURCES) simd/avx512/isa.h simd/avx512/mxfp4.h simd/avx512/mxfp4.c
simd_libk3_avx512_la_CFLAGS = $(AM_CFLAGS) $(AVX512_CFLAGS)
K3_SIMD_LIBS += simd/libk3_avx2.la simd/libk3_avx512.la
endif
