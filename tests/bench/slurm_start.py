#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""slurm_start.py [options]: how long a job of Slurm waits for shunt when it begins and when it ends.

Starts a Slurm of its own (tests/slurm/slurm_cluster.py says what that needs), all of whose nodes are on this machine, with a job of
all of them. In it, by turns: shunt-launch, from its begin to that of the job's command, and from the end of the command to its own;
the same by steps, `srun shunt start` and `srun shunt exec --wait`, then `shunt stop --all`; a plain srun. Nothing is exported.

Without --dir it measures below TMPDIR: each node has a /dev/shm of its own, and the root is to be one for all."""

import contextlib
import pathlib
import shutil
import sys
import tempfile

import measuring

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "slurm"))

import slurm_cluster  # noqa: E402

COUNTS = {"slurm-nodes": (16, 2, "nodes of a job of Slurm")}
FIGURE = 15
LIMITS = {"start": 3, "stop": 1}
WAYS = ("launch", "steps", "srun")
ON_EACH = "srun --overlap --ntasks-per-node=1"

# Round $1, a way, the directory of all of it: prints the way, and in nanoseconds when what was wanted.
JOB = """#!/bin/bash
set -e
root=$3/root-$1-$2
mkdir $root
began=$(date +%s%N)
case $2 in
launch)
    {tools}/shunt-launch --root $root --keep $3/command
    ended=$(date +%s%N)
    read ready <$3/begun
    echo took launch $((ready - began)) $((ended - ready)) ;;
steps)
    {each} {tools}/shunt start --root $root &
    {each} {tools}/shunt exec --wait 60 --root $root -- $3/command
    ready=$(sort -n $3/begun | tail -n 1)
    stop=$(date +%s%N)
    {tools}/shunt stop --all --root $root
    echo took steps $((ready - began)) $(($(date +%s%N) - stop))
    wait ;;
srun)
    {each} true
    echo took srun $(($(date +%s%N) - began)) 0 ;;
esac
rm -f $3/begun
"""


@contextlib.contextmanager
def some_slurm(options):
    """For as long as the block lasts."""
    if slurm_cluster.what_is_missing():
        raise measuring.Failed(slurm_cluster.what_is_missing())
    place = tempfile.mkdtemp(prefix="shunt-slurm.", dir=None if str(options.dir) == measuring.MEMORY else options.dir)
    try:
        slurm = slurm_cluster.Cluster(place, options.slurm_nodes)
        try:
            slurm.start()
            yield slurm
        except AssertionError as failure:
            raise measuring.Failed(str(failure)) from failure
        finally:
            slurm.stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def times(slurm, build, nodes, rounds):
    """[{way: (seconds until it serves, seconds until it has ended)}] of a job of so many nodes."""
    top = slurm.place / "bench"
    top.mkdir()
    executable(top / "command", f"#!/bin/sh\ndate +%s%N >>{top}/begun\n")
    job = executable(top / "job", JOB.format(tools=build / "tools", each=ON_EACH))
    order = [(turn, way) for turn in range(rounds) for way in measuring.order_of(list(WAYS), turn)]
    script = "".join(f"{job} {turn} {way} {top} || exit 1\n" for turn, way in order)
    said = slurm.ended(slurm.submit(script, f"-N{nodes}", f"-n{nodes}", "--ntasks-per-node=1"))
    found = [line.split()[1:] for line in said.splitlines() if line.startswith("took ")]
    if [way for way, _, _ in found] != [way for _, way in order]:
        raise measuring.Failed(f"the job of Slurm: {said}")
    shutil.rmtree(top)
    return {way: [(int(first) / 1e9, int(last) / 1e9) for name, first, last in found if name == way] for way in WAYS}


def findings(found, nodes):
    said = {"launch": ("shunt-launch: its daemons serve", "shunt-launch: they have ended"),
            "steps": ("steps: all commands have begun", "shunt stop --all")}
    for way, (start, stop) in said.items():
        limits = LIMITS if way == "launch" else {}
        yield measuring.Finding(FIGURE, f"{nodes} nodes of a Slurm, {start}", "s", [one for one, _ in found[way]],
                                most=limits.get("start"))
        yield measuring.Finding(FIGURE, f"{nodes} nodes of a Slurm, {stop}", "s", [one for _, one in found[way]],
                                most=limits.get("stop"))
    yield measuring.Finding(FIGURE, f"{nodes} nodes of a Slurm, a plain srun", "s", [one for one, _ in found["srun"]])


def measure(options):
    measuring.say(f"a Slurm of {options.slurm_nodes} nodes, {options.rounds} rounds")
    with some_slurm(options) as slurm:
        return list(findings(times(slurm, options.build, options.slurm_nodes, options.rounds), options.slurm_nodes))


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
