# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The times of a directory whose files are in branches, as other nodes see them."""

import contextlib
import os
import sys

import pytest

ON_ONE_HOST = pytest.mark.parametrize("net", ["host"], indirect=True)

# Makes a file and removes it, again and again, with never a pause in which the directory could go quiet.
CHANGES = """
import itertools, os, sys, time
for number in itertools.count():
    name = f"{sys.argv[1]}/{os.getpid()}-{number}"
    with open(name, "x"):
        pass
    os.unlink(name)
    time.sleep(0.005)
"""

# Looks at a directory until it was seen to change so often; its times never go back.
FOLLOWS = """
import os, sys
seen, last, last_changed = 0, 0, 0
while seen < int(sys.argv[2]):
    found = os.stat(sys.argv[1])
    assert found.st_mtime_ns >= last and found.st_ctime_ns >= last_changed
    seen += found.st_mtime_ns > last
    last, last_changed = found.st_mtime_ns, found.st_ctime_ns
"""


@contextlib.contextmanager
def changing(session, node, directory):
    """A process that changes the directory meanwhile."""
    process = session.begin("exec", node, "--", sys.executable, "-c", CHANGES, directory)
    try:
        yield process
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait()


def times(session, node, directory):
    return session.sh(node, f"stat -c '%.Y %.Z' {directory}")


def has_settled(session, nodes, directory):
    """All see what the trunk says, which is the last change."""
    own = os.stat(session.root / directory).st_mtime_ns
    return {times(session, node, directory).split()[0] for node in nodes} == {f"{own // 10**9}.{own % 10**9:09}"}


@pytest.mark.parametrize("net", ["host", "slow"], indirect=True)
def test_a_change_is_seen_while_others_follow(session):
    """Nobody has used the directory on `b` and `c` before; its coordinator changes."""
    nodes = ["a", "b", "c"]
    session.start(*nodes)
    session.homes()
    for directory in ("one", "two"):
        session.sh("a", f"mkdir {directory}")
        with changing(session, "a", directory):
            for node in "bc":
                session.on(node, sys.executable, "-c", FOLLOWS, directory, "4", cwd=session.root).check()
    session.wait_for(lambda: has_settled(session, nodes, "one") and has_settled(session, nodes, "two"))
    modified, changed = times(session, "a", "one").split()
    assert modified == changed, "the node that made the change does not see when the trunk was told"


@ON_ONE_HOST
def test_changes_of_several_nodes(session):
    """Each sees its own at once, and those of the others."""
    session.start("a", "b")
    session.homes()
    session.sh("a", "mkdir out; echo >out/a")
    with changing(session, "a", "out"), changing(session, "b", "out"):
        for node in "ab":
            session.on(node, sys.executable, "-c", FOLLOWS, "out", "20", cwd=session.root).check()
    session.wait_for(lambda: has_settled(session, "ab", "out"))


@ON_ONE_HOST
@pytest.mark.parametrize("changes, sets", [("a", "b"), ("b", "a"), ("a", "a")])
def test_times_that_are_set_win_over_earlier_changes(session, changes, sets):
    """Also where the node that sets them has never used the directory."""
    session.start("a", "b")
    session.homes()
    session.sh("a", "mkdir out other")
    with changing(session, changes, "out"):
        session.on("b", sys.executable, "-c", FOLLOWS, "out", "3", cwd=session.root).check()
    for second in range(3):
        session.sh(changes, "echo >out/file; rm out/file; echo >out/file; rm out/file")
        session.sh(sets, f"touch -d @100000000{second} out")
        for node in "ab":
            assert times(session, node, "out").split()[0] == f"100000000{second}.000000000"
    session.sh(changes, "echo >other/one; echo >other/two")  # is written later than `out` would be
    session.wait_for(lambda: has_settled(session, "ab", "other"))
    for node in "ab":
        assert times(session, node, "out").split()[0] == "1000000002.000000000"
    assert os.stat(session.root / "out").st_mtime == 1000000002
    session.sh(changes, "echo >out/file")
    session.wait_for(lambda: has_settled(session, "ab", "out"))
    assert os.stat(session.root / "out").st_mtime > 1000000002


@ON_ONE_HOST
def test_a_change_is_seen_when_its_node_has_left(session):
    session.start("a", "b", "c")
    session.homes()
    session.sh("b", "mkdir out; echo >out/one; echo >out/two")
    session.sh("c", "stat out")
    before = times(session, "b", "out")
    session.stop("b")
    assert times(session, "a", "out").split()[0] == times(session, "c", "out").split()[0] == before.split()[0]
    session.sh("c", "echo >out/three")
    session.wait_for(lambda: has_settled(session, "ac", "out"))


@ON_ONE_HOST
def test_a_directory_that_is_removed_and_made_again(session):
    session.start("a", "b")
    session.homes()
    for number in range(3):
        session.sh("a", "mkdir out; echo >out/one; echo >out/two")
        seen = times(session, "b", "out")
        session.sh("a", "rm -r out")
        session.sh("b", "stat out", status=1)
        session.sh("a", "mkdir out")
        assert times(session, "b", "out") > seen
        assert times(session, "b", "out") == times(session, "a", "out")
        session.sh("b", "rmdir out")


@ON_ONE_HOST
def test_nothing_is_said_once_all_is_said(session):
    """Members beat all the while, which shows that time passes; daemons that have nothing to tell send no frame."""
    session.start("a", "b")
    session.homes()
    session.sh("a", "mkdir out; echo >out/file")
    session.sh("b", "stat out; echo >out/other")
    session.wait_for(lambda: has_settled(session, "ab", "out"))
    beats = list(session.root.glob(".shunt/session/beat.*"))

    def frames():
        counters = session.status()["counters"]
        return counters["frames_sent"], counters["frames_received"]

    def is_silent_for_a_beat():
        before = frames()
        first = [beat.stat().st_mtime_ns for beat in beats]
        session.wait_for(lambda: all(beat.stat().st_mtime_ns > time for beat, time in zip(beats, first)))
        return frames() == before

    assert len(beats) == 2
    session.wait_for(is_silent_for_a_beat)
