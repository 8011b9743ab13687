#!/usr/bin/env bash
# The whole suite, broken inputs too, under AddressSanitizer and UndefinedBehaviorSanitizer.
set -eu
# As without it: memory that is not there gives NULL, and the code under test has to cope.
export ASAN_OPTIONS=allocator_may_return_null=1
mkdir -p build-asan
cd build-asan
[ -e Makefile ] || ../configure --silent --disable-shared \
    CFLAGS='-g -O2 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined'
make -s -j"$(nproc)"
make -s -k check VERBOSE=1
