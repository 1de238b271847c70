#!/bin/bash
# release.sh: what somebody builds who packages shunt. With gcc, and with clang if it is there: a release build with
# -Werror, without Criterion, pytest and Go; its files are hardened; and it installs as a whole.
set -eu -o pipefail

top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/shunt-release.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# pkg-config as on a machine that has no Criterion.
mkdir "$scratch/pkgconfig"
for directory in $(pkg-config --variable pc_path pkg-config | tr : ' '); do
    [ ! -d "$directory" ] || find "$directory" -name '*.pc' ! -name 'criterion.pc' -exec ln -sf {} "$scratch/pkgconfig" \;
done
export PKG_CONFIG_LIBDIR=$scratch/pkgconfig

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    build=$scratch/$compiler
    CC=$compiler meson setup "$build" "$top" --buildtype=release -Dwerror=true >"$scratch/log" || { cat "$scratch/log"; exit 1; }
    ninja -C "$build" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
    if [ -d "$build/tests/unit" ]; then
        echo "release.sh: tests were built without Criterion" >&2
        exit 1
    fi
    python3 "$top/tests/structure/hardening.py" "$build"
    DESTDIR=$scratch/installed-$compiler meson install -C "$build" --quiet
    for file in bin/shunt bin/shunt-launch libexec/shunt/shuntd include/shunt/shunt.h share/man/man7/shunt.7 \
            share/man/man1/shunt.1 share/man/man1/shunt-{bench,export,fsck,launch,ls,run,status}.1; do
        if [ ! -e "$scratch/installed-$compiler/usr/local/$file" ]; then
            echo "release.sh: $file was not installed" >&2
            exit 1
        fi
    done
    "$scratch/installed-$compiler/usr/local/bin/shunt" --version
done
CC=gcc meson setup "$scratch/bare" "$top" -Dtests=disabled -Ddocs=false >"$scratch/log" || { cat "$scratch/log"; exit 1; }
ninja -C "$scratch/bare" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
DESTDIR=$scratch/installed-bare meson install -C "$scratch/bare" --quiet
if [ -e "$scratch/installed-bare/usr/local/share/man" ]; then
    echo "release.sh: -Ddocs=false installed manual pages" >&2
    exit 1
fi
