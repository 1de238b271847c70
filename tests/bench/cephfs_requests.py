#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""cephfs_requests.py [options]: how many requests a CephFS metadata server handles for a call.

Starts a CephFS of its own (tests/cluster/cephfs.py says what that needs) with two nodes, and then one with four. All make
and remove files at the same time, natively in one directory each, natively in one shared directory, and in a shared
directory under shunt (placement branch, a daemon on each node). Then one makes twice as many, and another opens each 100
files later, natively and under shunt (placement auto). And one makes the first file of each of many directories that another has
made. Counters need no rounds."""

import measuring
import on_cephfs

COUNTS = {"request-files": (500, 100, "files of each node of a CephFS whose requests are counted")}
NODES = (2, 4)
MAKE = """
import os, sys
for number in range(int(sys.argv[2])):
    os.makedirs(f"{sys.argv[1]}/{number}/below")
"""
FILL = """
import os, sys
for number in range(int(sys.argv[2])):
    os.close(os.open(f"{sys.argv[1]}/{number}/below/file", os.O_CREAT | os.O_WRONLY))
"""


def finding(nodes, what, value, most=None):
    return measuring.Finding(1, f"CephFS, {nodes.count} nodes: requests for {what}", "", [value], most=most)


def measure_calls(nodes, how, directories, files, limits=(None, None), **options):
    for call, most in zip(("create", "unlink"), limits):
        measuring.say(f"CephFS, {nodes.count} nodes: requests for {call}, {how}")
        yield finding(nodes, f"{call}, {how}", nodes.measure(call, directories, files, **options), most)


def measure_followed(nodes, how, directory, files, most=None, **options):
    what = f"create, opened by another 100 files later, {how}"
    measuring.say(f"CephFS, {nodes.count} nodes: requests for {what}")
    return finding(nodes, what, nodes.measure_followed(directory, files, **options), most)


def measure_firsts(nodes, how, top, count, run):
    measuring.say(f"CephFS, {nodes.count} nodes: requests for the first file of a directory, {how}")
    run(1, measuring.PYTHON, "-c", MAKE, top, count)
    made = nodes.counted_but_idle(lambda: run(0, measuring.PYTHON, "-c", FILL, top, count))
    return finding(nodes, f"the first file of a directory that another node has made, {how}", made / count)


def measure_all(nodes, files):
    everyone = range(nodes.count)
    own = [nodes.place / f"own{node}" for node in everyone]
    for node, directory in (*zip(everyone, own), (0, nodes.place / "shared"), (0, nodes.place / "looked-into")):
        nodes.run(node, "mkdir", directory)
    yield from measure_calls(nodes, "natively, a directory each", own, files)
    yield from measure_calls(nodes, "natively, one directory", [nodes.place / "shared"] * nodes.count, files)
    with nodes.session("branch"):
        yield measure_firsts(nodes, "under shunt", nodes.root / "many", files // 5, nodes.under_shunt)
        yield from measure_calls(nodes, "under shunt, one directory", [nodes.shared("out")] * nodes.count, files,
                                 limits=(1.02, None), under_shunt=True)
    yield measure_followed(nodes, "natively", nodes.place / "looked-into", 2 * files)
    yield measure_firsts(nodes, "natively", nodes.place / "many", files // 5, nodes.run)
    with nodes.session("auto"):
        nodes.under_shunt(0, "mkdir", nodes.root / "looked-into")
        yield measure_followed(nodes, "under shunt", nodes.root / "looked-into", 2 * files, most=1.4, under_shunt=True)


def measure(options):
    found = []
    for count in NODES:
        with on_cephfs.some_nodes(options, count) as nodes:
            found += measure_all(nodes, options.request_files)
    return found


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
