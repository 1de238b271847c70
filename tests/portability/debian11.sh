#!/bin/bash
# debian11.sh [DIRECTORY]: the oldest C library that shunt is built with, glibc 2.31. Makes a Debian 11 in DIRECTORY (default: a
# temporary one, which is removed; an existing one is used again), builds there, and runs the unit tests, those with a daemon,
# and tests/same. As root, on Debian or Ubuntu; takes the package mirror that apt uses. Some ten minutes, most of them
# for packages; not part of tests/run.sh.
set -eu -o pipefail

top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
root=${1:-}
keep=yes
if [ -z "$root" ]; then
    root=$(mktemp -d "${TMPDIR:-/tmp}/shunt-debian11.XXXXXX")
    keep=no
fi

finish() {
    local part
    for part in dev/shm dev/pts dev proc; do
        mountpoint -q "$root/$part" && umount "$root/$part"
    done
    [ "$keep" = yes ] || rm -rf "$root"
}
trap finish EXIT

packages=gcc,libc6-dev,ninja-build,pkg-config,python3,python3-pytest,libxxhash-dev,libunwind-dev,libfabric-dev,libsodium-dev
packages+=,binutils,libcriterion-dev,procps,attr,acl,e2fsprogs,groff-base
if [ ! -e "$root/usr/bin/gcc" ]; then
    command -v debootstrap >/dev/null || apt-get -qq install -y --no-install-recommends debootstrap
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    debootstrap --variant=minbase --include="$packages" bullseye "$root" "$mirror" >"$root.log" 2>&1 || {
        tail -n 20 "$root.log"
        exit 1
    }
    rm -f "$root.log"
fi

# Debian 11 has Meson 0.56; shunt needs 1.0, which is Python alone.
mkdir -p "$root/opt/meson"
cp -r "$(python3 -c 'import mesonbuild, os; print(os.path.dirname(mesonbuild.__file__))' 2>/dev/null ||
    /usr/bin/python3 -c 'import mesonbuild, os; print(os.path.dirname(mesonbuild.__file__))')" "$root/opt/meson/"
cat >"$root/usr/bin/meson" <<'MESON'
#!/usr/bin/python3
import sys
sys.path.insert(0, "/opt/meson")
from mesonbuild import mesonmain
sys.exit(mesonmain.main())
MESON
chmod +x "$root/usr/bin/meson"

rm -rf "$root/src"
mkdir "$root/src"
git -C "$top" archive HEAD | tar x -C "$root/src"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 bash -euc '
    ldd --version | head -n 1
    cd /src
    meson setup build -Dwerror=true -Dtests=enabled >setup.log || { tail -n 5 setup.log; exit 1; }
    ninja -C build >build.log || { tail -n 30 build.log; exit 1; }
    meson test -C build --no-rebuild --suite unit --suite daemon --suite fuzz
    python3 -m pytest -q -p no:cacheprovider tests/same
'
