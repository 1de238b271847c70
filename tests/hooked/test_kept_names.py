# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes whose kernels keep names that another node has changed since, as NFS clients do (keeping_file_system.py): what one
kernel does not find is known to that node alone, and all nodes see what there is."""

import pathlib
import subprocess
import sys

import conftest
import pytest

HERE = pathlib.Path(__file__).resolve().parent
NODES = ("a", "b")
CALL = """
import errno, os, sys
try:
    print(eval(sys.argv[1]))
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class Kernels:
    """For each node a mount of its own, in a mount namespace where it stands at the path that all nodes have."""

    is_slow = False

    def __init__(self, area, root):
        self.root = root
        self.mounts = {node: area / f"mount-{node}" for node in NODES}
        for mount in self.mounts.values():
            mount.mkdir()
        self.server = subprocess.Popen([sys.executable, HERE / "keeping_file_system.py", *self.mounts.values()],
                                       stdout=subprocess.PIPE, text=True)
        assert [self.server.stdout.readline() for _ in NODES] == ["serving\n"] * len(NODES)

    def into(self, node):
        script = f'mount --make-rprivate / && mount --bind "{self.mounts[node]}" "{self.root}" && exec "$@"'
        return ["unshare", "-m", "sh", "-c", script, "sh"]

    def settings(self, _node):
        return {"SHUNT_FABRIC": "tcp", "SHUNT_BREAK": "names-kept"}

    def end(self):
        for mount in self.mounts.values():
            subprocess.run(["umount", "-l", mount], check=False)
        self.server.kill()
        self.server.wait()


@pytest.fixture
def nodes(build, tmp_path):
    root, run = tmp_path / "root", tmp_path / "run"
    root.mkdir()
    run.mkdir()
    kernels = Kernels(tmp_path, root)
    session = conftest.several_nodes.Session(conftest.one_node.Shunt(build), root, run, kernels)
    try:
        session.start(*NODES, placement="auto")
        yield session
        for node in NODES:
            session.at("stop", node)
    finally:
        kernels.end()


def does(nodes, node, line):
    return nodes.on(node, "/usr/bin/python3", "-c", CALL, line, cwd="/", ROOT=str(nodes.root)).check().strip()


def everywhere(nodes, line):
    return {does(nodes, node, f"os.chdir({str(nodes.root)!r}) or {line}") for node in NODES}


def on(nodes, node, line):
    return does(nodes, node, f"os.chdir({str(nodes.root)!r}) or {line}")


# First what is looked up, since a listing has the kernel forget names.
LISTED = "[[n for n in ('a/x', 'a/y', 'b/x', 'b/y') if os.path.lexists(n)]] + [sorted(os.listdir(d)) for d in 'ab']"


def test_directories_that_nodes_rename_by_turns(nodes):
    on(nodes, "a", "[os.mkdir('a'), os.mkdir('b')]")
    steps = [("a", "os.mkdir('b/x')", [["b/x"], [], ["x"]]), ("a", "os.rename('b/x', 'a/y')", [["a/y"], ["y"], []]),
             ("b", "os.rename('a/y', 'b/x')", [["b/x"], [], ["x"]]), ("a", "os.rmdir('b/x')", [[], [], []]),
             ("b", "os.mkdir('b/x')", [["b/x"], [], ["x"]]), ("b", "os.rmdir('b/x')", [[], [], []]),
             ("a", "os.mkdir('a/y')", [["a/y"], ["y"], []]), ("b", "os.rmdir('a/y')", [[], [], []])]
    assert everywhere(nodes, LISTED) == {"[[], [], []]"}
    for node, line, seen in steps:
        assert on(nodes, node, line) == "None", line
        assert everywhere(nodes, LISTED) == {str(seen)}, line


def test_what_one_node_missed_is_removed_by_it(nodes):
    on(nodes, "a", "os.mkdir('d')")
    assert everywhere(nodes, "os.path.exists('d/n')") == {"False"}
    assert on(nodes, "a", "open('d/n', 'x').close()") == "None"
    assert on(nodes, "b", "os.unlink('d/n')") == "None"
    assert everywhere(nodes, "os.listdir('d'), os.path.exists('d/n')") == {"([], False)"}
    assert on(nodes, "a", "open('d/n', 'x').close()") == "None"


def test_a_way_that_leads_elsewhere(nodes):
    on(nodes, "a", "[os.makedirs('m/in'), open('m/in/f', 'w').close()]")
    assert everywhere(nodes, "os.path.exists('m/in/f'), os.path.exists('n/in/f')") == {"(True, False)"}
    assert on(nodes, "b", "os.rename('m', 'n')") == "None"
    assert everywhere(nodes, "os.path.exists('m/in/f'), os.path.exists('n/in/f')") == {"(False, True)"}
    assert on(nodes, "a", "[os.unlink('n/in/f'), os.rmdir('n/in'), os.rmdir('n')]") == "[None, None, None]"
    assert everywhere(nodes, "os.path.exists('n/in'), os.listdir()") == {"(False, [])"}
    assert on(nodes, "b", "os.rmdir('n/in')") == "ENOENT"
