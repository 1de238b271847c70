# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A root is removed natively, or moved away, under its daemons: they end and say why, and nothing of theirs is left but their
logs."""

import os
import shutil
import signal

import pytest
from conftest import run
from daemons import is_running, supervisor_of, wait_until

REASON = "no longer the directory that is served"


class Served:
    def __init__(self, shunt, root, run_base):
        self.shunt, self.root, self.run_base = shunt, root, run_base
        self.settings = {"SHUNT_RUN_DIR": run_base}

    def __call__(self, *words, **settings):
        return self.shunt(*words, **{**self.settings, **settings})

    def start(self, *nodes):
        """The daemons' processes, their supervisors' first."""
        pids = []
        for node in nodes:
            self("start", "--root", self.root, "--placement", "branch", "--node", node).check()
            self("exec", "--root", self.root, "--node", node, "--", "touch", f"{self.root}/{node}").check()
            status = self("status", "--root", self.root, "--node", node, "--json").check()
            daemon = int(status.split('"pid":')[1].split(",")[0].strip("}] \n"))
            pids += [*supervisor_of(daemon), daemon]
        return pids

    def wait_for_end(self, pids):
        wait_until(lambda: not any(map(is_running, pids)), 40)

    def files(self):
        return sorted(path.name for path in self.run_base.rglob("*") if path.is_file())

    def assert_told(self, nodes):
        assert self.files() == ["log"] * nodes
        for log in self.run_base.rglob("log"):
            assert REASON in log.read_text()


@pytest.fixture
def served(shunt, root, run_base):
    made = Served(shunt, root, run_base)
    yield made
    root.mkdir(exist_ok=True)
    made("stop", "--root", root)


@pytest.fixture
def nodes(request, served):
    """One node, or two that know each other."""
    names = ["n1", "n2"][:request.param]
    if request.param > 1:
        served.settings["SHUNT_FABRIC"] = "tcp:lo"
    return names


@pytest.mark.parametrize("nodes", [1, 2], indirect=True)
@pytest.mark.parametrize("goes", [shutil.rmtree, lambda root: root.rename(f"{root}.moved")], ids=["removed", "renamed"])
def test_daemons_end_and_say_why(served, nodes, goes):
    pids = served.start(*nodes)
    goes(served.root)
    served.wait_for_end(pids)
    served.assert_told(len(nodes))


@pytest.mark.parametrize("nodes", [1, 2], indirect=True)
def test_one_made_again_is_another_root(served, nodes):
    """Its daemon is no trouble to the one before, nor the other way round."""
    pids = served.start(*nodes)
    shutil.rmtree(served.root)
    served.root.mkdir()
    again = served.start(nodes[0])
    served.wait_for_end(pids)
    served("exec", "--root", served.root, "--node", nodes[0], "--", "touch", f"{served.root}/file").check()
    served("stop", "--root", served.root).check()
    served.wait_for_end(again)
    served("export", served.root).check()
    assert sorted(os.listdir(served.root)) == ["file", nodes[0]]


@pytest.mark.parametrize("nodes", [1, 2], indirect=True)
def test_stop_ends_those_of_the_one_before(served, nodes):
    pids = served.start(*nodes)
    shutil.rmtree(served.root)
    served.root.mkdir()
    served("stop", "--root", served.root).check()
    assert not any(map(is_running, pids))
    assert set(served.files()) <= {"log"}  # of one that saw it before it was told to end


@pytest.mark.unsanitized
def test_stop_that_cannot_hold_a_process_says_so(served):
    """It is not taken for one that has ended."""
    served.start("n1")
    served.root.rename(served.root.with_name("away"))
    served.root.mkdir()
    strace = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=pidfd_open:error=EMFILE", served.shunt.path]
    result = run([*strace, "stop", "--root", served.root], **served.settings)
    assert result.status == 1 and "cannot be waited for: Too many open files (run 'kill " in result.err, result


def test_stop_where_nothing_is_served_says_so(served):
    result = served("stop", "--root", served.root)
    assert result.status == 1 and "nothing serves it" in result.err, result
    served.start("n1")
    for _ in range(2):  # it has been served
        served("stop", "--root", served.root).check()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor(served, number):
    served.settings["SHUNT_FABRIC"] = "tcp:lo"
    pids = served.start("n1", "n2")
    shutil.rmtree(served.root)
    for supervisor in pids[::2]:
        os.kill(supervisor, number)
    served.wait_for_end(pids)


@pytest.mark.parametrize("again", [False, True])
def test_a_crash_after_it(served, again):
    """No daemon is started for another directory, or again and again."""
    pids = served.start("n1")
    shutil.rmtree(served.root)
    if again:
        served.root.with_name("other").mkdir()  # takes the inode number
        served.root.mkdir()
    os.kill(pids[1], signal.SIGKILL)
    served.wait_for_end(pids)
    served.assert_told(1)
    assert not again or os.listdir(served.root) == []
