# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""How a job ends: all of its processes are killed. The next one goes on with the root at once, on whatever nodes."""

import contextlib
import os
import pathlib
import signal
import subprocess

import pytest
import slurm_cluster
from conftest import BUILD
from slurm_cluster import wait_for

LAUNCH = BUILD / "tools" / "shunt-launch"
WORKS = "out=$1/out/$SLURM_JOB_ID; mkdir -p $out; for i in $(seq 20); do : >$out/$(hostname).$i; done; touch $out/ready.$(hostname)"


def works(cluster):
    """Writes twenty files, and goes on for ever, or ends."""
    program = cluster.place / "works.sh"
    program.write_text(f"#!/bin/bash\n{WORKS}\n[ -z \"$2\" ] || exec sleep 1000\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def job(cluster, root, launch):
    """Submits a job of two nodes under shunt-launch, which writes twenty files on each; it goes on for ever, or ends."""
    program = works(cluster)

    def submit(*options, forever=False, count=2, line=""):
        return cluster.submit(f"{line} {launch} --root {root} srun -n{count} {program} {root} {'forever' if forever else ''}",
                              f"-N{count}", *options)
    return submit


@pytest.fixture(scope="module", autouse=True)
def timed(place, cluster):
    """A job whose time is over: slurmctld looks each 30 s, so it begins before all others. Its root and number."""
    root = place / "root-timed"
    (root / "out").mkdir(parents=True)
    program = works(cluster)
    number = cluster.submit(f"{LAUNCH} --root {root} srun -n2 {program} {root} forever", "-N2", "-w", "node1,node2", "--time=1")
    wait_for(lambda: is_ready(root, number), what="the job whose time is over")
    done = cluster.run("scontrol", "update", f"JobId={number}", "EndTime=now+20")  # slurmctld refuses what is over when it hears of it
    assert done.returncode == 0, done.stderr
    return root, number


@pytest.fixture(scope="module", autouse=True)
def untracked(place):
    """The next job on a Slurm that does not track processes by cgroups has begun, after one whose processes were killed: the Slurm, its
    root, both numbers. Before all others, too, since it waits for heartbeats."""
    directory = place / "untracked"
    directory.mkdir()
    slurm = slurm_cluster.Cluster(directory, nodes=2, tracks="linuxproc")
    root = directory / "root"
    (root / "out").mkdir(parents=True)
    try:
        slurm.start()
        line = f"SHUNT_STALE=6 {LAUNCH} --root {root} srun -n1 {works(slurm)} {root}"
        first = slurm.submit(f"{line} forever", "-N1", "-w", "node1")
        wait_for(lambda: is_ready(root, first, 1), what="the first job")
        slurm.at("node1", "pkill", "-KILL", "shuntd|shunt-launch")
        slurm.ended(first, "FAILED")
        yield slurm, root, first, slurm.submit(line, "-N1", "-w", "node2")
    finally:
        slurm.stop()


def is_ready(root, number, count=2):
    """Each rank has written its files, some of which are redirected."""
    found = [name for _, _, names in os.walk(root) for name in names if name.startswith("ready.")]
    return len(found) >= count and any((root / ".shunt" / "session").glob("epoch.*")) and number


def goes_on(cluster, root, job, first, said, nodes="node3,node4"):
    """The next job finds what the first one made, and exports all."""
    text = cluster.ended(job("-w", nodes))
    assert said in text and text.count("taken over, since") == 1, text
    assert not (root / ".shunt").exists()
    assert len([name for name in os.listdir(root / "out" / first) if not name.startswith("ready")]) == 40
    for node in cluster.nodes:
        if node in cluster.members:
            assert cluster.processes(node, str(root)) == []


def test_a_job_that_is_cancelled(cluster, root, job):
    first = job("-w", "node1,node2", forever=True)
    wait_for(lambda: is_ready(root, first), what="the first job")
    cluster.run("scancel", first)
    goes_on(cluster, root, job, first, f"since Slurm job {first} has ended")


def test_an_export_on_a_log_in_node(cluster, root, job, shunt):
    first = job(forever=True)
    wait_for(lambda: is_ready(root, first), what="the first job")
    done = cluster.run(shunt, "export", root)
    assert done.returncode == 1 and "held by a session" in done.stderr and "taken over" not in done.stderr
    cluster.run("scancel", first)
    done = cluster.run(shunt, "export", root)
    assert done.returncode == 0 and f"since Slurm job {first} has ended" in done.stderr, done.stderr + subprocess.run(["find", root / ".shunt"], capture_output=True, text=True, check=False).stdout
    assert len(os.listdir(root / "out" / first)) == 42 and not (root / ".shunt").exists()


def test_a_job_that_is_requeued(cluster, root, job, launch):
    """It keeps its number: the second run takes over from the first."""
    program = cluster.place / "works.sh"
    number = cluster.submit(f'if [ -n "$SLURM_RESTART_COUNT" ]; then {launch} --root {root} srun -n2 {program} {root}; '
                            f'else {launch} --root {root} srun -n2 {program} {root} forever; fi', "-N2", "-w", "node1,node2", "--requeue")
    wait_for(lambda: is_ready(root, number), what="the first run")
    cluster.run("scontrol", "requeue", number)
    text = cluster.ended(number)
    assert text.count(f"since Slurm job {number} has ended") == 1, text
    assert not (root / ".shunt").exists() and len(os.listdir(root / "out" / number)) == 42


GOES_ON = """#!/bin/bash
out=$1/out; name=$(hostname)
for i in $(seq 20); do : >$out/$name.$i; done
touch $2/ready.$name
until [ -e $2/down ]; do sleep 0.1; done
for i in $(seq 20); do : >$out/$name.later.$i || exit 1; done
touch $2/done.$name
"""


def fails(cluster, root, nodes):
    """A job that Slurm ends when one of its nodes fails, as it is without --no-kill; its number, when it has written its files."""
    (root / "out").mkdir(parents=True)
    count = len(nodes)
    number = cluster.submit(f"SHUNT_STALE=6 {LAUNCH} --root {root} --placement branch srun -n{count} {works(cluster)} {root} forever",
                            f"-N{count}", "-w", ",".join(nodes), "--no-requeue")
    wait_for(lambda: is_ready(root, number, count), what="the job that is to lose a node")
    return number


class Dead:
    """node4 dies under three jobs. The first one is to go on without it. Slurm ends the other two: one of two nodes, after which another
    job begins, and one of this node alone, whose root is exported on a log-in node. Both wait for heartbeats, while other tests run."""

    def __init__(self, cluster, root, number, marks):
        self.root, self.number, self.marks = root, number, marks
        place = cluster.place
        self.of_two, self.alone = place / "root-of-two", place / "root-alone"
        self.failed = [fails(cluster, self.of_two, ["node1", "node4"]), fails(cluster, self.alone, ["node4"])]
        cluster.kill("node4")
        wait_for(lambda: "down" in cluster.run("sinfo", "-h", "-n", "node4", "-o", "%T").stdout, what="the end of node4")
        self.next = cluster.submit(f"SHUNT_STALE=6 {LAUNCH} --root {self.of_two} srun -n2 {place}/works.sh {self.of_two}", "-N2",
                                   "-w", "node2,node3")
        self.export = subprocess.Popen(cluster.words(BUILD / "tools" / "shunt", "export", self.alone), cwd=place, text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**os.environ, "SHUNT_STALE": "6"})


