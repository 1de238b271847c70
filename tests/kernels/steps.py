# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""steps.py DIRECTORY RANK COUNT ADDRESS PORT: one of several nodes that change one directory by turns, each step by one of them;
after each, all say what they see. They meet at the address (meeting.py). Prints what is not as it must be, and at the end how many
steps there were; status 1 if anything was not. STEPS in the environment: how many by turns."""

import errno
import os
import random
import subprocess
import sys

from meeting import Place

STEPS = int(os.environ.get("STEPS", "200"))
CLASHES = 50
REPLACED = 10
WITHOUT = ["env", "-u", "LD_PRELOAD", "sh", "-c"]


def answer(call, *words):
    try:
        return call(*words) or "ok"
    except OSError as error:
        return errno.errorcode[error.errno]


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "x") as file:
        file.write(text)


CALLS = {"mkdir": os.mkdir, "rmdir": os.rmdir, "unlink": os.unlink, "rename": os.rename, "write": write}


class Model:
    """What the directory must hold: names in its directories, a text for a file, None for a directory."""

    def __init__(self):
        self.names = {}

    def do(self, what, path, more=None):
        if what in ("mkdir", "write"):
            if path in self.names:
                return "EEXIST"
            self.names[path] = more
        elif path not in self.names:
            return "ENOENT"
        elif what == "rename":
            return self.rename(path, more)
        elif (self.names[path] is None) != (what == "rmdir"):
            return "ENOTDIR" if what == "rmdir" else "EISDIR"
        else:
            del self.names[path]
        return "ok"

    def rename(self, path, other):
        if other in self.names and path != other and (self.names[path] is None) != (self.names[other] is None):
            return "ENOTDIR" if self.names[path] is None else "EISDIR"
        self.names[other] = self.names.pop(path)
        return "ok"

    def seen(self, places):
        return {place: self.names.get(place, "" if place in self.names else "ENOENT") or "directory" for place in places}


def see(top, places):
    def look(path):
        there = answer(os.stat, path)
        if isinstance(there, str):
            return there
        return "directory" if there.st_mode & 0o040000 else answer(read, path)
    looked = {place: look(f"{top}/{place}") for place in places}  # first: a listing has the kernel forget names
    listed = {f"{d}/{name}" for d in "ab" for name in os.listdir(f"{top}/{d}")}
    return looked, {place: place in listed for place in places}


class Steps:
    def __init__(self, top, rank, count, place):
        self.top, self.rank, self.count, self.all = top, rank, count, place
        self.model = Model()
        self.places = [f"{d}/{name}" for d in "ab" for name in "xyz"]
        self.wrong = 0

    def complain(self, *words):
        self.wrong += 1
        print(f"node {self.rank + 1}:", *words, flush=True)

    def begin(self):
        if self.rank == 0:
            for d in "ab":
                os.makedirs(f"{self.top}/{d}")
        self.all.exchange("begun")
        for d in "ab":
            os.listdir(f"{self.top}/{d}")

    def step(self, by, what, *words):
        must = self.model.do(what, *words)
        self.all.exchange(what)
        if self.rank == by:
            paths = [f"{self.top}/{word}" if word in self.places else word for word in words]
            got = answer(CALLS[what], *paths)
            if got != must:
                self.complain(what, words, "says", got, "and must say", must)
        self.all.exchange("done")
        names = self.model.seen(self.places)
        seen, listed = see(self.top, self.places)
        if seen != names:
            self.complain("after", what, words, "sees", seen, "and must see", names)
        if listed != {place: place in self.model.names for place in self.places}:
            self.complain("after", what, words, "lists", [place for place in self.places if listed[place]])
        self.all.exchange("seen")

    def by_turns(self, seed):
        chance = random.Random(seed)
        for number in range(STEPS):
            by, what = chance.randrange(self.count), chance.choice(list(CALLS))
            one, two = chance.choice(self.places), chance.choice(self.places)
            self.step(by, what, one, *{"write": (str(number),), "rename": (two,)}.get(what, ()))

    def clash(self):
        """All at once: one of them removes it."""
        for _ in range(CLASHES):
            if self.rank == 0:
                os.mkdir(f"{self.top}/clash")
            self.all.exchange("made")
            got = answer(os.rmdir, f"{self.top}/clash")
            answers = sorted(self.all.exchange(got))
            if answers != ["ENOENT"] * (self.count - 1) + ["ok"] and self.rank == 0:
                self.complain("rmdir at once say", answers)

    def replace(self):
        """A program without the library makes another directory in its place; its inode number may be the same."""
        top = f"{self.top}/replaced"
        for number in range(REPLACED):
            if self.rank == 0:
                os.mkdir(top)
            self.all.exchange("made")
            write(f"{top}/old{self.rank}", "old")
            self.all.exchange("filled")
            if self.rank == number % self.count:
                subprocess.run([*WITHOUT, f"rm -r {top} && mkdir {top}"], check=True)
            self.all.exchange("replaced")
            before = os.listdir(top)
            self.all.exchange("listed")
            write(f"{top}/new{self.rank}", "new")
            self.all.exchange("written")
            after = sorted(os.listdir(top))
            if before or after != [f"new{rank}" for rank in range(self.count)]:
                self.complain("another directory lists", before, "and with more files", after)
            self.all.exchange("seen")
            os.unlink(f"{top}/new{self.rank}")
            self.all.exchange("removed")
            if self.rank == 0:
                os.rmdir(top)


def main():
    top, rank, count, address, port = sys.argv[1:]
    steps = Steps(top, int(rank), int(count), Place(rank, address, port))
    steps.begin()
    steps.by_turns(7)
    steps.clash()
    steps.replace()
    wrong = sum(steps.all.exchange(steps.wrong))
    if steps.rank == 0:
        print(f"{STEPS + CLASHES + REPLACED} steps, {wrong} wrong", flush=True)
    sys.exit(wrong != 0)


main()
