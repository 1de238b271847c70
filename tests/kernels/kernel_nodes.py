#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes with a Linux kernel of their own, on this machine, which share a file system through that kernel's client.

    kernel_nodes.py start FS COUNT [MS]   ocfs2, gfs2, nfs or ceph, at /mnt/shared of the nodes 1 to COUNT; each request to the
                                          disk of ocfs2, gfs2 or the NFS server takes so many milliseconds longer (slow_disk.c)
    kernel_nodes.py run NODE COMMAND...   by the node's shell
    kernel_nodes.py off NODE              its power is off: nothing is told, nothing is synced
    kernel_nodes.py boot NODE             it boots, and mounts
    kernel_nodes.py freeze NODE, thaw NODE
    kernel_nodes.py cut NODE, mend NODE   its network
    kernel_nodes.py stop                  all of it is gone

A node is User Mode Linux: a kernel that is a program, with caches, a cluster stack and TCP of its own, which needs no /dev/kvm.
Their network is a namespace with a bridge, which leads nowhere. OCFS2 and GFS2 are on a disk that all nodes have, a file in
memory; NFS is served by one more such kernel; the servers of CephFS are this machine's. A node sees the project and the build
where they are here, read-only. A system call costs some 20 us more than elsewhere, and each node has one processor.

What they boot is in $SHUNT_KERNELS (default: ~/.cache/shunt-kernels), where prepare.sh makes it; what runs is in
$SHUNT_KERNELS_RUN (default: /dev/shm/shunt-kernels). $SHUNT_TEST_NFS_OPTIONS: of mount (default: vers=4.2). Needs root; ip, ssh, and
for CephFS its servers."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent / "cluster"))  # before python3-cephfs

import cephfs  # noqa: E402
import wire  # noqa: E402

REPOSITORY = HERE.parents[1]
NEEDED = ("ip", "ssh", "nsenter")
TO_PREPARE = ("apt-get", "mmdebstrap", "mke2fs", "cc", "ssh-keygen")
CEPH_SERVERS = ("ceph-mon", "ceph-osd", "ceph-mds", "ceph", "monmaptool")
KINDS = ("nfs", "gfs2", "ocfs2", "ceph")
SHARED = "/mnt/shared"
NETWORK = "10.77.0"
OUTSIDE = f"{NETWORK}.254"  # this machine
SERVER = 9  # the node that serves NFS
MEMORY = {True: "1024M", False: "512M"}  # of a server, of others
DISK = 4 << 30  # bytes, as far as they are written
PATIENCE = 120


def prepared():
    return pathlib.Path(os.environ.get("SHUNT_KERNELS", pathlib.Path.home() / ".cache" / "shunt-kernels"))


def what_is_missing(kind=None):
    """Why there can be no such nodes here, or None."""
    if os.geteuid() != 0:
        return "nodes with kernels of their own take root"
    if os.uname().machine != "x86_64":
        return "User Mode Linux is for x86_64"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"nodes with kernels of their own take /dev/net/tun: {error.strerror}"
    needed = [*NEEDED, *([] if (prepared() / "stamp").exists() else TO_PREPARE), *(CEPH_SERVERS if kind == "ceph" else [])]
    absent = [name for name in needed if shutil.which(name) is None]
    return f"nodes with kernels of their own take {', '.join(absent)}" if absent else None


