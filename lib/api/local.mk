K3_APIS = \
  lib/api/checkpoint.h \
  lib/api/checkpoint.c lib/api/model.c
