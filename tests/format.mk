# tests of format
check_PROGRAMS += tests/safetensors
TESTS += tests/safetensors
tests_safetensors_SOURCES = tests/safetensors.c
tests_safetensors_LDADD = $(K3_TEST_LIBS)

check_PROGRAMS += tests/config
TESTS += tests/config
tests_config_SOURCES = tests/config.c
tests_config_LDADD = $(K3_TEST_LIBS) $(JANSSON_LIBS)
check_PROGRAMS += tests/json_scan
TESTS += tests/json_scan
tests_json_scan_SOURCES = tests/json_scan.c
tests_json_scan_LDADD = $(K3_TEST_LIBS)
