# bench
EXTRA_PROGRAMS += bench/small_kernels
bench_small_kernels_SOURCES = bench/small_kernels.c
bench_small_kernels_LDADD = $(K3_SIMD_LIBS)
EXTRA_DIST += bench/model
