# The program, tried as a user would: Python's standard library runs it and looks at what comes out.
TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(top_srcdir)/tests/cli/python
K3_CLI_TESTS = tests/cli/usage.py tests/cli/run.py tests/cli/logits.py tests/cli/inspect_model.py tests/cli/bench.py \
  tests/cli/scale.py tests/cli/chat.py tests/cli/perplexity.py tests/cli/evaluate.py \
  tests/hostile/hostile.py
TESTS += $(K3_CLI_TESTS)
EXTRA_DIST += $(K3_CLI_TESTS) tests/cli/python tests/cli/harness.py tests/hostile/breaking.py tests/hostile/cases.py

# The whole table of broken inputs with another build of the program: make check-hostile K3=PATH
check-hostile:
	K3_SRCDIR=$(abs_top_srcdir) K3_BUILDDIR=$(abs_top_builddir) K3=$(K3) $(PY_LOG_COMPILER) \
	  $(top_srcdir)/tests/hostile/hostile.py
.PHONY: check-hostile
