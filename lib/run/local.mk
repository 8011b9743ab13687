K3_RUN = \
  lib/run/session.c lib/run/session.h
