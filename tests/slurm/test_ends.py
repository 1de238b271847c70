# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""How a job ends: all of its processes are killed. The next one goes on with the root at once, on whatever nodes."""

import os
import subprocess

import pytest
from slurm_cluster import wait_for

WORKS = "out=$1/out/$SLURM_JOB_ID; mkdir -p $out; for i in $(seq 20); do : >$out/$(hostname).$i; done; touch $out/ready.$(hostname)"


@pytest.fixture
def job(cluster, root, launch):
    """Submits a job of two nodes under shunt-launch, which writes twenty files on each; it goes on for ever, or ends."""
    program = cluster.place / "works.sh"
    program.write_text(f"#!/bin/bash\n{WORKS}\n[ -z \"$2\" ] || exec sleep 1000\n")
    program.chmod(0o755)

    def submit(*options, forever=False, count=2, line=""):
        return cluster.submit(f"{line} {launch} --root {root} srun -n{count} {program} {root} {'forever' if forever else ''}",
                              f"-N{count}", *options)
    return submit


def is_ready(root, number, count=2):
    """Each rank has written its files, some of which are redirected."""
    found = [name for _, _, names in os.walk(root) for name in names if name.startswith("ready.")]
    return len(found) >= count and any((root / ".shunt" / "session").glob("epoch.*")) and number


def goes_on(cluster, root, job, first, said):
    """The next job finds what the first one made, and exports all."""
    text = cluster.ended(job("-w", "node3,node4"))
    assert said in text and text.count("taken over") == 1, text
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
