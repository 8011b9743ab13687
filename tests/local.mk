# One fragment an area.  Every test links the inside of the library, not only what it exports.
K3_TEST_LIBS = lib/libk3_internal.la $(CHECK_LIBS)
AM_TESTS_ENVIRONMENT = K3_SRCDIR=$(abs_top_srcdir); export K3_SRCDIR; K3_BUILDDIR=$(abs_top_builddir); export K3_BUILDDIR;

include tests/base.mk
include tests/format.mk
include tests/tokenizer.mk
include tests/kernels.mk
include tests/model.mk
include tests/cli.mk
include tests/build.mk
