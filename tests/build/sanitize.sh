#!/usr/bin/env bash
# The whole suite, broken inputs too, under AddressSanitizer and UndefinedBehaviorSanitizer.
set -eu
mkdir -p build-asan
cd build-asan
[ -e Makefile ] || ../configure --silent --disable-shared \
    CFLAGS='-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined'
make -s -j"$(nproc)"
make -s -k check VERBOSE=1
