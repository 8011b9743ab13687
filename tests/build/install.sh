#!/usr/bin/env bash
# Installs what build/ holds, looks at it, embeds it through pkg-config alone (C and C++, shared and
# static), and uninstalls.
set -eu
top=$PWD root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
fail() { echo "$*"; exit 1; }

make -s -C build install DESTDIR="$root" >"$root/install.log" 2>&1 || { cat "$root/install.log"; exit 1; }
value() { sed -n "s/^$1 = //p" build/Makefile | head -n 1; }
libdir=$root/usr/local/lib
[ "$(value prefix)" = /usr/local ] || fail "build/ is configured for $(value prefix): not for the default"
library=$libdir/libk3.so archive=$libdir/libk3.a header=$root/usr/local/include/k3/k3.h
export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
model=$top/tests/data/models/k3-tiny

echo "== program and pages"
LD_LIBRARY_PATH=$libdir "$root/usr/local/bin/k3" --version
for page in man1/k3.1 man1/k3-run.1 man1/k3-logits.1 man1/k3-inspect.1 man1/k3-bench.1 man1/k3-perplexity.1 \
    man1/k3-compare.1 man1/k3-eval.1 man3/libk3.3; do
    grep -q '^\.SH NAME' "$root/usr/local/share/man/$page"
done

echo "== exported is what the header declares"
nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort >"$root/exported"
grep -E '^K3_API' "$header" | grep -oE 'k3_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$root/declared"
[ "$(wc -l <"$root/declared")" -gt 20 ]
diff "$root/declared" "$root/exported"
readelf -d "$library" | grep 'SONAME.*\[libk3\.so\.0\]'
others=$(nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^k3_/ {print $3}')
[ -z "$others" ] || fail "the static library holds names without k3_: $others"

echo "== no writable globals; nothing that prints, exits or reads the environment"
size -A "$archive" >"$root/sections"
grep -q '^\.text' "$root/sections"
awk '/^\.(data|bss|tdata|tbss)/ && !/^\.data\.rel\.ro/ && $2 > 0 {print; bad = 1} END {exit bad}' "$root/sections"
nm -u "$archive" | awk '{print $2}' | sort -u >"$root/undefined"
grep -q '^malloc$' "$root/undefined"
pattern='^(secure_)?getenv$|^_?exit$|^abort$|^__assert_fail$|^(__)?v?f?printf(_chk)?$|^f?put(s|c|char)$'
pattern=$pattern'|^perror$|^std(out|err)$|^v?syslog$'
if grep -E "$pattern" "$root/undefined"; then fail "the library must not call these"; fi

echo "== header: C and C++, old and new"
echo '#include <k3/k3.h>' >"$root/header.c"
for std in c99 c11 c17; do
    cc -std=$std -pedantic -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags k3) "$root/header.c"
done
for std in c++98 c++11 c++20; do
    c++ -x c++ -std=$std -pedantic -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags k3) "$root/header.c"
done

generates() { # PROGRAM: some text
    "$1" "$model" "Once upon a time" 16 >"$root/text"
    [ -s "$root/text" ] || fail "$1 wrote nothing"
}

echo "== shared"
cc -Wall -Wextra -Werror "$top/examples/generate.c" $(pkg-config --cflags --libs k3) -o "$root/generate"
(export LD_LIBRARY_PATH=$libdir && generates "$root/generate")
cp "$root/text" "$root/text-shared"
LD_LIBRARY_PATH=$libdir ldd "$root/generate" | grep "$libdir/libk3.so.0"
if "$root/generate" /nowhere x 1 2>"$root/message"; then fail "no model, and no failure"; fi

echo "== static: where only the archive is, pkg-config --static is all that a program needs"
mkdir "$root/static"
mv "$library"* "$libdir"/libk3.la "$root/static"
cc "$top/examples/generate.c" $(pkg-config --static --cflags --libs k3) -o "$root/generate-static"
generates "$root/generate-static"
cmp "$root/text" "$root/text-shared"
if ldd "$root/generate-static" | grep libk3; then fail "not linked statically"; fi
mv "$root"/static/* "$libdir"

echo "== C++"
cat >"$root/version.cc" <<'CC'
#include <k3/k3.h>
#include <cstring>
#include <iostream>
int main() {
    k3_error err;
    k3_model *model = nullptr;
    bool failed = k3_model_open("/nowhere", nullptr, &model, &err) == K3_ERR_IO && !model;
    std::cout << k3_version() << '\n' << k3_error_text(&err) << '\n';
    return failed && std::strstr(k3_error_text(&err), "/nowhere") ? 0 : 1;
}
CC
c++ -Wall -Wextra -Werror "$root/version.cc" $(pkg-config --cflags --libs k3) -o "$root/version"
LD_LIBRARY_PATH=$libdir "$root/version"

echo "== uninstall"
make -s -C build uninstall DESTDIR="$root" >/dev/null
left=$(find "$root/usr" -type f -o -type l)
[ -z "$left" ] || fail "left behind: $left"
