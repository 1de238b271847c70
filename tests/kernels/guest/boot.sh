#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
# What a node does when it boots: the kernel's own file systems, a name, an address. /run/node says who it is.
. /run/node
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
modprobe configfs
mount -t configfs configfs /sys/kernel/config
mkdir -p /run/sshd /run/lock /run/rpc_pipefs
hostname "node$node"
{
    echo 127.0.0.1 localhost
    for number in $(seq 9); do echo "$network.$number node$number"; done
} >/etc/hosts
ip link set lo up
ip link set eth0 up
ip address add "$network.$node/24" dev eth0
