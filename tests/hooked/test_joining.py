# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes that join a session whose first daemon is not ready for them."""

import errno
import os
import pathlib
import signal
import subprocess

import conftest
import pytest
from daemons import epoch_lines


def beats(session):
    """When the first member's last heartbeat was."""
    path, *_ = sorted(session.root.glob(".shunt/session/beat.*"))
    return path.stat().st_mtime_ns


def test_others_join_before_the_network_of_the_first_is_open(session, tmp_path):
    """On a busy machine opening the network takes seconds. Meanwhile the first daemon reads, with a heartbeat, that another one has joined."""
    opens = conftest.Meeting(tmp_path / "opens")
    session.start("a", SHUNT_HOOKS=opens.at("fabric-opens"))
    first = session.member("a")["pid"]
    joining = session.begin("start", "b", "--placement", "branch")
    session.wait_for(lambda: "node b" in epoch_lines(session.root))
    wait_for_beats(session)
    opens.go()
    assert joining.wait(60) == 0
    assert session.homes() == ["a", "b"] and session.member("a")["pid"] == first
    session.sh("b", "touch made")
    assert session.names("a") == ["made"]


def joining_before_the_network_is_open(session, tmp_path):
    """(where the network of the node a is about to be opened, the start of the node b, of which a has read)"""
    opens = conftest.Meeting(tmp_path / "opens")
    session.start("a", SHUNT_HOOKS=opens.at("fabric-opens"))
    joining = session.begin("start", "b", "--placement", "branch")
    session.wait_for(lambda: "node b" in epoch_lines(session.root))
    wait_for_beats(session)
    return opens, joining


def wait_for_beats(session):
    for _ in range(2):
        before = beats(session)
        session.wait_for(lambda: beats(session) != before)


def begin_stop(session, *words):
    return subprocess.Popen([session.shunt.path, "stop", "--root", session.root, *words], env=session.environment())


def test_all_are_stopped_before_the_network_of_the_first_is_open(session, tmp_path):
    """It cannot tell the other one yet: it is asked again until it can."""
    opens, joining = joining_before_the_network_is_open(session, tmp_path)
    stopping = begin_stop(session, "--all")
    wait_for_beats(session)
    opens.go()
    assert stopping.wait(90) == 0
    joining.wait(60)
    assert [line for line in epoch_lines(session.root) if line.startswith("member ")] == []


def test_the_first_ends_in_order_before_its_network_is_open(session, tmp_path):
    """The other one becomes a home, and has lost nothing: that is no reason to keep a log."""
    session.settings["SHUNT_LOG_DIR"] = str(tmp_path / "kept")
    opens, joining = joining_before_the_network_is_open(session, tmp_path)
    stopping = begin_stop(session, "--node", "a")
    session.wait_for(lambda: "node a" not in epoch_lines(session.root))
    opens.go()
    assert stopping.wait(60) == 0 and joining.wait(60) == 0
    session.wait_for(lambda: session.homes() == ["b"])
    session.stop("b")
    assert not (tmp_path / "kept").exists()


@pytest.fixture
def small(session):
    """A session whose root is a file system of its own, of 4 MB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", session.root], check=True)
    yield session
    (session.root / "full").unlink(missing_ok=True)
    session.tool("stop", "--root", session.root)
    subprocess.run(["umount", "-l", session.root], check=True)


def fill(path):
    with open(path, "wb") as file:
        try:
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        except OSError as error:
            assert error.errno == errno.ENOSPC


@pytest.mark.skipif(os.geteuid() != 0, reason="to mount takes the superuser")
def test_a_file_system_is_full_as_a_node_joins(small):
    """What is written last, that the node is a home, is written once there is room; the log says once that there was none. The epoch
    before the last one would make some."""
    session, full = small, small.root / "full"
    session.start("a", "b")
    assert session.homes() == ["a", "b"]
    waits, log = session.member("b")["pid"], pathlib.Path(session.member("a")["run_dir"]) / "log"
    conftest.one_node.stand_still(waits)
    joining = session.begin("start", "c", "--placement", "branch")
    session.wait_for(lambda: (session.member("c") or {}).get("home") == "coming")
    for older in sorted((session.root / ".shunt" / "session").glob("epoch.*"), key=lambda path: int(path.suffix[1:]))[:-1]:
        older.unlink()
    fill(full)
    os.kill(waits, signal.SIGCONT)
    session.wait_for(lambda: "cannot be written" in log.read_text())
    for _ in range(20):
        session.status("--node", "a")
    assert log.read_text().count("cannot be written") == 1
    full.unlink()
    assert joining.wait(60) == 0 and session.homes() == ["a", "b", "c"]
    session.sh("c", "touch made")
    assert session.names("a") == ["made"]
