#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""cephfs_export.py [options]: is an export sooner done by several processes, each with directories of its own?

Starts a CephFS of its own (tests/cluster/cephfs.py says what that needs). All nodes make files in each of some directories, as
many as there are nodes, under shunt (placement branch). Then the directories are exported: by one node, one after the other; by
one node, all at the same time; or each by another node, at the same time; by turns. Since an export takes a whole root, each
directory is in a root of its own.
What is measured is the time of the exports, and the requests to the metadata server."""

import copy
import statistics
import subprocess
import time

import cephfs_rates
import measuring
import on_cephfs

COUNTS = {"files": (500, 50, "files of each node in each directory"), "nodes": (2, 2, "nodes of a CephFS")}


def make_roots(nodes, turn, files):
    """As many roots as nodes, each with files of all nodes in one directory."""
    roots = []
    for number in range(nodes.count):
        one = copy.copy(nodes)
        one.root = nodes.place / f"{turn}-{number}"
        with one.session("branch"), cephfs_rates.crews_of(one, "shunt", turn) as (crews, where):
            for node, crew in enumerate(crews):
                crew[where[node]].make("create", files, prefix=f"file-{node}")
        roots.append(one.root)
    return roots


def export_of(nodes, node, root):
    return subprocess.Popen([str(word) for word in nodes.words(node, nodes.shunt, "export", root)], env=nodes.environment,
                            stdout=subprocess.DEVNULL)


def measure_exports(nodes, turn, files, spread, at_once):
    roots = make_roots(nodes, turn, files)
    cephfs_rates.come_to_rest(nodes)
    requests, began, running = nodes.ceph.requests(), time.monotonic(), []
    for number, root in enumerate(roots):
        running.append(export_of(nodes, number if spread else 0, root))
        if not at_once:
            running[-1].wait()
    if any(process.wait() != 0 for process in running):
        raise measuring.Failed("an export failed")
    seconds, whole = time.monotonic() - began, files * nodes.count * len(roots)
    return {"seconds": seconds, "requests": (nodes.ceph.requests() - requests) / whole}


# Are they spread over the nodes, and at the same time?
WAYS = {"one after the other": (False, False), "one node at once": (False, True), "a node for each": (True, True)}


def measure(options, show=lambda rounds: None):
    with on_cephfs.some_nodes(options, options.nodes) as nodes:
        def measure_way(number, how):
            return lambda turn: measure_exports(nodes, f"{turn}-{number}", options.files, *how)

        ways = {name: measure_way(number, how) for number, (name, how) in enumerate(WAYS.items())}
        rounds = measuring.alternate(options.rounds, f"CephFS, {options.nodes} nodes", ways)
    show(rounds)
    first, what = next(iter(WAYS)), f"CephFS, {options.nodes} directories, export"
    for name in list(WAYS)[1:]:
        yield measuring.Finding(1, f"{what}: time of {name} over {first}", "x",
                                [one[name]["seconds"] / one[first]["seconds"] for one in rounds])
    for name in WAYS:
        yield measuring.Finding(1, f"{what}, {name}: requests a file", "", [one[name]["requests"] for one in rounds])


def show_seconds(rounds):
    for name in rounds[0]:
        print(f"{name}: {statistics.median(one[name]['seconds'] for one in rounds):.2f} s")


if __name__ == "__main__":
    measuring.main(lambda options: list(measure(options, show_seconds)), __doc__, COUNTS)
