# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A job that shares the daemon of another, which ends just when this one has found it, as a batch system ends it with the job that
started it. The other's is told by its end that it is to start one again: it has to see that, whenever it comes."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import Meeting, wait_until
from daemons import is_running, supervisor_of


@pytest.fixture
def run(shunt, tmp_path):
    jobs = []

    def run(script, **settings):
        words = [shunt.path, "run", "--root", tmp_path / "root", "--placement", "branch", "--keep", "--", "bash", "-c", script]
        jobs.append(subprocess.Popen(list(map(str, words)), env={**os.environ, "SHUNT_DEADLINE": "10", **settings},
                                     start_new_session=True))
        return jobs[-1]

    yield run
    for job in jobs:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def processes(shunt, root):
    """The supervisor of the root's daemon, and the daemon."""
    member, = json.loads(shunt("status", "--root", root, "--json").check())[0]["members"]
    return *supervisor_of(member["pid"]), member["pid"]


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid), "its end")


@pytest.mark.parametrize("is_early", [True, False])
def test_a_daemon_that_ends_when_it_was_just_found_is_started_again(shunt, run, tmp_path, is_early):
    """Before the second job begins; or while it runs, and its supervisor has ended a moment ago."""
    root, begun, found = tmp_path / "root", tmp_path / "begun", Meeting(tmp_path / "found")
    root.mkdir()
    first = run(f": >{root}/one; : >{begun}.one; exec sleep 1000")
    wait_until(lambda: pathlib.Path(f"{begun}.one").exists(), "the first job")
    supervisor, daemon = processes(shunt, root)
    script = f": >{begun}.two; until [ -e {begun}.go ]; do sleep 0.01; done; : >{root}/two && ls {root} >{begun}.list"
    if is_early:
        second = run(script, SHUNT_HOOKS=found.at("share-found"))
        found.reached()
    else:
        second = run(script, SHUNT_HOOKS=found.seen_before_at("share-found"))
        wait_until(lambda: pathlib.Path(f"{begun}.two").exists(), "the second job")
        found.again()
    os.kill(first.pid, signal.SIGKILL)
    kill(supervisor)
    found.reached()
    kill(daemon)
    found.go()
    pathlib.Path(f"{begun}.go").touch()
    assert second.wait(timeout=40) == 0
    assert pathlib.Path(f"{begun}.list").read_text() == "one\ntwo\n"
