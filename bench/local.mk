# bench
EXTRA_PROGRAMS += bench/small_kernels
bench_small_kernels_SOURCES = bench/small_kernels.c
bench_small_kernels_LDADD = $(K3_SIMD_LIBS)
EXTRA_DIST += bench/model

# make bench: the matrix products beside the machine's own limits
EXTRA_PROGRAMS += bench/kernels
bench_kernels_SOURCES = bench/kernels.c
bench_kernels_CFLAGS = $(AM_CFLAGS) $(OPENBLAS_CFLAGS)
bench_kernels_LDADD = $(K3_SIMD_LIBS) $(OPENBLAS_LIBS)
CLEANFILES += bench/kernels$(EXEEXT)
.PHONY: bench
bench: bench/kernels$(EXEEXT)
	$(AM_V_at)bench/kernels$(EXEEXT)
