# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Steps of a job: several one after the other, of all kinds, in one session."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import NOBODY, skip
from slurm_cluster import wait_for

WORKS = """#!/bin/bash
for i in $(seq 20); do : >$1/out/$2.${SLURM_PROCID:-x}.$(hostname).$i || exit 1; done
"""
SPAWNS = r"""
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, all;
    char path[4096], host[256];
    int rank, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(host, &length);
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "%s/out/%s.%d.%s.%d", argv[1], parent == MPI_COMM_NULL ? "parent" : "child", rank, host, i);
        FILE *file = fopen(path, "w");
        if (!file)
            return 3;
        fclose(file);
    }
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], argv + 1, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &all, MPI_ERRCODES_IGNORE);
    else
        all = parent;
    MPI_Barrier(all);
    MPI_Finalize();
    return 0;
}
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


def test_nodes_export_what_they_made(cluster, root, launch, works):
    """At the orders of the script's node, which does its own part; srun hands each order to all of the others."""
    job = cluster.submit(f"{launch} --root {root} --placement branch --json srun -n3 {works} {root} one", "-N3", "-w", "node[1-3]")
    said = json.loads(cluster.ended(job).splitlines()[-1])
    assert said["exported_files"] == 60 and said["exported_by_owners"] == 40
    assert made(root) == {("one", f"node{number}"): 20 for number in (1, 2, 3)}


def test_an_export_in_a_job_has_the_help_of_its_nodes(cluster, root, launch, shunt, works):
    """What an earlier job kept: the other node of the allocation helps; the script's node does the rest, also of a node that is not there."""
    cluster.ended(cluster.submit(f"{launch} --root {root} --keep --placement branch srun -n3 {works} {root} one", "-N3", "-w", "node[1-3]"))
    text = cluster.ended(cluster.submit(f"{shunt} export --json {root}", "-N2", "-w", "node[2-3]"))
    said = json.loads(text[text.index("{"):])
    assert said["files"] == 60 and said["by_owners"] == 20 and said["complete"], text
    assert made(root) == {("one", f"node{number}"): 20 for number in (1, 2, 3)}


def test_an_ordinary_user(cluster, root, works, for_all, become):
    """All of it is the user's: the agents that srun brings, the daemons, and what they make."""
    rank = script(cluster, "user.sh", f"{works} {root} one && ps -eo uid,args | grep '[s]huntd.*{root}\\|[k]eep-node.*{root}'")
    done = cluster.run(*become, "salloc", "--chdir=/", "-N2", "-w", "node1,node2", for_all / "shunt-launch", "--root", root, "srun", rank)
    assert done.returncode == 0 and made(root) == both("one"), done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == {str(NOBODY)}, done.stdout
    assert "shuntd" in done.stdout and "--keep-node" in done.stdout, done.stdout
    assert {path.stat().st_uid for path in (root / "out").iterdir()} == {NOBODY}


def test_options_of_a_step(cluster, root, launch, works):
    options = {"one": "--overlap", "two": "--exclusive", "three": "--export=NONE", "four": "-QN 2"}
    lines = [f"{launch} --root {root} srun {option} -n4 {works} {root} {name}" for name, option in options.items()]
    text = cluster.ended(cluster.submit(" && ".join(lines), "-N2", "-w", "node1,node2", "--ntasks-per-node=2"))
    assert made(root) == both(*options, ranks=2) and text.count("80 operations") == len(options), text


def test_what_a_user_sets_for_steps_is_not_of_the_agents(cluster, root, launch, works):
    said = cluster.place / "said"
    settings = f"export SLURM_DEBUG=1 SLURM_STDINMODE=none SLURM_STDOUTMODE={said}.%t SLURM_STDERRMODE=none"
    line = f"srun -n2 bash -c '{works} {root} one; echo ended'"
    text = cluster.ended(cluster.submit(f"{settings}; {launch} --root {root} {line}", "-N2", "-w", "node1,node2"))
    assert made(root) == both("one") and "40 operations" in text, text
    assert [(said.parent / f"said.{rank}").read_text() for rank in (0, 1)] == ["ended\n"] * 2


def test_a_job_that_exports_nothing(cluster, root, launch, works):
    """sbatch --export=NONE says to every srun that it takes no variables along: to that of the line, and those of a script."""
    steps = script(cluster, "none.sh", f"srun -n2 {works} {root} two")
    job = f"{launch} --root {root} srun -n2 {works} {root} one && {launch} --root {root} {steps}"
    text = cluster.ended(cluster.submit(f"export PATH={os.environ['PATH']} SLURM_CONF={cluster.place}/slurm.conf; {job}", "-N2", "-w",
                                        "node1,node2", "--export=NONE"))
    assert made(root) == both("one", "two"), text
    assert text.count("40 operations") == 2, text


def test_several_programs_in_one_step(cluster, root, launch, works):
    line = f"srun -N1 -n1 {works} {root} one : -N1 -n1 {works} {root} two"
    text = cluster.ended(cluster.submit(f"{launch} --root {root} {line}", "-N2", "-w", "node1,node2"))
    assert sorted(made(root).values()) == [20, 20] and "40 operations" in text, text


