# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Nodes that join a session whose first daemon is not ready for them."""

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
    for _ in range(2):
        before = beats(session)
        session.wait_for(lambda: beats(session) != before)
    opens.go()
    assert joining.wait(60) == 0
    assert session.homes() == ["a", "b"] and session.member("a")["pid"] == first
    session.sh("b", "touch made")
    assert session.names("a") == ["made"]
