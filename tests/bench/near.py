#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""near.py --build DIRECTORY [options]: what it is worth on a CephFS that a process keeps descriptors of leaves (lib/shim/fdcache.h).

DIRECTORY is a build with hooks (-Dhooks=true), whose daemons can be told to have none kept. Starts a CephFS of its own
(tests/cluster/cephfs.py says what that needs) with two nodes. Each makes, renames and removes files in a shared directory under shunt
(placement branch) at the same time, and opens those of the other before they are removed; with descriptors and without, by turns.
Counted are the answers of the clients (ceph-fuse) to the kernel: a message for each part of a path, and for each call."""

import measuring
import on_cephfs
from on_cephfs import cephfs

COUNTS = {"near-files": (300, 60, "files of each node of a CephFS whose messages are counted")}
WAYS = {"kept": "", "not kept": "far"}
CALLS = ("create", "open", "unlink", "rename")


class Counting:
    """Messages of the clients for a call, which both nodes make at the same time."""

    def __init__(self, nodes, files):
        self.nodes, self.files = nodes, files

    def own(self, call, directory):
        return self.nodes.measure(call, [directory] * 2, self.files, counter=cephfs.CephFS.answers, under_shunt=True)

    def opened(self, directory):
        """Files of the other one."""
        made = self.nodes.counted_but_idle(lambda: self.nodes.together(
            *(self.nodes.work(node, "open", directory, self.files, maker=1 - node, under_shunt=True) for node in range(2))),
            cephfs.CephFS.answers)
        return made / self.files / 2


def messages(nodes, way, turn, files):
    nodes.environment["SHUNT_BREAK"] = WAYS[way]
    counting = Counting(nodes, files)
    with nodes.session("branch"):
        first, second = (nodes.shared(f"{place}-{turn}-{len(way)}") for place in ("first", "second"))
        counted = {"create": counting.own("create", first), "open": counting.opened(first), "unlink": counting.own("unlink", first)}
        counting.own("create", second)
        return {**counted, "rename": counting.own("rename", second)}


def measure(options):
    with on_cephfs.some_nodes(options, 2) as nodes:
        ways = {way: lambda turn, way=way: messages(nodes, way, turn, options.near_files) for way in WAYS}
        rounds = measuring.alternate(options.rounds, "descriptors of leaves", ways)
    return [measuring.Finding(1, f"CephFS, messages of a client for {call}, descriptors {way}", "", [one[way][call] for one in rounds])
            for call in CALLS for way in WAYS]


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
