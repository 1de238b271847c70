#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""pass_through.py [options]: how much faster than a file system in user space that only passes calls on (bindfs).

One process makes files, looks at each, and removes them: natively, through bindfs, and under shunt (one node, placement
branch), by turns, in directories of the same file system. Before it looks it waits until the kernel has forgotten what
the FUSE file system told it when the file was made (a second), as it has where somebody else looks. What a look costs
within that second, in which the kernel answers in its place, is told, too."""

import contextlib
import os
import subprocess
import time

import measuring

COUNTS = {"compared-files": (20_000, 200, "files in a round beside bindfs")}
FORGOTTEN = 1.2  # seconds; what a FUSE file system tells is good for one
FEW = 1000  # files; looked at in less than that


@contextlib.contextmanager
def mounted(area):
    """bindfs of a directory, at another one."""
    beneath, mount = area.top / "beneath", area.top / "mount"
    beneath.mkdir()
    mount.mkdir()
    bindfs = subprocess.Popen(["bindfs", "-f", beneath, mount])
    try:
        while not os.path.ismount(mount):
            if bindfs.poll() is not None:
                raise measuring.Failed("bindfs cannot be mounted: it needs FUSE")
            time.sleep(0.01)
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=False)
        bindfs.kill()  # a mount name space that was made meanwhile has the mount still, which it would serve for as long
        bindfs.wait()


def one_round(crew, files, turn):
    """{call: microseconds}."""
    prefix, found = f"r{turn}", {}
    found["create"] = crew.microseconds("create", files, prefix=prefix)
    time.sleep(FORGOTTEN)
    found["stat"] = crew.microseconds("stat", files, prefix=prefix)
    few = min(files, FEW)
    crew.make("stat", few, prefix=prefix)
    found["stat, cached"] = crew.microseconds("stat", few, prefix=prefix)
    found["unlink"] = crew.microseconds("unlink", files, prefix=prefix)
    return found


def findings(rounds):
    """Ratios, then what they are ratios of."""
    for call in rounds[0]["shunt"]:
        times = [one["bindfs"][call] / one["shunt"][call] for one in rounds]
        yield measuring.Finding(3, f"{call}: bindfs's time over shunt's", "x", times,
                                least=None if call == "stat, cached" else 4)
    for way in rounds[0]:
        for call in rounds[0][way]:
            yield measuring.Finding(3, f"{call}, {way}", "us", [one[way][call] for one in rounds])


def measure(options):
    with measuring.Area(options) as area, mounted(area) as mount:
        area.start()
        crews = {"native": area.crew("bench_worker", area.plain, 1), "bindfs": area.crew("bench_worker", mount, 1),
                 "shunt": area.crew("bench_worker", area.root, 1, node="n0")}
        for crew in crews.values():
            crew.make("create", 1, prefix="first")
        area.must_be_redirected()
        ways = {name: lambda turn, crew=crew: one_round(crew, options.compared_files, turn) for name, crew in crews.items()}
        found = list(findings(measuring.alternate(options.rounds, "against bindfs", ways)))
        area.end_crews()
        return found


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
