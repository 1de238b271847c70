#!/bin/bash
# debian.sh: for the scripts beside it, which read it: a Debian in a directory, and commands in there. As root, on
# Debian. The directories are in $SHUNT_PORTABILITY_CACHE (default: $TMPDIR/shunt-portability), and are used again.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${SHUNT_PORTABILITY_CACHE:-${TMPDIR:-/tmp}/shunt-portability}
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)

# debian_need COMMAND PACKAGE: installs what this machine lacks.
debian_need() {
    command -v "$1" >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$2"
}

# debian_make NAME RELEASE ARCHITECTURE PACKAGES: from the mirror that apt uses here. What was not made to its end is made again.
debian_make() {
    local name=$1 release=$2 architecture=$3 packages=$4
    [ ! -e "$cache/$name" ] || return 0
    debian_need debootstrap debootstrap
    rm -rf "$cache/$name.part"
    mkdir -p "$cache"
    debootstrap --arch="$architecture" --variant=minbase --include="$packages" "$release" "$cache/$name.part" "$mirror" \
        >"$cache/$name.log" 2>&1 || {
        tail -n 20 "$cache/$name.log"
        return 1
    }
    mv "$cache/$name.part" "$cache/$name"
}

# debian_sources NAME: the last commit, in /src there.
debian_sources() {
    rm -rf "${cache:?}/$1/src"
    mkdir "$cache/$1/src"
    git -C "$top" archive HEAD | tar x -C "$cache/$1/src"
}

# debian_run NAME COMMANDS [OTHER]: by bash, in there; the Debian OTHER is at /target. What is mounted goes with the last
# process.
debian_run() {
    unshare --mount bash -euc '
        root=$1
        [ -z "$3" ] || mount --bind "$3" "$root/target"
        mount -t proc proc "$root/proc"
        mount --bind /dev "$root/dev"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
        mount -t tmpfs tmpfs "$root/dev/shm"
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 bash -euc "$2"
    ' debian_run "$cache/$1" "$2" "${3:+$cache/$3}"
}
