# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Sessions of several daemons on one machine: each goes by a node's name of its own."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

import network
import pytest

# What a test of one node has; not as `conftest`, which is this file.
SPEC = importlib.util.spec_from_file_location("one_node", pathlib.Path(__file__).resolve().parents[1] / "node" / "conftest.py")
one_node = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(one_node)


class Session:
    """The daemons that serve one root."""

    def __init__(self, shunt, root, run_dir, net=None):
        self.shunt = shunt
        self.root = root
        self.net = net or network.OneHost()
        self.settings = {"SHUNT_RUN_DIR": str(run_dir), "SHUNT_DEADLINE": "20", "SHUNT_FABRIC": "tcp"}

    def tool(self, *words, **options):
        return self.shunt(*words, **{**self.settings, **options})

    def environment(self):
        """Of a program that a test starts by itself."""
        return one_node.environment(**self.settings)

    def words(self, verb, node, *rest):
        """A command of the tool's, to be run where the node is."""
        return [*self.net.into(node), self.shunt.path, verb, "--root", self.root, "--node", node, *rest]

    def at(self, verb, node, *rest, **options):
        words = self.words(verb, node, *rest)
        return one_node.run(words, **{**self.settings, **self.net.settings(node), **options})

    def begin(self, verb, node, *rest, **options):
        """The same, not waited for; its process leads a group of its own."""
        words = self.words(verb, node, *rest)
        environment = one_node.environment(**{**self.settings, **self.net.settings(node)})
        return subprocess.Popen(words, cwd=self.root, env=environment, start_new_session=True, **options)

    def start(self, *nodes, placement="branch", **options):
        for node in nodes:
            self.at("start", node, "--placement", placement, **options).check()

    def start_at_once(self, *nodes, placement="branch"):
        """One founds the session, the others join it, in any order."""
        started = [self.begin("start", node, "--placement", placement) for node in nodes]
        assert [process.wait(120) for process in started] == [0] * len(nodes)

    def stop(self, *nodes):
        for node in nodes:
            self.at("stop", node).check()

    def on(self, node, *command, **options):
        """Runs a command on a node: how it ended."""
        return self.at("exec", node, "--", *command, **options)

    def sh(self, node, script, status=0):
        """Runs a shell script on a node, in the root: what it printed."""
        return self.on(node, "sh", "-c", script, cwd=self.root).check(status)

    def status(self, *words):
        return json.loads(self.tool("status", "--root", self.root, "--json", *words).check())[0]

    def members(self):
        """In the order in which they joined; some may be dead. None where there is no session."""
        return json.loads(self.tool("status", "--root", self.root, "--json").out)[0].get("members", [])

    def member(self, node):
        """None: there is no such one, or no more."""
        return next((member for member in self.members() if member["node"] == node), None)

    def stopped(self, node):
        """Its daemon is there, but does nothing."""
        return one_node.standing_still(self.member(node)["pid"])

    @staticmethod
    def kill(pid):
        """A daemon, as if its node had died with it."""
        one_node.kill_daemon(pid)

    def vanish(self, node):
        """Its daemon, the supervisor that would start another one, and what it knew."""
        gone = self.member(node)
        self.kill(gone["pid"])
        shutil.rmtree(gone["run_dir"])

    @staticmethod
    def is_running(pid):
        return one_node.is_running(pid)

    @staticmethod
    def wait_for(is_so):
        one_node.wait_until(is_so, 60)

    def is_settled(self):
        """Are all of its members homes?"""
        return all(member["home"] == "yes" for member in self.members())

    def homes(self):
        """The nodes that are homes of names, once all are and no change of them is under way."""
        self.wait_for(self.is_settled)
        return sorted(member["node"] for member in self.members())

    def names(self, node, directory="."):
        return self.sh(node, f"ls -A {directory}").split()

    def trunk_has_its_times(self, directory="out"):
        """Gives a condition: a daemon has given the trunk directory the time of the last change in its leaves, which it does
        once those are quiet. It does not where both were changed in one tick of the clock."""
        trunk = self.root / directory
        changed = max(leaf.stat().st_mtime_ns for leaf in self.root.glob(f".shunt/b/*/{trunk.name}-*/*"))
        return lambda: trunk.stat().st_ctime_ns > changed

    def branch_of(self, file):
        """The node in whose branch a file is; None: in the trunk."""
        place = self.tool("where", self.root / file).check().strip()
        return place.split("/.shunt/b/")[1].split("/")[0].rsplit(".", 1)[0] if "/.shunt/b/" in place else None


def pytest_configure(config):
    config.addinivalue_line("markers", "xdist_group(name): share something that is made once")


@pytest.fixture(scope="session")
def build():
    return pathlib.Path(os.environ.get("SHUNT_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()


@pytest.fixture(params=network.NETWORKS)
def net(request):
    """Each test of a session is run with daemons of one host, with nodes that have a wire between them, and with a slow
    one; a test that is about something else says which one it wants."""
    if request.param != "host" and network.what_is_missing():
        pytest.skip(network.what_is_missing())
    net = {**network.NETWORKS, **network.SEVERAL_NETWORKS}[request.param]()
    yield net
    net.end()


@pytest.fixture
def session(build, tmp_path, net):
    """A root that nobody serves yet; the daemons that a test has started are stopped after it."""
    root = tmp_path / "root"
    root.mkdir()
    session = Session(one_node.Shunt(build), root, tmp_path / "run", net)
    (tmp_path / "run").mkdir()
    yield session
    session.tool("stop", "--root", root)
    for log in sorted((tmp_path / "run").glob("*/*/log")):  # of daemons that ended badly; shown if the test failed
        if log.is_file():
            print(f"{log}:\n{log.read_text()}")


@pytest.fixture
def pair(session):
    """Both use `out`, so that it is wholly at home with neither."""
    session.start("a", "b")
    session.sh("a", "mkdir out; ls out")
    session.sh("b", "ls out")
    return session
