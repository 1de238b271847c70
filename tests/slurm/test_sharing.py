# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Jobs of one user share a root and the daemon of a node. Slurm ends a daemon with the job that started it: the programs of the
others go on. Each program runs, each status is its program's, the last job that ends exports."""

import os
import pathlib

import pytest
from slurm_cluster import wait_for

# Job number $1 of $2: all of them are there before the first one ends, and each ends after the one before it.
PROGRAM = """#!/bin/bash
out={root}/out marks={marks} mine=$1
for i in $(seq 10); do : >$out/$mine.$i || exit 99; done
touch $marks/ready.$mine
until [ $(ls $marks | grep -c ready) = $2 ]; do sleep 0.1; done
until [ $mine = 0 ] || [ -e $marks/status.$((mine - 1)) ]; do sleep 0.1; done
for i in $(seq 10); do : >$out/$mine.later.$i || exit 99; done
exit $mine
"""

# Job number $1 of $2 in a chain: it ends when the next one's program runs, and the last one after the last but one.
CHAINED = """#!/bin/bash
out={root}/out marks={marks} mine=$1
for i in $(seq 10); do : >$out/$mine.$i || exit 99; done
touch $marks/ready.$mine
next=$marks/ready.$((mine + 1))
[ $next != $marks/ready.$2 ] || next=$marks/status.$((mine - 1))
until [ -e $next ]; do sleep 0.05; done
for i in $(seq 10); do : >$out/$mine.later.$i || exit 99; done
exit $mine
"""


@pytest.fixture
def marks(cluster, root):
    directory = cluster.place / f"marks-{root.name}"
    directory.mkdir()
    return directory


@pytest.fixture
def program(cluster, root, marks):
    return written(cluster.place / f"program-{root.name}", PROGRAM, root, marks)


@pytest.fixture
def chained(cluster, root, marks):
    return written(cluster.place / f"program-{root.name}", CHAINED, root, marks)


def written(path, text, root, marks):
    path.write_text(text.format(root=root, marks=marks))
    path.chmod(0o755)
    return path


def assert_shared(cluster, root, marks, program, count):
    statuses = {path.name: path.read_text().strip() for path in marks.glob("status.*")}
    assert statuses == {f"status.{i}": str(i) for i in range(count)}
    assert not (root / ".shunt").exists() and len(os.listdir(root / "out")) == 20 * count
    for node in (node for node in cluster.nodes if node in cluster.members):  # others were killed by other tests
        assert cluster.processes(node, str(root)) == [], "a daemon is left"
        assert cluster.at(node, "find", "/dev/shm", "-type", "f", "-path", "*shunt-*", "-newer", str(program)).stdout == ""


def test_an_array_on_one_node(cluster, root, marks, program, shunt):
    number = cluster.submit(f"{shunt} run --root {root} --placement branch -- {program} $SLURM_ARRAY_TASK_ID 8\n"
                            f"echo $? >{marks}/status.$SLURM_ARRAY_TASK_ID", "--array=0-7", "-n1", "-w", "node1")
    wait_for(lambda: cluster.run("squeue", "-h", "-j", number).stdout == "", what="the end of the array")
    print("\n".join(path.read_text() for path in cluster.place.glob("out.*")))
    assert_shared(cluster, root, marks, program, 8)


def test_two_jobs_on_different_nodes(cluster, root, marks, program, launch):
    jobs = [cluster.submit(f"{launch} --root {root} --placement branch srun -n1 {program} {i} 2\necho $? >{marks}/status.{i}",
                           "-N1", "-w", f"node{i + 1}") for i in range(2)]
    said = [cluster.ended(job) for job in jobs]
    print("\n".join(said))
    assert_shared(cluster, root, marks, program, 2)
    assert "nothing exported" in said[0] and "files exported" in said[1]


def test_two_launches_of_one_job(cluster, root, marks, program, launch):
    line = f"{{ {launch} --root {root} --placement branch srun --overlap -N2 -n2 {program.with_suffix('.rank')} %d; echo $? >{marks}/status.%d; }} &\n"
    # One rank of each launch does the work; the other one is there to have a daemon on its node.
    program.with_suffix(".rank").write_text(f"#!/bin/bash\n[ $SLURM_PROCID = 0 ] || exit 0\nexec {program} $1 2\n")
    program.with_suffix(".rank").chmod(0o755)
    print(cluster.ended(cluster.submit(line % (0, 0) + line % (1, 1) + "wait", "-N2", "-n4", "-w", "node1,node2")))
    assert_shared(cluster, root, marks, program, 2)


