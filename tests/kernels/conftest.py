# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes with kernels of their own (kernel_nodes.py), and sessions on them.

SHUNT_TEST_KERNELS names the clusters, as `nfs-2 ceph-3`: a file system and how many nodes; `all` is each file system with 2, 3
and 4. The default, `gfs2-2 nfs-2`, with what is not marked `long`, is for every day. SHUNT_TEST_KERNELS_NEED=required: where there
can be none, the tests fail rather than be skipped."""

import itertools
import json
import os
import pathlib
import shlex
import subprocess
import tempfile

import kernel_nodes
import meeting
import pytest

BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", kernel_nodes.REPOSITORY / "build")).resolve()
HERE = kernel_nodes.HERE
PATIENCE = 300
NUMBER = itertools.count()


def wanted():
    named = os.environ.get("SHUNT_TEST_KERNELS", "gfs2-2 nfs-2")
    if named == "all":
        return [f"{kind}-{count}" for kind in kernel_nodes.KINDS for count in (2, 3, 4)]
    return named.split()


def pytest_configure(config):
    config.addinivalue_line("markers", "long: waits for minutes until a node counts as lost, or makes very many calls")


def skip(reason):
    if os.environ.get("SHUNT_TEST_KERNELS_NEED") == "required":
        pytest.fail(f"SHUNT_TEST_KERNELS_NEED=required, and {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session", params=wanted())
def cluster(request):
    """One at a time."""
    kind, count = request.param.split("-")
    if kernel_nodes.what_is_missing(kind):
        skip(kernel_nodes.what_is_missing(kind))
    try:
        kernel_nodes.prepare()
    except subprocess.CalledProcessError as error:
        skip(f"what such nodes boot cannot be made: {error}")
    place = tempfile.mkdtemp(prefix="shunt-kernels.", dir="/dev/shm")
    nodes = kernel_nodes.Cluster(place, BUILD)
    try:
        nodes.start(kind, int(count))
        yield nodes
    finally:
        nodes.stop()


class Session:
    """A root that the nodes share, and daemons of theirs that serve it."""

    def __init__(self, cluster, name):
        self.cluster, self.nodes, self.shunt = cluster, cluster.nodes, cluster.build / "tools" / "shunt"
        self.native = f"{kernel_nodes.SHARED}/{name}-native"
        self.root = f"{kernel_nodes.SHARED}/{name}"
        self.settings = {"SHUNT_LOG_DIR": "/proc/nowhere", "LC_ALL": "C.UTF-8"}
        cluster.must(1, f"mkdir {self.native} {self.root}")

    def words(self, *words):
        settings = (f"{name}={value}" for name, value in self.settings.items())
        return shlex.join(["env", *settings, *map(str, words)])

    def tool(self, verb, *rest):
        return self.words(self.shunt, verb, "--root", self.root, *rest)

    def start(self, *nodes, placement="branch"):
        for node in nodes or self.nodes:
            self.cluster.must(node, self.tool("start", "--placement", placement))

    def stop(self, *nodes):
        for node in nodes or self.nodes:
            self.cluster.must(node, self.tool("stop"))

    def under(self, *words):
        """A command under shunt, in the root."""
        return f"cd {self.root} && {self.tool('exec', '--', *words)}"

    def sh(self, node, script):
        """What a shell script says, in the root and under shunt."""
        return self.cluster.must(node, self.under("sh", "-ec", script))

    def begin(self, node, script):
        return self.cluster.popen(node, self.under("sh", "-ec", script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def names(self, node, directory="."):
        return sorted(self.sh(node, f"ls -A {directory}").split())

    def status(self, node):
        return json.loads(self.cluster.must(node, self.tool("status", "--json")))[0]

    def members(self, node):
        return sorted(member["node"] for member in self.status(node)["members"])

    def wait_for(self, is_so, what):
        kernel_nodes.wait_until(is_so, what, PATIENCE)

    def at_once(self, line):
        """A command line for each node, by its rank and where all meet, begun at the same time: what they said, and whether
        all is well."""
        with meeting.held(self.cluster.listener(), len(self.nodes)) as (address, port):
            begun = [self.cluster.popen(node, line(rank, f"{len(self.nodes)} {address} {port}"), stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT) for rank, node in enumerate(self.nodes)]
            said = [process.communicate(timeout=PATIENCE)[0] for process in begun]
        return "".join(said), all(process.returncode == 0 for process in begun)

    def met(self, program, where, *more, **settings):
        """A program of these tests on all nodes, under shunt."""
        self.settings.update(settings)
        return self.at_once(lambda rank, place: f"cd {self.root} && " + self.tool(
            "exec", "--", "python3", "-B", HERE / program, f"{self.root}/{where}", rank, *place.split(), *more))

    def end(self):
        """Nothing of it goes on, however it has ended."""
        for node in [node for node in self.nodes if self.cluster.is_on(node)]:
            self.cluster.run(node, "pkill -KILL shuntd; rm -rf /dev/shm/*")


@pytest.fixture
def idle(cluster, request):
    """No daemon serves it yet. Nodes that the test has lost are back after it."""
    session = Session(cluster, f"{request.node.originalname}.{next(NUMBER)}")
    yield session
    if cluster.spoiled or not all(map(cluster.is_on, cluster.nodes)):
        kind, count = cluster.kind, len(cluster.nodes)
        cluster.stop()
        cluster.start(kind, count)
    else:
        session.end()


@pytest.fixture
def session(idle):
    """All nodes serve it."""
    idle.start()
    return idle
