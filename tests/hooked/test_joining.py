# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes that join a session whose first daemon is not ready for them."""

import subprocess

import conftest
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
