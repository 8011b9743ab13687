K3_BASE = \
  lib/base/error.c lib/base/error.h \
  lib/base/memory.c lib/base/memory.h \
  lib/base/threads.c lib/base/threads.h
