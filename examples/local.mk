EXTRA_DIST += examples/generate.c
