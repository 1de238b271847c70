# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Where workers work: a plain directory, which shows that the oracle itself is right, or a root that daemons serve."""

import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

import cephfs
from oracle import Failed
from sight import read_lines, walk_plain, walk_union

PATIENCE = 60


def environment(**settings):
    """Of all that is started: nothing of shunt's but what is told here."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SHUNT_") and key != "LD_PRELOAD"}
    return {**kept, "LC_ALL": "C.UTF-8", **settings}


def call(words, **settings):
    """Runs a command to its end: (status, standard output, standard error)."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                          env=environment(**settings), check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def must(words, statuses=(0,), **settings):
    status, out, err = call(words, **settings)
    if status not in statuses:
        raise Failed(f"status {status} of {' '.join(map(str, words))}\n{out}{err}")
    return out


class Area:
    """What file system a root is on: that of the area, which all nodes see."""

    limits = ()  # of the file system, as worker.c names them
    pace = 1  # so many times longer than in memory a call takes

    def __init__(self, area, _nodes):
        self.place = area

    def into(self, _number):
        """What is put before a command that is to run on a node."""
        return []

    def finish(self):
        """May be called more than once."""


class OnCephFS(Area):
    """A CephFS of its own. Each node has a mount, which stands where the others have theirs; for this program, the first.

    ceph-fuse knows no flags of renames, and takes a file that is renamed onto for gone (as of 16.2.15): when the rename is
    in the journal of the metadata server, Client::put_request takes all of its names out of the cache, which answers for
    the directory as a whole. Without shunt, on one mount, after

        touch a; ln a b; touch c; mv -T c b; sync .

    a stat of `a` is ENOENT, while a listing has it. No setting of ceph-fuse's for its caches or the kernel's helps."""

    limits = ("noflags", "nolinkedvictims")
    pace = 20

    def __init__(self, area, nodes):
        self.place, servers = area / "ceph", area / "servers"
        for directory in (self.place, servers):
            directory.mkdir()
        self.ceph = cephfs.CephFS(servers, nodes).__enter__()
        subprocess.run(["mount", "--bind", self.ceph.mounts[0], self.place], check=True)

    def into(self, number):
        return self.ceph.into(number, self.place)

    def finish(self):
        subprocess.run(["umount", "-l", self.place], stderr=subprocess.DEVNULL, check=False)
        self.ceph.__exit__()


class Ground:
    """A plain directory."""

    def __init__(self, build, area, base=Area, nodes=("-",)):
        self.build, self.area, self.nodes = build, pathlib.Path(area), tuple(nodes)
        self.worker = build / "tests" / "crash" / "worker"
        self.base = base(self.area, len(self.nodes))
        self.root = self.base.place / "root"
        self.root.mkdir()
        self.begun = []
        self.common = {}  # settings of all nodes

    def into(self, node):
        return self.base.into(self.nodes.index(node))

    def settings(self, _node):
        return {}

    def start(self):
        pass

    def stop(self):
        pass

    def begin(self, node, *words, **options):
        """Starts a command on a node."""
        words = [*self.into(node), *map(str, words)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environment(**self.settings(node), **options))
        self.begun.append(process)
        return process

    def begin_movers(self):
        """Once workers are at work."""

    def end_movers(self):
        """Before it is looked at."""

    def end_all(self):
        """The workers that still run, after a failure."""
        end(*(process for process in self.begun if process.poll() is None))

    def on(self, node, *words):
        return must([*self.into(node), *words], **self.settings(node))

    def look(self, node, top):
        """[(path, Entry)] as a program on a node sees it."""
        return read_lines(self.on(node, self.worker, "look", top))

    def sights(self, top):
        """{whose eyes: [(path, Entry)]} without a session."""
        return {"a plain walk": walk_plain(top)}

    def is_clean(self):
        pass

    def finish(self):
        self.base.finish()
        shutil.rmtree(self.area)


