# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A CephFS of one's own, on the loopback and in memory, and nodes that share it.

Needs packages ceph-mon, ceph-osd, ceph-mds, ceph-common and ceph-fuse, and the superuser. Each node has a mount of its
own, in a mount namespace where it stands at the path that all nodes have. What the metadata server counts does not
depend on how busy the machine is; how long it takes does."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import time
import uuid

PATIENCE = 90
IDLE = 4  # seconds: two heartbeats of each daemon
CONFIGURATION = """[global]
fsid = {fsid}
mon host = [v2:{address}:{port}/0]
mon initial members = a
public addr = {address}
cluster addr = {address}
public network = {address}/8
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
what, directory, prefix, first, last = sys.argv[1:]
turns = os.environ.get("TURNS") is not None
for i in range(int(first), int(last)):
    if turns:
        print(i, flush=True)
        if not sys.stdin.readline():
            sys.exit(1)
    path = f"{directory}/{prefix}{i}"
    if what == "unlink":
        os.unlink(path)
    elif what == "rename":
        os.rename(path, path + "-renamed")
    else:
        os.close(os.open(path, os.O_RDONLY if what == "open" else os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
"""
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


class Failed(Exception):
    """The file system, or a node, does not do what it was told to."""


def what_is_missing():
    """Why there can be no CephFS here, or None."""
    if os.geteuid() != 0:
        return "only the superuser can mount a CephFS"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"there is no FUSE here: /dev/fuse: {error.strerror}"
    return None


def wait_until(holds, what):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"waited {PATIENCE} s for {what}")
        time.sleep(0.1)


def free_port():
    """A port below those that the kernel gives out by itself, and hardly one that somebody else is about to take."""
    for port in random.sample(range(13400, 14400), 1000):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise Failed("no port is free")


class CephFS:
    """Servers and one mount for each node; all of it ends with the block. The servers are reached at the address, where `into`,
    which is put before a command, leads to."""

    def __init__(self, top, nodes, address="127.0.0.1", into=()):
        self.top, self.address, self.into_servers = top, address, into
        self.configuration = top / "ceph.conf"
        self.mounts = [top / f"mount{node}" for node in range(nodes)]
        self.port = free_port()
        self.processes = []

    def call(self, *words):
        return subprocess.run([*self.into_servers, *words[:1], "-c", self.configuration, *words[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE, check=False)

    def must(self, *words):
        done = self.call(*words)
        if done.returncode != 0:
            raise Failed(f"status {done.returncode} of {' '.join(map(str, words))}")

    def begin(self, *words):
        self.processes.append(subprocess.Popen([*self.into_servers, *words[:1], "-c", self.configuration, "-f", *words[1:]],
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                               start_new_session=True))  # Ctrl-C is not theirs: they are stopped in order

    def start_servers(self):
        fsid, osd = uuid.uuid4(), uuid.uuid4()
        self.configuration.write_text(CONFIGURATION.format(fsid=fsid, top=self.top, port=self.port,
                                                           address=self.address))
        (self.top / "keyring").touch()
        for name in ("mon", "osd"):
            (self.top / name).mkdir()
        subprocess.run(["monmaptool", "--create", "--fsid", str(fsid), "--addv", "a", f"[v2:{self.address}:{self.port}]",
                        self.top / "monmap"], stdout=subprocess.DEVNULL, check=True)
        self.must("ceph-mon", "--mkfs", "-i", "a", "--monmap", self.top / "monmap")
        self.begin("ceph-mon", "-i", "a", "--public-addr", self.address)
        wait_until(lambda: self.call("ceph", "--connect-timeout", "5", "mon", "stat").returncode == 0, "ceph-mon")
        self.must("ceph", "osd", "new", str(osd))
        self.must("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", str(osd))
        self.begin("ceph-osd", "-i", "0")
        self.begin("ceph-mds", "-i", "m")
        for pool in ("meta", "data"):
            self.must("ceph", "osd", "pool", "create", pool, "8")
        self.must("ceph", "fs", "new", "cfs", "meta", "data")
        wait_until(lambda: "up:active" in self.call("ceph", "mds", "stat").stdout, "ceph-mds")

    def mount(self, node):
        self.begin("ceph-fuse", "--id", f"c{node}", "--client_mountpoint=/", self.mounts[node])
        wait_until(lambda: os.path.ismount(self.mounts[node]), "ceph-fuse")

    def mount_again(self, node):
        """Its client knows nothing then, and holds nothing."""
        client = next(one for one in self.processes if one.args[0] == "ceph-fuse" and one.args[-1] == self.mounts[node])
        subprocess.run(["umount", self.mounts[node]], check=True)
        client.wait(PATIENCE)
        self.processes.remove(client)
        self.mount(node)

    def __enter__(self):
        try:
            self.start_servers()
            for node, mount in enumerate(self.mounts):
                mount.mkdir()
                self.mount(node)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], stderr=subprocess.DEVNULL, check=False)
        for process in reversed(self.processes):  # nothing of it is to be kept, and politeness takes 10 s
            process.kill()
            process.wait()

    def into(self, node, place):
        """What is put before a command that is to run on a node: its mount stands at `place` there."""
        script = f'mount --make-rprivate / && mount --bind "{self.mounts[node]}" "{place}" && exec "$@"'
        return ["unshare", "-m", "sh", "-c", script, "sh"]

    def answers(self):
        """What the clients, ceph-fuse, have answered the kernel: a message for each part of a path, and for each call."""
        clients = [process for process in self.processes if process.args[0] == "ceph-fuse"]
        return sum(int(line.split()[1]) for client in clients
                   for line in pathlib.Path(f"/proc/{client.pid}/io").read_text().splitlines()
                   if line.startswith("syscw:"))

    def requests(self):
        told = json.loads(self.call("ceph", "daemon", self.top / "mds.m.asok", "perf", "dump").stdout)
        return told["mds_server"]["handle_client_request"]


