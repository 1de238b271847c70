#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""loading.py [options]: how long the first answer takes that needs a directory to be loaded.

A daemon that is killed, with names that four nodes made in one directory: the first stat after that. And a directory with a few
names in a mirror of each of so many nodes, whose daemons all are there, on this machine: the first lookup, in memory and on a file
system that needs so long for each lookup and each part of a listing (slow_file_system.py). --build of an older version tells what
that took."""

import os
import signal
import statistics
import time

import catalogue
import measuring
import remote

COUNTS = {"loaded-names": (1_000_000, 8_000, "names of the directory of the daemon that is killed"),
          "slow-look": (500, 100, "microseconds for a lookup on the slow file system")}
DAEMONS = (2, 8, 24)
DIRECTORIES = 8
LOOK = """
import os, sys, time
began = time.perf_counter()
found = os.path.exists(sys.argv[1])
print(time.perf_counter() - began)
sys.exit(found)
"""


def fill(area, names):
    (area.root / "many").mkdir()
    share = names // len(catalogue.NODES)
    for number, node in enumerate(catalogue.NODES):
        area.start(node)
        area.under_shunt(measuring.PYTHON, "-c", catalogue.FILL, area.root / "many", number * share, (number + 1) * share, 0, node=node)
        area.must_be_redirected()
        area.stop()


def after_a_kill(area, names):
    """From the kill to the answer of the daemon that follows, which has loaded all."""
    last = area.root / "many" / f"name-{names - 1:011}"
    area.start("n1")
    area.run(*area.words("stat", last, node="n1"))
    killed = area.daemons()["n1"]["pid"]
    began = time.monotonic()
    os.kill(killed, signal.SIGKILL)
    while os.path.exists(f"/proc/{killed}"):
        time.sleep(0.001)
    area.run(*area.words("stat", last, node="n1"))
    took = time.monotonic() - began
    told = area.status()
    area.stop()
    if told["members"][0]["pid"] == killed or told["counters"]["index_keys"] < names:
        raise measuring.Failed("the daemon was not started again, or has not loaded the names")
    return took


def first_lookups(options, parent, count):
    """Seconds, of each directory."""
    nodes = [f"n{number}" for number in range(count)]
    with measuring.Area(options, parent=parent) as area:
        outs = [area.root / f"out{number}" for number in range(DIRECTORIES)]
        for out in outs:
            out.mkdir()
        for node in nodes:
            area.start(node)
            area.under_shunt("touch", *(out / f"of-{node}" for out in outs), node=node)
            area.stop()
        area.start(*nodes)
        remote.await_homes(area)
        area.under_shunt("ls", area.root, node="n1")
        return [float(area.under_shunt(measuring.PYTHON, "-c", LOOK, out / "absent", node="n1")) for out in outs]


def findings(options):
    names = options.loaded_names
    with measuring.Area(options, parent=measuring.MEMORY) as area:
        fill(area, names)
        took = []
        for turn in range(options.rounds):
            measuring.say(f"loading, after a kill: round {turn + 1} of {options.rounds}")
            took.append(after_a_kill(area, names))
        yield measuring.Finding(12, f"first stat after a daemon was killed, {names:,} names of 4 branches, tmpfs", "s", took, most=1)
    with remote.slow_file_system(options, options.slow_look, "look") as slow:
        for parent, where in (measuring.MEMORY, "tmpfs"), (slow, f"a lookup needs {options.slow_look} us"):
            for count in DAEMONS:
                measuring.say(f"loading: {count} daemons, {where}")
                found = [statistics.median(first_lookups(options, parent, count))]
                yield measuring.Finding(12, f"first lookup, mirrors of {count} nodes, {where}", "ms", [1e3 * one for one in found])


def measure(options):
    return list(findings(options))


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