def prepare():
    subprocess.run([HERE / "prepare.sh", prepared()], check=True)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(holds, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


class Cluster:
    """What is of it stands in a file, so that another process may go on with it."""

    def __init__(self, run, build=None):
        self.run_dir = pathlib.Path(run)
        self.build = pathlib.Path(build or os.environ.get("SHUNT_BUILD", REPOSITORY / "build")).resolve()
        self.state = {"pids": {}}
        self.spoiled = False  # what the tests did to it cannot be mended
        if self.state_file.exists():
            self.state = json.loads(self.state_file.read_text())

    @property
    def state_file(self):
        return self.run_dir / "state"

    @property
    def kind(self):
        return self.state["kind"]

    @property
    def nodes(self):
        return list(range(1, self.state["count"] + 1))

    def kept(self, name, pid):
        self.state["pids"][str(name)] = pid
        self.state_file.write_text(json.dumps(self.state))

    def pid(self, name):
        return self.state["pids"][str(name)]

    def inside(self):
        """What is put before a command that is to be in their network."""
        return ["nsenter", f"--net=/proc/{self.pid('network')}/ns/net", "--"]

    def ip(self, *words):
        subprocess.run([*self.inside(), "ip", *map(str, words)], check=True)

    def listener(self):
        """A socket of this process that all nodes reach."""
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self.pid('network')}/ns/net", os.O_RDONLY)
        try:
            wire.setns(there)
            return socket.create_server((OUTSIDE, 0))
        finally:
            wire.setns(own)
            os.close(own)
            os.close(there)

    @staticmethod
    def begin(words, out=subprocess.DEVNULL):
        return subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True).pid

    # What begins

    def start(self, kind, count, disk_ms=0):
        assert not self.state["pids"], f"{self.run_dir}: nodes run already: kernel_nodes.py stop"
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.state.update(kind=kind, count=count, disk_ms=disk_ms, server_address="")
        members = [*([SERVER] if kind == "nfs" else []), *self.nodes]
        self.start_network(members)
        with open(self.disk(), "wb") as disk:
            disk.truncate(DISK)
        if disk_ms != 0:
            self.compile_slow_disk()
        for node in members:
            self.launch(node)
        if kind == "ceph":
            self.start_ceph()
        for node in members:
            self.await_node(node)
        if kind == "nfs":
            self.must(SERVER, self.share("serve"))
        elif kind != "ceph":
            self.must(1, self.share("format"))
        self.mount(*self.nodes)

    def start_network(self, members):
        holder = self.begin(["unshare", "--net", "sleep", "infinity"])
        self.kept("network", holder)
        own = os.stat("/proc/self/ns/net").st_ino
        wait_until(lambda: os.stat(f"/proc/{holder}/ns/net").st_ino != own, "a network namespace")
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "bridge", "type", "bridge", "stp_state", 0, "forward_delay", 0)
        self.ip("address", "add", f"{OUTSIDE}/24", "dev", "bridge")
        self.ip("link", "set", "bridge", "up")
        for node in members:
            self.ip("tuntap", "add", "dev", f"tap{node}", "mode", "tap")
            self.ip("link", "set", f"tap{node}", "master", "bridge", "up")

    def start_ceph(self):
        (self.run_dir / "ceph").mkdir()
        ceph = cephfs.CephFS(self.run_dir / "ceph", 0, OUTSIDE, self.inside())
        try:
            ceph.start_servers()
            ceph.must("ceph", "fs", "set", "cfs", "session_timeout", "30")  # what a lost client holds is free after that, not 60 s
        finally:
            for number, process in enumerate(ceph.processes):
                self.kept(f"ceph{number}", process.pid)
        self.state["server_address"] = f"{OUTSIDE}:{ceph.port}"
        self.kept("network", self.pid("network"))

    def disk(self):
        return self.run_dir / "disk"

    def compile_slow_disk(self):
        subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", self.run_dir / "slow_disk.so", HERE / "slow_disk.c"], check=True)

    def preloaded(self):
        """What is to be in a node's kernel beside itself."""
        libraries = f"LD_PRELOAD={prepared()}/register_set.so"
        if self.state["disk_ms"] == 0:
            return ["env", libraries]
        return ["env", f"{libraries}:{self.run_dir}/slow_disk.so", f"SLOW_DISK={self.disk()}",
                f"SLOW_DISK_US={round(self.state['disk_ms'] * 1000)}"]

    def launch(self, node):
        """Its kernel; what it writes to its own disk is gone with it."""
        has_disk = self.kind in ("ocfs2", "gfs2") or node == SERVER
        overlay, own = self.run_dir / f"root{node}", self.run_dir / f"uml{node}"
        overlay.unlink(missing_ok=True)
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        folders = REPOSITORY if REPOSITORY in self.build.parents else f"{REPOSITORY}:{self.build}"
        options = os.environ.get("SHUNT_TEST_NFS_OPTIONS", "vers=4.2")
        told = {"node": node, "nfs_options": options, "count": len(self.nodes), "fs": self.kind, "network": NETWORK, "server": SERVER,
                "here": HERE, "folders": folders}
        words = [prepared() / "linux", f"mem={MEMORY[node == SERVER]}", f"uml_dir={own}/", "umid=node",
                 f"ubd0={overlay},{prepared()}/root.img", *([f"ubd1{'' if node == SERVER else 'c'}={self.disk()}"] if has_disk else []),
                 "root=/dev/ubda", "rw", "init=/sbin/init", "con=null", "con0=null,fd:1", "panic=-1",
                 f"eth0=tuntap,tap{node},52:54:00:77:00:{node:02x}", *(f"kernels.{name}={value}" for name, value in told.items())]
        with open(self.console(node), "wb") as console:
            self.kept(node, self.begin([*self.inside(), *self.preloaded(), *words], console))

    def console(self, node):
        return self.run_dir / f"console{node}"

    def await_node(self, node):
        def answers():
            assert is_alive(self.pid(node)), f"node {node} is gone: {self.console(node).read_text(errors='replace')[-3000:]}"
            return self.run(node, "true").returncode == 0
        wait_until(answers, f"the start of node {node}")

    def share(self, what):
        return f"server_address={self.state['server_address']} bash {HERE}/guest/share.sh {what}"

    def mount(self, *nodes):
        """At the same time, as cluster stacks will have it."""
        begun = [(node, self.popen(node, self.share("mount"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)) for node in nodes]
        for node, process in begun:
            said = process.communicate(timeout=PATIENCE)[0]
            assert process.returncode == 0, f"node {node} does not mount: {said}"

    def mount_again(self, more_options=""):
        """NFS, on all nodes: with other options it is another mount."""
        for node in self.nodes:
            self.must(node, f"umount {SHARED} && more_options={more_options} {self.share('mount')}")

    # What runs on them

    def ssh(self, node, *options):
        """One connection for each node stays open."""
        settings = {"StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null", "BatchMode": "yes", "LogLevel": "ERROR",
                    "ConnectTimeout": 5, "ControlMaster": "auto", "ControlPath": self.control(node), "ControlPersist": "yes"}
        return [*self.inside(), "ssh", "-F", "/dev/null", "-i", str(prepared() / "key"),
                *(f"-o{name}={value}" for name, value in settings.items()), *options, f"root@{NETWORK}.{node}"]

    def control(self, node):
        return self.run_dir / f"ssh{node}"

    def popen(self, node, command, **options):
        return subprocess.Popen([*self.ssh(node), command], **{"stdin": subprocess.DEVNULL, "text": True, **options})

    def run(self, node, command, timeout=PATIENCE):
        return subprocess.run([*self.ssh(node), command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                              check=False)

    def must(self, node, command):
        done = self.run(node, command)
        assert done.returncode == 0, f"status {done.returncode} on node {node} of {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    # What becomes of them

    def off(self, node):
        pid = self.state["pids"].pop(str(node))
        self.kept("network", self.pid("network"))
        self.end(pid)
        if self.control(node).exists():  # a process that waits for it ends
            subprocess.run([*self.ssh(node, "-O", "exit")], stderr=subprocess.DEVNULL, check=False)
            self.control(node).unlink(missing_ok=True)

    @staticmethod
    def end(pid):
        """A leader of a group, and the group: each process of a guest is one here, too."""
        if not is_alive(pid):
            return
        os.killpg(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), f"the end of process {pid}")

    def boot(self, node):
        self.launch(node)
        self.await_node(node)
        self.mount(node)

    def freeze(self, node):
        """Its kernel: what it runs goes on until it needs that."""
        os.kill(self.pid(node), signal.SIGSTOP)

    def thaw(self, node):
        os.kill(self.pid(node), signal.SIGCONT)

    def cut(self, node):
        self.ip("link", "set", f"tap{node}", "nomaster")

    def mend(self, node):
        self.ip("link", "set", f"tap{node}", "master", "bridge")

    def is_on(self, node):
        return str(node) in self.state["pids"] and is_alive(self.pid(node))

    def stop(self):
        for node in range(1, SERVER + 1):
            if str(node) in self.state["pids"]:
                self.off(node)
        for name in sorted(self.state["pids"], key="network".__eq__):
            self.end(self.pid(name))
        shutil.rmtree(self.run_dir, ignore_errors=True)
        self.state, self.spoiled = {"pids": {}}, False


def main(words):
    cluster = Cluster(os.environ.get("SHUNT_KERNELS_RUN", "/dev/shm/shunt-kernels"))
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "start" and len(rest) in (2, 3) and rest[0] in KINDS and all(map(str.isdigit, rest[1:])) and 0 < int(rest[1]) < SERVER:
        if what_is_missing(rest[0]):
            sys.exit(f"kernel_nodes.py: {what_is_missing(rest[0])}")
        prepare()
        cluster.start(rest[0], *map(int, rest[1:]))
    elif verb == "run" and len(rest) > 1:
        sys.exit(subprocess.run([*cluster.ssh(int(rest[0])), " ".join(rest[1:])], check=False).returncode)
    elif verb in ("off", "boot", "freeze", "thaw", "cut", "mend") and len(rest) == 1:
        getattr(cluster, verb)(int(rest[0]))
    elif verb == "stop" and not rest:
        cluster.stop()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
