check_PROGRAMS += tests/kernels
TESTS += tests/kernels
tests_kernels_SOURCES = tests/kernels.c tests/kernels.h tests/kernels_elementwise.c tests/kernels_reductions.c \
  tests/kernels_softmax.c tests/kernels_kda.c tests/kernels_matmul.c tests/kernels_goldens.c tests/golden.c tests/golden.h
tests_kernels_LDADD = $(K3_TEST_LIBS)
EXTRA_DIST += tests/data/ops
