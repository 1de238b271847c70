#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""listing.py [options]: a directory of many names, half of them in each of two nodes' branches, listed natively and under
shunt.

On an ext4 of its own in memory, which the superuser can mount; else on --dir, if that is ext4. Names are made natively in
one directory, and under shunt by a process on each of two nodes at the same time. Listed is by turns, on one node: with
readdir, and with `ls -l`, which looks at each name. Native names and caches are warm: shunt does not gain by a disk here.
A session of one node, which is home of all names, is told next to it."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

import measuring

COUNTS = {"listed": (1_000_000, 2_000, "names of the directory that is listed")}
INODES = 2.2  # for a name: one natively, one under shunt
BYTES = 900  # of the file system, for a name


@contextlib.contextmanager
def ext4(options, names):
    """Where there is one."""
    if os.geteuid() != 0:
        if measuring.file_system(options.dir) != "ext4":
            raise measuring.Failed("an ext4 is needed: the superuser can mount one, or --dir is on one")
        yield options.dir
        return
    with tempfile.TemporaryDirectory(prefix="shunt-bench-ext4.", dir=measuring.MEMORY) as top:
        image, mount = pathlib.Path(top) / "image", pathlib.Path(top) / "mount"
        mount.mkdir()
        with open(image, "wb") as file:
            file.truncate((64 << 20) + names * BYTES * 2)
        inodes = int(names * INODES) + 1000
        subprocess.run(["mkfs.ext4", "-q", "-N", str(inodes), image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mount], check=True)
        try:
            yield mount
        finally:
            subprocess.run(["umount", mount], check=True)


def who_serves(nodes):
    return f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"


def make_all(area, nodes, names):
    """The same names natively and under shunt."""
    area.start(*nodes)
    (area.plain / "many").mkdir()
    area.under_shunt("mkdir", area.root / "many")
    measuring.say(f"listing: making {names:,} names natively, and then on {who_serves(nodes)}")
    for number, _ in enumerate(nodes):
        crew = area.crew("bench_worker", area.plain / "many", 1)
        crew.make("create", names // len(nodes), prefix=f"n{number}")
    crews = [area.crew("bench_worker", area.root / "many", 1, node=node) for node in nodes]
    for number, crew in enumerate(crews):
        crew.begin("create", names // len(nodes), prefix=f"n{number}")
    for crew in crews:
        crew.wait()
    area.must_be_redirected()


def ways_of(area):
    """{what and how: function of the round's number}."""
    native = area.crew("bench_worker", area.plain / "many", 1)
    shunt = area.crew("bench_worker", area.root / "many", 1, node="n0")
    long = ["ls", "-l"]
    return {"readdir": {"native": lambda _: native.make("list", 1)[0][0],
                        "shunt": lambda _: shunt.make("list", 1)[0][0]},
            "ls -l": {"native": lambda _: area.seconds(*long, area.plain / "many"),
                      "shunt": lambda _: area.seconds(*area.words(*long, area.root / "many"))}}


def must_be_all(area, names):
    """A listing that lacks names would be a quick one."""
    seen = len(area.under_shunt("ls", "-U", area.root / "many").split())
    if seen != names:
        raise measuring.Failed(f"{seen} names of {names} are listed")


def measure_session(options, mount, nodes):
    """{what: [{way: seconds}]}"""
    with measuring.Area(options, mount) as area:
        names = options.listed // len(nodes) * len(nodes)
        make_all(area, nodes, names)
        must_be_all(area, names)
        who = who_serves(nodes)
        for what, ways in ways_of(area).items():
            rounds = measuring.alternate(options.rounds, f"{what} of {names:,} names, {who}", ways)
            limit = 1 if len(nodes) > 1 else None
            yield measuring.Finding(4, f"{what} of {names:,} names, {who}: time over native ext4's", "x",
                                    [one["shunt"] / one["native"] for one in rounds], most=limit)
            for way in ("native", "shunt"):
                yield measuring.Finding(4, f"... {way}, for a name", "us", [one[way] / names * 1e6 for one in rounds])


def measure(options):
    found = []
    for nodes in (("n0", "n1"), ("n0",)):
        with ext4(options, options.listed) as mount:
            found += measure_session(options, mount, nodes)
    return found


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
