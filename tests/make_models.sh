#!/bin/sh
# Makes the golden models whose weights are not in the repository, from their seeds, and checks every
# byte.  usage: make_models.sh SRCDIR BUILDDIR.  Exit status 77 where numpy is missing.
set -eu
src=$1 build=$2
python=
for p in /usr/bin/python3 python3; do
    if "$p" -c 'import numpy' 2>/dev/null; then python=$p; break; fi
done
for m in k3-odd:12 kimi-linear-tiny:13; do
    name=${m%:*} seed=${m#*:} out=$build/tests/goldens/${m%:*}
    sums=$src/tests/data/models/$name/SHA256SUMS
    if (cd "$out" && sha256sum --quiet -c "$sums") 2>/dev/null; then continue; fi
    if [ -z "$python" ]; then
        echo "no Python with numpy (Debian: python3-numpy): the goldens $name are not compared"
        exit 77
    fi
    rm -rf "$out"
    mkdir -p "$build/tests/goldens"
    PYTHONDONTWRITEBYTECODE=1 "$python" "$src/tests/reference/make_goldens.py" models "$build/tests/goldens" \
        --seed "$seed" --preset "$name"
    (cd "$out" && sha256sum --quiet -c "$sums")
    cp "$src/tests/data/models/$name"/expected.* "$out"
done
