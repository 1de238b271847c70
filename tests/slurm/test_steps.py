# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Steps of a job: several one after the other, of all kinds, in one session."""

import os

import pytest

WORKS = """#!/bin/bash
for i in $(seq 20); do : >$1/out/$2.${SLURM_PROCID:-x}.$(hostname).$i || exit 1; done
"""
COUNTS = "count=$(/bin/ls {root}/out | wc -l); echo counted $count"


@pytest.fixture
def works(cluster):
    """A program that makes twenty files: its words are the root, and how their names begin."""
    program = cluster.place / "step.sh"
    program.write_text(WORKS)
    program.chmod(0o755)
    return program


def script(cluster, name, text):
    path = cluster.place / name
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def made(root):
    """How many files of each step, each node: all are in the trunk."""
    assert not (root / ".shunt").exists()
    found = {}
    for name in os.listdir(root / "out"):
        step, _, node, _ = name.split(".")
        found[step, node] = found.get((step, node), 0) + 1
    return found


def both(*steps, ranks=1):
    return {(step, node): 20 * ranks for step in steps for node in ("node1", "node2")}


def test_several_steps_of_a_script(cluster, root, launch, works):
    """A step's ranks on another node than the script's, too, reach their node's daemon."""
    steps = script(cluster, "steps.sh", f"srun -n2 {works} {root} one || exit 3; srun -n2 --overlap {works} {root} two || exit 4; "
                                        + COUNTS.format(root=root))
    text = cluster.ended(cluster.submit(f"{launch} --root {root} {steps}", "-N2", "-w", "node1,node2"))
    assert "counted 80" in text and "shunt:" not in text, text
    assert made(root) == both("one", "two")


@pytest.mark.parametrize("option", ["--overlap", "--exclusive", "--export=NONE"])
def test_an_option_of_a_step(cluster, root, launch, works, option):
    text = cluster.ended(cluster.submit(f"{launch} --root {root} srun {option} -n4 {works} {root} one", "-N2", "-w", "node1,node2",
                                        "--ntasks-per-node=2"))
    assert made(root) == both("one", ranks=2), text


def test_a_daemon_in_a_step(cluster, root, shunt, works):
    """The verb stays, since Slurm ends all that came of a step with it; steps that follow wait for its daemons."""
    each = "srun --overlap --ntasks-per-node=1"
    text = cluster.ended(cluster.submit(f"""
        {each} {shunt} start --root {root} --placement branch & start=$!
        {each} {shunt} exec --wait 60 --root {root} -- {works} {root} one || exit 3
        {each} {shunt} exec --root {root} -- {works} {root} two || exit 4
        {shunt} stop --all --root {root} || exit 5
        wait $start; echo "start: $?"
        {shunt} export {root}""", "-N2", "-w", "node1,node2"))
    assert "start: 0" in text and text.count("stays until its daemons end") == 1, text
    assert made(root) == both("one", "two"), text


def test_a_daemon_of_a_shell_in_a_step(cluster, root, shunt, works):
    """What is no task itself returns: the task is what the daemon lives with."""
    steps = script(cluster, "shell.sh", f"{shunt} start --root {root} && {shunt} exec --root {root} -- {works} {root} one && "
                                        f"{shunt} stop --root {root} && echo stopped; exit $?")
    text = cluster.ended(cluster.submit(f"srun {steps}; {shunt} export {root}", "-N1", "-w", "node1"))
    assert "stopped" in text and "stays" not in text, text
    assert made(root) == {("one", "node1"): 20}


def test_a_step_with_daemons_that_is_ended(cluster, root, shunt, works):
    """scancel of the step alone: the daemons end in order, and leave the session."""
    text = cluster.ended(cluster.submit(f"""
        srun --overlap -n1 {shunt} start --root {root} &
        srun --overlap -n1 {shunt} exec --wait 60 --root {root} -- {works} {root} one || exit 3
        scancel --signal=INT $SLURM_JOB_ID.0; wait
        {shunt} export {root}""", "-N1", "-w", "node1"))
    assert made(root) == {("one", "node1"): 20} and "taken over" not in text, text
