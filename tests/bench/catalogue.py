#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""catalogue.py [options]: what catalogues save, and what they take.

Four sessions, one after the other, of a node each, make names in one directory, and in a thousand directories. Then, by turns,
with the catalogues that they left and with these hidden: another node's daemon loads the one directory, and `shunt find -name`
looks through the root; next to find(1) in a plain tree of the same names. On an ext4 of its own, as listing.py. Before each, the
kernel's caches are dropped, for which it takes the superuser; without, they are warm, and the findings say so."""

import argparse
import contextlib
import os
import pathlib
import time

import listing
import measuring

COUNTS = {"catalogue-names": (1_000_000, 8_000, "names of the directory that is loaded, and of all others together")}
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


def first_lookup(area, is_hidden, last):
    with hidden(area, is_hidden):
        area.start("n9")
        drop_caches()
        began = time.monotonic()
        area.run(*area.words("stat", area.root / "many" / last, node="n9"))
        took = time.monotonic() - began
        taken = area.status()["counters"]["catalogue_taken"]
        area.stop()
    if (taken > 0) == is_hidden:
        raise measuring.Failed(f"{taken} directories were taken from catalogues, with these {'hidden' if is_hidden else 'there'}")
    return took


def find(area, is_hidden, words):
    with hidden(area, is_hidden):
        drop_caches()
        return area.seconds(*words)


def measure_on(options, directory):
    names = options.catalogue_names
    last = f"name-{names - 1:011}"
    with measuring.Area(options, parent=directory) as area:
        make_all(area, names)
        ours = [area.shunt, "find", area.root / "all", "-name", last]
        size = sum(copy.stat().st_size for copy in area.root.glob(".shunt/b/*/catalogue"))
        load = measuring.alternate(options.rounds, "catalogue, load", {
            "catalogues": lambda _: first_lookup(area, False, last), "readdir": lambda _: first_lookup(area, True, last)})
        search = measuring.alternate(options.rounds, "catalogue, find", {
            "catalogues": lambda _: find(area, False, ours), "readdir": lambda _: find(area, True, ours),
            "find": lambda _: find(area, False, ["find", area.plain / "all", "-name", last])})
        return size, load, search


def findings(options):
    names = options.catalogue_names
    with listing.ext4(argparse.Namespace(**{**vars(options), "listed": 2 * names})) as directory:
        size, load, search = measure_on(options, directory)
        caches = "cold" if os.geteuid() == 0 else "warm"
    yield measuring.Finding(10, f"catalogues, {2 * names:,} names of 16 bytes", "bytes a name", [size / (2 * names)], most=64)
    yield measuring.Finding(10, f"first lookup in a directory of {names:,} names of 4 branches, ext4, {caches}", "s",
                            [one["catalogues"] for one in load])
    yield measuring.Finding(10, "... read: how many times as long", "times", [one["readdir"] / one["catalogues"] for one in load],
                            least=2)
    yield measuring.Finding(10, f"shunt find -name, {names:,} names in {max(1, names // 1000):,} directories, ext4, {caches}", "s",
                            [one["catalogues"] for one in search])
    yield measuring.Finding(10, "... without catalogues: how many times as long", "times",
                            [one["readdir"] / one["catalogues"] for one in search])
    yield measuring.Finding(10, "... find(1) in a plain tree: how many times as long", "times",
                            [one["find"] / one["catalogues"] for one in search], least=3)


def measure(options):
    return list(findings(options))


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
