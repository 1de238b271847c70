# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""Renames and links between two roots, and over the edge of one, have the outcome of a native run; EXDEV is for two file
systems, two mounts, and for directories."""

import re
import sys

import pytest

from conftest import HERE, IS_SUPERUSER, PYTHON, assert_equal_text, assert_plain, run

PROGRAM = HERE / "two_roots.py"
REFUSED = re.compile(r"^(rename|noreplace|exchange) .*(directory|full).* = EXDEV \|")


class Ground:
    """Two directories for a native run, and two like them that are roots; or only one of those is."""

    def __init__(self, shunt, area, roots="ab"):
        self.shunt, self.area = shunt, area
        self.roots = [word for name in roots for word in ("--root", self.top("shunt", name))]
        for kind in "plain", "shunt":
            for name in "ab":
                self.top(kind, name).mkdir(parents=True)

    def top(self, kind, name):
        return self.area / kind / name

    def both(self, one, other, placement):
        words = {kind: [self.top(kind, name) for name in (one, other)] for kind in ("plain", "shunt")}
        for kind in words:
            run([PYTHON, PROGRAM, "prepare", *words[kind]]).check()
        native = run([PYTHON, PROGRAM, "run", *words["plain"]]).check()
        seen = self.shunt("run", *self.roots, "--placement", placement, "--keep", "--", PYTHON, PROGRAM, "run",
                          *words["shunt"]).check()
        return native, seen


def without_directories(native, seen):
    """Those are EXDEV, as between two file systems: mv copies. What they left is told by what follows."""
    kept = [], []
    for ours, theirs in zip(native.splitlines(), seen.splitlines()):
        if " = " in ours and not REFUSED.match(theirs):
            kept[0].append(ours)
            kept[1].append(theirs)
    assert len(kept[0]) > 200
    return kept


@pytest.mark.parametrize("placement", ["branch", "auto"])
@pytest.mark.parametrize("roots", ["ab", "a", "b"])
@pytest.mark.parametrize("one, other", ["ab", "ba"])
def test_files_go_from_one_to_the_other(shunt, area, roots, one, other, placement):
    ground = Ground(shunt, area, roots)
    native, seen = ground.both(one, other, placement)
    ours, theirs = without_directories(native, seen)
    assert_equal_text("\n".join(ours), "\n".join(theirs))
    listed = [set(text.split("\nd\n")[1].split()) for text in (native, seen)]
    assert [name for name in listed[0] ^ listed[1] if "directory" not in name and "full" not in name] == []
    for name in roots:
        shunt("export", ground.top("shunt", name)).check()
        assert_plain(ground.top("shunt", name))


def other_file_system(at):
    run(["mount", "-t", "tmpfs", "none", at]).check()


def other_mount(at):
    run(["mount", "--bind", at, at]).check()


@pytest.mark.skipif(not IS_SUPERUSER, reason="file systems are mounted by root")
@pytest.mark.parametrize("mount", [other_file_system, other_mount])
@pytest.mark.parametrize("one, other", ["ab", "ba"])
def test_two_file_systems_and_two_mounts_are_two(shunt, area, mount, one, other):
    ground = Ground(shunt, area)
    places = [ground.top(kind, "b") for kind in ("plain", "shunt")]
    try:
        for at in places:
            mount(at)
        native, seen = ground.both(one, other, "branch")
        assert " = EXDEV" in native and "rename d/rename-file-onto-none e/rename-file-onto-none  = 0" not in native
        assert_equal_text(native, seen)
    finally:
        for at in places:
            run(["umount", "-l", at])


RACE = """
import os, sys, threading
a, b = sys.argv[1:]
wrong, turns = [], 300
def carry(name):
    one, other = (a, b) if name < "m" else (b, a)
    open(f"{one}/{name}", "w").write(name)
    for i in range(turns):
        os.rename(f"{one}/{name}", f"{other}/{name}")
        if os.path.exists(f"{one}/{name}") or open(f"{other}/{name}").read() != name:
            wrong.append(name)
        one, other = other, one
def replace(name):
    for top in a, b:
        open(f"{top}/{name}", "w").write("1")
    for i in range(turns):
        open(f"{a}/{name}.new", "w").write("1")
        os.rename(f"{a}/{name}.new", f"{b}/{name}")
def exchange(name):
    for i in range(turns):
        CDLL(None).renameat2(-100, f"{a}/{name}".encode(), -100, f"{b}/{name}".encode(), 2)
def watch(name, top):
    while not done.is_set():
        try:
            if open(f"{top}/{name}").read() != "1" or name not in os.listdir(top):
                wrong.append(f"{name} half")
        except OSError as error:
            wrong.append(f"{name} {error}")
from ctypes import CDLL
done = threading.Event()
for name in "victim", "pair":
    for top in a, b:
        open(f"{top}/{name}", "w").write("1")
watchers = [threading.Thread(target=watch, args=args) for args in (("victim", b), ("pair", a), ("pair", b))]
def victim():
    for i in range(turns):
        open(f"{a}/victim.new", "w").write("1")
        os.rename(f"{a}/victim.new", f"{b}/victim")
movers = [threading.Thread(target=carry, args=(name,)) for name in ("f", "x")]
movers += [threading.Thread(target=victim), threading.Thread(target=exchange, args=("pair",))]
for thread in watchers + movers: thread.start()
for thread in movers: thread.join()
done.set()
for thread in watchers: thread.join()
print(len(wrong), wrong[:3], sorted(os.listdir(a)), sorted(os.listdir(b)))
"""


def test_a_name_is_there_at_each_moment_and_nobody_waits_for_each_other(shunt, area):
    """Both ways at once: names of two roots are claimed in one order."""
    ground = Ground(shunt, area)
    a, b = (ground.top("shunt", name) for name in "ab")
    commands = [[shunt.path, "run", *ground.roots, "--placement", "branch", "--", PYTHON, "-c", RACE, a, b]]
    result = run(commands[0], timeout=100, SHUNT_DEADLINE=15)
    assert result.check() == "0 [] ['f', 'pair', 'victim'] ['pair', 'victim', 'x']\n"
