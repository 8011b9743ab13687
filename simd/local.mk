noinst_LTLIBRARIES += simd/libk3_scalar.la
simd_libk3_scalar_la_SOURCES = simd/kernels.h simd/dispatch.c simd/scalar/scalar.h simd/scalar/scalar.c \
  simd/scalar/matmul.c simd/scalar/widen.c \
  simd/scalar/norm.c simd/scalar/elementwise.c simd/scalar/kda.c simd/scalar/attn_res.c simd/scalar/softmax.c
K3_SIMD_LIBS = simd/libk3_scalar.la

if X86_64
noinst_LTLIBRARIES += simd/libk3_avx2.la
simd_libk3_avx2_la_SOURCES = simd/avx2/avx2.h simd/avx2/avx2.c simd/avx2/math.h simd/avx2/lanes.h \
  simd/avx2/weights.h simd/avx2/mxfp4.h simd/avx2/matmul.c simd/avx2/matmul_mxfp4.c \
  simd/avx2/matmul_t.c simd/avx2/widen.c \
  simd/avx2/norm.c simd/avx2/elementwise.c simd/avx2/kda.c simd/avx2/attn_res.c simd/avx2/softmax.c
simd_libk3_avx2_la_CFLAGS = $(AM_CFLAGS) $(AVX2_CFLAGS)
K3_SIMD_LIBS += simd/libk3_avx2.la
endif
