#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""catalogue.py [options]: what catalogues save, and what they take.

Four sessions, one after the other, of a node each, make names in one directory, and in a thousand directories. Then, by turns,
with the catalogues that they left and with these hidden: another node's daemon loads the one directory, and `shunt find -name`
looks through the root; next to find(1) in a plain tree of the same names. On an ext4 of its own, as listing.py: before each, the
kernel's caches are dropped, for which it takes the superuser; without, they are warm, and the findings say so. And on a CephFS:
before each its client is mounted again, and the requests to its metadata server are counted."""

import contextlib
import os
import pathlib
import time

import listing
import measuring
import on_cephfs

COUNTS = {"catalogue-names": (1_000_000, 8_000, "names of the directory that is loaded, and of all others together"),
          "catalogue-cephfs": (100_000, 0, "the same on a CephFS; 0: not there")}
NODES = ["n1", "n2", "n3", "n4"]
FILL = """
import os, sys
top, first, last, directories = sys.argv[1], *map(int, sys.argv[2:5])
for number in range(first, last):
    directory = f"{top}/d{number % directories}" if directories else top
    os.close(os.open(f"{directory}/name-{number:011}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
"""
DROP = pathlib.Path("/proc/sys/vm/drop_caches")


def drop_caches():
    if os.geteuid() == 0:
        os.sync()
        DROP.write_text("3\n")


def make_all(area, names):
    """The native tree, and then each node's share of the names in a session of its own."""
    directories, share = max(1, names // 1000), names // len(NODES)
    measuring.say(f"catalogue: making {names:,} names in one directory and {names:,} in {directories:,}, natively and under shunt")
    for top in (area.plain, area.root):
        for path in ("many", *(f"all/d{number}" for number in range(directories))):
            (top / path).mkdir(parents=True)
    area.run(measuring.PYTHON, "-c", FILL, area.plain / "all", 0, names, directories)
    for number, node in enumerate(NODES):
        area.start(node)
        for top, parts in ((area.root / "many", 0), (area.root / "all", directories)):
            area.under_shunt(measuring.PYTHON, "-c", FILL, top, number * share, (number + 1) * share, parts, node=node)
        area.must_be_redirected()
        area.stop()


@contextlib.contextmanager
def hidden(area, is_hidden):
    """The catalogues, as if there were none."""
    copies = list(area.root.glob(".shunt/b/*/catalogue")) if is_hidden else []
    for copy in copies:
        copy.rename(copy.parent.parent.parent / f"kept-{copy.parent.name}")
    yield
    for copy in copies:
        (copy.parent.parent.parent / f"kept-{copy.parent.name}").rename(copy)


class Measured:
    """Seconds, and what else `counter` counts meanwhile."""

    def __init__(self, options, directory, names, forget=drop_caches, counter=lambda: 0):
        self.options, self.directory, self.names, self.forget, self.counter = options, directory, names, forget, counter
        self.last = f"name-{names - 1:011}"

    def counted(self, work):
        before, began = self.counter(), time.monotonic()
        work()
        return time.monotonic() - began, self.counter() - before

    def first_lookup(self, area, is_hidden):
        with hidden(area, is_hidden):
            self.forget()
            area.start("n9")
            found = self.counted(lambda: area.run(*area.words("stat", area.root / "many" / self.last, node="n9")))
            taken = area.status()["counters"]["catalogue_taken"]
            area.stop()
        if (taken > 0) == is_hidden:
            raise measuring.Failed(f"{taken} directories were taken from catalogues, these {'hidden' if is_hidden else 'there'}")
        return found

    def find(self, area, is_hidden, words):
        with hidden(area, is_hidden):
            self.forget()
            return self.counted(lambda: area.run(*words))

    def measure(self):
        rounds = self.options.rounds
        with measuring.Area(self.options, parent=self.directory) as area:
            make_all(area, self.names)
            ours = [area.shunt, "find", area.root / "all", "-name", self.last]
            self.size = sum(copy.stat().st_size for copy in area.root.glob(".shunt/b/*/catalogue"))
            self.load = measuring.alternate(rounds, "catalogue, load", {
                "catalogues": lambda _: self.first_lookup(area, False), "readdir": lambda _: self.first_lookup(area, True)})
            self.search = measuring.alternate(rounds, "catalogue, find", {
                "catalogues": lambda _: self.find(area, False, ours), "readdir": lambda _: self.find(area, True, ours),
                "find": lambda _: self.find(area, False, ["find", area.plain / "all", "-name", self.last])})

    def findings(self, where, load_least, find_least):
        directories = max(1, self.names // 1000)
        yield measuring.Finding(10, f"first lookup in a directory of {self.names:,} names of 4 branches, {where}", "s",
                                [one["catalogues"][0] for one in self.load])
        yield measuring.Finding(10, "... read: how many times as long", "times",
                                [one["readdir"][0] / one["catalogues"][0] for one in self.load], least=load_least)
        yield measuring.Finding(10, f"shunt find -name, {self.names:,} names in {directories:,} directories, {where}", "s",
                                [one["catalogues"][0] for one in self.search])
        yield measuring.Finding(10, "... without catalogues: how many times as long", "times",
                                [one["readdir"][0] / one["catalogues"][0] for one in self.search])
        yield measuring.Finding(10, "... find(1) in a plain tree: how many times as long", "times",
                                [one["find"][0] / one["catalogues"][0] for one in self.search], least=find_least)

    def requests(self):
        for what, rounds, which in (("first lookup", self.load, ("catalogues", "readdir")),
                                    ("find", self.search, ("catalogues", "readdir", "find"))):
            for way in which:
                yield measuring.Finding(10, f"CephFS, {what}, {way}: requests", "requests", [one[way][1] for one in rounds])


def findings(options):
    names = options.catalogue_names
    with listing.ext4(options, 2 * names) as directory:
        measured = Measured(options, directory, names)
        measured.measure()
    yield measuring.Finding(10, f"catalogues, {2 * names:,} names of 16 bytes", "bytes a name", [measured.size / (2 * names)],
                            most=64)
    yield from measured.findings(f"ext4, {'cold' if os.geteuid() == 0 else 'warm'}", 2, 3)
    if options.catalogue_cephfs > 0:
        with on_cephfs.some_nodes(options, 1) as nodes:
            ceph = nodes.ceph
            measured = Measured(options, ceph.mounts[0], options.catalogue_cephfs, lambda: ceph.mount_again(0), ceph.requests)
            measured.measure()
            yield from measured.findings("CephFS, cold", 5, 10)
            yield from measured.requests()


def measure(options):
    return list(findings(options))


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
