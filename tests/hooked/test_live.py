# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""shunt export --live is killed between its steps, alone and with its node."""

import os
import signal
import subprocess
import time

import pytest
from conftest import NODE, Meeting, one_node, wait_until

FILES = 3


@pytest.fixture
def quiet(session):
    """A directory of two nodes in which one's files may leave."""
    session.settings["SHUNT_STALE"] = "6"
    session.start("a", "b")
    session.sh("a", "mkdir out; ls out")
    session.sh("b", "ls out")
    session.sh("a", "for i in 0 1 2; do echo $i >out/$i; done")
    newest = max(path.stat().st_mtime for path in session.root.glob(".shunt/b/a.*/*/*"))
    wait_until(lambda: time.time() > newest + 1.1, "a quiet directory")
    return session


def begin_live(session, hooks, *before):
    words = [*before, str(session.shunt.path), "export", "--live", "--quiet", "1", "--node", "a", str(session.root)]
    return subprocess.Popen(words, env={**session.environment(), "SHUNT_HOOKS": hooks}, stdout=subprocess.DEVNULL)


def in_trunk(session):
    return [name for name in sorted(os.listdir(session.root / "out")) if name != ".shunt-dir"]


def assert_whole(session, *nodes):
    """Each file at one place, and on every node under its name."""
    places = in_trunk(session) + [path.name for path in session.root.glob(".shunt/b/*/*/*/*")]
    assert sorted(places) == ["0", "1", "2"]
    for node in nodes:
        assert session.names(node, "out") == ["0", "1", "2"]
        made_again = "for i in 0 1 2; do (set -C; : >out/$i) 2>/dev/null && echo made; done; true"
        assert session.sh(node, f"cat out/0 out/1 out/2; {made_again}") == "0\n1\n2\n"


@pytest.mark.parametrize("step", [1, 2, 2 * FILES])
def test_killed_before_or_after_a_rename(quiet, step):
    assert begin_live(quiet, f"step:kill={step}").wait(60) == -signal.SIGKILL
    assert len(in_trunk(quiet)) == step // 2
    assert_whole(quiet, "b", "a")


def test_lost_with_its_node_after_a_rename(quiet, tmp_path):
    """Nobody was told of the new place; and the name was held."""
    meeting = Meeting(tmp_path / "there")
    live = begin_live(quiet, meeting.at("rename-looked"), one_node.PYTHON, str(NODE / "without_noreplace.py"))
    meeting.reached()
    one_node.stand_still(quiet.member("a")["pid"])
    meeting.go()
    wait_until(lambda: in_trunk(quiet), "the rename")
    live.kill()
    live.wait()
    quiet.vanish("a")
    wait_until(lambda: quiet.member("a") is None, "the node to be dropped")
    assert_whole(quiet, "b")
