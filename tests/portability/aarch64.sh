#!/bin/bash
# aarch64.sh: shunt for aarch64. Makes two Debian 12 in directories (debian.sh says where): aarch64-build has the cross
# compiler and qemu-user; aarch64 is one of that architecture, whose programs the kernel hands to qemu-user. Builds with
# -Werror for the second one (aarch64.ini), and runs the tests of in_there.sh in it. As root, on Debian on x86_64, with
# binfmt_misc in the kernel; installs debootstrap, and takes the package mirror that apt uses. Some ten
# minutes to make them, which a second run does not need; up to an hour for the rest, which is emulated.
#
# What the processor does out of order is not seen: qemu orders memory as the machine beneath it does.
set -eu -o pipefail

. "$(dirname "$(readlink -f "$0")")/debian.sh"

formats=/proc/sys/fs/binfmt_misc
name=shunt-aarch64
# 64 bits, little-endian, a program or a library, aarch64.
magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'

finish() {
    [ ! -e "$formats/$name" ] || echo -1 >"$formats/$name"
}

# qemu-user before 10 says that it does MADV_WIPEONFORK, and does not: then a child of fork goes on with its parent's
# queue pair. So it is Debian's backport, before any other that is registered.
make_build() {
    debian_make aarch64-build bookworm amd64 ca-certificates,gcc-aarch64-linux-gnu,meson,pkg-config
    [ ! -e "$cache/aarch64-build/usr/bin/qemu-aarch64" ] || return 0
    echo "deb $mirror bookworm-backports main" >"$cache/aarch64-build/etc/apt/sources.list.d/backports.list"
    debian_run aarch64-build '
        apt-get -qq update
        apt-get -qq -o APT::Sandbox::User=root download qemu-user/bookworm-backports
        dpkg-deb -x qemu-user_*.deb /tmp/qemu
        mv /tmp/qemu/usr/bin/qemu-aarch64 /usr/bin
        rm -rf qemu-user_*.deb /tmp/qemu
    '
}

make_build
trap finish EXIT
mountpoint -q "$formats" || mount -t binfmt_misc binfmt_misc "$formats"
finish
echo ":$name:M::$magic:$mask:$cache/aarch64-build/usr/bin/qemu-aarch64:OPF" >"$formats/register"

packages=libc6-dev,libxxhash-dev,libunwind-dev,libfabric-dev,libsodium-dev,libcriterion-dev,python3,python3-pytest,meson
packages+=,liblmdb-dev,procps,attr,acl,e2fsprogs,groff-base,binutils
debian_make aarch64 bookworm arm64 "$packages"
# The build directory has one name in both.
mkdir -p "$cache/aarch64-build/target"
ln -sfn . "$cache/aarch64/target"
debian_sources aarch64
debian_run aarch64-build '
    cd /target/src
    meson setup build --cross-file tests/portability/aarch64.ini -Dwerror=true -Dtests=enabled >setup.log || {
        tail -n 5 setup.log
        exit 1
    }
    ninja -j 2 -C build >build.log || { tail -n 30 build.log; exit 1; }
' aarch64

# What qemu-user does otherwise than Linux, and which tests live by it:
excluded=(
    # No robust futexes: a daemon that was killed is not seen to have died.
    channel/what_is_held_when_the_daemon_crashes_is_seen_by_the_next channel/telling_a_killed_daemon
    channel/a_killed_daemon_is_noticed channel/a_daemon_that_crashed_is_started_again_by_who_lives
    names/a_killed_daemon_is_noticed_and_its_successor_found names/a_child_does_not_go_on_with_a_daemon_that_is_gone
    shuntd/after_a_crash_the_next_one_reads_the_disk target/without_its_daemon_a_root_fails_closed target/directories
    # A child that shares its parent's memory (CLONE_VM, vfork) is one of fork.
    names/a_vfork_child_uses_what_its_parent_has
    # statx without stx_mnt_id: where words lead is not remembered.
    target/where_words_lead_is_remembered target/where_words_lead_is_forgotten
    # No seccomp filters.
    api/syncs_nothing api/syncs_a_directory_in_every_branch api/a_sync_that_fails
    # A process's own start time in /proc/self/stat may be a tick off what others see: it is held for another process.
    race/joiners_and_leavers
    # Limits of memory and of descriptors are not those of the program alone.
    scratch/no_memory view/outgrown catalogue/without_addresses_what_was_there_stays
    # Something may be mapped where the heap ends, which does not grow then.
    lasting/up_to_its_end lasting/no_other_memory lasting/nothing_of_a_kind_of_which_a_part_is_taken
    # Too slow for their deadlines.
    view/many_threads fabric/closing_never_waits_for_ever
)
# As vfork is fork, posix_spawn does not hear that its child failed; a path is measured to its end, not to PATH_MAX; and both
# paths of a rename or link are fetched before the kernel is asked about the first one.
unequal='posix_spawnp?(\(addopen\).*)? makes|posix_spawnp? .*below a file|.* without an end|(rename|link)(\([A-Z]+\))? .*/null'
debian_run aarch64 "
    uname -m
    cd /src
    export SHUNT_SAME_EXCEPT='$unequal'
    tests/portability/in_there.sh ${excluded[*]}
"
