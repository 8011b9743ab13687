# Models whose weights are made from their seeds before the tests run.
tests/goldens/.stamp: $(top_srcdir)/tests/make_models.sh
	@$(MKDIR_P) tests/goldens
	@sh $(top_srcdir)/tests/make_models.sh $(abs_top_srcdir) $(abs_top_builddir) || test $$? = 77
	@touch $@
check_DATA = tests/goldens/.stamp
clean-local:
	rm -rf tests/goldens

# Slow checks of the build itself: run by quickstart, not by make check.
EXTRA_DIST += tests/make_models.sh tests/build tests/reference tests/data/models
