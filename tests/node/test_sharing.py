# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Jobs of one user that share a root, and the daemon of a node: each program runs, each status is its program's, the last one
that leaves stops the daemon and exports."""

import os
import signal
import subprocess

import pytest
from conftest import assert_plain, environment, redirected_files
from daemons import epoch_lines, is_running, stand_still, supervisor_of, wait_until
from union_on_disk import Union

WRITES = 'for i in $(seq 10); do : >"$0/out/$1.$i" || exit 99; done; exit "$1"'
# Until a file called `go` is there; then it writes once more.
STAYS = f'{WRITES.rpartition(";")[0]}; : >"$2/$1.ready"; until [ -e "$2/go" ]; do sleep 0.05; done; : >"$0/out/$1.last"; exit $?'


class Jobs:
    def __init__(self, build, root, run_base, marks):
        self.tools, self.root, self.run_base, self.marks = build / "tools", root, run_base, marks

    def begin(self, *words, script=WRITES, **settings):
        """A command at work: a tool, then the number of the job, which is its status."""
        *tool, number = words
        line = [self.tools / tool[0], *tool[1:], "--", "sh", "-c", script, self.root, number, self.marks]
        return subprocess.Popen(list(map(str, line)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, start_new_session=True, env=environment(SHUNT_RUN_DIR=self.run_base, **settings))

    def run(self, number, **settings):
        return self.begin("shunt", "run", "--root", self.root, "--placement", "branch", number, **settings)

    def is_ready(self, *numbers):
        return all((self.marks / f"{number}.ready").exists() for number in numbers)

    def daemon(self):
        """The one of the newest epoch."""
        return next((int(line.split()[1]) for line in epoch_lines(self.root) if line.startswith("pid ")), 0)

    def end(self, *jobs):
        """Their statuses; what they said is shown if the test fails."""
        said = [job.communicate(timeout=100)[0] for job in jobs]
        for job, text in zip(jobs, said):
            print(job.args[-2], job.returncode, text)
        return [job.returncode for job in jobs]

    def assert_exported(self, count):
        """A plain directory with so many files, and nothing of shunt's is left on the node."""
        assert_plain(self.root)
        assert len(os.listdir(self.root / "out")) == count
        assert [path for path in self.run_base.rglob("*") if not path.is_dir()] == []
        assert [path for path in self.run_base.glob("shunt-*/*")] == []


@pytest.fixture
def jobs(build, root, run_base, area):
    (root / "out").mkdir()
    (area / "marks").mkdir()
    made = Jobs(build, root, run_base, area / "marks")
    yield made
    (made.marks / "go").touch()
    subprocess.run([made.tools / "shunt", "stop", "--root", root], env=environment(SHUNT_RUN_DIR=run_base), check=False,
                   capture_output=True)


def test_an_array_on_one_node(jobs):
    array = [jobs.run(number) for number in range(8)]
    assert jobs.end(*array) == list(range(8))
    jobs.assert_exported(80)


def test_the_last_one_exports(jobs):
    long = jobs.run(1, script=STAYS)
    wait_until(lambda: jobs.is_ready(1))
    assert jobs.end(jobs.run(2)) == [2]
    assert is_running(jobs.daemon()) and redirected_files(jobs.root)
    (jobs.marks / "go").touch()
    assert jobs.end(long) == [0]
    jobs.assert_exported(21)


def test_one_joins_while_another_leaves(jobs):
    """Chains of short jobs, so that ends and beginnings fall together in many ways."""
    number = 0
    for _ in range(12):
        some = [jobs.run(number + i) for i in range(3)]
        assert jobs.end(*some) == [number, number + 1, number + 2]
        number += 3
    jobs.assert_exported(10 * number)


def test_a_user_that_was_killed_is_not_counted(jobs):
    killed = jobs.run(1, script=STAYS)
    wait_until(lambda: jobs.is_ready(1))
    daemon = jobs.daemon()
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    (jobs.marks / "go").touch()
    assert jobs.end(jobs.run(2)) == [2]
    assert not is_running(daemon)
    jobs.assert_exported(21)


