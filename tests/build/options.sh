#!/usr/bin/env bash
# Every configure option, and clang, builds without a warning and answers like the goldens.
set -eu
top=$PWD

variant() { # NAME CONFIGURE-ARGUMENT...
    local name=$1
    shift
    echo "== $name: $*"
    rm -rf "build-options/$name"
    mkdir -p "build-options/$name"
    (cd "build-options/$name" && "$top/configure" --silent --disable-shared "$@" &&
        make -s -j"$(nproc)" AM_CFLAGS_EXTRA=-Werror && make -s check TESTS='tests/models tests/base') || {
        echo "$name failed"
        cat "build-options/$name"/tests/*.log 2>/dev/null | tail -n 30
        exit 1
    }
    rm -rf "build-options/$name"
}

variant plain --disable-openmp --without-hwloc --without-liburing --without-openblas
variant no-openmp --disable-openmp
variant no-hwloc --without-hwloc
variant no-liburing --without-liburing
variant no-openblas --without-openblas
variant cuda --with-cuda
if command -v clang >/dev/null; then variant clang CC=clang; fi
