#!/bin/bash
# debian11.sh: the oldest C library that shunt is built with, glibc 2.31. Makes a Debian 11 in a directory (debian.sh says
# where), builds there with -Werror, and runs the tests of in_there.sh. As root, on Debian; installs debootstrap, and
# takes the package mirror that apt uses. Some three
# minutes to make it, which a second run does not need; ten for the rest, on two cores.
set -eu -o pipefail

. "$(dirname "$(readlink -f "$0")")/debian.sh"

packages=gcc,libc6-dev,ninja-build,pkg-config,python3,python3-pytest,libxxhash-dev,libunwind-dev,libfabric-dev,libsodium-dev
packages+=,liblmdb-dev,binutils,libcriterion-dev,procps,attr,acl,e2fsprogs,groff-base
debian_make debian11 bullseye "$(dpkg --print-architecture)" "$packages"

# Debian 11 has Meson 0.56; shunt needs 1.0, which is Python alone.
debian_need meson meson
there=$cache/debian11
mkdir -p "$there/opt/meson"
cp -r "$(/usr/bin/python3 -c 'import mesonbuild, os; print(os.path.dirname(mesonbuild.__file__))' 2>/dev/null ||
    python3 -c 'import mesonbuild, os; print(os.path.dirname(mesonbuild.__file__))')" "$there/opt/meson/"
cat >"$there/usr/bin/meson" <<'MESON'
#!/usr/bin/python3
import sys
sys.path.insert(0, "/opt/meson")
from mesonbuild import mesonmain
sys.exit(mesonmain.main())
MESON
chmod +x "$there/usr/bin/meson"

# fabric, peers, ops_members: libfabric 1.11 refuses the interface of 1.17, and loses wake-ups when it is asked for its own.
debian_sources debian11
debian_run debian11 '
    ldd --version | head -n 1
    cd /src
    meson setup build -Dwerror=true -Dtests=enabled >setup.log || { tail -n 5 setup.log; exit 1; }
    ninja -j 2 -C build >build.log || { tail -n 30 build.log; exit 1; }
    tests/portability/in_there.sh fabric peers ops_members
'
