#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""cephfs_requests.py [options]: how many requests a CephFS metadata server handles for a call.

Starts a CephFS of its own (tests/cluster/cephfs.py says what that needs) with two nodes. Both make and remove files at
the same time, natively in one directory each, natively in one shared directory, and in a shared directory under shunt
(placement branch, a daemon on each node). Then one makes twice as many, and the other opens each 100 files later,
natively and under shunt (placement auto). Counters need no rounds."""

import pathlib
import sys
import tempfile

import measuring

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "cluster"))

import cephfs  # noqa: E402

COUNTS = {"request-files": (500, 100, "files of each node of a CephFS whose requests are counted")}


def finding(what, value, most=None):
    return measuring.Finding(1, f"CephFS, 2 nodes: requests for {what}", "", [value], most=most)


def measure_calls(nodes, how, directories, count, limits=(None, None), **options):
    for call, most in zip(("create", "unlink"), limits):
        measuring.say(f"CephFS: requests for {call}, {how}")
        yield finding(f"{call}, {how}", nodes.measure(call, directories, count, **options), most)


def measure_followed(nodes, how, directory, count, most=None, **options):
    measuring.say(f"CephFS: requests for create, opened by the other 100 files later, {how}")
    return finding(f"create, opened by the other 100 files later, {how}", nodes.measure_followed(directory, count, **options),
                   most)


def measure_all(nodes, count):
    for node, directory in ((0, "own0"), (1, "own1"), (0, "shared"), (0, "looked-into")):
        nodes.run(node, "mkdir", nodes.place / directory)
    yield from measure_calls(nodes, "natively, a directory each", [nodes.place / "own0", nodes.place / "own1"], count)
    yield from measure_calls(nodes, "natively, one directory", [nodes.place / "shared"] * 2, count)
    with nodes.session("branch"):
        nodes.shared("out")
        yield from measure_calls(nodes, "under shunt, one directory", [nodes.root / "out"] * 2, count, limits=(1.02, None),
                                 under_shunt=True)
    yield measure_followed(nodes, "natively", nodes.place / "looked-into", 2 * count)
    with nodes.session("auto"):
        nodes.under_shunt(0, "mkdir", nodes.root / "looked-into")
        yield measure_followed(nodes, "under shunt", nodes.root / "looked-into", 2 * count, most=1.4, under_shunt=True)


def measure(options):
    if cephfs.what_is_missing():
        raise measuring.Failed(cephfs.what_is_missing())
    with tempfile.TemporaryDirectory(prefix="shunt-cephfs.", ignore_cleanup_errors=True) as top:
        try:
            with cephfs.two_nodes(top, options.build) as nodes:
                return list(measure_all(nodes, options.request_files))
        except cephfs.Failed as failure:
            raise measuring.Failed(str(failure)) from failure


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