class Served(Ground):
    """A root that a daemon on each node serves. A node is a name, and a run directory of its own."""

    def __init__(self, build, area, nodes, placement="branch", base=Area, **settings):
        super().__init__(build, area, base, nodes)
        self.placement = placement
        self.shunt = build / "tools" / "shunt"
        self.common.update({"SHUNT_FABRIC": "tcp" if len(nodes) > 1 else "none", **settings})
        self.shown = {}  # what `shunt exec` gives a command of a node
        self.stops, self.older = 0, {}  # {path of a catalogue: what it was at first}

    def run_dir(self, node):
        return self.area / "run" / node

    def at(self, node):
        return {**self.common, "SHUNT_RUN_DIR": str(self.run_dir(node)), "SHUNT_NODE": node}

    def settings(self, node):
        if node not in self.shown:
            words = [*self.into(node), self.shunt, "exec", "--root", self.root, "--node", node, "--", "env", "-0"]
            variables = dict(line.split("=", 1) for line in must(words, **self.at(node)).split("\0")[:-1])
            self.shown[node] = {key: value for key, value in variables.items()
                                if key.startswith("SHUNT_") or key == "LD_PRELOAD"}
        return self.shown[node]

    def tool(self, node, verb, *words, **options):
        return must([*self.into(node), self.shunt, verb, *words], **{**self.at(node), **options})

    def begin_start(self, node, **options):
        self.run_dir(node).mkdir(parents=True, exist_ok=True)
        words = [*self.into(node), self.shunt, "start", "--root", self.root, "--node", node, "--placement", self.placement]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environment(**{**self.at(node), **options}))

    def start_node(self, node, **options):
        if self.begin_start(node, **options).wait(PATIENCE) != 0:
            raise Failed(f"start of {node}")

    def start(self, **options):
        """The first one founds the session; the others join it."""
        starting = [self.begin_start(node, **options) for node in self.nodes]
        if any([process.wait(PATIENCE) for process in starting]):
            raise Failed("start")

    def stop(self):
        self.tool(self.nodes[0], "stop", "--all", "--root", self.root)
        self.change_catalogues()

    def change_catalogues(self):
        """Of four sessions two begin with the catalogues of the one before, one with none, and one with older ones."""
        left = {path: path.read_bytes() for path in self.root.glob(".shunt/b/*/catalogue")}
        self.stops += 1
        for path, content in left.items():
            if self.stops % 4 == 1:
                path.unlink()
            if self.stops % 4 == 3:
                path.write_bytes(self.older.get(path, content))
        self.older = {**left, **self.older}

    def end_all(self):
        super().end_all()
        node = self.nodes[0]
        call([*self.into(node), self.shunt, "stop", "--all", "--root", self.root], **self.at(node))

    def daemons(self):
        """{node: the number of its daemon}."""
        status, out, _ = call([*self.into(self.nodes[0]), self.shunt, "status", "--root", self.root, "--json"],
                              **self.at(self.nodes[0]))
        return {member["node"]: member["pid"] for member in json.loads(out)[0].get("members", [])}

    def forget(self, node):
        """The node's index goes, and all else that it keeps for itself."""
        shutil.rmtree(self.run_dir(node), ignore_errors=True)

    def listed_by_tool(self, top):
        """{path: (inode, links, size)} of `shunt ls`, without a daemon."""
        entries = json.loads(self.tool(self.nodes[0], "ls", "-a", "-R", "--json", top))
        listed = [entry for entry in entries if pathlib.Path(entry["path"]).name not in (".", "..")]
        return {os.path.relpath(entry["path"], top): entry["ino"] for entry in listed}

    def sights(self, top):
        walked = walk_union(self.root, top)
        listed = self.listed_by_tool(top)
        if listed != {path: entry.inode for path, entry in walked}:
            different = set(listed.items()) ^ {(path, entry.inode) for path, entry in walked}
            raise Failed(f"`shunt ls` and a plain walk differ: {sorted(different)}")
        return {"a plain walk": walked}

    def fsck(self, *words, statuses=(0,)):
        return self.tool(self.nodes[0], "fsck", *words, self.root, statuses=statuses)

    def is_clean(self):
        self.fsck()


class Emptied(Served):
    """On each node a process moves whatever is in a branch to the trunk, as files leave while a session runs, but also those
    that are in use. It is killed when the work is over."""

    movers = ()

    def moved(self):
        """A file with a byte for each file that was moved."""
        return self.area / "moved"

    def begin_movers(self):
        mover = self.build / "tests" / "cluster" / "mover"
        with self.moved().open("ab") as to:
            self.movers = [subprocess.Popen([*self.into(node), mover, self.root], stdin=subprocess.PIPE, stdout=to,
                                            stderr=subprocess.DEVNULL, env=environment(**self.at(node))) for node in self.nodes]

    def end_movers(self):
        end(*self.movers)
        for mover in self.movers:
            mover.communicate()
        self.movers = ()

    def end_all(self):
        self.end_movers()
        super().end_all()


def end(*processes):
    """Those that this program started, or their daemons: at once."""
    for process in processes:
        try:
            os.kill(getattr(process, "pid", process), signal.SIGKILL)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
