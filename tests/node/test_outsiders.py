# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The shunt authors
"""What programs without the library make in the trunk, or remove there, is listed as it is: core dumps, static programs,
containers, other users."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import IS_SUPERUSER, environment, mounted, run

ENTRIES = r"""
import os
def entries(directory):
    kinds = {"directory": lambda at: at.is_dir(follow_symlinks=False), "file": lambda at: at.is_file(follow_symlinks=False),
             "link": lambda at: at.is_symlink(), "other": lambda at: True}
    return {at.name: [at.inode(), next(kind for kind, holds in kinds.items() if holds(at))] for at in os.scandir(directory)}
"""
exec(ENTRIES)
# Lists the directory that it is told, as often as it is told one: by a new stream, and by turns by one that is rewound.
LISTER = ENTRIES + r"""
import json, sys
fds = {}
for i, line in enumerate(sys.stdin):
    directory = line.rstrip("\n")
    fd = fds.get(directory) or fds.setdefault(directory, os.open(directory, os.O_RDONLY))
    print(json.dumps(entries(fd if i % 3 == 1 else directory)), flush=True)
"""
DISKS = ["ext4", "xfs", "tmpfs"]
with_whole_seconds = pytest.mark.parametrize("disk", [*DISKS, "coarse"], indirect=True)


@contextlib.contextmanager
def file_system_of_whole_seconds(at):
    server = subprocess.Popen([sys.executable, pathlib.Path(__file__).parent / "odd_file_system.py", "coarse", at],
                              stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"serving\n"
    yield
    run(["umount", "-l", at]).check()
    server.kill()
    server.wait()


@pytest.fixture(params=DISKS)
def disk(request, area):
    """A directory on a file system of that kind."""
    if not IS_SUPERUSER:
        pytest.skip("file systems are mounted by root")
    at = area / "disk"
    at.mkdir()
    if request.param == "coarse":
        with file_system_of_whole_seconds(at):
            yield at
    elif request.param == "tmpfs":
        run(["mount", "-t", "tmpfs", "none", at]).check()
        yield at
        run(["umount", "-l", at]).check()
    else:
        with mounted(at, f"mkfs.{request.param}", "-q"):
            yield at


class Lister:
    """A process under shunt."""

    def __init__(self, shunt, root, run_base, placement):
        self.settings = {"SHUNT_RUN_DIR": run_base}
        self.shunt, self.root = shunt, root
        shunt("start", "--root", root, "--placement", placement, **self.settings).check()
        self.process = subprocess.Popen([shunt.path, "exec", "--root", root, "--", sys.executable, "-c", LISTER], text=True,
                                        cwd=root, env=environment(**self.settings), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def entries(self, directory="d"):
        """Inode number and type of each name."""
        self.process.stdin.write(f"{directory}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __call__(self, directory="d"):
        return sorted(self.entries(directory))

    def sh(self, script):
        return self.shunt("exec", "--root", self.root, "--", "bash", "-c", script, cwd=self.root, **self.settings).check()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.shunt("stop", "--root", self.root, **self.settings).check()


@pytest.fixture(params=["auto", "branch"])
def lister(request, shunt, disk, run_base):
    root = disk / "root"
    root.mkdir()
    made = Lister(shunt, root, run_base, request.param)
    made.sh("mkdir d; for i in 1 2 3; do echo x >d/f$i; done")
    yield made
    made.end()


FIRST = ["f1", "f2", "f3"]


def test_what_is_made_is_listed_at_once(lister):
    directory = lister.root / "d"
    assert lister() == FIRST
    made = {"file": lambda at: at.write_text("x"), "directory": lambda at: at.mkdir(), "link": lambda at: at.symlink_to("nowhere"),
            "fifo": os.mkfifo, "hard": lambda at: at.hardlink_to(directory / "file")}
    known = list(FIRST)
    for name, make in made.items():
        make(directory / name)
        known = sorted([*known, name])
        assert lister() == known
    assert lister.sh("ls -A d").split() == known


@with_whole_seconds
def test_what_is_removed_or_renamed_is_listed_no_more(lister):
    directory = lister.root / "d"
    (directory / "one").write_text("x")
    (directory / "two").mkdir()
    assert lister() == [*FIRST, "one", "two"]
    (directory / "one").rename(directory / "other")
    assert lister() == [*FIRST, "other", "two"]
    (directory / "two").rename(lister.root / "two")
    assert lister() == [*FIRST, "other"] and lister(".") == ["d", "two"]
    (directory / "other").unlink()
    assert lister() == FIRST


def remove(at):
    at.rmdir() if at.is_dir() else at.unlink()


@with_whole_seconds
def test_what_is_replaced_is_listed_as_what_is_there_now(lister):
    """By a file of another type, which may have the same inode number, or of the same type with another one."""
    directory = lister.root / "d"
    at, new = directory / "name", lister.root / "new"
    kinds = {"file": lambda at: at.write_text("x"), "directory": lambda at: at.mkdir(), "fifo": os.mkfifo}
    for first, second in itertools.product(kinds, kinds):
        kinds[first](at)
        assert lister.entries()["name"] == entries(directory)["name"]
        remove(at)
        kinds[second](at)
        assert lister.entries()["name"] == entries(directory)["name"], (first, second)
        if "directory" not in (first, second):
            kinds[first](new)
            new.rename(at)
            assert lister.entries()["name"] == entries(directory)["name"], (first, second, "by rename")
        remove(at)
    assert lister() == FIRST


def test_within_the_granularity_of_the_times(lister):
    """One thing after the other, as quickly as it goes: many of them have the same times."""
    directory = lister.root / "d"
    for i in range(200):
        (directory / "new").write_text("x")
        assert lister() == [*FIRST, "new"], i
        (directory / "new").unlink()
        assert lister() == FIRST, i
    for i in range(200):
        (directory / f"g{i}").write_text("x")
        (directory / f"g{i}").rename(directory / f"h{i}")
        assert lister() == sorted([*FIRST, *(f"h{k}" for k in range(i + 1))])


def test_many(lister):
    directory = lister.root / "d"
    names = [f"core.{i}" for i in range(5000)]
    for name in names:
        (directory / name).touch()
    assert lister() == sorted([*FIRST, *names])
    for name in names[::2]:
        (directory / name).unlink()
    assert lister() == sorted([*FIRST, *names[1::2]])


def test_what_others_do_in_the_union_meanwhile(lister):
    """Names that come and go through shunt are told as ever while the trunk changes."""
    lister.sh("cd d; for i in $(seq 100); do echo x >keep$i; done")
    worker = subprocess.Popen([lister.shunt.path, "exec", "--root", lister.root, "--", "bash", "-c",
                               "cd d; for i in $(seq 300); do mkdir t$i; echo x >u$i; mv u$i v$i; rmdir t$i; rm v$i; done"],
                              cwd=lister.root, env=environment(**lister.settings))
    keep = {*FIRST, *(f"keep{i}" for i in range(1, 101))}
    listings = []
    for i in range(100):
        (lister.root / "d" / f"o{i}").touch()
        keep.add(f"o{i}")
        listed = lister()
        listings.append(keep <= set(listed) and len(set(listed)) == len(listed))
    assert worker.wait(120) == 0 and all(listings)
    assert set(lister()) == keep


@pytest.mark.unsanitized  # AddressSanitizer takes its processes' core dumps away
def test_a_core_dump(lister):
    if not re.match(r"core\b", pathlib.Path("/proc/sys/kernel/core_pattern").read_text()):
        pytest.skip("core dumps go elsewhere on this machine")
    out = lister.sh('cd d; ulimit -c unlimited; sh -c "kill -ABRT \\$\\$" 2>/dev/null; ls; echo core*')
    assert re.search(r"^core", out) or "core" in out.split()


LISTS_AGAIN = r"""
import ctypes, sys
libc = ctypes.CDLL(None)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.opendir(b"d"))
for _ in range(int(sys.argv[1])):
    libc.rewinddir(stream)
    while libc.readdir(stream):
        pass
