#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# prepare.sh DIRECTORY: makes there what the nodes of these tests boot, unless it is there: the kernel (linux), their root file
# system (root.img), a key for ssh, and register_set.so. All is of this Debian's packages; nothing else is installed or changed.
# Needs root, mmdebstrap, mke2fs, a C compiler.
set -eu

here=$(dirname "$(readlink -f "$0")")
mkdir -p "${1:?DIRECTORY}"
to=$(realpath "$1")
exec 9>"$to/lock"
flock 9 # another one may be at it
stamp=$(cat "$0" "$here/register_set.c" | sha256sum)
[ "$(cat "$to/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
rm -f "$to/stamp"
work=$(mktemp -d "$to/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # mmdebstrap is somebody else for a while

packages=(
    busybox-static e2fsprogs iproute2 kmod mount openssh-server  # what boots
    corosync dlm-controld gfs2-utils ocfs2-tools   # GFS2 and OCFS2
    nfs-common nfs-kernel-server                   # NFS; of CephFS the kernel has all that a client needs
    libfabric1 liblmdb0 libsodium23 libunwind8 libxxhash0  # what shunt is linked with
    acl attr git procps python3                    # what the tests run
)

# The kernel: a program, and modules.
(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download user-mode-linux)
dpkg -x "$work"/user-mode-linux_*.deb "$work/kernel"
modules=$(basename "$work"/kernel/usr/lib/uml/modules/*)

. /etc/os-release
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $VERSION_CODENAME" | head -n 1)
mmdebstrap --quiet --variant=essential --include="$(IFS=, && echo "${packages[*]}")" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$VERSION_CODENAME" "$work/root" "$mirror"

root=$work/root
install -d "$root/lib/modules" "$root/run/sshd" "$root/mnt/shared"
install -d -m 700 "$root/root/.ssh"
cp -a "$work/kernel/usr/lib/uml/modules/$modules" "$root/lib/modules/"
chroot "$root" depmod "$modules"
ln -sfn /proc/self/mounts "$root/etc/mtab" # mkfs.ocfs2 looks there
rm -f "$to/key" "$to/key.pub"
ssh-keygen -q -t ed25519 -N '' -f "$to/key"
install -m 600 "$to/key.pub" "$root/root/.ssh/authorized_keys"
[ -f "$root/etc/ssh/ssh_host_ed25519_key" ] || ssh-keygen -q -t ed25519 -N '' -f "$root/etc/ssh/ssh_host_ed25519_key"
cat >"$root/etc/ssh/sshd_config" <<'END'
HostKey /etc/ssh/ssh_host_ed25519_key
MaxSessions 200
MaxStartups 100
UseDNS no
UsePAM no
END
# Once the source is where it is outside, the rest is there.
ln -sfn /bin/busybox "$root/sbin/init"
cat >"$root/etc/inittab" <<'END'
::sysinit:/etc/first
::respawn:/usr/sbin/sshd -D -e
END
cat >"$root/etc/first" <<'END'
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t tmpfs -o mode=755 run /run
for word in $(cat /proc/cmdline); do
    case $word in kernels.*=*) echo "${word#kernels.}" >>/run/node ;; esac
done
. /run/node
for folder in $(echo "$folders" | tr : ' '); do
    mkdir -p "$folder"
    mount -t hostfs none "$folder" -o "ro,$folder"
done
exec /bin/sh "$here/guest/boot.sh"
END
chmod 755 "$root/etc/first"

cp "$work/kernel/usr/bin/linux.uml" "$to/linux"
cc -O2 -Wall -shared -fPIC -o "$to/register_set.so" "$here/register_set.c"
used=$(du -sm "$root" | cut -f 1)
rm -f "$to/root.img"
truncate -s $((used * 5 / 4 + 256))M "$to/root.img"
mke2fs -q -t ext4 -O ^has_journal -E root_owner=0:0 -d "$root" "$to/root.img"
echo "$stamp" >"$to/stamp"
echo "prepare.sh: Linux $modules, root of $used MiB"
