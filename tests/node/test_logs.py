# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""The daemon's log: to syslog when that is asked for, and kept after the end where something went wrong."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess

import pytest
from conftest import environment
from daemons import is_running, supervisor_of, wait_until


class Host:
    """A root whose daemon's files, and kept logs, are in directories of the test's own."""

    def __init__(self, shunt, root, run_base, area):
        self.shunt, self.root, self.kept_in = shunt, root, area / "state" / "shunt"
        self.settings = {"SHUNT_RUN_DIR": run_base, "SHUNT_LOG_DIR": "", "XDG_STATE_HOME": area / "state"}

    def __call__(self, verb, *words, **settings):
        return self.shunt(verb, *words, **{**self.settings, **settings})

    def start(self, **settings):
        self("start", "--root", self.root, "--placement", "branch", **settings).check()

    def stop(self):
        result = self("stop", "--root", self.root)
        result.check()
        return result.err

    def status(self):
        (session,) = json.loads(self("status", "--root", self.root, "--json").check())
        return session

    def crash(self, number=signal.SIGSEGV):
        pid = self.status()["pid"]
        os.kill(pid, number)
        wait_until(lambda: self.status()["pid"] != pid)

    def kept(self):
        return sorted(self.kept_in.iterdir()) if self.kept_in.exists() else []


@pytest.fixture
def host(shunt, root, run_base, area):
    made = Host(shunt, root, run_base, area)
    yield made
    made("stop", "--root", root)


def test_nothing_is_kept_where_all_was_well(host):
    host.start()
    assert host.stop() == "" and not host.kept_in.exists()


def test_the_log_of_a_crash_is_kept_and_the_user_is_told(host):
    host.start()
    run_dir = pathlib.Path(host.status()["run_dir"])
    host.crash()
    pid = host.status()["pid"]
    said = host.stop()
    (kept,) = host.kept()
    assert said == f"shunt: {host.root}: something went wrong while it was served (read {kept})\n"
    assert re.fullmatch(r"shuntd-\d{8}T\d{6}Z-.*-" + str(pid) + r"\.log", kept.name)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and not run_dir.exists()
    text = kept.read_text()
    assert "shuntd crashed: signal 11" in text and " warning: shuntd: ended by signal 11" in text and text.endswith(" stopped\n")


def test_a_command_whose_daemon_crashed(host):
    """`shunt run` tells it as well."""
    script = """pid=$($0 status --root $1 --json | sed -n 's/^ *"pid": \\([0-9]*\\),$/\\1/p' | head -n 1); kill -SEGV $pid; ls $1"""
    result = host("run", "--root", host.root, "--", "sh", "-c", script, host.shunt.path, host.root)
    (kept,) = host.kept()
    assert result.check() == "" and f"something went wrong while it was served (read {kept})" in result.err


def test_a_conflict_is_something_that_went_wrong(host):
    host("run", "--root", host.root, "--placement", "branch", "--keep", "--", "sh", "-c",
         f"mkdir {host.root}/d; echo one >{host.root}/d/a").check()
    (host.root / "d" / "a").write_text("another\n")
    host.start()
    listed = host("exec", "--root", host.root, "--", "ls", host.root / "d").check().split()
    assert listed[0] == "a" and listed[1].startswith("a.shunt-conflict-")
    host.stop()
    (kept,) = host.kept()
    assert re.search(" warning: .*d: 1 of its names were in two places", kept.read_text())


def test_a_log_that_cannot_be_kept_stops_nothing(host):
    host.start(SHUNT_LOG_DIR="/proc/nowhere")
    host.crash()
    assert host.stop() == ""


def test_cleanup_keeps_the_log_of_who_was_killed(host):
    host.start()
    host.crash()
    pid = host.status()["pid"]
    for process in (*supervisor_of(pid), pid):
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    result = host("cleanup")
    (kept,) = host.kept()
    result.check()
    assert result.err == f"shunt: {host.root}: something went wrong while it was served (read {kept})\n"


@pytest.fixture
def collector(area):
    """A socket as /dev/log, for commands that begin with the words that this gives; and what came there so far."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is missing")
    path = area / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(str(path))
        end.settimeout(60)
        yield end, ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--bind", "/dev/shm", "/dev/shm", "--bind", str(path), "/dev/log"]


def test_to_syslog(host, collector):
    """Lines of the daemon and of its supervisor, with the root before them, and warnings as such."""
    end, words = collector
    if subprocess.run([*words, "true"], check=False).returncode != 0:
        pytest.skip("no mount namespace can be made")
    subprocess.run([*words, host.shunt.path, "start", "--root", host.root], check=True, timeout=60,
                   env=environment(**host.settings, SHUNT_LOG="syslog"))
    host.crash()
    host.stop()
    (kept,) = host.kept()
    said = []
    while not said or "is kept there" not in said[-1]:
        said.append(end.recv(8192).decode())
    forms = [re.fullmatch(r"<(\d+)>.* shuntd\[\d+\]: " + re.escape(str(host.root)) + ": (.*)", line, re.S) for line in said]
    assert all(forms), said
    notice, warning = "29", "28"  # LOG_DAEMON
    expected = [(notice, "serving "), (warning, "shuntd: ended by signal 11"), (notice, "shuntd is started again"),
                (notice, "serving "), (notice, "stopped"), (notice, f"{kept}: this log is kept there")]
    assert [(priority, text[:len(words)]) for (priority, text), (_, words) in zip([form.groups() for form in forms], expected)] == expected
