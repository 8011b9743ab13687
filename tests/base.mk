check_PROGRAMS += tests/base
TESTS += tests/base
tests_base_SOURCES = tests/base.c
tests_base_LDADD = $(K3_TEST_LIBS)

check_PROGRAMS += tests/threads
TESTS += tests/threads
tests_threads_SOURCES = tests/threads.c
tests_threads_LDADD = $(K3_TEST_LIBS) -lpthread
