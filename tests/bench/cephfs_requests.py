#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""cephfs_requests.py [--build DIR] [--files N]: how many requests a CephFS metadata server handles for a call.

Starts a CephFS of its own on the loopback, in memory (packages ceph-mon ceph-osd ceph-mds ceph-common ceph-fuse; as
root), with two mounts. Each is a node: a mount namespace in which the mount stands where the other node has it, too.
Both nodes make and remove files at the same time, natively in one directory each, natively in one shared directory, and
in a shared directory under shunt (placement branch, a daemon on each node). Counted is what the server counted: that
does not depend on how busy the machine is."""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid

PORT = 13401
PATIENCE = 90
CONFIGURATION = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{port}/0]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
public network = 127.0.0.0/8
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon warn on pool no redundancy = false
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
run dir = {top}
admin socket = {top}/$name.asok
pid file = {top}/$name.pid
log file = {top}/$name.log
keyring = {top}/keyring
mon data = {top}/mon
osd data = {top}/osd
mon data avail warn = 1
mon data avail crit = 1
"""
WORK = """
import os, sys
what, directory, prefix, count = sys.argv[1:]
for i in range(int(count)):
    path = f"{directory}/{prefix}{i}"
    os.unlink(path) if what == "unlink" else os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
"""
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def wait_until(holds, what):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"cephfs_requests.py: gave up on {what}")
        time.sleep(0.2)


class CephFS:
    """Servers and one mount for each node; all of it ends with the block."""

    def __init__(self, top, nodes):
        self.top = top
        self.configuration = top / "ceph.conf"
        self.mounts = [top / f"mount{node}" for node in range(nodes)]
        self.processes = []

    def call(self, *words):
        return subprocess.run([*words[:1], "-c", self.configuration, *words[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE, check=False)

    def must(self, *words):
        done = self.call(*words)
        if done.returncode != 0:
            sys.exit(f"cephfs_requests.py: status {done.returncode} of {' '.join(map(str, words))}")

    def begin(self, *words):
        self.processes.append(subprocess.Popen([*words[:1], "-c", self.configuration, "-f", *words[1:]],
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def __enter__(self):
        fsid, osd = uuid.uuid4(), uuid.uuid4()
        self.configuration.write_text(CONFIGURATION.format(fsid=fsid, top=self.top, port=PORT))
        (self.top / "keyring").touch()
        for name in ("mon", "osd"):
            (self.top / name).mkdir()
        subprocess.run(["monmaptool", "--create", "--fsid", str(fsid), "--addv", "a", f"[v2:127.0.0.1:{PORT}]",
                        self.top / "monmap"], stdout=subprocess.DEVNULL, check=True)
        self.must("ceph-mon", "--mkfs", "-i", "a", "--monmap", self.top / "monmap")
        self.begin("ceph-mon", "-i", "a", "--public-addr", "127.0.0.1")
        wait_until(lambda: self.call("ceph", "--connect-timeout", "5", "mon", "stat").returncode == 0, "ceph-mon")
        self.must("ceph", "osd", "new", str(osd))
        self.must("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", str(osd))
        self.begin("ceph-osd", "-i", "0")
        self.begin("ceph-mds", "-i", "m")
        for pool in ("meta", "data"):
            self.must("ceph", "osd", "pool", "create", pool, "8")
        self.must("ceph", "fs", "new", "cfs", "meta", "data")
        wait_until(lambda: "up:active" in self.call("ceph", "mds", "stat").stdout, "ceph-mds")
        for node, mount in enumerate(self.mounts):
            mount.mkdir()
            self.begin("ceph-fuse", "--id", f"c{node}", "--client_mountpoint=/", mount)
            wait_until(lambda mount=mount: os.path.ismount(mount), "ceph-fuse")
        return self

    def __exit__(self, *_):
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], stderr=subprocess.DEVNULL, check=False)
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()

    def requests(self):
        told = json.loads(self.call("ceph", "daemon", self.top / "mds.m.asok", "perf", "dump").stdout)
        return told["mds_server"]["handle_client_request"]


class Nodes:
    """Commands on the nodes: each sees the file system at the same path."""

    def __init__(self, ceph, place, build, run_dir):
        self.ceph, self.place, self.shunt = ceph, place, build / "tools" / "shunt"
        self.root = place / "root"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SHUNT_") and key != "LD_PRELOAD"}
        self.environment = {**kept, "SHUNT_RUN_DIR": str(run_dir), "SHUNT_FABRIC": "tcp"}

    def begin(self, node, *words):
        script = f'mount --make-rprivate / && mount --bind "{self.ceph.mounts[node]}" "{self.place}" && exec "$@"'
        return subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh", *map(str, words)], env=self.environment)

    def run(self, node, *words):
        if self.begin(node, *words).wait() != 0:
            sys.exit(f"cephfs_requests.py: node {node} failed: {' '.join(map(str, words))}")

    def tool(self, node, verb, *words):
        return [self.shunt, verb, "--root", self.root, "--node", f"n{node}", *words]

    def work(self, node, what, directory, count, prefix="file", under_shunt=False):
        words = [PYTHON, "-c", WORK, what, directory, f"{prefix}{node}-", count]
        return self.begin(node, *(self.tool(node, "exec", "--", *words) if under_shunt else words))

    def measure(self, what, directories, count, **options):
        before = self.ceph.requests()
        workers = [self.work(node, what, directory, count, **options) for node, directory in enumerate(directories)]
        if any([worker.wait() for worker in workers]):
            sys.exit("cephfs_requests.py: a node failed")
        return (self.ceph.requests() - before) / count / len(directories)


def show(name, nodes, directories, count, **options):
    made, removed = (nodes.measure(what, directories, count, **options) for what in ("create", "unlink"))
    print(f"{name:44} {made:10.2f} {removed:10.2f}", flush=True)


def measure_all(nodes, count):
    print(f"{'requests a call, two nodes at once':44} {'create':>10} {'unlink':>10}")
    for node, directory in ((0, "own0"), (1, "own1"), (0, "shared"), (0, "root")):
        nodes.run(node, "mkdir", nodes.place / directory)
    show("natively, a directory each", nodes, [nodes.place / "own0", nodes.place / "own1"], count)
    show("natively, one directory", nodes, [nodes.place / "shared"] * 2, count)
    for node in (0, 1):
        nodes.run(node, *nodes.tool(node, "start", "--placement", "branch"))
    nodes.run(0, *nodes.tool(0, "exec", "--", "mkdir", nodes.root / "out"))
    for node in (0, 1):  # a node's first file makes its mirror
        if nodes.work(node, "create", nodes.root / "out", 5, prefix="first", under_shunt=True).wait() != 0:
            sys.exit("cephfs_requests.py: a node failed")
    show("under shunt, one directory", nodes, [nodes.root / "out"] * 2, count, under_shunt=True)
    for node in (1, 0):
        nodes.run(node, *nodes.tool(node, "stop"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).resolve().parents[2] / "build"
    parser.add_argument("--build", type=pathlib.Path, default=default, help="the build directory")
    parser.add_argument("--files", type=int, default=500, help="files of each node")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shunt-cephfs.", ignore_cleanup_errors=True) as top:
        top = pathlib.Path(top)
        for name in ("ceph", "place", "run"):
            (top / name).mkdir()
        with CephFS(top / "ceph", 2) as ceph:
            measure_all(Nodes(ceph, top / "place", options.build.resolve(), top / "run"), options.files)


main()
