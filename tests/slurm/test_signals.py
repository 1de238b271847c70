# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""SIGTERM, SIGINT and SIGHUP come to shunt-launch, and to the agents that srun has brought to the nodes, at moments that are spread over
the time that a launch takes. Whichever it is, nothing is left, and the next launch goes on with the root. tests/node/test_interrupted.py
does so with agents that are children of shunt-launch, at more moments. What is sent to a job for its programs ends nothing."""

import concurrent.futures
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest
from slurm_cluster import wait_for

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LANES = 5  # roots, at the same time
MOMENTS = 3  # of each
PROGRAM = """#!/bin/bash
for i in $(seq 10); do : >$1/out/$2.$SLURM_PROCID.$i || exit 3; done
"""


@pytest.fixture(scope="module")
def allocation(cluster):
    """The variables of an allocation of two nodes, which goes on for all launches."""
    found = cluster.place / "allocation"
    with subprocess.Popen(cluster.words("salloc", "-N2", "-w", "node1,node2", "bash", "-c", f"env -0 >{found}.new; mv {found}.new {found}; "
                                        "read"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as holder:
        wait_for(lambda: found.exists() or holder.poll() is not None, what="the allocation")
        settings = dict(one.split("=", 1) for one in found.read_text().split("\0") if one.startswith("SLURM"))
        yield settings
        holder.communicate()


def processes_of(root):
    """{pid: (its name, its words)} of all that has this root in its words, on whatever node."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(root) in words:
                found[int(process.name)] = (process / "comm").read_text().strip(), words
        except OSError:  # it has ended
            continue
    return found


WHO = {"shunt-launch": lambda words: b"--keep-node" not in words, "the agents": lambda words: b"--keep-node" in words}


def told(root, who):
    """Which processes are."""
    return [pid for pid, (name, words) in processes_of(root).items() if name == "shunt-launch" and WHO[who](words)]


class Lane:
    """Launches one after the other, with one root."""

    def __init__(self, cluster, launch, allocation, number):
        self.cluster, self.launch, self.allocation, self.number = cluster, launch, allocation, number
        self.root = cluster.place / f"root-signals-{number}"
        self.launched = 0  # that went on to their ends
        (self.root / "out").mkdir(parents=True)

    def begin(self, name):
        program = self.cluster.place / "signals.sh"
        line = [self.launch, "--root", self.root, "--placement", "branch", "srun", "--overlap", "-n2", program, self.root, name]
        return subprocess.Popen(self.cluster.words(*line), env={**os.environ, **self.allocation}, cwd=self.cluster.place, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def interrupt(self, which, duration):
        who, number = list(WHO)[which % len(WHO)], SIGNALS[which // len(WHO) % len(SIGNALS)]
        after = duration * which / (LANES * MOMENTS)
        process = self.begin(f"interrupted-{which}")
        time.sleep(after)
        for pid in told(self.root, who):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self.check(process, number, f"{number.name} to {who} after {after:.2f} s")

    def check(self, process, number, what):
        try:
            said = process.communicate(timeout=90)[1]
        except subprocess.TimeoutExpired:
            said = f"it goes on: {processes_of(self.root)}"
        print(what, process.returncode, said)
        assert process.returncode in (0, -number, 128 + number) or said != "", what
        wait_for(lambda: processes_of(self.root) == {}, what=f"the end of all processes: {what}: {said}")

    def go_on(self):
        """With names of its own, so that there is something to export whatever was left before."""
        self.launched += 1
        process = self.begin(f"whole-{self.launched}")
        said = process.communicate(timeout=90)[1]
        assert process.returncode == 0 and "20 files redirected" in said and "files exported" in said, said
        assert not (self.root / ".shunt").exists()
        assert len([name for name in os.listdir(self.root / "out") if name.startswith(f"whole-{self.launched}.")]) == 20
        return said

    def run(self, duration):
        for i in range(MOMENTS):
            self.interrupt(i * LANES + self.number, duration)
        return self.go_on()


def files_of_daemons(cluster, node):
    return set(cluster.at(node, "find", "/dev/shm", "-type", "f").stdout.split())


def test_signals_at_many_moments(cluster, launch, allocation):
    program = cluster.place / "signals.sh"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    before = {node: files_of_daemons(cluster, node) for node in ("node1", "node2")}
    lanes = [Lane(cluster, launch, allocation, i) for i in range(LANES)]
    with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
        began = time.monotonic()
        list(pool.map(Lane.go_on, lanes))
        duration = time.monotonic() - began
        for said in pool.map(lambda lane: lane.run(duration), lanes):
            assert "taken over" not in said, said
    for node, earlier in before.items():
        assert files_of_daemons(cluster, node) <= earlier


WARNED = """#!/bin/bash
trap ': >$1/out/warned.$SLURM_PROCID; exit 0' USR1
: >$1/out/ready.$SLURM_PROCID
while :; do sleep 0.1; done
"""

JOBS = {"launch": "{tools}/shunt-launch --root {root} --placement branch srun -n2 {program} {root}",
        "steps": """
srun --overlap -n2 --ntasks-per-node=1 {tools}/shunt start --root {root} --placement branch &
srun --overlap -n2 {tools}/shunt exec --wait 60 --root {root} -- {program} {root} || exit 3
{tools}/shunt stop --all --root {root} || exit 4
wait
{tools}/shunt export {root}"""}


@pytest.mark.parametrize("whom", [(), ("--full",)], ids=["steps-alone", "full"])
@pytest.mark.parametrize("job", JOBS)
def test_a_warning_to_the_whole_job(cluster, root, for_all, job, whom):
    """As by sbatch --signal=USR1@60, whose time comes at the end alone."""
    program = cluster.place / "warned.sh"
    program.write_text(WARNED)
    program.chmod(0o755)
    number = cluster.submit("trap : USR1\n" + JOBS[job].format(tools=for_all, root=root, program=program), "-N2", "-n2")

    def names():
        return {name for _, _, names in os.walk(root) for name in names if name.startswith(("ready.", "warned."))}
    wait_for(lambda: {"ready.0", "ready.1"} <= names(), what="the programs")
    done = cluster.run("scancel", "--signal=USR1", *whom, number)
    assert done.returncode == 0, done.stderr
    said = cluster.ended(number)
    assert not (root / ".shunt").exists(), said
    assert names() == {"ready.0", "ready.1", "warned.0", "warned.1"} == set(os.listdir(root / "out")), said
