K3_APIS = lib/api/checkpoint.c lib/api/model.c
