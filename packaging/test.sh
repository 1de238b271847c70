#!/bin/bash
# test.sh [PART...]: release tarball and packages of the last commit, tested; all parts unless some are named. As root, on Debian;
# installs what is needed (tests/packages.txt). Some ten minutes, which a second run shortens: the Debian of the part chroot stays
# (tests/portability/debian.sh says where). Parts:
#   dist    the release tarball builds, with -Werror, and passes its unit and daemon tests
#   deb     Debian packages of the tarball; lintian has nothing to say
#   chroot  those packages, installed in a Debian 12 that has nothing of shunt: the quick start by a user, libshunt, the
#           modulefile by Lmod and by Environment Modules, and nothing is left when they are removed
#   rpm     rpm packages of the tarball, whose commands run; rpmlint has nothing to say
#   spack   the recipe, by the settings of the style check of Spack's packages; and by Spack itself, if there is one (SPACK_ROOT, or
#           spack in PATH; 1.0 or later, with its packages and clingo): style, audit and a concrete spec; nothing is installed
set -eu -o pipefail

. "$(dirname "$(readlink -f "$0")")/../tests/portability/debian.sh"
cd "$top"
version=$(sed -n "s/^project('shunt'.* version: '\([^']*\)'.*/\1/p" meson.build)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/shunt-packages.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
tarball=$scratch/build/meson-dist/shunt-$version.tar.xz

# quietly COMMAND...: says what it said only if it fails.
quietly() {
    "$@" >"$scratch/log" 2>&1 || { tail -n 30 "$scratch/log"; exit 1; }
}

make_tarball() {
    quietly meson setup "$scratch/build" -Dtests=disabled
    quietly meson dist -C "$scratch/build" --no-tests --formats xztar --allow-dirty
}

make_deb() {
    [ -e "$scratch/deb" ] || quietly bash packaging/build-deb.sh "$tarball" "$scratch/deb" -j2
}

part_dist() {
    mkdir "$scratch/dist"
    tar xf "$tarball" -C "$scratch/dist"
    cd "$scratch/dist/shunt-$version"
    quietly meson setup build -Dwerror=true -Dtests=enabled
    quietly ninja -C build -j 2
    quietly meson test -C build --no-rebuild --num-processes 2 --suite unit --suite daemon
    grep -E '^(Ok|Fail|Timeout):' "$scratch/log"
    cd "$top"
}

# Nothing is uploaded to Debian, so no bug asks for it.
part_deb() {
    make_deb
    lintian --display-info --fail-on error,warning,info --suppress-tags initial-upload-closes-no-bugs \
        "$scratch/deb/shunt_$version-1_$(dpkg --print-architecture).changes"
    /usr/bin/python3 tests/structure/hardening.py "$scratch/deb/shunt-$version"/obj-*
}

