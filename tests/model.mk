check_PROGRAMS += tests/models tests/blocks
TESTS += tests/models tests/blocks
tests_models_SOURCES = tests/models.c
tests_models_LDADD = $(K3_TEST_LIBS)
tests_blocks_SOURCES = tests/blocks.c tests/golden.c tests/golden.h \
  tests/checkpoint_writer.c tests/checkpoint_writer.h
tests_blocks_LDADD = $(K3_TEST_LIBS)
check_PROGRAMS += tests/variants
TESTS += tests/variants
tests_variants_SOURCES = tests/variants.c tests/checkpoint_writer.c tests/checkpoint_writer.h
tests_variants_LDADD = $(K3_TEST_LIBS)