def test_a_heterogeneous_job(cluster, root, launch, works):
    """Each of its groups has nodes, and a number as a job."""
    line = f"srun --het-group=0,1 {works} {root} one"
    other = f"srun --het-group=1 {works} {root} two : --het-group=0 {works} {root} three"
    text = cluster.ended(cluster.submit(f"{launch} --root {root} {line} && {launch} --root {root} {other}", "-N1", "-n2", "-w", "node1",
                                        ":", "-N2", "-n2", "-w", "node2,node3"))
    assert made(root) == {("one", "node1"): 40, ("one", "node2"): 20, ("one", "node3"): 20,
                          ("two", "node2"): 20, ("two", "node3"): 20, ("three", "node1"): 40}, text


def test_a_heterogeneous_job_that_is_cancelled(cluster, root, launch, works):
    """Slurm is asked for each of its groups: the next job goes on at once."""
    program = script(cluster, "stays.sh", f"{works} {root} one && sleep 1000")
    first = cluster.submit(f"{launch} --root {root} srun --het-group=0,1 {program}", "-N1", "-w", "node1", ":", "-N1", "-w", "node2")
    wait_for(lambda: sum(name.startswith("one.") for _, _, names in os.walk(root) for name in names) == 40, what="the work of both groups")
    cluster.run("scancel", first)
    text = cluster.ended(cluster.submit(f"{launch} --root {root} srun {works} {root} two", "-N1", "-w", "node3"))
    assert "has ended" in text and "heartbeat" not in text, text
    assert made(root) == {("one", "node1"): 20, ("one", "node2"): 20, ("two", "node3"): 20}


@pytest.fixture
def spawns(cluster):
    if shutil.which("mpicc") is None:
        skip("needs mpicc")
    (cluster.place / "spawns.c").write_text(SPAWNS)
    subprocess.run(["mpicc", "-o", cluster.place / "spawns", cluster.place / "spawns.c"], check=True)
    return cluster.place / "spawns"


def test_mpirun_of_programs_that_spawn_others(cluster, root, launch, spawns):
    line = f"env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 --map-by ppr:1:node {spawns} {root}"
    text = cluster.ended(cluster.submit(f"{launch} --root {root} {line}", "-N2", "--ntasks-per-node=3", "-w", "node1,node2"))
    found = made(root)
    assert {step for step, _ in found} == {"parent", "child"} and sum(found.values()) == 80 and "80 operations" in text, text


def test_programs_of_mpirun_that_have_hosts_of_their_own(cluster, root, launch, works):
    line = f"mpirun --allow-run-as-root -n 1 --host node1 {works} {root} one : -n 1 --host node2 {works} {root} two"
    text = cluster.ended(cluster.submit(f"{launch} --root {root} {line}", "-N2", "-w", "node1,node2"))
    assert made(root) == {("one", "node1"): 20, ("two", "node2"): 20} and "40 operations" in text, text


def test_a_script_with_mpirun(cluster, root, launch, works):
    steps = script(cluster, "mpi.sh", f"mpirun --allow-run-as-root -n 2 --map-by ppr:1:node {works} {root} one")
    text = cluster.ended(cluster.submit(f"{launch} --root {root} {steps}", "-N2", "-w", "node1,node2"))
    assert made(root) == both("one") and "40 operations" in text, text


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
        srun --overlap -n1 -J daemons {shunt} start --root {root} &
        srun --overlap -n1 {shunt} exec --wait 60 --root {root} -- {works} {root} one || exit 3
        step=$(squeue -s -h -j $SLURM_JOB_ID -o '%i %j' | grep ' daemons$') && scancel --signal=INT ${{step% *}} || exit 4
        wait
        {shunt} export {root}""", "-N1", "-w", "node1"))
    assert made(root) == {("one", "node1"): 20} and "taken over" not in text, text


def test_programs_spawned_on_pretended_nodes(cluster, root, launch, spawns):
    line = f"env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 {spawns} {root}"
    done = cluster.run(launch, "--root", root, "--fake-nodes", 2, *line.split())
    assert done.returncode == 0 and "80 operations" in done.stderr, done.stderr
    assert {step for step, _ in made(root)} == {"parent", "child"}


@pytest.fixture
def twins(cluster):
    cluster.boot_twins()
    yield
    cluster.kill("twin")


def test_several_nodes_of_one_host(cluster, root, launch, works, twins):
    """Each has a daemon, to which its ranks go."""
    steps = script(cluster, "twins.sh", f"srun -n2 {works} {root} two")
    text = cluster.ended(cluster.submit(f"{launch} --root {root} --placement branch --keep srun -n2 {works} {root} one && "
                                        f"ls {root}/.shunt/b/*/*/* && {launch} --root {root} {steps}", "-N2", "-p", "twins"))
    assert ".shunt/b/twin1.1/" in text and ".shunt/b/twin2.1/" in text, text
    assert sum("one.0.twin" in line for line in text.splitlines()) == 20, text
    assert made(root) == {("one", "twin"): 40, ("two", "twin"): 40}, text
