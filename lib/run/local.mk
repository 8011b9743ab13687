K3_RUN = \
  lib/run/session.c lib/run/session.h
K3_RUN += lib/run/sampler.c
