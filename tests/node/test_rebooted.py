# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""A machine that lost its power, with a run directory on a disk: it has the files of the daemons that were at work then, as these had
them, and other processes have their numbers. An earlier boot has a boot id of its own, which covers the kernel's."""

import os
import signal
import subprocess

import pytest
from conftest import IS_SUPERUSER, assert_plain, environment, redirected_files, run
from daemons import is_running, stat_of, wait_until

pytestmark = pytest.mark.skipif(not IS_SUPERUSER, reason="mounts over the boot id")

IN_EARLIER_BOOT = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


class Machine:
    def __init__(self, build, area, run_base):
        self.tools, self.run_base, self.disk, self.boot = build / "tools", run_base, area / "disk", area / "boot"
        self.boot.write_text("00000000-1111-2222-3333-444444444444\n")
        # A request to a daemon that is not there is to fail soon.
        self.settings = {"SHUNT_RUN_DIR": run_base, "SHUNT_DEADLINE": 3}

    def begin(self, *words):
        return subprocess.Popen(["unshare", "-m", "sh", "-c", IN_EARLIER_BOOT, self.boot, *words], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, text=True, env=environment(**self.settings), start_new_session=True)

    def daemons(self, root):
        """With their supervisors."""
        return [int(pid) for pid in run(["pgrep", "-f", f"^[^ ]*/shuntd --root {root} "]).out.split()]

    def copy(self, from_directory, to_directory):
        run(["rm", "-rf", to_directory]).check()
        run(["cp", "-a", "--sparse=always", from_directory, to_directory]).check()

    def lose_power(self, root, *others):
        """The disk is as it was before anything ended."""
        pids = [*self.daemons(root), *others]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(stat_of(pid)[0] == "T" for pid in pids))
        self.copy(self.run_base, self.disk)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(is_running, pids)))
        self.copy(self.disk, self.run_base)

    def __call__(self, *words):
        return run([self.tools / "shunt", *words], **self.settings)


@pytest.fixture
def machine(build, area, run_base, root):
    made = Machine(build, area, run_base)
    yield made
    made("stop", "--root", root)


def lose_power_in_a_run(machine, root):
    words = [machine.tools / "shunt", "run", "--root", root, "--placement", "branch", "--"]
    job = machine.begin(*words, "sh", "-c", f"echo kept >{root}/file; echo ready; exec sleep 1000")
    assert job.stdout.readline() == "ready\n" and redirected_files(root)
    children = [int(pid) for pid in run(["pgrep", "-P", job.pid]).out.split()]
    machine.lose_power(root, job.pid, *children)
    job.communicate(timeout=30)


def test_run_starts_a_daemon(machine, root):
    lose_power_in_a_run(machine, root)
    assert machine("run", "--root", root, "--", "cp", root / "file", root / "copy").check() == ""
    assert_plain(root)
    assert (root / "copy").read_text() == "kept\n"


def test_exec_says_that_there_is_none(machine, root):
    lose_power_in_a_run(machine, root)
    result = machine("exec", "--root", root, "--", "cat", root / "file")
    assert result.status == 125 and "no daemon is running for this root" in result.err, result.err
    machine("start", "--root", root).check()
    assert machine("exec", "--root", root, "--", "cat", root / "file").check() == "kept\n"


def test_a_program_is_told_at_once(machine, root, build):
    """It neither waits for an answer, nor reads names in an index that nobody writes."""
    lose_power_in_a_run(machine, root)
    library = build / "lib" / "shim" / "libshunt_preload.so"
    result = run(["cat", root / "file"], **machine.settings, LD_PRELOAD=library, SHUNT_ROOT=root)
    assert result.status == 1 and "the daemon of this node has ended (run 'shunt start" in result.err, result.err


def test_cleanup_removes_its_files(machine, root):
    lose_power_in_a_run(machine, root)
    machine("cleanup").check()
    assert list(machine.run_base.glob("shunt-*/*")) == []