@pytest.fixture(scope="module")
def dead(cluster):
    program, marks, root = cluster.place / "goes_on.sh", cluster.place / "marks", cluster.place / "root-goes-on"
    program.write_text(GOES_ON)
    program.chmod(0o755)
    marks.mkdir()
    (root / "out").mkdir(parents=True)
    number = cluster.submit(f"SHUNT_STALE=6 {LAUNCH} --root {root} --placement branch srun --no-kill -n4 {program} {root} {marks}",
                            "-N4", "--no-kill")
    wait_for(lambda: len(list(marks.glob("ready.*"))) == 4, what="all ranks")
    node = Dead(cluster, root, number, marks)
    yield node
    node.export.kill()
    node.export.communicate()


def test_a_node_that_dies_takes_no_other_one_down(cluster, dead, launch):
    (dead.marks / "down").touch()
    wait_for(lambda: sorted(path.name for path in dead.marks.glob("done.*")) == ["done.node1", "done.node2", "done.node3"],
             seconds=60, what="the work of the others")
    wait_for(lambda: cluster.state(dead.number) not in ("RUNNING", "COMPLETING"), what="the end of the job")
    for node in ("node1", "node2", "node3"):
        assert cluster.processes(node, str(dead.root)) == [], "a daemon is left"
    text = cluster.ended(cluster.submit(f"{launch} --root {dead.root} srun -n2 {cluster.place}/works.sh {dead.root}", "-N2", "-w",
                                        "node1,node2"))
    assert not (dead.root / ".shunt").exists(), text
    found = os.listdir(dead.root / "out")
    assert [len([name for name in found if name.startswith(f"node{i}.")]) for i in range(1, 5)] == [40, 40, 40, 20]


