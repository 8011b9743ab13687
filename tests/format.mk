# tests of format
check_PROGRAMS += tests/safetensors
TESTS += tests/safetensors
tests_safetensors_SOURCES = tests/safetensors.c
tests_safetensors_LDADD = $(K3_TEST_LIBS)
