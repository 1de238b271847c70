# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""`shunt status` of a daemon that crashes just when the session was read, in which it is still a member: as at any other moment,
it waits for the one that takes over, and tells of that one."""

import json
import os
import signal
import subprocess

from conftest import Meeting


def test_a_daemon_that_crashes_when_the_session_was_just_read(shunt, tmp_path):
    root, read = tmp_path / "root", Meeting(tmp_path / "read")
    root.mkdir()
    shunt("start", "--root", root).check()
    try:
        command = [shunt.path, "status", "--root", root, "--json"]
        before, = json.loads(shunt(*command[1:]).check())
        with subprocess.Popen(command, env={**os.environ, "SHUNT_HOOKS": read.at("status-read")}, stdout=subprocess.PIPE) as asking:
            read.reached()
            os.kill(before["pid"], signal.SIGKILL)
            shunt(*command[1:]).check()
            read.go()
            said, = json.loads(asking.communicate(timeout=60)[0])
        assert (asking.returncode, said["state"]) == (0, "alive") and said["pid"] != before["pid"]
        assert [member["state"] for member in said["members"]] == ["alive"]
    finally:
        shunt("stop", "--root", root).check()