def test_a_job_whose_processes_are_killed_on_a_node(cluster, root, job):
    """As the kernel does it where there is no memory left: the fixture cannot limit that, so all of them get SIGKILL."""
    first = job("-w", "node1,node2", forever=True)
    wait_for(lambda: is_ready(root, first), what="the first job")
    for procs in (cluster.group / "node1").rglob(f"job_{first}/**/cgroup.procs"):
        for pid in procs.read_text().split():
            with contextlib.suppress(OSError):  # one ends with another
                if pathlib.Path(f"/proc/{pid}/comm").read_text() != "slurmstepd\n":
                    os.kill(int(pid), signal.SIGKILL)
    goes_on(cluster, root, job, first, f"since Slurm job {first} has ended", "node2,node3")


def has_daemons(root):
    """As its session says, of which nothing has to be there."""
    epochs = sorted((root / ".shunt" / "session").glob("epoch.*"), key=lambda path: int(path.suffix[1:]))
    return any(line.startswith("run /dev/") for path in epochs[-1:] for line in path.read_text().splitlines())


def test_a_job_that_met_its_time_limit(cluster, timed, launch):
    """Its steps are told to end before they are killed: where its daemons were quick enough, there is nothing to take over."""
    root, first = timed
    wait_for(lambda: cluster.state(first) == "TIMEOUT", what="the time limit")
    is_left = has_daemons(root)
    text = cluster.ended(cluster.submit(f"{launch} --root {root} srun -n2 {cluster.place}/works.sh {root}", "-N2", "-w", "node2,node3"))
    assert text.count(f"taken over, since Slurm job {first} has ended") == text.count("taken over, since") == is_left, text
    assert not (root / ".shunt").exists() and len(os.listdir(root / "out" / first)) == 42


def test_a_job_that_lost_a_node(cluster, dead):
    """Slurm's word does not say that the daemon of a node that failed has ended: the next job goes on by heartbeats."""
    cluster.ended(dead.failed[0], "NODE_FAIL")
    text = cluster.ended(dead.next)
    assert text.count("taken over, since no heartbeat came for 6 s") == text.count("taken over, since") == 1, text
    assert not (dead.of_two / ".shunt").exists()
    assert [len(os.listdir(dead.of_two / "out" / job)) for job in (dead.failed[0], dead.next)] == [42, 42]
    assert all(cluster.processes(node, str(dead.of_two)) == [] for node in cluster.nodes if node in cluster.members)


def test_an_export_after_a_job_that_lost_its_node(cluster, dead):
    cluster.ended(dead.failed[1], "NODE_FAIL")
    _, said = dead.export.communicate(timeout=60)
    assert dead.export.returncode == 0 and "taken over, since no heartbeat came for 6 s" in said, said
    assert not (dead.alone / ".shunt").exists() and len(os.listdir(dead.alone / "out" / dead.failed[1])) == 21


def test_a_job_whose_processes_slurm_does_not_track(untracked):
    """That it has ended does not say that its daemons have: heartbeats do."""
    slurm, root, first, second = untracked
    text = slurm.ended(second)
    assert text.count("taken over, since no heartbeat came for 6 s") == text.count("taken over, since") == 1, text
    assert not (root / ".shunt").exists() and [len(os.listdir(root / "out" / job)) for job in (first, second)] == [21, 21]
    assert [slurm.processes(node, str(root)) for node in slurm.nodes] == [[], []]
