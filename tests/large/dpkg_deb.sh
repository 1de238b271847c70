#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# dpkg_deb.sh: builds Debian packages in the working directory, looks into them and extracts them, with dates that are
# the same each time; installs them into a system of their own below, upgrades, configures and removes them.
set -eu -o pipefail

export SOURCE_DATE_EPOCH=1700000000 DEBIAN_FRONTEND=noninteractive

# package VERSION: the tree that a package is made of.
package() {
    local tree=tree-$1 i
    mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$tree/usr/share/doc/large" "$tree/etc/large"
    cat > "$tree/DEBIAN/control" <<CONTROL
Package: large
Version: $1
Architecture: all
Maintainer: A <a@example.org>
Description: a package of some size
CONTROL
    echo /etc/large/settings > "$tree/DEBIAN/conffiles"
    for i in preinst postinst prerm postrm; do
        printf '#!/bin/sh\necho "%s $@" >> "$DPKG_ROOT/var/scripts.log"\n' $i > "$tree/DEBIAN/$i"
        chmod 755 "$tree/DEBIAN/$i"
    done
    echo "settings of $1" > "$tree/etc/large/settings"
    printf '#!/bin/sh\necho %s\n' "$1" > "$tree/usr/bin/large"
    chmod 755 "$tree/usr/bin/large"
    ln -s large "$tree/usr/bin/also-large"
    ln "$tree/usr/bin/large" "$tree/usr/bin/large-too"
    for i in $(seq 200); do seq $((i + $1)) > "$tree/usr/share/doc/large/page-$i"; done
}

build_and_look() {
    local compression
    for compression in none gzip xz; do
        dpkg-deb --root-owner-group -Z$compression --build "tree-$1" "large-$1-$compression.deb"
    done
    cp "large-$1-xz.deb" "large-$1.deb"
    sha256sum -- *.deb
    dpkg-deb --info "large-$1.deb"
    dpkg-deb --contents "large-$1.deb" | sha256sum
    dpkg-deb --fsys-tarfile "large-$1.deb" | tar -t | LC_ALL=C sort | tail -n 4
    dpkg-deb --raw-extract "large-$1.deb" "raw-$1"
    diff -r --no-dereference "tree-$1" "raw-$1"
    ar t "large-$1.deb"
}

system_begin() {
    mkdir -p system/var/lib/dpkg/info system/var/lib/dpkg/updates system/var/lib/dpkg/triggers
    touch system/var/lib/dpkg/status system/var/lib/dpkg/available
}

in_system() {
    dpkg --root="$PWD/system" --force-not-root --force-script-chrootless --log=/dev/null "$@" < /dev/null 2>&1 |
        sed "s,$PWD,HERE,g"
}

package 1
build_and_look 1
package 2
build_and_look 2
system_begin
in_system --install large-1.deb
echo changed >> system/etc/large/settings
in_system --force-confold --install large-2.deb
in_system --verify large || echo "verify: status $?" # one file was changed above
in_system --listfiles large | LC_ALL=C sort | tail -n 5
in_system --force-confnew --install large-1.deb
in_system --remove large
in_system --purge large
cat system/var/scripts.log
dpkg-deb --vextract large-2.deb extracted | wc -l