def test_jobs_that_join_while_others_leave(cluster, root, marks, chained, launch):
    """The launch of each begins when the program of the one before runs, which is what the one before that ends by: on the same node,
    while the other node goes on."""
    count = 6
    jobs = [cluster.submit(f"until [ {i} = 0 -o -e {marks}/ready.{i - 1} ]; do sleep 0.05; done\n"
                           f"{launch} --root {root} --placement branch srun -n1 {chained} {i} {count}\necho $? >{marks}/status.{i}",
                           "-N1", "-w", f"node{i % 2 + 1}") for i in range(count)]
    said = [cluster.ended(job) for job in jobs]
    print("\n".join(said))
    assert_shared(cluster, root, marks, chained, count)
    assert [("files exported" in one, "nothing exported" in one) for one in said] == [(False, True)] * (count - 1) + [(True, False)]


# A session around a launch: a daemon on the script's node, which the launch adds one to; or daemons on both nodes.
AROUND = {"run": "{shunt} run --root {root} --placement branch -- {script}",
          "exec": """
srun --overlap -n2 --ntasks-per-node=1 {shunt} start --root {root} --placement branch &
srun --overlap -n2 --ntasks-per-node=1 {shunt} exec --wait 60 --root {root} -- true || exit 3
{shunt} exec --root {root} -- {script}
{shunt} stop --all --root {root} && {shunt} export {root} && wait"""}


@pytest.mark.parametrize("around", AROUND)
def test_a_launch_within_another_session(cluster, root, launch, shunt, around):
    """Ranks of both nodes see the files of both roots, and make some."""
    other = root.parent / f"within-{around}"
    (other / "out").mkdir(parents=True)
    program, script = cluster.place / "within.sh", cluster.place / f"around-{around}.sh"
    program.write_text(f"#!/bin/bash\n[ -e {root}/out/made ] && : >{root}/out/$SLURM_PROCID && : >{other}/out/$SLURM_PROCID\n")
    script.write_text(f"#!/bin/bash\necho made >{root}/out/made; {launch} --root {other} --placement branch srun --overlap -n2 {program}\n"
                      f"echo ends $?; ls {root}/out | wc -l\n")
    for path in (program, script):
        path.chmod(0o755)
    said = cluster.ended(cluster.submit(AROUND[around].format(shunt=shunt, root=root, script=script), "-N2", "-n2", "-w", "node1,node2"))
    assert "ends 0\n3\n" in said, said
    assert not (root / ".shunt").exists() and sorted(os.listdir(root / "out")) == ["0", "1", "made"], said
    assert not (other / ".shunt").exists() and sorted(os.listdir(other / "out")) == ["0", "1"], said
    assert all(cluster.processes(node, str(path)) == [] for node in ("node1", "node2") for path in (root, other))


def test_an_export_as_a_job_of_its_own(cluster, root, launch):
    """It begins when the job has ended, on one node."""
    script = f"'for i in 1 2 3; do : >{root}/out/$SLURM_PROCID.$i; done'"
    number = cluster.submit(f"{launch} --root {root} --placement branch --export later,submit srun -n2 sh -c {script}", "-N2", "-n2",
                            "-w", "node1,node2")
    said = cluster.ended(number)
    assert "nothing exported" in said, said
    wait_for(lambda: not (root / ".shunt").exists(), what="the export")
    jobs = [line for line in cluster.run("scontrol", "-o", "show", "job").stdout.splitlines() if "JobName=shunt-export " in line]
    assert len(jobs) == 1 and "NumNodes=1 " in jobs[0], jobs
    export = dict(word.split("=", 1) for word in jobs[0].split() if "=" in word)
    cluster.ended(export["JobId"])
    said = pathlib.Path(export["StdOut"]).read_text()
    assert said == f"exported 6 files in 1 directory: {root} is a plain directory\n"
    assert sorted(os.listdir(root / "out")) == [f"{rank}.{i}" for rank in (0, 1) for i in (1, 2, 3)]