def test_a_daemon_that_ends_with_the_job_that_started_it(jobs):
    """As under a batch system that kills all processes of a job: those of others go on, with a daemon of theirs."""
    others = [jobs.run(number, script=STAYS) for number in (1, 2)]
    wait_until(lambda: jobs.is_ready(1, 2))
    for _ in range(2):
        daemon = jobs.daemon()
        for pid in (*supervisor_of(daemon), daemon):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: jobs.daemon() not in (0, daemon))  # pylint: disable=cell-var-from-loop
    third = jobs.run(3)
    assert jobs.end(third) == [3]
    (jobs.marks / "go").touch()
    assert jobs.end(*others) == [0, 0]
    jobs.assert_exported(32)


def test_a_daemon_is_killed_while_the_last_one_leaves(jobs):
    """The user that leaves is the only one, and starts another daemon, which settles what the killed one left."""
    script = f'{WRITES.rpartition(";")[0]}; : >"$2/$1.ready"; until [ -e "$2/go" ]; do sleep 0.05; done'
    last = jobs.run(1, script=script)
    wait_until(lambda: jobs.is_ready(1))
    daemon = jobs.daemon()
    stand_still(last.pid)
    for pid in (*supervisor_of(daemon), daemon):
        os.kill(pid, signal.SIGKILL)
    (jobs.marks / "go").touch()
    os.kill(last.pid, signal.SIGCONT)
    assert jobs.end(last) == [0]
    jobs.assert_exported(10)


def test_all_are_killed(jobs):
    """Their daemon ends by itself, once no process needs it; the next job finds what they made."""
    killed = [jobs.run(number, script=STAYS) for number in (1, 2)]
    wait_until(lambda: jobs.is_ready(1, 2))
    daemon = jobs.daemon()
    for job in killed:
        os.kill(job.pid, signal.SIGKILL)
    (jobs.marks / "go").touch()
    wait_until(lambda: not is_running(daemon))
    for job in killed:
        job.communicate()
    assert redirected_files(jobs.root) and list(jobs.run_base.glob("shunt-*/*")) == list(jobs.run_base.glob("shunt-*/.*")) == []
    assert jobs.end(jobs.run(3)) == [3]
    jobs.assert_exported(32)


def test_all_are_killed_with_their_daemon(jobs, shunt):
    job = jobs.run(1, script=STAYS)
    wait_until(lambda: jobs.is_ready(1))
    for pid in (job.pid, *supervisor_of(jobs.daemon()), jobs.daemon()):
        os.kill(pid, signal.SIGKILL)
    (jobs.marks / "go").touch()
    job.communicate()
    shunt("cleanup", "--all", SHUNT_RUN_DIR=jobs.run_base).check()
    assert os.listdir(next(jobs.run_base.glob("shunt-*"))) == []


def test_two_launches_of_one_job(jobs):
    words = ("shunt-launch", "--root", jobs.root, "--placement", "branch", "--fake-nodes", 2)
    two = [jobs.begin(*words, number, SHUNT_FABRIC="tcp:lo") for number in (1, 2)]
    assert jobs.end(*two) == [1, 2]
    jobs.assert_exported(20)


def test_a_tool_that_holds_the_root_is_waited_for(jobs):
    """After 3 s one line says so."""
    Union(jobs.root).hold(run="/")
    job = jobs.run(4)
    assert "held by a session of somebody on host" in (line := job.stdout.readline()) and "whose end is waited for" in line
    (jobs.root / ".shunt" / "session" / "epoch.2").touch()  # of no bytes: it has ended
    assert job.communicate(timeout=60)[0] == "" and job.returncode == 4
    jobs.assert_exported(10)


def test_a_daemon_that_nobody_counts_is_not_shared(jobs, shunt):
    """That of `shunt start` is there until `shunt stop`."""
    settings = {"SHUNT_RUN_DIR": jobs.run_base}
    shunt("start", "--root", jobs.root, **settings).check()
    run = jobs.run(1)
    assert "use it with 'shunt exec'" in run.communicate(timeout=60)[0] and run.returncode == 1
    shunt("stop", "--root", jobs.root, **settings).check()
    assert jobs.end(jobs.run(1)) == [1]
    jobs.assert_exported(10)
