#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""cephfs_requests.py [--build DIR] [--files N]: how many requests a CephFS metadata server handles for a call.

Starts a CephFS of its own (tests/cluster/cephfs.py says what that needs) with two nodes. Both make and remove files at
the same time, natively in one directory each, natively in one shared directory, and in a shared directory under shunt
(placement branch, a daemon on each node). Then one makes twice as many, and the other opens each 100 files later,
natively and under shunt (placement auto)."""

import argparse
import pathlib
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "cluster"))

import cephfs  # noqa: E402


def show(name, nodes, directories, count, **options):
    made, removed = (nodes.measure(what, directories, count, **options) for what in ("create", "unlink"))
    print(f"{name:44} {made:10.2f} {removed:10.2f}", flush=True)


def show_followed(nodes, name, directory, count, **options):
    print(f"{name:44} {nodes.measure_followed(directory, count, **options):10.2f}", flush=True)


def measure_all(nodes, count):
    print(f"{'requests a call, two nodes at once':44} {'create':>10} {'unlink':>10}")
    for node, directory in ((0, "own0"), (1, "own1"), (0, "shared"), (0, "looked-into")):
        nodes.run(node, "mkdir", nodes.place / directory)
    show("natively, a directory each", nodes, [nodes.place / "own0", nodes.place / "own1"], count)
    show("natively, one directory", nodes, [nodes.place / "shared"] * 2, count)
    with nodes.session("branch"):
        nodes.shared("out")
        show("under shunt, one directory", nodes, [nodes.root / "out"] * 2, count, under_shunt=True)
    show_followed(nodes, "natively, opened by the other", nodes.place / "looked-into", 2 * count)
    with nodes.session("auto"):
        nodes.under_shunt(0, "mkdir", nodes.root / "looked-into")
        show_followed(nodes, "under shunt, opened by the other", nodes.root / "looked-into", 2 * count,
                      under_shunt=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TESTS.parent / "build", help="the build directory")
    parser.add_argument("--files", type=int, default=500, help="files of each node")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shunt-cephfs.", ignore_cleanup_errors=True) as top:
        with cephfs.two_nodes(top, options.build) as nodes:
            measure_all(nodes, options.files)


main()
