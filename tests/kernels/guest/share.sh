#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# share.sh format | serve | mount: what a node does for the file system that all share at /mnt/shared, by its kind: one formats
# the disk that all have (ocfs2, gfs2), or one that is no node of the tests serves its own (nfs); then all mount, NFS with
# more_options, too.
set -eu
. /run/node
at=/mnt/shared disk=/dev/ubdb

until_it_does() { # COMMAND...: it takes a while to begin
    for _ in $(seq 200); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    "$@"
}

# Heartbeats on the disk each 2 s; a node is lost after (threshold - 1) * 2 s: 12 rather than the 60 of the default.
ocfs2_cluster() {
    modprobe -a ocfs2_dlmfs ocfs2_stack_o2cb ocfs2
    [ ! -d /sys/kernel/config/cluster/shunt ] || return 0
    mkdir -p /etc/ocfs2
    {
        printf 'cluster:\n\tnode_count = %d\n\tname = shunt\n\n' "$count"
        for number in $(seq "$count"); do
            printf 'node:\n\tip_port = 7777\n\tip_address = %s.%d\n\tnumber = %d\n\tname = node%d\n\tcluster = shunt\n\n' \
                "$network" "$number" "$number" "$number"
        done
    } >/etc/ocfs2/cluster.conf
    echo o2cb >/sys/fs/ocfs2/cluster_stack
    o2cb register-cluster shunt
    echo 7 >/sys/kernel/config/cluster/shunt/heartbeat/dead_threshold
}

gfs2_cluster() {
    modprobe -a dlm gfs2
    mkdir -p /etc/corosync /etc/dlm /var/lib/corosync /var/log/cluster /dev/misc
    {
        printf 'totem {\n version: 2\n cluster_name: shunt\n transport: udpu\n crypto_cipher: none\n crypto_hash: none\n token: 5000\n}\n'
        printf 'logging {\n to_logfile: yes\n logfile: /var/log/corosync.log\n to_syslog: no\n}\n'
        printf 'quorum {\n provider: corosync_votequorum\n wait_for_all: 0\n'
        [ "$count" -ne 2 ] || printf ' two_node: 1\n'
        printf '}\nnodelist {\n'
        for number in $(seq "$count"); do
            printf ' node {\n  ring0_addr: %s.%d\n  nodeid: %d\n  name: node%d\n }\n' "$network" "$number" "$number" "$number"
        done
        printf '}\n'
    } >/etc/corosync/corosync.conf
    # A lost node has no power, or is cut off by the tests: none is to be fenced.
    printf 'enable_fencing=0\nenable_startup_fencing=0\n' >/etc/dlm/dlm.conf
    for device in control monitor plock; do ln -sfn "../dlm-$device" "/dev/misc/dlm-$device"; done
    ln -sfn ../dlm_plock /dev/misc/dlm_plock
    pgrep -x corosync >/dev/null || corosync
    until_it_does corosync-quorumtool -s
    pgrep -x dlm_controld >/dev/null || dlm_controld
    until_it_does grep -q 1 "/sys/kernel/config/dlm/cluster/comms/$node/local"
}

# In memory. A server that begins gives its clients of before 90 s to say so, and there are none.
nfs_serve() {
    modprobe -a nfsd ext4
    mke2fs -q -t ext4 "$disk"
    mkdir -p /srv/shared /var/lib/nfs/v4recovery
    mount "$disk" /srv/shared
    chmod 1777 /srv/shared
    mount -t nfsd nfsd /proc/fs/nfsd
    echo "/srv/shared $network.0/24(rw,sync,no_root_squash,no_subtree_check,fsid=0,insecure)" >/etc/exports
    touch /var/lib/nfs/etab /var/lib/nfs/rmtab
    echo 10 >/proc/fs/nfsd/nfsv4leasetime
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    rpc.mountd -N 2 -N 3
    exportfs -ra
    rpc.nfsd -N 3 8
}

case $1:$fs in
format:ocfs2)
    ocfs2_cluster
    mkfs.ocfs2 -q -x -F -N "$count" -b 4K -C 4K -J size=32M -L shunt --cluster-stack=o2cb --cluster-name=shunt "$disk" ;;
format:gfs2)
    modprobe gfs2
    mkfs.gfs2 -q -O -p lock_dlm -t shunt:shared -j "$count" -J 32 "$disk" ;;
serve:nfs) nfs_serve ;;
mount:ocfs2)
    ocfs2_cluster
    mount -t ocfs2 "$disk" "$at" ;;
mount:gfs2)
    gfs2_cluster
    mount -t gfs2 -o noatime "$disk" "$at" ;;
mount:nfs) mount -t nfs4 -o "$nfs_options,proto=tcp${more_options:+,$more_options}" "$network.$server:/" "$at" ;;
mount:ceph)
    modprobe ceph
    busybox mount -t ceph -o name=admin,ms_mode=prefer-crc,noatime "$server_address:/" "$at" ;;
*)
    echo "share.sh: there is no $1 for $fs" >&2
    exit 2 ;;
esac
[ "$1" != mount ] || chmod 1777 "$at"
