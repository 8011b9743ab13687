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
    (
        cd "build-options/$name"
        "$top/configure" --silent --disable-shared "$@"
        make -s -j"$(nproc)" AM_CFLAGS_EXTRA=-Werror
        make -s -j"$(nproc)" AM_CFLAGS_EXTRA=-Werror tests/base tests/models tests/goldens/.stamp
        export K3_SRCDIR=$top K3_BUILDDIR=$PWD
        tests/base
        tests/models
        ./k3 run "$top/tests/data/models/k3-tiny" -p 'Once upon a time' -n 8 --seed 1 --quiet | grep -q .
    )
    rm -rf "build-options/$name"
}

variant plain --disable-openmp --without-hwloc --without-liburing --without-openblas
variant no-openmp --disable-openmp
variant no-hwloc --without-hwloc
variant fewer-libraries --without-liburing --without-openblas --with-cuda
if command -v clang >/dev/null; then variant clang CC=clang; else echo "there is no clang: not tried"; fi
