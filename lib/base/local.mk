K3_BASE = \
  lib/base/arena.c lib/base/arena.h \
  lib/base/barrier.c lib/base/barrier.h \
  lib/base/error.c lib/base/error.h \
  lib/base/file.c lib/base/file.h \
  lib/base/memory.c lib/base/memory.h \
  lib/base/threads.c lib/base/threads.h \
  lib/base/topology.c lib/base/topology.h
