# Everything but the entry points' export: tests link it too, so that they reach the inside.
noinst_LTLIBRARIES += lib/libk3_internal.la
lib_libk3_internal_la_SOURCES = \
  $(K3_BASE) $(K3_FORMAT) $(K3_STORE) $(K3_MODEL) $(K3_RUN) $(K3_APIS)
lib_libk3_internal_la_LIBADD = $(K3_SIMD_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) $(HWLOC_LIBS)

lib_LTLIBRARIES += lib/libk3.la
lib_libk3_la_SOURCES =
lib_libk3_la_LIBADD = lib/libk3_internal.la
lib_libk3_la_LDFLAGS = -version-info $(K3_LT_VERSION) -no-undefined -Wl,--version-script=$(top_srcdir)/lib/libk3.map
EXTRA_lib_libk3_la_DEPENDENCIES = $(top_srcdir)/lib/libk3.map
EXTRA_DIST += lib/libk3.map

include lib/base/local.mk
include lib/format/local.mk
include lib/store/local.mk
include lib/model/local.mk
include lib/run/local.mk
include lib/api/local.mk