class Nodes:
    """Commands on the nodes: each sees the file system at the same path."""

    def __init__(self, ceph, place, build, run_dir):
        self.ceph, self.place, self.build, self.shunt = ceph, place, build, build / "tools" / "shunt"
        self.root = place / "root"
        self.count = len(ceph.mounts)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SHUNT_") and key != "LD_PRELOAD"}
        self.environment = {**kept, "SHUNT_RUN_DIR": str(run_dir), "SHUNT_FABRIC": "tcp",
                            "SHUNT_CATALOGUE_QUIET": "86400"}  # a daemon does nothing by itself

    def words(self, node, *words):
        """A command, to be run where the node is."""
        return [*self.ceph.into(node, self.place), *map(str, words)]

    def begin(self, node, *words, **options):
        return subprocess.Popen(self.words(node, *words), env=self.environment, **options)

    def run(self, node, *words, **options):
        if self.begin(node, *words, **options).wait(PATIENCE) != 0:
            raise Failed(f"node {node} failed: {' '.join(map(str, words))}")

    def tool(self, node, verb, *words):
        return [self.shunt, verb, "--root", self.root, "--node", f"n{node}", *words]

    def under_shunt(self, node, *words):
        self.run(node, *self.tool(node, "exec", "--", *words))

    @contextlib.contextmanager
    def session(self, placement):
        """A daemon on each node, at a root that is made if it is not there."""
        nodes = range(self.count)
        self.run(0, "mkdir", "-p", self.root)
        try:
            for node in nodes:
                self.run(node, *self.tool(node, "start", "--placement", placement))
            yield
        finally:
            for node in reversed(nodes):
                self.run(node, *self.tool(node, "stop"))

    def shared(self, name):
        """A new directory of the root in which each node has made a file: a node's first one makes its mirror."""
        directory = self.root / name
        self.under_shunt(0, "mkdir", directory)
        for node in range(self.count):
            self.under_shunt(node, "touch", directory / f"first{node}")
        return directory

    def work(self, node, what, directory, last, first=0, maker=None, under_shunt=False, turns=False):
        """Begins to create, open, rename or unlink a node's files by number: those of `maker`, or else its own. With `turns` it
        waits before each for its turn (by_turns)."""
        words = [PYTHON, "-c", WORK, what, directory, f"file{node if maker is None else maker}-", first, last]
        if turns:
            words = ["env", "TURNS=1", *words]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE} if turns else {}
        return self.begin(node, *(self.tool(node, "exec", "--", *words) if under_shunt else words), **pipes)

    def by_turns(self, *workers):
        """Workers that were begun with `turns` make one call each, in their order, until all have ended; each call has ended before
        the next one begins. How often one of them makes several before another makes one depends else on what the machine
        does."""
        workers = [worker for worker in workers if self.is_ready(worker)]
        while workers:
            workers = [worker for worker in workers if self.makes_a_call(worker)]

    @staticmethod
    def is_ready(worker):
        """It waits for its turn, now or soon; else it has ended."""
        return worker.stdout.readline() != b""

    def makes_a_call(self, worker):
        """It makes one; true once it waits for its next turn."""
        worker.stdin.write(b"\n")
        worker.stdin.flush()
        return self.is_ready(worker)

    def together(self, *workers):
        """Waits for what was begun."""
        if any([worker.wait(PATIENCE) for worker in workers]):
            raise Failed("a node failed")

    def counted_while(self, work, counter):
        """What was counted, and how long it took."""
        before, began = counter(self.ceph), time.monotonic()
        work()
        return counter(self.ceph) - before, time.monotonic() - began

    def measure(self, what, directories, count, counter=CephFS.requests, **options):
        """Requests a file, with a directory for each node, which all work at the same time."""
        made = self.counted_but_idle(lambda: self.together(
            *(self.work(node, what, directory, count, **options) for node, directory in enumerate(directories))), counter)
        return made / count / len(directories)

    def measure_by_turns(self, what, directories, count, **options):
        """The same, one call of each node after the other, in turn."""
        def work():
            workers = [self.work(node, what, directory, count, turns=True, **options)
                       for node, directory in enumerate(directories)]
            self.by_turns(*workers)
            self.together(*workers)
        return self.counted_but_idle(work) / count / len(directories)

    def idle_rate(self, counter=CephFS.requests):
        """What is counted in a second without any work: the daemons' heartbeats are for the time that passes, more of it on a busy
        machine."""
        idle, slept = self.counted_while(lambda: time.sleep(IDLE), counter)
        return idle / slept

    def counted_but_idle(self, work, counter=CephFS.requests, idle_rate=None):
        """What is counted while it works, less what the time that it takes costs without it."""
        idle_rate = self.idle_rate(counter) if idle_rate is None else idle_rate
        made, took = self.counted_while(work, counter)
        return made - idle_rate * took

    def measure_listed(self, directory, count, every=20):
        """Requests a file that node 0 makes, while node 1 lists the directory after each `every` of them; those of the listings are
        not counted."""
        requests = 0
        idle_rate = self.idle_rate()
        maker = self.work(0, "create", directory, count, under_shunt=True, turns=True)
        if not self.is_ready(maker):
            raise Failed("a worker ended before its turn")
        for _ in range(0, count, every):
            requests += self.counted_but_idle(lambda: [self.makes_a_call(maker) for _ in range(every)], idle_rate=idle_rate)
            self.under_shunt(1, "ls", directory)
        self.together(maker)
        return requests / count

    def measure_followed(self, directory, count, behind=100, step=50, **options):
        """Requests a file that node 0 makes, each of which node 1 opens once when there are so many more."""
        requests = 0
        idle_rate = self.idle_rate()
        for first in range(0, count, step):
            requests += self.counted_but_idle(lambda first=first: self.together(
                self.work(0, "create", directory, first + step, first=first, **options)), idle_rate=idle_rate)
            seen = first + step - behind
            if seen >= step:
                self.together(self.work(1, "open", directory, seen, first=seen - step, maker=0, **options))
        return requests / count


@contextlib.contextmanager
def some_nodes(top, build, count):
    """Nodes of a CephFS whose files are in a directory that is empty."""
    top = pathlib.Path(top)
    for name in ("ceph", "place", "run"):
        (top / name).mkdir()
    with CephFS(top / "ceph", count) as ceph:
        yield Nodes(ceph, top / "place", build.resolve(), top / "run")


def two_nodes(top, build):
    return some_nodes(top, build, 2)
