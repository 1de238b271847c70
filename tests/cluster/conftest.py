# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Sessions of several daemons on one machine: each goes by a node's name of its own."""

import importlib.util
import os
import pathlib

import pytest

# What a test of one node has; not as `conftest`, which is this file.
SPEC = importlib.util.spec_from_file_location("one_node", pathlib.Path(__file__).resolve().parents[1] / "node" / "conftest.py")
one_node = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(one_node)


class Session:
    """The daemons that serve one root."""

    def __init__(self, shunt, root, run_dir):
        self.shunt = shunt
        self.root = root
        self.settings = {"SHUNT_RUN_DIR": str(run_dir), "SHUNT_DEADLINE": "20", "SHUNT_FABRIC": "tcp"}

    def tool(self, *words, **options):
        return self.shunt(*words, **{**self.settings, **options})

    def environment(self):
        """Of a program that a test starts by itself."""
        return one_node.environment(**self.settings)

    def start(self, *nodes, placement="branch", **options):
        for node in nodes:
            self.tool("start", "--root", self.root, "--node", node, "--placement", placement, **options).check()

    def stop(self, *nodes):
        for node in nodes:
            self.tool("stop", "--root", self.root, "--node", node).check()

    def on(self, node, *command, **options):
        """Runs a command on a node: how it ended."""
        return self.tool("exec", "--root", self.root, "--node", node, "--", *command, **options)

    def sh(self, node, script, status=0):
        """Runs a shell script on a node, in the root: what it printed."""
        return self.on(node, "sh", "-c", script, cwd=self.root).check(status)

    def names(self, node, directory="."):
        return self.sh(node, f"ls -A {directory}").split()

    def branch_of(self, file):
        """The node in whose branch a file is; None: in the trunk."""
        place = self.tool("where", self.root / file).check().strip()
        return place.split("/.shunt/b/")[1].split("/")[0].rsplit(".", 1)[0] if "/.shunt/b/" in place else None


@pytest.fixture(scope="session")
def build():
    return pathlib.Path(os.environ.get("SHUNT_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve()


@pytest.fixture
def session(build, tmp_path):
    """A root that nobody serves yet; the daemons that a test has started are stopped after it."""
    root = tmp_path / "root"
    root.mkdir()
    session = Session(one_node.Shunt(build), root, tmp_path / "run")
    (tmp_path / "run").mkdir()
    yield session
    session.tool("stop", "--root", root)
