#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""leaving.py [options]: what a job pays for files that leave while it computes (--export background).

Starts a CephFS of its own (tests/cluster/cephfs.py says what that needs). On each node a process makes the files of a
checkpoint in a directory that all share, and computes for a while, again and again; by turns with --export background, as
shunt-launch has it on each node, and without. Said is how much longer the job takes, how many of its files have not left
when it ends, what the moving cost in requests to the metadata server and processor time, and how long the export takes
after it.

To compute is to sleep here: all processes share this machine's processors, and those of the servers are not the job's."""

import json
import pathlib
import subprocess
import sys
import time

import measuring
import on_cephfs

COUNTS = {"leaving-files": (300, 20, "files of each node in a checkpoint"),
          "leaving-checkpoints": (4, 2, "checkpoints of a job"), "leaving-pause": (15, 3, "seconds between two checkpoints")}
NODES, QUIET = 2, 2

JOB = """
import os, sys, time
top, node, files, checkpoints, pause = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
for number in range(checkpoints):
    directory = f"{top}/checkpoint-{number}"
    os.makedirs(directory, exist_ok=True)
    for i in range(files):
        with open(f"{directory}/{node}.{i}", "wb") as file:
            file.write(b"x" * 1000)
    time.sleep(pause)
"""

class Keeper:
    """What shunt-launch starts on a node: it keeps a daemon, and with --export background what moves files."""

    def __init__(self, nodes, node, *words):
        self.process = nodes.begin(node, nodes.shunt.with_name("shunt-launch"), "--keep-node", "--root", nodes.root, "--node",
                                   f"n{node}", "--placement", "branch", *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def serves(self):
        if b" serves" not in self.process.stdout.readline():
            raise measuring.Failed("a daemon does not serve")

    def moving(self):
        """Microseconds of processor time of what moves files."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return sum(measuring.cpu_of(int(pid)) for pid in children
                   if b"--keep-node" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())

    def end(self):
        self.process.communicate()


def work(nodes, options):
    """Until the job ends: {what: how much}."""
    before, began = nodes.ceph.requests(), time.monotonic()
    jobs = [nodes.begin(node, *nodes.tool(node, "exec", "--", sys.executable, "-c", JOB, nodes.root, node, options.leaving_files,
                                          options.leaving_checkpoints, options.leaving_pause)) for node in range(NODES)]
    if any([job.wait() for job in jobs]):
        raise measuring.Failed("a job failed")
    return {"seconds": time.monotonic() - began, "requests": nodes.ceph.requests() - before}


def measure_job(nodes, options, turn, *words):
    """The same of one job in a root of its own, and of the export after it."""
    nodes.root = nodes.place / f"root-{turn}-{len(words)}"
    nodes.run(0, "mkdir", nodes.root)
    keepers = [Keeper(nodes, node, *words) for node in range(NODES)]
    try:
        for keeper in keepers:
            keeper.serves()
        found = work(nodes, options)
        found["processor"] = sum(keeper.moving() for keeper in keepers)
    finally:
        for keeper in keepers:
            keeper.end()
    before, began = nodes.ceph.requests(), time.monotonic()
    report = nodes.begin(0, nodes.shunt, "export", "--json", nodes.root, stdout=subprocess.PIPE).communicate()[0]
    return {**found, "left": json.loads(report)["files"], "export": time.monotonic() - began,
            "exporting": nodes.ceph.requests() - before}


def measure(options):
    with on_cephfs.some_nodes(options, NODES) as nodes:
        ways = {"never": lambda turn: measure_job(nodes, options, turn),
                "background": lambda turn: measure_job(nodes, options, turn, "--quiet", QUIET)}
        rounds = measuring.alternate(options.rounds, "files leave", ways)
    never, live = ([one[name] for one in rounds] for name in ("never", "background"))
    whole = options.leaving_files * options.leaving_checkpoints * NODES
    return [measuring.Finding(13, "job with --export background over never", "x",
                              [b["seconds"] / a["seconds"] for a, b in zip(never, live)], most=1.02),
            measuring.Finding(13, "job with --export never", "s", [one["seconds"] for one in never]),
            *(measuring.Finding(13, f"requests a file, job and export, {name}", "",
                                [(one["requests"] + one["exporting"]) / whole for one in jobs])
              for name, jobs in (("background", live), ("never", never))),
            measuring.Finding(13, "requests a file, job alone, never", "", [one["requests"] / whole for one in never]),
            measuring.Finding(13, "processor time for a file of what moves it", "us",
                              [one["processor"] / whole for one in live]),
            measuring.Finding(13, "files that have not left when the job ends", "of all", [one["left"] / whole for one in live]),
            measuring.Finding(13, "export after the job, background", "s", [one["export"] for one in live]),
            measuring.Finding(13, "export after the job, never", "s", [one["export"] for one in never])]


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
