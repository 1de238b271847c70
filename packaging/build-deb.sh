#!/bin/bash
# build-deb.sh TARBALL DIRECTORY [OPTION...]: Debian packages in DIRECTORY, of a release tarball (meson dist), by
# dpkg-buildpackage with these options. It wants ./debian, which is packaging/debian here: copied, to keep the top level short.
set -eu -o pipefail

tarball=$1 directory=$2
shift 2
name=$(basename "$tarball" .tar.xz)
mkdir -p "$directory"
cp "$tarball" "$directory/${name/-/_}.orig.tar.xz"
tar xf "$tarball" -C "$directory"
cp -r "$directory/$name/packaging/debian" "$directory/$name/"
cd "$directory/$name"
dpkg-buildpackage -us -uc "$@"
