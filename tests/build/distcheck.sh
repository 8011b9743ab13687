#!/usr/bin/env bash
# The release tarball builds, tests, installs and uninstalls from a read-only source.
set -eu
make -s -C build -j"$(nproc)" distcheck TESTS='tests/models tests/blocks tests/base' >build/distcheck.log 2>&1 || {
    tail -n 60 build/distcheck.log
    exit 1
}
