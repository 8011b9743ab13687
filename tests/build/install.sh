#!/usr/bin/env bash
# Installs, embeds through pkg-config (C and C++, shared and static), and uninstalls.
set -eu
top=$PWD prefix=$(mktemp -d)
trap 'rm -rf "$prefix" build-install' EXIT
rm -rf build-install
mkdir build-install
cd build-install
"$top/configure" --silent --prefix="$prefix/usr"
make -s -j"$(nproc)"
make -s install >/dev/null
export PKG_CONFIG_PATH=$prefix/usr/lib/pkgconfig LD_LIBRARY_PATH=$prefix/usr/lib
model=$top/tests/data/models/k3-tiny

echo "== shared"
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror "$top/examples/generate.c" $(pkg-config --cflags --libs k3) -o "$prefix/generate"
"$prefix/generate" "$model" "Once upon a time" 16 | grep -q .
echo "== static"
# shellcheck disable=SC2046
cc "$top/examples/generate.c" $(pkg-config --cflags k3) "$prefix/usr/lib/libk3.a" \
    $(pkg-config --static --libs-only-l --libs-only-other k3 | sed 's/-lk3 //') -o "$prefix/generate-static"
env -u LD_LIBRARY_PATH "$prefix/generate-static" "$model" "Once upon a time" 16 | grep -q .
echo "== C++"
cat >"$prefix/version.cc" <<'CC'
#include <k3/k3.h>
#include <iostream>
int main() {
    k3_error err;
    k3_model *model = nullptr;
    bool failed = k3_model_open("/nowhere", nullptr, &model, &err) == K3_ERR_IO;
    std::cout << k3_version() << '\n' << k3_error_text(&err) << '\n';
    return failed ? 0 : 1;
}
CC
# shellcheck disable=SC2046
c++ -Wall -Wextra -Werror "$prefix/version.cc" $(pkg-config --cflags --libs k3) -o "$prefix/version"
"$prefix/version"
echo "== program and pages"
"$prefix/usr/bin/k3" --version
for page in man1/k3.1 man1/k3-run.1 man1/k3-logits.1 man1/k3-inspect.1 man1/k3-bench.1 man3/libk3.3; do
    test -s "$prefix/usr/share/man/$page"
done
echo "== exported symbols"
library=$prefix/usr/lib/libk3.so
if nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | grep -v '^k3_'; then
    echo "symbols without k3_ are exported"
    exit 1
fi
# exactly what the header declares
nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort >"$prefix/exported"
grep -o '\bk3_[a-z0-9_]*(' "$top/include/k3/k3.h" | tr -d '(' | sort -u >"$prefix/mentioned"
grep -E '^K3_API' "$top/include/k3/k3.h" | grep -oE 'k3_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$prefix/declared"
diff "$prefix/declared" "$prefix/exported"
readelf -d "$library" | grep -q 'SONAME.*\[libk3\.so\.0\]'
echo "== uninstall"
make -s uninstall >/dev/null
left=$(find "$prefix/usr" -type f -o -type l)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
