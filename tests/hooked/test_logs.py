# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The log of a crash is kept, also where the daemon that follows is told to end before it serves."""

import json
import os
import pathlib
import signal

from conftest import Meeting, wait_until
from daemons import is_running, pending_signals, stat_of, supervisor_of


def has_heard(pid):
    """All signals, which its handlers have seen to the end."""
    return stat_of(pid)[0] == "S" and pending_signals(pid) == {0}


def test_a_daemon_that_is_told_to_end_before_it_serves_keeps_the_log(shunt, tmp_path):
    root, claimed = tmp_path / "root", Meeting(tmp_path / "claimed")
    root.mkdir()
    shunt("start", "--root", root, SHUNT_LOG_DIR=tmp_path / "kept", SHUNT_HOOKS=claimed.seen_before_at("session-claimed")).check()
    try:
        session, = json.loads(shunt("status", "--root", root, "--json").check())
        pid, run_dir = session["pid"], pathlib.Path(session["run_dir"])
        supervisor, = supervisor_of(pid)
        claimed.again()
        os.kill(pid, signal.SIGSEGV)
        claimed.reached()
        os.kill(supervisor, signal.SIGTERM)
        wait_until(lambda: has_heard(supervisor), "it to pass that on")
        claimed.go()
        wait_until(lambda: not is_running(supervisor), "its end")
        (kept,) = (tmp_path / "kept").iterdir()
        assert "shuntd: ended by signal 11" in kept.read_text()
        assert not run_dir.exists()
    finally:
        claimed.go()
        shunt("stop", "--root", root)