"""


def calls(lister, script):
    """How often each system call was made; `asked`: a statx for which the file system's server is asked."""
    trace = lister.root.parent / "trace"
    lister.sh(f"strace -f -o {trace} {script}")
    text = trace.read_text()
    made = {name: len(re.findall(rf"\b{name}\(", text)) for name in ("statx", "getdents64", "openat")}
    return {**made, "asked": text.count("AT_STATX_FORCE_SYNC")}


def test_what_it_costs(lister):
    """Once it is known that the trunk is as it was: no call more than before, of a directory that is redirected or not."""
    if run(["which", "strace"]).status != 0:
        pytest.skip("there is no strace")
    assert lister() == FIRST
    subprocess.run(["sleep", "1.2"])  # its times have been written by then, which changes them
    assert lister() == lister() == FIRST
    subprocess.run(["sleep", "0.1"])
    assert lister() == FIRST
    counted = calls(lister, "ls d")
    assert counted["getdents64"] == 0, counted
    (lister.root.parent / "again.py").write_text(LISTS_AGAIN)
    once, often = (calls(lister, f"{sys.executable} ../again.py {times}") for times in (1, 11))
    # The trunk's times; the others are of the dots.
    assert {name: often[name] - once[name] for name in once} == {"asked": 10, "statx": 30, "getdents64": 0, "openat": 0}
