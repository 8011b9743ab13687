K3_STORE = \
  lib/store/store.h lib/store/internal.h \
  lib/store/ledger.c lib/store/ledger.h \
  lib/store/store.c lib/store/load.c lib/store/vector.c
