check_PROGRAMS += tests/base
TESTS += tests/base
tests_base_SOURCES = tests/base.c
tests_base_LDADD = $(K3_TEST_LIBS)
