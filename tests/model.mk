check_PROGRAMS += tests/models
TESTS += tests/models
tests_models_SOURCES = tests/models.c
tests_models_LDADD = $(K3_TEST_LIBS)