# Read by the shell in the chroot.
in_chroot='
    export DEBIAN_FRONTEND=noninteractive
    add() {
        apt-get -qq -o APT::Sandbox::User=root install -y "$@" >/tmp/apt.log 2>&1 </dev/null || { tail -n 20 /tmp/apt.log; exit 1; }
    }
    purge() {
        dpkg-query -W -f "\${Package}\n" "*shunt*" 2>/dev/null | xargs -r apt-get -qq purge -y >/tmp/apt.log 2>&1
    }
    purge
    apt-get -qq -o APT::Sandbox::User=root update
    add --no-install-recommends gcc libc6-dev pkgconf man-db openmpi-bin libopenmpi-dev lmod busybox-static
    add /packages/*.deb
    id user >/dev/null 2>&1 || useradd -m user
    su user -c "bash /usr/share/doc/shunt/examples/quickstart.sh --installed" >/tmp/quickstart.log 2>&1 || { cat /tmp/quickstart.log; exit 1; }
    tail -n 1 /tmp/quickstart.log
    man -w shunt-launch shunt-mount shuntd shunt.7 shunt-slurm libshunt >/dev/null

    # A static program under shunt, and a mount, for which this Debian has what the packages recommend.
    su user -c "cd; mkdir root seen; shunt run --root root --placement branch -- busybox touch root/static" >/tmp/static.log 2>&1 || { cat /tmp/static.log; exit 1; }
    su user -c "cd; shunt start --root root --placement branch; shunt mount root seen; busybox sh -c \"echo it >seen/file\"; shunt umount seen
        shunt stop --root root --export; rmdir seen; rm root/static root/file; rmdir root" >/tmp/mount.log 2>&1 || { cat /tmp/mount.log; exit 1; }
    echo "a static program and shunt mount: as expected"

    printf "%s\n" "#include <shunt/shunt.h>" "#include <stdio.h>" "int main(void) { return puts(shunt_version()) < 0; }" >/tmp/program.c
    gcc -o /tmp/program /tmp/program.c $(pkg-config --cflags --libs shunt)
    [ "$(/tmp/program)" = "$(pkg-config --modversion shunt)" ]

    purge
    left=$(find / -xdev -name "*shunt*" ! -path "/packages*" ! -path "/tmp/*" ! -path "/var/cache/*" ! -path "/proc/*")
    [ -z "$left" ] || { echo "left when the packages were removed: $left"; exit 1; }
    echo "removed: nothing is left"

    bash /packages/test_modulefile.sh /packages/usr
    add --no-install-recommends environment-modules
    bash /packages/test_modulefile.sh /packages/usr
'

part_chroot() {
    make_deb
    debian_make packaging bookworm "$(dpkg --print-architecture)" gcc,libc6-dev,pkgconf,procps
    local packages=$cache/packaging/packages file
    rm -rf "$packages"
    mkdir "$packages"
    for file in "$scratch"/deb/*.deb; do
        case $file in
        *-dbgsym_*) ;;
        *) cp "$file" "$packages" && dpkg-deb -x "$file" "$packages" ;;
        esac
    done
    cp -r packaging/test_modulefile.sh packaging/modulefiles "$packages"
    debian_run packaging "$in_chroot"
}

# Debian's rpm does not know that Debian's packages are what the build needs, hence --nodeps.
part_rpm() {
    local packages
    quietly rpmbuild --nodeps --with slurm -ba --define "_topdir $scratch/rpm" --define "_sourcedir ${tarball%/*}" --define '_smp_mflags -j2' \
        packaging/rpm/shunt.spec
    mapfile -t packages < <(find "$scratch/rpm" -name '*.rpm' ! -name '*-debug*')
    rpmlint -r packaging/rpm/rpmlintrc packaging/rpm/shunt.spec "${packages[@]}" | tee "$scratch/log"
    grep ' 0 errors, 0 warnings' "$scratch/log" >/dev/null
    mkdir "$scratch/unpacked" "$scratch/root"
    for file in "${packages[@]}"; do
        (cd "$scratch/unpacked" && rpm2cpio "$file" | cpio -idm --quiet)
    done
    "$scratch/unpacked/usr/bin/shunt" run --root "$scratch/root" --placement branch -- sh -c 'echo it >"$1/runs"' sh "$scratch/root"
    [ "$(cat "$scratch/root/runs")" = it ]
}

part_spack() {
    local settings=packaging/spack/ruff.toml spack=${SPACK_ROOT:+$SPACK_ROOT/bin/}spack
    if ! command -v ruff >/dev/null; then
        python3 -m venv "$scratch/python"
        "$scratch/python/bin/pip" -q --disable-pip-version-check install ruff
        PATH=$scratch/python/bin:$PATH
    fi
    ruff check --no-cache --config "$settings" packaging/spack/package.py
    ruff format --no-cache --config "$settings" --diff packaging/spack/package.py
    if command -v "$spack" >/dev/null; then
        spack_reads "$spack"
    else
        echo "no spack (SPACK_ROOT, PATH): it does not read the recipe"
    fi
}

# spack_reads SPACK: the recipe, in a repository of its own beside those that this Spack has. No mypy, which reads all of Spack.
spack_reads() {
    local spack=$1 repository=$scratch/spack/spack_repo/shunt recipe
    recipe=$repository/packages/shunt/package.py
    mkdir -p "${recipe%/*}"
    printf 'repo:\n  namespace: shunt\n  api: v2.2\n' >"$repository/repo.yaml"
    printf 'repos:\n  shunt: %s\n' "$repository" >"$scratch/spack/repos.yaml"
    cp packaging/spack/package.py "$recipe"
    echo "spack $("$spack" --version): style, audit, and spec with each variant"
    quietly "$spack" -C "$scratch/spack" style --skip mypy "$recipe"
    quietly "$spack" -C "$scratch/spack" audit packages shunt
    quietly "$spack" -C "$scratch/spack" spec shunt
    quietly "$spack" -C "$scratch/spack" spec shunt+mount+slurm
    grep -E '^( -|\[.\]) +shunt@'"$version"'.*\+mount.*\+slurm' "$scratch/log"
}

bash tests/packages.sh build packaging
make_tarball
[ $# -gt 0 ] || set -- dist deb chroot rpm spack
for part; do
    echo "== $part"
    "part_$part"
done
echo "packaging: as expected: $*"
