# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""steps.py DIRECTORY RANK ADDRESS: one of two nodes that change one directory by turns, each step by one of them; after each, both
say what they see. Prints what is not as it must be, and at the end how many steps there were; status 1 if anything was not."""

import errno
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import time

PORT = itertools.count(9300)
STEPS = 200
CLASHES = 50
REPLACED = 10
WITHOUT = ["env", "-u", "LD_PRELOAD", "sh", "-c"]


class Other:
    """The other node; nothing goes through the file system."""

    def __init__(self, rank, address):
        self.rank = rank
        self.socket = self.accept() if rank == 0 else self.connect(address)
        self.told, self.heard = self.socket.makefile("w"), self.socket.makefile("r")

    @staticmethod
    def accept():
        with socket.create_server(("", next(PORT)), reuse_port=True) as server:
            return server.accept()[0]

    @staticmethod
    def connect(address):
        port = next(PORT)
        for _ in range(600):
            try:
                return socket.create_connection((address, port))
            except OSError:
                time.sleep(0.1)
        sys.exit(f"{address}: the other node does not answer")

    def exchange(self, what):
        """What the other one gives for it: both have come here by then."""
        print(json.dumps(what), file=self.told, flush=True)
        return json.loads(self.heard.readline())


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
    def __init__(self, top, rank, other):
        self.top, self.rank, self.other = top, rank, other
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
        self.other.exchange("begun")
        for d in "ab":
            os.listdir(f"{self.top}/{d}")

    def step(self, by, what, *words):
        must = self.model.do(what, *words)
        self.other.exchange(what)
        if self.rank == by:
            paths = [f"{self.top}/{word}" if word in self.places else word for word in words]
            got = answer(CALLS[what], *paths)
            if got != must:
                self.complain(what, words, "says", got, "and must say", must)
        self.other.exchange("done")
        names = self.model.seen(self.places)
        seen, listed = see(self.top, self.places)
        if seen != names:
            self.complain("after", what, words, "sees", seen, "and must see", names)
        if listed != {place: place in self.model.names for place in self.places}:
            self.complain("after", what, words, "lists", [place for place in self.places if listed[place]])
        self.other.exchange("seen")

    def by_turns(self, seed):
        chance = random.Random(seed)
        for number in range(STEPS):
            by, what = chance.randrange(2), chance.choice(list(CALLS))
            one, two = chance.choice(self.places), chance.choice(self.places)
            self.step(by, what, one, *{"write": (str(number),), "rename": (two,)}.get(what, ()))

    def clash(self):
        """Both at once: one of them removes it."""
        for _ in range(CLASHES):
            if self.rank == 0:
                os.mkdir(f"{self.top}/clash")
            self.other.exchange("made")
            got = answer(os.rmdir, f"{self.top}/clash")
            both = sorted((got, self.other.exchange(got)))
            if both != ["ENOENT", "ok"] and self.rank == 0:
                self.complain("two rmdir at once say", both)

    def replace(self):
        """A program without the library makes another directory in its place; its inode number may be the same."""
        top = f"{self.top}/replaced"
        for number in range(REPLACED):
            if self.rank == 0:
                os.mkdir(top)
            self.other.exchange("made")
            write(f"{top}/old{self.rank}", "old")
            self.other.exchange("filled")
            if self.rank == number % 2:
                subprocess.run([*WITHOUT, f"rm -r {top} && mkdir {top}"], check=True)
            self.other.exchange("replaced")
            before = os.listdir(top)
            self.other.exchange("listed")
            write(f"{top}/new{self.rank}", "new")
            self.other.exchange("written")
            after = sorted(os.listdir(top))
            if before or after != ["new0", "new1"]:
                self.complain("another directory lists", before, "and with two more files", after)
            self.other.exchange("seen")
            os.unlink(f"{top}/new{self.rank}")
            self.other.exchange("removed")
            if self.rank == 0:
                os.rmdir(top)


def main():
    top, rank, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    steps = Steps(top, rank, Other(rank, address))
    steps.begin()
    steps.by_turns(7)
    steps.clash()
    steps.replace()
    wrong = steps.wrong + steps.other.exchange(steps.wrong)
    if rank == 0:
        print(f"{STEPS + CLASHES + REPLACED} steps, {wrong} wrong", flush=True)
    sys.exit(wrong != 0)


main()
