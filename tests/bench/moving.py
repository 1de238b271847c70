#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""moving.py [options]: an export of many files of one branch, and mv of the same files from one directory into another.

On an ext4 of its own in memory, which the superuser can mount; else on --dir, if that is ext4. By turns, each time of fresh files:
what is measured is the time of the command. A branch is laid out by hand as a session leaves it."""

import pathlib
import shutil
import subprocess
import sys
import time

import listing
import measuring

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "node"))

from union_on_disk import Union

COUNTS = {"moved": (100_000, 1_000, "files that are moved")}


def timed(*words):
    began = time.monotonic()
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def make_files(directory, count):
    for number in range(count):
        (directory / f"file.{number:06}").touch()


def must_be_all(directory, count):
    if len(list(directory.iterdir())) != count:
        raise measuring.Failed("files are missing")


def measure_mv(place, count):
    source, target = place / "mv" / "from", place / "mv" / "to"
    source.mkdir(parents=True)
    target.mkdir()
    make_files(source, count)
    seconds = timed("sh", "-c", "find \"$0\" -type f -print0 | xargs -0 mv -t \"$1\"", source, target)
    must_be_all(target, count)
    shutil.rmtree(place / "mv")
    return seconds


def measure_export(place, count, shunt):
    union = Union(place / "root")
    make_files(union.leaf("n1.1", union.mark("out", 1)), count)
    seconds = timed(shunt, "export", union.root)
    must_be_all(union.root / "out", count)
    shutil.rmtree(union.root)
    return seconds


def measure(options):
    with listing.ext4(options, options.moved) as place:
        ways = {"mv": lambda _: measure_mv(place, options.moved),
                "export": lambda _: measure_export(place, options.moved, options.build / "tools" / "shunt")}
        rounds = measuring.alternate(options.rounds, f"{options.moved:,} files", ways)
    return [measuring.Finding(16, f"ext4, export of {options.moved:,} files: time over that of mv", "x",
                              [one["export"] / one["mv"] for one in rounds], most=1),
            *(measuring.Finding(16, f"... {way}, for a file", "us", [one[way] / options.moved * 1e6 for one in rounds]) for way in ways)]


if __name__ == "__main__":
    measuring.main(measure, __doc__, COUNTS)
