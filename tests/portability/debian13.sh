#!/bin/bash
# debian13.sh: a C library and a libfuse that are newer than those of the other tests: glibc 2.41, and libfuse 3.17, with which the
# kernel reads and writes the files of a mount itself. Makes a Debian 13 in a directory (debian.sh says where), builds there with
# -Werror, and runs the tests of the mount and those of in_there.sh. As root, on Debian, with /dev/fuse; installs debootstrap, and
# takes the package mirror that apt uses.
set -eu -o pipefail

. "$(dirname "$(readlink -f "$0")")/debian.sh"

packages=gcc,libc6-dev,meson,ninja-build,pkg-config,python3,python3-pytest,libxxhash-dev,libunwind-dev,libfabric-dev,libsodium-dev
# libselinux1-dev: debootstrap takes no package for what another one provides.
packages+=,liblmdb-dev,libfuse3-dev,libselinux1-dev,fuse3,binutils,libcriterion-dev,procps,attr,acl,e2fsprogs,groff-base,strace
debian_make debian13 trixie "$(dpkg --print-architecture)" "$packages"

# Not run: what needs Go, and what makes a mount namespace, which cannot be done where / is no mount.
debian_sources debian13
debian_run debian13 '
    ldd --version | head -n 1
    cd /src
    meson setup build -Dwerror=true -Dtests=enabled -Dmount=enabled >setup.log || { tail -n 5 setup.log; exit 1; }
    ninja -j 2 -C build >build.log || { tail -n 30 build.log; exit 1; }
    python3 -m pytest -q -rs -p no:cacheprovider tests/node/test_mount.py \
        -k "not program_of_go and not name_space and not another_user_reads"
    tests/portability/in_there.sh
'
