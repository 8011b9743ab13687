K3_APIS = \
  lib/api/checkpoint.h \
  lib/api/model.c
